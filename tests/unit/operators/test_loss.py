"""Losses and measures of error: truth of every kernel and gradient rule."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.registry import SHAPE_RULES
from nn_core.testing.operators import check_forward, check_gradient, check_table, run, run_gradient, spec_of

RNG = np.random.default_rng(23)
X0 = np.array([[-2.0, -0.4, 0.3], [1.2, 2.5, 0.0]])
X1 = np.array([[0.7, -0.1, 0.9], [1.0, -1.5, 0.2]])
TINY = 2.0**-126


def test_every_function_of_the_topic_has_its_attachments() -> None:
    check_table("loss")


DIFFERENCES: list[tuple[str, Any, dict[str, float]]] = [
    ("SquaredError", lambda d: d * d, {}),
    ("AbsoluteError", np.abs, {}),
    ("HuberLoss", lambda d: np.where(np.abs(d) < 1, d * d, 2 * np.abs(d) - 1), {}),
    ("HuberLoss", lambda d: np.where(np.abs(d) < 0.47, d * d, 0.47 * (2 * np.abs(d) - 0.47)), {"delta": 0.47}),
    ("EpsilonInsensitiveLoss", lambda d: np.maximum(np.abs(d) - 0.55, 0), {"epsilon": 0.55}),
]


@pytest.mark.parametrize(("name", "truth", "args"), DIFFERENCES, ids=[f"{row[0]}{row[2]}" for row in DIFFERENCES])
def test_losses_of_a_difference(name: str, truth: Any, args: dict[str, float]) -> None:
    for x0, x1 in ((X0, X1), (X0, X1[0]), (X0[:, :1], X1[:1]), (X0[0, 0], X1[0, 0]), (np.zeros((0, 2)), np.zeros(2))):
        check_forward(name, [x0, x1], lambda a, b: truth(a - b), **args)
        check_gradient(name, [x0, x1], **args)


KINKS: list[tuple[str, dict[str, float], float, float]] = [
    ("AbsoluteError", {}, 0.0, -1.0),
    ("EpsilonInsensitiveLoss", {"epsilon": 0.0}, 0.0, 0.0),
    ("EpsilonInsensitiveLoss", {"epsilon": 0.5}, 0.5, 0.0),
    ("HuberLoss", {"delta": 1.0}, 1.0, 2.0),
]


@pytest.mark.parametrize(("name", "args", "difference", "slope"), KINKS)
def test_gradients_at_kinks(name: str, args: dict[str, float], difference: float, slope: float) -> None:
    dx0, dx1 = run_gradient(name, np.array(difference), np.array(0.0), **args)
    assert (dx0, dx1) == (slope, -slope)


@pytest.mark.parametrize("targets", ["labels", "probabilities"])
def test_sigmoid_cross_entropy(targets: str) -> None:
    x = RNG.normal(size=(3, 4)) * 3
    target = RNG.integers(0, 2, size=(3, 4)) * 1.0 if targets == "labels" else RNG.uniform(size=(3, 4))

    def truth(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        return -t * scipy.special.log_expit(x) - (1 - t) * scipy.special.log_expit(-x)

    check_forward("SigmoidCrossEntropy", [x, target], truth)
    check_forward("SigmoidCrossEntropy", [x, target[:1]], truth)
    check_forward("SigmoidCrossEntropy", [x, RNG.integers(0, 2, size=(3, 4))], truth)
    check_gradient("SigmoidCrossEntropy", [x, target])
    check_gradient("SigmoidCrossEntropy", [x, target[:1]])


def test_sigmoid_cross_entropy_of_large_scores() -> None:
    x, target = np.array([-1e4, 1e4, -1e4, 1e4]), np.array([0.0, 1.0, 1.0, 0.0])
    check_forward("SigmoidCrossEntropy", [x, target], np.array([0, 0, 1e4, 1e4]))
    np.testing.assert_array_equal(run_gradient("SigmoidCrossEntropy", x, target)[0], [0, 0, -1, 1])
    close = np.array([-50.0])
    np.testing.assert_allclose(run("SigmoidCrossEntropy", close, np.zeros(1))[0], np.exp(close), rtol=1e-14)


def test_binary_cross_entropy() -> None:
    x, target = RNG.uniform(0.05, 0.95, size=(3, 4)), RNG.uniform(size=(3, 4))

    def truth(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        return -(t * np.log(x) + (1 - t) * np.log(1 - x))

    check_forward("BinaryCrossEntropy", [x, target], truth)
    check_forward("BinaryCrossEntropy", [x, target[0]], truth)
    check_gradient("BinaryCrossEntropy", [x, target])
    check_gradient("BinaryCrossEntropy", [x, target[0]])


def test_binary_cross_entropy_of_certain_predictions() -> None:
    x, target = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])
    check_forward("BinaryCrossEntropy", [x, target], np.array([0, 0, -math.log(TINY), -math.log(TINY)]))
    of_x, of_target = run_gradient("BinaryCrossEntropy", x, target)
    np.testing.assert_array_equal(of_x, [1, -1, -(2.0**24), 2.0**24])
    assert np.isfinite(of_target).all()


@pytest.mark.parametrize(("probability", "label"), [(5e-9, 0), (1e-4, 0), (1e-4, 1), (0.999, 1), (0.3, 0.3)])
def test_second_gradients_of_binary_cross_entropy_are_those_of_double_precision(probability: float, label: float) -> None:
    x = nn.Variable.from_numpy_array(np.array([probability], np.float32), need_grad=True)
    target = nn.Variable.from_numpy_array(np.array([label], np.float32))
    (slope,) = nn.grad([F.binary_cross_entropy(x, target)], [x])
    (curvature,) = nn.grad([slope], [x])
    curvature.forward()
    p = float(x.d[0])
    np.testing.assert_allclose(curvature.d, [(1 - label) / (1 - p) ** 2 + label / p**2], rtol=1e-5)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", ["SoftmaxCrossEntropy", "CategoricalCrossEntropy"])
def test_losses_of_class_labels(name: str, axis: int | None) -> None:
    x = scipy.special.softmax(RNG.normal(size=(2, 3, 4)), axis=0 if axis == 0 else -1)
    place = -1 if axis is None else axis
    shape = list(x.shape)
    shape[place] = 1
    target = RNG.integers(0, x.shape[place], size=shape)
    target.reshape(-1)[:2] = [-1, -255]

    def truth(x: np.ndarray, target: np.ndarray) -> np.ndarray:
        logs = scipy.special.log_softmax(x, axis=place) if name.startswith("Softmax") else np.log(x)
        return np.where(target >= 0, -np.take_along_axis(logs, np.maximum(target, 0), place), 0)

    args = {} if axis is None else {"axis": axis}
    check_forward(name, [x, target], truth, **args)
    check_gradient(name, [x, target], **args)


@pytest.mark.parametrize("name", ["SoftmaxCrossEntropy", "CategoricalCrossEntropy", "TopNError"])
def test_class_losses_of_no_samples(name: str) -> None:
    check_forward(name, [np.zeros((0, 3)), np.zeros((0, 1), int)], np.zeros((0, 1)))
    check_forward(name, [np.zeros((2, 0)), np.full((2, 1), -1)], np.zeros((2, 1)))


def test_softmax_cross_entropy_of_large_scores() -> None:
    x = np.array([[1e4, 0.0], [1e4, 0.0]])
    check_forward("SoftmaxCrossEntropy", [x, np.array([[0], [1]])], np.array([[0.0], [1e4]]))


def test_categorical_cross_entropy_of_impossible_labels() -> None:
    x, target = np.array([[0.0, 1.0]]), np.array([[0]])
    check_forward("CategoricalCrossEntropy", [x, target], np.array([[-math.log(TINY)]]))
    np.testing.assert_array_equal(run_gradient("CategoricalCrossEntropy", x, target)[0], [[-(2.0**24), 0]])


CLASS_LABELS = ["SoftmaxCrossEntropy", "CategoricalCrossEntropy", "TopNError", "ConfusionMatrix"]


@pytest.mark.parametrize("name", CLASS_LABELS)
def test_labels_must_be_classes_and_fit_the_scores(name: str) -> None:
    x = np.full((2, 3), 0.3)
    with pytest.raises(ArgumentError, match=rf"{spec_of(name).api}: target must be below 3, .*, got 5"):
        run(name, x, np.array([[5], [0]]))
    with pytest.raises(ShapeError, match=r"target must have the shape of x with length 1 on axis 1, \(2, 1\), got \(2,\)"):
        run(name, x, np.array([0, 1]))


def test_class_mask_marks_labels_on_an_axis() -> None:
    target = np.array([[[0, 2]], [[-1, 7]]])
    expected = np.zeros((2, 3, 2))
    expected[0, 0, 0] = expected[0, 2, 1] = 1
    check_forward("ClassMask", [target], expected, n_classes=3, axis=1)
    check_forward("ClassMask", [np.array([[1], [0]])], np.eye(2)[::-1], n_classes=2, axis=-1)
    spec_of("ClassMask")
    with pytest.raises(ShapeError, match=r"target must have length 1 on axis 0, got \(2, 1\)"):
        SHAPE_RULES["ClassMask"]((2, 1), n_classes=3, axis=0)


@pytest.mark.parametrize("base_axis", [0, 1, 2, -1])
def test_kl_multinomial(base_axis: int) -> None:
    p, q = RNG.uniform(0.1, 0.9, size=(2, 2, 3, 4))

    def truth(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        terms = scipy.special.rel_entr(p, q)
        return terms.sum(axis=tuple(range(base_axis % 3, 3))).reshape(*p.shape[: base_axis % 3], 1)

    check_forward("KLMultinomial", [p, q], truth, base_axis=base_axis, rtol=1e-2, atol=1e-2)
    check_gradient("KLMultinomial", [p, q], base_axis=base_axis)


def test_kl_multinomial_of_impossible_events() -> None:
    p, q = np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]])
    check_forward("KLMultinomial", [p, q], np.array([[0.0]]))
    check_forward("KLMultinomial", [p[:, ::-1], q], np.array([[-math.log(TINY)]]))
    for gradient in run_gradient("KLMultinomial", p, q):
        assert np.isfinite(gradient).all()
    spec_of("KLMultinomial")
    with pytest.raises(ShapeError, match=r"p and q must have the same shape, got \(2, 3\) and \(2, 1\)"):
        SHAPE_RULES["KLMultinomial"]((2, 3), (2, 1), base_axis=1)


SCORES = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 0.0], [1.0, 1.0, 1.0], [2.0, 1.0, 1.0], [3.0, 2.0, 1.0]])
LABELS = np.array([[0], [1], [1], [1], [-1]])


@pytest.mark.parametrize(("n", "errors"), [(1, [1, 0, 1, 1, 0]), (2, [1, 0, 1, 1, 0]), (3, [0, 0, 0, 0, 0])])
def test_top_n_error_counts_equal_scores_against_the_label(n: int, errors: list[int]) -> None:
    expected = np.array(errors, float)
    check_forward("TopNError", [SCORES, LABELS], expected[:, None], n=n)
    check_forward("TopNError", [SCORES.T, LABELS.T], expected[None], n=n, axis=0)


def test_binary_error_cuts_at_one_half() -> None:
    x, target = np.array([0.2, 0.7, 0.5, 0.4, 0.5]), np.array([0.0, 1.0, 1.0, 1.0, 0.0])
    check_forward("BinaryError", [x, target], np.array([0.0, 0.0, 0.0, 1.0, 1.0]))
    check_forward("BinaryError", [x[:, None], target], (x[:, None] >= 0.5) != (target >= 0.5))


def test_confusion_matrix_counts_labels_in_rows() -> None:
    expected = np.zeros((3, 3), int)
    for row, label in zip(SCORES, LABELS[:, 0], strict=True):
        if label >= 0:
            expected[label, np.argmax(row)] += 1
    check_forward("ConfusionMatrix", [SCORES, LABELS], expected)
    check_forward("ConfusionMatrix", [SCORES.T, LABELS.T], expected, axis=0)
    check_forward("ConfusionMatrix", [np.zeros((0, 3)), np.zeros((0, 1), int)], np.zeros((3, 3), int))
    assert run("ConfusionMatrix", SCORES, LABELS)[0].dtype == np.int64


@pytest.mark.parametrize("name", ["TopNError", "BinaryError", "ConfusionMatrix", "ClassMask"])
def test_measures_have_no_gradient(name: str) -> None:
    assert not spec_of(name).differentiable


def test_top_n_error_counts_no_mistake_for_a_negative_label() -> None:
    check_forward("TopNError", [SCORES[:2], np.full((2, 1), -1)], np.zeros((2, 1)))
