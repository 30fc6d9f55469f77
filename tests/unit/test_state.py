"""Scopes and defaults of ambient values."""

import asyncio
import gc
import sys
import threading

import pytest

from nn_core.engine.runtime.context_values import Ambient, AmbientScope
from nn_core.errors import ArgumentError


@pytest.fixture
def value():
    return Ambient("value", "default")


def seen_by_a_thread(value):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(value.get()))
    thread.start()
    thread.join()
    return seen[0]


def test_scopes_nest_and_restore(value):
    with value.scope("outer"):
        with value.scope("inner"):
            assert value.get() == "inner"
        assert value.get() == "outer"
    assert value.get() == "default"


def test_a_scope_restores_when_its_block_raises(value):
    with pytest.raises(KeyError), value.scope("inner"):
        raise KeyError
    assert value.get() == "default"


def test_a_scope_may_decorate_a_function(value):
    @value.scope("inside")
    def read():
        return value.get()

    assert [read(), read(), value.get()] == ["inside", "inside", "default"]


def test_a_decorated_function_may_call_itself(value):
    @value.scope("inside")
    def read(depth):
        return [value.get()] + (read(depth - 1) if depth else [])

    assert read(2) == ["inside"] * 3
    assert value.get() == "default"


def test_a_scope_is_entered_once(value):
    scope = value.scope("mine")
    with scope, pytest.raises(ArgumentError, match="each with block must open a scope of its own, got one that was"):
        scope.__enter__()
    assert value.get() == "default"


def test_a_scope_may_take_a_value_made_when_it_is_entered(value):
    scope = value.scope_of(lambda: f"in {value.get()}")
    with value.scope("outer"), scope as inner:
        assert inner == value.get() == "in outer"


def test_a_value_that_cannot_be_made_opens_no_scope(value):
    with pytest.raises(KeyError), value.scope_of({}.popitem):
        raise AssertionError
    assert not value.is_scoped


def test_a_scope_may_be_opened_and_closed_by_hand(value):
    with value.scope("outer"):
        token = value.replace("inner")
        assert value.get() == "inner"
        value.restore(token)
        assert value.get() == "outer"


def test_the_default_reaches_threads_and_a_scope_does_not(value):
    value.set_default("new")
    with value.scope("mine"):
        assert seen_by_a_thread(value) == "new"


def test_a_scope_hides_a_change_of_the_default(value):
    with value.scope("mine"):
        value.set_default("new")
        assert value.get() == "mine"
    assert value.get() == "new"


def test_tasks_do_not_see_the_scopes_of_each_other(value):
    async def task(name, turns):
        with value.scope(name):
            for _ in range(turns):
                await asyncio.sleep(0)
            return value.get()

    async def both():
        return await asyncio.gather(task("slow", 3), task("fast", 1))

    assert asyncio.run(both()) == ["slow", "fast"]
    assert value.get() == "default"


def test_is_scoped_tells_whether_a_scope_is_open(value):
    assert not value.is_scoped
    with value.scope(None):
        assert value.is_scoped


def test_reading_costs_next_to_nothing(value):
    called = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: called.append(event) if event in ("call", "c_call") else None)
    try:
        value.get()
    finally:
        sys.setprofile(before)
    assert len(called) <= 3  # get(), the look-up in the context, and setprofile() itself


def test_a_scope_whose_construction_was_interrupted_ends_quietly() -> None:
    """Exceptions in `__del__` are warnings, which the tests turn into errors."""
    scope = AmbientScope.__new__(AmbientScope)
    del scope
    gc.collect()
