"""Triggers: when they fire, that a resumed run fires as an unbroken one, and what they refuse."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nn_core.errors import ArgumentError
from nn_core.training import at, best, early_stop, every, once


class Progress:
    """The part of a trainer that a trigger sees."""

    def __init__(self, batch=2, size=10):
        self.iteration = 0
        self.batch = batch
        self.epoch_size = size
        self.elapsed_time = 0.0
        self.observation = {}

    updater = SimpleNamespace(samples_of_a_step=2)

    @property
    def samples(self):
        return self.iteration * self.batch

    def step(self, **observation):
        self.iteration += 1
        self.elapsed_time += 0.5
        self.observation = observation


def fired(trigger, steps, progress=None):
    progress = progress or Progress()
    trigger.start(progress)
    found = []
    for _ in range(steps):
        progress.step()
        if trigger(progress):
            found.append(progress.iteration)
    return found


@pytest.mark.parametrize(
    ("trigger", "iterations"),
    [
        (every(4), [4, 8, 12]),
        (every(1, "epoch"), [5, 10]),
        (every(0.3, "epoch"), [2, 3, 5, 6, 8, 9, 11, 12]),
        (every(2, "second"), [4, 8, 12]),
        (every(0.05, "minute"), [6, 12]),
        (at(3, 7), [3, 7]),
        (at(0.5, 2, unit="epoch"), [3, 10]),
        (once(), [1]),
        (every(3) | every(4), [3, 4, 6, 8, 9, 12]),
        (every(2) & every(3), [6, 12]),
        (every(5) | (lambda progress: progress.iteration == 7), [5, 7, 10]),
    ],
)
def test_when(trigger, iterations):
    assert fired(trigger, 12) == iterations


def test_epochs_that_are_no_whole_number_of_batches():
    assert fired(every(1, "epoch"), 8, Progress(batch=4, size=10)) == [3, 5, 8]
    assert fired(every(0.1, "epoch"), 20, Progress(batch=1, size=10)) == list(range(1, 21))


periods = st.one_of(st.integers(1, 9), st.sampled_from([0.1, 0.25, 0.3, 1.5, 2.75]))


@settings(max_examples=100, deadline=None)
@given(
    period=periods,
    unit=st.sampled_from(["iteration", "epoch"]),
    batch=st.integers(1, 7),
    size=st.integers(1, 23),
    kills=st.sets(st.integers(1, 39)),
    points=st.lists(st.integers(1, 30), min_size=1, max_size=3),
)
def test_a_resumed_run_fires_as_an_unbroken_one(period, unit, batch, size, kills, points):
    def make():
        return [every(period, unit), at(*points, unit=unit), every(period) & every(2, unit), once()]

    expected = [fired(trigger, 40, Progress(batch, size)) for trigger in make()]
    found = [[] for _ in expected]
    triggers, progress = make(), Progress(batch, size)
    for trigger in triggers:
        trigger.start(progress)
    for _ in range(40):
        progress.step()
        for trigger, iterations in zip(triggers, found, strict=True):
            if trigger(progress):
                iterations.append(progress.iteration)
        if progress.iteration in kills:
            states = [trigger.get_state() for trigger in triggers]
            triggers = make()
            for trigger, state in zip(triggers, states, strict=True):
                trigger.set_state(state)
                trigger.start(progress)
    assert found == expected


def watch(trigger, values, key="error"):
    progress = Progress()
    trigger.start(progress)
    fires = []
    for value in values:
        progress.step(**({} if value is None else {key: value}))
        fires.append(trigger(progress))
    return fires


def test_best():
    nan = math.nan
    assert watch(best("error", "min"), [nan, 3, None, 1, 2, nan, 0.5]) == [False, True, False, True, False, False, True]
    assert watch(best("error", "max", 1.0), [1, 1.5, 2.5]) == [True, False, True]


def test_early_stop():
    trigger = early_stop("error", 2, "min")
    assert watch(trigger, [3, 2, 2, None, 2]) == [False, False, False, False, True]
    assert trigger.reason == "error has not improved on 2 for 2 times"
    again = early_stop("error", 2, "min")
    again.set_state(trigger.get_state())
    assert watch(again, [None]) == [True]  # a resumed run that was over
    trigger = early_stop("error", 2, "max")
    assert watch(trigger, [1, math.nan]) == [False, True]
    assert trigger.reason == "error is nan"
    assert watch(early_stop("error", 2, "max", check_finite=False), [1, math.nan, 2, 1, 1]) == [False] * 4 + [True]


def test_patience_goes_on():
    trigger = early_stop("error", 3, "min")
    watch(trigger, [1, 2, 2])
    again = early_stop("error", 3, "min")
    again.set_state(trigger.get_state())
    assert watch(again, [2]) == [True]


def test_how_long_training_lasts_counts_from_its_start():
    progress = Progress()
    progress.iteration = 50
    trigger = every(20) | every(100, "epoch")
    trigger.start_from_zero(progress)
    assert trigger(progress)
    assert trigger.reason == "20 iterations have passed"
    assert (trigger.iterations, (every(20) & every(30)).iterations) == (20, 30)
    assert (every(2, "epoch") | every(3, "minute")).epochs == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: every(0), "every: the period must be greater than 0, got 0"),
        (lambda: every("often"), "every: the period must be a number, got 'often'"),
        (lambda: every(1, "day"), "every: unit must be one of iteration, epoch, second, minute, hour, got 'day'"),
        (lambda: best("a", "least"), "best: mode must be 'min' or 'max', got 'least'"),
        (lambda: early_stop("a", 0, "min"), "early_stop: patience must be at least 1, got 0"),
        (lambda: every(1) | 3, r"trigger: must be a trigger such as every\(1, 'epoch'\) or a function, got 3"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_names_that_nobody_reports():
    trigger = every(1) | best("eror", "min")
    watch(trigger, [1.0, 2.0])
    with pytest.raises(ArgumentError, match=r"best: the key must be one that is reported \(error\), got 'eror'"):
        trigger.finish(Progress())


@settings(max_examples=60, deadline=None)
@given(
    period=periods,
    unit=st.sampled_from(["iteration", "epoch"]),
    size=st.integers(1, 23),
    points=st.lists(st.integers(1, 20), min_size=1),
)
def test_nothing_is_missed_between_two_looks(period, unit, size, points):
    for make in (lambda: every(period, unit), lambda: at(*points, unit=unit), lambda: every(period, unit) | at(*points)):
        expected = fired(make(), 40, Progress(2, size))
        trigger, progress, found, soonest = make(), Progress(2, size), [], 0
        trigger.start(progress)
        for _ in range(40):
            progress.step()
            if progress.iteration >= soonest:
                if trigger(progress):
                    found.append(progress.iteration)
                soonest = trigger.soonest(progress)
        assert found == expected
