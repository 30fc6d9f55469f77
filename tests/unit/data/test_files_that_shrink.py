"""Files that another program makes shorter while they are read: an error that names them, never a signal."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.data.array_sources import NumpyDataSource
from nn_core.data.file_cache import CacheDataSource, write_cache
from nn_core.data.source import SimpleDataSource
from nn_core.data.table import CsvDataSource
from nn_core.errors import NNCoreError
from nn_core.files import atomic
from nn_core.training import load_checkpoint, save_checkpoint


def _solver():
    PF.affine(nn.Variable((4, 300)), 400)
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    return solver


def _cache(folder):
    write_cache(SimpleDataSource(lambda i: (np.full(5000, i),), 25), folder / "f", samples_per_file=25)


def _table(folder):
    np.save(folder / "long.npy", np.ones(100_000))
    (folder / "f.csv").write_text("x\nlong.npy\n")


#: Writer and reader of each format.
FORMATS = {
    **{
        extension: (
            lambda folder, name=f"f{extension}": _solver() and nn.save_parameters(folder / name),
            lambda folder, name=f"f{extension}": nn.load_parameters(folder / name),
        )
        for extension in (".h5", ".npz", ".safetensors")
    },
    "states": (
        lambda folder: _solver().save_states(folder / "f.npz"),
        lambda folder: _solver().load_states(folder / "f.npz"),
    ),
    "checkpoint": (
        lambda folder: save_checkpoint(folder / "f.npz", solver=_solver(), long=np.ones(100_000)),
        lambda folder: load_checkpoint(folder / "f.npz", solver=_solver()),
    ),
    "cache": (_cache, lambda folder: CacheDataSource(folder / "f").next()),
    "table": (_table, lambda folder: CsvDataSource(folder / "f.csv").next()),
    "rows": (
        lambda folder: np.save(folder / "f.npy", np.ones((10, 50_000))),
        lambda folder: [NumpyDataSource({"x": folder / "f.npy"}).next() for _ in range(10)],
    ),
}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("part", [0, 0.3, 0.9])
def test_a_file_that_becomes_shorter_while_it_is_read_is_refused(kind, part, tmp_path, monkeypatch):
    write, read = FORMATS[kind]
    (tmp_path / "whole").mkdir()
    write(tmp_path / "whole")
    read(tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "shorter")
    shortened = []
    opened = atomic.open_to_read

    def opens_then_shortens(path):
        file = opened(path)
        size = os.fstat(file.fileno()).st_size
        if size > 10_000:  # not the list of names of a cache
            file.peek(1)  # a part is read already
            os.truncate(file.name, int(size * part))
            shortened.append(Path(file.name).name)
        return file

    for name in ("nn_core.files.atomic", "nn_core.files.formats", "nn_core.data.readers", "nn_core.data.stored_rows"):
        monkeypatch.setattr(f"{name}.open_to_read", opens_then_shortens)
    with pytest.raises(NNCoreError) as caught:
        read(tmp_path / "shorter")
    assert shortened and shortened[0] in str(caught.value)
