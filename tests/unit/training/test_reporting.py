"""Summaries and reports."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nn_core as nn
from nn_core.errors import ArgumentError, ShapeError
from nn_core.training import Observation, Summary, observing, report, report_scope

pairs = st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0.5, 10)), min_size=1, max_size=20)


def summary_of(values):
    summary = Summary()
    for value, weight in values:
        summary.add(value, weight)
    return summary


@settings(max_examples=60, deadline=None)
@given(pairs, pairs)
def test_summaries(first, second):
    merged = summary_of(first)
    merged.merge(summary_of(second))
    values, weights = np.array(first + second).T
    mean = np.average(values, weights=weights)
    for summary in (merged, summary_of(first + second)):
        np.testing.assert_allclose(summary.mean, mean, rtol=1e-9, atol=1e-6)
        variance = np.average((values - mean) ** 2, weights=weights)
        np.testing.assert_allclose(summary.std, np.sqrt(variance), rtol=1e-6, atol=1e-4)
    again = Summary()
    again.set_state(merged.get_state())
    assert (again.mean, again.std, again.weight) == (merged.mean, merged.std, merged.weight)


def test_large_values_keep_their_deviation():
    assert summary_of([(1e8 + i, 1) for i in range(3)]).std == pytest.approx(0.816497, abs=1e-6)
    empty = Summary()
    empty.merge(Summary())
    empty.add(3, 0)
    assert np.isnan([empty.mean, empty.std]).all()
    empty.merge(summary_of([(2, 1)]))
    assert empty.mean == 2


def test_reports():
    loss = nn.Variable.from_numpy_array([[2.0]])
    with observing() as seen:
        report({"loss": loss}, weight=30)
        with report_scope("gan"), report_scope("d"):
            report({"loss": loss.data, "n": 3})
        report({"loss": 6.0}, weight=10)
    report({"loss": 100.0})  # nobody observes
    assert dict(seen) == {"loss": 3.0, "gan/d/loss": 2.0, "gan/d/n": 3.0}
    assert seen.weight("loss") == 40
    assert len(seen) == 3
    assert "n" not in seen
    seen.clear()
    assert not seen


def test_values_are_read_when_somebody_asks():
    value = nn.Variable.from_numpy_array([1.0])
    with observing(Observation(lazy=True)) as seen, observing() as read:
        report({"a": value})
        with observing(seen):
            report({"a": value})
    value.d = 5
    assert (seen["a"], read["a"]) == (5, 1)
    assert seen.weight("a") == read.weight("a") == 1


def test_a_variable_that_is_computed_in_a_loop_has_the_mean_of_its_values(make_updater):
    updater, losses = make_updater(), []
    with observing() as seen:
        for _ in range(3):
            updater.update()
            losses.append(float(updater._loss.d))
    assert len(set(losses)) == 3
    assert seen["loss"] == pytest.approx(np.mean(losses))
    assert seen.weight("loss") == 12


def test_settled_values_do_not_change():
    value = nn.Variable.from_numpy_array([1.0])
    with observing(Observation(lazy=True)) as seen:
        report({"a": value, "b": value.d})
        seen.settle()
        value.d = 5
        assert dict(seen) == {"a": 1, "b": 1}
        report({"a": value}, weight=3)
    assert seen["a"] == 4


@pytest.mark.parametrize("is_array", [False, True], ids=["Variable", "NdArray"])
def test_a_value_that_overwrites_itself_is_refused(is_array):
    value = nn.Variable.from_numpy_array([1.0])
    reported = value.data if is_array else value
    with observing(Observation(lazy=True)) as seen:
        report({"a": reported})
        with pytest.raises(ArgumentError, match=r"must not overwrite itself, got the same \w+ for a\n.*float\(a\.d\)"):
            report({"a": reported})
        report({"b": value.d})
        value.d = 3
        report({"b": value.d})
    assert seen["b"] == 2


def test_threads_have_observers_of_their_own():
    with observing() as seen:
        thread = threading.Thread(target=report, args=({"a": 1.0},))
        thread.start()
        thread.join()
    assert not seen


def test_refusals():
    with observing(Observation(lazy=True)) as seen:
        report({"a": nn.NdArray.from_numpy_array(np.ones(3))})
        with pytest.raises(ArgumentError, match="report: the names must be strings, got 3"):
            report({3: 1.0})
        with pytest.raises(ShapeError, match=r"report: b must be one number, got an array of shape \(2,\)"):
            report({"b": np.ones(2)})
    with pytest.raises(ShapeError, match=r"report: a must be one number, got an array of shape \(3,\)"):
        seen["a"]
