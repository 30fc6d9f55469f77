"""Training in one call, and moving averages of parameters."""

import json

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError, ShapeError
from nn_core.training import MovingAverage, Trainer, every, fit, load_checkpoint, save_checkpoint


@pytest.fixture(autouse=True)
def seeded():
    nn.clear_parameters()
    nn.seed(2)


def blobs(n=120, seed=0):
    random = np.random.RandomState(seed)
    t = random.randint(0, 3, n)
    return (random.randn(n, 2) + 4 * np.eye(3)[t, :2] * [1, -1]).astype(np.float32), t


def network(x, test=False):
    h = F.relu(PF.batch_normalization(PF.affine(x, 16, name="h"), batch_stat=not test, name="bn"))
    return PF.affine(F.dropout(h, 0.1) if not test else h, 3, name="out")


def test_classification():
    result = fit(network, blobs(), blobs(50, 1), epochs=15, batch_size=16, solver=S.Adam(0.02), progress=False)
    assert len(result.history) == 15
    last = result.history[-1]
    assert {"validation/loss", "validation/accuracy", "validation/mean/f1", "validation/mean/recall"} < set(last)
    assert last["validation/accuracy"] > 0.9
    x, t = blobs(50, 1)
    assert result.evaluate((x, t), batch_size=7)["accuracy"] == pytest.approx(last["validation/accuracy"])
    probabilities = result.predict(x, batch_size=13)
    assert probabilities.shape == (50, 3)
    assert (probabilities.argmax(1) == t).mean() == pytest.approx(last["validation/accuracy"])
    assert result.predict(x[:0]).shape == (0, 3)


def test_regression_of_a_module():
    class Line(nn.Module):
        def call(self, x):
            return PF.affine(x, 1)

    x = np.random.RandomState(0).randn(80, 3).astype(np.float32)
    t = x @ [[1.0], [-2.0], [0.5]] + 3
    result = fit(Line(), (x, t), (x, t), "regression", epochs=60, solver=S.Adam(0.1), progress=False)
    assert result.history[-1]["validation/error/r2"] > 0.999
    np.testing.assert_allclose(result.predict(x), t, atol=0.1)


def test_resuming(tmp_path):
    def run(folder, epochs):
        nn.clear_parameters()
        nn.seed(2)
        return fit(network, blobs(), epochs=epochs, batch_size=16, out=folder, resume=True, progress=False)

    whole = run(tmp_path / "whole", 6)
    run(tmp_path / "parts", 2)
    parts = run(tmp_path / "parts", 6)
    for name, variable in whole.parameters.items():
        assert np.array_equal(variable.d, parts.parameters[name].d), name
    texts = [(tmp_path / name / "log.jsonl").read_text() for name in ("whole", "parts")]
    losses = [[json.loads(line)["loss"] for line in text.splitlines()] for text in texts]
    assert losses[0] == losses[1]
    assert [entry["loss"] for entry in parts.history] == losses[0]


def test_the_bar_is_shown_by_default(capsys, monkeypatch):
    monkeypatch.setattr("nn_core.training.extensions.terminal._LINES_S", 0.0)
    fit(network, blobs(), epochs=3, batch_size=30)
    assert "iteration 10 of 12, epoch 2, loss=" in capsys.readouterr().err


def test_refusals():
    x, t = blobs()
    with pytest.raises(ArgumentError, match="fit: task must be one of classification, regression, got 'ranking'"):
        fit(network, (x, t), task="ranking")
    with pytest.raises(ArgumentError, match=r"fit: there must be as many targets as inputs, .*, got \(120, 2\) and \(5,\)"):
        fit(network, (x, t[:5]))
    with pytest.raises(ShapeError, match=r"fit: predictions must have the shape of the targets, got \(64, 3\) and \(64, 1\)"):
        fit(network, (x, t[:, None] * 1.0), task="regression")


def test_moving_averages(tmp_path, make_updater):
    updater = make_updater()
    average = MovingAverage(nn.get_parameters(), decay=0.9)
    values = [variable.d.copy() for variable in nn.get_parameters().values()]
    expected = values
    trainer = Trainer(updater, every(20), tmp_path, [average])

    @trainer.on(every(1))
    def follow(trainer):
        nonlocal expected
        decay = min(0.9, (1 + trainer.iteration) / (10 + trainer.iteration))
        now = [variable.d for variable in nn.get_parameters().values()]
        expected = [decay * old + (1 - decay) * new for old, new in zip(expected, now, strict=True)]

    trainer.run()
    before = [variable.d.copy() for variable in nn.get_parameters().values()]
    with average.applied():
        for variable, wanted in zip(nn.get_parameters().values(), expected, strict=True):
            np.testing.assert_allclose(variable.d, wanted, rtol=1e-5)
    for variable, wanted in zip(nn.get_parameters().values(), before, strict=True):
        assert np.array_equal(variable.d, wanted)
    save_checkpoint(tmp_path / "c.npz", average=average)
    other = MovingAverage(nn.get_parameters(), decay=0.9)
    load_checkpoint(tmp_path / "c.npz", average=other)
    for name, array in other.averages().items():
        assert np.array_equal(array.data, average.averages()[name].data)
    with pytest.raises(ArgumentError, match="MovingAverage: decay must be from 0 to 1, got 2"):
        MovingAverage({}, 2)
    with pytest.raises(ArgumentError, match="MovingAverage: the state must be of affine/W, affine/b, got x"):
        other.set_state({"updates": 1, "averages": {"x": np.zeros(1)}})


