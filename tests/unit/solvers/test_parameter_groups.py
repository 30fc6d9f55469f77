"""Groups of parameters in one solver: by patterns of names, with rates, decays and numbers of their own, or frozen."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.communicators import LocalCommunicator, shard_states
from nn_core.errors import ArgumentError
from nn_core.training import fit

SHAPES = {"a/conv/w": (3, 2), "a/conv/b": (3,), "head/w": (2, 4), "head/b": (4,)}


def parameters():
    random = np.random.RandomState(3)
    return {
        name: nn.Variable.from_numpy_array(random.randn(*shape).astype(np.float32), need_grad=True)
        for name, shape in SHAPES.items()
    }


def give_gradients(solver, number):
    random = np.random.RandomState(number)
    for name, variable in solver.get_parameters().items():
        variable.g = random.randn(*SHAPES[name]).astype(np.float32)


def trained(solver, steps=3, decay=0.0):
    for number in range(steps):
        give_gradients(solver, number)
        if decay:
            solver.weight_decay(decay)
        solver.update()
    return {name: variable.d.copy() for name, variable in solver.get_parameters().items()}


def made(name, groups=None, **numbers):
    solver = getattr(S, name)(**numbers)
    solver.set_parameters(parameters(), groups=groups)
    return solver


def rate_of(name):
    return getattr(S, name).hyper_names[0]


@pytest.mark.parametrize("name", S.__all__)
def test_a_multiplier_gives_what_a_solver_of_its_own_with_that_rate_gives(name):
    grouped = trained(made(name, {"*/b": {"learning_rate_multiplier": 0.25}}, **{rate_of(name): 0.5}))
    usual = trained(made(name, **{rate_of(name): 0.5}))
    slow = made(name, **{rate_of(name): 0.5})
    slow.set_learning_rate(0.125)
    slow = trained(slow)
    for key, values in grouped.items():
        np.testing.assert_array_equal(values, (slow if key.endswith("b") else usual)[key], err_msg=key)
    assert not np.array_equal(slow["head/b"], usual["head/b"])


@pytest.mark.parametrize("name", ["Sgd", "Adam", "AdamW", "SgdW", "Lars", "Lamb", "Lion"])
def test_a_multiplier_of_the_decay(name):
    groups = {"*/b": {"weight_decay_multiplier": 0.0}, "head/w": {"weight_decay_multiplier": 2.0}}
    rate = {rate_of(name): 0.1}
    grouped = trained(made(name, groups, **rate), decay=0.1)
    for key, decay in {"a/conv/w": 0.1, "a/conv/b": 0.0, "head/b": 0.0, "head/w": 0.2}.items():
        alone = made(name, **rate)
        if name in ("AdamW", "SgdW"):
            alone.wd = 0.0
        np.testing.assert_array_equal(grouped[key], trained(alone, decay=decay)[key], err_msg=key)


def test_schedules_stay_in_force_times_the_multiplier():
    solver = made("Sgd", {"head/*": {"learning_rate_multiplier": 10}}, lr=1.0)
    before = {name: variable.d.copy() for name, variable in solver.get_parameters().items()}
    solver.set_learning_rate(0.01)
    for variable in solver.get_parameters().values():
        variable.g = 1
    solver.update()
    solver.set_learning_rate(0.02)  # bound already
    solver.update()
    for name, variable in solver.get_parameters().items():
        step = 0.3 if name.startswith("head") else 0.03
        np.testing.assert_allclose(before[name] - variable.d, step, rtol=1e-4, err_msg=name)
    assert solver.learning_rate() == 0.02


def test_a_frozen_group_keeps_values_states_and_counts():
    solver = made("Adam", {"a/*": {"frozen": True}})
    before = {name: variable.d.copy() for name, variable in solver.get_parameters().items()}
    after = trained(solver)
    assert {name for name in before if not np.array_equal(before[name], after[name])} == {"head/w", "head/b"}
    assert {name: state.t for name, state in solver.get_states().items()} == {
        "a/conv/w": 0, "a/conv/b": 0, "head/w": 3, "head/b": 3,
    }  # fmt: skip
    norm = np.sqrt(sum((solver.get_parameters()[name].g ** 2).sum() for name in ("head/w", "head/b")))
    assert solver.grad_norm() == pytest.approx(norm, rel=1e-6)
    solver.set_groups({})
    trained(solver, steps=1)
    assert solver.get_states()["a/conv/w"].t == 1


def test_a_parameter_follows_all_patterns_and_the_last_one_first():
    groups = {
        "*": {"learning_rate_multiplier": 0.0},
        "head/*": {"learning_rate_multiplier": 1.0, "beta1": 0.0},
        "*/b": {"beta1": 0.5},
    }
    grouped = trained(made("Adam", groups, alpha=0.1))
    still = parameters()
    np.testing.assert_array_equal(grouped["a/conv/w"], still["a/conv/w"].d)
    np.testing.assert_array_equal(grouped["head/w"], trained(made("Adam", alpha=0.1, beta1=0.0))["head/w"])
    np.testing.assert_array_equal(grouped["head/b"], trained(made("Adam", alpha=0.1, beta1=0.5))["head/b"])


def test_groups_are_kept_for_parameters_that_are_set_later():
    solver = S.Sgd(0.1)
    solver.set_groups({"head/*": {"learning_rate_multiplier": 0.5}})
    solver.set_parameters(parameters())
    before = {name: variable.d.copy() for name, variable in solver.get_parameters().items()}
    for variable in solver.get_parameters().values():
        variable.g = 1
    solver.update()
    np.testing.assert_allclose(before["head/w"] - solver.get_parameters()["head/w"].d, 0.05, rtol=1e-4)
    assert solver.get_groups() == {"head/*": {"learning_rate_multiplier": 0.5}}
    solver.set_parameters(parameters(), groups={})
    assert solver.get_groups() == {}


@pytest.mark.parametrize("extension", [".h5", ".npz", ".safetensors"])
def test_files_keep_the_groups(tmp_path, extension):
    path = tmp_path / f"states{extension}"
    groups = {"head/*": {"learning_rate_multiplier": 0.5, "beta1": 0.25}, "*/b": {"frozen": True}}
    solver, other, ungrouped = made("AdamW", groups), made("AdamW"), made("AdamW", {"*": {"frozen": True}})
    trained(solver)
    for variable, target in zip(solver.get_parameters().values(), other.get_parameters().values(), strict=True):
        target.d = variable.d
    solver.save_states(path)
    other.load_states(path)
    assert other.get_groups() == groups
    expected = trained(solver)
    for key, values in trained(other).items():
        np.testing.assert_array_equal(values, expected[key], err_msg=key)
    made("AdamW").save_states(path)  # without groups, as earlier versions wrote
    ungrouped.load_states(path)
    assert ungrouped.get_groups() == {"*": {"frozen": True}}


def test_states_keep_the_groups_and_refuse_damaged_ones():
    groups = {"head/*": {"learning_rate_multiplier": 0.5}}
    solver, other = made("Adam", groups), made("Adam")
    state = solver.get_state()
    other.set_state(state)
    assert other.get_groups() == groups
    for damaged in ("{", '{"*": {"beta3": 1}}', '{"*": {"beta1": "x"}}', "[1]", '{"*": 3}'):
        with pytest.raises(ArgumentError, match="set_state"):
            other.set_state({**state, "groups": damaged})
        assert other.get_groups() == groups


@pytest.mark.parametrize("by_parameter", [False, True])
def test_divided_states_follow_the_groups(by_parameter):
    groups = {"head/*": {"learning_rate_multiplier": 0.5}, "*/b": {"weight_decay_multiplier": 0}, "a/*/b": {"frozen": True}}

    def program(comm):
        solver = made("AdamW", groups, alpha=0.1)
        shard_states(comm, solver, by_parameter=by_parameter)
        trained(solver, decay=0.1)
        solver.set_groups({"*": {"learning_rate_multiplier": 0.25}})
        return trained(solver)

    alone = made("AdamW", groups, alpha=0.1)
    trained(alone, decay=0.1)
    alone.set_groups({"*": {"learning_rate_multiplier": 0.25}})
    expected = trained(alone)
    for found in LocalCommunicator.run(2, program):
        for key, values in expected.items():
            np.testing.assert_array_equal(found[key], values, err_msg=key)


def test_fit_takes_groups():
    x, t = np.eye(4, dtype=np.float32), np.arange(4)
    with nn.parameter_scope("groups"):
        PF.affine(nn.Variable((4, 4)), 4, name="fit")
        before = nn.get_parameters()["fit/affine/W"].d.copy()
        fit(
            lambda x: PF.affine(x, 4, name="fit"), (x, t), epochs=2, solver="sgd", progress=False,
            groups={"*/W": {"frozen": True}},
        )  # fmt: skip
        np.testing.assert_array_equal(nn.get_parameters()["fit/affine/W"].d, before)
        assert nn.get_parameters()["fit/affine/b"].d.any()


def test_update_if_finite_follows_the_groups():
    groups = {"head/*": {"learning_rate_multiplier": 0.5}, "a/*": {"frozen": True}}
    solver, expected = made("Adam", groups), made("Adam", groups)
    give_gradients(solver, 1)
    give_gradients(expected, 1)
    norm = expected.grad_norm()
    expected.update()
    assert solver.update_if_finite() == pytest.approx(norm)
    for name, variable in solver.get_parameters().items():
        np.testing.assert_array_equal(variable.d, expected.get_parameters()[name].d)


def test_hooks_see_the_rate_of_decay_of_each_parameter():
    groups = {"*/b": {"weight_decay_multiplier": 0.0}}
    observed, plain = made("Sgd", groups), made("Sgd", groups)
    for solver, hook in ((observed, lambda: None), (plain, None)):
        give_gradients(solver, 1)
        solver.weight_decay(0.5, pre_hook=hook)
    for name, variable in observed.get_parameters().items():
        np.testing.assert_array_equal(variable.g, plain.get_parameters()[name].g)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([{"params": ["w"]}], "set_groups: groups must be settings by pattern of the names"),
        ({3: {}}, "a pattern of groups must be a text"),
        ({"*": 0.1}, r"groups\['\*'\] must be settings by name, got 0.1"),
        ({"*": {"lr": 0.1}}, "hint: learning_rate_multiplier"),
        ({"*": {"alpha": 0.1}}, "hint: learning_rate_multiplier"),
        ({"*": {"wd": 0.1}}, "hint: weight_decay_multiplier"),
        ({"*": {"requires_grad": False}}, "hint: frozen=True"),
        ({"*": {"beta_1": 0.1}}, "did you mean 'beta1'"),
        ({"*": {"beta1": 1.5}}, "beta1 must be from 0 to below 1, got 1.5"),
        ({"*": {"learning_rate_multiplier": -1}}, "learning_rate_multiplier must be at least 0 and finite, got -1"),
        ({"*": {"frozen": "no"}}, "frozen: must be True or False"),
        ({"body/*": {}}, "a pattern of groups must match the name of a parameter, got 'body/[*]' for a/conv/b"),
    ],
)
def test_refuses(groups, message):
    solver = made("AdamW", {"*/b": {"frozen": True}})
    with pytest.raises(ArgumentError, match=message):
        solver.set_groups(groups)
    assert solver.get_groups() == {"*/b": {"frozen": True}}


def test_numbers_that_say_what_states_there_are_stay():
    with pytest.raises(ArgumentError, match="a setting of AdaBelief must be one of"):
        made("AdaBelief", {"*": {"amsgrad": True}})


def test_minimize_with_groups():
    solver = made("Sgd", {"*": {"learning_rate_multiplier": 0.0}, "head/b": {"learning_rate_multiplier": 1.0}}, lr=0.1)
    before = {name: variable.d.copy() for name, variable in solver.get_parameters().items()}
    solver.minimize(sum(F.sum(variable**2) for variable in solver.get_parameters().values()))
    changed = {n for n, v in solver.get_parameters().items() if not np.array_equal(v.d, before[n])}
    assert changed == {"head/b"}
