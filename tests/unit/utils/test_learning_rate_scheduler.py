"""Schedulers: learning rates at chosen iterations."""

import pytest

from nn_core.errors import ArgumentError
from nn_core.utils.learning_rate_scheduler import (
    BaseLearningRateScheduler,
    CosineRestartsScheduler,
    CosineScheduler,
    CyclicScheduler,
    ExponentialScheduler,
    LinearWarmupScheduler,
    OneCycleScheduler,
    PolynomialScheduler,
    StepScheduler,
)

ITERATIONS = (0, 1, 2, 3, 5, 9, 10, 11, 20)


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        (ExponentialScheduler(1.0, 0.5), [0.5**i for i in ITERATIONS]),
        (ExponentialScheduler(1.0, 0.5, 3), [1, 1, 1, 0.5, 0.5, 0.125, 0.125, 0.125, 0.015625]),
        (StepScheduler(1.0, 0.5, [2, 5, 10]), [1, 1, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.125]),
        (PolynomialScheduler(1.0, 10, 2), [1, 0.81, 0.64, 0.49, 0.25, 0.01, 0, 0, 0]),
        (PolynomialScheduler(4.0, 10, 0.5), [4, 3.794733, 3.577709, 3.34664, 2.828427, 1.264911, 0, 0, 0]),
        (CosineScheduler(1.0, 10), [1, 0.975528, 0.904508, 0.793893, 0.5, 0.024472, 0, 0.024472, 1]),
        (
            LinearWarmupScheduler(CosineScheduler(1.0, 10), 4),
            [0.25, 0.487764, 0.678381, 0.793893, 0.5, 0.024472, 0, 0.024472, 1],
        ),
        (LinearWarmupScheduler(ExponentialScheduler(1.0, 0.5), 0), [0.5**i for i in ITERATIONS]),
        (OneCycleScheduler(1.0, 10, 0.3, 4, 10), [0.25, 0.4375, 0.8125, 1, 0.816451, 0.073278, 0.025, 0.025, 0.025]),
        (OneCycleScheduler(1.0, 10, 1.0, 2, 1), [0.5, 0.512236, 0.547746, 0.603054, 0.75, 0.987764, 0.5, 0.5, 0.5]),
        (CyclicScheduler(0.0, 1.0, 2), [0, 0.5, 1, 0.5, 0.5, 0.5, 1, 0.5, 0]),
        (CosineRestartsScheduler(1.0, 2, 2, 0.5), [1, 0.75, 1, 0.926777, 0.573223, 0.845671, 0.75, 0.654329, 0.845671]),
    ],
)
def test_learning_rates(scheduler, expected):
    given = [scheduler.get_learning_rate(iteration) for iteration in ITERATIONS]
    assert given == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ExponentialScheduler(1, 0.5, 0), "ExponentialScheduler: iter_interval must be a number of at least 1, got 0"),
        (lambda: PolynomialScheduler(1, 0, 1), "PolynomialScheduler: max_iter must be a number of at least 1, got 0"),
        (lambda: OneCycleScheduler(1, 10, 1.5), "OneCycleScheduler: warmup must be a number from 0 to 1, got 1.5"),
        (lambda: CyclicScheduler(0.2, 0.1, 5), "CyclicScheduler: max_lr must be a number of at least 0.2, got 0.1"),
        (lambda: CosineRestartsScheduler(1, 0), "CosineRestartsScheduler: cycle must be a number of at least 1, got 0"),
        (lambda: CosineScheduler(1, -3), "CosineScheduler: max_iter must be a number of at least 1, got -3"),
    ],
)
def test_lengths_are_positive(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_scheduler_defines_its_rate():
    with pytest.raises(NotImplementedError, match=r"a scheduler must define get_learning_rate\(iter\)"):
        BaseLearningRateScheduler().get_learning_rate(0)


def test_a_cosine_past_its_end_is_told_once(caplog):
    scheduler = CosineScheduler(1.0, 10)
    assert scheduler.get_learning_rate(10) == pytest.approx(0.0)
    assert not caplog.records
    for _ in range(2):
        assert scheduler.get_learning_rate(15) == pytest.approx(0.5)
    (record,) = caplog.records
    assert "CosineScheduler: iter must be at most max_iter (10) for a rate that falls, got 15" in record.getMessage()
