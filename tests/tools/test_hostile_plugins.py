"""The lane of plugins in use: a part of it has no finding, every kind is reached, and planted faults are found."""

import importlib

import pytest

from nn_core.engine.dispatch.kinds import KINDS
from tools.lanes import plugins


def found(*wanted):
    """Return the findings of some cases."""
    with plugins.registered() as module:
        lane = plugins.Lane(module)
        return [text for case in wanted if (text := lane.check(plugins.Case(*case)))]


def test_some_cases_have_no_findings():
    assert list(plugins.check(120, 7)) == []


def test_there_is_a_part_of_every_kind():
    with plugins.registered() as module:
        offered = {name.removeprefix("nn_core_") for name in vars(module) if name.startswith("nn_core_")}
    assert {*KINDS, "backends", "functions"} - offered == {"commands", "words"}  # they run as programs, or not at all


@pytest.mark.parametrize("place", ["solver made", "communicator made", "viewer made", "initializer made", "read"])
def test_constructors_are_named(place):
    assert found((place, "raises KeyError"), (place, "raises SystemExit"), (place, "raises KeyboardInterrupt")) == []


@pytest.mark.parametrize(
    ("guard", "case"),
    [
        ("nn_core.engine.dispatch.extension_registry.guarded_object", ("solver made", "raises SystemExit")),
        ("nn_core.engine.arrays.foreign_arrays._fitting", ("from_numpy", "returns a number")),
        ("nn_core.solvers.update.read_only", ("solver step", "writes what it reads")),
    ],
)
def test_a_guard_that_is_missing_is_found_out(monkeypatch, guard, case):
    module, _, name = guard.rpartition(".")
    unguarded = (lambda backend, method, array, *_: array) if name == "_fitting" else (lambda made, *_: made)
    monkeypatch.setattr(importlib.import_module(module), name, unguarded)
    (finding,) = found(case)
    assert finding
