"""Data and reports of `fit`: weights of samples, iterables, metrics, callbacks, and starting anew."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as judge

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import layers
from nn_core.data.iterators import data_iterator_simple
from nn_core.errors import ArgumentError, NNCoreError, ShapeError, SignatureError
from nn_core.training import AreaUnderCurve, FunctionMetric, fit

QUICK: dict[str, Any] = {"solver": "adam", "progress": False, "seed": 0}


@pytest.fixture(autouse=True)
def empty_scope() -> None:
    nn.clear_parameters()


def blobs(n: int = 90, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    random = np.random.RandomState(seed)
    t = random.randint(0, 3, n)
    return (random.randn(n, 2) + 2 * np.eye(3)[t, :2]).astype(np.float32), t


def network(n_outputs: int = 3) -> nn.Sequential:
    return nn.Sequential(layers.Affine(8), F.relu, layers.Affine(n_outputs))


# -- metrics -----------------------------------------------------------------------------------------------------------


def test_metrics_by_name_are_those_of_scikit_learn() -> None:
    x, t = blobs()
    names = ["accuracy", "top2", "auc", "precision", "recall", "f1"]
    result = fit(network(), (x, t), (x, t), metrics=names, epochs=2, **QUICK)
    probabilities = result.predict(x)
    predicted = probabilities.argmax(1)
    settings: dict[str, Any] = {"average": "macro", "zero_division": 0}
    expected = {
        "accuracy": judge.accuracy_score(t, predicted),
        "top2": judge.top_k_accuracy_score(t, probabilities, k=2),
        "auc": judge.roc_auc_score(t, probabilities, multi_class="ovr"),
        "precision": judge.precision_score(t, predicted, **settings),
        "recall": judge.recall_score(t, predicted, **settings),
        "f1": judge.f1_score(t, predicted, **settings),
    }
    found = result.evaluate((x, t), batch_size=7)
    assert set(found) == {"loss", *names}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-6), name
        assert result.history[-1][f"validation/{name}"] == pytest.approx(found[name], abs=1e-6)


def test_metrics_of_regression_and_own_ones() -> None:
    x = np.random.RandomState(0).randn(50, 2).astype(np.float32)
    t = x[:, :1] - x[:, 1:]
    own: Mapping[str, Any] = {"r2": "r2", "mae": "mae", "rmse": "rmse", "largest": lambda y, t: np.abs(y - t).max()}
    result = fit(network(1), (x, t), task="regression", metrics=own, epochs=3, **QUICK)
    y, found = result.predict(x), result.evaluate((x, t), batch_size=8)
    assert found["r2"] == pytest.approx(judge.r2_score(t, y), abs=1e-5)
    assert found["mae"] == pytest.approx(judge.mean_absolute_error(t, y), abs=1e-5)
    assert found["rmse"] == pytest.approx(judge.root_mean_squared_error(t, y), abs=1e-5)
    assert found["largest"] == pytest.approx(np.abs(y - t).max(), abs=1e-6)


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_areas_under_curves_with_equal_scores(levels: int) -> None:
    random = np.random.RandomState(levels)
    scores = random.randint(0, levels, (200, 2)).astype(np.float32)
    labels = random.randint(0, 2, (200, 1))
    y, t = nn.Variable(scores.shape), nn.Variable(labels.shape)
    area = AreaUnderCurve(y, t)
    for part in (slice(0, 70), slice(70, 200)):
        area.take(scores[part], labels[part])
    expected = judge.roc_auc_score(labels[:, 0], scores[:, 1] - scores[:, 0])
    assert area.results()[""] == pytest.approx(expected, abs=1e-12)
    area.reset()
    assert np.isnan(area.results()[""])
    area.take(scores, np.zeros((200, 1)))
    assert np.isnan(area.results()[""])
    assert FunctionMetric(y, t, lambda y, t: 3).results() != {"": 3}


# -- weights -----------------------------------------------------------------------------------------------------------


def test_weights_of_samples_are_those_of_repeated_samples() -> None:
    x, t = blobs(40)
    weights = np.random.RandomState(1).randint(0, 3, 40)
    trained = []
    for data, sample_weight in (((x, t), weights), ((np.repeat(x, weights, 0), np.repeat(t, weights)), None)):
        net = network()
        settings = {**QUICK, "solver": S.Sgd(0.5)}
        fit(net, data, epochs=10, batch_size=100, sample_weight=sample_weight, **settings)
        trained.append(np.concatenate([variable.d.ravel() for variable in net.get_parameters().values()]))
    np.testing.assert_allclose(trained[0], trained[1], rtol=1e-3, atol=1e-5)


def test_weights_of_samples_go_with_weights_of_classes_and_losses_of_the_program() -> None:
    x, t = blobs(40)
    none = np.where(t == 2, 0.0, 1.0)
    for settings in ({"class_weight": [1, 2, 1]}, {"loss": F.softmax_cross_entropy}, {}):
        result = fit(network(), (x, t), epochs=20, sample_weight=none, **{**QUICK, "solver": S.Adam(0.1)}, **settings)
        assert (result.predict(x).argmax(1) != 2).mean() > 0.9


# -- iterables ---------------------------------------------------------------------------------------------------------


def batches(size: int = 32) -> list[tuple[Any, ...]]:
    x, t = blobs()
    return [(x[start : start + size], t[start : start + size]) for start in range(0, len(x), size)]


class Loader:
    """A loader of another library: it can be gone over again, and has a length."""

    def __iter__(self) -> Iterator[list[Any]]:
        return (list(batch) for batch in batches())

    def __len__(self) -> int:
        return len(batches())


def generator() -> Iterator[tuple[Any, ...]]:
    yield from batches()


@pytest.mark.parametrize("kind", ["list", "loader", "function", "iterator of data"])
def test_batches_of_any_kind_train_alike(kind: str) -> None:
    x, t = blobs()
    iterator = data_iterator_simple(lambda index: (x[index], t[index]), 90, 30)
    sources: Mapping[str, Any] = {"list": batches(), "loader": Loader(), "function": generator, "iterator of data": iterator}
    result = fit(network(), sources[kind], batches(), epochs=10, **{**QUICK, "solver": S.Adam(0.05)})
    iterator.close()
    assert len(result.history) == 10 and result.history[-1]["iteration"] == 30
    accuracy = result.evaluate(batches())["accuracy"]
    assert accuracy > 0.7 and accuracy == pytest.approx(result.history[-1]["validation/accuracy"])


def test_a_generator_is_one_epoch() -> None:
    result = fit(network(), generator(), epochs=1, **QUICK)
    assert [entry["iteration"] for entry in result.history] == [3]
    with pytest.raises(ArgumentError, match=r"fit: an iterator must have batches for all epochs, got its end after epoch 1"):
        fit(network(), generator(), epochs=2, **QUICK)


def test_batches_have_weights_and_regression() -> None:
    x = np.random.RandomState(0).randn(64, 2).astype(np.float32)
    t = np.where(np.arange(64)[:, None] % 2, x[:, :1], 100)
    parts = [(x[s : s + 16], t[s : s + 16], np.arange(16) % 2) for s in range(0, 64, 16)]
    result = fit(layers.Affine(1), parts, task="regression", epochs=40, **{**QUICK, "solver": S.Adam(0.2)})
    assert np.abs(result.predict(x) - x[:, :1]).max() < 0.3


# -- callbacks and starting anew ---------------------------------------------------------------------------------------


def test_callbacks_see_each_epoch_and_may_end_training() -> None:
    seen = []

    def note(epoch: int, values: Mapping[str, float]) -> bool:
        seen.append((epoch, sorted(name for name in values if "loss" in name)))
        return epoch == 3

    fit(network(), blobs(), blobs(20, 1), epochs=9, callbacks=[note], **QUICK)
    assert seen == [(epoch, ["loss", "validation/loss"]) for epoch in (1, 2, 3)]


def in_scope(x: nn.Variable) -> nn.Variable:
    return PF.affine(F.relu(PF.affine(x, 8, name="hidden")), 3, name="output")


@pytest.mark.parametrize("kind", ["module", "function"])
def test_fresh_starts_anew_with_the_same_bits(kind: str) -> None:
    net: Any = network() if kind == "module" else in_scope
    PF.affine(nn.Variable((2, 3)), 2, name="other")
    other = nn.get_parameters()["other/affine/W"].d.copy()
    first, again = (fit(net, blobs(), epochs=2, fresh=True, **QUICK).predict(blobs()[0]) for _ in range(2))
    assert first.tolist() == again.tolist()
    with pytest.raises(ArgumentError, match="fit: the weights must be new"):
        fit(net, blobs(), epochs=1, **QUICK)
    assert nn.get_parameters()["other/affine/W"].d.tolist() == other.tolist()


X, T = blobs(20)
MISTAKES: Mapping[str, tuple[Callable[[], object], type[NNCoreError], str]] = {
    "an unknown metric": (
        lambda: fit(network(), (X, T), metrics=["acc"]),
        ArgumentError,
        r"metrics must be .*top5\), got 'acc'",
    ),
    "a metric of another task": (lambda: fit(network(), (X, T), metrics=["r2"]), ArgumentError, "metrics must be .*'r2'"),
    "one metric": (lambda: fit(network(), (X, T), metrics="auc"), ArgumentError, "metrics must be a list .* got 'auc'"),
    "metrics twice": (
        lambda: fit(network(), (X, T), metrics=["auc", "auc"]),
        ArgumentError,
        "different names, got 'auc' twice",
    ),
    "a function for callbacks": (lambda: fit(network(), (X, T), callbacks=print), ArgumentError, "callbacks must be a list"),  # type: ignore[arg-type]
    "callback=": (lambda: fit(network(), (X, T), callback=print), SignatureError, r"'callback'\n  hint: callbacks="),
    "few weights": (lambda: fit(network(), (X, T), sample_weight=[1, 2]), ArgumentError, "for each of 20 samples, got 2"),
    "negative weights": (lambda: fit(network(), (X, T), sample_weight=-T), ArgumentError, "sample_weight must be numbers"),
    "weights of batches": (lambda: fit(network(), batches(), sample_weight=T), ArgumentError, "must go with arrays"),
    "weights and one loss": (
        lambda: fit(network(), (X, T), sample_weight=T + 1, loss=lambda y, t: F.mean(y)),
        ShapeError,
        "must have one value for each sample",
    ),
    "no batches": (lambda: fit(network(), []), ArgumentError, "train must have batches, got none"),
    "batches of one array": (lambda: fit(network(), [(X,)]), ArgumentError, "a batch of train must have inputs, targets"),
    "fresh and go_on": (lambda: fit(network(), (X, T), fresh=True, go_on=True), ArgumentError, "fresh must be False"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    call, error, text = MISTAKES[mistake]
    with pytest.raises(error, match=f"^fit: .*{text}"):
        call()


# -- data that do not fit ----------------------------------------------------------------------------------------------


def fitted(x: Any, t: Any, outputs: int = 3, **settings: Any) -> Any:
    return fit(network(outputs), (x, t), epochs=1, **{**QUICK, **settings})


def vector_loss(y: nn.Variable, t: nn.Variable) -> nn.Variable:
    return (y - t) ** 2


POINTS, LABELS = blobs()
MISFITS: Mapping[str, tuple[Callable[[], object], type[NNCoreError], str]] = {
    "numbers": (
        lambda: fitted(POINTS, POINTS[:, 0]),
        ArgumentError,
        "^fit: targets of train must be labels.*\n  hint: task='regression'",
    ),
    "numbers, own loss": (lambda: fitted(POINTS, POINTS[:, :1], loss=vector_loss), ArgumentError, "hint: task='regression'"),
    "NaN": (lambda: fitted(POINTS, np.full(90, np.nan)), ArgumentError, "^fit: targets of train must be labels, .* got nan"),
    "rows of ones": (
        lambda: fitted(POINTS, np.eye(3)[LABELS]),
        ShapeError,
        r"^fit: targets must be labels, .* hint: t\.argmax\(axis=1\)",
    ),
    "labels from 1": (
        lambda: fitted(POINTS, LABELS + 1),
        ArgumentError,
        "^fit: .* below 3, .* got 3\n  hint: labels count from 0",
    ),
    "one output": (
        lambda: fitted(POINTS, LABELS, 1),
        ShapeError,
        r"^fit: .* a score for each class, .* got shape \(64, 1\)\n  hint: two",
    ),
    "names": (lambda: fitted(POINTS, np.array(["a", "b", "c"])[LABELS]), ArgumentError, r"hint: names, t = np\.unique"),
    "softmax": (
        lambda: fit(nn.Sequential(network(), layers.Softmax()), (POINTS, LABELS), **QUICK),
        ArgumentError,
        "^fit: .* must give scores, .* got a softmax\n  hint: leave",
    ),
    "one sample": (
        lambda: fitted(POINTS, LABELS).predict(POINTS[0]),
        ShapeError,
        r"^predict: .* \(N, 2\), .* got \(2,\)\n  hint: x\[None\]",
    ),
    "no samples": (lambda: fitted(POINTS, LABELS).predict(3.0), ShapeError, r"^predict: .* got \(\)$"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_data_that_do_not_fit_the_task_are_refused(misfit: str) -> None:
    call, error, text = MISFITS[misfit]
    with pytest.raises(error, match=f"(?s){text}"):
        call()


@pytest.mark.parametrize("loss", [None, vector_loss])
def test_targets_of_a_regression_may_lack_an_axis_of_length_1(loss: Any) -> None:
    results = []
    for t in (POINTS[:, 0], POINTS[:, :1]):
        result = fit(network(1), (POINTS, t), (POINTS[:7], t[:7]), task="regression", epochs=2, loss=loss, **QUICK)
        results.append((result.predict(POINTS).tolist(), result.evaluate((POINTS, t), batch_size=11)))
    assert results[0] == results[1]


def test_labels_below_0_are_left_out_and_functions_of_the_program_may_take_any_targets() -> None:
    ignored = np.where(np.arange(90) % 2, LABELS, -1)
    assert np.isfinite(fitted(POINTS, ignored).history[0]["loss"])
    rows = np.eye(3, dtype=np.float32)[LABELS] * 0.9 + 0.1 / 3

    def smooth(y: nn.Variable, t: nn.Variable) -> nn.Variable:
        return -F.sum(t * F.log_softmax(y), axis=1)

    result = fitted(POINTS, rows, loss=smooth, metrics={"right": lambda y, t: float((y.argmax(1) == t.argmax(1)).mean())})
    assert 0 <= result.evaluate((POINTS, rows))["right"] <= 1


def test_a_loss_that_is_not_finite_is_told_once_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    x = POINTS.copy()
    x[5, 1] = np.nan
    fit(network(), (x, LABELS), epochs=3, **QUICK)
    fit(network(1), (POINTS, POINTS[:, :1]), task="regression", epochs=30, **{**QUICK, "solver": S.Sgd(1e4)})
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2, told
    assert "in epoch 1\n  hint: 1 of the inputs of train are not finite, the first one at (5, 1)" in told[0]
    assert "a smaller learning rate" in told[1]


@pytest.mark.parametrize(("shape", "is_told"), [((20, 8, 8, 3), True), ((20, 3, 8, 8), False), ((20, 3, 3, 3), False)])
def test_images_with_channels_last_are_told(caplog: pytest.LogCaptureFixture, shape: tuple[int, ...], is_told: bool) -> None:
    net = nn.Sequential(layers.Conv(4, 3), F.relu, layers.Affine(2))
    fit(net, (np.ones(shape, np.float32), np.arange(20) % 2), epochs=1, **QUICK)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == is_told
    assert not told or "(N, C, H, W), got (N, 8, 8, 3)" in told[0]
    caplog.clear()
    net = nn.Sequential(layers.Conv(4, 3, channel_last=True), F.relu, layers.Affine(2))
    fit(net, (np.ones((20, 8, 8, 3), np.float32), np.arange(20) % 2), epochs=1, **QUICK)
    assert not caplog.records


def test_a_function_that_predicts_as_it_trains_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def careless(x: nn.Variable) -> nn.Variable:
        return PF.affine(F.dropout(PF.batch_normalization(PF.affine(x, 4, name="a"))), 3, name="b")

    def careful(x: nn.Variable, test: bool = False) -> nn.Variable:
        h = PF.batch_normalization(PF.affine(x, 4, name="a"), batch_stat=not test)
        return PF.affine(h if test else F.dropout(h), 3, name="b")

    fit(careless, (POINTS, LABELS), epochs=1, **QUICK)
    (message,) = caplog.messages
    assert message.startswith("fit: a network that predicts should ") and "got BatchNormalization, Dropout\n" in message
    caplog.clear()
    nn.clear_parameters()
    fit(careful, (POINTS, LABELS), epochs=1, **QUICK)
    assert not caplog.messages
