"""Rows of element-wise programs beside the reference: quantizers, filling, broadcasting; edges, NaN and infinities."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]


def edges(*shape: int) -> np.ndarray[Any, Any]:
    """Multiples of a quarter, zeros and ones among them."""
    return (np.random.default_rng(0).integers(-9, 10, shape) / 4).astype(np.float32)


@pytest.mark.parametrize("function", [F.binary_sigmoid, F.binary_tanh, F.sinc], ids=["sigmoid", "tanh", "sinc"])
def test_functions_of_one_array(assert_alike: Compare, function: Callable[..., nn.Variable]) -> None:
    assert_alike(function, edges(7, 300))


@pytest.mark.parametrize("sign", [False, True])
@pytest.mark.parametrize("fine", [False, True])
def test_fixed_point(assert_alike: Compare, sign: bool, fine: bool) -> None:
    assert_alike(lambda x: F.fixed_point_quantize(x, sign, 3, 0.5, ste_fine_grained=fine), edges(5, 100))


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (30, 1), (30, 40)])
def test_dequantization(assert_alike: Compare, shape: tuple[int, ...]) -> None:
    assert_alike(F.dequantize_linear, edges(30, 40), np.abs(edges(*shape)) + 1, edges(*shape))


@pytest.mark.parametrize("shape", [(4, 50), (50,), (4, 1)])
def test_filling(assert_alike: Compare, shape: tuple[int, ...]) -> None:
    mask = nn.Variable.from_numpy_array((edges(*shape) > 0).astype(np.float32))
    assert_alike(lambda x: F.bool_fill(x, mask, value=-3.5), edges(4, 50))


@pytest.mark.parametrize(("shape", "axis"), [((5,), -1), ((3, 4), 0), ((4,), 1), ((), 0), ((3, 4, 5), -1)])
def test_broadcasting_to_an_array(assert_alike: Compare, shape: tuple[int, ...], axis: int) -> None:
    x = nn.Variable.from_numpy_array(edges(3, 4, 5))
    assert_alike(lambda y: F.broadcast_to(x, y, axis=axis), edges(*shape) if shape else np.float32(2.5).reshape(()))


def test_nan_and_infinities() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    for function in (F.binary_sigmoid, F.binary_tanh, F.fixed_point_quantize):
        results = []
        for backend in ("cpu:float", "reference:float"):
            with nn.context_scope(nn.Context([backend])), np.errstate(all="ignore"):
                y = function(nn.Variable.from_numpy_array(x))
                y.forward()
                results.append(y.d.copy())
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    "function",
    [F.binary_tanh, F.binary_sigmoid, lambda x: F.fixed_point_quantize(x, sign=True, n=4, delta=0.5, ste_fine_grained=True)],
)
def test_nan_does_not_pass_where_there_is_no_slope(function: Callable[..., nn.Variable]) -> None:
    x = nn.Variable.from_numpy_array([-9.0, 0.5, 9.0, np.nan], need_grad=True)
    with nn.context_scope(get_extension_context("cpu")):
        y = function(x)
    y.forward()
    y.backward(np.array([np.nan, np.nan, np.inf, 2.0], np.float32))
    assert np.isnan(x.g[1])
    assert x.g[[0, 2]].tolist() == [0, 0]
    assert x.g[3] in (1, 2)
