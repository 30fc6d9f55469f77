"""Caches are exchangeable with NNabla's: the folder nnabla_cache was written by its create_cache, version 1.39.0."""

from pathlib import Path

import numpy as np

from nn_core.data.file_cache import CacheDataSource, write_cache

RECORDED = Path(__file__).parent / "nnabla_cache"
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
