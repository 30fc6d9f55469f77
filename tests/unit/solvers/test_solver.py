"""The common part of all solvers: parameters, numbers, gradients, hooks, states, files."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.engine.dispatch.plugin_manager import get_backend
from nn_core.errors import ArgumentError, FileFormatError, ShapeError
from nn_core.solver import Solver, SolverState, solver_api
from nn_core.solvers import groups
from nn_core.solvers.hooks import (
    set_solver_post_hook,
    set_solver_pre_hook,
    unset_solver_post_hook,
    unset_solver_pre_hook,
)
from tests.calls import n_calls


def parameter(values, grads=None):
    values = np.asarray(values, np.float32)
    grads = np.ones_like(values) if grads is None else np.asarray(grads, np.float32)
    return nn.Variable.from_numpy_array(values, grads, need_grad=True)


@pytest.fixture
def pair():
    return {"a": parameter([1.0, 2.0]), "b": parameter([[3.0]])}


class SignSgd(Solver):
    """A solver as a program writes it."""

    hyper_names = ("lr",)

    def __init__(self, lr=0.5):
        super().__init__(lr)

    @staticmethod
    def step(xp, w, g, states, hyper):
        lr, _ = hyper
        w -= lr * xp.sign(g)


def test_a_solver_of_the_program():
    w = parameter([1.0, 2.0], [3.0, -4.0])
    solver = SignSgd()
    solver.set_parameters({"w": w})
    solver.update()
    assert w.d.tolist() == [0.5, 2.5]
    assert repr(solver) == "SignSgd(lr=0.5)"


def test_a_solver_needs_a_step():
    solver = Solver()
    solver.set_parameters({"w": parameter([1.0])})
    with pytest.raises(NotImplementedError, match="a solver must define step"):
        solver.update()


# -- parameters ------------------------------------------------------------------------------------------------------


def test_set_parameters_forgets_the_old_ones(pair):
    solver = S.Sgd()
    solver.set_parameters(pair)
    solver.set_parameters({"c": parameter([1.0])})
    assert list(solver.get_parameters()) == ["c"]


def test_without_reset_old_parameters_stay(pair):
    solver = S.Adam()
    solver.set_parameters(pair)
    solver.update()
    solver.set_parameters({"a": pair["a"], "c": parameter([1.0])}, reset=False)
    assert {key: state.t for key, state in solver.get_states().items()} == {"a": 0, "b": 1, "c": 0}


def test_retained_states_go_to_the_new_variable(pair):
    solver = S.Momentum(lr=1.0, momentum=0.5)
    solver.set_parameters(pair)
    solver.update()
    new = parameter([10.0, 20.0])
    solver.set_parameters({"a": new}, reset=False, retain_state=True)
    assert solver.get_states()["a"].t == 1
    solver.update()
    assert new.d.tolist() == [8.5, 18.5]
    assert solver.get_parameters()["a"] is new


def test_retained_states_keep_the_shape(pair):
    solver = S.Adam()
    solver.set_parameters(pair)
    with pytest.raises(ShapeError, match=r"a must keep its shape to keep its states, got \(3,\) for \(2,\)"):
        solver.set_parameters({"a": parameter([1.0, 2.0, 3.0])}, reset=False, retain_state=True)
    assert solver.get_parameters()["a"] is pair["a"]


def test_parameters_are_variables():
    with pytest.raises(ArgumentError, match=r"set_parameters: param_dict must be Variables by name, got NdArray .* under 'a'"):
        S.Sgd().set_parameters({"a": nn.NdArray((2,))})


def test_remove_and_clear(pair):
    solver = S.Sgd(1.0)
    solver.set_parameters(pair)
    solver.remove_parameters(["a", "unknown"])
    solver.update()
    assert pair["a"].d.tolist() == [1.0, 2.0]
    assert pair["b"].d.tolist() == [[2.0]]
    solver.clear_parameters()
    assert solver.get_parameters() == {}
    solver.update()
    assert pair["b"].d.tolist() == [[2.0]]


# -- numbers ---------------------------------------------------------------------------------------------------------


def test_learning_rate(pair):
    solver = S.Adam(alpha=0.5)
    assert solver.learning_rate() == 0.5
    solver.set_parameters(pair)
    solver.update()
    solver.set_learning_rate(0.25)
    assert solver.info == {"alpha": 0.25, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08}
    before = pair["a"].d.copy()
    solver.update()
    np.testing.assert_allclose(before - pair["a"].d, 0.25, rtol=1e-4)


def test_options_are_shown_as_given():
    assert S.Lamb(bias_correction=True).info["bias_correction"] is True


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: S.Adam(alpha="fast"), "Adam: alpha must be a number, got 'fast'"),
        (lambda s: s.set_learning_rate(None), "set_learning_rate: learning_rate must be a number, got None"),
        (lambda s: s.weight_decay("x"), "weight_decay: decay_rate must be a number, got 'x'"),
        (lambda s: s.clip_grad_by_norm("x"), "clip_grad_by_norm: clip_norm must be a number, got 'x'"),
        (lambda s: s.scale_grad("x"), "scale_grad: scale must be a number, got 'x'"),
    ],
)
def test_numbers_are_numbers(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(S.Sgd())


# -- gradients -------------------------------------------------------------------------------------------------------


def test_zero_grad_and_parameters_without_gradient(pair):
    solver = S.Adam(alpha=0.1)
    solver.set_parameters(pair)
    solver.zero_grad()
    solver.update()
    assert {key: state.t for key, state in solver.get_states().items()} == {"a": 0, "b": 0}
    pair["a"].g = np.ones(2, np.float32)
    solver.update()
    assert {key: state.t for key, state in solver.get_states().items()} == {"a": 1, "b": 0}
    assert pair["b"].d.tolist() == [[3.0]]
    pair["b"].g = np.ones((1, 1), np.float32)
    solver.update()
    assert {key: state.t for key, state in solver.get_states().items()} == {"a": 2, "b": 1}
    np.testing.assert_allclose(pair["b"].d, 2.9, rtol=1e-5)  # its first step, though the other took its second


def test_zero_grad_sees_gradients_that_were_replaced(pair):
    solver = S.Sgd()
    solver.set_parameters(pair)
    solver.zero_grad()
    pair["a"].grad = nn.NdArray.from_numpy_array(np.ones(2, np.float32))
    pair["b"].reset_shape((1,))
    pair["b"].g = 1
    solver.zero_grad()
    assert pair["a"].g.tolist() == [0, 0]
    assert pair["b"].g.tolist() == [0]
    other = parameter([1.0])
    solver.set_parameters({"c": other}, reset=False)
    solver.zero_grad()
    assert other.g.tolist() == [0]
    solver.remove_parameters(["c"])
    other.g = 1
    solver.zero_grad()
    assert other.g.tolist() == [1]


def test_zero_grad_of_a_part_of_an_array_leaves_the_rest(pair):
    whole = nn.NdArray.from_numpy_array(np.ones(4, np.float32))
    pair["a"].grad = whole.narrow(0, 1, 2)
    solver = S.Sgd()
    solver.set_parameters(pair)
    for _ in range(2):
        solver.zero_grad()
        assert whole.data.tolist() == [1, 0, 0, 1]
        pair["a"].g = 3


def test_zero_grad_leaves_what_a_view_shows(pair):
    solver = S.Sgd()
    solver.set_parameters(pair)
    shown = pair["a"].g
    solver.zero_grad()
    assert shown.tolist() == [1, 1]
    assert pair["a"].g.tolist() == [0, 0]
    shown[:] = 2
    assert pair["a"].g.tolist() == [0, 0]


def test_zero_grad_makes_as_many_calls_for_many_parameters_as_for_few():
    counts = []
    for n in (2, 20):
        solver = S.Sgd()
        solver.set_parameters({str(i): parameter([1.0]) for i in range(n)})
        solver.zero_grad()
        counts.append(n_calls(solver.zero_grad))
    assert counts[0] == counts[1]


def test_weight_decay_changes_the_gradient(pair):
    solver = S.Sgd(1.0)
    solver.set_parameters(pair)
    solver.weight_decay(0.5)
    assert pair["a"].g.tolist() == [1.5, 2.0]
    assert not solver.weight_decay_is_fused()


def test_changes_of_gradients_follow_which_of_them_are_zero(pair):
    solver = S.Sgd(1.0)
    solver.set_parameters(pair)
    a, b = pair.values()
    for written in ([a], [a, b], [b], [], [a, b]):
        solver.zero_grad()
        for variable in written:
            variable.g = 1
        solver.scale_grad(3)
        solver.scale_grad(2)
        assert [v.grad.zeroing for v in (a, b)] == [v not in written for v in (a, b)]
        assert all((v.g == 6).all() for v in written)


@pytest.mark.parametrize("name", ["AdamW", "SgdW", "Lamb", "Lars", "Lion"])
def test_fused_weight_decay_lasts_for_one_update(name, pair):
    solver = getattr(S, name)()
    solver.set_parameters(pair)
    assert solver.weight_decay_is_fused()
    usual = dict(solver.info)
    solver.weight_decay(0.5)
    solver.weight_decay(0.25)
    assert pair["a"].g.tolist() == [1.0, 1.0]
    solver.update()
    assert solver.info == usual


def test_scale_and_clip(pair):
    solver = S.Sgd()
    solver.set_parameters(pair)
    solver.scale_grad(4.0)
    assert pair["a"].g.tolist() == [4.0, 4.0]
    solver.scale_grad(0.5)
    assert pair["a"].g.tolist() == [2.0, 2.0]
    pair["a"].g = np.array([3.0, 4.0], np.float32)
    solver.clip_grad_by_norm(1.0)
    np.testing.assert_allclose(pair["a"].g, [0.6, 0.8], rtol=1e-6)
    solver.clip_grad_by_norm(10.0)
    np.testing.assert_allclose(pair["a"].g, [0.6, 0.8], rtol=1e-6)
    assert pair["b"].g.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("value", "found"), [(1.0, (False, False, False)), (-np.inf, (True, False, True)), (np.nan, (False, True, True))]
)
def test_checks(pair, value, found):
    solver = S.Sgd()
    solver.set_parameters(pair)
    pair["b"].g = np.array([[value]], np.float32)
    assert (solver.check_inf_grad(), solver.check_nan_grad(), solver.check_inf_or_nan_grad()) == found


# -- hooks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        lambda s, *hooks: s.update(*hooks),
        lambda s, *hooks: s.weight_decay(0.1, *hooks),
        lambda s, *hooks: s.clip_grad_by_norm(0.1, *hooks),
        lambda s, *hooks: s.scale_grad(0.1, *hooks),
        lambda s, *hooks: s.check_inf_grad(*hooks),
        lambda s, *hooks: s.check_nan_grad(*hooks),
        lambda s, *hooks: s.check_inf_or_nan_grad(*hooks),
    ],
)
def test_hooks_are_called_around_each_parameter(pair, act):
    calls = []
    solver = S.Sgd()
    solver.set_parameters(pair)
    set_solver_pre_hook("test", lambda: calls.append("all before"))
    set_solver_post_hook("test", lambda: calls.append("all after"))
    try:
        act(solver, lambda: calls.append("before"), lambda: calls.append("after"))
    finally:
        unset_solver_pre_hook("test")
        unset_solver_post_hook("test")
    assert calls == ["all before", "before", "after", "all after"] * 2
    act(solver)
    assert len(calls) == 8


def test_hooks_do_not_change_the_result(pair):
    plain = {key: parameter(variable.d) for key, variable in pair.items()}
    for parameters, hooks in ((pair, (lambda: None, None)), (plain, ())):
        solver = S.Adam(alpha=0.1)
        solver.set_parameters(parameters)
        for _ in range(3):
            solver.weight_decay(0.1, *hooks)
            solver.update(*hooks)
        assert solver.get_states()["a"].t == 3
    for key, variable in pair.items():
        assert np.array_equal(variable.d, plain[key].d)


# -- memory ----------------------------------------------------------------------------------------------------------


def test_training_a_graph():
    x = nn.Variable.from_numpy_array(np.array([[1.0, 2.0]], np.float32))
    w = parameter([[1.0], [1.0]])
    loss = F.sum(F.affine(x, w) ** 2)
    solver = S.Sgd(0.05)
    solver.set_parameters({"w": w})
    losses = []
    for _ in range(5):
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
        losses.append(float(loss.d))
    assert losses[0] == 9.0
    assert losses[-1] < 0.5


def test_new_values_and_new_arrays_are_seen():
    w = parameter([1.0])
    solver = S.Momentum(lr=1.0, momentum=0.0)
    solver.set_parameters({"w": w})
    solver.update()
    w.d = np.array([5.0], np.float32)
    solver.update()
    assert w.d.tolist() == [4.0]
    w.d = 7
    solver.update()
    assert w.d.tolist() == [6.0]
    w.data = nn.NdArray.from_numpy_array(np.array([10.0], np.float32))
    solver.update()
    assert w.d.tolist() == [9.0]
    w.grad = nn.NdArray.from_numpy_array(np.array([2.0], np.float32))
    solver.update()
    assert w.d.tolist() == [7.0]
    w.g = 3
    solver.update()
    assert w.d.tolist() == [4.0]


def test_values_of_other_dtypes_are_updated_in_float32():
    w = nn.Variable.from_numpy_array(np.array([1.0]), np.array([0.5]), need_grad=True)
    solver = S.Sgd(1.0)
    solver.set_parameters({"w": w})
    solver.update()
    assert w.d.dtype == np.float32
    assert w.d.tolist() == [0.5]


def test_half_precision_keeps_a_float32_original():
    w = parameter([1.0], [2.0**-12])
    with nn.context_scope(nn.Context(["reference:half"])):
        solver = S.Sgd(1.0)
        y = F.identity(w) * 1.0
    solver.set_parameters({"w": w})
    for _ in range(4):
        y.forward()
        w.g = np.array([2.0**-12], np.float16)
        solver.update()
    assert w.d.dtype == np.float32
    assert w.d.tolist() == [1 - 2.0**-10]
    y.forward()
    assert y.d.astype(np.float32).tolist() == [float(np.float16(1 - 2.0**-10))]


def test_a_part_of_an_array_is_a_parameter():
    whole = nn.NdArray.from_numpy_array(np.zeros((2, 3), np.float32))
    w = nn.Variable((2, 1), need_grad=True)
    w.data = whole.narrow(1, 1, 1)
    w.g = np.ones((2, 1), np.float32)
    solver = S.Sgd(1.0)
    solver.set_parameters({"w": w})
    solver.update()
    assert whole.data.tolist() == [[0, -1, 0], [0, -1, 0]]


class CountingUpdates:
    """A backend's update kernel that only notes what it is given."""

    def __init__(self):
        self.bound = 0
        self.seen = []

    def prepare(self, sizes, dtype):
        self.prepared = (tuple(sizes), dtype)
        return self

    def bind(self, params, grads, states, hyper):
        self.bound += 1
        self.arrays = ([a.shape for a in params], [[a.shape for a in arrays] for arrays in states])
        return lambda: self.seen.append(hyper.tolist())


