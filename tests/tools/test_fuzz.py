"""The fuzzers: a sample of their calls and programs has no finding, and a planted fault is found and made small."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.fuzz.lane import check_programs
from tools.fuzz.watch import check_calls


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_give_true_results(seed: int) -> None:
    assert [finding.script for finding in check_programs(100 + seed, 60)] == []


def test_some_random_programs_give_true_results() -> None:
    assert [finding.script for finding in check_programs(99, 4)] == []


def test_a_planted_fault_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    from nn_core.rules.registry import GRADIENTS

    monkeypatch.setitem(GRADIENTS, "Transpose", lambda F, g: None)
    (finding,) = _first(check_programs(3, 200))
    assert "transpose" in finding.script
    assert np.count_nonzero([" = F." in line for line in finding.script.splitlines()]) <= 8


def _first(findings):
    for finding in findings:
        return [finding]
    return []


def test_some_hostile_calls_end_as_they_should() -> None:
    assert check_calls(99, 800).findings == {}


@pytest.mark.slow
def test_hostile_calls_end_as_they_should() -> None:
    assert check_calls(100, 8000).findings == {}


def test_a_crash_a_hang_and_a_foreign_exception_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tools.fuzz import worker

    space = {"np": np}
    assert worker.verdict("1 / 0", space).__class__ is ZeroDivisionError
    assert worker.verdict("{}['x']", space).__class__ is KeyError
    assert worker.verdict("len(3)", space) is None
