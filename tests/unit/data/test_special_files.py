"""Pipes and devices in place of files: every reader refuses them, since they may never end."""

import os

import numpy as np
import pytest

from nn_core import monitor
from nn_core.data import array_sources, tar
from nn_core.data.file_cache import CacheDataSource, write_cache
from nn_core.data.images import read_image
from nn_core.data.parquet import ParquetDataSource
from nn_core.data.sound import read_sound
from nn_core.data.source import SimpleDataSource
from nn_core.data.table import CsvDataSource
from nn_core.data.uri import FileReader
from nn_core.errors import FileFormatError
from nn_core.training.extensions.tables import Log
from nn_core.utils.callback import get_best_from_status

READERS = {
    "array.npy": lambda path: array_sources.NumpyDataSource({"x": path}),
    "arrays.npz": array_sources.NumpyDataSource,
    "image.png": read_image,
    "sound.wav": read_sound,
    "samples.tar": tar.TarDataSource,
    "table.csv": CsvDataSource,
    "cell.csv": lambda path: _table(path).next(),
    "page.txt": lambda path: FileReader(str(path)).open(),
    "loss.series.txt": monitor.plot_series,
    "loss.timer.txt": monitor.plot_time_elapsed,
    "log.jsonl": lambda path: Log()._write(path),
    "samples.parquet": ParquetDataSource,
    "status.json": lambda path: get_best_from_status(type("Args", (), {"outdir": path.parent})),
}


def _table(cell):
    (path := cell.with_name("of.csv")).write_text(f"x\n{cell.name}\n")
    return CsvDataSource(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_refused(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileFormatError, match="it must be a regular file, got a device, a pipe or a socket"):
        READERS[name](tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize("name", ["cache_index.csv", "cache_info.csv", "cache_checksums.json", "cache_00000000_00000001.npy"])
def test_a_pipe_in_a_cache_is_refused(name, tmp_path):
    write_cache(SimpleDataSource(lambda i: (np.full(2, i),), 2), tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileFormatError, match=r"it must be a regular file|got a file of 0 bytes"):
        CacheDataSource(tmp_path).next()
