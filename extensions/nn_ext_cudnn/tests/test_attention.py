"""Attention on the stand-in for libcudnn: its graphs compute the right numbers, and what leaves them to the tiled kernels."""

from dataclasses import replace

import numpy as np
import pytest

from nn_core.ext import dtype_of

RNG = np.random.default_rng(0)
#: Shape of q, of k, of v, of the mask or None; is_causal
CASES = {
    "plain": ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 16), None, False),
    "one head": ((5, 8), (7, 8), (7, 8), None, False),
    "three leading axes": ((2, 2, 3, 5, 8), (2, 2, 3, 7, 8), (2, 2, 3, 7, 8), None, False),
    "causal": ((2, 6, 8), (2, 6, 8), (2, 6, 8), None, True),
    "causal with more keys": ((2, 3, 8), (2, 7, 8), (2, 7, 8), None, True),
    "causal with more queries": ((2, 7, 8), (2, 3, 8), (2, 3, 8), None, True),
    "mask of keys": ((2, 3, 5, 8), (2, 3, 9, 8), (2, 3, 9, 8), (9,), False),
    "mask of the batch": ((2, 3, 5, 8), (2, 3, 9, 8), (2, 3, 9, 8), (2, 1, 5, 9), False),
    "mask of heads": ((2, 3, 5, 8), (2, 3, 9, 8), (2, 3, 9, 8), (3, 5, 9), True),
    "mask of several axes": ((2, 2, 3, 5, 8), (2, 2, 3, 9, 8), (2, 2, 3, 9, 8), (2, 2, 1, 1, 9), False),
}


@pytest.fixture
def kernel(cudnn):
    from nn_ext_cudnn.kernels import KERNELS

    return KERNELS["ScaledDotProductAttention"]


@pytest.fixture
def prepared(kernel, call_of):
    """Makes a call and its arrays on the device: inputs, y, log_sum, dy, and gradients of q, k and v."""

    def make(name, dtype="float16", shift=0):
        *shapes, is_causal = CASES[name]
        call = call_of("ScaledDotProductAttention", *shapes, dtype=dtype, is_causal=is_causal)
        (private,) = kernel.private_shapes(call)
        call = replace(call, outputs=(call.outputs[0], replace(call.outputs[1], shape=private)))
        descs = [*call.inputs, *call.outputs, call.outputs[0], *call.inputs[:3]]
        arrays = [None if desc is None else on_device(desc, shift) for desc in descs]
        if shapes[3] is not None:
            hide(arrays[3])
        return call, arrays

    return make


def on_device(desc, shift):
    """Normal numbers, off the alignment by `shift` elements."""
    from nn_ext_cuda.device.runtime import cupy

    memory = cupy.asarray(RNG.normal(size=desc.size + 64).astype(dtype_of(desc.dtype)))
    start = (-memory.data.ptr % 64) // memory.itemsize + shift
    return memory[start : start + desc.size].reshape(desc.shape)


def hide(mask):
    """Hide every fourth key, and from the last of several queries all of them."""
    values = mask.view(np.ndarray)
    values[..., ::4] = -np.inf
    if values.ndim > 1 and values.shape[-2] > 1:
        values[..., -1, :] = -np.inf


def run(kernel, call, arrays, wanted=(True, True, True, False)):
    """y and the gradients of q, k and v."""
    q, k, v, mask, y, log_sum, dy, dq, dk, dv = arrays
    kernel.forward(call)(q, k, v, mask, y, log_sum)
    gradients = [array if want else None for array, want in zip((dq, dk, dv), wanted, strict=False)]
    kernel.backward(call, wanted)(q, k, v, mask, y, log_sum, dy, *gradients, None)
    return [None if array is None else array.get().astype(np.float64) for array in (y, *gradients)]


