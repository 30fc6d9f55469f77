"""Metadata of installed packages, most of which have nothing to do with nn_core, and whose makers nobody knows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nn_core.engine.dispatch import doctor
from nn_core.engine.dispatch.plugin_record import State, packages
from nn_core.engine.runtime import installed, metadata
from nn_core.engine.runtime.metadata import scan
from nn_core.errors import PluginError

GROUP, INDEX = installed.GROUP, installed.INDEX
SOUND = f"[{GROUP}]\nsound = nn_ext_sound.plugin\n"
METADATA = b"Metadata-Version: 2.1\nName: nn-ext-sound\nVersion: 1.0\n"


def package(folder, stem, entry_points=None, about=METADATA, suffix=".dist-info"):
    """Write the metadata of a package into `folder`."""
    place = folder / (stem + suffix)
    place.mkdir(parents=True)
    for name, content in (("entry_points.txt", entry_points), ("METADATA", about)):
        if content is not None:
            (place / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return place


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A folder on the search path, with one sound plugin in it."""
    package(tmp_path, "nn_ext_sound-1.0", SOUND)
    monkeypatch.syspath_prepend(tmp_path)
    installed.forget()
    yield tmp_path
    monkeypatch.undo()
    installed.forget()


def names():
    installed.forget()
    return set(installed.installed_plugins())


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"[console_scripts]\ncaf\xe9 = cafe:main\n", False),
        (f"[{GROUP}]\ncaf = cafe\n".encode("utf-16"), True),
        (f"[{GROUP}]\ncaf\xe9 = cafe\n".encode("latin-1"), True),
        (f"[{GROUP}]\nno equals sign\n", True),
        (f"[{GROUP}]\n = nameless\n", True),
        (f"[{GROUP}]\ntwo words = cafe\n", True),
        (f"[{GROUP}]\n\x1b[31mred = cafe\n", True),
        (f"early = cafe\n[{GROUP}]\n", True),
    ],
)
def test_what_cannot_be_read_costs_its_package_only(path, caplog, content, named):
    package(path, "cafe-2.0", content, b"Name: cafe\nVersion: 2.0\n")
    assert {"sound", "reference"} <= names() and "caf" not in names()
    assert [fault.is_ours for fault in installed.faults()] == [named]
    assert "cafe" in installed.faults()[0].package
    assert ("metadata of 'cafe-2.0' is passed over" in caplog.text or "metadata of cafe 2.0" in caplog.text) == named
    assert "\x1b" not in caplog.text


@pytest.mark.parametrize(("stem", "advice"), [("cafe-2.0", "pip uninstall cafe"), (";rm -rf x", "remove its metadata from ")])
def test_the_doctor_advises_to_remove_a_package_by_its_name(path, stem, advice):
    package(path, stem, f"[{GROUP}]\ncaf = cafe\n".encode("utf-16"), None)
    names()
    (row,) = doctor._passed_over()
    assert row.advice in (advice, f"{advice}{path}")


def test_a_mark_of_byte_order_in_front_is_no_part_of_a_group(path):
    package(path, "cafe-2.0", f"\ufeff[{GROUP}]\ncafe = cafe\n", b"Name: cafe\nVersion: 2.0\n")
    assert "cafe" in names()


@pytest.mark.parametrize("value", ["plug bad : x y", "", "a b", "..", "1;import os", "\x07"])
def test_an_entry_point_that_names_no_module_is_a_plugin_that_does_not_load(path, plugins, value):
    package(path, "nn_ext_bad-1.0", f"[{GROUP}]\nbad = {value}\n", b"Name: nn-ext-bad\nVersion: 1.0\n")
    assert {"sound", "bad"} <= names()
    with pytest.raises(PluginError, match=r"plugin 'bad' \(nn-ext-bad 1.0\): must load, got: the entry point 'bad' must"):
        plugins.module("bad")


