"""Checkpoints: what they hold, what they refuse, and damage of every kind."""

import logging
import math
import re
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.data.iterators import data_iterator_simple
from nn_core.engine.runtime import installed
from nn_core.errors import ArgumentError, FileFormatError, ShapeError
from nn_core.training import checkpoints_in, load_checkpoint, load_newest_checkpoint, save_checkpoint
from nn_core.training.checkpoint import Snapshot, checkpoint_path, read_snapshot, write_snapshot
from nn_core.training.states import as_text, copied, from_text, pack, unpack


class Counter:
    def __init__(self):
        self.count = 0

    def get_state(self):
        return {"count": self.count}

    def set_state(self, state):
        if state["count"] < 0:
            raise ValueError("a count is not negative")
        self.count = state["count"]


def made(seed=1):
    nn.clear_parameters()
    nn.seed(seed)
    x = nn.Variable.from_numpy_array(np.ones((2, 3)))
    y = F.mean(F.dropout(PF.batch_normalization(PF.affine(x, 4)), seed=2))
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    y.forward()
    solver.zero_grad()
    y.backward()
    solver.update()
    return {"parameters": nn.get_parameters(grad_only=False), "solver": solver, "graph": y, "counter": Counter()}


def contents(objects):
    values = [variable.d.tolist() for variable in objects["parameters"].values()]
    states = [v.d.tolist() for state in objects["solver"].get_states().values() for v in state.pstate.values()]
    return values, states, objects["solver"].info, objects["counter"].count, nn.random.get_state(objects["graph"])["functions"]


@pytest.mark.parametrize("extension", [".npz", ".safetensors", ".h5"])
def test_everything_comes_back(tmp_path, extension):
    path = tmp_path / f"c{extension}"
    objects = made()
    objects["counter"].count = 4
    objects["solver"].set_learning_rate(0.75)
    plain = {
        "iteration": 7,
        "best": math.inf,
        "rate": 0.1 + 0.2,
        "words": ["a", {"b": None}],
        "table": np.arange(6).reshape(2, 3),
    }
    save_checkpoint(path, **objects, **plain)
    expected, drawn = contents(objects), nn.random.prng.rand()
    others = made(seed=5)
    assert contents(others) != expected
    values = load_checkpoint(path, **others)
    assert contents(others) == expected
    assert nn.random.prng.rand() == drawn
    assert values.pop("table").tolist() == [[0, 1, 2], [3, 4, 5]]
    plain.pop("table")
    assert values == plain


def test_modules_and_variables(tmp_path):
    class Net(nn.Module):
        def call(self, x):
            return PF.affine(x, 2)

    net, scale = Net(), nn.Variable((3,))
    net(nn.Variable((1, 3)))
    scale.d = [1, 2, 3]
    save_checkpoint(tmp_path / "c.npz", net=net, scale=scale)
    values = net.get_parameters()["affine/W"].d.copy()
    net.get_parameters()["affine/W"].d = 0
    scale.d = 0
    load_checkpoint(tmp_path / "c.npz", net=net, scale=scale)
    assert np.array_equal(net.get_parameters()["affine/W"].d, values)
    assert scale.d.tolist() == [1, 2, 3]


def test_all_or_nothing(tmp_path):
    path = tmp_path / "c.npz"
    objects = made()
    objects["counter"].count = -1
    save_checkpoint(path, **objects)
    others = made(seed=5)
    before, drawn = contents(others), nn.random.get_state()["function_counter"]
    with pytest.raises(ValueError, match="a count is not negative"):
        load_checkpoint(path, **others)
    assert contents(others) == before
    assert nn.random.get_state()["function_counter"] == drawn


