"""Build each package twice, in folders of different names and lengths.

    python -m tools.release.wheels            # all packages
    python -m tools.release.wheels --fast . extensions/nn_ext_cpu    # C++ without optimization, which takes minutes

The two wheels must have the same bytes.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]


def packages() -> list[str]:
    """Return the folders of the core and of the extensions."""
    return [".", *sorted(str(path.parent.relative_to(ROOT)) for path in ROOT.glob("extensions/*/pyproject.toml"))]


def sources() -> list[Path]:
    """Return the files of the repository, without what was built in it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [Path(name) for name in names if name and (ROOT / name).is_file()]


def build(package: str, folder: Path, epoch: str, options: tuple[str, ...]) -> Path:
    """Return the wheel of a package, built from a copy of the repository in `folder`."""
    for path in sources():
        (folder / "source" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, folder / "source" / path)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-cache-dir", "--wheel-dir", str(folder)]
    subprocess.run(
        [*command, *options, "."],
        cwd=folder / "source" / package,
        env={**os.environ, "SOURCE_DATE_EPOCH": epoch},
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def differences(one: Path, two: Path) -> list[str]:
    """Return the members of two wheels that differ, or "order and dates" if only the archives do."""
    if one.read_bytes() == two.read_bytes():
        return []
    contents = []
    for path in (one, two):
        with zipfile.ZipFile(path) as archive:
            contents.append({name: archive.read(name) for name in archive.namelist()})
    names = sorted(contents[0].keys() | contents[1].keys())
    return [name for name in names if contents[0].get(name) != contents[1].get(name)] or ["order and dates"]


@click.command()
@click.argument("names", nargs=-1)
@click.option("--fast", is_flag=True, help="Compile nn_ext_cpu without optimization.")
def main(names: tuple[str, ...], fast: bool) -> None:
    """Build the wheels of packages twice; the exit status is 1 if two differ."""
    epoch = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    n_findings = 0
    for name in names or packages():
        options = ("--config-settings=cmake.define.NN_OPTIMIZATION=-O0",) if fast and name.endswith("nn_ext_cpu") else ()
        with tempfile.TemporaryDirectory() as folder:
            wheels = []
            for part in ("one", "another_folder_with_a_longer_name"):
                (Path(folder) / part).mkdir()
                wheels.append(build(name, Path(folder) / part, epoch.stdout.strip(), options))
            found = differences(*wheels)
            digest = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
            click.echo(f"{wheels[0].name}: {'differs in ' + ', '.join(found) if found else digest}")
            n_findings += bool(found)
    sys.exit(n_findings > 0)


if __name__ == "__main__":
    main(prog_name="python -m tools.release.wheels")
