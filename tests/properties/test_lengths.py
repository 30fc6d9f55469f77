"""Lengths that were read from a static graph: built for one batch and fed another, it computes what a fresh graph does."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

SHAPES = [(3, 4), (5, 4), (1, 4), (8, 6), (3, 4)]


def _seeded(draw):
    return lambda x: x + draw(x.shape)


#: How a program uses a length, by name: a function of a variable of shape (N, D).
USES = {
    "reshape": lambda x: F.sum(F.reshape(x, (x.shape[0], -1, 2)), axis=1),
    "reshape, method": lambda x: x.reshape(x.shape[0], 2, x.shape[1] // 2) + 1,
    "reshape, product": lambda x: F.reshape(x, (x.shape[0] * x.shape[1],)),
    "reshape, size": lambda x: F.reshape(x, (x.size,)),
    "reshape of a result": lambda x: F.tanh(_products(x)),
    "broadcast": lambda x: x * F.broadcast(F.mean(x, axis=0, keepdims=True), x.shape),
    "tile": lambda x: x + F.tile(F.max(x, axis=0, keepdims=True), (x.shape[0], 1)),
    "constant": lambda x: x * F.constant(2.5, shape=x.shape),
    "constant of a number": lambda x: F.sum(x) * F.constant(x.shape[0], shape=()),
    "randn": _seeded(lambda shape: F.randn(shape=shape, seed=3)),
    "rand": _seeded(lambda shape: F.rand(shape=shape, seed=3)),
    "randint": _seeded(lambda shape: F.randint(0, 9, shape=shape, seed=3)),
    "rand_binomial": _seeded(lambda shape: F.rand_binomial(4, 0.5, shape=shape, seed=3)),
    "rand_gamma": _seeded(lambda shape: F.rand_gamma(2.0, 1.0, shape=shape, seed=3)),
    "rand_beta": _seeded(lambda shape: F.rand_beta(2.0, 1.0, shape=shape, seed=3)),
    "random_choice": lambda x: F.random_choice(F.abs(x) + 1, F.abs(x) + 1, shape=(x.shape[0],), seed=3),
    "slice": lambda x: F.slice(F.concatenate(x, x, axis=0), start=(1, 0), stop=(x.shape[0] + 1, x.shape[1])),
    "slice, half": lambda x: F.slice(x, start=(0, x.shape[1] // 2), stop=(x.shape[0], x.shape[1])),
    "getitem": lambda x: F.concatenate(x, x + 1, axis=0)[: x.shape[0]],
    "getitem, middle": lambda x: x[x.shape[0] // 2],
    "getitem, last": lambda x: x[x.shape[0] - 1 :, None, : x.shape[1] - 1],
    "getitem, list": lambda x: x[[0, x.shape[0] - 1]],
    "getitem, half": lambda x: x[:, : x.shape[1] / 2],
    "setitem": lambda x: _assigned(F.identity(x)),
    "arange": lambda x: x * F.reshape(F.arange(0, x.shape[0]), (-1, 1)),
    "linspace": lambda x: x * F.reshape(F.linspace(0, 1, x.shape[0]), (-1, 1)),
    "one_hot": lambda x: F.one_hot(F.reshape(F.arange(0, x.shape[0]), (-1, 1)), shape=(x.shape[0],)) @ x,
    "pad": lambda x: F.pad(x, (0, x.shape[0], 0, 0)),
    "shift": lambda x: F.shift(x, (x.shape[0] - 1, 0)),
    "quotient": lambda x: F.sum(x) / x.shape[0],
    "product": lambda x: F.sum(x) * x.shape[0],
    "reciprocal": lambda x: F.sum(x) * (1 / x.shape[0]),
    "root": lambda x: x * x.shape[0] ** -0.5,
    "reversed operands": lambda x: x.shape[0] - F.mean(x) + x.shape[1] / (F.abs(x) + 1),
    "remainder": lambda x: (F.abs(x) * 7) % x.shape[0],
    "floor": lambda x: (F.abs(x) * 7) // x.shape[0],
    "comparison": lambda x: F.where(x * 3 > x.shape[0] - 4, x, x * 2),
    "mul_scalar": lambda x: F.mul_scalar(x, val=x.shape[0]),
    "clip": lambda x: F.clip_by_value(x, -1 / x.shape[0], 1 / x.shape[0]),
    "length of a result": lambda x: F.sum(x) / F.concatenate(x, x, axis=0).shape[0],
    "length of a result that is not read": lambda x: F.randn(shape=F.concatenate(x, x, x, axis=0).shape, seed=3),
    "random numbers alone": lambda x: F.randn(shape=(x.shape[0], 2), seed=3),
    "interpolate": lambda x: F.interpolate(F.reshape(x, (1, 1, *x.shape)), output_size=(2 * x.shape[0], x.shape[1])),
    "matrix_diag": lambda x: F.matrix_diag(F.constant(1, shape=(x.shape[0],))) @ x,
    "rounded": lambda x: F.constant(1, shape=(round(x.shape[1] * 0.5), -(-x.shape[0] // 2))),
    "top_k": lambda x: F.top_k_data(x, k=(x.shape[1] + 1) // 2),
    "where_mask": lambda x: F.where(F.rand(shape=x.shape, seed=2) > 0.5, x, F.constant(0, shape=x.shape)),
    "normalization": lambda x: F.sum((x - F.sum(x, axis=0, keepdims=True) / x.shape[0]) ** 2) / (x.shape[0] + 1),
    "scatter_nd": lambda x: F.scatter_nd(x, F.reshape(F.arange(0, x.shape[0]), (1, -1)), shape=(x.shape[0] + 2, x.shape[1])),
}


def _products(x):
    return F.reshape(F.batch_matmul(F.reshape(x, (x.shape[0], 1, -1)), F.reshape(x, (x.shape[0], -1, 1))), (x.shape[0],))


def _assigned(h):
    h[: h.shape[0] - 1] = h.shape[0]
    return h * 2


def _values(shape):
    return np.random.RandomState(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def _leaf(shape, need_grad=True):
    x = nn.Variable(shape, need_grad=need_grad)
    x.d = _values(shape)
    return x


def _refill(x, shape):
    x.reset_shape(shape, True)
    x.d = _values(shape)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("use", USES)
def test_values_follow(use, backend):
    with nn.context_scope(nn.Context([f"{backend}:float"])):
        x = _leaf(SHAPES[0])
        y = USES[use](x)
        for n_before, shape in enumerate(SHAPES):
            _refill(x, shape)
            y.forward()
            fresh = USES[use](_leaf(shape))
            for _ in range(n_before + 1):  # a seeded function draws other numbers in each pass
                fresh.forward()
            assert y.shape == fresh.shape
            np.testing.assert_array_equal(y.d, fresh.d)


#: Uses without a gradient, or whose gradient is zero.
_CONSTANT = {"random numbers alone", "length of a result that is not read", "rounded"}
DIFFERENTIABLE = [use for use in USES if use not in _CONSTANT]


def _loss(use, x):
    y = USES[use](x)
    return F.sum(y * F.sin(y))


@pytest.mark.parametrize("use", DIFFERENTIABLE)
def test_gradients_of_a_backward_pass_follow(use):
    x = _leaf(SHAPES[0])
    loss = _loss(use, x)
    for n_before, shape in enumerate(SHAPES):
        _refill(x, shape)
        x.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        other = _leaf(shape)
        fresh = _loss(use, other)
        for _ in range(n_before + 1):
            fresh.forward()
        other.grad.zero()
        fresh.backward()
        np.testing.assert_array_equal(x.g, other.g)


@pytest.mark.parametrize("use", DIFFERENTIABLE)
def test_gradients_as_a_graph_follow(use):
    x = _leaf(SHAPES[0])
    (dx,) = nn.grad(_loss(use, x), x)
    for n_before, shape in enumerate(SHAPES):
        _refill(x, shape)
        dx.forward()
        other = _leaf(shape)
        (fresh,) = nn.grad(_loss(use, other), other)
        for _ in range(n_before + 1):
            fresh.forward()
        np.testing.assert_array_equal(dx.d, fresh.d)
