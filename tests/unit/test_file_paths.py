"""Paths made from names that come from files."""

import os
from pathlib import Path

import pytest

from nn_core.errors import FileFormatError
from nn_core.files import paths
from nn_core.files.paths import path_below

HOSTILE = [
    *("../evil", "a/../../evil", "..", "a\\..\\..\\evil", "/etc/passwd", "\\\\host\\share", "C:\\evil", "c:evil", "D:/evil"),
    *("", "/", ".", "./", "a\0b", "a\nb", "\x1b[31m", "\x7f", "\udc80", "a" * 256, "é" * 128, f"ok/{'b' * 300}"),
]
ON_WINDOWS = ["CON", "con.txt", "a/aux", "LPT1", "com\u00b9.csv", "ab:c", "a<b", 'a"b', "a|b", "a?", "a*", "a.", "a /b"]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_names_that_leave_the_folder_or_are_no_names(name, tmp_path):
    with pytest.raises(FileFormatError, match="a name in a file must stay below its folder, got") as caught:
        path_below(tmp_path, name)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", ON_WINDOWS, ids=ascii)
def test_names_that_windows_cannot_have(name, tmp_path, monkeypatch):
    assert path_below(tmp_path, name).is_relative_to(tmp_path)
    monkeypatch.setattr(paths, "_WINDOWS", True)
    with pytest.raises(FileFormatError, match="must stay below its folder"):
        path_below(tmp_path, name)


@pytest.mark.parametrize("name", ["y", "a/b.csv", "./a//b", "loss (train)", "名前", "..a", "a..", "...", "b" * 255])
def test_names_of_files(name, tmp_path):
    expected = tmp_path.joinpath(*(part for part in name.split("/") if part not in ("", ".")))
    assert path_below(tmp_path, name) == expected


def test_links(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "real").mkdir(parents=True)
    outside.mkdir()
    (inside / "out").symlink_to(outside)
    (inside / "near").symlink_to(inside / "real")
    assert path_below(inside, "near/a") == inside / "near" / "a"
    with pytest.raises(FileFormatError, match="a link leads out of the folder"):
        path_below(inside, "out/a")
    alias = tmp_path / "alias"  # the folder itself may be reached by a link
    alias.symlink_to(inside)
    assert path_below(alias, "a") == alias / "a"


def test_a_relative_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert path_below(os.curdir, "a/b") == Path("a/b")
