"""Updaters: what one iteration does to the parameters."""

import copy
import math

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.errors import ArgumentError
from nn_core.training import LossScale, Updater, observing
from nn_core.utils.data_iterator import data_iterator_simple


def parameters():
    return np.concatenate([variable.d.ravel() for variable in nn.get_parameters().values()])


def after(updater, steps=5):
    for _ in range(steps):
        updater.update()
    return parameters()


@pytest.mark.parametrize("solver", ["Sgd", "Adam"])
def test_loss_scaling_changes_nothing_but_rounding(make_updater, solver):
    settings = {"clip_norm": 0.5, "weight_decay": 0.01}
    plain = after(make_updater(solver, **settings))
    scaled = after(make_updater(solver, **settings, loss_scale=1000.0))
    np.testing.assert_allclose(scaled, plain, rtol=1e-5)
    assert not np.allclose(plain, after(make_updater(solver, weight_decay=0.01)), rtol=1e-3) or solver == "Adam"


@pytest.mark.parametrize("solver", ["Sgd", "Momentum", "Adam"])
def test_a_clipped_step_does_not_depend_on_the_loss_scale(make_updater, solver):
    def step(**settings):
        updater = make_updater(solver, clip_norm=0.01, **settings)
        before = parameters()
        return after(updater, 1) - before

    plain, scaled = step(), step(loss_scale=1000.0)
    assert np.linalg.norm(scaled - plain) <= 1e-6 * np.linalg.norm(plain)
    assert np.linalg.norm(plain) > 0


def test_accumulation_is_the_mean_of_its_batches(make_updater):
    expected = after(make_updater(batch_size=12), 1)
    np.testing.assert_allclose(after(make_updater(batch_size=4, accumulate=3), 1), expected, rtol=1e-5)


def test_dynamic_graphs_are_the_same(make_updater):
    assert np.array_equal(after(make_updater()), after(make_updater(dynamic=True)))


def reports_of(updater):
    with observing() as seen:
        updater.update()
    return {name: (value, seen.weight(name)) for name, value in seen.items()}


def test_an_iteration_without_extras_is_that_of_its_parts(make_updater):
    def course(**settings):
        updater = make_updater("Adam", **settings)
        return [(reports_of(updater), after(updater).tolist(), updater.iteration) for _ in range(2)]

    assert course() == course(hooks=[lambda solver, iteration: None])


@pytest.mark.parametrize("part", ["step", "next_batch", "gradients", "apply_gradients"])
def test_a_part_of_a_subclass_takes_the_place_of_ours(make_updater, part):
    made = make_updater()
    calls = []

    def own(self, *args):
        calls.append(part)
        return getattr(Updater, part)(self, *args)

    updater = type("Own", (Updater,), {part: own})(made.data, made._inputs, made._loss, made.solvers)
    assert set(reports_of(updater)) == {"loss"}
    assert calls == [part]


def test_a_loss_scale_can_come_later(make_updater):
    updater = make_updater()
    assert set(reports_of(updater)) == {"loss"}
    updater.loss_scale = LossScale(8.0)
    assert set(reports_of(updater)) == {"loss", "grad_norm"}


@pytest.mark.parametrize(("batch", "weight"), [([np.zeros((3, 1))], 3), ([[[1.0], [2.0]]], 2), ([np.float32(1)], 1)])
def test_a_loss_weighs_as_much_as_its_batch_has_samples(batch, weight):
    w = nn.Variable.from_numpy_array([1.0], need_grad=True)
    x = nn.Variable(np.shape(batch[0]))
    solver = S.Sgd(0.1)
    solver.set_parameters({"w": w})
    data = type("Data", (), {"next": lambda self: batch})()
    assert reports_of(Updater(data, [x], F.sum(x * w), solver, model={"w": w}))["loss"][1] == weight


def test_losses_are_reported(make_updater):
    updater = make_updater(accumulate=2)
    with observing() as seen:
        updater.update()
    assert set(seen) == {"loss"}
    assert seen.weight("loss") == 8
    assert (updater.iteration, updater.epoch, updater.samples, updater.epoch_size) == (1, 0, 8, 12)


def test_metrics_are_reported(make_updater):
    updater = make_updater()
    double = updater._loss * 2
    updater = Updater(updater.data, updater._inputs, updater._loss, updater.solvers["main"], metrics={"double": double})
    with observing() as seen:
        updater.update()
        assert seen["double"] == pytest.approx(2 * seen["loss"])


def test_steps_that_overflow_are_skipped():
    w = nn.Variable.from_numpy_array([1.0], need_grad=True)
    x = nn.Variable((1, 1))
    values = [1.0, math.inf, 1.0, 1.0, 1.0]
    solver = S.Momentum(0.1)
    solver.set_parameters({"w": w})
    scale = LossScale(8.0, interval=2)
    with data_iterator_simple(lambda index: (np.array([values[index]]),), 5, 1) as data:
        updater = Updater(data, [x], F.sum(x * w), solver, loss_scale=scale, model={"w": w})
        seen = []
        for _ in values:
            with observing() as observation:
                updater.update()
            seen.append((round(float(w.d[0]), 4), scale.scale, observation.get("skipped", 0.0)))
    assert seen == [(0.9, 8.0, 0.0), (0.9, 4.0, 1.0), (0.71, 4.0, 0.0), (0.439, 8.0, 0.0), (0.0951, 8.0, 0.0)]
    assert scale.skipped == 1
    assert updater.data.position == 0  # each batch was taken once