def true(arrays, *, is_causal):
    """y and the gradients in float64, with all weights at once."""
    q, k, v, mask, _, _, dy = (None if array is None else array.get().astype(np.float64) for array in arrays[:7])
    scale = 1 / np.sqrt(q.shape[-1])
    scores = scale * q @ np.moveaxis(k, -1, -2) + (0 if mask is None else mask)
    if is_causal:
        scores = np.where(np.arange(scores.shape[-1]) <= np.arange(scores.shape[-2])[:, None], scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    exponentials = np.exp(scores - np.where(np.isinf(largest), 0, largest))
    weights = exponentials / np.maximum(exponentials.sum(-1, keepdims=True), 1e-300)
    y = weights @ v
    changes = scale * weights * (dy @ np.moveaxis(v, -1, -2) - (dy * y).sum(-1, keepdims=True))
    return [y, changes @ k, np.moveaxis(changes, -1, -2) @ q, np.moveaxis(weights, -1, -2) @ dy]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_plans_compute_attention_and_its_gradients(kernel, cudnn, prepared, name, dtype):
    call, arrays = prepared(name, dtype)
    assert kernel.refuse(call) is None
    expected = true(arrays, is_causal=CASES[name][-1])
    found = run(kernel, call, arrays)
    assert len(cudnn.parts[-1].engines) == 2, "one plan forward and one backward"
    for own, other in zip(found, expected, strict=True):
        tolerance = {"float16": 4e-3, "bfloat16": 3e-2}[dtype] * max(1, np.abs(other).max())
        np.testing.assert_allclose(own, other, rtol=0, atol=tolerance)


def lying(array, by):
    """The same values, each row followed by `by` other numbers, and rows and heads in exchanged order."""
    from nn_ext_cuda.device.runtime import cupy

    *leading, rows, width = array.shape
    heads = leading[-1:]
    whole = cupy.asarray(np.full((*leading[:-1], rows, *heads, width + by), 9, array.dtype))
    part = whole[..., :width]
    part = part.swapaxes(-2, -3) if heads else part
    part.view(np.ndarray)[...] = array.view(np.ndarray)
    return part


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("by", "n_engines"), [(0, 2), (8, 2), (4, 0)])
@pytest.mark.parametrize("name", ["plain", "one head", "causal", "causal with more keys"])
def test_arrays_are_read_and_written_as_they_lie(kernel, cudnn, prepared, name, dtype, by, n_engines):
    call, arrays = prepared(name, dtype)
    assert kernel.strided(call)
    kernel.forward(call), kernel.backward(call, (True, True, True, False))
    cudnn.parts[-1].engines.clear()
    expected = true(arrays, is_causal=CASES[name][-1])
    found = run(kernel, call, [a if a is None or k == 5 else lying(a, by) for k, a in enumerate(arrays)])
    assert len(cudnn.parts[-1].engines) == n_engines
    for own, other in zip(found, expected, strict=True):
        tolerance = {"float16": 4e-3, "bfloat16": 3e-2}[dtype] * max(1, np.abs(other).max())
        np.testing.assert_allclose(own, other, rtol=0, atol=tolerance)


def test_with_a_mask_arrays_are_in_order(kernel, prepared):
    call, _ = prepared("mask of heads")
    assert not kernel.strided(call)


def test_queries_that_see_no_key_give_zeros_and_nan_stays(kernel, prepared):
    call, arrays = prepared("mask of the batch")
    arrays[0].view(np.ndarray)[0, 0, 0, 0] = np.nan
    y, dq, dk, dv = run(kernel, call, arrays)
    assert not y[..., -1, :].any()
    assert not dq[..., -1, :].any()
    assert np.isnan(y[0, 0, 0]).all()
    assert np.isfinite(y[1]).all()
    assert all(np.isfinite(gradient[1]).all() for gradient in (dq, dk, dv))


def test_arrays_off_their_alignment_and_single_gradients_are_left_to_the_tiled_kernels(kernel, cudnn, prepared):
    call, arrays = prepared("causal", shift=1)
    expected = true(arrays, is_causal=True)
    found = run(kernel, call, arrays)
    assert not cudnn.parts[-1].engines
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=4e-3 * max(1, np.abs(other).max()))
    call, arrays = prepared("causal")
    expected = true(arrays, is_causal=True)
    found = run(kernel, call, arrays, wanted=(True, False, True, False))
    assert len(cudnn.parts[-1].engines) == 1, "the tiled kernels go on with the sums of the plan"
    for own, other in zip((found[0], found[1], found[3]), (expected[0], expected[1], expected[3]), strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=4e-3 * max(1, np.abs(other).max()))


