"""Losses that are made of functions: against formulas in float64, and their gradients against differences."""

import itertools
import re

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError
from nn_core.training import cosine_embedding_loss, cross_entropy, ctc_loss, focal_loss, triplet_loss


@pytest.fixture(autouse=True)
def double():
    with nn.context_scope(nn.Context(["reference:double"])):
        yield


def computed(loss, *arrays, step=1e-5, rtol=2e-4):
    """Return the loss, after checking its gradients against central differences."""
    variables = [nn.Variable.from_numpy_array(array, need_grad=True) for array in arrays]
    y = loss(*variables)
    weights = np.random.default_rng(1).normal(size=y.shape)
    total = F.sum(y * nn.Variable.from_numpy_array(weights))
    total.forward()
    for variable in variables:
        variable.grad.zero()
    total.backward()
    gradients = [variable.g.copy() for variable in variables]
    rng = np.random.default_rng(2)
    for variable, gradient in zip(variables, gradients, strict=True):
        direction = rng.normal(size=variable.shape)
        start = variable.d.copy()
        ends = []
        for signed in (step, -step):
            variable.d = start + signed * direction
            total.forward()
            ends.append(total.d.item())
        variable.d = start
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(np.sum(direction * gradient), rel=rtol, abs=1e-6)
    y.forward()
    return y.d.copy()


def log_softmax(x):
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(5, 4)), np.array([0, 3, 1, 1, 2])
W = [1.0, 2.0, 0.5, 3.0]


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("labels", [T, T[:, None]], ids=["row", "column"])
def test_cross_entropy(smoothing, weights, labels):
    t = nn.Variable.from_numpy_array(labels)
    found = computed(lambda x: cross_entropy(x, t, smoothing, weights), X)
    w = np.ones(4) if weights is None else np.array(weights)
    target = np.eye(4)[T] * (1 - smoothing) + smoothing / 4
    expected = -(w * target * log_softmax(X)).sum(axis=1) / w[T].mean()
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-6)
    assert found.shape == (5, 1)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("weights", [None, W])
def test_focal_loss(gamma, weights):
    t = nn.Variable.from_numpy_array(T)
    found = computed(lambda x: focal_loss(x, t, gamma, weights), X)
    log_p = log_softmax(X)[np.arange(5), T]
    expected = -((1 - np.exp(log_p)) ** gamma) * log_p * (1 if weights is None else np.array(W)[T])
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-6)


def test_focal_loss_of_sure_samples_has_finite_gradients():
    x = nn.Variable.from_numpy_array([[100.0, 0.0], [0.0, 100.0]], need_grad=True)
    loss = F.sum(focal_loss(x, nn.Variable.from_numpy_array([0, 0]), 0.5))
    loss.forward()
    x.grad.zero()
    loss.backward()
    assert loss.d == pytest.approx(100.0)
    assert np.isfinite(x.g).all()


def test_triplet_loss():
    a, p, n = RNG.normal(size=(3, 6, 3))
    n[0] = a[0] + 50
    found = computed(lambda *given: triplet_loss(*given, margin=0.5), a, p, n)
    distances = [np.linalg.norm(a - other, axis=1) for other in (p, n)]
    np.testing.assert_allclose(found.ravel(), np.maximum(0, distances[0] - distances[1] + 0.5), rtol=1e-6)
    assert found[0] == 0
    same = nn.Variable.from_numpy_array(a, need_grad=True)
    loss = F.sum(triplet_loss(same, same, nn.Variable.from_numpy_array(n)))
    loss.forward()
    same.grad.zero()
    loss.backward()
    assert np.isfinite(same.g).all()


def test_cosine_embedding_loss():
    a, b = RNG.normal(size=(2, 6, 3))
    signs = np.array([1, -1, 1, 0, -1, -1])
    found = computed(lambda a, b: cosine_embedding_loss(a, b, nn.Variable.from_numpy_array(signs), margin=-0.5), a, b)
    cosine = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(found.ravel(), np.where(signs > 0, 1 - cosine, np.maximum(0, cosine + 0.5)), rtol=1e-6)