def test_a_backend_kernel_is_bound_once(pair, monkeypatch):
    kernel = CountingUpdates()
    monkeypatch.setattr(get_backend("reference"), "updates", {"AdamW": kernel}, raising=False)
    solver = S.AdamW(alpha=0.5, wd=0.25)
    solver.set_parameters(pair)
    solver.update()
    solver.set_learning_rate(0.125)
    solver.weight_decay(0.75)
    solver.update()
    solver.update()
    assert kernel.prepared == ((2, 1), "float32")
    assert kernel.arrays == ([(2,), (1, 1)], [[(2,), (1, 1)], [(2,), (1, 1)]])
    assert kernel.bound == 1
    assert kernel.seen == [
        [0.5, 0.9, 0.999, 1e-08, 0.25, 0.5, 1.0],
        [0.125, 0.9, 0.999, 1e-08, 0.75, 0.5, 2.0],
        [0.125, 0.9, 0.999, 1e-08, 0.25, 0.5, 3.0],
    ]
    pair["a"].data = nn.NdArray((2,))
    solver.update()
    assert kernel.bound == 2


def steps_with_other_parameters(solver, taken_in_each_step):
    """Run updates in which only some parameters have gradients, and return all values."""
    rng = np.random.default_rng(0)
    pair = {name: parameter(rng.standard_normal(3)) for name in "abcd"}
    solver.set_parameters(pair)
    for step, taken in enumerate(taken_in_each_step):
        solver.zero_grad()
        for name in taken:
            pair[name].g = rng.standard_normal(3)
        if step == 9:
            solver.set_learning_rate(0.5 * solver.learning_rate())
        if step == 11:
            pair["b"].data = nn.NdArray.from_numpy_array(pair["b"].d + 1)  # other memory
        pair["c"].need_grad = step not in (12, 13)
        solver.weight_decay(0.01)
        solver.update()
    return np.stack([pair[name].d for name in "abcd"]), [slot.t for slot in solver._slots.values()]


