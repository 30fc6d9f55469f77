"""Plugins made for one test: real packages in a temporary folder, found through their metadata."""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nn_core.engine.dispatch import doctor
from nn_core.engine.dispatch.plugin_manager import PLUGINS, Plugins
from nn_core.engine.runtime import installed
from nn_core.parameter import clear_parameters

_numbers = itertools.count()
KINDS = Path(__file__).parents[2] / "examples" / "plugin_kinds"

HEAD = """
from nn_core.ext import *
PLUGIN_API = 1
REQUIRES_CORE = ">=0.1"
"""
BACKEND = """
import numpy as np

class Host:
    def __init__(self):
        self.name, self.array_class, self.kernels = "{name}", "{family}", {{}}
    def namespace(self):
        return np
    def empty(self, shape, dtype):
        return np.empty(shape, dtype)
    def from_numpy(self, array):
        return array.copy()
    def to_numpy(self, array):
        return array

@hookimpl
def nn_core_backends():
    return [BackendInfo(name="{name}", array_class="{family}", **{{"load": Host, **{more}}})]
"""


class Installer:
    """Puts plugin packages on the path."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self.modules: list[str] = []

    def __call__(
        self, name: str, body: str, *, package: str = "", version: str = "1.0", head: str = HEAD, index: str = ""
    ) -> str:
        """Install a plugin whose module has `body` below a sound head; returns the name of the module.

        `index` has the lines of the index in the metadata of the package.
        """
        package = package or f"nn-ext-{name}"
        module = f"plugin_of_a_test_{next(_numbers)}"
        folder = self._folder / module
        metadata = folder / f"{package.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir(parents=True)
        (folder / f"{module}.py").write_text(head + body)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        (metadata / "entry_points.txt").write_text(
            f"[nn_core.extensions]\n{name} = {module}\n[nn_core.index]\n{index}\n", encoding="utf-8"
        )
        self._monkeypatch.syspath_prepend(folder)
        installed.forget()
        self.modules.append(module)
        return module

    def backend(self, name: str, *, family: str = "CpuCachedArray", more: str = "{}", body: str = "") -> str:
        """Install a backend on NumPy arrays without kernels; `more` are further keywords of its BackendInfo."""
        return self(name, body + BACKEND.format(name=name, family=family, more=more))

    def uninstall(self, module: str) -> None:
        """Take the plugin with this module away again; a module that was imported stays imported."""
        sys.path.remove(str(self._folder / module))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installer]:
    """Installs plugins that are gone after the test."""
    installer = Installer(tmp_path, monkeypatch)
    yield installer
    monkeypatch.undo()
    installed.forget()
    for module in installer.modules:
        sys.modules.pop(module, None)


@pytest.fixture
def plugins() -> Iterator[Plugins]:
    """Plugins as a new process finds them, with a registry of their own."""
    plugins = Plugins()
    yield plugins
    plugins.close()


#: The plugins that are installed beside those of a test.
OTHERS = frozenset(installed.installed_plugins()) - {installed.CORE_PLUGIN}


@pytest.fixture
def examines_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor passes over the plugins that are installed: it examines each in a process of its own, for a second."""
    examined = doctor._examined
    monkeypatch.setattr(doctor, "_examined", lambda name: [] if name in OTHERS else examined(name))


@pytest.fixture
def kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example with one extension of every kind, as if pip had installed it."""
    tomllib = pytest.importorskip("tomllib", reason="reading pyproject.toml needs Python 3.11")
    project = tomllib.loads((KINDS / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = tmp_path / "nn_ext_kinds-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: nn-ext-kinds\nVersion: 0.1.0\n", encoding="utf-8")
    groups = project["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in groups[group].items()) for group in groups]
    (metadata / "entry_points.txt").write_text("".join(lines), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(KINDS)
    PLUGINS.refresh()
    clear_parameters()
    yield
    clear_parameters()
    monkeypatch.undo()
    PLUGINS.refresh()
    for name in [name for name in sys.modules if name.startswith("nn_ext_kinds")]:
        del sys.modules[name]