@pytest.mark.parametrize(
    "about",
    [
        None, b"", b"\xff\xfe\x00binary", b"Name: nn-ext-other; rm -rf x\nVersion: 1.0 --index-url x\n",
        b"Name: \x1b[31m\nVersion: \n",
    ],
)  # fmt: skip
def test_the_folder_names_a_package_whose_metadata_does_not(path, about):
    package(path, "nn_ext_other-3.1", f"[{GROUP}]\nother = nn_ext_other\n", about)
    installed.forget()
    assert packages(installed.installed_plugins()["other"]) == ["nn-ext-other 3.1"]


@pytest.mark.parametrize("group", [GROUP, INDEX])
def test_a_package_with_a_flood_of_entry_points_is_passed_over(path, monkeypatch, group):
    monkeypatch.setattr(metadata, "MAX_LINES", 500)
    names()
    package(path, "most-1.0", f"[{GROUP}]\nmost = most\n[{INDEX}]\n" + "".join(f"functions.f{i} = most\n" for i in range(499)))
    package(path, "flood-1.0", f"[{group}]\n" + "".join(f"p{i} = flood\n" for i in range(501)))
    assert {"sound", "most"} <= names() and "p0" not in names()
    (fault,) = installed.faults()
    assert fault.is_ours and fault.reason.startswith("entry_points.txt: must have at most 500 lines in nn_core.extensions and")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_metadata_that_never_ends_is_not_waited_for(path, monkeypatch):
    os.mkfifo(package(path, "pipe-1.0") / "entry_points.txt")
    place = package(path, "nn_ext_pipe-1.0", f"[{GROUP}]\npipe = nn_ext_pipe\n", None)
    os.mkfifo(place / "METADATA")
    package(path, "long-1.0", "#" * 20000)
    monkeypatch.setattr(metadata, "MAX_BYTES", 10000)
    assert {"sound", "pipe"} <= names()
    assert {fault.reason for fault in installed.faults()} == {
        "entry_points.txt: must be a regular file",
        "entry_points.txt: must have at most 10000 bytes, got 20000",
    }


def test_a_finder_that_fails_costs_its_own_packages_only(path, monkeypatch):
    class Finder:
        @staticmethod
        def find_distributions(context):
            raise RuntimeError("boom")

        @staticmethod
        def find_spec(*args):
            return None

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    assert "sound" in names()
    (fault,) = installed.faults()
    assert "Finder" in fault.package and fault.reason == "it raises RuntimeError"


def test_of_two_packages_of_one_name_the_first_complete_one_counts(path, tmp_path):
    package(path / "later", "nn_ext_sound-0.9", f"[{GROUP}]\nsound = old\n")
    package(path, "NN.Ext_Sound-0.5", f"[{GROUP}]\nsound = left_over\n", None)
    sys.path.append(str(path / "later"))
    assert [entry.module for entry in scan({GROUP}, lambda entry: "").entries if entry.name == "sound"] == [
        "nn_ext_sound.plugin"
    ]


@pytest.mark.parametrize("name", ["reference", "cpu", "cuda", "cudnn", "nccl", "onnx", "nnp", "contrib", "serve"])
def test_names_of_ours_are_ours(path, caplog, name):
    before = installed.entry_points().get(name)
    package(path, "evil-1.0", f"[{GROUP}]\n{name} = evil\n", b"Name: evil\nVersion: 1.0\n")
    package(path, "nn_ext_fake-1.0", f"[{GROUP}]\n{name} = evil:x\n", b"Name: nn-ext-fake\nVersion: 1.0\n")
    installed.forget()
    assert installed.entry_points().get(name) == before
    assert f"metadata of evil 1.0 is passed over: the name '{name}' of an entry point must be that of nn-" in caplog.text
    rows = [row for row in doctor._passed_over() if row.package == "evil 1.0"]
    assert [(row.state, row.advice) for row in rows] == [(State.BROKEN, "pip uninstall evil")]


