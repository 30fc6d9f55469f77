"""The results of a kernel: values, shapes and dtypes, and what it must leave alone."""

from collections.abc import Sequence
from typing import Any

from nn_core.engine.arrays.casting import dtype_of
from nn_core.testing.assertions import assert_allclose, assert_identical, require
from nn_core.testing.cases import Case
from nn_core.testing.expected import Numbers, Truth, truth_of
from nn_core.testing.kernels import KernelRun
from nn_core.testing.perturbed_inputs import OTHER_KEY
from nn_core.testing.tolerance import terms, tolerance


def check_forward(case: Case) -> None:
    """A kernel computes what the reference computes in float64, into the memory that it is given and nowhere else."""
    run = KernelRun(case)
    outputs, updates = run.forward()
    compare_outputs(case, run.truth, outputs)
    _compare_updates(case, run.truth, updates)
    bound, bound_updates = run.forward(bound=True)
    private = dict(case.prepared.private)
    for n, (first, second) in enumerate(zip(outputs + updates, bound + bound_updates, strict=True)):
        if first is not None and second is not None and n not in private:
            assert_identical(second, first, f"{case}: result {n} of the bound kernel")


def check_determinism(case: Case) -> None:
    """The same inputs, and the same key, give the same bits; another key gives the numbers of that key."""
    run = KernelRun(case)
    (outputs, _), (again, _) = run.forward(), run.forward()
    private = dict(case.prepared.private)
    _require_identical(case, [None if n in private else y for n, y in enumerate(outputs)], again, "output")
    if case.spec.has("seeded"):
        truth = truth_of(case.spec, case.sample, case.dtype, OTHER_KEY)
        compare_outputs(case, truth, run.forward(key=OTHER_KEY)[0])
    wanted = tuple(array is not None and array.dtype.kind == "f" for array in run.truth.inputs)
    runner = run.fused(wanted) if case.spec.differentiable and any(wanted) else None
    if runner is not None:
        first, second = (run.fused_backward(runner, outputs, wanted) for _ in range(2))
        _require_identical(case, first, second, "gradient")


def _require_identical(case: Case, first: Sequence[Numbers | None], second: Sequence[Numbers | None], what: str) -> None:
    for n, (one, two) in enumerate(zip(first, second, strict=True)):
        if one is not None and two is not None:
            assert_identical(two, one, f"{case}: {what} {n} of the second run")


def compare_outputs(case: Case, truth: Truth, outputs: Sequence[Numbers]) -> None:
    """All outputs have the true shapes, the declared dtypes, and, unless private, true values within the tolerance."""
    require(len(outputs) == len(truth.outputs), f"{case}: {len(truth.outputs)} outputs must be made, got {len(outputs)}")
    private = dict(case.prepared.private)
    for n, (given, true, dtype) in enumerate(zip(outputs, truth.outputs, case.prepared.output_dtypes, strict=True)):
        require(given.dtype == dtype_of(dtype), f"{case}: output {n} must be {dtype}, got {given.dtype}")
        if n in private:
            require(given.shape == private[n], f"{case}: output {n} must have shape {private[n]}, got {given.shape}")
        else:
            compare(case, truth, given, true, f"output {n}")


def compare(case: Case, truth: Truth, given: Any, true: Any, what: str, *, chain: float = 1.0) -> None:
    """An array agrees with the truth within the tolerance of the case."""
    sources = [array.shape for array in (*truth.inputs, *truth.grads) if array is not None]
    if chain == 1.0:
        sources = [array.shape for array in truth.inputs if array is not None]
    n_terms = terms(sources, true.shape)
    rtol, atol = tolerance(case.dtype, n_terms, true, pointwise=case.spec.has("pointwise"))
    factor = case.sample.loose * chain
    if true.dtype.kind != "f":
        rtol = atol = 0.0
    require(tuple(given.shape) == true.shape, f"{case}: {what} must have shape {true.shape}, got {tuple(given.shape)}")
    assert_allclose(given, true, rtol * factor, atol * factor, err_msg=f"{case}: {what}")


def _compare_updates(case: Case, truth: Truth, updates: Sequence[Numbers | None]) -> None:
    names = [entry.name for entry in case.spec.inputs]
    for name, given, true in zip(case.spec.updates, updates, truth.updates, strict=True):
        expected = truth.inputs[names.index(name)] if true is None else true
        if given is not None and expected is not None:
            compare(case, truth, given, expected, f"new {name}")
