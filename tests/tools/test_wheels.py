"""Wheels that are compared: equal ones, others, and those whose archives alone differ."""

import zipfile
from pathlib import Path

from tools.release import wheels


def wheel(path: Path, members: dict[str, str], year: int = 2020) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), content)
    return path


def test_differences(tmp_path: Path) -> None:
    one = wheel(tmp_path / "one", {"a": "1", "b": "2"})
    assert wheels.differences(one, wheel(tmp_path / "same", {"a": "1", "b": "2"})) == []
    assert wheels.differences(one, wheel(tmp_path / "other", {"a": "1", "b": "3", "c": ""})) == ["b", "c"]
    assert wheels.differences(one, wheel(tmp_path / "later", {"a": "1", "b": "2"}, 2021)) == ["order and dates"]


def test_all_packages_and_their_sources_are_found() -> None:
    assert {".", "extensions/nn_ext_cpu"} <= set(wheels.packages())
    names = {str(path) for path in wheels.sources()}
    assert {"pyproject.toml", "extensions/nn_ext_cpu/CMakeLists.txt"} <= names
    assert not any(name.startswith((".venv/", "build/")) for name in names)
