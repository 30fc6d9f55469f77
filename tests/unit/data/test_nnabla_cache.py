"""Caches are exchangeable with NNabla's: the folders nnabla_cache and nnabla_cache_h5 were written by its create_cache 1.39.0.

The second was written in a drawn order, from a table that is its original.csv.
"""

from pathlib import Path

import numpy as np

from nn_core.data.file_cache import CacheDataSource, write_cache
from nn_core.utils.create_cache import CreateCache

RECORDED = Path(__file__).parent / "nnabla_cache"
RECORDED_HDF5 = Path(__file__).parent / "nnabla_cache_h5"
NAMES = ("cache_00000000_00000004.npy", "cache_index.csv", "cache_info.csv")


def test_a_recorded_cache_is_read():
    source = CacheDataSource(RECORDED)
    assert (source.size, list(source.variables)) == (5, ["x", "c", "img", "y"])
    x, c, img, y = source.next()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (c.dtype, c.tolist()) == (np.float64, [[1, 2], [3, 4]])
    assert (img.dtype, img.shape, img[0, 0].tolist()) == (np.uint8, (3, 4, 4), [0, 15, 30, 45])
    assert y.tolist() == [0]
    x, _, _, y = source.next()
    assert (x[1].tolist(), y.tolist()) == ([-3, -4, -5], [1])


def test_the_same_samples_give_the_same_bytes(tmp_path):
    write_cache(CacheDataSource(RECORDED), tmp_path)
    for name in NAMES:
        assert (tmp_path / name).read_bytes() == (RECORDED / name).read_bytes()


def test_a_recorded_cache_in_hdf5_is_read_with_its_table():
    source = CacheDataSource(RECORDED_HDF5)
    assert (source.size, list(source.variables)) == (6, ["c", "x", "y"])
    header, *rows = source.original_rows
    assert header == ["x__0:a", "x__1:b", "c", "y:label"]
    assert [row[2] for row in rows] == [f"c{number}.csv" for number in (3, 5, 4, 1, 0, 2)]
    for row in rows:
        c, x, y = source.next()
        assert (c.dtype, c.tolist()) == (np.float64, [[int(row[2][1]), 1], [2, 3.5]])
        assert (x.dtype, x.tolist()) == (np.float32, [float(row[0]), float(row[1])])
        assert y.tolist() == [float(row[3])]


def test_the_order_of_a_cache_in_hdf5_is_written_as_nnabla_writes_it(tmp_path):
    (tmp_path / "table.csv").write_bytes((RECORDED_HDF5 / "original.csv").read_bytes())
    for number in range(6):
        np.savetxt(tmp_path / f"c{number}.csv", [[number, 1], [2, 3.5]], delimiter=",")
    table = CreateCache(tmp_path / "table.csv", np.random.RandomState(3), shuffle=True)  # as the recording was drawn
    table.create(tmp_path / "cache", normalize=False, cache_file_format=".h5")
    for name in ("cache_index.csv", "order.csv", "original.csv"):
        assert (tmp_path / "cache" / name).read_bytes() == (RECORDED_HDF5 / name).read_bytes()
    ours, theirs = (CacheDataSource(folder) for folder in (tmp_path / "cache", RECORDED_HDF5))
    for _ in range(6):
        mine, other = (dict(zip(source.variables, source.next(), strict=True)) for source in (ours, theirs))
        assert mine.keys() == other.keys()
        for name in mine:
            np.testing.assert_array_equal(mine[name], other[name])
