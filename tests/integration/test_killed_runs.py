"""Killed anywhere and resumed, a run ends identical to the bit to one that was not."""

import os

import pytest

import nn_core.solvers as S

from .killed_runs import Run, killed, many, unbroken

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning"),
]


RUNS = {
    "static": Run(),
    "dynamic": Run(dynamic=True, solver="AdamW", accumulate=2),
    "trainer": Run(trainer=True, solver="Momentum", accumulate=2),
    "dynamic trainer": Run(trainer=True, dynamic=True),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_killed_run_ends_as_one_that_was_not(tmp_path, run):
    identical, kills = many(tmp_path, [run], seed=1)
    assert kills >= 1
    assert identical == 1


@pytest.mark.slow
def test_a_hundred_kills(tmp_path):
    kills, seed = 0, 0
    runs = [
        Run(
            dynamic=number % 2 == 1,
            solver=S.__all__[number % len(S.__all__)],
            accumulate=1 + number % 3 // 2,
            trainer=number % 4 >= 2,
        )
        for number in range(24)
    ]
    while kills < 100:
        seed += 1
        identical, count = many(tmp_path / str(seed), runs, seed)
        assert identical == len(runs)
        kills += count


def test_without_the_state_of_random_numbers_the_end_is_another(tmp_path):
    run = Run(keeps_random=False)
    rng = __import__("random").Random(2)
    expected, n_calls = unbroken(tmp_path / "whole", run)
    for number in range(8):  # a kill before the first checkpoint starts anew, and changes nothing
        digest, kills = killed(tmp_path / f"killed-{number}", run, rng, n_calls)
        if kills and digest != expected:
            return
    pytest.fail("a run without the state of random numbers must end differently")
