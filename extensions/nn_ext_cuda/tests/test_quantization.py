"""Quantizers on the emulated device, beside the reference: numbers without an exponent, borders, ranges, pruning by a sort."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.dispatch.plugin_manager import PLUGINS

ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38, 2**-7.5, 0.7, -1.5, 1e-6]


def kernel_of(name):
    from nn_ext_cuda.kernels import KERNELS

    return KERNELS[name]


def both(cuda, name, arrays, dtype="float32", **args):
    """The results of the kernel and of the reference, and the inputs that each has rewritten."""
    from emulated import call_of, forward

    call = call_of(name, arrays, dtype, **args)
    assert kernel_of(name).refuse(call) is None
    ours = forward(cuda, kernel_of(name), call, arrays)
    reference = PLUGINS.backend("reference").kernels[name]
    outputs = [np.zeros(desc.shape, desc.dtype) for desc in call.outputs]
    reference.forward(call)(*[array.copy() for array in arrays], *outputs)
    return ours, outputs


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("args", [{}, {"sign": False}, {"with_zero": False, "n": 4}, {"n": 3, "m": 5}, {"n": 64}])
def test_powers_of_two_of_numbers_without_an_exponent(device, dtype, args):
    with np.errstate(all="ignore"):
        ours, expected = both(device, "Pow2Quantize", [np.array(ODD, dtype)], dtype, **args)
    np.testing.assert_array_equal(ours[0], expected[0])


@pytest.mark.parametrize("rate", [0.0, 0.37, 0.9, 1.0])
def test_pruning_finds_its_threshold_among_many(device, rate):
    x = np.random.default_rng(3).normal(size=(37, 41)).astype(np.float32)
    x[0, :3] = np.nan, np.inf, -np.inf
    ours, expected = both(device, "Prune", [x], rate=rate)
    np.testing.assert_array_equal(ours[0], expected[0])


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (5, 1)])
def test_ranges_follow_the_data_along_any_axis(device, shape):
    x = np.random.default_rng(4).normal(size=(5, 7)).astype(np.float32)
    ends = [np.full(shape, number, np.float32) for number in (-1, 2, 0, 15)]
    ours, expected = both(device, "MinMaxQuantize", [x, *ends], x_min_max=True, ema=True, decay=0.5)
    for one, other in zip(ours, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_quantized_training_is_done_by_kernels(cuda):
    x = nn.Variable.from_numpy_array(np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4), need_grad=True)
    low, high, first, last = (nn.Variable.from_numpy_array(np.full((1, 1), n, np.float32)) for n in (-1, 1, 0, 7))
    y = F.sum(F.min_max_quantize(F.prune(F.pow2_quantize(x), 0.25), low, high, first, last, x_min_max=True))
    for _ in range(4):
        y.forward()
        y.backward()
    assert not {"MinMaxQuantize", "Prune", "Pow2Quantize"} & {row.function for row in nn.fallback_report()}
    assert np.isfinite(y.d) and high.d[0, 0] == 2
