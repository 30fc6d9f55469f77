"""Extremes, products, norms and running results beside the reference, along first, middle and last axes."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]

#: Shapes with more lanes than one group has, and the axes to go along.
CASES = [
    ((300, 5), 0),
    ((2, 7, 300), 1),
    ((4, 257), 1),
    ((2, 3, 4, 5), (1, 2)),
    ((2, 3, 4), (0, 1, 2)),
    ((3, 1, 4), 1),
    ((1, 40, 30), 0),
]
#: Axes that have others between them.
APART = [
    ((3, 4, 5, 6), (0, 2)),
    ((3, 4, 5, 6), (0, 2, 3)),
    ((2, 3, 1, 4, 5), (0, 3)),
    ((2, 3, 4), (-3, -1)),
    ((2, 3, 4), (2, 0)),
]


def normal(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers that do not depend on the order of tests."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("shape", "axis"), CASES)
@pytest.mark.parametrize("name", ["max", "min", "prod", "norm"])
def test_reductions(assert_alike: Compare, name: str, shape: tuple[int, ...], axis: Any) -> None:
    x = normal(*shape)
    if name == "prod":  # no zeros or infinities, however many factors
        x = np.sign(x) * np.abs(x) ** np.float32(0.01)
    assert_alike(lambda v: getattr(F, name)(v, axis=axis), x, tolerance=1e-4)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [case for case in CASES if isinstance(case[1], int)])
def test_running_sums(assert_alike: Compare, shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool) -> None:
    assert_alike(lambda v: F.cumsum(v, axis, exclusive, reverse), normal(*shape))


@pytest.mark.parametrize("zeros", [0, 1, 3])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((9, 6), 0), ((2, 7, 300), 1), ((5, 17), 1), ((70, 6), 1)])
def test_running_products(
    assert_alike: Compare, shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool, zeros: int
) -> None:
    x = normal(*shape)
    x.reshape(-1)[np.random.default_rng(zeros).choice(x.size, zeros, replace=False)] = 0
    assert_alike(lambda v: F.cumprod(v, axis, exclusive, reverse), x, tolerance=1e-4)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_extremes_of_equal_elements_and_their_places(axis: int) -> None:
    values = np.random.default_rng(0).integers(0, 3, (4, 5, 6)).astype(np.float32)
    x = nn.Variable.from_numpy_array(values, need_grad=True)
    x.grad.zero()
    y, index = F.max(x, axis=axis, with_index=True)
    nn.forward_all([y, index])
    np.testing.assert_array_equal(index.d, values.argmax(axis))
    y.backward()
    expected = np.zeros_like(values)
    np.put_along_axis(expected, np.expand_dims(values.argmax(axis), axis), 1, axis)
    np.testing.assert_array_equal(x.g, expected)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["max", "min"])
def test_nan_is_the_most_extreme(name: str, axis: int) -> None:
    values = normal(6, 6)
    values[2, 3] = values[4, 3] = np.nan
    index = getattr(F, name)(nn.Variable.from_numpy_array(values), axis=axis, only_index=True)
    index.forward()
    np.testing.assert_array_equal(index.d, getattr(np, f"arg{name}")(values, axis))


def test_products_of_zeros_have_exact_gradients(assert_alike: Compare) -> None:
    x = normal(5, 6)
    x[1, 2] = x[1, 4] = x[3, 0] = 0
    assert_alike(lambda v: F.prod(v, axis=1), x)
    assert_alike(lambda v: F.cumprod(v, 1), x)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
def test_norms(assert_alike: Compare, p: float) -> None:
    x = normal(4, 5)
    x[2] = 0
    assert_alike(lambda v: F.norm(v, p, axis=1), x)


def test_axes_with_others_between_them_are_refused() -> None:
    x = nn.Variable((2, 3, 4))
    with nn.context_scope(nn.Context(["cpu:float", "reference:float"])):
        assert "takes neighbouring axes, got (0, 2)" in str(nn.explain(F.prod(x, axis=(0, 2))))


@pytest.mark.parametrize("number", [1.0, math.nan])
@pytest.mark.parametrize(("shape", "axes"), APART)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_over_axes_that_are_no_neighbours(
    name: str, shape: tuple[int, ...], axes: tuple[int, ...], number: float
) -> None:
    values = np.floor(normal(*shape) * 2)  # with equal ones, of which the first counts
    values.flat[3] = number
    found = []
    for backend in ("cpu:float", "reference:float"):
        with nn.context_scope(nn.Context([backend])):
            x = nn.Variable.from_numpy_array(values, need_grad=True)
            y, index = getattr(F, name)(x, axis=axes, with_index=True)
            only = getattr(F, name)(x, axis=axes, keepdims=True, only_index=True)
            nn.forward_all([y, index, only])
            x.grad.fill(1)
            y.backward(3)
            found.append((y.d, index.d, only.d, x.g))
    for got, true in zip(*found, strict=True):
        np.testing.assert_array_equal(got, true)
