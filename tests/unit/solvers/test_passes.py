"""Solvers that compute the loss several times in an update: SAM and L-BFGS."""

import pickle
from collections import deque

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.communicators import LocalCommunicator, shard_states
from nn_core.data.iterators import data_iterator_simple
from nn_core.errors import ArgumentError, GraphError
from nn_core.solvers.line_search import Point, search
from nn_core.solvers.passes import direction_of
from nn_core.training import LossScale, Updater, fit, observing

MAKERS = {"SAM": lambda: S.SAM(S.Momentum(0.1), rho=0.1), "LBFGS": S.LBFGS}


def parameter(values, dtype=np.float64):
    return nn.Variable.from_numpy_array(np.asarray(values, dtype), need_grad=True)


@pytest.fixture(autouse=True)
def double():
    with nn.context_scope(nn.Context(["reference:double"])):
        yield


def quadratic(n=6):
    """Return a loss of two parameters, and its matrix and vector: w' a w / 2 - b' w."""
    rng = np.random.default_rng(3)
    q = rng.normal(size=(n, n))
    a, b = q @ q.T + np.eye(n), rng.normal(size=n)
    pair = {"u": parameter(rng.normal(size=2)), "v": parameter(rng.normal(size=(n - 2, 1)))}
    w = F.concatenate(F.reshape(pair["u"], (2, 1)), pair["v"], axis=0)
    product = F.affine(nn.Variable.from_numpy_array(a), w)
    return pair, F.sum(w * (0.5 * product - nn.Variable.from_numpy_array(b[:, None]))), a, b


def joined(pair):
    return np.concatenate([pair["u"].d, pair["v"].d.ravel()])


# -- SAM --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decay", [None, 0.1])
def test_sam_follows_the_paper(decay):
    pair, loss, a, b = quadratic()
    w, velocity = joined(pair), 0.0
    solver = S.SAM(S.Momentum(0.01, momentum=0.8), rho=0.3)
    solver.set_parameters(pair)
    for _ in range(4):
        solver.minimize(loss, weight_decay=decay)
        g = a @ w - b
        g = a @ (w + 0.3 * g / np.linalg.norm(g)) - b + (decay or 0.0) * w
        velocity = 0.8 * velocity + 0.01 * g
        w = w - velocity
        np.testing.assert_allclose(joined(pair), w, rtol=1e-12)
    assert solver.info == {"lr": 0.01, "momentum": 0.8, "rho": 0.3}


def test_sam_of_a_dynamic_graph_clips_the_second_gradient():
    w = parameter([3.0, 4.0])
    solver = S.SAM(S.Sgd(1.0), rho=0.5)
    solver.set_parameters({"w": w})
    loss = solver.minimize(lambda: F.sum(w * w), clip_norm=1.0)
    assert loss.d == 25
    np.testing.assert_allclose(w.d, [2.4, 3.2])


def test_sam_returns_when_the_second_pass_fails():
    w = parameter([3.0, 4.0], np.float32)
    solver, calls = S.SAM(S.Sgd(1.0), rho=0.5), []
    solver.set_parameters({"w": w})

    def gradients():
        calls.append(w.d.tolist())
        w.g = np.float32([3.0, 4.0])
        if len(calls) == 2:
            raise KeyError("batch")
        return 1.0

    with pytest.raises(KeyError):
        solver.update_with(gradients)
    assert calls[1] == [pytest.approx(3.3), pytest.approx(4.4)]
    np.testing.assert_array_equal(w.d, [3, 4])


# -- L-BFGS -----------------------------------------------------------------------------------------------------------


def test_directions_are_those_of_the_inverse_hessian_of_bfgs():
    """Equation 7.19 with dense matrices, from the scaled identity of equation 7.20."""
    rng = np.random.default_rng(0)
    a = np.diag([1.0, 4.0, 9.0, 2.0])
    pairs = deque((s, a @ s) for s in rng.normal(size=(3, 4)))
    s, y = pairs[-1]
    h = np.eye(4) * (s @ y) / (y @ y)
    for s, y in pairs:
        rho = 1 / (s @ y)
        v = np.eye(4) - rho * np.outer(y, s)
        h = v.T @ h @ v + rho * np.outer(s, s)
    grad = rng.normal(size=4)
    np.testing.assert_allclose(direction_of(grad, pairs), -h @ grad, rtol=1e-12)