@pytest.mark.parametrize("make", [lambda: S.Momentum(0.1), lambda: S.Adam(0.1), lambda: S.AdamW(0.1)])
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_updates_of_other_parameters_in_each_step(make, backend, monkeypatch):
    taken = ["ab", "cd", "a", "bcd", "ac", "bd", "abcd", "d", "abc", "b", "acd", "bc", "abcd", "cd", "a", *["ab"] * 4]
    with nn.context_scope(nn.Context([f"{backend}:float"])):
        found, counts = steps_with_other_parameters(make(), taken)
        monkeypatch.setattr(groups, "MANY_CHANGES", 100)
        expected, expected_counts = steps_with_other_parameters(make(), taken)
    np.testing.assert_array_equal(found, expected)
    assert counts == expected_counts


def test_parameters_are_bound_alone_while_others_are_updated_in_each_step(pair):
    solver = S.Momentum()
    solver.set_parameters(pair)

    def sizes_after(taken):
        solver.zero_grad()
        for name in taken:
            pair[name].g = 1
        solver.update()
        return [len(group.slots) for group in solver._groups._groups]

    assert sizes_after("ab") == [2]
    for taken in ("a", "b", "a"):
        sizes_after(taken)
    assert sizes_after("ab") == [1, 1]
    assert sizes_after("ab") == [2]


