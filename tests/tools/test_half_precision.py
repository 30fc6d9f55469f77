"""Half precision: every function is within the bounds of the page, and what rounds too often is found."""

import numpy as np
import pytest

from nn_core.engine.graph import call, gradient_rule
from tools.lanes import half_precision
from tools.lanes.half_precision import COMPOSITES, FORMATS, Outcome, chosen, of_composite, of_sample, units

BACKENDS = ("cpu", "reference")


def test_the_page_has_the_bounds() -> None:
    text = half_precision.PAGE.read_text()
    assert half_precision.page(text) == text


def test_units_are_distances_of_neighbours() -> None:
    assert units([1.0 + 2**-10], [1.0], "float16") == 1.0
    assert units([1.0 + 2**-10], [1.0], "bfloat16") == 2**-3
    assert units([2.0 - 2**-10], [2.0], "float16") == 0.5
    assert units([0.0, 16.0], [2**-10, 16.0], "float16") == 1.0, "small numbers beside large ones"
    assert units([np.nan], [1.0], "float16") == np.inf
    assert units([np.inf, 70_000.0], [70_000.0, 70_000.0], "float16") == 0.0


@pytest.mark.parametrize("name", COMPOSITES)
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_functions_of_others(backend: str, dtype: str, name: str) -> None:
    outcome = of_composite(name, backend, dtype)
    assert not outcome.is_finding, outcome


@pytest.mark.parametrize("case", chosen(60, 5, BACKENDS), ids=str)
def test_samples(case: half_precision.Case) -> None:
    outcome = of_sample(case)
    assert not outcome.is_finding, outcome


def outcomes_of(function: str) -> list[Outcome]:
    return [of_sample(case) for case in chosen(0, 0, ["reference"]) if case.spec.name == function]


@pytest.mark.parametrize("function", ["GELU", "Swish", "NormNormalization", "CumProd"])
def test_a_rule_that_rounds_each_step_is_found(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(outcome.is_finding for outcome in outcomes_of(function))
    monkeypatch.setattr(gradient_rule, "widens", lambda spec, context: False)
    call.forget()
    try:
        assert any(outcome.is_finding for outcome in outcomes_of(function))
    finally:
        call.forget()


def test_a_function_of_others_that_rounds_each_step_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nn_core.engine.graph.precision.NARROW", ())
    assert of_composite("std of two", "reference", "float16").is_finding
