"""Rows of HDF5 files: a process of its own reads some on trial, and nothing leads to other files."""

import json
import os
import pickle
import subprocess

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")

from nn_core.data.array_sources import Hdf5DataSource  # noqa: E402
from nn_core.engine.runtime.children import python_command  # noqa: E402
from nn_core.errors import FileFormatError  # noqa: E402
from nn_core.files import hdf5_rows, probe_subprocess  # noqa: E402
from nn_core.settings import Settings  # noqa: E402


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "rows.h5", "w") as store:
        store.create_dataset("x", data=np.arange(40.0).reshape(20, 2), chunks=(3, 2), compression="gzip")
        store.create_dataset("group/y", data=np.arange(20))
        store["y"] = np.arange(20)
    return tmp_path / "rows.h5"


def test_rows_that_crash_the_library_or_let_it_loop(path, monkeypatch):
    program = "import resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    monkeypatch.setattr(probe_subprocess, "settings", Settings)
    monkeypatch.setattr(probe_subprocess, "PROGRAM", program + "import os\nos.abort()")
    with pytest.raises(FileFormatError, match=r"rows\.h5: the HDF5 library must read it, got a crash \(SIGABRT\)"):
        Hdf5DataSource(path)
    program += "resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\n"
    monkeypatch.setattr(probe_subprocess, "PROGRAM", program + "while True: pass")
    with pytest.raises(FileFormatError, match=r"rows\.h5: .* in 20 s of computing, got no end"):
        Hdf5DataSource(path)
    monkeypatch.setattr(probe_subprocess, "settings", lambda: Settings(trust_hdf5=True))
    assert Hdf5DataSource(path).variables == ("x", "y")


def test_a_file_is_tried_once_whatever_is_read_of_it(path, monkeypatch):
    tried = []
    monkeypatch.setattr(hdf5_rows, "try_reading", lambda *given, **how: tried.append((given, how)))
    source = Hdf5DataSource(path, ["x", "group/y"])
    for one in (source, pickle.loads(pickle.dumps(source))):
        assert [one.next()[1] for _ in range(20)] == list(range(20))
        one.close()
        one.reset()
        one.next()  # opens the file again
    assert tried == [((str(path), path.stat().st_size, ["x", "group/y"]), {"by_rows": True})]


def test_a_trial_reads_rows_and_pieces_of_what_is_named(path, monkeypatch):
    seen, read = [], h5py.Dataset.__getitem__
    monkeypatch.setattr(hdf5_rows, "_PORTION_BYTES", 32)
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda self, key: seen.append((self.name, key)) or read(self, key))
    hdf5_rows.read_on_trial(str(path), ["x"])
    assert {name for name, _ in seen} == {"/x"}
    assert seen[0][1] == slice(0, 2) and seen[-1][1] == slice(18, 20) and len(seen) == 16
    seen.clear()
    hdf5_rows.read_on_trial(str(path), None)
    assert {name for name, _ in seen} == {"/x", "/y"}
    for names in (None, ["x"], ["no\0such"]):
        command = python_command(probe_subprocess.PROGRAM, "20", str(path), json.dumps([True, names]))
        result = subprocess.run(command, capture_output=True, check=False)
        assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("names", [None, ["z"]])
@pytest.mark.parametrize("kind", ["a file elsewhere", "a pipe", "a name", "a virtual dataset", "external numbers"])
def test_links_and_data_of_other_files_are_refused(path, kind, names):
    elsewhere = path.with_name("elsewhere")
    if kind == "a pipe":
        os.mkfifo(elsewhere)
    else:
        elsewhere.write_bytes(path.read_bytes())
    with h5py.File(path, "a") as store:
        if kind == "a virtual dataset":
            layout = h5py.VirtualLayout(shape=(20,), dtype="i8")
            layout[:] = h5py.VirtualSource(str(elsewhere), "y", shape=(20,))
            store.create_virtual_dataset("z", layout)
        elif kind == "external numbers":
            store.create_dataset("z", (20,), "u1", external=[(str(elsewhere), 0, 20)])
        else:
            store["z"] = h5py.SoftLink("/y") if kind == "a name" else h5py.ExternalLink(str(elsewhere), "/y")
    wanted = "data of other files" if kind in ("a virtual dataset", "external numbers") else "got a link"
    with pytest.raises(FileFormatError, match=rf"rows\.h5: .*{wanted}"):
        Hdf5DataSource(path, names)
    assert Hdf5DataSource(path, ["x", "y"]).size == 20