def test_with_the_gradient_of_the_mask_the_tiled_kernels_compute_all(kernel, cudnn, prepared):
    call, arrays = prepared("mask of keys")
    q, k, v, mask, y, log_sum, dy, *gradients = arrays
    kernel.forward(call)(q, k, v, mask, y, log_sum)
    d_mask = on_device(call.inputs[3], 0)
    kernel.backward(call, [True] * 4)(q, k, v, mask, y, log_sum, dy, *gradients, d_mask)
    assert len(cudnn.parts[-1].engines) == 1
    expected = true(arrays, is_causal=False)
    for own, other in zip(gradients, expected[1:], strict=True):
        np.testing.assert_allclose(own.get(), other, rtol=0, atol=4e-3 * max(1, np.abs(other).max()))
    assert not d_mask.get()[::4].any(), "hidden keys have no gradient"
    assert np.abs(d_mask.get().astype(float).sum()) < 2e-2, "weights add up to 1, whatever the mask is"
    assert np.abs(d_mask.get()).max() > 0.1


def test_without_an_engine_backward_the_tiled_kernels_compute_the_gradients(kernel, cudnn, prepared):
    cudnn.parts[-1].refuses = lambda operations: "no gradients here" if operations[0].kind == 13 else None
    call, arrays = prepared("mask of heads")
    expected = true(arrays, is_causal=True)
    found = run(kernel, call, arrays)
    assert len(cudnn.parts[-1].engines) == 1
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=4e-3 * max(1, np.abs(other).max()))


@pytest.mark.parametrize(
    ("shapes", "dtype", "reason"),
    [
        (((2, 5, 8),) * 3, "float32", "computes in float16 and bfloat16, got float32"),
        (((2, 0, 8), (2, 5, 8), (2, 5, 8)), "float16", "at least one element"),
        (((2, 5, 8), (2, 7, 8), (2, 7, 8), (5, 1)), "float16", "masks that vary along the keys"),
        (((2, 2, 3, 5, 8),) * 3 + ((2, 1, 1, 1, 5),), "float16", "all leading axes but the last or none"),
    ],
)
def test_what_is_refused(kernel, cudnn, call_of, shapes, dtype, reason):
    assert reason in kernel.refuse(call_of("ScaledDotProductAttention", *shapes, dtype=dtype)).reason
    assert not cudnn.calls


def test_without_an_engine_it_is_a_refusal(kernel, cudnn, prepared):
    cudnn.parts[-1].refuses = lambda operations: "features of another number"
    call, _ = prepared("plain")
    assert "features of another number" in kernel.refuse(call).reason


def test_a_plan_with_numbers_of_the_host_is_recorded(kernel, cudnn, prepared):
    from nn_ext_cuda.launch import capture, deferred

    call, arrays = prepared("mask of keys")
    section = capture.Section([kernel.forward(call).bind(*arrays[:6])])
    for _ in range(3):
        arrays[4].view(np.ndarray)[...] = np.nan
        section()
    deferred.flush()
    assert section.graph_sizes() == [1]
    assert not section.apart()
    np.testing.assert_allclose(arrays[4].get(), true(arrays, is_causal=False)[0], rtol=0, atol=1e-2)


@pytest.mark.parametrize("any_order", [False, True])
def test_the_gradient_has_the_form_by_which_cudnn_knows_its_engines(cudnn, any_order):
    from nn_ext_cudnn.graph import attention_graph as attention

    sizes = attention.Sizes((2, 3), 7, 9, 8, 8, "float16", None, False)
    graph = attention.backward_graph(sizes, adds_in_any_order=any_order)
    kinds = [getattr(operation, "mode", type(operation).__name__) for operation in graph]
    sums = ["mul", "Reduction", "mul"]
    weights = ["Product", "mul", "sub", "exp", "Reshape", "Product"]
    changes = ["Product", "sub", "mul", "mul", "Reshape", "Product", *["identity"] * any_order, "Reshape", "Product"]
    assert kinds == [*sums, *weights, *changes]
    assert graph[2].inputs[1].uid == attention.ONE
    factors = graph[11].inputs
    assert [operation.mode for uid in factors for operation in graph[:11] if operation.output.uid == uid.uid] == ["sub", "exp"]
