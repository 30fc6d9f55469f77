"""Convolutions and deconvolutions of all geometries, many of which oneDNN does not take or runs by its loops for tests."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context
from nn_ext_cpu import _native


class Drawn(NamedTuple):
    """A random convolution: the shapes of x, weight and bias, and its arguments."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    arguments: dict[str, Any]


def drawn(rng: np.random.Generator) -> Drawn:
    """One to three axes, groups, strides, paddings, gaps up to 11, output padding."""

    def each(*choices: int) -> tuple[int, ...]:
        return tuple(int(n) for n in rng.choice(choices, n_axes))

    n_axes, group = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
    inputs, filters = (group * int(rng.choice([1, 2, 5, 16])) for _ in range(2))
    kernel, stride, dilation, pad = each(1, 2, 3, 5), each(1, 1, 2, 3), each(1, 1, 2, 12), each(0, 0, 1, 3)
    arguments: dict[str, Any] = {"stride": stride, "dilation": dilation, "pad": pad, "group": group}
    batch, more = int(rng.integers(1, 4)), each(1, 2, 3, 6)
    if rng.random() < 0.5:
        reach = tuple(max(1, n - 1 - (k - 1) * d + 2 * p) for n, k, d, p in zip(more, kernel, dilation, pad, strict=True))
        size = tuple(n + r for n, r in zip(more, reach, strict=True))
        arguments["output_padding"] = tuple(int(rng.integers(0, max(s, d))) for s, d in zip(stride, dilation, strict=True))
        return Drawn(F.deconvolution, ((batch, inputs, *size), (inputs, filters // group, *kernel), (filters,)), arguments)
    size = tuple(max(1, (k - 1) * d + n - 2 * p) for n, k, d, p in zip(more, kernel, dilation, pad, strict=True))
    return Drawn(F.convolution, ((batch, inputs, *size), (filters, inputs // group, *kernel), (filters,)), arguments)


def long_kernel(rng: np.random.Generator) -> Drawn:
    """One axis, kernels up to 401 or gaps up to 32, in networks for sound."""
    dilation = int(rng.choice([1, 1, 4, 32]))
    kernel = int(rng.choice([15, 31, 128, 401])) if dilation == 1 else int(rng.integers(2, 8))
    channels, filters, stride = int(rng.choice([1, 8, 16])), int(rng.choice([1, 4, 16])), int(rng.choice([1, 1, 2, 10]))
    reach = (kernel - 1) * dilation
    arguments = {"pad": (int(rng.choice([0, reach // 2, reach])),), "stride": (stride,), "dilation": (dilation,)}
    return Drawn(F.convolution, ((2, channels, reach + 40), (filters, channels, kernel), (filters,)), arguments)


def depthwise(rng: np.random.Generator) -> Drawn:
    """Return a kernel for each channel, up to 31 x 31."""
    channels, kernel, multiplier = int(rng.choice([3, 8, 20])), int(rng.choice([3, 7, 15, 31])), int(rng.choice([1, 1, 2]))
    arguments = {"pad": (kernel // 2,) * 2, "stride": (int(rng.choice([1, 1, 2])),) * 2, "group": channels}
    shapes = (2, channels, 33, 32), (channels * multiplier, 1, kernel, kernel), (channels * multiplier,)
    return Drawn(F.convolution, shapes, arguments)


def patches(rng: np.random.Generator) -> Drawn:
    """Kernels that do not overlap, as in transformers of images."""
    size, channels, filters = int(rng.choice([2, 4, 8, 16])), int(rng.choice([1, 3, 4])), int(rng.choice([7, 32, 192]))
    shapes = (2, channels, 3 * size + int(rng.integers(0, size)), 2 * size), (filters, channels, size, size), (filters,)
    return Drawn(F.convolution, shapes, {"stride": (size, size)})


#: The kinds of networks that random convolutions are drawn from.
FAMILIES: list[Callable[[np.random.Generator], Drawn]] = [drawn, drawn, long_kernel, depthwise, patches]

#: How x comes about: as a leaf, by an element-wise function, in another layout or with its axes moved.
SOURCES: list[Callable[[Any], Any]] = [
    lambda x: x,
    F.tanh,
    lambda x: F.average_pooling(x, (1,) * (x.ndim - 2), ignore_border=False) if 3 < x.ndim < 6 else F.tanh(x),
    lambda x: F.pad(x, (0, 1)),
    lambda x: F.transpose(F.transpose(x, (1, 0, *range(2, x.ndim))), (1, 0, *range(2, x.ndim))),
    lambda x: F.reshape(F.reshape(x, (-1,)), x.shape),
]


@pytest.mark.parametrize("seed", range(30))
def test_random_convolutions(seed: int, two_threads: None, assert_alike: Callable[..., None]) -> None:
    rng = np.random.default_rng(seed)
    function, shapes, arguments = FAMILIES[seed % len(FAMILIES)](rng)
    source = SOURCES[seed % len(SOURCES)]
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    assert_alike(lambda x, w, b: function(source(x), w, b, **arguments), *arrays, tolerance=5e-5)


def test_an_output_padding_between_stride_and_dilation() -> None:
    with nn.context_scope(get_extension_context("cpu")):
        x, w = (nn.Variable.from_numpy_array(np.ones((1, 1, n))) for n in (3, 2))
        y = F.deconvolution(x, w, dilation=(2,), output_padding=(1,))
        y.forward()
    assert y.d.tolist() == [[[1, 1, 2, 1, 1, 0]]]


SCAN = """
import sys
import numpy as np
import nn_core as nn
from nn_core.ext_utils import get_extension_context

sys.path.insert(0, sys.argv[1])
from test_unfolded import FAMILIES, SOURCES

rng = np.random.default_rng(1)
with nn.context_scope(get_extension_context("cpu", type_config=sys.argv[2])):
    for number in range(int(sys.argv[3])):
        function, shapes, arguments = FAMILIES[number % len(FAMILIES)](rng)
        x, *others = (nn.Variable.from_numpy_array(np.ones(shape, np.float32), need_grad=True) for shape in shapes)
        y = function(SOURCES[number % len(SOURCES)](x), *others, **arguments)
        y.forward()
        y.backward()
assert str(nn.fallback_report()).startswith("every function")
"""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float", "bfloat16"])
@pytest.mark.skipif(not _native.has_onednn(), reason="reads what oneDNN writes about its primitives")
def test_no_convolution_runs_on_loops_for_tests_or_moves_the_stack(dtype: str) -> None:
    command = [sys.executable, "-c", SCAN, str(Path(__file__).parent), dtype, "1000"]
    environment = {**os.environ, "ONEDNN_VERBOSE": "1"}
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    rows = [line.split(",") for line in text.splitlines() if line.startswith("onednn_verbose,exec")]
    used = {row[4] for row in rows if row[3] != "reorder"}
    assert used
    assert not [name for name in used if "ref" in name.split(":") or "gemm" in name.split(":") or "+ref" in name]


def variables(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[nn.Variable]:
    return [nn.Variable.from_numpy_array(rng.normal(size=shape).astype(np.float32)) for shape in shapes]


@pytest.mark.parametrize("with_sum", [False, True])
def test_a_chain_for_inference(with_sum: bool, rng: np.random.Generator) -> None:
    """Normalization, addition and ReLU after a convolution that has no primitive; NaN stays NaN."""
    with nn.context_scope(get_extension_context("cpu")):
        x, w, beta, gamma, mean, z = variables(rng, (2, 3, 9, 8), (5, 3, 3, 3), *[(1, 5, 1, 1)] * 3, (2, 5, 9, 8))
        variance = nn.Variable.from_numpy_array(rng.uniform(0.5, 2, (1, 5, 1, 1)).astype(np.float32))
        x.d[0, 0, 0, 0] = np.nan
        h = F.convolution(x, w, pad=(12, 12), dilation=(12, 12))
        h = F.batch_normalization(h, beta, gamma, mean, variance, batch_stat=False)
        y = F.relu(h + z if with_sum else h)
        y.forward()
        plain = y.d.copy()
        y.forward(clear_buffer=True)
        np.testing.assert_allclose(y.d, plain, rtol=1e-5, atol=1e-5)
    assert np.isnan(plain).any()


def test_bfloat16(rng: np.random.Generator) -> None:
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((2, 4, 30), (6, 4, 3), (6,))]
    results = []
    for context in (get_extension_context("cpu", type_config="bfloat16"), nn.Context(["reference:double"])):
        with nn.context_scope(context):
            x, w, b = (nn.Variable.from_numpy_array(array, need_grad=True) for array in arrays)
            for variable in (x, w, b):
                variable.grad.zero()
            y = F.convolution(x, w, b, dilation=(12,), pad=(3,))
            y.forward()
            y.backward()
            results.append([np.asarray(a, np.float64) for a in (y.d, x.g, w.g, b.g)])
    for found, true in zip(*results, strict=True):
        np.testing.assert_allclose(found, true, rtol=0.02, atol=0.02 * np.abs(true).max())


@pytest.mark.parametrize("type_config", ["float", "double"])
@pytest.mark.parametrize(
    ("x_shape", "w_shape", "arguments"),
    [
        ((2, 1, 50), (16, 1, 21), {"pad": (10,)}),
        ((2, 3, 24, 20), (32, 3, 4, 4), {"stride": (4, 4)}),
        ((1, 2, 13, 11), (8, 2, 3, 5), {"stride": (2, 3), "dilation": (2, 1), "pad": (3, 0)}),
        ((3, 4, 9, 8), (24, 2, 3, 3), {"group": 2, "pad": (1, 1)}),
        ((1, 1, 5, 6, 7), (6, 1, 2, 3, 2), {"pad": (1, 1, 0)}),
    ],
)
def test_gradients_of_few_channels(
    type_config: str, x_shape: tuple[int, ...], w_shape: tuple[int, ...], arguments: dict[str, Any], two_threads: None
) -> None:
    """Compare what `unfold_up` folds with the reference; channels-last too, where a convolution made x."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(x_shape), rng.standard_normal(w_shape), np.eye(x_shape[1]).reshape(x_shape[1], -1)]
    arrays[2] = arrays[2].reshape(x_shape[1], x_shape[1], *(1,) * (len(x_shape) - 2))
    gradients = []
    for backend, config in (("cpu", type_config), ("reference", "double")):
        with nn.context_scope(nn.Context([f"{backend}:{config}"])):
            dtype = np.float64 if config == "double" else np.float32
            x, w, own = (nn.Variable.from_numpy_array(a.astype(dtype), need_grad=True) for a in arrays)
            first, second = F.convolution(x, w, **arguments), F.convolution(F.convolution(x, own), w, **arguments)
            y = F.sum(F.sin(first) + F.sin(2 * second))
        for variable in (x, w):
            variable.grad.zero()
        y.forward()
        y.backward()
        gradients.append([x.g.copy(), w.g.copy()])
    for got, true in zip(*gradients, strict=True):
        np.testing.assert_allclose(got, true, rtol=0, atol=(1e-12 if type_config == "double" else 1e-5) * np.abs(true).max())