# -- states ----------------------------------------------------------------------------------------------------------


def trained(pair):
    solver = S.Adam()
    solver.set_parameters(pair)
    solver.update()
    solver.update()
    return solver


def test_states_share_memory(pair):
    solver = trained(pair)
    state = solver.get_states()["a"]
    assert state.t == 2
    assert repr(state).startswith("SolverState(t=2, pstate=")
    state.pstate["mean"].d = 0
    assert not solver.get_states()["a"].pstate["mean"].d.any()


def test_set_states_copies(pair):
    source, target = trained(pair), S.Adam()
    target.set_parameters(pair)
    target.set_states({"a": source.get_states()["a"]})
    assert target.get_states()["a"].t == 2
    assert target.get_states()["b"].t == 0
    source.update()
    assert not np.array_equal(source.get_states()["a"].pstate["mean"].d, target.get_states()["a"].pstate["mean"].d)


def test_wrong_states_change_nothing(pair):
    solver = trained(pair)
    good = solver.get_states()["a"]
    good.t = 9
    with pytest.raises(ArgumentError, match=r"set_states: a parameter must be set before its states, got c \(set: a, b\)"):
        solver.set_states({"a": good, "c": good})
    with pytest.raises(ArgumentError, match="the states of Adam must be mean, var, got none for b"):
        solver.set_states({"a": good, "b": SolverState({}, 1)})
    pstate = {"mean": nn.Variable((1, 1)), "var": nn.Variable((2,))}
    with pytest.raises(ShapeError, match=r"state var of b must have the shape \(1, 1\), got \(2,\)"):
        solver.set_states({"a": good, "b": SolverState(pstate, 1)})
    assert solver.get_states()["a"].t == 2


