"""Refusals of files: those of every reader name the file, whatever is in its place."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

import nn_core as nn
import nn_core.solvers as S
from nn_core.data.array_sources import Hdf5DataSource, NumpyDataSource
from nn_core.data.images import read_image
from nn_core.data.parquet import ParquetDataSource
from nn_core.data.sound import read_sound
from nn_core.data.table import CsvDataSource
from nn_core.data.tar import TarDataSource
from nn_core.errors import NNCoreError
from nn_core.training import load_checkpoint
from nn_core.utils.create_cache import CreateCache
from nn_core.utils.load import load

READERS = {
    **dict.fromkeys([f"p{name}" for name in (".h5", ".npz", ".safetensors", ".pth", ".protobuf")], nn.load_parameters),
    **dict.fromkeys([f"s{name}" for name in (".h5", ".npz", ".safetensors")], lambda path: S.Adam().load_states(path)),
    **dict.fromkeys([f"c{name}" for name in (".npz", ".safetensors")], load_checkpoint),
    **dict.fromkeys([f"n{name}" for name in (".nnp", ".nntxt", ".nnb")], load),
    "t.csv": lambda path: CsvDataSource(path).next(),
    "d.h5": lambda path: Hdf5DataSource(path).next(),
    "d.npy": lambda path: NumpyDataSource({"x": path}),
    "t.tar": lambda path: TarDataSource(path).next(),
    "t.parquet": lambda path: ParquetDataSource(path).next(),
    "i.png": read_image,
    "a.wav": read_sound,
}


def _sparse(path):
    with h5py.File(path, "w") as file:  # declares 4 TiB, and stores nothing
        file.create_dataset("y", (4, 2**38), "f4", chunks=(1, 64))


CONTENTS = {
    "zeros": lambda path: path.write_bytes(bytes(2000)),
    "text": lambda path: path.write_text("{[garbage\n,1,2\n" * 20),
    "bytes": lambda path: path.write_bytes(bytes(range(256)) * 9),
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path),
    "an array without its values": _sparse,
}
CAN_PIPE = {"a pipe": os.mkfifo} if hasattr(os, "mkfifo") else {}


#: Files of HDF5 are read on trial first, in a process for each.
ON_TRIAL = [name for name in READERS if name.endswith(".h5")]


@pytest.mark.parametrize("content", [*CONTENTS, *CAN_PIPE])
@pytest.mark.parametrize(
    "names", [[*READERS.keys() - ON_TRIAL], pytest.param(ON_TRIAL, marks=pytest.mark.slow)], ids=["", "HDF5"]
)
def test_a_refusal_names_the_file(content, names, tmp_path):
    for name in names:
        read = READERS[name]
        path = tmp_path / name
        {**CONTENTS, **CAN_PIPE}[content](path)
        with nn.parameter_scope("", {}), pytest.raises(NNCoreError) as caught:
            read(path)
        assert name in str(caught.value), name


def test_a_cache_of_different_shapes_names_the_table(tmp_path):
    np.save(tmp_path / "ok.npy", np.ones((3, 4)))
    (tmp_path / "table.csv").write_text("x\nok.npy\n1\n")
    with pytest.raises(NNCoreError, match=r"table\.csv: the values of x must have one shape"):
        CreateCache(str(tmp_path / "table.csv")).create(str(tmp_path / "out"), normalize=False)
