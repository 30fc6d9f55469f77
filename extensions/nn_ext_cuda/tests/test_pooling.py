"""Gradients of maximum pooling in packs of channels and without, on an emulated device."""

import dataclasses

import numpy as np
import pytest


def channels_last(desc):
    """The same array with its channels innermost in memory."""
    batch, channels, *spatial = desc.shape
    return dataclasses.replace(desc, strides=np.moveaxis(np.empty((batch, *spatial, channels), desc.dtype), -1, 1).strides)


def gradient(x, dy, kernel, stride, pad):
    """By definition: dy goes to the first maximum of its window, never to the padding."""
    edges = ((0, 0), (0, 0), *((p, p + k) for p, k in zip(pad, kernel, strict=True)))
    ranks = np.where(np.isnan(x), 1e9, np.where(np.isneginf(x), -1e9, x.astype("float64")))  # a NaN counts as the largest
    padded = np.pad(ranks, edges, constant_values=-np.inf)
    dx = np.zeros_like(padded)
    for place in np.ndindex(dy.shape):
        corner = [index * step for index, step in zip(place[2:], stride, strict=True)]
        window = (*place[:2], *(slice(start, start + size) for start, size in zip(corner, kernel, strict=True)))
        values = padded[window]
        first = np.unravel_index(values.argmax(), values.shape)
        dx[window][first] += dy[place]
    inside = (slice(None), slice(None), *(slice(p, p + n) for p, n in zip(pad, x.shape[2:], strict=True)))
    return dx[inside]


CASES = {
    "overlap": ((2, 8, 9, 7), (3, 3), (2, 2), (1, 1)),
    "apart": ((1, 16, 6, 4), (2, 2), (2, 2), (0, 0)),
    "odd channels": ((2, 3, 7, 8), (3, 2), (1, 2), (1, 0)),
    "one axis": ((2, 8, 11), (4,), (3,), (2,)),
    "three axes": ((1, 4, 5, 4, 6), (2, 3, 2), (1, 2, 2), (1, 1, 0)),
    "large windows": ((1, 8, 20, 20), (17, 16), (3, 2), (0, 0)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("offset", [0, 1])
def test_the_first_maximum_gets_the_gradient(device, case, is_last, dtype, offset):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    shape, kernel, stride, pad = CASES[case]
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 3, shape).astype(dtype)  # many are equal
    x[rng.random(shape) < 0.05] = -np.inf
    x[rng.random(shape) < 0.02] = np.nan
    call = emulated.call_of("MaxPooling", [x], dtype, kernel=kernel, stride=stride, pad=pad, ignore_border=True)
    dy = rng.integers(-3, 4, call.outputs[0].shape).astype(dtype)

    def laid_out(array):
        turned = np.moveaxis(array, 1, -1) if is_last else array
        memory = device.asarray(np.zeros(array.size + 64 + offset, dtype))
        start = -int(memory.data.ptr) % 64 // memory.itemsize + offset
        found = memory[start : start + array.size].reshape(turned.shape)
        found[...] = device.asarray(np.ascontiguousarray(turned))
        return found

    if is_last:
        call = dataclasses.replace(
            call, inputs=tuple(map(channels_last, call.inputs)), outputs=tuple(map(channels_last, call.outputs))
        )
    arrays = [laid_out(x), None, laid_out(dy), laid_out(np.full(shape, -7, dtype))]
    program = KERNELS["MaxPooling"].backward(call, [True])
    program(*arrays)
    found = arrays[3].get()
    np.testing.assert_array_equal(np.moveaxis(found, -1, 1) if is_last else found, gradient(x, dy, kernel, stride, pad))
    is_packed = is_last and shape[1] % (16 // np.dtype(dtype).itemsize) == 0
    assert ("#define PACK 1\n" in program.launches[0].code.text) != is_packed


@pytest.mark.parametrize("shape", [(3, 8, 5, 6), (2, 5, 7), (2, 16, 40, 40), (2, 8, 2, 3, 4), (1, 3, 1, 1)])
@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_whole_images_are_averaged_in_either_layout(device, shape, is_last, dtype):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    rng = np.random.default_rng(0)
    x, axes = rng.integers(-9, 9, shape).astype(dtype), tuple(range(2, len(shape)))
    kernel, call = KERNELS["GlobalAveragePooling"], emulated.call_of("GlobalAveragePooling", [x], dtype)
    dy = rng.normal(size=call.outputs[0].shape).astype(dtype)
    if is_last:
        (desc,), (result,) = call.inputs, call.outputs
        call = dataclasses.replace(call, inputs=(channels_last(desc),), outputs=(channels_last(result),))
    given = device.asarray(np.ascontiguousarray(np.moveaxis(x, 1, -1)) if is_last else x)
    y, dx = device.asarray(np.zeros(dy.shape, dtype)), device.asarray(np.full(given.shape, -7, dtype))
    kernel.forward(call)(given, y)
    np.testing.assert_allclose(y.get(), x.astype("float64").mean(axes, keepdims=True), rtol=1e-3, atol=1e-3)
    kernel.backward(call, [True])(None, None, device.asarray(dy), dx)
    found = np.moveaxis(dx.get(), -1, 1) if is_last else dx.get()
    expected = np.broadcast_to(dy.astype("float64") / np.prod(shape[2:]), shape)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