@pytest.mark.parametrize("extension", [".h5", ".npz", ".safetensors"])
@pytest.mark.parametrize("name", ["Adam", "Sgd", "AdaBelief"])
def test_training_goes_on_from_saved_states(tmp_path, pair, extension, name):
    path = tmp_path / f"states{extension}"
    make = getattr(S, name)
    solver = make()
    solver.set_parameters({"layer/w": pair["a"], "b": pair["b"]})
    solver.update()
    solver.save_states(path)
    copies = {"layer/w": parameter(pair["a"].d, pair["a"].g), "b": parameter(pair["b"].d, pair["b"].g)}
    resumed = make()
    resumed.set_parameters(copies)
    resumed.load_states(path)
    solver.update()
    resumed.update()
    assert np.array_equal(pair["a"].d, copies["layer/w"].d)
    assert resumed.get_states()["b"].t == 2


def test_states_of_other_parameters_or_methods_change_nothing(tmp_path, pair):
    path = tmp_path / "states.h5"
    trained(pair).save_states(path)
    other = S.Momentum()
    other.set_parameters(pair)
    with pytest.raises(ArgumentError, match="the states of Momentum must be m, got mean, var for a"):
        other.load_states(path)
    fewer = S.Adam()
    fewer.set_parameters({"a": pair["a"]})
    with pytest.raises(ArgumentError, match=r"states.h5: a parameter must be set before its states, got b \(set: a\)"):
        fewer.load_states(path)
    assert fewer.get_states()["a"].t == 0


def test_a_file_of_parameters_is_not_one_of_states(tmp_path, pair):
    path = tmp_path / "parameters.h5"
    nn.save_parameters(path, pair)
    solver = S.Adam()
    solver.set_parameters(pair)
    with pytest.raises(FileFormatError, match=r"parameters.h5: '' must have a number of updates t, got None"):
        solver.load_states(path)


def test_other_extensions_are_refused(tmp_path, pair):
    with pytest.raises(ArgumentError, match=r"save_states: the extension must be one of .*, got '.txt'"):
        trained(pair).save_states(tmp_path / "states.txt")


def test_solver_api_checks_what_it_marks():
    @solver_api
    def good(lr=0.1):
        return S.Sgd(lr)

    @solver_api
    def bad():
        return 5

    assert good(lr=0.2).learning_rate() == 0.2
    with pytest.raises(ArgumentError, match="bad: a solver function must return a Solver, got int"):
        bad()
