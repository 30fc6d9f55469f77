"""Estimators: scikit-learn's own checks, its tools, and the networks that estimators take."""

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_regression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import layers
from nn_ext_sklearn import NeuralClassifier, NeuralRegressor

QUICK: dict[str, Any] = {"epochs": 20, "learning_rate": 0.02, "random_state": 0}


def make_net(n_outputs: int) -> nn.Module:
    return nn.Sequential(layers.Affine(32), layers.BatchNorm(), F.relu, layers.Dropout(0.1), layers.Affine(n_outputs))


@pytest.mark.slow
@pytest.mark.parametrize("net", [None, make_net], ids=["default", "factory"])
@pytest.mark.parametrize("kind", [NeuralClassifier, NeuralRegressor])
def test_the_checks_of_scikit_learn(kind: type, net: Any) -> None:
    results = check_estimator(kind(net, epochs=30, learning_rate=0.02), on_fail=None, on_skip=None)
    assert [(found["check_name"], found["exception"]) for found in results if found["status"] == "failed"] == []
    assert sum(found["status"] == "passed" for found in results) > 40


def iris() -> tuple[Any, Any]:
    x, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(x), np.array(["setosa", "versicolor", "virginica"])[y]


def test_a_classifier_in_the_tools_of_scikit_learn() -> None:
    x, y = iris()
    model = make_pipeline(
        StandardScaler(), NeuralClassifier(make_net, epochs=10, batch_size=16, learning_rate=0.02, random_state=0)
    )
    assert cross_val_score(model, x, y, cv=2).mean() > 0.9
    search = GridSearchCV(NeuralClassifier(**QUICK), {"learning_rate": [1e-9, 0.02]}, cv=2).fit(x, y)
    assert search.best_params_ == {"learning_rate": 0.02} and search.score(x, y) > 0.9
    probabilities = search.predict_proba(x)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (search.classes_[probabilities.argmax(axis=1)] == search.predict(x)).all()


def test_pickles_and_clones() -> None:
    x, y = iris()
    model = NeuralClassifier(make_net, **QUICK).fit(x, y)
    twin = pickle.loads(pickle.dumps(model))
    assert twin.predict_proba(x).tolist() == model.predict_proba(x).tolist()
    assert clone(model).fit(x, y).predict_proba(x).tolist() == model.predict_proba(x).tolist()


def test_a_regressor_of_one_and_of_several_targets() -> None:
    x, y = make_regression(200, 5, n_targets=2, random_state=0)
    y /= y.std(axis=0)
    both = NeuralRegressor(**QUICK).fit(x, y)
    assert both.predict(x).shape == (200, 2) and both.score(x, y) > 0.9
    one = NeuralRegressor(loss=F.absolute_error, **QUICK).fit(x, y[:, 0])
    assert one.predict(x).shape == (200,) and one.score(x, y[:, 0]) > 0.9


@pytest.mark.parametrize("solver", ["momentum", partial(S.Momentum, 0.5)])
def test_networks_are_modules_or_functions_and_stay_as_they_are(solver: Any) -> None:
    x, y = iris()
    net = nn.Sequential(layers.Affine(16), F.relu, layers.Affine(3))
    for given in (net, lambda x: PF.affine(F.relu(PF.affine(x, 16, name="hidden")), 3, name="output")):
        model = NeuralClassifier(given, epochs=30, solver=solver, learning_rate=0.1, random_state=0).fit(x, y)
        assert model.score(x, y) > 0.9
    assert not net.get_parameters() and not nn.get_parameters()


def test_images_as_rows() -> None:
    x, y = load_digits(return_X_y=True)
    net = nn.Sequential(layers.Reshape((1, 8, 8)), layers.Conv(8, 3), F.relu, layers.MaxPool(2), layers.Affine(10))
    model = NeuralClassifier(net, epochs=3, batch_size=32, learning_rate=0.01, random_state=0)
    assert model.fit(x[:600] / 16, y[:600]).score(x[600:900] / 16, y[600:900]) > 0.85


def test_weights_of_classes_patience_and_history() -> None:
    random = np.random.RandomState(0)
    x = np.concatenate([random.randn(190, 2), random.randn(10, 2) + 1.5])
    y = np.repeat([0, 1], [190, 10])
    plain, balanced = (
        NeuralClassifier(class_weight=weight, **QUICK).fit(x, y).predict(x).sum() for weight in (None, "balanced")
    )
    assert balanced > 2 * plain
    stopped = NeuralClassifier(epochs=50, learning_rate=0.0, patience=2, validation_fraction=0.2).fit(x, y)
    assert len(stopped.history_) == 3 and "validation/loss" in stopped.history_[0]


def test_random_numbers_of_the_program_go_on_as_before() -> None:
    x, y = iris()
    nn.seed(5)
    expected = nn.random.prng.randint(1000, size=3).tolist()
    nn.seed(5)
    NeuralClassifier(epochs=1, random_state=0).fit(x, y)
    assert nn.random.prng.randint(1000, size=3).tolist() == expected


def test_mistakes() -> None:
    x, y = iris()
    for model, text in (
        (
            NeuralClassifier(nn.Sequential(layers.Affine(2)), epochs=1),
            r"net must give one number for each of 3 .* got shape \(2,\)",
        ),
        (NeuralClassifier(3), "net must be a module, a function that makes one, or None, got int"),
        (NeuralClassifier(lambda n_outputs: 3), r"net\(n_outputs=3\) must return a module, got int"),
        (NeuralClassifier(solver="adm"), "solver must be the name of a solver or a function that makes one, got 'adm'"),
        (NeuralClassifier(validation_fraction=1.0), "validation_fraction must be at least 0 and less than 1, got 1.0"),
    ):
        with pytest.raises(ValueError, match=text):
            model.fit(x, y)
