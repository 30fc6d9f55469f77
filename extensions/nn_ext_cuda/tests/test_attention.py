"""Attention tile by tile, on an emulated device: what the samples of the conformance kit leave out, and tiles of each size."""

from dataclasses import replace

import numpy as np
import pytest

from nn_core.operators.reference.attention import scaled_dot_product_attention as reference

RNG = np.random.default_rng(0)
#: (shape of q, of k, of v, of the mask or None), is_causal
CASES = {
    "ragged tiles": ((2, 37, 6), (2, 41, 6), (2, 41, 9), None, False),
    "causal": ((1, 2, 35, 8), (1, 2, 35, 8), (1, 2, 35, 8), None, True),
    "causal with fewer keys": ((1, 9, 4), (1, 5, 4), (1, 5, 3), None, True),
    "mask of heads": ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 2), (3, 1, 7), False),
    "mask of the batch": ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 2), (2, 1, 5, 7), True),
    "one query": ((5, 4), (9, 4), (9, 2), (9,), False),
    "mask of keys": ((2, 37, 4), (2, 41, 4), (2, 41, 3), (41,), False),
    "mask of queries": ((3, 37, 4), (3, 41, 4), (3, 41, 3), (3, 37, 1), False),
    "mask of one number": ((2, 37, 4), (2, 41, 4), (2, 41, 3), (1,), True),
    "mask of samples alone": ((3, 2, 5, 4), (3, 2, 7, 4), (3, 2, 7, 2), (3, 1, 1, 1), False),
    "mask of other axes": ((2, 3, 2, 3, 2, 5, 4), (2, 3, 2, 3, 2, 7, 4), (2, 3, 2, 3, 2, 7, 2), (1, 2, 1, 2, 5, 7), True),
    "largest tiles": ((1, 70, 8), (1, 130, 8), (1, 130, 8), (70, 130), True),
    "parts of features": ((1, 9, 40), (1, 10, 40), (1, 10, 70), (9, 10), True),
    "groups of features": ((2, 9, 300), (2, 10, 300), (2, 10, 200), None, True),
    "more features of values": ((1, 5, 7), (1, 6, 7), (1, 6, 1000), (1, 6), False),
    "more features of keys": ((1, 5, 1000), (1, 6, 1000), (1, 6, 3), (5, 6), False),
    "no keys": ((2, 3, 4), (2, 0, 4), (2, 0, 5), None, False),
    "no queries": ((2, 0, 4), (2, 3, 4), (2, 3, 5), None, False),
}


def arrays_of(name, dtype):
    """q, k, v and the mask, which hides some keys where it varies along them."""
    q, k, v, mask, is_causal = CASES[name]
    arrays = [RNG.normal(size=shape).astype(dtype) for shape in (q, k, v)]
    if mask is not None:
        values = RNG.normal(size=mask).astype(dtype)
        if mask[-1] > 1:
            values[..., ::4] = -np.inf
    return [*arrays, None if mask is None else values], is_causal


def computed(cupy, inputs, dy, is_causal, wanted):
    """y and the gradients by the kernel; log_sum is handed on as the kernel laid it out."""

    from emulated import call_of

    from nn_ext_cuda.kernels import KERNELS

    kernel = KERNELS["ScaledDotProductAttention"]
    call = call_of("ScaledDotProductAttention", inputs, str(inputs[0].dtype), is_causal=is_causal)
    assert kernel.refuse(call) is None
    (shape,) = kernel.private_shapes(call)
    call = replace(call, outputs=(call.outputs[0], replace(call.outputs[1], shape=shape)))
    arrays = [None if array is None else cupy.asarray(array) for array in inputs]
    y, log_sum = (cupy.asarray(np.full(desc.shape, 7, desc.dtype)) for desc in call.outputs)
    kernel.forward(call)(*arrays, y, log_sum)
    wanted = [want and array is not None for want, array in zip(wanted, inputs, strict=True)]
    gradients = [cupy.asarray(np.full_like(array, 7)) if want else None for array, want in zip(inputs, wanted, strict=True)]
    kernel.backward(call, wanted)(*arrays, y, log_sum, cupy.asarray(dy), *gradients)
    return y.get(), [None if gradient is None else gradient.get() for gradient in gradients]


