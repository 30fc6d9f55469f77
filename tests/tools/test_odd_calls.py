"""The tool that calls functions with odd arguments: what it draws, and whom it finds wrong."""

import sys
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS / "nnabla"))
import odd_calls  # noqa: E402
from compare_nnabla import arrays_of  # noqa: E402
from run_nnabla_cases import SEVERAL, _backward_alone, run  # noqa: E402

import nn_core as nn  # noqa: E402
import nn_core.functions as F  # noqa: E402


def case_of(name, repetition=0, **changes):
    sample, case = odd_calls.odd(name, 0, repetition)
    return {**case, **changes}, arrays_of(sample)


@pytest.mark.parametrize("name", ["tanh", "affine", "sort", "average_pooling"])
def test_cases_are_odd_and_repeatable(name):
    cases = [case_of(name, n) for n in range(12)]
    assert all(case["odd"] for case, _ in cases)
    again, arrays = case_of(name, 3)
    assert again == cases[3][0]
    for key, values in cases[3][1].items():
        np.testing.assert_array_equal(arrays[key], values)


def test_usual_samples_run_in_every_way():
    ways = [case for _, case in odd_calls.in_every_way("tanh", 0, 0)]
    assert len({(case["held"], "second" in case, case.get("manner", "")) for case in ways}) == len(ways) == 20
    assert {case.get("manner", "") for case in ways} == {"", *odd_calls.MANNERS}
    arrays = arrays_of(next(sample for sample, _ in odd_calls.in_every_way("tanh", 0, 0)))
    once, _ = run("nn_core", ways[0], arrays)
    for case in ways[1:]:
        found, errors = run("nn_core", case, arrays)
        assert not errors
        if "second" not in case:
            held = case["held"] if case.get("manner") != "write" else 0
            np.testing.assert_allclose(found["grad_x0"], once["grad_x0"] + held, atol=1e-6)


def test_verdicts():
    case, arrays = case_of("tanh", held=0)
    right, _ = run("nn_core", case, arrays)
    wrong = {key: values + 1 for key, values in right.items()}
    assert set(odd_calls.judge(case, arrays, right, {}).values()) == {"equal"}
    assert set(odd_calls.judge(case, arrays, wrong, {}).values()) == {"NNabla is wrong"}
    assert odd_calls.judge(case, arrays, right, {"forward": "refused"}) == {}


def test_nobody_is_wrong_about_what_float32_does_not_hold():
    case, _ = case_of("exp", held=0)
    case = {**case, "odd": []}
    case.pop("second", None)
    arrays = {"x0": np.array([200.0, 1.0], np.float32)}
    right, _ = run("nn_core", case, arrays)
    wrong = {key: np.where(np.isinf(values), np.nan, values) for key, values in right.items()}
    assert set(odd_calls.judge(case, arrays, wrong, {}).values()) == {"outside the domain", "equal"}


def test_it_tells_when_nn_core_is_wrong(monkeypatch):
    case, arrays = case_of("tanh", held=0)
    right, _ = run("nn_core", case, arrays)
    monkeypatch.setattr(odd_calls, "run", _off_by_one)
    verdicts = odd_calls.judge(case, arrays, right, {})
    assert verdicts["grad_x0"] == "nn_core is wrong"


def _off_by_one(package, case, arrays):
    """Return results of which the gradients are wrong; the loss, of which differences are taken, is right."""
    results, errors = run(package, case, arrays)
    return {key: values + 1 if key.startswith("grad_") else values for key, values in results.items()}, errors


@pytest.mark.parametrize("second", [False, True])
def test_slopes_decide_about_gradients(second):
    case, arrays = case_of("tanh", held=1)
    case.pop("second", None)
    case = {**case, "wrt": ["x0"], **({"second": ["x0"]} if second else {})}
    arrays = {"x0": np.array([0.3, -0.5], np.float32)}
    results, errors = run("nn_core", case, arrays)
    assert not errors
    assert odd_calls._is_slope(case, arrays, "x0", results["grad_x0"])
    assert not odd_calls._is_slope(case, arrays, "x0", results["grad_x0"] + 0.1)


def test_closeness():
    nan = np.array([np.nan, np.inf, 1.0])
    assert odd_calls.close(nan, nan, 1e-4)
    assert not odd_calls.close(nan, np.array([0.0, np.inf, 1.0]), 1e-4)
    assert not odd_calls.close(np.ones(2), np.ones((2, 1)), 1e-4)
    assert not odd_calls.close(np.ones(2), None, 1e-4)


def test_the_report_counts_functions_in_which_nn_core_is_wrong(capsys):
    found = {("nn_core is wrong", "tanh", "out0"): ["case 1", "case 2"], ("equal", "tanh", "grad_x0"): ["case 1"]}
    assert odd_calls.report(found, 2) == 1
    assert "nn_core is wrong: tanh out0 (2)\n    case 1" in capsys.readouterr().out