@pytest.mark.parametrize("stem", ["nn_ext_cpu-9.0", "evil-9.0"])
def test_a_package_that_calls_itself_like_ours_is_passed_over(path, caplog, stem):
    package(path / "later", "nn_ext_cpu-0.1.0", f"[{GROUP}]\ncpu = nn_ext_cpu.plugin\n", b"Name: nn-ext-cpu\nVersion: 0.1.0\n")
    package(path, stem, f"[{GROUP}]\ncpu = evil\n", b"Name: nn-ext-cpu\nVersion: 9.0\n")
    sys.path.append(str(path / "later"))
    installed.forget()
    assert {entry.module for entry in installed.entry_points()["cpu"]} == {"nn_ext_cpu.plugin"}
    assert "metadata of nn-ext-cpu 9.0 is passed over: an entry point of nn-ext-cpu must name a module of it" in caplog.text
    # pip would uninstall the innocent one
    (row,) = [row for row in doctor._passed_over() if row.package == "nn-ext-cpu 9.0"]
    assert row.advice == f"remove its metadata from {path.resolve()}"
    sys.path.remove(str(path / "later"))


@pytest.mark.parametrize("owner", ["nn-core", "NN_Core", "nn-ext-onnx"])
def test_no_package_of_others_is_called_like_ours(path, owner):
    package(path, "evil-9.0", f"[{GROUP}]\nevil = evil\n", f"Name: {owner}\nVersion: 9.0\n".encode())
    assert "evil" not in names()


def test_the_names_of_ours_are_those_of_the_extensions():
    tomllib = pytest.importorskip("tomllib", reason="part of Python from 3.11 on")
    found = {}
    for file in Path(__file__).parents[2].glob("extensions/*/pyproject.toml"):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        found |= dict.fromkeys(project.get("entry-points", {}).get(GROUP, ()), project["name"])
    if found:  # the source of the core alone has no extensions
        assert found == {name: owner for name, owner in installed.OWN_PLUGINS.items() if name != installed.CORE_PLUGIN}


def test_a_copy_of_ours_without_metadata_has_its_reference_kernels(monkeypatch):
    monkeypatch.setattr(installed, "scan", lambda groups, objection: metadata.Scan((), ()))
    installed.forget()
    (entry,) = installed.entry_points()["reference"]
    assert entry.module == "nn_core.operators.reference.plugin"
    monkeypatch.undo()
    installed.forget()


def test_a_package_lists_what_its_own_plugins_bring_and_nothing_else(path):
    lines = "functions.steal = cpu\nsolvers.Steal = sound\nsolvers.Own = liar\noverlays.cpu = nobody\n"
    package(path, "nn_ext_liar-1.0", f"[{GROUP}]\nliar = liar\n[{INDEX}]\n{lines}", b"Name: nn-ext-liar\nVersion: 1.0\n")
    installed.forget()
    added = {place: owners for place, owners in installed.index().items() if {"cpu", "sound", "liar"} & {*owners}}
    assert added[("solvers", "Own")] == ("liar",)
    assert not any("teal" in name for _, name in added) and ("overlays", "cpu") not in installed.index()


LATE = """
from nn_core.ext import hookimpl
PLUGIN_API = 2
REQUIRES_CORE = '>=0.1'

@hookimpl
def nn_core_solvers():
    return []
"""
CHANGED_FOLDER = """
import os, sys
sys.path.insert(0, {path!r})
from nn_core.ext import find_extension
from nn_core.engine.dispatch.plugin_manager import PLUGINS
assert "late" in PLUGINS.names()
os.chdir("/")
print(PLUGINS.plugin("late").failure, PLUGINS.plugin("late").label, {path!r} in sys.path, len(sys.path))
"""


@pytest.mark.parametrize("relative", ["", "plugins"])
def test_a_plugin_on_a_relative_path_outlives_a_change_of_folder(tmp_path, relative):
    folder = tmp_path / relative
    package(folder, "nn_ext_late-1.0", f"[{GROUP}]\nlate = nn_ext_late\n", b"Name: nn-ext-late\nVersion: 1.0\n")
    (folder / "nn_ext_late.py").write_text(LATE)
    found = subprocess.run(
        [sys.executable, "-c", CHANGED_FOLDER.format(path=relative)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(metadata.__file__).parents[3])},
    )  # fmt: skip
    assert found.stdout.startswith("None 'late' (nn-ext-late 1.0) True"), found.stderr
