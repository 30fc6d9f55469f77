"""Write a bill of materials beside each wheel: what it contains of others, and what it needs.

    python -m tools.release.sbom dist/*.whl

`nn_core-0.1.0-py3-none-any.cdx.json` lies beside the wheel of that name, as CycloneDX 1.6 (https://cyclonedx.org). Its bytes
depend on the wheel and on SOURCE_DATE_EPOCH alone.
"""

import datetime
import email
import email.message
import hashlib
import json
import os
import re
import uuid
import zipfile
from pathlib import Path
from typing import Any

import click
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Shared libraries that are not our own: auditwheel puts them into a folder called `<package>.libs`.
_BUNDLED = re.compile(r"(?P<folder>[\w.]+\.libs)/(?P<name>lib[\w+]+?)(?:-[0-9a-f]{8})?\.so(?P<version>[\d.]*)$")
_SCOPES = {False: "required", True: "optional"}


def bill_of_materials(wheel: Path) -> dict[str, Any]:
    """Return the bill of a wheel as CycloneDX describes it.

    Raises:
        ValueError: where the wheel has no metadata.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        member = next((name for name in names if name.endswith(".dist-info/METADATA")), None)
        if member is None:
            raise ValueError(f"a wheel must have metadata, got {wheel} without")
        metadata = email.message_from_bytes(archive.read(member))
        bundled = [_library(archive, found) for found in map(_BUNDLED.search, names) if found]
    needed = [_requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    component = _distribution(metadata, wheel.name, digest)
    # one that extras need as well is required
    parts = [*bundled, *{part["bom-ref"]: part for part in sorted(needed, key=lambda part: part["scope"])}.values()]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, digest).urn,
        "version": 1,
        "metadata": {"timestamp": _timestamp(), "component": component},
        "components": parts,
        "dependencies": [
            {"ref": component["bom-ref"], "dependsOn": sorted(part["bom-ref"] for part in parts)},
            *({"ref": part["bom-ref"]} for part in parts),
        ],
    }


def _distribution(metadata: email.message.Message, file_name: str, digest: str) -> dict[str, Any]:
    name, version = canonicalize_name(str(metadata["Name"])), str(metadata["Version"])
    purl = f"pkg:pypi/{name}@{version}?file_name={file_name}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "description": str(metadata["Summary"]),
        "licenses": [{"expression": str(metadata["License-Expression"])}],
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }


def _requirement(text: str) -> dict[str, Any]:
    """Return the component of a requirement, whose versions are a range: what is installed is up to the installer."""
    requirement = Requirement(text)
    purl = f"pkg:pypi/{canonicalize_name(requirement.name)}"
    properties = {"nn_core:versions": str(requirement.specifier), "nn_core:marker": str(requirement.marker or "")}
    return {
        "type": "library",
        "bom-ref": purl,
        "name": canonicalize_name(requirement.name),
        "scope": _SCOPES["extra ==" in str(requirement.marker)],
        "purl": purl,
        "properties": [{"name": name, "value": value} for name, value in properties.items() if value],
    }


def _library(archive: zipfile.ZipFile, found: "re.Match[str]") -> dict[str, Any]:
    content = archive.read(found.string)
    return {
        "type": "library",
        "bom-ref": f"file:{found.string}",
        "name": found["name"],
        "version": found["version"].strip("."),
        "scope": "required",
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
    }


def _timestamp() -> str:
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))  # the first date that a wheel can have
    return datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@click.command()
@click.argument("wheels", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(wheels: tuple[Path, ...]) -> None:
    """Write a bill of materials beside each of WHEELS."""
    for wheel in wheels:
        path = wheel.with_suffix(".cdx.json")
        path.write_text(json.dumps(bill_of_materials(wheel), indent=2) + "\n", encoding="utf-8")
        click.echo(path)


if __name__ == "__main__":
    main(prog_name="python -m tools.release.sbom")
