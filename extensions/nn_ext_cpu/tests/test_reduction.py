"""Sums of large arrays, pooling plane by plane, and running results of many rows, beside the reference."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]


def normal(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers that do not depend on the order of tests."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((3, 20000), (0,)),
        ((2000, 17), (1,)),
        ((700, 130), (0,)),
        ((5, 300, 513), (1,)),
        ((1100, 1037), (1,)),
        ((40, 31, 56), (1,)),
        ((8, 4, 5, 6, 130), (1, 2, 3)),
        ((40, 40, 40), (0, 2)),
        ((9, 1, 7, 20, 3, 30), (0, 3, 5)),
        ((16, 33, 8, 9), (0, 2, 3)),
        ((90, 70, 30, 2), (0, 3)),
        ((1, 300, 1, 300), (1, 2)),
    ],
)
@pytest.mark.parametrize("function", [F.sum, F.mean], ids=["sum", "mean"])
def test_sums_of_large_arrays(
    assert_alike: Compare, function: Callable[..., nn.Variable], shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    assert_alike(lambda x: function(x, axis=axes), normal(*shape))


@pytest.mark.parametrize("rows", [7, 64, 1500])
@pytest.mark.parametrize("length", [10, 51, 169, 512, 1000, 1025, 3000])
def test_equal_lines_have_equal_sums(rows: int, length: int) -> None:
    line = np.random.default_rng(length).uniform(1, 9, length).astype(np.float32)
    x = nn.Variable.from_numpy_array(np.tile(line, (rows, 1)), need_grad=True)
    with nn.context_scope(nn.Context(["cpu:float"])):
        for y in (F.sum(x, axis=1), F.mean(F.tanh(x) * 3, axis=1)):
            y.forward()
            assert np.unique(y.d).size == 1


def test_sums_with_infinities_and_nan() -> None:
    x = np.ones((2048, 33), np.float32)
    x[5, 7], x[6, 32], x[7, 0], x[7, 1] = np.nan, np.inf, np.inf, -np.inf
    with nn.context_scope(nn.Context(["cpu:float"])), np.errstate(invalid="ignore"):
        y = F.sum(nn.Variable.from_numpy_array(x), axis=1)
        y.forward()
        np.testing.assert_array_equal(y.d, x.sum(axis=1))


@pytest.mark.parametrize("shape", [(1, 5, 9, 11), (3, 50, 12, 12), (2, 67, 40)], ids=str)
@pytest.mark.parametrize("function", [F.max_pooling, F.average_pooling, F.sum_pooling], ids=["max", "average", "sum"])
def test_pooling_plane_by_plane(assert_alike: Compare, function: Callable[..., nn.Variable], shape: tuple[int, ...]) -> None:
    n = len(shape) - 2
    for settings in ({}, {"stride": (2,) * n, "pad": (1,) * n}, {"stride": (1,) * n, "ignore_border": False}):
        assert_alike(
            lambda x, settings=settings: function(F.reshape(x, shape), (3,) * n, **settings), normal(*shape).reshape(-1)
        )


@pytest.mark.parametrize("function", [F.cumsum, F.cumprod], ids=["cumsum", "cumprod"])
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True)])
def test_running_results_of_many_rows(
    assert_alike: Compare, function: Callable[..., nn.Variable], exclusive: bool, reverse: bool
) -> None:
    x = 1 + 0.1 * normal(70, 37)
    assert_alike(lambda x: function(x, axis=1, exclusive=exclusive, reverse=reverse), x, tolerance=1e-4)


def test_embedding_of_many_indices(assert_alike: Compare) -> None:
    indices = np.random.default_rng(0).integers(-300, 300, (40, 50))
    assert_alike(F.embed, indices, normal(300, 33))
