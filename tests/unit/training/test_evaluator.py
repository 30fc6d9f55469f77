"""Evaluation: every sample once, whatever the batches are."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.errors import ArgumentError
from nn_core.training import Accuracy, Evaluator, Log, Trainer, Updater, every
from nn_core.utils.data_iterator import data_iterator_simple

X = np.random.RandomState(0).randn(10, 4).astype(np.float32)
T = np.arange(10)[:, None] % 4


def parts(x, t):
    y = F.softmax(x)
    return {"loss": F.mean(F.softmax_cross_entropy(x, t)), "error": Accuracy(y, t)}


def expected():
    logs = X - np.log(np.exp(X).sum(1, keepdims=True))
    return {"loss": -logs[np.arange(10), T[:, 0]].mean(), "error": (X.argmax(1) == T[:, 0]).mean()}


@pytest.mark.parametrize("batch_size", [1, 3, 5, 10, 16])
@pytest.mark.parametrize("kind", ["arrays", "iterator", "shuffled"])
def test_every_sample_counts_once(batch_size, kind):
    x, t = nn.Variable((batch_size, 4)), nn.Variable((batch_size, 1))
    if kind == "arrays":
        evaluator = Evaluator((X, T), [x, t], parts(x, t), batch_size=batch_size)
        results = [evaluator.evaluate() for _ in range(2)]
    else:
        with data_iterator_simple(lambda i: (X[i], T[i]), 10, batch_size, shuffle=kind == "shuffled") as data:
            evaluator = Evaluator(data, [x, t], parts(x, t))
            results = [evaluator.evaluate() for _ in range(2)]
    assert results[0] == pytest.approx(expected(), rel=1e-5)
    assert results[1] == results[0]
    assert x.shape == (batch_size, 4)


def test_in_a_trainer(make_updater, tmp_path):
    x, t = nn.Variable((3, 4)), nn.Variable((3, 1))
    trainer = Trainer(make_updater(), every(2, "epoch"), tmp_path)
    trainer.extend(Log(), Evaluator((X, T), [x, t], parts(x, t), name="test", batch_size=3))
    trainer.run()
    entries = trainer.get_extension("Log").entries
    assert len(entries) == 2
    assert entries[1]["test/error"] == pytest.approx(expected()["error"])


def test_an_evaluation_of_the_graph_that_is_trained_does_not_change_what_was_reported(tmp_path):
    w = nn.Variable.from_numpy_array([1.0], need_grad=True)
    x = nn.Variable((2, 1))
    loss = F.mean(x * w)
    solver = S.Sgd(0.0)
    solver.set_parameters({"w": w})
    held_out = (np.full((4, 1), 100.0),)
    with data_iterator_simple(lambda index: (np.ones(1),), 4, 2) as data:
        trainer = Trainer(Updater(data, [x], loss, solver, model={"w": w}), every(1, "epoch"), tmp_path)
        trainer.extend(Log(), Evaluator(held_out, [x], {"loss": loss}, name="test", batch_size=2))
        trainer.run()
    (entry,) = trainer.get_extension("Log").entries
    assert (entry["loss"], entry["test/loss"]) == (1, 100)


def test_refusals():
    x = nn.Variable((3, 4))
    with pytest.raises(ArgumentError, match=r"Evaluator: arrays must have one length, .*, got \[10, 9\] and 3"):
        Evaluator((X, T[:9]), [x, x], {}, batch_size=3)
    with pytest.raises(ArgumentError, match="Evaluator: a batch must have 1 arrays, one an input, got 2"):
        Evaluator((X, T), [x], {"a": F.sum(x)}, batch_size=3).evaluate()