def expected(inputs, dy, is_causal):
    """y and the gradients of q, k, v and the mask in float64, with all weights at once."""
    q, k, v, mask = (None if array is None else array.astype(np.float64) for array in inputs)
    scale = 1 / np.sqrt(q.shape[-1])
    y, log_sum = reference(np, q, k, v, mask, is_causal=is_causal, scale=scale)
    scores = scale * q @ np.moveaxis(k, -1, -2) + (0 if mask is None else mask)
    if is_causal:
        scores = np.where(np.arange(scores.shape[-1]) <= np.arange(scores.shape[-2])[:, None], scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.nan_to_num(np.exp(scores - log_sum[..., None]), nan=0)
    changes = weights * (dy @ np.moveaxis(v, -1, -2) - (dy * y).sum(-1, keepdims=True))
    gradients = [scale * changes @ k, scale * np.moveaxis(changes, -1, -2) @ q, np.moveaxis(weights, -1, -2) @ dy]
    return y, [*gradients, None if mask is None else summed_to(changes, mask.shape)]


def summed_to(array, shape):
    """The array summed along the axes along which `shape` is broadcast to it."""
    shape = (1,) * (array.ndim - len(shape)) + shape
    axes = tuple(axis for axis, length in enumerate(shape) if length == 1)
    return array.sum(axes, keepdims=True).reshape(shape)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_agree_with_those_of_all_weights(device, name, dtype):
    inputs, is_causal = arrays_of(name, dtype)
    dy = RNG.normal(size=(*inputs[0].shape[:-1], inputs[2].shape[-1])).astype(dtype)
    y, gradients = computed(device, inputs, dy, is_causal, (True, True, True, True))
    own_y, own_gradients = expected(inputs, dy.astype(np.float64), is_causal)
    tolerance = {"float32": 4e-6, "float64": 1e-14, "float16": 2e-3}[dtype]
    assert (gradients[3] is None) == (inputs[3] is None)
    for found, own in zip([y, *gradients], [own_y, *own_gradients], strict=True):
        if own is not None:
            atol = tolerance * max(1, np.abs(own).max(initial=0))
            np.testing.assert_allclose(found.reshape(own.shape), own, rtol=0, atol=atol)


def test_each_gradient_can_be_had_alone(device):
    inputs, is_causal = arrays_of("mask of keys", "float32")
    dy = RNG.normal(size=(2, 37, 3)).astype("float32")
    _, together = computed(device, inputs, dy, is_causal, (True, True, True, True))
    for k in range(4):
        _, alone = computed(device, inputs, dy, is_causal, [k == other for other in range(4)])
        assert np.array_equal(alone[k], together[k])


def test_the_logarithms_of_short_types_are_kept_in_float32(device):
    """In float16 they would be off by a thousandth of themselves, and so would all weights."""
    q = np.full((1, 1, 4), 16, "float16")
    k = np.full((1, 8, 4), 16, "float16") + RNG.normal(size=(1, 8, 4)).astype("float16") * 0.01
    v = RNG.normal(size=(1, 8, 4)).astype("float16")
    dy = np.ones((1, 1, 4), "float16")
    _, gradients = computed(device, [q, k, v, None], dy, False, (True, True, True, False))
    _, own = expected([q, k, v, None], dy.astype(np.float64), False)
    np.testing.assert_allclose(gradients[2], own[2], rtol=2e-3)


def test_arrays_without_features_are_refused(device):
    from emulated import call_of

    from nn_ext_cuda.kernels import KERNELS

    inputs = [np.zeros((1, 2, n), "float32") for n in (4, 4, 0)]
    refusal = KERNELS["ScaledDotProductAttention"].refuse(call_of("ScaledDotProductAttention", [*inputs, None]))
    assert "at least one feature, got 4 and 0" in refusal.reason


@pytest.mark.parametrize("mask", [(1, 2, 1, 1), (1, 1, 3, 1), (1, 2, 3, 1)])
def test_the_gradient_of_a_mask_is_zero_where_nothing_was_added_to_it(device, mask):
    """No heads, or no keys: the mask has elements all the same, whose memory must be written."""
    for leading, n_keys in [((0, 2), 5), ((1, 2), 0)]:
        inputs = [np.ones((*leading, n, 4), "float32") for n in (3, n_keys, n_keys)]
        dy = np.ones((*leading, 3, 4), "float32")
        _, gradients = computed(device, [*inputs, np.ones(mask, "float32")], dy, False, (True, True, True, True))
        assert np.array_equal(gradients[3], np.zeros(mask))


def test_attention_is_part_of_a_graph(cuda):
    import nn_core as nn
    import nn_core.functions as F

    q, k, v = (nn.Variable.from_numpy_array(RNG.normal(size=(2, 5, 4)), need_grad=True) for _ in range(3))
    y = F.sum(F.scaled_dot_product_attention(q, k, v, is_causal=True))
    for _ in range(4):
        y.forward(clear_no_need_grad=True)
        for variable in (q, k, v):
            variable.grad.zero()
        y.backward(clear_buffer=True)
    found = [y.d.copy(), *(variable.g.copy() for variable in (q, k, v))]
    values = [variable.d.astype(np.float64) for variable in (q, k, v)]
    own_y, own = expected([*values, None], np.ones((2, 5, 4)), True)
    for one, other in zip(found, [own_y.sum(), *own[:3]], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
    assert not [row for row in nn.fallback_report() if row.function == "ScaledDotProductAttention"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", ["ScaledDotProductAttention", "DropoutAttention"])
@pytest.mark.parametrize("has_mask", [False, True])
def test_memory_is_linear_in_the_lengths(device, name, dtype, has_mask):
    from emulated import call_of

    from nn_ext_cuda.kernels import KERNELS

    n_bytes = []
    for length in (512, 2048):
        arrays = [np.broadcast_to(np.float32(0), (3, length, 64))] * 3
        mask = np.broadcast_to(np.float32(0), (length,)) if has_mask else None
        call = call_of(name, [*arrays, mask], dtype, is_causal=True)
        runners = [KERNELS[name].forward(call), KERNELS[name].backward(call, [True, True, True, has_mask])]
        n_bytes.append(sum(np.prod(shape) * 8 for runner in runners for shape, _ in runner._scratch))
    assert n_bytes == [3 * 512 * 8, 3 * 2048 * 8]


def test_dropout_draws_new_numbers_at_each_replay_and_those_of_the_reference(cuda):
    import nn_core as nn
    import nn_core.functions as F

    values = [RNG.normal(size=(2, 37, 4)) for _ in range(3)]
    dy = RNG.normal(size=(2, 37, 4)).astype("float32")

    def trained(context):
        nn.seed(7)
        found = []
        with nn.context_scope(context):
            q, k, v = (nn.Variable.from_numpy_array(value, need_grad=True) for value in values)
            y, _ = F.dropout_attention(q, k, v, p=0.3, is_causal=True)
            for _ in range(5):
                y.forward(clear_no_need_grad=True)
                for variable in (q, k, v):
                    variable.grad.zero()
                y.backward(nn.NdArray.from_numpy_array(dy))
                found.append([y.d.copy(), *(variable.g.copy() for variable in (q, k, v))])
        return found

    expected = trained(nn.Context(["reference:float"]))
    found = trained(nn.get_current_context())
    assert (found[-1][0] != found[-2][0]).any()
    for given, own in zip(found, expected, strict=True):
        for one, other in zip(given, own, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=2e-5)
    assert not [row for row in nn.fallback_report() if row.function == "DropoutAttention"]
