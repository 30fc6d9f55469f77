"""Kernels of single channels that slide over planes, around the widths of vectors."""

from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F


def depthwise(x: nn.Variable, w: nn.Variable, b: nn.Variable, channels_last: bool, arguments: dict[str, Any]) -> nn.Variable:
    """Return the sum of a depthwise convolution; `channels_last` has x made by another convolution."""
    if channels_last:
        unit = np.eye(x.shape[1], dtype=x.dtype).reshape(x.shape[1], x.shape[1], *(1,) * (x.ndim - 2))
        x = F.convolution(x, nn.Variable.from_numpy_array(unit))
    return F.sum(F.sin(F.depthwise_convolution(x, w, b, **arguments)))


def results(context: nn.Context, arrays: list[np.ndarray], channels_last: bool, arguments: dict[str, Any]) -> list[np.ndarray]:
    """Return the sum and its gradients."""
    with nn.context_scope(context):
        x, w, b = (nn.Variable.from_numpy_array(array, need_grad=True) for array in arrays)
        for variable in (x, w, b):
            variable.grad.zero()
        y = depthwise(x, w, b, channels_last, arguments)
        y.forward()
        y.backward()
        return [np.asarray(found, np.float64) for found in (y.d, x.g, w.g, b.g)]


@pytest.mark.parametrize("type_config", ["float", "double"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("columns", [1, 4, 7, 8, 9, 15, 16, 17, 31, 33, 49])
def test_rows_around_the_widths_of_vectors(columns: int, channels_last: bool, type_config: str, two_threads: None) -> None:
    rng = np.random.default_rng(columns)
    kernel, dilation = (int(rng.integers(4, 7)), int(rng.integers(4, 12))), (int(rng.integers(1, 3)), int(rng.integers(1, 4)))
    reach = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    pad = tuple(int(rng.integers(0, 1 + r // 2)) for r in reach)
    size = [max(1, n + r - 2 * p) for n, r, p in zip((int(rng.integers(1, 10)), columns), reach, pad, strict=True)]
    arrays = [rng.standard_normal(shape) for shape in ((2, 19, *size), (19, *kernel), (19,))]
    arguments = {"pad": pad, "dilation": dilation}
    true = results(nn.Context(["reference:double"]), arrays, channels_last, arguments)
    dtype, tolerance = (np.float32, 2e-6) if type_config == "float" else (np.float64, 1e-13)
    given = [array.astype(dtype) for array in arrays]
    found = results(nn.Context([f"cpu:{type_config}"]), given, channels_last, arguments)
    for got, expected in zip(found, true, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=20 * tolerance * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("kernel", [9, 40])
def test_signals(kernel: int, two_threads: None) -> None:
    rng = np.random.default_rng(kernel)
    arrays = [rng.standard_normal(shape) for shape in ((3, 5, 70), (5, kernel), (5,))]
    arguments = {"pad": (kernel // 2,), "dilation": (2,)}
    true = results(nn.Context(["reference:double"]), arrays, False, arguments)
    for got, expected in zip(results(nn.Context(["cpu:double"]), arrays, False, arguments), true, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * max(1, np.abs(expected).max()))


def test_a_nan_stays_within_its_channel_and_reach() -> None:
    x = np.zeros((1, 3, 9, 20))
    x[0, 1, 4, 10] = np.nan
    with nn.context_scope(nn.Context(["cpu:double"])):
        y = F.depthwise_convolution(
            nn.Variable.from_numpy_array(x), nn.Variable.from_numpy_array(np.ones((3, 3, 5))), pad=(1, 2)
        )
        y.forward()
    expected = np.zeros(x.shape, bool)
    expected[0, 1, 3:6, 8:13] = True
    np.testing.assert_array_equal(np.isnan(y.d), expected)


def test_the_implementation_has_a_name() -> None:
    x, w = (nn.Variable.from_numpy_array(np.ones(shape)) for shape in ((1, 2, 9, 9), (2, 5, 5)))
    context = nn.Context(["cpu:double"])
    assert nn.explain(F.depthwise_convolution(x, w, pad=(2, 2)), context).implementation == "sliding kernel"
    assert nn.explain(F.depthwise_convolution(x, w, stride=(2, 2)), context).implementation == "unfolded product"