def test_nobody_is_wrong_at_a_kink():
    case, _ = case_of("abs", held=0)
    case = {**case, "wrt": ["x0"]}
    case.pop("second", None)
    arrays = {"x0": np.zeros(2, np.float32)}
    assert odd_calls._is_slope(case, arrays, "x0", np.ones(2)) is None
    assert odd_calls._verdict(None, None) == "no slope"
    assert odd_calls._verdict(False, False) == "both are wrong"


def test_infinite_values_have_no_slope():
    case, _ = case_of("log", held=0)
    case = {**case, "wrt": ["x0"]}
    case.pop("second", None)
    arrays = {"x0": np.array([0.0, 1.0], np.float32)}
    assert odd_calls._is_slope(case, arrays, "x0", np.array([np.inf, 1.0])) is None


def test_jumps_have_no_slope():
    """The gradient of a norm jumps at 0, by as much before as after."""
    case, _ = case_of("norm", held=0)
    case = {**case, "wrt": ["x0"], "second": ["x0"], "settings": {"p": 2.0}, "manner": ""}
    arrays = {"x0": np.zeros(2, np.float32)}
    assert odd_calls._is_slope(case, arrays, "x0", np.zeros(2)) is None


def test_steep_slopes_are_found_with_short_steps():
    case, _ = case_of("norm_normalization", held=0)
    case = {**case, "wrt": ["x0"], "settings": {"p": 2.0, "axes": [0]}, "manner": ""}
    case.pop("second", None)
    arrays = {"x0": np.zeros(2, np.float32)}
    right, _ = run("nn_core", case, arrays)
    assert np.abs(right["grad_x0"]).max() > 1e5
    assert odd_calls._is_slope(case, arrays, "x0", right["grad_x0"])


def test_arguments_outside_of_the_domain_are_not_judged():
    case, arrays = case_of("binary_cross_entropy", held=0)
    arrays["x0"] = arrays["x0"] * 0 + 2
    right, _ = run("nn_core", case, arrays)
    assert odd_calls.judge(case, arrays, right, {}) == {"arguments": "outside the domain"}
    arrays["x0"] = np.ones_like(arrays["x0"], np.float16)  # in which the limit just below 1 is 1
    assert odd_calls.judge(case, arrays, right, {}) == {"arguments": "outside the domain"}


def test_gradients_that_are_no_slopes_are_those_of_the_rule():
    case, arrays = case_of("clip_grad_by_value", held=0)
    case = {**case, "manner": ""}
    case.pop("second", None)
    right, _ = run("nn_core", case, arrays)
    wrong = {**right, "grad_x0": right["grad_x0"] + 1}
    assert odd_calls.judge(case, arrays, wrong, {})["grad_x0"] == "NNabla is wrong"


@pytest.mark.parametrize(("manner", "expected"), [("reset", 8), ("add", 8), ("write", 3)])
def test_manners(manner, expected):
    """The gradient of 3 x where it holds 5: of new shapes, added by the function alone, and written by it."""
    case, _ = case_of("mul_scalar", held=5)
    case = {**case, "settings": {"val": 3.0}, "wrt": ["x0"], "manner": manner, "named": {}, "inputs": ["x0"]}
    case.pop("second", None)
    arrays = {"x0": np.ones((2, 2), np.float32)}
    factors = np.cos(1.0 + np.arange(4)).reshape(2, 2)
    results, errors = run("nn_core", case, arrays)
    assert not errors
    np.testing.assert_array_equal(results["out0"], 3)
    held = 5 if expected == 8 else 0
    np.testing.assert_allclose(results["grad_x0"], held + 3 * factors, rtol=1e-5)


def test_functions_of_functions_have_no_gradient_that_runs_alone():
    y = F.relu(F.tanh(nn.Variable((2,), need_grad=True)))
    with pytest.raises(ValueError, match=SEVERAL):
        _backward_alone([y], [y], accumulate=True)


@pytest.mark.parametrize("manner", odd_calls.DETOURS)
def test_gradients_of_gradients_go_with_other_shapes_and_recomputation(manner):
    case, _ = case_of("tanh", held=5)
    case = {**case, "wrt": ["x0"], "second": ["x0"], "manner": manner}
    arrays = {"x0": np.array([[0.3, -0.5], [1.0, 2.0]], np.float32)}
    found, errors = run("nn_core", case, arrays)
    plain, _ = run("nn_core", {**case, "manner": ""}, arrays)
    assert not errors and ("out0" in found) == (manner == "reset")
    np.testing.assert_array_equal(found["grad_x0"], plain["grad_x0"])


def test_a_detour_that_changes_something_is_told_where_nnabla_refuses(monkeypatch):
    case, _ = case_of("tanh", held=0)
    case, arrays = {**case, "wrt": ["x0"], "manner": "reset"}, {"x0": np.array([0.3, -0.5], np.float32)}
    assert odd_calls.judge(case, arrays, {}, {"forward": "refused"}) == {}

    def changed(package, case, arrays):
        results, errors = run(package, case, arrays)
        return ({**results, "out0": results["out0"] + 1} if case["manner"] else results), errors

    monkeypatch.setattr(odd_calls, "run", changed)
    assert odd_calls.judge(case, arrays, {}, {"forward": "refused"}) == {"out0": "nn_core differs from one pass"}
