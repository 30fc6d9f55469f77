"""Contents of files that ended in exceptions of Python or of a library: each is refused by an error of nn_core."""

import io
import json
import tarfile

import h5py
import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.data.array_sources import Hdf5DataSource
from nn_core.data.file_cache import DataSourceWithFileCacheError
from nn_core.data.tar import TarDataSource
from nn_core.errors import ArgumentError, FileFormatError, MissingFileError, NNCoreError, ShapeError, SpecError
from nn_core.files import Entry, read_entries, write_entries
from nn_core.monitor import Monitor, MonitorSeries, MonitorTimeElapsed
from nn_core.operators.spec.load import loads
from nn_core.training import load_checkpoint, save_checkpoint
from nn_core.training.runs import RECORD, RunFolder


@pytest.mark.parametrize("extension", [".npz", ".h5", ".safetensors"])
@pytest.mark.parametrize("kind", ["folder", "loop", "long", "below a file", "NUL"])
def test_paths_that_are_no_files(extension, kind, tmp_path):
    path = tmp_path / f"f{extension}"
    match kind:
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path)
        case "long":
            path = tmp_path / f"{'x' * 5000}{extension}"
        case "below a file":
            path.write_bytes(b"")
            path = path / f"g{extension}"
        case _:
            path = f"a\0b{extension}"
    with pytest.raises(FileFormatError, match="it must be a regular file, got"):
        nn.load_parameters(path)


@pytest.mark.parametrize("pax", [{}, {"GNU.sparse.map": "x"}, {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}], ids=str)
def test_tar_files_without_samples_and_with_wrong_headers(pax, tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as file:
        if pax:
            member = tarfile.TarInfo("a.txt")
            member.size, member.pax_headers = 3, pax
            file.addfile(member, io.BytesIO(b"abc"))
    with pytest.raises(FileFormatError, match=r"a\.tar"):
        TarDataSource(path)


def test_rows_of_hdf5_that_are_not_stored(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.create_dataset("y", (4, 2**28), "f4", chunks=(1, 64))
    with pytest.raises(FileFormatError, match="must be stored in full, got 0 bytes"):
        Hdf5DataSource(tmp_path / "f.h5")


def _changed(tmp_path, change, **objects):
    save_checkpoint(tmp_path / "c.npz", **objects)
    entries = read_entries(tmp_path / "c.npz", ".npz")
    content = json.loads(bytes(entries["checkpoint.json"].values))
    change(content["states"])
    entries["checkpoint.json"] = Entry(np.frombuffer(json.dumps(content).encode(), np.uint8))
    write_entries(tmp_path / "c.npz", entries, ".npz")
    return tmp_path / "c.npz"


@pytest.mark.parametrize("value", [None, [], [[]], [[-1, 2]], [["a", 1]], [[2**70, 1]], 5], ids=str)
def test_random_functions_of_a_checkpoint(value, tmp_path):
    loss = F.sum(F.dropout(nn.Variable((2, 3)), 0.5, seed=3))
    path = _changed(tmp_path, lambda states: states["graph"].update(random_functions=value), graph=loss)
    with pytest.raises(NNCoreError):
        load_checkpoint(path, graph=loss)
    path = _changed(tmp_path, lambda states: states["graph"].pop("random_functions"), graph=loss)
    with pytest.raises(NNCoreError):
        load_checkpoint(path, graph=loss)


@pytest.mark.parametrize("kind", [MonitorSeries, MonitorTimeElapsed])
@pytest.mark.parametrize("length", [-1, True, "x", None, 1.5, 2**70, [1]], ids=str)
def test_lengths_of_monitors(kind, length, tmp_path):
    monitor = kind("loss", Monitor(tmp_path), interval=1, verbose=False)
    (monitor.add(0, 1.0) if kind is MonitorSeries else monitor.add(0))
    (file,) = tmp_path.glob("*.txt")
    before = file.read_bytes()
    with pytest.raises(NNCoreError):
        monitor.set_state({**monitor.get_state(), "length": length})
    with pytest.raises(NNCoreError):
        monitor.set_state({})
    assert file.read_bytes() == before


def test_errors_escape_what_a_terminal_acts_on():
    assert str(ArgumentError("a\x1b[31m\0b\n  hint: c")) == "a\\x1b[31m\\x00b\n  hint: c"
    assert issubclass(DataSourceWithFileCacheError, NNCoreError)


def test_errors_cut_words_that_nobody_reads():
    text = str(ArgumentError(f"names must be known, got {'a' * 50_000!r}\n  hint: b"))
    assert len(text) < 500 and text.startswith("names must be known, got 'aaa") and text.endswith("aaa'\n  hint: b")


def test_a_record_of_runs_that_is_nested_without_end(tmp_path):
    (tmp_path / RECORD).write_text("[" * 100_000)
    assert RunFolder(tmp_path)._read() == []


def test_what_is_no_record_of_runs_is_kept_and_not_written_through(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"\xff")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / RECORD).symlink_to(other)
    runs = RunFolder(folder)
    runs.open(resume=False, overwrite=False, known=None, files=["log.jsonl"])
    runs.close()
    assert other.read_bytes() == b"\xff"
    assert (folder / f"{RECORD}.unreadable").is_symlink() and json.loads((folder / RECORD).read_text())["runs"]


@pytest.mark.parametrize("t", [-1, 2**63])
def test_numbers_of_updates(t):
    solver = S.Adafactor()
    solver.set_parameters({"w": nn.Variable((2, 3), need_grad=True)})
    states = solver.get_states()
    states["w"].t = t
    with pytest.raises(ArgumentError, match="w must have a number of updates t from 0"):
        solver.set_states(states)


@pytest.mark.parametrize("name", ["aspect_ratio", "angle", "distortion", "max_scale", "noise", "contrast_center"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e308])
def test_settings_of_image_augmentation(name, value):
    with pytest.raises(ArgumentError, match="image_augmentation: "):
        F.image_augmentation(nn.Variable((1, 3, 8, 8)), **{name: value})


def test_arrays_of_more_axes_than_numpy_has():
    x = nn.Variable((1,) * 100)
    with pytest.raises(ShapeError, match=r"an array of the host must have at most 64 axes, got 100"):
        F.tanh(x).forward()


def test_a_key_of_more_digits_than_python_prints():
    with pytest.raises(SpecError, match=r"acme.yaml:1: keys must be strings, got int"):
        loads("- {name: acme.S, 0x" + "f" * 5000 + ": swish}", "acme.yaml")


def test_a_pattern_of_many_files_ends_at_the_first_that_is_missing(tmp_path):
    with pytest.raises(MissingFileError, match="files must exist, got none for"):
        TarDataSource(f"{tmp_path}/{{0..99999999999}}.tar")