@pytest.mark.parametrize("length", [1e-3, 1.0, 50.0])
def test_line_searches_meet_the_strong_wolfe_conditions(length):
    def evaluate(w):
        (x,) = w
        loss = x**4 / 4 - x**3 - 3 * np.cos(3 * x)
        return Point(w, float(loss), np.array([x**3 - 3 * x**2 + 9 * np.sin(3 * x)]))

    start = evaluate(np.array([-1.5]))
    direction = -start.grad
    found = search(evaluate, start, direction, length)
    slope = start.grad @ direction
    taken = (found.w - start.w) / direction
    assert found.loss <= start.loss + 1e-4 * taken * slope
    assert abs(found.grad @ direction) <= 0.9 * abs(slope)


def test_line_searches_step_back_from_what_is_not_finite():
    def evaluate(w):
        with np.errstate(all="ignore"):
            return Point(w, float(-np.log(1 - w[0]) + (w[0] - 0.5) ** 2), np.array([1 / (1 - w[0]) + 2 * (w[0] - 0.5)]))

    start = evaluate(np.array([-3.0]))
    found = search(evaluate, start, -start.grad, 10.0)
    assert found.is_finite
    assert found.loss < start.loss


def test_lbfgs_solves_a_quadratic_in_one_update():
    pair, loss, a, b = quadratic()
    solver = S.LBFGS()
    solver.set_parameters(pair)
    before = solver.minimize(loss)
    np.testing.assert_allclose(joined(pair), np.linalg.solve(a, b), rtol=1e-5)
    assert before is loss
    assert {state.t for state in solver.get_states().values()} == {1}


def test_lbfgs_goes_on_from_its_state_copies_and_files(tmp_path):
    def rosenbrock(w):
        return F.sum(100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2)

    def made(start):
        w = parameter(start)
        solver = S.LBFGS(history=3, max_iterations=4)
        solver.set_parameters({"w": w})
        return solver, w

    solver, w = made([0.2, 1.0, 0.5, -0.3])
    for _ in range(2):
        solver.minimize(lambda: rosenbrock(w))
    copied = pickle.loads(pickle.dumps(solver))
    by_state, by_file = made(w.d.copy())[0], made(w.d.copy())[0]
    by_state.set_state(solver.get_state())
    solver.save_states(tmp_path / "states.npz")
    by_file.load_states(tmp_path / "states.npz")
    solver.minimize(lambda: rosenbrock(w))
    for other in (copied, by_state, by_file):
        v = other.get_parameters()["w"]
        other.minimize(lambda v=v: rosenbrock(v))
        np.testing.assert_array_equal(v.d, w.d)
    for _ in range(12):
        solver.minimize(lambda: rosenbrock(w))
    np.testing.assert_allclose(w.d, 1.0, atol=1e-6)
    fresh, v = made(copied.get_parameters()["w"].d.copy())
    fresh.minimize(lambda: rosenbrock(v))
    assert (v.d != w.d).any(), "the history has no effect"


def test_lbfgs_leaves_frozen_parameters_and_a_rate_of_zero():
    pair, loss, _, _ = quadratic()
    solver = S.LBFGS()
    solver.set_parameters(pair, groups={"u": {"frozen": True}})
    u, v = pair["u"].d.copy(), pair["v"].d.copy()
    solver.minimize(loss)
    np.testing.assert_array_equal(pair["u"].d, u)
    assert (pair["v"].d != v).all()
    v = pair["v"].d.copy()
    solver.set_learning_rate(0.0)
    solver.set_groups({})
    solver.minimize(loss)
    np.testing.assert_array_equal(joined(pair), [*u, *v.ravel()])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_lbfgs_refuses_a_loss_that_is_not_finite(bad):
    w = parameter([1.0, 2.0])
    solver = S.LBFGS()
    solver.set_parameters({"w": w})
    with pytest.raises(GraphError, match="LBFGS: the loss and its gradients must be finite, got a loss of"):
        solver.minimize(F.sum(w * nn.Variable.from_numpy_array(np.array([1.0, bad]))))
    np.testing.assert_array_equal(w.d, [1, 2])


