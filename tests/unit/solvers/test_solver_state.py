"""Numbers and states of solvers, in files and as plain values: a solver continues as if nothing had happened."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.solvers as S
from nn_core.errors import ArgumentError
from nn_core.files import read_entries, write_entries


def parameters():
    random = np.random.RandomState(3)
    arrays = {"layer/w": random.randn(2, 3), "b": random.randn(4)}
    return {name: nn.Variable.from_numpy_array(values, need_grad=True) for name, values in arrays.items()}


def step(solver, number):
    random = np.random.RandomState(number)
    for variable in solver.get_parameters().values():
        variable.g = random.randn(*variable.shape)
    solver.weight_decay(0.01)
    solver.update()


def made(name):
    solver = getattr(S, name)()
    solver.set_parameters(parameters())
    return solver


def values(solver):
    return [variable.d.tolist() for variable in solver.get_parameters().values()]


@pytest.mark.parametrize("name", S.__all__)
def test_a_solver_goes_on_from_its_state(name):
    solver, other = made(name), made(name)
    step(solver, 1)
    solver.set_learning_rate(0.25)
    step(solver, 2)
    for variable, target in zip(solver.get_parameters().values(), other.get_parameters().values(), strict=True):
        target.d = variable.d
    other.set_state(solver.get_state())
    for number in (3, 4):
        step(solver, number)
        step(other, number)
    assert other.info == solver.info
    assert other.learning_rate() == 0.25
    assert values(other) == values(solver)
    assert [state.t for state in other.get_states().values()] == [4, 4]


@pytest.mark.parametrize("extension", [".h5", ".npz", ".safetensors"])
@pytest.mark.parametrize("name", ["Sgd", "AdamW", "AMSGRAD", "AdaBound"])
def test_files_keep_the_numbers(tmp_path, name, extension):
    path = tmp_path / f"states{extension}"
    solver, other = made(name), made(name)
    step(solver, 1)
    solver.set_learning_rate(0.25)
    solver.weight_decay(0.5)  # for one update: not what the solver is made of
    solver.save_states(path)
    other.load_states(path)
    assert other.get_state()["numbers"] == solver.get_state()["numbers"]
    assert other.learning_rate() == 0.25


def test_files_without_numbers_leave_them(tmp_path):
    path = tmp_path / "states.npz"
    solver = made("Adam")
    solver.save_states(path)
    entries = read_entries(path, ".npz")
    for entry in entries.values():
        entry.attributes.pop("alpha", None)
    write_entries(path, entries, ".npz")
    solver.set_learning_rate(0.5)
    solver.load_states(path)
    assert solver.learning_rate() == 0.5


def test_numbers_that_say_what_states_there_are_must_agree(tmp_path):
    path = tmp_path / "states.npz"
    solver, other = S.AdaBelief(weight_decouple=True), S.AdaBelief()
    for each in (solver, other):
        each.set_parameters(parameters())
    solver.save_states(path)
    with pytest.raises(ArgumentError, match=r"states.npz: weight_decouple must be that of this solver, False, got True"):
        other.load_states(path)
    with pytest.raises(ArgumentError, match=r"AdaBelief.set_state: weight_decouple must be that of this solver"):
        other.set_state(solver.get_state())


def test_states_of_others_change_nothing():
    solver, other = made("Adam"), made("Momentum")
    with pytest.raises(ArgumentError, match=r"Adam.set_state: the state must be that of Adam, got Momentum"):
        solver.set_state(other.get_state())
    fewer = S.Adam(alpha=0.5)
    fewer.set_parameters({"b": nn.Variable((4,))})
    with pytest.raises(ArgumentError, match=r"Adam.set_state: there must be states of b, layer/w, got b"):
        solver.set_state(fewer.get_state())
    assert solver.learning_rate() == 0.001
