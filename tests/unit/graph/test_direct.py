"""Backward passes of graphs whose structure is new: they run function by function, and compile when it comes back."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.engine.graph import backward, direct
from nn_core.errors import ShapeError


@pytest.fixture
def compilations(monkeypatch):
    """Count the compilations of backward passes."""
    counted = []
    compiled = backward._compiled
    monkeypatch.setattr(backward, "_compiled", lambda *args: counted.append(1) or compiled(*args))
    monkeypatch.setattr(direct, "_SEEN", {})
    return counted


def leaf(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return nn.Variable.from_numpy_array(values, need_grad=True)


def branched(x, w):
    h = F.tanh(F.affine(x, w))
    a, b = F.split(F.reshape(h, (2, -1, h.shape[1])), axis=0)
    return F.mean((a + b) * F.sigmoid(b) + F.sum(h, axis=0)) + F.mean(h * h) + F.mean(w)


def normalized(x, w):
    shape = (1, w.shape[1])
    beta, gamma, mean, variance = (nn.Variable.from_numpy_array(np.ones(shape, np.float32)) for _ in range(4))
    gamma.need_grad = True
    return F.mean(F.batch_normalization(F.affine(x, w), beta, gamma, mean, variance) ** 3)


def embedded(x, w):
    index = nn.Variable.from_numpy_array(np.array([[1, 0], [1, 1]]))
    return F.mean(F.embed(index, w) * 3) + F.mean(F.softmax_cross_entropy(F.affine(x, w), nn.Variable((4, 1))))


def convolved(x, w):
    image = F.reshape(x, (1, 1, 4, 4))
    return F.mean(F.max_pooling(F.relu(F.convolution(image, F.reshape(w, (3, 1, 2, 2)))), (2, 2)) * F.sum(w))


@pytest.mark.parametrize("build", [branched, normalized, embedded, convolved])
@pytest.mark.parametrize("start", [1, 0.5, "array"])
@pytest.mark.parametrize("zeroed", [True, False])
def test_it_gives_what_the_compiled_pass_gives(build, start, zeroed, compilations):
    x, w = leaf(4, 4), leaf(4, 3, seed=1)
    found = []
    for _ in range(4):  # at once, compiled, by the template
        for variable in (x, w):
            variable.grad.zero()
            if not zeroed:
                variable.g = 2.0
        with nn.auto_forward():
            loss = build(x, w)
        loss.backward(nn.NdArray.from_numpy_array(np.full((), 1.5)) if start == "array" else start, clear_buffer=True)
        found.append([x.g.copy(), w.g.copy()])
    for grads in found[1:]:
        for ours, first in zip(grads, found[0], strict=True):
            np.testing.assert_allclose(ours, first, rtol=2e-5, atol=1e-6)
    assert np.abs(found[0][1] - (0 if zeroed else 2)).max() > 1e-4


def train_chain(x, w, depth, is_followed=True):
    with nn.auto_forward():
        h = x if is_followed else F.reshape(F.sin(x), (4, 4))  # a view has a node
        for _ in range(depth):
            h = F.tanh(F.affine(h, w))
        loss = F.mean(h)
    loss.backward(clear_buffer=True)


def test_a_pass_is_compiled_when_its_structure_comes_twice_in_a_row(compilations):
    x, w = leaf(4, 4), leaf(4, 4, seed=1)
    for depth, count in ((1, 0), (2, 0), (3, 0), (2, 0), (2, 1), (2, 1)):
        train_chain(x, w, depth)
        assert len(compilations) == count


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_pass_is_compiled_when_its_structure_comes_often(compilations, monkeypatch, is_followed):
    monkeypatch.setattr(direct, "MAX_RUNS", 3)
    x, w = leaf(4, 4), leaf(4, 4, seed=1)
    for count in (0, 0, 0, 2, 2):
        for depth in (1, 2):
            train_chain(x, w, depth, is_followed)
        assert len(compilations) == count


def test_structures_are_forgotten_in_the_long_run(compilations, monkeypatch):
    monkeypatch.setattr(direct, "MAX_SEEN", 3)
    x = leaf(2, 2)
    for depth in range(1, 9):
        with nn.auto_forward():
            h = x
            for _ in range(depth):
                h = F.sin(h)
            loss = F.mean(h)
        loss.backward(clear_buffer=True)
        assert len(direct._SEEN) <= 3


def test_half_precision_is_compiled_at_once(compilations):
    x = leaf(2, 2)
    with nn.context_scope(nn.Context(["reference:half"])), nn.auto_forward():
        loss = F.mean(F.sin(x))
    loss.backward(clear_buffer=True)
    assert len(compilations) == 1


def test_shapes_of_gradients_are_checked(compilations):
    x = leaf(2, 2)
    with nn.auto_forward():
        y = F.sin(x)
    with pytest.raises(ShapeError, match=r"grad must have the variable's shape \(2, 2\), got \(3,\)"):
        y.backward(np.ones(3), clear_buffer=True)


def test_parameters_of_skipped_layers_keep_their_gradients(compilations):
    nn.clear_parameters()
    rng = np.random.default_rng(3)
    x = leaf(2, 3)
    for _ in range(6):
        taken = [i for i in range(5) if rng.random() < 0.5]
        for parameter in nn.get_parameters().values():
            parameter.grad.zero()
        with nn.auto_forward():
            h = x
            for i in taken:
                h = h + F.tanh(PF.affine(h, 3, name=f"layer{i}"))
            loss = F.sum(h)
        loss.backward(clear_buffer=True)
        for name, parameter in nn.get_parameters().items():
            assert np.any(parameter.g) == (int(name.split("/")[0][-1]) in taken)
    nn.clear_parameters()