def by_all_alignments(log_p, labels, blank):
    """Sum over all sequences of classes whose repetitions and blanks leave the labels."""
    total = 0.0
    for path in itertools.product(range(log_p.shape[1]), repeat=len(log_p)):
        merged = [k for k, _ in itertools.groupby(path) if k != blank]
        if merged == list(labels):
            total += np.exp(sum(log_p[step, k] for step, k in enumerate(path)))
    return -np.log(total)


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_loss_is_that_of_all_alignments(blank):
    x = RNG.normal(size=(4, 5, 3))
    classes = [k for k in range(3) if k != blank]
    labels = np.array([[classes[0], classes[1]], [classes[1], classes[1]], [classes[0], 0], [0, 0]])
    n_steps, n_labels = np.array([5, 4, 3, 2]), np.array([2, 2, 1, 0])
    rest = [nn.Variable.from_numpy_array(array) for array in (labels, n_steps, n_labels)]
    found = computed(lambda x: ctc_loss(x, *rest, blank=blank), x, step=1e-3, rtol=1e-3)  # float32
    for sample in range(4):
        log_p = log_softmax(x[sample, : n_steps[sample]])
        expected = by_all_alignments(log_p, labels[sample, : n_labels[sample]], blank)
        assert found[sample, 0] == pytest.approx(expected, rel=1e-5)


def test_ctc_loss_of_long_sequences_is_finite():
    x = nn.Variable.from_numpy_array(100 * RNG.normal(size=(1, 400, 5)).astype(np.float32), need_grad=True)
    loss = ctc_loss(x, nn.Variable.from_numpy_array(RNG.integers(1, 5, size=(1, 50))))
    loss.forward()
    x.grad.zero()
    loss.backward()
    assert np.isfinite(loss.d).all()
    np.testing.assert_allclose(x.g.sum(axis=2), 0, atol=1e-4)


def variables(*shapes):
    return [nn.Variable(shape) for shape in shapes]


def run(loss):
    loss.forward()


def integers(values):
    return nn.Variable.from_numpy_array(np.array(values))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: cross_entropy(*variables((5, 4, 2), (5, 1))),
            ShapeError,
            "cross_entropy: x must have the shape (N, K), got (5",
        ),
        (lambda: cross_entropy(*variables((5, 4), (4, 1))), ShapeError, "t must have the shape (5, 1), got (4, 1)"),
        (lambda: cross_entropy(*variables((5, 4), (5,)), 1.5), ArgumentError, "label_smoothing must be from 0 to 1, got 1.5"),
        (
            lambda: cross_entropy(*variables((5, 4), (5,)), 0, [1]),
            ArgumentError,
            "class_weight must have 4 weights of at least 0",
        ),
        (lambda: focal_loss(*variables((5, 4), (5,)), -1), ArgumentError, "focal_loss: gamma must be at least 0, got -1"),
        (
            lambda: triplet_loss(*variables((5, 4), (5, 4), (5, 3))),
            ShapeError,
            "embeddings must have one shape (N, D), got anchor",
        ),
        (
            lambda: cosine_embedding_loss(*variables((5, 4), (5, 4), (5,)), 2),
            ArgumentError,
            "margin must be from -1 to 1, got 2",
        ),
        (
            lambda: ctc_loss(*variables((5, 4), (5, 4))),
            ShapeError,
            "ctc_loss: x and t must have the shapes (N, T, K) and (N, L)",
        ),
        (
            lambda: ctc_loss(*variables((5, 4, 3), (5, 4)), blank=3),
            ArgumentError,
            "blank must be one of 3 classes from 0, got 3",
        ),
        (lambda: ctc_loss(*variables((5, 4, 3), (5, 4), (4,))), ShapeError, "x_lengths must have the shape (5,), got (4,)"),
        (
            lambda: run(ctc_loss(nn.Variable((1, 2, 3)), integers([[1, 1]]))),
            ArgumentError,
            "there must be a step for each label, and one between equal ones, got 2 steps for 3 in sample 0",
        ),
        (lambda: run(ctc_loss(nn.Variable((1, 2, 3)), integers([[0]]))), ArgumentError, "not the blank 0, got 0 in sample 0"),
        (
            lambda: run(ctc_loss(nn.Variable((1, 2, 3)), integers([[1]]), integers([3]))),
            ArgumentError,
            "lengths must be from 1 to 2 steps and from 0 to 1 labels, got 3 and 1 in sample 0",
        ),
    ],
)
def test_refuses(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()
