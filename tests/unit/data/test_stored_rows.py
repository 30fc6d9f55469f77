"""Rows of NumPy files: those of the file, from all threads, and refusals where the file becomes another meanwhile."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from nn_core.data.array_sources import NumpyDataSource
from nn_core.data.stored_rows import StoredRows
from nn_core.errors import FileFormatError

SHAPES = [(5,), (5, 3), (5, 0), (5, 2, 2), (0, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "u1", "?", "<i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_those_of_the_array(shape, dtype, order, tmp_path):
    values = np.asarray(np.random.default_rng(0).integers(0, 100, shape).astype(dtype), order=order)
    np.save(tmp_path / "x.npy", values)
    rows = StoredRows(tmp_path / "x.npy")
    assert (len(rows), rows.shape, rows.dtype) == (len(values), shape, values.dtype)
    for number in range(-len(values), len(values)):
        np.testing.assert_array_equal(rows[number], values[number])
        assert rows[number].dtype == values[number].dtype
    with pytest.raises(IndexError):
        rows[len(values)]


def test_threads_read_their_own_rows(tmp_path):
    np.save(tmp_path / "x.npy", np.repeat(np.arange(200), 50).reshape(200, 50))
    rows = StoredRows(tmp_path / "x.npy")
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda number: (rows[number % 200] == number % 200).all(), range(2000)))


def test_a_row_is_the_callers_own(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    rows = StoredRows(tmp_path / "x.npy")
    rows[0][:] = 7
    np.testing.assert_array_equal(rows[0], [1, 0, 0])


def test_a_file_that_becomes_shorter_is_refused(tmp_path):
    """A mapped file would end the process by SIGBUS."""
    np.save(tmp_path / "x.npy", np.ones((1000, 100)))
    source = NumpyDataSource({"x": tmp_path / "x.npy"})
    source.next()
    os.truncate(tmp_path / "x.npy", 4096)
    with pytest.raises(FileFormatError, match=r"x\.npy, row \d+: the row must be readable"):
        for _ in range(100):
            source.next()


def test_a_file_without_all_rows_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((10, 100)))
    os.truncate(tmp_path / "x.npy", 5000)
    with pytest.raises(FileFormatError, match=r"x\.npy.*must be stored in full"):
        NumpyDataSource({"x": tmp_path / "x.npy"})
