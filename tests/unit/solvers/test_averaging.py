"""Solvers that keep a second set of weights: Lookahead, and the schedule-free ones."""

import copy
import pickle

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.communicators import LocalCommunicator, shard_states
from nn_core.data.iterators import data_iterator_simple
from nn_core.errors import ArgumentError, GraphError, UnknownAttributeError
from nn_core.training import Evaluator, Trainer, Updater, every, fit


def parameter(values, dtype=np.float64):
    return nn.Variable.from_numpy_array(np.asarray(values, dtype), need_grad=True)


def in_double(make):
    with nn.context_scope(nn.Context(["reference:double"])):
        return make()


# -- Lookahead --------------------------------------------------------------------------------------------------------


def lookahead(inner, starts, grads, interval, slow_step):
    """Take the steps of algorithm 1 of the paper around any solver: k steps forward, one step back."""
    fast = parameter(starts)
    inner.set_parameters({"w": fast})
    slow = np.array(starts, np.float64)
    for number, g in enumerate(grads, 1):
        fast.g = g
        inner.update()
        if number % interval == 0:
            slow = slow + slow_step * (fast.d - slow)
            fast.d = slow
    return fast.d


@pytest.mark.parametrize("name", ["Sgd", "Momentum", "Adam", "AdamW", "AdaBelief", "Lion"])
def test_lookahead_follows_the_paper(name):
    rng = np.random.default_rng(1)
    start, grads = rng.normal(size=5), rng.normal(size=(7, 5))
    make = getattr(S, name)
    expected = lookahead(in_double(lambda: make(0.1)), start, grads, 3, 0.25)
    solver = in_double(lambda: S.Lookahead(make(0.1), interval=3, slow_step=0.25))
    w = parameter(start)
    solver.set_parameters({"w": w})
    for g in grads:
        w.g = g
        solver.update()
    np.testing.assert_allclose(w.d, expected, rtol=1e-12)


def test_lookahead_has_the_numbers_states_and_decay_of_its_solver():
    inner = S.AdamW(0.1, wd=0.0)
    solver = S.Lookahead(inner, interval=2)
    w = parameter([1.0, -2.0], np.float32)
    solver.set_parameters({"w": w})
    assert solver.info == {**inner.info, "interval": 2, "slow_step": 0.5}
    assert list(solver.get_states()["w"].pstate) == ["mean", "var", "slow"]
    assert solver.weight_decay_is_fused()
    solver.set_learning_rate(0.5)
    solver.alpha = 0.25
    solver.interval = 3
    assert (solver.alpha, solver.learning_rate(), solver.interval, inner.alpha) == (0.25, 0.25, 3, 0.1)
    with pytest.raises(UnknownAttributeError, match="Lookahead: an attribute must be one of alpha, "):
        solver.beta3 = 1.0
    with pytest.raises(ArgumentError, match=r"Lookahead: interval must be a whole number of at least 1, got 1\.5"):
        solver.interval = 1.5


@pytest.mark.parametrize("how", ["pickle", "copy", "state", "file"])
def test_lookahead_goes_on_from_copies_states_and_files(how, tmp_path):
    def made():
        return S.Lookahead(S.Adam(0.1), interval=3)

    rng = np.random.default_rng(0)
    start, grads = rng.normal(size=3), rng.normal(size=(6, 3)).astype(np.float32)
    solver, w = made(), parameter(start, np.float32)
    solver.set_parameters({"w": w})
    for g in grads[:4]:
        w.g = g
        solver.update()
    if how in ("pickle", "copy"):
        other = pickle.loads(pickle.dumps(solver)) if how == "pickle" else copy.deepcopy(solver)
    else:
        other = made()
        other.set_parameters({"w": parameter(w.d.copy(), np.float32)})
        if how == "state":
            other.set_state(solver.get_state())
        else:
            solver.save_states(tmp_path / "states.npz")
            other.load_states(tmp_path / "states.npz")
    v = other.get_parameters()["w"]
    for g in grads[4:]:
        w.g = v.g = g
        solver.update()
        other.update()
    np.testing.assert_array_equal(v.d, w.d)


def test_lookahead_refuses():
    used = S.Sgd(0.1)
    used.set_parameters({"w": parameter([1.0])})
    with pytest.raises(ArgumentError, match="Lookahead: solver must have no parameters, got 1"):
        S.Lookahead(used)
    with pytest.raises(ArgumentError, match=r"Lookahead: solver must be a solver such as S\.Adam\(\), got 'adam'"):
        S.Lookahead("adam")
    with pytest.raises(ArgumentError, match="Lookahead: interval must be a whole number of at least 1, got 0"):
        S.Lookahead(S.Sgd(), interval=0)
    with pytest.raises(ArgumentError, match="Lookahead: slow_step must be from 0 to 1, got 2"):
        S.Lookahead(S.Sgd(), slow_step=2)


def test_lookahead_skips_steps_that_are_not_finite():
    solver, w = S.Lookahead(S.Adam(0.1), interval=1), parameter([1.0, 2.0], np.float32)
    solver.set_parameters({"w": w})
    w.g = np.float32([1.0, np.inf])
    assert solver.update_if_finite() == np.inf
    np.testing.assert_array_equal(w.d, [1, 2])
    assert solver.get_states()["w"].t == 0


