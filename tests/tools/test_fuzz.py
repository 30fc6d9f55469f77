"""The fuzzers: a sample of their calls and programs has no finding, and a planted fault is found and made small."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context
from nn_core.operators.reference import pooling
from nn_core.operators.spec.builtin import SPECS
from tools.lanes.fuzz import elements
from tools.lanes.fuzz.lane import check_programs
from tools.lanes.fuzz.noise import FEW, PRECISIONS, agree, dtypes_of, tolerance
from tools.lanes.fuzz.oracle import MANY, Graph, truth_of
from tools.lanes.fuzz.program import Leaf, Program, Step
from tools.lanes.fuzz.runner import Hang, Reference, limit, perform
from tools.lanes.fuzz.sweep import targets, working_call
from tools.lanes.fuzz.watch import check_calls, check_sweep
from tools.lanes.fuzz.ways import SPECIALS, Action, Way


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_give_true_results(seed: int) -> None:
    assert [finding.script for finding in check_programs(100 + seed, 60)] == []


def test_some_random_programs_give_true_results() -> None:
    assert [finding.script for finding in check_programs(99, 4)] == []


@pytest.mark.slow
def test_a_planted_fault_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    from nn_core.operators.rules.registry import GRADIENTS

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


#: y = relu(x * 2), a leaf of six numbers.
RECTIFIED = Program(
    1, (Leaf(0, (2, 3)), Step("{0} * 2", (0,), (1,)), Step("F.relu({0})", (1,), (2,)), Step("F.sum({0})", (2,), (3,))), (2, 3)
)


def ways_of(actions, **settings):
    every = (Action("data", (0, "float32")), *actions, Action("forward", ("keep", 3)))
    return Way("static", "reference", (), every, **settings)


@pytest.mark.parametrize("special", SPECIALS)
def test_a_special_number_has_the_place_that_it_has_in_truth(special: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from nn_core.operators.reference.registry import KERNELS

    way = ways_of([Action("write", (0, "element", (special, 4)))])
    run, difference = perform(Reference(RECTIFIED), way)
    assert difference is None
    assert not np.isfinite(run.state[0]).all()
    monkeypatch.setitem(KERNELS, "ReLU", lambda xp, x, **_: xp.nan_to_num(xp.maximum(x, 0), posinf=1.0))  # of the truth alone
    _, difference = perform(Reference(RECTIFIED), way)
    assert (difference is not None) == (special != -np.inf)


@pytest.mark.parametrize("type_config", ["half", "bfloat16"])
def test_half_precision_is_allowed_its_rounding_and_no_more(type_config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from nn_core.operators.reference.registry import KERNELS

    way = ways_of([], type_config=type_config)
    assert perform(Reference(RECTIFIED), way)[1] is None
    monkeypatch.setitem(KERNELS, "ReLU", lambda xp, x, **_: xp.maximum(x, 0) * 1.5)  # of the truth alone
    assert perform(Reference(RECTIFIED), way)[1] is not None


#: y = sum(3e4 * (x * 3e4)), a leaf of six numbers, whose gradient float16 does not hold.
STEEP = Program(
    1, (Leaf(0, (2, 3)), Step("{0} * 3e4", (0,), (1,)), Step("{0} * 3e4", (1,), (2,)), Step("F.sum({0})", (2,), (3,))), (2, 3)
)


@pytest.mark.parametrize("number", [2.5, -4.0])
@pytest.mark.parametrize("leaf_dtype", ["float32", "float16"])
def test_half_precision_ends_at_its_largest_number(number: float, leaf_dtype: str) -> None:
    given = [Action("write", (0, "cast", leaf_dtype)), Action("write", (0, "number", number))]
    passed = [Action("forward", ("keep", 3)), Action("read"), Action("backward", ("plain",)), Action("gradients")]
    run, difference = perform(Reference(STEEP), ways_of([*given, *passed], type_config="half"))
    assert difference is None
    exact, slack = run.values.value(run.reference.storage(1))
    assert agree(np.full(exact.shape, np.copysign(np.inf, number)), exact, slack.full(MANY))
    for wrong in (65504.0, abs(number) * 3e4, -np.inf):
        assert not agree(np.full(exact.shape, wrong * np.sign(number)), exact, slack.full(MANY))


def test_noise_knows_which_functions_compute_in_half_precision() -> None:
    x = nn.Variable((2, 3))
    moved = F.transpose(x, (1, 0))
    with nn.context_scope(nn.Context(["reference:bfloat16"])):
        y = F.tanh(moved)
    z = F.sin(y)
    order = Graph([z]).order
    names = {node.spec.name: dtype for node, dtype in dtypes_of(order, "float32", {x.storage: "float16"}).noise.items()}
    assert names == {"Transpose": "float16", "Tanh": "bfloat16"}


def test_what_noise_makes_nan_is_unknown_and_the_rest_is_compared() -> None:
    exact, noisy = np.array([1.0, np.nan, np.inf, 2.0]), np.array([1.0, np.nan, np.nan, 2.0])
    allowed = tolerance(exact, [noisy], PRECISIONS["float32"])
    assert agree(np.array([1.0, np.nan, -np.inf, 2.0]), exact, allowed)
    for wrong in ([1.0, np.nan, 5.0, 2.0], [1.0, 0.0, np.nan, 2.0], [1.1, np.nan, np.nan, 2.0]):
        assert not agree(np.array(wrong), exact, allowed)
    allowed = tolerance(exact, [np.array([np.nan, np.nan, np.inf, 2.0])], PRECISIONS["float32"])
    assert agree(np.array([7.0, np.nan, np.inf, 2.0]), exact, allowed)


def test_nan_may_spread_within_a_convolution_but_not_vanish() -> None:
    x = nn.Variable.from_numpy_array(np.ones((1, 1, 4, 4)))
    w = nn.Variable.from_numpy_array(np.ones((1, 1, 3, 3)))
    y = F.convolution(x, w)
    values = {x.storage: np.ones((1, 1, 4, 4)), w.storage: np.ones((1, 1, 3, 3))}
    values[x.storage][0, 0, 0, 0] = np.nan
    exact, slack = truth_of(Graph([y]), y, values, 1.0).value(y.storage)
    assert np.isnan(exact).sum() == 1
    assert agree(np.full(exact.shape, np.nan), exact, slack.full(FEW))
    assert not agree(np.full(exact.shape, 9.0), exact, slack.full(FEW))


def test_a_shape_that_is_stale_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(1, RECTIFIED.items, (2, 3), frozenset({0}), axis=1)
    way = ways_of([Action("batch", (5,)), Action("data", (0, "float32"))])
    assert perform(Reference(program), way)[1] is None
    monkeypatch.setattr(nn.Variable, "shape", property(lambda v: (2, 3)))
    _, difference = perform(Reference(program), way)
    assert difference is not None and "before the pass" in difference.title


def test_a_hang_is_told_by_processor_time() -> None:
    with limit(0.2):
        time.sleep(0.3)
    with pytest.raises(Hang, match=r"longer than 0\.2 s"), limit(0.2):
        while True:
            pass


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
    from tools.lanes.fuzz import worker

    space = {"np": np}
    assert worker.verdict("1 / 0", space).__class__ is ZeroDivisionError
    assert worker.verdict("{}['x']", space).__class__ is KeyError
    assert worker.verdict("len(3)", space) is None


SPEC_OF = {spec.name: spec for spec in SPECS}


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_numbers_out_of_any_range_give_a_result_or_an_error_of_ours() -> None:
    texts = list(elements.check(SPEC_OF["RandomChoice"], "reference"))
    assert len(texts) > 20
    assert not any(texts)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_foreign_errors_and_crashes_by_one_number_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooling, "_MOST_SAMPLES", 1e40)
    found = list(filter(None, elements.check(SPEC_OF["RoiAlign"], "reference")))
    assert "RoiAlign on reference, plain: 1e+30 at -1 of input 1: ValueError: Maximum allowed size exceeded" in found
    monkeypatch.setattr(elements, "verdict", lambda *_: os._exit(7))
    (text,) = elements.check(SPEC_OF["RoiAlign"], "reference")
    assert text == "RoiAlign on reference, plain: nan at 0 of input 0: the process ended with 7"
