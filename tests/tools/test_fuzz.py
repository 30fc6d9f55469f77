"""The fuzzers: a sample of their calls and programs has no finding, and a planted fault is found and made small."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context
from tools.fuzz.lane import check_programs
from tools.fuzz.oracle import MANY, Graph, truth_of
from tools.fuzz.sweep import targets, working_call
from tools.fuzz.watch import check_calls, check_sweep


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


def test_rounding_that_decides_a_result_is_seen() -> None:
    """`log_softmax` makes a number near 0 from numbers near 13, just where `pow2_quantize` jumps."""
    x = nn.Variable.from_numpy_array(
        [
            [1.0903321504592896, 0.01401473768055439, 0.8892824649810791],
            [-0.4262339174747467, 1.0358558893203735, -0.43465933203697205],
            [1.2595210075378418, -1.2596515417099, -0.21752797067165375],
        ]
    )
    with nn.context_scope(get_extension_context("cpu")):
        h = x / -0.2
        y = F.pow2_quantize(F.max(F.log_softmax(h + F.relu(h), axis=0), axis=1))
        y.forward()
    exact, slack = truth_of(Graph([y]), y, {x.storage: x.d.astype(np.float64)}, 1.0).value(y.storage)
    np.testing.assert_allclose(y.d, exact, rtol=0, atol=slack.least + slack.full(MANY))


def _first(findings):
    for finding in findings:
        return [finding]
    return []


def test_some_hostile_calls_end_as_they_should() -> None:
    assert check_calls(99, 800).findings == {}


@pytest.mark.slow
def test_hostile_calls_end_as_they_should() -> None:
    assert check_calls(100, 8000).findings == {}


@pytest.mark.slow
def test_every_argument_of_every_public_callable_refuses_what_it_cannot_take() -> None:
    report = check_sweep(range(len(targets())))
    assert report.calls > 250_000
    assert report.findings == {}


def test_arguments_of_a_function_refuse_what_they_cannot_take() -> None:
    (first, *_), found = [n for n, (name, _) in enumerate(targets()) if name == "F.convolution"], working_call("F.convolution")
    assert found.keys() >= {"x", "weight"}
    report = check_sweep(range(first, first + 2))
    assert report.calls > 200
    assert report.findings == {}


def test_a_crash_a_hang_and_a_foreign_exception_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tools.fuzz import worker

    space = {"np": np}
    assert worker.verdict("1 / 0", space).__class__ is ZeroDivisionError
    assert worker.verdict("{}['x']", space).__class__ is KeyError
    assert worker.verdict("len(3)", space) is None
