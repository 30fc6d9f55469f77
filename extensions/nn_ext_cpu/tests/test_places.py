"""Picking from and putting to numbered places beside the reference; positions that repeat, and ones that do not exist."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import ArgumentError

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]


def normal(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers that do not depend on the order of tests."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def indices(low: int, high: int, *shape: int) -> np.ndarray[Any, Any]:
    """Random indices that do not depend on the order of tests."""
    return np.random.default_rng(high).integers(low, high, shape)


@pytest.mark.parametrize(
    ("shape", "axis", "picked"),
    [((50, 3), 0, (400,)), ((4, 9, 130), 1, (2, 5)), ((3, 4), 1, ()), ((30, 40, 2), 1, (60,)), ((5, 600), 0, (7,))],
)
def test_gather_with_places_that_repeat(
    assert_alike: Compare, shape: tuple[int, ...], axis: int, picked: tuple[int, ...]
) -> None:
    numbers = np.asarray(indices(-shape[axis], shape[axis], *picked))
    assert_alike(lambda x, i: F.gather(x, i, axis=axis), normal(*shape), numbers)


def test_gather_from_each_sample_its_own(assert_alike: Compare) -> None:
    assert_alike(lambda x, i: F.gather(x, i, axis=2, batch_dims=1), normal(3, 2, 5, 4), indices(-5, 5, 3, 6))


@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_gather_and_scatter_by_position(assert_alike: Compare, n_axes: int) -> None:
    shape = (4, 5, 6)
    positions = np.stack([indices(-length, length, 7, 2) for length in shape[:n_axes]])
    assert_alike(F.gather_nd, normal(*shape), positions)
    data = normal(7, 2, *shape[n_axes:])
    assert_alike(lambda d, i: F.scatter_nd(d, i, shape=shape, add=True), data, positions)


def test_scatter_rewrites_the_array_that_is_given() -> None:
    out = nn.Variable.from_numpy_array(np.ones((5, 3), np.float32))
    data, positions = nn.Variable.from_numpy_array(normal(2, 3)), nn.Variable.from_numpy_array(np.array([[4, 1]]))
    y = F.scatter_nd(data, positions, out=out)
    y.forward()
    expected = np.ones((5, 3), np.float32)
    expected[[4, 1]] = data.d
    np.testing.assert_array_equal(y.d, expected)
    np.testing.assert_array_equal(out.d, expected)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float64])
def test_other_dtypes_are_picked_as_they_are(dtype: type) -> None:
    x = nn.NdArray.from_numpy_array(np.arange(24, dtype=dtype).reshape(4, 6))
    y = F.gather(x, nn.NdArray.from_numpy_array(np.array([3, -4, 3])))
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.data, np.arange(24).reshape(4, 6)[[3, 0, 3]])


def test_one_hot_of_places_outside(assert_alike: Compare) -> None:
    positions = indices(-6, 6, 40, 2)
    assert_alike(lambda i: F.one_hot(i, (3, 5)), positions)


@pytest.mark.parametrize("index", [4, -5])
def test_places_outside_are_refused_when_the_function_runs(index: int) -> None:
    y = F.gather(nn.Variable((4, 3)), nn.Variable.from_numpy_array(np.array([0, index])))
    with pytest.raises(ArgumentError, match=r"gather: Indices must be in \[-4, 4\), got values from"):
        y.forward()