def test_lbfgs_is_where_its_last_step_led_when_a_pass_fails():
    w = parameter([4.0, -3.0])
    solver, calls = S.LBFGS(), []
    solver.set_parameters({"w": w})

    def gradients():
        calls.append(0)
        if len(calls) == 2:
            raise KeyError("batch")
        w.g = w.d
        return float(w.d @ w.d) / 2

    with pytest.raises(KeyError):
        solver.update_with(gradients)
    np.testing.assert_array_equal(w.d, [4, -3])


# -- both -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_updates_without_passes_are_refused(name):
    w = parameter([1.0], np.float32)
    solver = MAKERS[name]()
    solver.set_parameters({"w": w})
    w.g = 1.0
    for update in (solver.update, solver.update_if_finite):
        with pytest.raises(GraphError, match=rf"{name}\.update: the loss must be computed several times"):
            update()
    assert w.d.tolist() == [1.0]
    with pytest.raises(ArgumentError, match=f"minimize: loss_scale must be None for {name}"):
        solver.minimize(F.sum(w * w), loss_scale=LossScale(2.0))
    with pytest.raises(ArgumentError, match=f"shard_states: solver must update by gradients of one pass, got {name}"):
        LocalCommunicator.run(1, lambda comm: shard_states(comm, solver))


def test_what_changes_gradients_alone_is_refused_by_lbfgs():
    w = parameter([1.0], np.float32)
    solver = S.LBFGS()
    solver.set_parameters({"w": w})
    for settings in ({"clip_norm": 1.0}, {"weight_decay": 0.1}):
        with pytest.raises(ArgumentError, match="LBFGS: gradients must be those of the loss, got"):
            solver.minimize(F.sum(w * w), **settings)
    solver.set_groups({"w": {"learning_rate_multiplier": 0.5}})
    with pytest.raises(ArgumentError, match="LBFGS: groups of parameters must be frozen or as all others, got settings of w"):
        solver.minimize(F.sum(w * w))
    solver.set_groups({})
    w.g = 1.0
    with pytest.raises(ArgumentError, match="update_with: gradients must return the loss, got None"):
        solver.update_with(lambda: None)


@pytest.mark.parametrize("name", MAKERS)
def test_an_updater_reports_the_first_pass(name):
    x, w = nn.Variable((2, 1)), parameter([[4.0]], np.float32)
    solver = MAKERS[name]()
    solver.set_parameters({"w": w})
    with data_iterator_simple(lambda i: (np.ones(1, np.float32),), 4, 2) as data:
        updater = Updater(data, [x], F.mean((w * x) ** 2), solver, accumulate=2, model={"w": w})
        with observing() as seen:
            updater.update()
    assert seen["loss"] == pytest.approx(16.0)
    expected = {"SAM": 4 - 0.1 * 2 * 4.1, "LBFGS": 0.0}[name]
    assert w.d.item() == pytest.approx(expected, abs=1e-5)


def test_updaters_refuse_what_does_not_go_with_passes():
    x, w = nn.Variable((2, 1)), parameter([[4.0]], np.float32)
    loss = F.mean((w * x) ** 2)
    with data_iterator_simple(lambda i: (np.ones(1, np.float32),), 4, 2) as data:
        with pytest.raises(ArgumentError, match="Updater: LBFGS must be the only solver, got 2"):
            Updater(data, [x], loss, {"a": S.LBFGS(), "b": S.Sgd()})
        with pytest.raises(ArgumentError, match="Updater: loss_scale must not be given with LBFGS"):
            Updater(data, [x], loss, S.LBFGS(), loss_scale=2.0)


def test_fit_takes_solvers_of_several_passes():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2)).astype(np.float32)
    t = (x[:, 0] > x[:, 1]).astype(int)
    for name, make in MAKERS.items():
        with nn.parameter_scope(name):
            found = fit(lambda x: PF.affine(x, 2), (x, t), epochs=5, batch_size=40, solver=make(), progress=False, seed=1)
        assert found.history[-1]["loss"] < found.history[0]["loss"]
