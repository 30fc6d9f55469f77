"""Losses and counts of class labels beside the reference, around any axis; labels that are ignored, scores that are NaN."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import ArgumentError

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]

#: Shape of the scores, and the axis of the classes.
SHAPES = [((5, 3), 1), ((300, 1000), 1), ((7, 40), 0), ((2, 9, 300), 1), ((0, 4), 1), ((3, 1), 1)]


def scores(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Probabilities that do not depend on the order of tests."""
    return np.random.default_rng(len(shape)).uniform(0.05, 1.0, shape).astype(np.float32)


def labels(shape: tuple[int, ...], axis: int) -> np.ndarray[Any, Any]:
    """Numbers of classes, some negative."""
    lanes = (*shape[:axis], 1, *shape[axis + 1 :])
    return np.random.default_rng(3).integers(-1, shape[axis], lanes)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_categorical_cross_entropy(assert_alike: Compare, shape: tuple[int, ...], axis: int) -> None:
    assert_alike(lambda x, t: F.categorical_cross_entropy(x, t, axis=axis), scores(shape), labels(shape, axis))


def test_categorical_cross_entropy_of_zero() -> None:
    x = nn.Variable.from_numpy_array(np.array([[0.0, 1.0]], np.float32), need_grad=True)
    with nn.context_scope(nn.Context(["cpu:float"])):
        y = F.categorical_cross_entropy(x, nn.Variable.from_numpy_array(np.array([[0]])))
        y.forward()
        x.grad.zero()
        y.backward()
    np.testing.assert_allclose(y.d, [[126 * np.log(2)]], rtol=1e-6)
    np.testing.assert_array_equal(x.g, [[-(2.0**24), 0.0]])


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("n", [1, 3])
def test_top_n_error(assert_alike: Compare, shape: tuple[int, ...], axis: int, n: int) -> None:
    x = np.round(scores(shape), 1)  # equal scores count
    assert_alike(lambda x, t: F.top_n_error(x, t, axis=axis, n=n), x, labels(shape, axis))


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_confusion_matrix_and_mask(assert_alike: Compare, shape: tuple[int, ...], axis: int) -> None:
    assert_alike(lambda x, t: F.confusion_matrix(x, t, axis=axis), scores(shape), labels(shape, axis))
    with nn.context_scope(nn.Context(["cpu:float"])):
        text = str(nn.explain(F.confusion_matrix(nn.Variable(shape), nn.Variable(labels(shape, axis).shape), axis=axis)))
    assert "cpu" in text


def test_nan_reaches_no_score_and_is_the_highest() -> None:
    x = nn.Variable.from_numpy_array(np.array([[np.nan, 2, 1], [3, np.nan, np.nan]], np.float32))
    t = nn.Variable.from_numpy_array(np.array([[1], [0]]))
    results = []
    for backend in ("cpu:float", "reference:float"):
        with nn.context_scope(nn.Context([backend])):
            y, counts = F.top_n_error(x, t), F.confusion_matrix(x, t)
            nn.forward_all([y, counts])
            results.append((y.d.copy(), counts.d.copy()))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize("function", [F.categorical_cross_entropy, F.top_n_error, F.confusion_matrix])
def test_labels_beyond_the_classes_are_refused(function: Callable[..., nn.Variable]) -> None:
    y = function(nn.Variable((2, 3)), nn.Variable.from_numpy_array(np.array([[0], [3]])))
    with pytest.raises(ArgumentError, match="target must be below 3, the number of classes, got 3"):
        y.forward()


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((40, 300), 0), ((3, 5, 7), 1), ((2, 2000, 3), 1), ((2, 1, 200), 1), ((0, 3, 2), 1)]
)
def test_softmax_of_neighbouring_lines(assert_alike: Compare, shape: tuple[int, ...], axis: int, log: bool) -> None:
    function = F.log_softmax if log else F.softmax
    assert_alike(lambda x: function(x, axis=axis), 30 * scores(shape) - 15)


def test_softmax_of_lines_with_infinities_and_nan() -> None:
    x = np.array([[np.inf, -np.inf, np.nan, 1e38], [1, 2, 3, -1e38], [0, -np.inf, 5, 0]], np.float32)
    results = []
    for backend in ("cpu:float", "reference:double"):
        with nn.context_scope(nn.Context([backend])), np.errstate(all="ignore"):
            y = F.softmax(nn.Variable.from_numpy_array(x), axis=0)
            y.forward()
            results.append(y.d.copy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)