def test_objects_must_be_those_saved(tmp_path):
    path = tmp_path / "c.npz"
    save_checkpoint(path, **made())
    objects = made()
    del objects["counter"]
    with pytest.raises(ArgumentError, match=r"c.npz: the objects must be those saved, counter, .*, got no counter$"):
        load_checkpoint(path, **objects)
    with pytest.raises(ArgumentError, match=r"the objects must be those saved, .*, got extra$"):
        load_checkpoint(path, **objects, counter=Counter(), extra=Counter())
    parameters = {"a": nn.Variable((2,)), "b": nn.Variable((3,))}
    save_checkpoint(path, parameters=parameters)
    with pytest.raises(ArgumentError, match="parameters: the state must have the same parameters, got no c, also b"):
        load_checkpoint(path, parameters={"a": nn.Variable((2,)), "c": nn.Variable((3,))})
    with pytest.raises(ShapeError, match=r"parameters: b must have the shape \(4,\), got \(3,\)"):
        load_checkpoint(path, parameters={"a": nn.Variable((2,)), "b": nn.Variable((4,))})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda states: states.pop("random"), "the checkpoint must have the state of random numbers, got none"),
        (lambda states: states["net"].update({"affine/b": []}), r"affine/b must be an array, got \[\]"),
        (lambda states: states["net"].update({"affine/b": None}), "at 'affine/b', must be an array of float32, got NoneType"),
    ],
)
def test_checkpoints_of_another_writer_are_refused_as_a_whole(tmp_path, change, message):
    PF.affine(nn.Variable((2, 3)), 4)
    parameters = nn.get_parameters()
    save_checkpoint(tmp_path / "a.npz", net=parameters)
    snapshot = read_snapshot(tmp_path / "a.npz")
    states = copied(dict(snapshot.states))
    change(states)
    write_snapshot(tmp_path / "a.npz", Snapshot(states, snapshot.values, snapshot.about))
    for parameter in parameters.values():
        parameter.d = 7
    with pytest.raises(ArgumentError, match=message):
        load_checkpoint(tmp_path / "a.npz", net=parameters)
    assert all((parameter.d == 7).all() for parameter in parameters.values())


