"""ReduceOnPlateau: the learning rate falls when a value stays, also in checkpoints and in fit."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError
from nn_core.training import ReduceOnPlateau, fit


def rates(plateau, values, rate=1.0):
    solver, found = S.Sgd(rate), []
    for value in values:
        plateau.update(value, solver)
        found.append(round(solver.learning_rate(), 6))
    return found


@pytest.mark.parametrize(
    ("settings", "values", "expected"),
    [
        ({}, [3, 2, 2, 2, 2, 1], [1, 1, 1, 0.5, 0.5, 0.5]),
        ({}, [3, 3, 3, 3, 3], [1, 1, 0.5, 0.5, 0.25]),
        ({"mode": "max"}, [1, 2, 2, 1, 3], [1, 1, 1, 0.5, 0.5]),
        ({"threshold": 0.5}, [8, 5, 5, 3], [1, 1, 0.5, 0.5]),
        ({"cooldown": 2}, [1] * 7, [1, 1, 0.5, 0.5, 0.5, 0.5, 0.25]),
        ({"min_lr": 0.4}, [1] * 5, [1, 1, 0.5, 0.5, 0.4]),
        ({}, [1, np.nan, np.nan, 0.5], [1, 1, 0.5, 0.5]),
        ({"threshold": 0.1}, [-1, -1.05, -1.2, -1.2], [1, 1, 1, 1]),
    ],
)
def test_rates(settings, values, expected):
    assert rates(ReduceOnPlateau("loss", **{"factor": 0.5, "patience": 2, **settings}), values) == expected


def test_a_state_goes_on():
    first, second = (ReduceOnPlateau("loss", factor=0.5, patience=3) for _ in range(2))
    rates(first, [1, 1, 1])
    second.set_state(first.get_state())
    assert rates(second, [1]) == [0.5]


def test_fit_takes_it_as_schedule():
    x, t = np.eye(4, dtype=np.float32), np.arange(4)
    solver = S.Sgd(0.5)
    with nn.parameter_scope("plateau"):
        schedule = ReduceOnPlateau("validation/loss", factor=0.5, patience=1, threshold=1.0)
        fit(lambda x: PF.affine(x, 4), (x, t), (x, t), epochs=4, solver=solver, schedule=schedule, progress=False)
    assert solver.learning_rate() == 0.5**4
    with (
        nn.parameter_scope("plateau of nothing"),
        pytest.raises(ArgumentError, match=r"ReduceOnPlateau: the key must be one that is reported .*, got 'los'"),
    ):
        fit(lambda x: PF.affine(x, 4), (x, t), epochs=1, schedule=ReduceOnPlateau("los"), progress=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"factor": 1.0}, "factor must be between 0 and 1, got 1.0"),
        ({"mode": "least"}, "mode must be 'min' or 'max', got 'least'"),
        ({"patience": 0}, "patience"),
        ({"threshold": -1}, "threshold must be at least 0, got -1"),
        ({"key": 3}, "keys must be names of values, got 3"),
    ],
)
def test_refuses(settings, message):
    with pytest.raises(ArgumentError, match=f"ReduceOnPlateau: {message}"):
        ReduceOnPlateau(**{"key": "loss", **settings})
