"""Parameters that a solver passes over: frozen ones, and those without a gradient."""

import logging

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.engine.graph import backward
from nn_core.solver import Solver

METHODS = [method for method in (getattr(S, name) for name in S.__all__) if Solver in method.__bases__]


def parameter(rng, shape):
    return nn.Variable.from_numpy_array(np.float32(rng.normal(size=shape)), need_grad=True)


@pytest.fixture
def no_earlier_warning(monkeypatch):
    monkeypatch.setattr(backward, "_HAS_WARNED", [])


def test_the_methods_that_are_compared():
    assert {True, False} == {method.reads_t for method in METHODS}
    assert len(METHODS) >= 18


class Counting(S.Sgd):
    """A method of a program's own that inherits from one that does not read t."""

    @staticmethod
    def step(xp, w, g, states, hyper):
        w -= hyper[-1]


def test_a_step_of_its_own_gets_the_t_of_each_parameter():
    v, w = (nn.Variable.from_numpy_array(np.zeros(2, np.float32), need_grad=True) for _ in range(2))
    solver = Counting()
    solver.set_parameters({"v": v, "w": w})
    for frozen in (False, True, False):
        v.need_grad = not frozen
        v.g = w.g = 1.0
        solver.update()
    np.testing.assert_array_equal([v.d, w.d], [[-3, -3], [-6, -6]])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_a_frozen_parameter_is_left_alone_and_goes_on_later(method):
    """One solver of five parameters, against five solvers of one each that are called only while it is not frozen."""
    rng = np.random.default_rng(313)
    shapes = [(3,), (2, 2), (1,), (4, 1), (5,)]
    ours = {str(i): parameter(rng, shape) for i, shape in enumerate(shapes)}
    theirs = {key: nn.Variable.from_numpy_array(w.d, need_grad=True) for key, w in ours.items()}
    solver = method()
    solver.set_parameters(ours)
    alone = {key: method() for key in theirs}
    for key, single in alone.items():
        single.set_parameters({key: theirs[key]})
    for _ in range(40):
        for w in ours.values():
            if rng.random() < 0.3:
                w.need_grad = not w.need_grad
        active = [key for key, w in ours.items() if w.need_grad]
        for key, w in ours.items():
            w.g = theirs[key].g = np.float32(rng.normal(size=w.shape))
        before = {key: (w.d.copy(), w.g.copy()) for key, w in ours.items()}
        change = rng.choice(["decay", "clip", "scale", "none"])
        for target in (solver, *(alone[key] for key in active)):
            if change == "decay":
                target.weight_decay(0.1)
            elif change == "clip":
                target.clip_grad_by_norm(0.5)
            elif change == "scale":
                target.scale_grad(0.25)
            target.update()
        for key, w in ours.items():
            if key in active:
                np.testing.assert_array_equal(w.d, theirs[key].d)
                np.testing.assert_array_equal(w.g, theirs[key].g)
            else:
                np.testing.assert_array_equal(w.d, before[key][0])
                np.testing.assert_array_equal(w.g, before[key][1])
    for key, state in solver.get_states().items():
        single = alone[key].get_states()[key]
        assert state.t == single.t
        for name, values in state.pstate.items():
            np.testing.assert_array_equal(values.d, single.pstate[name].d)


def test_a_frozen_parameter_of_a_graph_is_left_alone():
    rng = np.random.default_rng(5)
    x = nn.Variable.from_numpy_array(np.float32(rng.normal(size=(4, 3))))
    v, w = parameter(rng, (3, 5)), parameter(rng, (5, 2))
    loss = F.sum(F.affine(F.affine(x, v), w) ** 2)
    solver = S.Adam()
    solver.set_parameters({"v": v, "w": w})
    v.need_grad = False
    before = v.d.copy()
    for _ in range(3):
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.weight_decay(0.1)
        solver.update()
    np.testing.assert_array_equal(v.d, before)
    assert {key: state.t for key, state in solver.get_states().items()} == {"v": 0, "w": 3}


def test_checks_do_not_look_at_frozen_parameters():
    v, w = (nn.Variable.from_numpy_array(np.ones(2), need_grad=True) for _ in range(2))
    v.g, w.g = [np.nan, np.inf], 1.0
    solver = S.Sgd()
    solver.set_parameters({"v": v, "w": w})
    assert solver.check_inf_or_nan_grad()
    v.need_grad = False
    assert not solver.check_inf_or_nan_grad()
    assert not solver.check_nan_grad()


def test_zero_grad_also_clears_frozen_gradients():
    v = nn.Variable.from_numpy_array(np.ones(2), need_grad=True)
    v.g, v.need_grad = 7.0, False
    solver = S.Sgd()
    solver.set_parameters({"v": v})
    solver.zero_grad()
    assert v.g.tolist() == [0, 0]


def test_a_variable_whose_flag_was_never_set_is_updated():
    w = nn.Variable.from_numpy_array(np.ones(2))
    w.g = 1.0
    solver = S.Sgd(0.5)
    solver.set_parameters({"w": w})
    solver.update()
    assert w.d.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("zero_first", [False, True])
def test_an_update_before_any_backward_changes_nothing_and_is_logged_once(caplog, zero_first):
    w = nn.Variable.from_numpy_array(np.ones(2), need_grad=True)
    solver = S.Momentum(0.5)
    solver.set_parameters({"w": w})
    for _ in range(3):
        if zero_first:
            solver.zero_grad()
        solver.weight_decay(0.1)
        solver.update()
    assert w.d.tolist() == [1, 1]
    assert solver.get_states()["w"].t == 0
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "Momentum.update: a gradient of the parameters must have been computed, got none" in record.message
    w.g = 1.0
    solver.update()
    assert w.d.tolist() == [0.5, 0.5]


def test_a_parameter_without_gradient_beside_others_is_no_reason_for_a_warning(caplog):
    used, unused = (nn.Variable.from_numpy_array(np.ones(2), need_grad=True) for _ in range(2))
    solver = S.Sgd(0.5)
    solver.set_parameters({"used": used, "unused": unused})
    used.g = 1.0
    solver.weight_decay(0.5)
    solver.update()
    assert used.d.tolist() == [0.25, 0.25] and unused.d.tolist() == [1, 1]
    solver.zero_grad()
    solver.update()  # the second step may well have none, as with layers that are not always used
    assert not caplog.records


def test_a_solver_without_parameters_is_logged_once(caplog):
    solver = S.Sgd()
    for _ in range(2):
        solver.update()
    (record,) = caplog.records
    assert "Sgd.update: there must be parameters to change, got none (hint: call set_parameters()" in record.message


def test_freezing_everything_is_no_reason_for_a_warning(caplog):
    w = nn.Variable.from_numpy_array(np.ones(2), need_grad=True)
    w.need_grad = False
    solver = S.Sgd()
    solver.set_parameters({"w": w})
    solver.update()
    assert not caplog.records


@pytest.mark.usefixtures("no_earlier_warning")
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: F.sum(nn.Variable((2,))), "nothing before it needs a gradient"),
        (lambda: nn.Variable((2,), need_grad=True), "no function computes it"),
    ],
    ids=["graph", "leaf"],
)
def test_a_backward_pass_without_any_gradient_is_logged_once(caplog, make, reason):
    y = make()
    y.forward()
    for _ in range(2):
        y.backward()
    (record,) = caplog.records
    assert "backward: the variable must depend on one with need_grad=True, got one of shape" in record.message
    assert reason in record.message
