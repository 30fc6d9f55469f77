"""Solvers have on small problems what their papers claim."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S


def walk(solver: Any, loss_of: Callable[[Any], Any], start: Any, steps: int) -> list[np.ndarray[Any, Any]]:
    """Return the places at which a solver has been, the start first."""
    w = nn.Variable.from_numpy_array(np.asarray(start, np.float32), need_grad=True)
    solver.set_parameters({"w": w})
    loss = loss_of(w)
    places = [w.d.copy()]
    for _ in range(steps):
        solver.minimize(loss)
        places.append(w.d.copy())
    return places


def rosenbrock(w: Any) -> Any:
    x, y = w[0], w[1]
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def narrow_valley(w: Any) -> Any:
    return F.sum(w**2 * nn.Variable.from_numpy_array(np.array([100.0, 1.0], np.float32))) / 2


def test_lbfgs_reaches_the_end_of_the_valley_of_rosenbrock() -> None:
    end = walk(S.LBFGS(), rosenbrock, [-1.2, 1.0], 40)[-1]
    np.testing.assert_allclose(end, [1, 1], atol=1e-3)
    slow = walk(S.Sgd(1e-3), rosenbrock, [-1.2, 1.0], 40)[-1]
    assert abs(slow - 1).max() > 1  # a rate that does not diverge is far away by then


def test_the_first_steps_of_radam_are_those_of_momentum() -> None:
    """There is no estimate of the variance yet: steps grow with the gradient, where those of Adam do not."""
    moved = {}
    for scale in (1, 1000):
        for solver in (S.RAdam(1e-6), S.Adam(1e-6)):
            places = walk(solver, lambda w, scale=scale: scale * narrow_valley(w), [1.0, 1.0], 1)
            moved[type(solver).__name__, scale] = np.abs(np.diff(np.array(places, np.float64), axis=0)).max()
    assert moved["RAdam", 1000] == pytest.approx(1000 * moved["RAdam", 1], rel=0.05)
    assert moved["Adam", 1000] == pytest.approx(moved["Adam", 1], rel=0.1)


def test_nadam_is_ahead_of_adam_on_a_quadratic() -> None:
    left = [np.linalg.norm(walk(solver, narrow_valley, [1.0, 1.0], 60)[-1]) for solver in (S.NAdam(0.01), S.Adam(0.01))]
    assert left[0] < left[1]


def test_adafactor_keeps_a_row_and_a_column_of_a_matrix() -> None:
    solver = S.Adafactor()
    solver.set_parameters({"w": nn.Variable((64, 32), need_grad=True)})
    walk(solver, lambda w: F.sum(w**2), np.ones((64, 32)), 1)
    kept = sum(np.size(state.data) for state in solver.get_states()["w"].pstate.values())
    assert 64 + 32 <= kept < 64 + 32 + 8


def test_muon_moves_by_a_matrix_whose_singular_values_are_alike() -> None:
    u, _, v = np.linalg.svd(np.random.default_rng(0).normal(size=(8, 8)))
    gradient = nn.Variable.from_numpy_array((u * np.logspace(0, -1.5, 8)) @ v)
    places = walk(S.Muon(0.1), lambda w: F.sum(w * gradient), np.zeros((8, 8)), 1)
    values = np.linalg.svd(places[1] - places[0], compute_uv=False)
    assert values.max() / values.min() < 2  # those of the gradient: 32


def test_sam_goes_on_to_a_flatter_minimum() -> None:
    """Compare minima (a, 1 / a), where the trace of the Hessian is twice a**2 + 1 / a**2."""

    def loss_of(w: Any) -> Any:
        return (w[0] * w[1] - 1) ** 2

    sharp = walk(S.Sgd(0.01), loss_of, [3.0, 0.2], 1000)[-1]
    flat = walk(S.SAM(S.Sgd(0.01), rho=0.2), loss_of, [3.0, 0.2], 1000)[-1]
    assert np.prod(sharp) == pytest.approx(1, abs=0.01)
    assert np.prod(flat) == pytest.approx(1, abs=0.2)
    assert np.sum(flat**2) < 0.7 * np.sum(sharp**2)
