"""The conformance tests; a package imports them all into its test file. See ``nn_core.testing``."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pytest

from nn_core.testing.cases import (
    DTYPES,
    Case,
    ErrorCase,
    FunctionCase,
    RuleCase,
    SolverCase,
    SpecCase,
    cases,
    contract_cases,
    description_cases,
    error_cases,
    function_cases,
    has_kernel,
    rule_cases,
    solver_cases,
)
from nn_core.testing.checks.arrays import check_arrays
from nn_core.testing.checks.backward import check_backward, check_replaced_inputs
from nn_core.testing.checks.empty import check_empty_axes
from nn_core.testing.checks.forward import check_determinism, check_forward
from nn_core.testing.checks.fusions import check_fusion
from nn_core.testing.checks.graph import check_graph
from nn_core.testing.checks.growth import check_growth
from nn_core.testing.checks.layouts import check_layouts
from nn_core.testing.checks.refusal import check_error, check_refusal
from nn_core.testing.checks.reuse import check_reuse, check_threads
from nn_core.testing.checks.rules import (
    check_array_contract,
    check_description,
    check_gradient_rule,
    check_sample_names,
    check_second_derivative,
)
from nn_core.testing.checks.solvers import check_solver
from nn_core.testing.fusions import FusionCase, fusion_cases
from nn_core.testing.pytest_plugin import backends_of, missing_backends
from nn_core.testing.xfails import check_xfails

__all__ = [
    "test_array_contract",
    "test_arrays",
    "test_backward",
    "test_description",
    "test_determinism",
    "test_empty_axes",
    "test_error",
    "test_forward",
    "test_fusion",
    "test_gradient_rule",
    "test_graph",
    "test_growth",
    "test_layouts",
    "test_refusal",
    "test_replaced_inputs",
    "test_reuse",
    "test_sample_names",
    "test_second_derivative",
    "test_solver",
    "test_threads",
    "test_xfails",
]

Test = TypeVar("Test", bound=Callable[..., None])


def over(maker: Callable[[Sequence[str], bool], Iterator[Any]]) -> Callable[[Test], Test]:
    """Run the decorated test for each case that ``maker(backends, fast)`` gives."""

    def decorate(test: Test) -> Test:
        test.conformance_cases = maker  # type: ignore[attr-defined]  # read by the pytest plugin
        marked: Test = pytest.mark.conformance(test)
        return marked

    return decorate


def kernel_cases(backends: Sequence[str], fast: bool) -> Iterator[Case]:
    """Cases that a kernel runs."""
    return (case for case in cases(backends, fast) if has_kernel(case.spec))


def gradient_cases(backends: Sequence[str], fast: bool) -> Iterator[Case]:
    """Cases that a kernel runs and whose gradient is compared."""
    return (case for case in kernel_cases(backends, fast) if case.spec.differentiable and case.sample.gradient)


def reuse_cases(backends: Sequence[str], fast: bool) -> Iterator[Case]:
    """Cases that a kernel runs, in one dtype: what a runner keeps does not depend on it."""
    return (case for case in kernel_cases(backends, fast) if case.dtype == DTYPES[0])


def replaced_cases(backends: Sequence[str], fast: bool) -> Iterator[Case]:
    """Of these the ones with gradients; what private outputs hold is up to the kernel, and no rule can say what follows."""
    gradients = (case for case in reuse_cases(backends, fast) if case.spec.differentiable and case.sample.gradient)
    return (case for case in gradients if not any(entry.private for entry in case.spec.outputs))


@over(description_cases)
def test_description(case: SpecCase) -> None:
    """A function is complete: rules, reference kernel, samples."""
    check_description(case.spec)


@over(contract_cases)
def test_array_contract(case: SpecCase) -> None:
    """The reference kernel runs over any array library."""
    check_array_contract(case.spec)


@over(rule_cases)
def test_gradient_rule(case: RuleCase) -> None:
    """The gradient rule agrees with central differences."""
    check_gradient_rule(case)


@over(rule_cases)
def test_second_derivative(case: RuleCase) -> None:
    """nn.grad of nn.grad agrees with central differences."""
    check_second_derivative(case)


@over(kernel_cases)
def test_forward(case: Case) -> None:
    """A kernel gives the true results and touches nothing else."""
    check_forward(case)


@over(gradient_cases)
def test_backward(case: Case) -> None:
    """The gradients are those of the rule in float64."""
    check_backward(case)


@over(replaced_cases)
def test_replaced_inputs(case: Case) -> None:
    """The gradients are those of the rule, too, where inputs were replaced since the forward pass."""
    check_replaced_inputs(case)


@over(kernel_cases)
def test_determinism(case: Case) -> None:
    """A second run gives the same bits."""
    check_determinism(case)


@over(reuse_cases)
def test_reuse(case: Case) -> None:
    """A runner keeps no array of an earlier call."""
    check_reuse(case)


@over(reuse_cases)
def test_threads(case: Case) -> None:
    """A runner gives the same when several threads call it at once."""
    check_threads(case)


@over(cases)
def test_layouts(case: Case) -> None:
    """Results do not depend on the alignment and the memory layout of arrays."""
    check_layouts(case)


@over(cases)
def test_graph(case: Case) -> None:
    """The function gives the same in a graph, and its gradient reads no more than it declares."""
    check_graph(case)


@over(error_cases)
def test_error(case: ErrorCase) -> None:
    """A wrong call raises the same exception on every backend."""
    check_error(case)


@over(function_cases)
def test_refusal(case: FunctionCase) -> None:
    """A kernel says before any work whether it takes a call."""
    check_refusal(case)


@over(function_cases)
def test_growth(case: FunctionCase) -> None:
    """A kernel refuses an argument and an input that its table does not know, and runs without them as before."""
    check_growth(case)


@over(function_cases)
def test_empty_axes(case: FunctionCase) -> None:
    """Axes of length 0 give what they give on the reference."""
    check_empty_axes(case)


@over(fusion_cases)
def test_fusion(case: FusionCase) -> None:
    """A fusion gives what its chain gives."""
    check_fusion(case)


@over(solver_cases)
def test_solver(case: SolverCase) -> None:
    """A backend's kernel for the update of all parameters does what the solver says."""
    check_solver(case)


@pytest.mark.conformance
def test_arrays(request: pytest.FixtureRequest) -> None:
    """Plans can cut arrays out of the memory of each backend."""
    for name in backends_of(request.config, request.module):
        check_arrays(name)


@pytest.mark.conformance
def test_sample_names() -> None:
    """Every sample belongs to a function."""
    check_sample_names()


@pytest.mark.conformance
def test_xfails(request: pytest.FixtureRequest) -> None:
    """Every line of xfails.txt names a test that exists."""
    missing = missing_backends(request.config, request.module)
    if missing:
        pytest.skip(f"{', '.join(missing)} cannot run here, and may be named in xfails.txt")
    check_xfails(request.module, backends_of(request.config, request.module))
