"""Fused convolutions on the stand-in for libcudnn: what is folded, what is refused, how many operations a plan has."""

import numpy as np
import pytest

X, WEIGHT = (2, 4, 6, 5), (6, 4, 3, 3)
VECTOR, STATISTICS = (6,), (1, 6, 1, 1)
Y = (2, 6, 4, 3)


@pytest.fixture
def kernel(cudnn):
    from nn_ext_cudnn.kernels import KERNELS

    return KERNELS["FusedConvolution"]


@pytest.fixture
def graphs(cudnn):
    """The number of operations of each graph that was looked up."""
    asked = []
    cudnn.parts[-1].refuses = lambda operations: asked.append(len(operations))
    return asked


def run(kernel, call, seed=0):
    """The inputs and the outputs as NumPy arrays in double precision."""
    from nn_ext_cuda.device.runtime import cupy

    rng = np.random.default_rng(seed)
    arrays = [
        None if desc is None else cupy.asarray(rng.uniform(0.5, 1.5, desc.shape).astype(desc.dtype))
        for desc in (*call.inputs, *call.outputs)
    ]
    kernel.forward(call)(*arrays)
    return [None if array is None else array.get().astype(np.float64) for array in arrays]


def true(x, weight, bias, beta, gamma, mean, variance, z, *, eps, relu):
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3))
    y = np.einsum("ncijrs,kcrs->nkij", windows, weight)
    y = y if bias is None else y + bias[:, None, None]
    if mean is not None:
        y = (y - mean) / np.sqrt(variance + eps) * (1 if gamma is None else gamma) + (0 if beta is None else beta)
    y = y if z is None else y + z
    return np.maximum(y, 0) if relu else y


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize(
    ("given", "nonlinearity", "n_operations"),
    [
        ((None, None, None, None, None, None), "relu", 3),
        ((VECTOR, None, None, None, None, None), "identity", 2),
        ((VECTOR, None, None, None, None, Y), "relu", 4),
        ((None, STATISTICS, None, STATISTICS, STATISTICS, None), "relu", 3),
        ((VECTOR, STATISTICS, STATISTICS, STATISTICS, STATISTICS, Y), "relu", 4),
        ((VECTOR, None, STATISTICS, STATISTICS, STATISTICS, Y), "identity", 3),
    ],
)
def test_all_of_it_is_one_plan(kernel, graphs, call_of, given, nonlinearity, n_operations, dtype):
    call = call_of("FusedConvolution", X, WEIGHT, *given, dtype=dtype, batch_stat=False, nonlinearity=nonlinearity)
    assert kernel.refuse(call) is None
    arrays = run(kernel, call)
    assert set(graphs) == {n_operations}
    inputs, (y, mean, variance) = arrays[:8], arrays[8:]
    tolerance = {"float32": 1e-5, "float16": 2e-2, "float64": 1e-12}[dtype]
    expected = true(*inputs, eps=call.args["eps"], relu=nonlinearity == "relu")
    np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(mean, 0 if inputs[5] is None else inputs[5])
    np.testing.assert_array_equal(variance, 0 if inputs[6] is None else inputs[6])


@pytest.mark.parametrize(
    ("given", "settings", "reason"),
    [
        ((), {"nonlinearity": "tanh"}, "nonlinearities identity and relu, got tanh"),
        ((), {"pad": (1, 1), "pad_mode": "reflect"}, "borders of zeros, got reflect"),
        ((), {"pad": (1, 1), "constant_value": 0.5}, "borders of zeros, got constant 0.5"),
        ((None, STATISTICS, STATISTICS, STATISTICS, STATISTICS), {}, "takes running statistics"),
    ],
)
def test_what_is_refused(kernel, call_of, given, settings, reason):
    assert reason in kernel.refuse(call_of("FusedConvolution", X, WEIGHT, *given, **settings)).reason


def test_without_padding_its_kind_does_not_matter(kernel, call_of):
    assert kernel.refuse(call_of("FusedConvolution", X, WEIGHT, pad_mode="reflect", constant_value=2.0)) is None
