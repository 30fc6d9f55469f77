"""Write versions and hashes of everything that CI installs, from a report of pip.

    python -m pip install --dry-run --ignore-installed --report report.json ...
    python -m tools.release.lock report.json constraints/ci.txt      # `make lock` does both

The hashes are those of the files for one interpreter and platform, so that CI installs just these files or none.
"""

import json
import re
from pathlib import Path
from typing import Any

import click

_HEAD = """\
# Everything that CI installs from an index, with the hash of the one file that fits {platform}.
# Written by `make lock`; `make LOCKED=1 test` installs these files and nothing else.
"""


def lines(report: dict[str, Any]) -> list[str]:
    """Return the requirements, in the order of their names; packages of this repository, which have no archive, are left
    out.
    """
    found = {}
    for entry in report["install"]:
        hashes = entry["download_info"].get("archive_info", {}).get("hashes", {})
        if "sha256" in hashes:
            name = re.sub(r"[-_.]+", "-", entry["metadata"]["name"]).lower()
            found[name] = f"{name}=={entry['metadata']['version']} --hash=sha256:{hashes['sha256']}"
    return [found[name] for name in sorted(found)]


@click.command()
@click.argument("report", type=click.Path(exists=True, path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
def main(report: Path, target: Path) -> None:
    """Write the requirements of a report of pip into TARGET."""
    content = json.loads(report.read_text())
    environment = content["environment"]
    platform = "{implementation_name} {python_version} on {sys_platform}, {platform_machine}".format(**environment)
    target.write_text(_HEAD.format(platform=platform) + "\n".join(lines(content)) + "\n")


if __name__ == "__main__":
    main(prog_name="python -m tools.release.lock")
