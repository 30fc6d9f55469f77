"""Adding along an axis, and picking along all axes, beside the reference."""

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


@pytest.mark.parametrize(
    ("x0", "indices", "x1", "axis"),
    [
        ((5,), (9,), (9,), 0),
        ((40, 300), (200, 300), (200, 300), 0),
        ((40, 300), (40, 1000), (40, 1000), 1),
        ((4, 5, 6), (3, 9, 2), (4, 9, 6), 1),
        ((4, 5, 6), (4, 5, 0), (4, 5, 6), 2),
        ((2, 3, 4, 500), (2, 7, 4, 500), (2, 8, 4, 501), 1),
    ],
)
def test_scatter_add_with_places_that_repeat(
    assert_alike: Compare, x0: tuple[int, ...], indices: tuple[int, ...], x1: tuple[int, ...], axis: int
) -> None:
    numbers = np.random.default_rng(0).integers(-x0[axis], x0[axis], indices)
    assert_alike(lambda a, i, b: F.scatter_add(a, i, b, axis=axis), normal(*x0), numbers, normal(*x1))


@pytest.mark.parametrize("index", [5, -6])
def test_places_outside_are_refused(index: int) -> None:
    x0, x1 = nn.Variable((5,)), nn.Variable((2,))
    y = F.scatter_add(x0, nn.Variable.from_numpy_array(np.array([0, index])), x1)
    with pytest.raises(ArgumentError, match=r"scatter_add: indices must be in \[-5, 5\), got values from"):
        y.forward()


@pytest.mark.parametrize(("n", "shape", "picked"), [(3, (6,), (11,)), (2, (5, 7), (4, 9)), (40, (3, 5, 7), (3, 2, 60))])
def test_axes_by_maps_of_their_own(assert_alike: Compare, n: int, shape: tuple[int, ...], picked: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    maps = [rng.integers(-1, length, (n, count)) for length, count in zip(shape, picked, strict=True)]
    source = np.concatenate(maps, axis=1)
    assert_alike(lambda x, s: F.gather_axes(x, s, shape=picked), normal(n, *shape), source)
    assert_alike(lambda dy, s: F.scatter_axes(dy, s, shape=shape), normal(n, *picked), source)


@pytest.mark.parametrize("function", [F.gather_axes, F.scatter_axes])
@pytest.mark.parametrize(("source", "axis", "length"), [([0, 2, 0, 1, 2], 0, 2), ([0, 1, 0, 1, 3], 1, 3)])
def test_positions_beyond_the_array(function: Callable[..., Any], source: list[int], axis: int, length: int) -> None:
    x, places = normal(2, 2, 3), np.array([[0, 1, 0, 1, 2], source])
    text = rf"source must be in \[-1, {length}\) along axis {axis} of a sample, got {length}"
    with nn.context_scope(nn.Context(["cpu"])), pytest.raises(ArgumentError, match=text):
        function(nn.NdArray.from_numpy_array(x), nn.NdArray.from_numpy_array(places), shape=(2, 3))
