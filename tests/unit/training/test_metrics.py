"""Metrics beside those of scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics as oracle

import nn_core as nn
from nn_core.errors import ArgumentError, ShapeError
from nn_core.training import Accuracy, Confusion, RegressionErrors


def taken(make, y, t, batch=7):
    metric = make(nn.Variable(y.shape), nn.Variable(t.shape))
    for start in range(0, len(y), batch):
        metric.take(y[start : start + batch], t[start : start + batch])
    return metric


@pytest.fixture
def scores():
    random = np.random.RandomState(2)
    t = random.randint(0, 5, (50, 1))
    t[t == 3] = 0  # a class that does not occur
    return random.randn(50, 5).astype(np.float32), t


def test_accuracy(scores):
    y, t = scores
    labels = range(5)
    for top in (1, 2, 4):
        expected = oracle.top_k_accuracy_score(t[:, 0], y, k=top, labels=labels)
        assert taken(lambda y, t, top=top: Accuracy(y, t, top), y, t).results()[""] == pytest.approx(expected)


def test_ties_and_nan_are_not_luck():
    y = np.zeros((4, 4), np.float32)
    assert taken(Accuracy, y, np.arange(4)[:, None]).results() == {"": 0.25}
    assert taken(Accuracy, y * np.nan, np.arange(4)[:, None]).results() == {"": 0.0}


def test_confusion(scores):
    y, t = scores
    metric = taken(Confusion, y, t)
    assert np.array_equal(metric.counts, oracle.confusion_matrix(t[:, 0], y.argmax(1), labels=range(5)))
    present = sorted(set(t[:, 0].tolist()))
    expected = oracle.precision_recall_fscore_support(t[:, 0], y.argmax(1), labels=present, average="macro", zero_division=0)
    assert list(metric.results().values()) == pytest.approx(list(expected[:3]))
    metric.reset()
    assert np.isnan(list(metric.results().values())).all()


def test_regression():
    random = np.random.RandomState(3)
    t = random.randn(40, 2) + 1e4
    y = t + random.randn(40, 2)
    results = taken(RegressionErrors, y, t).results()
    assert results["/mae"] == pytest.approx(oracle.mean_absolute_error(t, y))
    assert results["/rmse"] == pytest.approx(oracle.root_mean_squared_error(t.ravel(), y.ravel()))
    assert results["/r2"] == pytest.approx(oracle.r2_score(t.ravel(), y.ravel()))


def test_refusals(scores):
    y, t = scores
    with pytest.raises(ArgumentError, match="Accuracy: labels must be from 0 to 4, got 0 to 7"):
        taken(Accuracy, y, np.where(t == 4, 7, t), 50)
    with pytest.raises(
        ShapeError, match=r"Confusion: y must have the shape \(N, C\) and t N labels, got \(7, 5\) and \(7, 2\)"
    ):
        taken(Confusion, y, np.tile(t, 2))
    with pytest.raises(ShapeError, match="RegressionErrors: y and t must have one shape"):
        taken(RegressionErrors, y, t)
    with pytest.raises(ArgumentError, match="Accuracy: top must be at least 1, got 0"):
        Accuracy(nn.Variable((1, 2)), nn.Variable((1, 1)), 0)
