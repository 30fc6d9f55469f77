"""An environment of its own for each test, in which pip installs and uninstalls packages without a network."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import nn_core

ROOT = Path(nn_core.__file__).parent.parent
EXAMPLES = ROOT / "examples"


class Site:
    """A virtual environment that also sees the packages of this interpreter."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        venv.create(folder / "venv", with_pip=False, symlinks=os.name != "nt")
        (site_packages,) = (folder / "venv").glob("**/site-packages")
        outer = {sysconfig.get_path("purelib"): None, sysconfig.get_path("platlib"): None}
        lines = [str(ROOT), *(f"import site; site.addsitedir({path!r})" for path in outer)]
        (site_packages / "outer.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        settings = {name: value for name, value in os.environ.items() if not name.startswith("NN_CORE_")}
        self._environment = {**settings, "COLUMNS": "200"}

    def install(self, name: str, version: str, entry_points: str, modules: dict[str, str]) -> None:
        """Install the package `name`, made of the given modules, with plugins as in an ini file."""
        wheel = self._folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        metadata = wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"
        files = {
            **modules,
            f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{metadata}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{metadata}/entry_points.txt": f"[nn_core.extensions]\n{entry_points}\n",
        }
        files[f"{metadata}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{metadata}/RECORD"])
        with zipfile.ZipFile(wheel, "w") as archive:
            for file, text in files.items():
                archive.writestr(file, text)
        self.install_wheel(wheel)

    def install_wheel(self, wheel: Path) -> None:
        """Install a wheel and nothing that it needs."""
        self._pip("install", "--no-index", "--no-deps", str(wheel))

    def install_example(self, folder: str) -> str:
        """Install a project of examples/ as its pyproject.toml says; returns the name of the package."""
        tomllib = pytest.importorskip("tomllib", reason="reading pyproject.toml needs Python 3.11")
        project = tomllib.loads((EXAMPLES / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        entry_points = project["entry-points"]["nn_core.extensions"]
        modules = {path.name: path.read_text(encoding="utf-8") for path in (EXAMPLES / folder).glob("*.py")}
        lines = "\n".join(f"{name} = {module}" for name, module in entry_points.items())
        self.install(project["name"], project["version"], lines, modules)
        return str(project["name"])

    def uninstall(self, name: str) -> None:
        """Uninstall the package `name`."""
        self._pip("uninstall", "--yes", name)

    def run(self, *words: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python with `words` in this environment, in `folder` or an empty one."""
        (self._folder / "cwd").mkdir(exist_ok=True)
        return subprocess.run(
            [str(self._python), *words],
            cwd=folder or self._folder / "cwd",
            env={**self._environment, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def output(self, code: str, **environment: str) -> str:
        """Return the output of the program `code`, which has to succeed."""
        result = self.run("-c", code, **environment)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def _pip(self, *words: str) -> None:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self._python), *words]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A fresh environment."""
    pytest.importorskip("pip")
    return Site(tmp_path)
