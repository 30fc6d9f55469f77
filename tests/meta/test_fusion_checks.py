"""The kit compares fusions with their chains: right ones pass, each kind of wrong one fails."""

import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import ext
from nn_core.errors import ArgumentError
from nn_core.testing import chain_sample, fusions
from nn_core.testing.checks.fusions import check_fusion
from nn_core.testing.conformance import test_forward as forward_test
from nn_core.testing.conformance import test_fusion as fusion_test
from nn_core.testing.fusions import FusionCase, fusion_cases
from nn_core.testing.xfails import chosen_cases


class Fusion:
    def __init__(self, chain: Any, function: str, settings: Any = lambda *args: {}) -> None:
        self.chain, self.function, self.settings = chain, function, settings


@pytest.fixture
def fusing() -> Iterator[Any]:
    """Register a plugin with a fusion."""

    def register(chain: Any, function: str, **settings: Any) -> None:
        made = types.ModuleType("nn_ext_fusing")
        vars(made).update(PLUGIN_API=2, REQUIRES_CORE=">=0.1,<1")
        offer = ext.PassInfo(name="one", role="fusion", target=lambda: Fusion(chain, function, **settings))
        made.nn_core_passes = ext.hookimpl(lambda: [offer], specname="nn_core_passes")  # type: ignore[attr-defined]
        ext.register(made)

    yield register
    ext.unregister("fusing")
    fusions._WRITTEN.clear()


def case(dtype: str = "float32") -> FusionCase:
    return FusionCase("reference", "fusing", "fusing.one", dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_a_fusion_that_is_its_chain_passes(fusing: Any, dtype: str) -> None:
    fusing(("ReLU", "Abs"), "ReLU", settings=lambda relu, absolute: {"inplace": False})
    check_fusion(case(dtype))


def test_another_function_fails(fusing: Any) -> None:
    fusing(("ReLU", "Abs"), "Sin")
    with pytest.raises(AssertionError, match=r"fusing\.one-float32, samples inplace, kink: .* Sin must give what its chain"):
        check_fusion(case())


def test_settings_that_are_dropped_fail(fusing: Any) -> None:
    fusing(("MulScalar", "AddScalar"), "MulScalar", settings=lambda product, total: {"val": product["val"]})
    with pytest.raises(AssertionError, match="MulScalar must give what its chain gives"):
        check_fusion(case())


def test_what_differs_for_special_numbers_alone_fails(fusing: Any) -> None:
    """0 * x is 0, but for NaN and infinities; what compares the first pass sees no such numbers."""
    fusing(("Abs", "MinimumScalar"), "Abs", settings=lambda absolute, smaller: {} if smaller["val"] == 1e30 else None)

    def build() -> nn.Variable:
        return F.minimum_scalar(F.abs(nn.Variable.from_numpy_array(np.ones((2, 3)))), 1e30)

    chain_sample("fusing.one", "far", build)
    with pytest.raises(AssertionError, match="samples far"):
        check_fusion(case())


def test_a_chain_that_no_sample_makes_is_told_and_can_be_written(fusing: Any) -> None:
    fusing(("AddScalar", "Sigmoid"), "Sigmoid", settings=lambda total, sigmoid: {} if total["val"] == 1e-30 else None)
    with pytest.raises(AssertionError, match=r"some graph of AddScalar, Sigmoid must be run as Sigmoid.*chain_sample"):
        check_fusion(case())
    chain_sample("fusing.one", "next to", lambda: F.sigmoid(nn.Variable.from_numpy_array(np.ones(3)) + 1e-30))
    check_fusion(case())
    with pytest.raises(ArgumentError, match="samples must have different names, got 'next to' twice"):
        chain_sample("fusing.one", "next to", lambda: nn.Variable(()))


@pytest.mark.parametrize(
    ("chain", "error", "text"),
    [
        (("ReLU",), AssertionError, "chain must have two functions or more, got 1"),
        (("ReLU", "Abss"), ArgumentError, r"fusion fusing\.one: chain must have names of functions, got 'Abss'"),
    ],
)
def test_what_is_no_chain_fails(fusing: Any, chain: Any, error: type[Exception], text: str) -> None:
    fusing(chain, "Sin")
    with pytest.raises(error, match=text):
        check_fusion(case())


def test_inputs_of_later_functions_are_as_large_as_the_results_before(fusing: Any) -> None:
    fusing(("Exp", "Mul2"), "Mul2", settings=lambda exp, mul: {"inplace": False})
    with pytest.raises(AssertionError, match="Mul2 must give what its chain gives, Exp, Mul2"):
        check_fusion(case())


@pytest.mark.parametrize(
    ("names", "n_chosen"),
    [
        ({"FUSIONS": ("fusing.one",)}, 1),
        ({"FUNCTIONS": ("ReLU",)}, 0),
        ({"BACKENDS": ("reference",)}, 0),
        ({"FUSIONS": ("fusing.one",), "FUNCTIONS": ("ReLU",)}, 1),
    ],
)
def test_a_file_names_its_fusions(fusing: Any, names: dict[str, Any], n_chosen: int) -> None:
    fusing(("ReLU", "Abs"), "Sin")
    module = types.ModuleType("test_acme")
    vars(module).update(names)
    assert len(chosen_cases(fusion_test, module, ["reference"], fast=True)) == n_chosen
    chosen = chosen_cases(forward_test, module, ["reference"], fast=True)
    assert {found.spec.name for found in chosen} >= set(names.get("FUNCTIONS", ()))
    assert not chosen if set(names) == {"FUSIONS"} else chosen


def test_the_fusions_of_a_backends_plugin_are_chosen(fusing: Any) -> None:
    fusing(("ReLU", "Abs"), "Sin")
    (found,) = [found for found in fusion_cases(["fusing.device"], True) if found.plugin == "fusing"]
    assert str(found) == "fusing.device-fusing.one-float32"
    assert fusions.is_chosen(found, (), (), ["fusing.device"]) and fusions.is_chosen(found, (), ("fusing.Cube",), ())
    module = types.ModuleType("test_acme")
    vars(module).update(FUSIONS=("fusing.two",))
    with pytest.raises(ArgumentError, match=r"FUSIONS: names must be of fusions of installed packages, got 'fusing\.two'"):
        chosen_cases(fusion_test, module, ["reference"])