# -- schedule-free ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ScheduleFreeSgd", "ScheduleFreeAdamW"])
def test_the_average_is_that_of_the_fast_sequence(name):
    solver, w = in_double(getattr(S, name)), parameter([1.0, -2.0])
    solver.set_parameters({"w": w})
    rng = np.random.default_rng(0)
    fast = []
    for _ in range(4):
        w.g = rng.normal(size=2)
        solver.update()
        fast.append(solver.get_states()["w"].pstate["fast"].d.copy())
    rates = np.ones(4) if name == "ScheduleFreeSgd" else 1 - 0.999 ** np.arange(1, 5)  # squares of the rates
    before = w.d.copy()
    with solver.averaged_parameters():
        np.testing.assert_allclose(w.d, np.average(fast, axis=0, weights=rates), rtol=1e-9)
    np.testing.assert_array_equal(w.d, before)
    solver.keep_average()
    kept = w.d.copy()
    w.g = [0.0, 0.0]
    solver.update()
    np.testing.assert_allclose(w.d, kept, rtol=1e-12)  # anew from the average


def test_averaged_parameters_are_not_to_be_updated():
    solver, w = S.ScheduleFreeSgd(0.1), parameter([1.0], np.float32)
    solver.set_parameters({"w": w})
    w.g = 1.0
    solver.update()
    with (
        pytest.raises(GraphError, match="averaged parameters must not be updated, got an update in averaged_parameters"),
        solver.averaged_parameters(),
    ):
        solver.update()
    for bad in (0.0, 1.0, 1.5):
        with pytest.raises(ArgumentError, match="must be between 0 and 1"):
            S.ScheduleFreeSgd(0.1, momentum=bad)
    with pytest.raises(ArgumentError, match="ScheduleFreeAdamW: beta1 must be given to the constructor"):
        S.ScheduleFreeAdamW().beta1 = 0.5


def test_divided_states_have_no_average_before_they_are_gathered():
    def program(comm):
        solver, w = S.ScheduleFreeSgd(0.1), parameter([1.0, 2.0, 3.0], np.float32)
        solver.set_parameters({"w": w})
        shards = shard_states(comm, solver)
        w.g = 1.0
        solver.update()
        with pytest.raises(ArgumentError, match="must be gathered first"):
            solver.keep_average()
        shards.gather_states(to_all=True)
        with solver.averaged_parameters():
            return w.d.copy()

    for found in LocalCommunicator.run(2, program):
        np.testing.assert_allclose(found, [0.9, 1.9, 2.9], rtol=1e-6)


def test_evaluations_use_the_averages_and_fit_ends_with_them(tmp_path):
    x, w = nn.Variable((1, 1)), parameter([[4.0]], np.float32)
    solver = S.ScheduleFreeSgd(0.5, momentum=0.5)
    solver.set_parameters({"w": w})
    seen = []
    with data_iterator_simple(lambda i: (np.ones(1, np.float32),), 3, 1) as data:
        updater = Updater(data, [x], F.mean(0.25 * (w * x) ** 2), solver, model={"w": w})
        trainer = Trainer(updater, every(1, "epoch"), tmp_path)
        trainer.extend(Evaluator(([[1.0]],), [x], {"w": F.mean(w * x)}, batch_size=1))
        trainer.extend(lambda trainer: seen.append(trainer.observation["validation/w"]))
        trainer.run()
    with solver.averaged_parameters():
        assert seen == [pytest.approx(w.d.item())]
    assert w.d.item() != pytest.approx(seen[0])
    images, labels = np.eye(4, dtype=np.float32), np.arange(4)
    with nn.parameter_scope("averages"):
        found = fit(
            lambda x: PF.affine(x, 4), (images, labels), (images, labels), epochs=30,
            solver=S.ScheduleFreeAdamW(0.1), progress=False,
        )  # fmt: skip
        last = found.history[-1]
        assert found.evaluate((images, labels))["loss"] == pytest.approx(last["validation/loss"], rel=1e-5)
        assert last["validation/accuracy"] == 1.0


# -- the promise of each paper on a small problem ----------------------------------------------------------------------


def error(solver, *, noise=0.1, decays=False, steps=300):
    """Mean squared error after noisy least squares with a matrix and a vector; the condition number is 10."""
    rng = np.random.default_rng(0)
    a = np.linalg.qr(rng.normal(size=(64, 8)))[0] * np.logspace(0, -0.5, 8) * 8
    target = a @ rng.normal(size=(8, 3)) + 0.5
    w, b = parameter(np.zeros((8, 3)), np.float32), parameter(np.zeros((1, 3)), np.float32)
    solver.set_parameters({"w": w, "b": b})
    x, t = nn.Variable((16, 8)), nn.Variable((16, 3))
    loss = F.mean((F.affine(x, w) + b - t) ** 2)
    rate = solver.learning_rate()
    for step in range(steps):
        if decays:
            solver.set_learning_rate(rate * (1 - step / steps))
        chosen = rng.integers(0, 64, 16)
        x.d, t.d = a[chosen], target[chosen] + noise * rng.normal(size=(16, 3))
        solver.minimize(loss)
    if hasattr(solver, "keep_average"):
        solver.keep_average()
    return float(np.mean((a @ w.d + b.d - target) ** 2))


@pytest.mark.parametrize("name", ["Adafactor", "Muon", "Lookahead"])
def test_trains_a_small_problem(name):
    makes = {
        "Lookahead": lambda: S.Lookahead(S.Adam(0.05)),
        "Muon": lambda: S.Muon(0.3),
        "Adafactor": lambda: S.Adafactor(0.1),
    }
    assert error(makes[name](), decays=True) < 1e-2


@pytest.mark.parametrize(("free", "usual"), [("ScheduleFreeSgd", "Sgd"), ("ScheduleFreeAdamW", "Adam")])
def test_a_schedule_free_solver_does_without_a_schedule(free, usual):
    """The claim of the paper: at a constant rate, where the usual method stays as far off as its steps are long."""
    rate = {"Sgd": 0.5, "Adam": 0.05}[usual]
    without, constant = error(getattr(S, free)(rate), noise=1.0), error(getattr(S, usual)(rate), noise=1.0)
    assert without < 0.5 * constant