def test_the_order_of_norm_and_decay():
    """Clipping sees the gradient without the decay, and the decay is not clipped."""
    w = nn.Variable.from_numpy_array([3.0, 4.0], need_grad=True)
    x = nn.Variable((1, 2))
    solver = S.Sgd(1.0)
    solver.set_parameters({"w": w})
    with data_iterator_simple(lambda index: (np.array([30.0, 40.0]),), 1, 1) as data, observing() as seen:
        Updater(data, [x], F.sum(x * w), solver, clip_norm=5.0, weight_decay=0.1, loss_scale=64.0, model={"w": w}).update()
    assert seen["grad_norm"] == pytest.approx(50)
    np.testing.assert_allclose(w.d, [3 - 3 - 0.3, 4 - 4 - 0.4], rtol=1e-5)


def test_norms_of_all_gradients():
    solver = S.Sgd()
    a, b = (nn.Variable.from_numpy_array(np.zeros(2, np.float32), need_grad=True) for _ in range(2))
    solver.set_parameters({"a": a, "b": b})
    a.g, b.g = [3, 0], [0, 4]
    assert solver.clip_grad_by_global_norm(10) == 5
    assert a.g.tolist() == [3, 0]
    assert solver.clip_grad_by_global_norm(1) == 5
    np.testing.assert_allclose([*a.g, *b.g], [0.6, 0, 0, 0.8], rtol=1e-6)
    a.g = [3e30, 0]  # its square is beyond float32
    b.g = [0, 4e30]
    assert solver.grad_norm() == pytest.approx(5e30, rel=1e-6)
    assert a.g[0] == pytest.approx(3e30, rel=1e-6)
    a.g = [math.inf, 0]
    assert solver.grad_norm() == math.inf
    a.g = [math.nan, 0]
    assert math.isnan(solver.grad_norm())


class Duel(Updater):
    """Two adversaries, as a program writes them."""

    def step(self):
        x = self.next_batch()
        for name, loss in self.losses.items():
            solver = self.solvers[name]
            solver.zero_grad()
            self.inputs[0].d = x[0]
            loss.forward()
            loss.backward()
            self.apply_gradients(solver)


def test_several_solvers(make_updater):
    x = nn.Variable((2, 1))
    weights = {name: nn.Variable.from_numpy_array([1.0], need_grad=True) for name in ("g", "d")}
    solvers = {name: S.Adam(0.1) for name in weights}
    for name, solver in solvers.items():
        solver.set_parameters({name: weights[name]})

    def make():
        duel = Duel(data, [x], F.mean(x), solvers, model=weights)
        duel.losses = {"g": F.mean(x * weights["g"]), "d": F.mean(x * weights["d"] * weights["g"])}
        duel.inputs = [x]
        return duel

    with data_iterator_simple(lambda index: (np.ones(1),), 4, 2) as data:
        duel = make()
        duel.update()
        state = duel.get_state()
        assert {"solver/g", "solver/d", "model/main", "data"} < set(state)
        for variable in weights.values():
            assert variable.d[0] == pytest.approx(0.9, abs=1e-4)


def test_states(make_updater):
    updater = make_updater("Adam", loss_scale=LossScale(4.0, interval=3))
    after(updater, 4)
    state = copy.deepcopy(updater.get_state())
    expected = after(updater, 4)
    again = make_updater("Adam", loss_scale=LossScale(4.0, interval=3))
    again.set_state(state)
    assert again.iteration == 4
    assert np.array_equal(after(again, 4), expected)
    assert again.loss_scale.scale == updater.loss_scale.scale == 16.0
    with pytest.raises(ArgumentError, match="Updater: the state must have data, graph, model/main, solver/main, got"):
        make_updater("Adam").set_state(state)


def test_refusals(make_updater):
    updater = make_updater()
    data, loss, solver = updater.data, updater._loss, updater.solvers["main"]
    with pytest.raises(ArgumentError, match="Updater: accumulate must be a whole number of at least 1, got 0"):
        Updater(data, [], loss, solver, accumulate=0)
    with pytest.raises(ArgumentError, match="Updater: inputs must be given together with a Variable as loss, got None"):
        Updater(data, None, loss, solver)
    with pytest.raises(ArgumentError, match="Updater: metrics must be reported by the function that computes the loss"):
        Updater(data, None, lambda x: x, solver, metrics={"a": loss})
    with pytest.raises(ArgumentError, match="Updater: a batch must have 1 arrays, one an input, got 2"):
        Updater(data, [nn.Variable((1,))], loss, solver).update()
    nn.clear_parameters()
    with pytest.raises(ArgumentError, match=r"model must be given when .* or in modules with other names, got none"):
        updater.get_state()
    with pytest.raises(ArgumentError, match="LossScale: there must be 0 < least <= scale <= most"):
        LossScale(0.5)
