"""Weights of recurrent networks in one piece of memory: how often that is filled, and that it is never too rarely."""

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S


def drawn(seed, shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def recurrent(x, weight):
    return F.rnn(x, nn.Variable.from_numpy_array(np.zeros((1, 1, 2, 4), "float32")), weight)[0]


def recurrent_by_definition(x, w):
    h, found = np.zeros((2, 4)), []
    for step in x:
        h = np.tanh(np.concatenate([step, h], axis=1) @ w[0].T)
        found.append(h)
    return np.stack(found)


def test_weights_of_recurrent_networks_are_packed_once(layouts):
    images, shape = drawn(5, (3, 2, 5)), (1, 4, 9)
    x, weight = nn.Variable.from_numpy_array(images, need_grad=True), nn.Variable(shape, need_grad=True)
    weight.d = values = drawn(6, shape)
    y = recurrent(x, weight)
    loss = F.mean(y)
    solver = S.Sgd(0.5)
    solver.set_parameters({"w": weight})

    def infer():
        y.forward(clear_buffer=True)
        np.testing.assert_allclose(y.d, recurrent_by_definition(images, values), rtol=0, atol=1e-2)

    def train():
        nonlocal values
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        x.grad.zero()
        loss.backward(64.0, clear_buffer=True)
        before, gradient = values, weight.g.astype("float64") / 64
        small = 1e-3 * np.random.default_rng(1).normal(size=shape)
        change = [recurrent_by_definition(images, before + sign * small).mean() for sign in (1, -1)]
        assert abs((gradient * small).sum() - (change[0] - change[1]) / 2) < 2e-2 * abs(gradient).max() * abs(small).sum()
        solver.update()
        values = (before - 0.5 * weight.g).astype("float32")

    for _ in range(3):
        infer()
    assert [layouts(infer) for _ in range(2)] == [0, 0]
    for _ in range(4):
        train()
    assert [layouts(train) for _ in range(2)] == [1, 1]
    for seed in range(4):
        weight.d = values = drawn(seed, shape)
        infer()
        train()
        infer()