def test_values_must_be_plain(tmp_path):
    with pytest.raises(ArgumentError, match=r"save_checkpoint: a state must be made of .*, got set as found/0"):
        save_checkpoint(tmp_path / "c.npz", found=[{1, 2}])
    with pytest.raises(ArgumentError, match="save_checkpoint: the keys of a state must be strings"):
        save_checkpoint(tmp_path / "c.npz", found={1: 2})
    with pytest.raises(ArgumentError, match="random is the name of the state of random numbers"):
        save_checkpoint(tmp_path / "c.npz", random=3)
    with pytest.raises(ArgumentError, match=r"save_checkpoint: the extension must be one of .*, got '.pkl'"):
        save_checkpoint(tmp_path / "c.pkl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("extension", [".npz", ".safetensors", pytest.param(".h5", marks=pytest.mark.slow)])
def test_damage_is_found(tmp_path, extension):
    path = tmp_path / f"checkpoint-1{extension}"
    objects = made()
    save_checkpoint(path, **objects)
    whole = path.read_bytes()
    before = contents(objects)
    random = np.random.RandomState(4)
    for number in range(200):  # a hundred cuts, and a hundred bits that are not as they were
        place = random.randint(len(whole))
        damaged = bytearray(whole)
        if number % 2:
            damaged[place] ^= 1 << random.randint(8)
        path.write_bytes(bytes(damaged) if number % 2 else whole[:place])
        try:
            load_checkpoint(path, **objects)
        except FileFormatError as error:
            assert path.name in str(error)
        else:
            assert number % 2, "a file that was cut must not be read"
        assert contents(objects) == before  # an error, or a bit that means nothing, such as that of a date


def test_files_that_are_no_checkpoints(tmp_path):
    nn.save_parameters(tmp_path / "p.npz", {"a": nn.Variable((2,))})
    with pytest.raises(FileFormatError, match=r"p.npz: a checkpoint must have an entry checkpoint.json, got none"):
        load_checkpoint(tmp_path / "p.npz")


def test_the_newest_whole_checkpoint_wins(tmp_path, caplog):
    counter = Counter()
    assert load_newest_checkpoint(tmp_path / "none", counter=counter) is None
    for number in (9, 10, 200):
        counter.count = number
        save_checkpoint(checkpoint_path(tmp_path, number), counter=counter, iteration=number)
    (tmp_path / "other-0900.npz").write_text("")
    names = [path.name for path in checkpoints_in(tmp_path)]
    assert names == ["checkpoint-00000200.npz", "checkpoint-00000010.npz", "checkpoint-00000009.npz"]
    newest = checkpoint_path(tmp_path, 200)
    newest.write_bytes(newest.read_bytes()[:-40])
    assert load_newest_checkpoint(tmp_path, counter=counter) == {"iteration": 10}
    assert counter.count == 10
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "does not read whole" in caplog.text


def test_a_newest_checkpoint_that_is_cut_anywhere_is_passed_over(tmp_path):
    objects = made()
    for number in (1, 2):
        save_checkpoint(checkpoint_path(tmp_path, number), iteration=number, **objects)
    newest = checkpoint_path(tmp_path, 2)
    whole, before = newest.read_bytes(), contents(objects)
    for place in np.random.RandomState(7).randint(0, len(whole), 100):
        newest.write_bytes(whole[:place])
        assert load_newest_checkpoint(tmp_path, **objects) == {"iteration": 1}
        assert contents(objects) == before
    newest.write_bytes(whole)
    assert load_newest_checkpoint(tmp_path, **objects) == {"iteration": 2}


def test_another_number_of_threads_is_said(tmp_path, caplog):
    save_checkpoint(tmp_path / "c.npz")
    threads = nn.num_threads()
    nn.set_num_threads(3)
    try:
        load_checkpoint(tmp_path / "c.npz")
    finally:
        nn.settings._NUM_THREADS[:] = [] if threads is None else [threads]
    assert f"training continues, not identical to the last bit, with threads 3, not {threads}" in caplog.text


def test_iterators_are_part_of_it(tmp_path):
    def make():
        return data_iterator_simple(lambda index: (index,), 10, 3, shuffle=True)

    with make() as data, make() as other:
        data.next()
        save_checkpoint(tmp_path / "c.npz", data=data)
        load_checkpoint(tmp_path / "c.npz", data=other)
        assert [other.next()[0].tolist() for _ in range(5)] == [data.next()[0].tolist() for _ in range(5)]


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | hnp.arrays(hnp.integer_dtypes(), (2, 3)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30, deadline=None)
@given(plain)
def test_states_come_back_exactly(state):
    arrays = {}
    back = unpack(from_text(as_text(pack(state, arrays))), arrays)
    np.testing.assert_equal(back, state)


def test_snapshots_tell_where_they_come_from(tmp_path):
    save_checkpoint(tmp_path / "c.npz")
    about = read_snapshot(tmp_path / "c.npz").about
    assert about["format"] == 1
    assert about["nn_core"] == nn.__version__


COUNTER = """
class Counter:
    def get_state(self):
        return {"n": 3}
    def set_state(self, state):
        assert state == {"n": 3}
"""


def test_checkpoints_name_the_plugins_that_they_need(install, tmp_path, caplog):
    module = install("acme", COUNTER)
    counter = import_module(module).Counter()
    path = tmp_path / "c.npz"
    save_checkpoint(path, counter=counter)
    assert read_snapshot(path).about["plugins"]["acme"] == "nn-ext-acme 1.0"
    load_checkpoint(path, counter=counter)
    assert "not installed" not in caplog.text
    install.uninstall(module)
    installed.forget()
    hint = "hint: it says that it was written with plugins that are not installed: 'acme' of the package 'nn-ext-acme 1.0'"
    load_checkpoint(path, counter=counter)
    assert f"load_checkpoint: {path}: {hint}" in caplog.text
    with pytest.raises(ArgumentError, match=re.escape(f"got no counter\n  {hint}")):
        load_checkpoint(path)


def test_a_copy_of_a_state_shares_nothing_with_it():
    shared = np.arange(6.0).reshape(2, 3)
    state = {
        "list": [shared, shared.T, np.array(3, np.int8), np.zeros((0, 2))],
        "flags": {"a": np.array([True, False]), "text": "x", "none": None, "number": 2.5},
        "pair": (shared, shared[::-1]),
    }
    own = copied(state)
    expected = [array.copy() for array in (*state["list"], state["flags"]["a"], *state["pair"])]
    shared *= -1
    state["flags"]["a"][:] = False
    found = [*own["list"], own["flags"]["a"], *own["pair"]]
    for array, other in zip(found, expected, strict=True):
        assert (array.dtype, array.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(array, other)
    assert isinstance(own["pair"], tuple)
    assert {key: own["flags"][key] for key in ("text", "none", "number")} == {"text": "x", "none": None, "number": 2.5}
    assert own["pair"][0] is own["list"][0]
    assert not any(np.shares_memory(own["list"][0], array) for array in found[1:-2])
