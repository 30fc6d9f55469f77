"""Errors of what is built or set from a file name the file, whoever finds the fault, and repeat little of what it holds."""

import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.data.array_sources import Hdf5DataSource, NumpyDataSource
from nn_core.data.tar import TarDataSource
from nn_core.errors import ArgumentError, FileFormatError, HostMemoryError, NNCoreError
from nn_core.files import naming_file, open_to_read, read_entries, write_entries
from nn_core.io import load_keras_parameters, load_pytorch_parameters
from nn_core.training import load_checkpoint, load_newest_checkpoint, save_checkpoint


def _trained():
    PF.affine(nn.Variable((2, 3)), 4)
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    for parameter in nn.get_parameters().values():
        parameter.g = 1
    solver.update()
    return {"parameters": nn.get_parameters(), "solver": solver}


def _checkpoint_with(change, path="run-1.npz"):
    objects = _trained()
    save_checkpoint(path, **objects)
    entries = dict(read_entries(path, ".npz"))
    change(entries)
    write_entries(path, entries, ".npz")
    return objects


def _longer(entries):
    name = "solver/states/affine/W/mean"
    entries[name].values = np.zeros(7, np.float32)


@pytest.mark.parametrize(
    "load",
    [lambda objects: load_checkpoint("run-1.npz", **objects), lambda objects: load_newest_checkpoint(".", "run", **objects)],
)
def test_a_state_that_does_not_fit_names_the_checkpoint(load, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    objects = _checkpoint_with(_longer)
    with pytest.raises(NNCoreError, match=r"affine/W/mean.*\n.*file: run-1\.npz"):
        load(objects)


@pytest.mark.parametrize(("load", "tensor"), [(load_pytorch_parameters, "c.weight"), (load_keras_parameters, "c/kernel")])
def test_a_file_without_a_tensor_is_named(load, tensor, tmp_path):
    PF.affine(nn.Variable((2, 3)), 4, name="here")
    nn.save_parameters(tmp_path / "w.safetensors", {"other": nn.Variable((1,))})
    with pytest.raises(NNCoreError, match=rf"{tensor}(?s:.*)w\.safetensors"):
        load(tmp_path / "w.safetensors", {"c": "here"})


@pytest.mark.parametrize("array", [np.zeros((0, 3)), np.float32(1)])
def test_a_file_without_rows_is_named(array, tmp_path):
    np.save(tmp_path / "rows.npy", array)
    with pytest.raises(NNCoreError, match=r"rows\.npy"):
        NumpyDataSource({"x": tmp_path / "rows.npy"})


@pytest.mark.parametrize("extension", [".h5", ".npz", ".safetensors", ".pth"])
def test_a_sparse_file_beyond_the_memory_is_named(extension, tmp_path):
    path = tmp_path / f"large{extension}"
    path.touch()
    os.truncate(path, 1 << 42)
    with pytest.raises((HostMemoryError, FileFormatError), match=rf"large{extension}"):
        (nn.load_parameters if extension != ".pth" else load_pytorch_parameters)(path)


def test_reading_more_than_the_memory_holds_is_refused_by_name(tmp_path):
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 1 << 42)
    with open_to_read(tmp_path / "large") as file, pytest.raises(HostMemoryError, match=f"large.*{1 << 42} bytes"):
        file.read()


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that the system fails to read")
def test_errors_of_the_system_while_reading_name_the_file(tmp_path):
    (tmp_path / "weights.npz").symlink_to("/proc/self/mem")
    with pytest.raises(FileFormatError, match=r"weights\.npz: the file must be "):
        nn.load_parameters(tmp_path / "weights.npz")
    with open_to_read(tmp_path / "weights.npz") as file, pytest.raises(FileFormatError, match=r"weights.*must be readable"):
        file.read()


def test_long_texts_are_cut():
    with pytest.raises(NNCoreError) as caught, naming_file("run/net.nnp"):
        nn.Variable((4, 3) * 5000)
    assert len(str(caught.value)) < 2500
    assert "file: run/net.nnp" in str(caught.value)


def _marked(entries):
    """Make the states a reference to an array, as a dictionary with the key of one is."""
    tree = json.loads(entries["checkpoint.json"].values.tobytes())
    tree["states"] = {"__array__": next(name for name in entries if name != "checkpoint.json")}
    entries["checkpoint.json"].values = np.frombuffer(json.dumps(tree).encode(), np.uint8)


def test_states_that_are_an_array_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileFormatError, match=r"run-1\.npz"):
        load_checkpoint("run-1.npz", **_checkpoint_with(_marked))


def test_damaged_groups_of_rows_are_refused_by_name(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["x"] = np.eye(3)
    content = (tmp_path / "rows.h5").read_bytes()
    for mark in (b"TREE", b"SNOD", b"HEAP"):
        (tmp_path / "rows.h5").write_bytes(content.replace(mark, b"XXXX"))
        with pytest.raises(FileFormatError, match=r"rows\.h5"):
            Hdf5DataSource(tmp_path / "rows.h5")


def test_empty_rows_are_refused_by_name(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["x"] = np.zeros((0, 3))
    with pytest.raises(ArgumentError, match=r"number of samples must be .* at least 1, got 0\n  file: .*rows\.h5"):
        Hdf5DataSource(tmp_path / "rows.h5")


def test_a_sparse_file_of_states_is_named(tmp_path):
    (tmp_path / "s.h5").touch()
    os.truncate(tmp_path / "s.h5", 1 << 42)
    solver = _trained()["solver"]
    with pytest.raises((HostMemoryError, FileFormatError), match=r"s\.h5"):
        solver.load_states(tmp_path / "s.h5")


def test_tar_files_are_named(tmp_path):
    """One with a member without a decoder, and one that claims a name of 8 GiB."""
    with tarfile.open(tmp_path / "t.tar", "w") as file:
        file.addfile(tarfile.TarInfo("0.pkl"))
    with pytest.raises(NNCoreError, match=r"pkl is decoded(?s:.*)t\.tar"):
        TarDataSource(tmp_path / "t.tar")
    long = tarfile.TarInfo("0.cls")
    long.type, long.size = tarfile.GNUTYPE_LONGNAME, 1 << 42
    (tmp_path / "t.tar").write_bytes(long.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
    with pytest.raises(FileFormatError, match=r"t\.tar"):
        TarDataSource(tmp_path / "t.tar")


@pytest.mark.parametrize("extension", [".h5", ".npz", ".safetensors"])
@pytest.mark.parametrize("number", [[1.0, 2.0], "fast", 10**400], ids=["list", "text", "large"])
def test_numbers_of_a_solver_that_are_none_are_refused(extension, number, tmp_path):
    path, solver = tmp_path / f"s{extension}", _trained()["solver"]
    solver.save_states(path)
    entries = dict(read_entries(path, extension))
    for name in ("affine/W/t", "affine/b/t"):
        entries[name].attributes["alpha"] = number
    try:
        write_entries(path, entries, extension)
    except (TypeError, ValueError, OverflowError):
        pytest.skip("the format holds no such attribute")
    with pytest.raises(FileFormatError, match=rf"s{extension}(?s:.*)(alpha|digits)"):
        solver.load_states(path)
