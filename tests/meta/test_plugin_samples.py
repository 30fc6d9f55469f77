"""Samples and conventions of a plugin: the kit finds them in its package, and checks what no convention excepts."""

import sys
from types import ModuleType

import pytest

from nn_core.engine.dispatch.registry import spec_of
from nn_core.ext import FunctionPackage, gradient, hookimpl, kernel, register, unregister
from nn_core.testing import cases, convention, error, sample
from nn_core.testing.cases import RuleCase
from nn_core.testing.checks.rules import check_gradient_rule, check_sample_names, check_second_derivative
from nn_core.testing.drawing import normal
from nn_core.testing.samples import registry

SPEC = """
- name: sampled.Cube
  api: sampled_cube
  topic: arithmetic
  doc: Take the third power.
  inputs:
    x: {shape: any, doc: Input.}
  outputs:
    y: {shape: "of x", doc: Powers.}
  shape: same_as x
  backward: {needs: [x]}
"""
MODULE = "samples_of_sampled"


def plugin_with(rule):
    """A plugin whose gradient rule is `rule` and whose samples are in a module of their own."""
    plugin = ModuleType("nn_ext_sampled")
    plugin.PLUGIN_API, plugin.REQUIRES_CORE = 1, ">=0.1"
    plugin.cube = kernel("sampled.Cube")(lambda xp, x: x * x * x)
    plugin.cube_gradient = gradient("sampled.Cube")(rule)
    package = FunctionPackage(spec=SPEC, samples=MODULE)
    plugin.nn_core_functions = hookimpl(lambda: [package], specname="nn_core_functions")
    return plugin


@pytest.fixture
def sampled(tmp_path, monkeypatch):
    """Register a plugin with the given gradient rule and samples, and forget both after the test."""
    for table in ("_SAMPLES", "_ERRORS", "CONVENTIONS"):
        monkeypatch.setattr(registry, table, dict(getattr(registry, table)))
    monkeypatch.setattr(registry, "SECOND_CONVENTIONS", set(registry.SECOND_CONVENTIONS))
    names = ("CONVENTIONS", "SECOND_CONVENTIONS")
    for name in names:
        monkeypatch.setattr(f"nn_core.testing.checks.rules.{name}", getattr(registry, name))
    monkeypatch.syspath_prepend(tmp_path)

    def put(rule, samples):
        (tmp_path / f"{MODULE}.py").write_text(samples)
        register(plugin_with(rule), "sampled")

    yield put
    unregister("sampled")
    sys.modules.pop(MODULE, None)


SAMPLES = """
from nn_core.testing import convention, error, sample
from nn_core.testing.drawing import normal
sample("sampled.Cube", "row", normal(4))
sample("sampled.Cube", "matrix", normal(2, 3))
"""


def right(F, g):
    return g.grad * 3 * g.x * g.x


def wrong(F, g):
    return g.grad * 2 * g.x * g.x


def cut(F, g):
    """Right itself, and a constant for second derivatives."""
    return F.unlink(g.grad * 3 * g.x * g.x)


def rule_case():
    return RuleCase(spec_of("sampled.Cube"), registry.samples_of(spec_of("sampled.Cube"))[0])


def test_samples_in_the_package_are_found_when_the_kit_asks_and_not_before(sampled):
    sampled(right, SAMPLES)
    assert MODULE not in sys.modules and "sampled.Cube" not in registry._SAMPLES
    assert "sampled.Cube" in [spec.name for spec in cases.functions_of(["reference"])]
    assert MODULE in sys.modules
    assert [entry.name for entry in registry._SAMPLES["sampled.Cube"]] == ["row", "matrix"]
    found = [str(case) for case in cases.rule_cases(["reference"], fast=False) if case.spec.name == "sampled.Cube"]
    assert found == ["sampled.Cube-row", "sampled.Cube-matrix"]
    check_gradient_rule(rule_case())
    check_second_derivative(rule_case())
    check_sample_names()


def test_the_kit_checks_a_rule_on_the_samples_of_the_package(sampled):
    sampled(wrong, SAMPLES)
    cases.functions_of(["reference"])
    with pytest.raises(AssertionError, match=r"sampled\.Cube-row.*the derivative by input 0"):
        check_gradient_rule(rule_case())


def test_samples_of_a_function_that_nobody_has_are_found(sampled):
    sampled(right, SAMPLES + 'sample("sampled.Cub", "row", normal(4))\n')
    cases.functions_of(["reference"])
    with pytest.raises(AssertionError, match=r"samples must be of functions, got sampled\.Cub"):
        check_sample_names()


def test_a_convention_of_second_derivatives_excepts_these_alone(sampled):
    sampled(cut, SAMPLES)
    cases.functions_of(["reference"])
    check_gradient_rule(rule_case())
    with pytest.raises(AssertionError, match="the derivative by input 0"):
        check_second_derivative(rule_case())
    convention("the first derivative counts as constant", "sampled.Cube", first=False, second=True)
    check_second_derivative(rule_case())
    assert "sampled.Cube" not in registry.CONVENTIONS


def test_such_a_convention_leaves_the_first_derivative_under_test(sampled):
    sampled(wrong, SAMPLES)
    cases.functions_of(["reference"])
    convention("the first derivative counts as constant", "sampled.Cube", first=False, second=True)
    with pytest.raises(AssertionError, match="the derivative by input 0"):
        check_gradient_rule(rule_case())
    convention("the rule is a convention", "sampled.Cube")
    check_gradient_rule(rule_case())


def test_samples_may_be_added_by_the_decorated_module_itself(sampled):
    sampled(right, "")
    sample("sampled.Cube", "own", normal(2))
    error("sampled.Cube", "bad", ValueError, "x must", normal(2))
    spec = spec_of("sampled.Cube")
    assert [entry.name for entry in registry.samples_of(spec)] == ["own"]
    assert [entry.name for entry in registry.errors_of(spec)] == ["bad"]
