"""Specifications and rules by name."""

import pytest

from nn_core.engine.dispatch.registry import REGISTRY, Registry, gradient_of, shape_rule_of, spec_of, spec_of_api
from nn_core.errors import ArgumentError, PluginError
from nn_core.operators.rules.registry import GRADIENTS, SHAPE_RULES
from nn_core.operators.spec.builtin import BY_NAME
from nn_core.operators.spec.model import FunctionSpec, InputSpec, OutputSpec

TWICE = FunctionSpec("acme.Twice", "acme_twice", "arithmetic", "", (InputSpec("x", ""),), (OutputSpec("y", ""),))


def test_functions_of_the_core_are_known():
    assert spec_of("Affine") is spec_of_api("affine") is BY_NAME["Affine"]
    assert shape_rule_of("Affine") is SHAPE_RULES["Affine"]
    assert gradient_of("Tanh") is GRADIENTS["Tanh"]
    assert gradient_of("acme.Twice") is None


def test_functions_of_plugins_come_and_go():
    registry = Registry()
    registry.add("acme", [TWICE], {})
    assert registry.spec("acme.Twice") is registry.spec_of_api("acme_twice") is TWICE
    assert list(registry) == [("acme", TWICE, "acme_twice")]
    registry.remove("acme")
    assert registry.spec("acme.Twice") is registry.spec_of_api("acme_twice") is registry.added_api("acme_twice") is None
    assert list(registry) == []


def test_functions_of_plugins_serve_the_engine():
    REGISTRY.add("acme", [TWICE], {})
    try:
        assert spec_of("acme.Twice") is spec_of_api("acme_twice") is TWICE
    finally:
        REGISTRY.remove("acme")


@pytest.mark.parametrize(("function", "what"), [(spec_of, "function"), (spec_of_api, "F")])
def test_an_unknown_function_is_refused(function, what):
    message = f"{what}: a function must be specified by the core or a loaded plugin, got 'nothing'"
    with pytest.raises(ArgumentError, match=message):
        function("nothing")


def test_a_function_without_its_shape_rule_is_refused():
    with pytest.raises(PluginError, match=r"acme.Twice: a function with 'shape: rule' must have a @shape_rule, got none"):
        shape_rule_of("acme.Twice")
