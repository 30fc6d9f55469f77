"""Convolutions with thousands of products in a sum: they are computed in parts, whose ends are nearer to float64."""

from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_ext_cpu import _native

CPU = nn.Context(["cpu:float"])
DOUBLE = nn.Context(["cpu:double"])

#: One chain of 4,608 products rounds by 1.05e-6 of the result (root mean square), and one of 2,304 by 8e-7.
MOST = 7e-7

CASES = {
    "small images": ((2, 512, 4, 4), (64, 512, 3, 3), {"pad": (1, 1)}),
    "strides": ((1, 256, 9, 7), (32, 256, 3, 3), {"pad": (1, 1), "stride": (2, 2)}),
    "dilation": ((1, 256, 9, 9), (24, 256, 3, 3), {"dilation": (2, 3)}),
    "one dimension": ((2, 512, 11), (16, 512, 5), {"pad": (2,)}),
    "three dimensions": ((1, 128, 4, 5, 3), (8, 128, 3, 3, 3), {"pad": (1, 1, 1)}),
    "channels last": ((1, 5, 5, 512), (40, 3, 3, 512), {"pad": (1, 1), "channel_last": True}),
}


def operands(rng: np.random.Generator, x: tuple[int, ...], weight: tuple[int, ...]) -> list[nn.Variable]:
    """Return x, weight and bias of normal numbers."""
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in (x, weight, weight[:1])]
    return [nn.Variable.from_numpy_array(array, need_grad=True) for array in arrays]


def computed(context: nn.Context, variables: list[nn.Variable], args: dict[str, Any]) -> np.ndarray:
    """Return the convolution, computed by `context`."""
    with nn.context_scope(context):
        y = F.convolution(*variables, **args)
        y.forward()
    return np.array(y.d, np.float64)


def error(y: np.ndarray, truth: np.ndarray) -> float:
    """Return the root mean square of the error, in parts of that of the truth."""
    return float(np.sqrt(np.mean((y - truth) ** 2) / np.mean(truth**2)))


@pytest.mark.parametrize("name", CASES)
def test_long_sums_are_near_to_float64(name: str, rng: np.random.Generator) -> None:
    x, weight, args = CASES[name]
    variables = operands(rng, x, weight)
    truth = computed(DOUBLE, variables, args)
    assert error(computed(CPU, variables, args), truth) < MOST


def test_long_sums_inside_of_a_network_are_near_to_float64(rng: np.random.Generator) -> None:
    x, weight, _ = operands(rng, (2, 256, 6, 6), (256, 256, 3, 3))
    found = []
    for context in (CPU, DOUBLE):
        with nn.context_scope(context):
            h = x
            for _ in range(2):
                h = F.convolution(h, weight, pad=(1, 1)) * 0.02
            h.forward(clear_no_need_grad=True)
        found.append(np.array(h.d, np.float64))
    assert error(*found) < MOST * np.sqrt(2)


def test_weights_that_change_between_runs_are_read_anew(rng: np.random.Generator) -> None:
    variables = operands(rng, (1, 512, 3, 3), (16, 512, 3, 3))
    with nn.context_scope(CPU):
        y = F.convolution(*variables, pad=(1, 1))
    for step in range(6):
        if step % 3 == 0:
            variables[1].d = rng.standard_normal(variables[1].shape)
        y.forward()
        assert error(np.array(y.d, np.float64), computed(DOUBLE, variables, {"pad": (1, 1)})) < MOST


def test_images_of_any_size_share_weights_that_are_kept(rng: np.random.Generator) -> None:
    _, weight, bias = operands(rng, (1, 256, 3, 3), (48, 256, 3, 3))
    graphs = []
    for n, height, width in [(1, 1, 1), (2, 4, 3), (1, 33, 29), (3, 7, 7), (1, 2, 64)]:
        x, _, _ = operands(rng, (n, 256, height, width), weight.shape)
        for given in (None, bias):
            variables = [x, weight] if given is None else [x, weight, given]
            with nn.context_scope(CPU):
                y = F.convolution(*variables, pad=(1, 1))
            graphs.append((y, computed(DOUBLE, variables, {"pad": (1, 1)})))
    for _ in range(3):  # weights are kept from the second time on
        for y, truth in graphs:
            y.forward()
            assert error(np.array(y.d, np.float64), truth) < MOST


def test_nan_and_infinities_stay_where_they_are(rng: np.random.Generator) -> None:
    variables = operands(rng, (1, 512, 6, 6), (8, 512, 3, 3))
    variables[0].data.data[0, 3, 0, 0] = np.inf
    variables[0].data.data[0, 400, 5, 5] = np.nan
    y, truth = (computed(context, variables, {"pad": (1, 1)}) for context in (CPU, DOUBLE))
    np.testing.assert_array_equal(np.isnan(y), np.isnan(truth))
    np.testing.assert_array_equal(np.isinf(y), np.isinf(truth))
    np.testing.assert_array_equal(np.sign(y[np.isinf(y)]), np.sign(truth[np.isinf(truth)]))


@pytest.mark.skipif(not _native.has_onednn(), reason="without oneDNN all convolutions are products of matrices")
@pytest.mark.parametrize(("channels", "in_parts"), [(512, True), (64, False), (508, False)])
def test_only_long_sums_are_computed_in_parts(channels: int, in_parts: bool, rng: np.random.Generator) -> None:
    variables = operands(rng, (1, channels, 4, 4), (16, channels, 3, 3))
    with nn.context_scope(CPU):
        y = F.convolution(*variables, pad=(1, 1))
    implementation = nn.explain(y, CPU).implementation
    if implementation == "unfolded product":
        pytest.skip("oneDNN has no convolution for this processor that may run")
    assert implementation.endswith(" in parts") is in_parts
