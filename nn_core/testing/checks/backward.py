"""Gradients: the backend's own kernels and the gradient rule over its arrays, against the rule in float64."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from nn_core.testing.assertions import assert_identical, require
from nn_core.testing.cases import Case
from nn_core.testing.checks.forward import compare
from nn_core.testing.expected import Numbers, floating
from nn_core.testing.kernels import KernelRun
from nn_core.testing.operators import gradients_at
from nn_core.testing.perturbed_inputs import other_numbers
from nn_core.testing.tolerance import CHAIN


def check_backward(case: Case) -> None:
    """For all inputs together and for each alone, the gradients are those of the rule in float64.

    A kernel of the backend gets None for what `backward.needs` does not declare, the rule reads NaN there.
    """
    run = KernelRun(case)
    outputs, _ = run.forward()
    for wanted in _selections(floating(case.spec, run.truth)):
        runner = run.fused(wanted)
        by_rule = run.rule_backward(outputs, wanted)
        compare_gradients(run, by_rule, wanted, "by the rule")
        if runner is not None:
            gradients = run.fused_backward(runner, outputs, wanted)
            compare_gradients(run, gradients, wanted, "by the kernel")
            bound = run.fused_backward(runner, outputs, wanted, bound=True)
            for n, (first, second) in enumerate(zip(gradients, bound, strict=True)):
                if first is not None and second is not None:
                    assert_identical(second, first, f"{case}: gradient {n} of the bound kernel")


def check_replaced_inputs(case: Case) -> None:
    """Kernel and rule agree with the rule in float64 even if inputs were replaced since the forward pass.

    They read the inputs as they are now, and all that the forward pass has kept as it was then.
    """
    run = KernelRun(case)
    outputs, _ = run.forward()
    truth = run.truth
    inputs, _ = other_numbers(case.spec, case.sample, case.dtype)
    gradients = gradients_at(case.spec, inputs, truth.outputs, truth.grads, case.sample.args)
    run.truth = replace(truth, after=inputs, gradients=gradients)
    for wanted in _selections(floating(case.spec, truth)):
        by_rule = run.rule_backward(outputs, wanted)
        compare_gradients(run, by_rule, wanted, "by the rule after its inputs were replaced")
        runner = run.fused(wanted)
        if runner is not None:
            by_kernel = run.fused_backward(runner, outputs, wanted)
            compare_gradients(run, by_kernel, wanted, "by the kernel after its inputs were replaced")


def _selections(floats: tuple[bool, ...]) -> Iterator[tuple[bool, ...]]:
    """All inputs, then each alone."""
    if any(floats):
        yield floats
    if sum(floats) > 1:
        for n, is_float in enumerate(floats):
            if is_float:
                yield tuple(n == other for other in range(len(floats)))


def compare_gradients(run: KernelRun, gradients: Sequence[Numbers | None], wanted: Sequence[bool], how: str) -> None:
    """The wanted gradients agree with the truth; `how` they were made is for the message."""
    for n, (given, true, want) in enumerate(zip(gradients, run.truth.gradients, wanted, strict=True)):
        if not want:
            continue
        source = run.truth.inputs[n]
        assert source is not None
        require(given is not None, f"{run.case}: gradient {n} {how} is missing")
        expected = 0 * source if true is None else true
        compare(run.case, run.truth, given, expected, f"gradient {n} {how}", chain=CHAIN)
