"""`fit` of networks with several inputs, outputs or targets, of targets without an axis of columns, and of data sources."""

import numpy as np
import pytest

import nn_core as nn
from nn_core import PF, F, S, layers
from nn_core.data.array_sources import ArrayDataSource
from nn_core.errors import ArgumentError, ShapeError
from nn_core.training import fit
from nn_core.utils.data_source_implements import CsvDataSource

RNG = np.random.default_rng(0)
A = RNG.standard_normal((80, 3)).astype(np.float32)
B = RNG.standard_normal((80, 2)).astype(np.float32)
LABELS = (A[:, 0] + B[:, 0] > 0).astype(int)
SIZES = A.sum(axis=1)
QUIET = {"progress": False, "batch_size": 16}


class TwoInputs(nn.Module):
    def __init__(self):
        self.a, self.b, self.out = layers.Affine(8), layers.Affine(8), layers.Affine(2)

    def call(self, a, b):
        return self.out(F.tanh(self.a(a) + self.b(b)))


def two_outputs(x):
    h = F.tanh(PF.affine(x, 8, name="shared"))
    return PF.affine(h, 2, name="kind"), PF.affine(h, 1, name="size")


def both(y, t):
    return F.mean(F.softmax_cross_entropy(y[0], t[0])) + F.mean(F.squared_error(y[1], t[1]))


def test_a_network_with_two_inputs_is_trained_evaluated_and_predicts():
    result = fit(TwoInputs(), ((A, B), LABELS), 0.2, epochs=30, solver=S.Adam(0.05), **QUIET)
    assert result.evaluate(((A, B), LABELS))["accuracy"] > 0.9
    assert result.predict((A[:5], B[:5])).shape == (5, 2)
    assert result.history[-1]["validation/accuracy"] > 0.8
    for wrong in (A, (A, B, B), (A, B[:3])):
        with pytest.raises(ArgumentError, match="predict: x must be 2 arrays of one length"):
            result.predict(wrong)


def test_two_outputs_and_targets_have_one_loss():
    result = fit(two_outputs, (A, (LABELS, SIZES)), (A, (LABELS, SIZES)), loss=both, epochs=30, solver=S.Adam(0.05), **QUIET)
    assert result.history[-1]["loss"] < 0.5 * result.history[0]["loss"]
    assert result.history[-1]["validation/loss"] == pytest.approx(result.evaluate((A, (LABELS, SIZES)))["loss"])
    kinds, sizes = result.predict(A)
    assert kinds.shape == (80, 2) and np.mean((sizes[:, 0] - SIZES) ** 2) < 0.3


def test_an_output_may_serve_the_loss_alone():
    def encoded(x):
        code = PF.affine(x, 2, name="code")
        return PF.affine(code, 3, name="again"), code

    def together(y, t):
        return F.mean((y[0] - t) ** 2) + 0.1 * F.mean(y[1] ** 2)

    result = fit(encoded, (A, A), loss=together, task="regression", epochs=3, **QUIET)
    assert [array.shape for array in result.predict(A)] == [(80, 3), (80, 2)]