def test_patience_ends_training():
    x, t = np.eye(4, dtype=np.float32), np.arange(4)
    result = fit(lambda x: PF.affine(x, 4), (x, t), (x, t), epochs=50, solver=S.Sgd(0.0), patience=3, progress=False)
    assert len(result.history) == 4
    nn.clear_parameters()
    result = fit(lambda x: PF.affine(x, 4), (x, t), epochs=50, solver=S.Sgd(0.0), patience=2, progress=False)
    assert len(result.history) == 3


def test_the_learning_rate_follows_a_schedule():
    x, t = np.eye(4, dtype=np.float32), np.arange(4)
    solver = S.Sgd(1.0)
    fit(lambda x: PF.affine(x, 4), (x, t), epochs=5, solver=solver, schedule=lambda i: 0.1 / (1 + i), progress=False)
    assert solver.learning_rate() == pytest.approx(0.1 / 6)


def test_a_loss_of_the_program():
    x = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
    t = np.where(x > 0.9, 50, 3 * x).astype(np.float32)  # outliers, which an absolute error forgives
    result = fit(
        lambda x: PF.affine(x, 1),
        (x, t),
        task="regression",
        epochs=300,
        solver=S.Adam(0.05),
        loss=F.absolute_error,
        progress=False,
    )
    assert result.predict(np.float32([[0.5]]))[0, 0] == pytest.approx(1.5, abs=0.2)
    assert result.evaluate((x, t))["loss"] == pytest.approx(np.abs(result.predict(x) - t).mean(), rel=1e-4)


def test_classes_are_balanced_by_how_often_they_occur():
    x, t = np.random.RandomState(0).randn(40, 3).astype(np.float32), np.arange(40) % 8 == 0
    weights = [40 / 2 / 35, 40 / 2 / 5]
    losses = []
    for given in (weights, dict(enumerate(weights)), "balanced"):
        result = fit(lambda x: PF.affine(x, 2), (x, t), epochs=2, class_weight=given, seed=1, fresh=True, progress=False)
        losses.append([entry["loss"] for entry in result.history])
    assert losses[0] == losses[1] == losses[2]


def test_a_share_of_the_samples_is_held_out():
    seen = set()

    def network(x):
        return PF.affine(x, 1)

    def record(y, t):
        seen.update(t[:, 0].tolist())
        return 0.0

    x, t = np.random.RandomState(0).randn(50, 3).astype(np.float32), np.arange(50)
    settings = {"task": "regression", "loss": lambda y, t: F.mean(y) + 0 * F.mean(t), "epochs": 1, "progress": False}
    fit(network, (x, t[:, None]), 0.2, metrics={"seen": record}, **settings)
    assert len(seen) == 10
    again = fit(network, (x, t[:, None]), 0.2, fresh=True, sample_weight=np.ones(50), **{**settings, "loss": None})
    assert "validation/loss" in again.history[0]


def test_a_result_shows_the_values_of_its_last_epoch():
    result = fit(lambda x: PF.affine(x, 2), (np.eye(4), np.arange(4) % 2), epochs=3, progress=False)
    assert repr(result).startswith("<Fit of 2 parameters after 3 epochs: loss 0.")


def test_class_weights_are_those_of_a_weighted_mean():
    rng = np.random.default_rng(3)
    x, t = rng.standard_normal((40, 3)).astype(np.float32), (np.arange(40) % 8 == 0).astype(int)
    result = fit(
        lambda x: PF.affine(x, 2), (x, t), epochs=2, batch_size=40, class_weight=[1, 7], solver=S.Sgd(0.1), progress=False
    )
    p = result.predict(x)[np.arange(40), t]
    w = np.where(t == 1, 7, 1)
    assert result.evaluate((x, t), batch_size=40)["loss"] == pytest.approx(-(w * np.log(p)).sum() / w.sum(), rel=1e-4)
    nn.clear_parameters()
    plain = fit(lambda x: PF.affine(x, 2), (x, t), epochs=60, solver=S.Adam(0.1), progress=False)
    nn.clear_parameters()
    weighted = fit(lambda x: PF.affine(x, 2), (x, t), epochs=60, class_weight=[1, 7], solver=S.Adam(0.1), progress=False)
    assert weighted.predict(x)[:, 1].mean() > plain.predict(x)[:, 1].mean() + 0.2


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"class_weight": [1, 2, 3]}, "class_weight must have one for each of 2 classes, got 3"),
        ({"class_weight": [-1, 2]}, "class_weight must be numbers of at least 0"),
        ({"class_weight": [1, 2], "task": "regression"}, "class_weight must go with the loss of classification"),
        ({"loss": "mse"}, "loss must be a function"),
        ({"patience": 0}, "fit: patience must be"),
        ({"schedule": "cosine"}, "fit: schedule must be a scheduler or a function"),
    ],
)
def test_settings_that_cannot_be(settings, text):
    with pytest.raises(ArgumentError, match=text):
        fit(lambda x: PF.affine(x, 2), (np.ones((4, 3)), np.zeros((4, 1), int)), progress=False, **settings)
