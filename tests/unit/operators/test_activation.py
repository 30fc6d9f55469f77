"""Activation functions: truth of every kernel and gradient rule."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.operators import check_forward, check_gradient, check_table, run, run_gradient

RNG = np.random.default_rng(22)
X = np.array([[-7.5, -2.2, -0.7, -0.05], [0.08, 0.9, 2.8, 6.9]])
EXTREME = np.array([-1e4, -100.0, 100.0, 1e4])


def test_every_function_of_the_topic_has_its_attachments() -> None:
    check_table("activation")


def elu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


POINTWISE: list[tuple[str, Any, dict[str, Any]]] = [
    ("ELU", elu, {}),
    ("ELU", lambda x: elu(x, 0.3), {"alpha": 0.3}),
    ("GELU", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), {}),
    ("HardSigmoid", lambda x: np.clip(0.2 * x + 0.5, 0, 1), {}),
    ("HardTanh", lambda x: np.clip(x, -1, 1), {}),
    ("LeakyReLU", lambda x: np.where(x > 0, x, 0.1 * x), {}),
    ("LeakyReLU", lambda x: np.where(x > 0, x, 0.7 * x), {"alpha": 0.7, "inplace": True}),
    ("LeakyReLU", lambda x: np.maximum(x, 0), {"alpha": 0.0}),
    ("LeakyReLU", lambda x: np.where(x > 0, x, -0.7 * x), {"alpha": -0.7}),
    ("LogSigmoid", scipy.special.log_expit, {}),
    ("Mish", lambda x: x * np.tanh(np.logaddexp(0, x)), {}),
    ("ReLU", lambda x: np.maximum(x, 0), {}),
    ("ReLU", lambda x: np.maximum(x, 0), {"inplace": True}),
    ("ReLU6", lambda x: np.clip(x, 0, 6), {}),
    ("SELU", lambda x: 1.05070098735548 * elu(x, 1.673263242354377), {}),
    ("SELU", lambda x: 2 * elu(x, 0.5), {"scale": 2, "alpha": 0.5}),
    ("Sigmoid", scipy.special.expit, {}),
    ("Sinc", lambda x: np.sinc(x / np.pi), {}),
    ("SoftPlus", lambda x: np.logaddexp(0, x), {}),
    ("SoftPlus", lambda x: np.logaddexp(0, 3 * x) / 3, {"beta": 3}),
    ("SoftSign", lambda x: x / (1 + np.abs(x)), {}),
    ("Swish", lambda x: x * scipy.special.expit(x), {}),
    ("Tanh", np.tanh, {}),
    ("TanhShrink", lambda x: x - np.tanh(x), {}),
]


@pytest.mark.parametrize(("name", "truth", "args"), POINTWISE, ids=[f"{row[0]}{row[2]}" for row in POINTWISE])
def test_pointwise_activations(name: str, truth: Any, args: dict[str, Any]) -> None:
    check_forward(name, [X], truth, **args)
    check_forward(name, [np.array(0.0)], truth, **args)
    check_forward(name, [np.array(-1.5)], truth, **args)
    check_forward(name, [np.zeros((0, 3))], np.zeros((0, 3)), **args)
    check_forward(name, [EXTREME], truth, dtypes=["float64", "float32"], **args)
    check_gradient(name, [X], **args)
    check_gradient(name, [EXTREME], step=1e-3, atol=1e-6, **args)


#: Gradients at points where the two sides differ.
KINKS: list[tuple[str, float, float]] = [
    ("ReLU", 0, 0),
    ("LeakyReLU", 0, 0.1),
    ("ELU", 0, 1),
    ("SELU", 0, 1.05070098735548 * 1.673263242354377),
    ("ReLU6", 0, 0),
    ("ReLU6", 6, 0),
    ("HardSigmoid", -2.5, 0.2),
    ("HardSigmoid", 2.5, 0.2),
    ("HardTanh", -1, 1),
    ("HardTanh", 1, 1),
    ("Sinc", 0, 0),
    ("SoftSign", 0, 1),
]


@pytest.mark.parametrize(("name", "x", "slope"), KINKS)
def test_gradients_at_kinks(name: str, x: float, slope: float) -> None:
    np.testing.assert_allclose(run_gradient(name, np.array(float(x)))[0], slope, rtol=1e-14)


@pytest.mark.parametrize("name", sorted({row[0] for row in POINTWISE}))
def test_nan_stays_nan(name: str) -> None:
    assert np.isnan(run(name, np.array([np.nan]))[0]).all()


@pytest.mark.parametrize("name", ["GELU", "Mish", "Swish", "SoftPlus", "ELU", "LogSigmoid", "SoftSign", "Sigmoid"])
def test_gradients_of_large_numbers_are_finite(name: str) -> None:
    (dx,) = run_gradient(name, np.array([-1e200, -1000.0, 1000.0, 1e200]))
    assert np.isfinite(dx).all()


def test_sinc_gradient_is_accurate_around_zero() -> None:
    x = np.array([1e-8, 1e-4, 0.01, 0.0999, 0.1001, -0.05])
    exact = [sum((-1) ** k * 2 * k * v ** (2 * k - 1) / math.factorial(2 * k + 1) for k in range(1, 9)) for v in x]
    np.testing.assert_allclose(run_gradient("Sinc", x)[0], exact, rtol=1e-12)


@pytest.mark.parametrize("inplace", [False, True])
def test_a_negative_slope_keeps_its_input_for_training(inplace: bool) -> None:
    x = nn.Variable.from_numpy_array(np.float32([-2, -1, 0, 1, 2]), need_grad=True)
    y = F.leaky_relu(F.add_scalar(x, 0), -0.5, inplace=inplace)
    x.grad.zero()
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    assert (y.d.tolist(), x.g.tolist()) == ([1, 0.5, 0, 1, 2], [-0.5, -0.5, -0.5, 1, 1])


@pytest.mark.parametrize(("name", "truth"), [("Softmax", scipy.special.softmax), ("LogSoftmax", scipy.special.log_softmax)])
@pytest.mark.parametrize("axis", [None, 0, 1, -2])
def test_softmax_along_an_axis(name: str, truth: Any, axis: int | None) -> None:
    x = RNG.normal(size=(2, 3, 4))
    args = {} if axis is None else {"axis": axis}
    check_forward(name, [x], lambda x: truth(x, axis=-1 if axis is None else axis), rtol=1e-3, **args)
    check_gradient(name, [x], **args)


@pytest.mark.parametrize(("name", "truth"), [("Softmax", scipy.special.softmax), ("LogSoftmax", scipy.special.log_softmax)])
def test_softmax_of_large_and_of_no_scores(name: str, truth: Any) -> None:
    check_forward(name, [np.array([[1e4, 0.0, -1e4], [60000.0, 60000.0, 0.0]])], lambda x: truth(x, axis=1))
    for shape in ((0, 3), (3, 0)):
        check_forward(name, [np.zeros(shape)], np.zeros(shape))
    with pytest.raises(ArgumentError, match="axis must be in"):
        run(name, np.array(1.0))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concatenated_units_double_an_axis(axis: int) -> None:
    x = np.concatenate([X, X[:, ::-1] + 0.01], axis=0).reshape(2, 2, 4)
    check_forward("CReLU", [x], lambda x: np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], axis), axis=axis)
    check_gradient("CReLU", [x], axis=axis)
    check_forward("CELU", [x], lambda x: np.concatenate([elu(x, 0.4), elu(-x, 0.4)], axis), axis=axis, alpha=0.4)
    check_gradient("CELU", [x], axis=axis, alpha=0.4)


def test_concatenated_units_at_zero_and_without_elements() -> None:
    for name, slope in (("CReLU", -1), ("CELU", 0)):
        np.testing.assert_array_equal(run_gradient(name, np.zeros((1, 1)))[0], [[slope]])
        check_forward(name, [np.zeros((2, 0))], np.zeros((2, 0)))


@pytest.mark.parametrize(("shape", "base_axis"), [((), 1), ((1,), 1), ((3,), 1), ((2,), 0), ((4,), -1)])
def test_prelu_has_one_slope_or_one_per_channel(shape: tuple[int, ...], base_axis: int) -> None:
    x, slope = RNG.normal(size=(2, 3, 4)), RNG.uniform(0.1, 0.9, size=shape)

    def truth(x: np.ndarray, slope: np.ndarray) -> np.ndarray:
        aligned = slope.reshape(-1, *(1,) * (2 - base_axis % 3)) if slope.size > 1 else slope
        return np.where(x >= 0, x, aligned * x)

    check_forward("PReLU", [x, slope], truth, base_axis=base_axis)
    check_gradient("PReLU", [x, slope], base_axis=base_axis)


def test_prelu_at_zero_and_its_shapes() -> None:
    dx, dslope = run_gradient("PReLU", np.zeros((1, 1)), np.array(0.3))
    assert dx == 1
    assert dslope == 0
    check_forward("PReLU", [np.zeros((0, 3)), np.ones(3)], np.zeros((0, 3)))
    with pytest.raises(ShapeError, match=r"x1 must have the shape \(\), \(1,\) or \(3,\) of the channels of x0, got \(2,\)"):
        run("PReLU", np.zeros((2, 3)), np.zeros(2))
