"""Each fault that a rule, a reference kernel or a description can have is found."""

from dataclasses import replace

import numpy as np
import pytest

from nn_core.engine.dispatch.registry import spec_of
from nn_core.operators.reference.registry import KERNELS
from nn_core.operators.rules.registry import GRADIENTS
from nn_core.operators.spec.model import ArgSpec, BackwardSpec, InputSpec
from nn_core.testing.cases import RuleCase
from nn_core.testing.checks.rules import (
    check_description,
    check_gradient_rule,
    check_sample_names,
    check_second_derivative,
)
from nn_core.testing.drawing import values
from nn_core.testing.operators import run
from nn_core.testing.samples import registry
from nn_core.testing.samples.registry import Sample
from tests.meta.conftest import forget


@pytest.fixture
def rules(monkeypatch):
    """Replace rules and kernels for one test."""

    def put(table, name, entry):
        monkeypatch.setitem(table, name, entry)
        forget()

    yield put
    monkeypatch.undo()
    forget()


def case(function, sample="matrix"):
    spec = spec_of(function)
    return RuleCase(spec, next(s for s in registry.samples_of(spec) if s.name == sample))


def test_a_rule_without_fault_passes():
    check_description(spec_of("Tanh"))
    check_gradient_rule(case("Tanh"))
    check_second_derivative(case("Tanh"))


def test_a_wrong_rule_is_found(rules):
    rules(GRADIENTS, "Tanh", lambda F, g: g.grad * (1 - g.y))
    with pytest.raises(AssertionError, match="the derivative by input 0"):
        check_gradient_rule(case("Tanh"))


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("fault", [lambda F, g: F.mul_scalar(g, 1.001), lambda F, g: F.identity(0 * g), lambda F, g: None])
def test_a_wrong_gradient_of_any_input_is_found(rules, position, fault):
    sound = GRADIENTS["Affine"]

    def rule(F, g):
        gradients = list(sound(F, g))
        gradients[position] = fault(F, gradients[position])
        return tuple(gradients)

    sample = next(s for s in registry.samples_of(spec_of("Affine")) if len(s.inputs) == 3 and s.inputs[2] is not None)
    check_gradient_rule(case("Affine", sample.name))
    rules(GRADIENTS, "Affine", rule)
    with pytest.raises(AssertionError, match=f"the derivative by input {position}"):
        check_gradient_rule(case("Affine", sample.name))


def test_a_rule_that_reads_more_than_declared_is_found(rules):
    rules(GRADIENTS, "Tanh", lambda F, g: g.grad * (1 - F.tanh(g.x) * F.tanh(g.x)))
    with pytest.raises(AssertionError, match=r"got np.float64\(nan\)"):
        check_gradient_rule(case("Tanh"))


def test_a_rule_that_forgets_an_input_is_found(rules):
    rules(GRADIENTS, "Mul2", lambda F, g: (g.grad * g.x1,))
    with pytest.raises(AssertionError, match="1 gradients of 2 inputs"):
        check_gradient_rule(case("Mul2"))


def test_a_rule_that_cuts_the_graph_is_found(rules):
    rules(GRADIENTS, "Tanh", lambda F, g: g.grad * F.unlink(1 - g.y * g.y))
    check_gradient_rule(case("Tanh"))
    with pytest.raises(AssertionError, match="the derivative by input 0"):
        check_second_derivative(case("Tanh"))


def test_a_sample_on_a_kink_is_found():
    spec = spec_of("Abs")
    with pytest.raises(AssertionError, match="numbers must be away from kinks, got 5 draws near one"):
        check_gradient_rule(RuleCase(spec, Sample("kink", (values([0.0]),))))


def test_a_reference_kernel_that_writes_its_input_is_found(rules):
    def tanh(xp, x):
        x[...] = xp.tanh(x)
        return x

    rules(KERNELS, "Tanh", tanh)
    with pytest.raises(AssertionError, match="Tanh: the reference kernel wrote to an input"):
        run("Tanh", np.ones(3))


def test_a_reference_kernel_that_breaks_the_shape_rule_is_found(rules):
    rules(KERNELS, "Tanh", lambda xp, x: xp.tanh(x)[..., None])
    with pytest.raises(AssertionError, match=r"the shape rule says .* the reference kernel gives"):
        run("Tanh", np.ones(3))


def test_a_function_without_samples_is_found(monkeypatch):
    spec = spec_of("Affine")
    monkeypatch.setitem(registry._SAMPLES, "Affine", [])
    with pytest.raises(AssertionError, match="Affine: a function must have samples, got none"):
        check_description(spec)


def test_an_argument_that_no_sample_sets_is_found():
    spec = replace(spec_of("Tanh"), args=(ArgSpec("slope", "float", "Slope.", default=1.0),))
    with pytest.raises(AssertionError, match="samples must set every argument, got none that set slope"):
        check_description(spec)


def test_an_optional_input_that_no_sample_gives_is_found():
    spec = spec_of("Sum")
    spec = replace(spec, inputs=(*spec.inputs, InputSpec("bias", "Bias.", optional=True)))
    with pytest.raises(AssertionError, match="samples must be with and without bias"):
        check_description(spec)


def test_a_missing_rule_is_found(rules, monkeypatch):
    monkeypatch.delitem(GRADIENTS, "Tanh")
    with pytest.raises(AssertionError, match="gradient rule and backward entry differ"):
        check_description(spec_of("Tanh"))


def test_needs_of_something_else_are_found():
    spec = replace(spec_of("Tanh"), backward=BackwardSpec(needs=("z",)))
    with pytest.raises(AssertionError, match=r"backward.needs names inputs and outputs"):
        check_description(spec)


def test_a_reference_kernel_with_other_arguments_is_found(rules):
    rules(KERNELS, "LeakyReLU", lambda xp, x, slope: x)
    with pytest.raises(AssertionError, match="LeakyReLU: the reference kernel must take its description"):
        check_description(spec_of("LeakyReLU"))


def test_samples_of_nothing_are_found(monkeypatch):
    monkeypatch.setitem(registry._SAMPLES, "Tahn", [Sample("plain")])
    with pytest.raises(AssertionError, match="samples must be of functions, got Tahn"):
        check_sample_names()
