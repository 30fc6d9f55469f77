"""Calls at the edge of what is allowed: no axes, no channels, axes with two roles, and more elements than 32 bits count."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.dispatch.registry import spec_of
from nn_core.ext import ArrayDesc, Call
from nn_ext_cpu.kernels import KERNELS


def both(function, *shapes):
    """Results and gradients on the CPU backend and by the reference."""
    found = []
    for backend in ("cpu", "reference"):
        rng = np.random.default_rng(3)
        with nn.context_scope(nn.Context([backend])):
            inputs = [nn.Variable.from_numpy_array(rng.normal(size=shape), need_grad=True) for shape in shapes]
            y = function(*inputs)
            for x in inputs:
                x.grad.zero()
            y.forward()
            y.backward(rng.normal(size=y.shape))
            found.append([np.array(y.d), *[np.array(x.g) for x in inputs]])
    for native, reference in zip(*found, strict=True):
        np.testing.assert_allclose(native, reference, rtol=1e-5, atol=1e-6)


CALLS = {
    "flip": (lambda x: F.flip(x, axes=()), ()),
    "shift": (lambda x: F.shift(x, shifts=()), ()),
    "prelu without channels": (F.prelu, (2, 0, 3), (0,)),
    "prelu with one channel": (F.prelu, (2, 1, 3), (1,)),
    "instance_normalization": (lambda x: F.instance_normalization(x, None, None, channel_axis=0), (3, 2, 4, 4)),
    "instance_normalization of the batch": (
        lambda x: F.instance_normalization(x, None, None, channel_axis=0, batch_axis=1),
        (3, 2, 4, 4),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_edges(name):
    both(*CALLS[name])


def test_an_index_that_32_bits_do_not_hold_is_left_to_the_reference():
    spec = spec_of("Max")
    args = {"axes": (0,), "keep_dims": False, "with_index": True, "only_index": False}
    for length, refused in ((2**31, True), (2**31 - 1, False)):
        outputs = (ArrayDesc((), "float32"), ArrayDesc((), "int64"))
        refusal = KERNELS["Max"].refuse(Call(spec, args, (ArrayDesc((length,), "float32"),), outputs, "float32", "0"))
        assert (refusal is not None) == refused
        assert refusal is None or "takes axes of less than 2^31 elements, got 2147483648" in str(refusal)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_the_gradient_of_gelu_where_powers_overflow(backend):
    with nn.context_scope(nn.Context([backend])):
        x = nn.Variable.from_numpy_array(np.array([1e20, -1e20, 3e38, -3e38], np.float32), need_grad=True)
        y = F.gelu(x)
        x.grad.zero()
        y.forward()
        y.backward(1)
    np.testing.assert_array_equal(x.g, [1, 0, 1, 0])


@pytest.mark.parametrize("argument", ["stride", "dilation"])
def test_steps_that_onednn_cannot_count_are_left_to_others(argument: str) -> None:
    x, w = (nn.NdArray.from_numpy_array(np.ones(shape)) for shape in ((1, 2, 3, 3), (2, 2, 1, 1)))
    near, far = (F.convolution(x, w, **{argument: (step, step)}) for step in (2**20, 2**40))
    np.testing.assert_array_equal(near.data, far.data)


def computed(function, *arrays):
    with nn.context_scope(nn.Context(["cpu"])):
        y = function(*map(nn.Variable.from_numpy_array, arrays))
        y.forward()
        return y.d.copy()


@pytest.mark.parametrize("function", [F.sin, F.cos, F.tan])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_angle_does_not_depend_on_larger_ones_beside_it(function, dtype):
    angles = np.linspace(-200, 200, 500).astype(dtype)
    np.testing.assert_array_equal(computed(function, np.append(angles, dtype(1e7)))[:-1], computed(function, angles))


def test_a_cross_entropy_is_the_same_within_a_vector_and_beyond_the_last():
    rng = np.random.default_rng(0)
    p, t = rng.uniform(0.05, 0.95, 400).astype(np.float32), rng.uniform(0, 1, 400).astype(np.float32)
    alone = [computed(F.binary_cross_entropy, p[i : i + 1], t[i : i + 1])[0] for i in range(400)]
    np.testing.assert_array_equal(computed(F.binary_cross_entropy, p, t), alone)
