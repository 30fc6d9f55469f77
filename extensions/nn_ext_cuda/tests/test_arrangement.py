"""Copies by tiles, reductions and rows of sizes that the samples of the conformance kit do not have, emulated."""

import numpy as np
import pytest


def ran(device, name, inputs, dy=None, **args):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    call = emulated.call_of(name, inputs, **args)
    assert KERNELS[name].refuse(call) is None
    outputs = emulated.forward(device, KERNELS[name], call, inputs)
    if dy is None:
        return outputs[0]
    return outputs[0], emulated.backward(device, KERNELS[name], call, inputs, dy, outputs)


@pytest.mark.parametrize(
    ("shape", "axes"), [((33, 70), (1, 0)), ((3, 40, 35), (0, 2, 1)), ((9, 2, 34), (2, 1, 0)), ((2, 3, 9), (2, 0, 1))]
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_transposes_are_copied_by_tiles(device, shape, axes, dtype):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    np.testing.assert_array_equal(ran(device, "Transpose", [x], axes=axes), x.transpose(axes))


def test_an_array_without_axes_is_sliced(device):
    y, (dx,) = ran(device, "Slice", [np.array(2, "float32")], np.array(3, "float32"), start=(), stop=(), step=())
    assert (y, dx) == (2, 3)


def test_tiles_are_for_axes_that_change_places():
    from nn_ext_cuda.codegen.copies import turned_axes

    assert turned_axes((40, 50), (1, 40), (50, 1)) == (1, 0)
    assert turned_axes((40, 50), (50, 1), (100, 1)) is None
    assert turned_axes((4, 50), (1, 40), (50, 1)) is None
    assert turned_axes((50,), (2,), (1,)) is None


@pytest.mark.parametrize("n", [1, 7, 8, 37])
@pytest.mark.parametrize("offset", [0, 1])
def test_packs_and_single_elements_are_the_same(device, n, offset):
    """A view that begins one element late is not aligned to 16 bytes."""
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    x = np.linspace(-2, 2, n + offset).astype("float32")
    call = emulated.call_of("Tanh", [x[offset:]])
    y = device.asarray(np.full(n + 4, -7, "float32"))
    KERNELS["Tanh"].forward(call)(device.asarray(x)[offset:], y[:n])
    np.testing.assert_allclose(y.get()[:n], np.tanh(x[offset:]), rtol=1e-6)
    assert (y.get()[n:] == -7).all()


@pytest.mark.parametrize("length", [5, 32, 33, 300, 3000])
def test_rows_of_any_length_are_normalized(device, length):
    rng = np.random.default_rng(0)
    shapes = (9, length), (1, length), (1, length), (9, length)
    x, gamma, beta, dy = (rng.normal(size=shape).astype("float32") for shape in shapes)
    y, (dx, dbeta, dgamma) = ran(device, "LayerNormalization", [x, beta, gamma], dy, batch_axis=(0,))
    scale = 1 / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    standard = (x - x.mean(axis=1, keepdims=True)) * scale
    np.testing.assert_allclose(y, standard * gamma + beta, rtol=1e-4, atol=1e-4)
    g = dy * gamma
    means = [part.mean(axis=1, keepdims=True) for part in (g, g * standard)]
    np.testing.assert_allclose(dx, (g - means[0] - standard * means[1]) * scale, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(dbeta, dy.sum(axis=0, keepdims=True), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(dgamma, (dy * standard).sum(axis=0, keepdims=True), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(3, 5000), (700, 3), (1, 70)])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_sums_of_any_shape(device, shape, axes):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    np.testing.assert_allclose(ran(device, "Sum", [x], axes=axes), x.sum(axis=axes), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_long_rows(device, axis, exclusive, reverse):
    x = np.random.default_rng(0).integers(-9, 9, (600, 2) if axis == 0 else (2, 600)).astype("float32")
    y = ran(device, "CumSum", [x], axis=axis, exclusive=exclusive, reverse=reverse)
    turned = np.flip(x, axis) if reverse else x
    sums = np.cumsum(turned, axis) - (turned if exclusive else 0)
    np.testing.assert_array_equal(y, np.flip(sums, axis) if reverse else sums)


def test_rows_picked_repeatedly_add_their_gradients(device):
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(2, 5, 3)).astype("float32"), rng.normal(size=(2, 400, 3)).astype("float32")
    numbers = rng.integers(-5, 5, (2, 400))
    y, (dx, _) = ran(device, "Gather", [x, numbers], dy, axis=1, batch_dims=1)
    np.testing.assert_array_equal(y, np.take_along_axis(x, numbers[:, :, None], 1))
    expected = np.zeros_like(x)
    for sample in range(2):
        np.add.at(expected[sample], numbers[sample], dy[sample])
    np.testing.assert_allclose(dx, expected, rtol=1e-3, atol=1e-3)