@pytest.mark.parametrize("make", [list, lambda batches: lambda: iter(batches)])
def test_batches_may_have_several_inputs_and_targets(make):
    batches = [((A[i : i + 16], B[i : i + 16]), LABELS[i : i + 16]) for i in range(0, 80, 16)]
    nn.seed(1)
    streamed = fit(TwoInputs(), make(batches), make(batches), epochs=30, solver=S.Adam(0.05), progress=False)
    assert streamed.history[-1]["validation/accuracy"] > 0.9
    pairs = [(A[i : i + 16], (LABELS[i : i + 16], SIZES[i : i + 16])) for i in range(0, 80, 16)]
    assert fit(two_outputs, make(pairs), loss=both, epochs=2, progress=False).history


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit(two_outputs, (A, LABELS), **QUIET), "fit: loss must be given .*, got none for 2 outputs and 1 arrays"),
        (lambda: fit(TwoInputs(), ((A, B), (LABELS, SIZES)), **QUIET), "loss must be given .* 1 outputs and 2 arrays"),
        (
            lambda: fit(two_outputs, (A, (LABELS, SIZES)), 0.2, loss=both, metrics=["accuracy"], **QUIET),
            "fit: metrics must be None where a network has several outputs",
        ),
        (lambda: fit(TwoInputs(), ((A, B[:7]), LABELS), **QUIET), r"as many targets as inputs.*got \(\(80, 3\), \(7, 2\)\)"),
        (lambda: fit(TwoInputs(), ([A, B], LABELS), **QUIET), "a tuple of arrays stands for several, a list for one"),
        (lambda: fit(TwoInputs(), ((A, B), (LABELS, SIZES)), class_weight="balanced", **QUIET), "must go with arrays"),
        (lambda: fit(lambda x: (x, 3), (A, LABELS), **QUIET), "network must return a Variable, or a tuple of some"),
        (lambda: fit(two_outputs, (A, LABELS), loss="mse", **QUIET), "hint: loss=F.squared_error"),
    ],
)
def test_what_does_not_fit_is_told(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_validation_must_have_the_inputs_of_the_training_data():
    with pytest.raises(ShapeError, match=r"those of train, \(\(3,\), \(2,\)\), got \(3,\)"):
        fit(TwoInputs(), ((A, B), LABELS), (A, LABELS), **QUIET)


@pytest.mark.parametrize("loss", [None, F.squared_error, F.huber_loss, lambda y, t: F.mean((y - t) ** 2)])
def test_targets_of_one_axis_are_those_of_a_column(loss):
    def trained(targets):
        nn.seed(3)
        data = (A, targets)
        return fit(lambda x: PF.affine(x, 1), data, data, "regression", loss=loss, epochs=4, fresh=True, seed=3, **QUIET)

    flat, column = trained(SIZES), trained(SIZES[:, None])
    values = [{key: value for key, value in one.history[-1].items() if key != "elapsed_time"} for one in (flat, column)]
    assert values[0] == values[1]
    assert flat.evaluate((A, SIZES)) == column.evaluate((A, SIZES[:, None]))
    assert fit(lambda x: F.sum(x, axis=1) * PF.affine(x, 1)[:, 0], (A, SIZES), task="regression", fresh=True, **QUIET).history


def test_a_data_source_is_data():
    source = ArrayDataSource({"x": A, "t": LABELS}, shuffle=True)
    result = fit(lambda x: PF.affine(x, 2), source, source, epochs=30, solver=S.Adam(0.05), seed=0, **QUIET)
    assert result.history[-1]["validation/accuracy"] == pytest.approx(result.evaluate(source)["accuracy"])
    assert result.history[-1]["validation/accuracy"] == pytest.approx(result.evaluate((A, LABELS))["accuracy"])


def test_columns_of_a_table_must_be_inputs_and_targets(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text("area,rooms,price\n" + "\n".join(f"{i},{i % 3},{2 * i}" for i in range(20)))
    with pytest.raises(ArgumentError, match="must be inputs, targets and maybe weights, got the variables area, rooms, price"):
        fit(lambda x: PF.affine(x, 1), CsvDataSource(path), task="regression", **QUIET)
    path.write_text("x__0,x__1,y\n" + "\n".join(f"{i / 20},{i % 3},{2 * i / 20}" for i in range(20)))
    source = CsvDataSource(path)
    result = fit(lambda x: PF.affine(x, 1), source, task="regression", epochs=60, solver=S.Adam(0.1), **QUIET)
    assert result.history[-1]["loss"] < 0.1


def test_a_network_predicts_without_a_fit():
    net = nn.Sequential(layers.Affine(3), layers.BatchNorm(), layers.Dropout(0.5))
    first = nn.predict(net, A, batch_size=32)
    assert first.shape == (80, 3) and np.array_equal(first, nn.predict(net, A))  # evaluates: nothing is drawn
    assert net.training
    assert nn.predict(TwoInputs(), (A, B), batch_size=7).shape == (80, 2)
    kinds, sizes = nn.predict(two_outputs, A)
    assert kinds.shape == (80, 2) and sizes.shape == (80, 1)
    assert np.array_equal(nn.predict(lambda x, test: x * (3 if test else 1), A), A * 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.predict(3, A), "predict: network must be a function or a module"),
        (lambda: nn.predict(lambda x: 3, A), "predict: network must return a Variable"),
        (lambda: nn.predict(two_outputs, A[:0]), "predict: x must be arrays of one length, with a sample at least"),
        (lambda: nn.predict(TwoInputs(), (A, B[:3])), "predict: x must be arrays of one length"),
        (lambda: nn.predict(two_outputs, A, batch_size=0), "predict: batch_size must be a whole number of at least 1, got 0"),
    ],
)
def test_wrong_calls_of_predict_are_told(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
