"""Gradients that users check: right ones pass, wrong ones of each kind are found."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.graph.grad import USER_BACKWARD
from nn_core.errors import ArgumentError
from nn_core.function import PythonFunction
from nn_core.testing import check_gradients

rng = np.random.default_rng(0)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (lambda x: F.sigmoid(x) * x, [rng.normal(size=(3, 4))]),
        (F.affine, [rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), rng.normal(size=2)]),
        (F.softmax_cross_entropy, [rng.normal(size=(3, 4)), np.array([[0], [3], [1]])]),
        (lambda x: (F.exp(x), F.sum(x**3)), [rng.normal(size=(2, 3)).astype(np.float32)]),
        (lambda x: F.convolution(x, x), [rng.normal(size=(1, 2, 3, 3))]),
    ],
)
def test_right_gradients(function, arrays, order):
    check_gradients(function, *arrays, order=order)


class Cube(PythonFunction):
    """x³ with a gradient that is `factor` times the right one."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    @property
    def name(self):
        return "Cube"

    def min_outputs(self):
        return 1

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        outputs[0].data[...] = inputs[0].data ** 3

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        gradient = self.factor * 3 * inputs[0].data ** 2 * outputs[0].grad
        inputs[0].grad[...] = inputs[0].grad + gradient if accum[0] else gradient

    def grad_depends_output_data(self, i, o):
        return False


def test_a_wrong_gradient_is_found():
    x = rng.normal(size=(2, 3))
    with pytest.raises(AssertionError, match=r"backward\(\), direction 0"):
        check_gradients(Cube(1.1), x, step=1e-3, rtol=1e-2)
    check_gradients(Cube(1.0), x, step=1e-3, rtol=1e-2)  # such functions compute in float32


@pytest.mark.parametrize(
    ("name", "slope", "message"),
    [("Sin", lambda x: F.cos(x) * 1.01, "nn.grad, direction 0"), ("Cos", F.sin, "second derivative, direction 0")],
)
def test_wrong_rules_are_found(monkeypatch, name, slope, message):
    x = rng.normal(size=(2, 3))
    check_gradients(F.sin, x, order=2)
    monkeypatch.setitem(USER_BACKWARD, name, lambda grads, inputs, *_: grads[0] * slope(inputs[0]))
    check_gradients(F.sin, x, order=1)
    with pytest.raises(AssertionError, match=message):
        check_gradients(F.sin, x, order=2)


@pytest.mark.parametrize("function", [F.abs, F.relu, F.round])
def test_kinks_are_no_wrong_gradients(function):
    with pytest.raises(ArgumentError, match="check_gradients: function must be smooth at arrays, got a kink or a jump"):
        check_gradients(lambda x: function(x * 1e3) if function is F.round else function(x), np.array([0.0, 0.0005]))


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match=r"order must be 1 or 2, .* got 3 and float64"):
        check_gradients(F.tanh, np.ones(2), order=3)
    with pytest.raises(ArgumentError, match="got 1 and int64"):
        check_gradients(F.tanh, np.ones(2, np.int64))
    with pytest.raises(ArgumentError, match="got 1 and no array"):
        check_gradients(lambda: nn.Variable((2,)))


def test_the_context_is_kept():
    before = nn.get_current_context()
    check_gradients(F.tanh, np.ones(2))
    assert nn.get_current_context() == before
