"""Profiles of Python functions."""

import pytest

from nn_core.errors import ArgumentError, GraphError
from nn_core.utils.function_profile import profile


@pytest.fixture(autouse=True)
def no_exit(monkeypatch):
    monkeypatch.setattr("atexit.register", lambda function: None)


def test_calls_are_counted_and_printed(capsys):
    @profile
    def double(number):
        """Twice as much."""
        return sum([number, number])

    assert [double(n) for n in (1, 2)] == [2, 4]
    assert double.__doc__ == "Twice as much."
    assert double.profiler.ncalls == 2
    double.profiler.print_stats()
    printed = capsys.readouterr().out
    assert "double" in printed
    assert "2 calls" in printed
    assert "built-in method builtins.sum" in printed
    assert double.profiler.ncalls == 0
    double.profiler.print_stats()
    assert capsys.readouterr().out == ""


def test_printing_now_and_then(capsys):
    @profile(print_freq=2, sort_keys=["calls"], print_restrictions=["nothing of this name"])
    def function():
        return 1

    function()
    assert capsys.readouterr().out == ""
    function()
    assert "2 calls" in capsys.readouterr().out


def test_conditions_see_the_arguments_of_the_call():
    @profile(condition=lambda x, y=0: x + y > 3)
    def add(x, y=0):
        return x + y

    assert [add(1), add(2, y=2), add(5, 0)] == [1, 4, 5]
    assert add.profiler.ncalls == 2


def test_one_at_a_time():
    @profile
    def inner():
        return 1

    @profile
    def outer():
        return inner()

    with pytest.raises(GraphError, match=r"one function can be profiled at a time, got .*inner.* called by .*outer"):
        outer()
    assert inner() == 1
    with pytest.raises(ArgumentError, match="print_freq must be at least 0, got -1"):
        profile(print_freq=-1)(inner)
