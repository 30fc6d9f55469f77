"""The files of a frozen program; PyInstaller itself is played by a module that says what it was asked for."""

import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

import nn_core.pyinstaller as frozen
from nn_core.engine.runtime import installed


def test_the_hook_collects_the_core_and_every_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = ModuleType("PyInstaller.utils.hooks")
    for name in ("collect_data_files", "collect_dynamic_libs", "collect_submodules", "copy_metadata"):
        setattr(hooks, name, lambda package, name=name: [f"{name} {package}"])
    for name, module in (("PyInstaller", ModuleType("p")), ("PyInstaller.utils", ModuleType("u")), (hooks.__name__, hooks)):
        monkeypatch.setitem(sys.modules, name, module)
    (folder,) = frozen.hook_dirs()
    result = runpy.run_path(str(Path(folder) / "hook-nn_core.py"))
    assert "collect_submodules nn_core" in result["hiddenimports"]
    assert "copy_metadata nn-core" in result["datas"]
    assert "collect_data_files nn_core" in result["datas"]
    for entries in installed.entry_points().values():
        package = entries[0].module.partition(".")[0]
        assert f"collect_submodules {package}" in result["hiddenimports"]
        assert f"collect_dynamic_libs {package}" in result["binaries"]
    assert len(result["datas"]) == len(frozen.packages()) + len(frozen.distributions())


def test_the_hook_is_declared() -> None:
    tomllib = pytest.importorskip("tomllib", reason="reading pyproject.toml needs Python 3.11")
    project = tomllib.loads((Path(frozen.__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"]["pyinstaller40"]["hook-dirs"].partition(":")
    assert module == frozen.__name__
    assert callable(getattr(frozen, name))


def test_blocked_plugins_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "entry_points", dict)
    assert (frozen.packages(), frozen.distributions()) == (["nn_core"], ["nn-core"])
