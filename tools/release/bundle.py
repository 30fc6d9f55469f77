"""Put the libraries that a wheel needs inside it, and take the packages that brought them out of its requirements.

    python -m tools.release.bundle dist/nn_ext_cpu-0.1.0-cp311-cp311-linux_x86_64.whl --to release

auditwheel copies the libraries and gives the wheel the tag of the oldest Linux that it runs on; it must be installed, with
patchelf. The libraries are searched where the packages of this environment have put them.
"""

import base64
import email
import email.policy
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import click
from packaging.requirements import Requirement

#: Beginnings of the names of libraries, and the packages that bring them.
PACKAGES: Final = {"libdnnl": "onednn-cpu-gomp"}


def libraries(wheel: Path) -> set[str]:
    """Return the names of the packages whose libraries are inside a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        files = [Path(name) for name in archive.namelist()]
    inside = [path.name for path in files if path.parent.suffix == ".libs"]
    return {package for library, package in PACKAGES.items() if any(name.startswith(library) for name in inside)}


def without_requirements(metadata: bytes, packages: set[str]) -> bytes:
    """Return the metadata of a wheel without requirements for `packages`."""
    message = email.message_from_bytes(metadata, policy=email.policy.compat32)
    kept = [text for text in message.get_all("Requires-Dist", []) if Requirement(text).name not in packages]
    del message["Requires-Dist"]
    for text in kept:
        message["Requires-Dist"] = text
    return message.as_bytes()


def write_wheel(source: Path, target: Path, packages: set[str]) -> None:
    """Copy a wheel without requirements for `packages`; its record has the digest of the new metadata."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        name = next(info.filename for info in old.infolist() if info.filename.endswith(".dist-info/METADATA"))
        metadata = without_requirements(old.read(name), packages)
        digest = base64.urlsafe_b64encode(hashlib.sha256(metadata).digest()).rstrip(b"=").decode()
        for info in old.infolist():
            content = metadata if info.filename == name else old.read(info)
            if info.filename.endswith(".dist-info/RECORD"):
                line = f"{name},sha256={digest},{len(metadata)}"
                content = re.sub(rf"^{re.escape(name)},.*$", line, content.decode(), flags=re.MULTILINE).encode()
            new.writestr(info, content)


def repaired(wheel: Path, folder: Path) -> Path:
    """Let auditwheel copy the libraries into the wheel, and return the new one in `folder`."""
    libraries_here = Path(sys.prefix, "lib")
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{libraries_here}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")}
    command = [sys.executable, "-P", "-m", "auditwheel", "repair", "--wheel-dir", str(folder), str(wheel)]
    subprocess.run(command, env=environment, check=True)
    (made,) = folder.glob("*.whl")
    return made


@click.command()
@click.argument("wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", "folder", type=click.Path(file_okay=False, path_type=Path), required=True, help="Where it goes.")
def main(wheel: Path, folder: Path) -> None:
    """Write a wheel that needs no library from elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as working:
        made = repaired(wheel, Path(working))
        write_wheel(made, folder / made.name, libraries(made))
    click.echo(str(folder / made.name))


if __name__ == "__main__":
    main(prog_name="python -m tools.release.bundle")
