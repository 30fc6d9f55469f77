"""Sorting and choosing beside the reference: equal elements, NaN, infinities, long and short lines, all axes."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]


def with_ties(*shape: int) -> np.ndarray[Any, Any]:
    """Whole numbers, many of them equal."""
    return np.random.default_rng(len(shape)).integers(-20, 20, shape).astype(np.float32)


def special(n: int) -> np.ndarray[Any, Any]:
    """Numbers among NaN, infinities, zeros of both signs and subnormal numbers."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal(n).astype(np.float32)
    places = rng.integers(0, n, n // 2)
    x[places] = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40], np.float32), places.size)
    return x


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((7,), 0), ((3, 200), 1), ((500, 37), 0), ((2, 1000, 3), 1), ((2, 20001), 1), ((4, 0), 1), ((5, 1), 1)]
)
def test_sort(assert_alike: Compare, shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    assert_alike(lambda x: F.sort(x, axis=axis, reverse=reverse, with_index=True), with_ties(*shape))


def test_places_alone(assert_alike: Compare) -> None:
    assert_alike(lambda x: F.sort(x, axis=0, only_index=True), with_ties(40, 30))


@pytest.mark.parametrize("n", [1, 9, 31, 64, 91, 96, 97, 5000, 20000])
@pytest.mark.parametrize("reverse", [False, True])
def test_order_of_special_numbers(n: int, reverse: bool) -> None:
    x = special(n)
    results = []
    for backend in ("cpu:float", "reference:float"):
        with nn.context_scope(nn.Context([backend])):
            y, index = F.sort(nn.Variable.from_numpy_array(x), reverse=reverse, with_index=True)
            nn.forward_all([y, index])
            results.append((y.d.copy(), index.d.copy()))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize("magnitudes", [False, True])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(
    ("shape", "k"), [((3, 10), 1), ((3, 10), 10), ((4, 3000), 5), ((3, 4001), 700), ((2, 5, 90), 200), ((1, 1), 1)]
)
def test_top_k(assert_alike: Compare, shape: tuple[int, ...], k: int, largest: bool, magnitudes: bool) -> None:
    x = with_ties(*shape)
    assert_alike(lambda x: F.top_k_data(x, k, abs=magnitudes, largest=largest, with_index=True), x)
    assert_alike(lambda x: F.top_k_data(x, k, abs=magnitudes, largest=largest, reduce=False), x)


@pytest.mark.parametrize("magnitudes", [False, True])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(("n", "k"), [(200, 1), (1000, 10), (1003, 100), (5000, 64)])
def test_top_k_of_different_numbers(assert_alike: Compare, isa: str, n: int, k: int, largest: bool, magnitudes: bool) -> None:
    x = np.random.default_rng(n).standard_normal((5, n)).astype(np.float32)
    assert_alike(lambda x: F.top_k_data(x, k, abs=magnitudes, largest=largest, with_index=True), x)


@pytest.mark.parametrize("k", [1, 3, 30, 400])
def test_top_k_of_special_numbers(k: int) -> None:
    x = special(400)[None]
    results = []
    for backend in ("cpu:float", "reference:float"):
        with nn.context_scope(nn.Context([backend])):
            y, index = F.top_k_data(nn.Variable.from_numpy_array(x), k, with_index=True)
            nn.forward_all([y, index])
            results.append((y.d.copy(), index.d.copy()))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_gradient_that_keeps_the_k_largest(assert_alike: Compare) -> None:
    assert_alike(lambda x: F.top_k_grad(x, 7, abs=True), with_ties(4, 3, 30))


def distinct(backend: str, x: np.ndarray[Any, Any], **settings: bool) -> list[np.ndarray[Any, Any]]:
    """Return all results of F.unique."""
    with nn.context_scope(nn.Context([backend])), nn.auto_forward():
        found = F.unique(nn.Variable.from_numpy_array(x), with_index=True, with_inverse=True, with_counts=True, **settings)
    return [entry.d.copy() for entry in found]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(
    "x",
    [
        with_ties(50),
        with_ties(3, 4, 5),
        special(9),
        special(5000),
        special(5000).astype(np.float64),
        np.random.default_rng(0).standard_normal(3000),
        np.random.default_rng(0).integers(-(2**62), 2**62, 3000),
        np.random.default_rng(0).integers(-(2**31), 2**31, 3000),  # as many as 32 bits tell apart, and more
        np.random.default_rng(0).integers(-(2**31), 2**31, 3000).astype(np.int32),
        np.array([-(2**31), 2**31 - 1, 0, -1, 2**31 - 1]),
        np.array([-(2**31), 2**31, 0, -1, 2**31]),
        np.random.default_rng(0).standard_normal(3000).astype(np.float32),
        np.random.default_rng(1).integers(-9, 9, 40000),
        np.random.default_rng(1).integers(-9000, 9000, 5000),  # of a range that has a table of its own
        np.array([2**63 - 1, -(2**63), 0, 2**63 - 1]),
        np.full(3, -(2**63)),
        np.arange(5000)[::-1] * 2**52,
        np.random.default_rng(1).integers(0, 255, 99).astype(np.uint8),
        np.array([True, False, True]),
        np.zeros(0, np.float32),
        np.float32(3).reshape(()),
    ],
    ids=lambda x: f"{x.dtype}-{x.size}",
)
def test_distinct_elements(x: np.ndarray[Any, Any], in_order: bool) -> None:
    before = nn.fallback_report()
    found = distinct("cpu:float", x, sorted=in_order)
    assert nn.fallback_report() == before
    for got, true in zip(found, distinct("reference:float", x, sorted=in_order), strict=True):
        assert got.dtype == true.dtype
        np.testing.assert_array_equal(got, true)
