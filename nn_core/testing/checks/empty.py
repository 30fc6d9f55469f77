"""Check of what a backend does with axes of length 0."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from nn_core.context import context_scope
from nn_core.engine.dispatch.plugin_manager import REFERENCE
from nn_core.engine.graph.apply import operator_of
from nn_core.errors import NNCoreError
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.assertions import require
from nn_core.testing.cases import FunctionCase, context_of
from nn_core.testing.samples.registry import Sample, numbers_of, samples_of
from nn_core.variable import Variable, forward_all

Numbers: TypeAlias = np.ndarray[Any, Any]
#: Results and gradients, or the class of the error that refuses the call, and its text.
Outcome: TypeAlias = list[Numbers] | tuple[str, str]
_DTYPE = "float32"
_TOLERANCE = 1e-3


def check_empty_axes(case: FunctionCase) -> None:
    """Require the results and gradients of the reference of samples whose axes have length 0, or that both refuse the call.

    All axes of one length become empty at once, so that most shapes still fit each other.
    """
    for sample in samples_of(case.spec):
        if sample.name.startswith("large"):
            continue
        for length, arrays in _emptied(numbers_of(case.spec, sample)):
            where = f"{case}-{sample.name} with axes of length {length} that are empty"
            found = _outcome(case, sample, arrays)
            if case.backend != REFERENCE:  # which must give results or a refusal of ours
                _require_same(where, found, _outcome(FunctionCase(REFERENCE, case.spec), sample, arrays))


def _emptied(arrays: Sequence[Numbers | None]) -> Iterator[tuple[int, list[Numbers | None]]]:
    for length in sorted({n for array in arrays if array is not None for n in array.shape if n}):
        yield length, [None if array is None else _without(array, length) for array in arrays]


def _without(array: Numbers, length: int) -> Numbers:
    return array[tuple(slice(0, 0) if n == length else slice(None) for n in array.shape)]


def _outcome(case: FunctionCase, sample: Sample, arrays: Sequence[Numbers | None]) -> Outcome:
    with context_scope(context_of(case.backend, _DTYPE)), np.errstate(all="ignore"):
        try:
            found = _computed(case.spec, sample, [None if array is None else _variable(array) for array in arrays])
        except _refusals(case.spec) as error:
            return type(error).__name__, str(error)
    return [np.zeros_like(array) for array in found] if case.spec.has("seeded") else found


def _refusals(spec: FunctionSpec) -> type[Exception]:
    """Return what may refuse a call: kernels of plugins raise what their libraries raise."""
    return Exception if "." in spec.name else NNCoreError


def _computed(spec: FunctionSpec, sample: Sample, inputs: Sequence[Variable | None]) -> list[Numbers]:
    made = operator_of(spec)(*inputs, **sample.args)
    results: list[Variable] = list(made) if isinstance(made, tuple) else [made]
    forward_all(results)
    found = [np.array(result.d) for result in results]
    if spec.differentiable and sample.gradient:
        found += _gradients([x for x in inputs if x is not None and x.need_grad], results)
    return found


def _variable(array: Numbers) -> Variable:
    is_real = array.dtype.kind == "f"
    return Variable.from_numpy_array(array.astype(_DTYPE) if is_real else array.copy(), need_grad=is_real)


def _gradients(inputs: Sequence[Variable], results: Sequence[Variable]) -> Iterator[Numbers]:
    for result in results:
        if result.need_grad and result.dtype.kind == "f":
            for x in inputs:
                x.grad.zero()
            result.backward(np.ones(result.shape, _DTYPE))
            yield from [np.array(x.g) for x in inputs]


def _require_same(where: str, found: Outcome, expected: Outcome) -> None:
    if isinstance(found, tuple) or isinstance(expected, tuple):
        same = isinstance(found, tuple) and isinstance(expected, tuple) and found[0] == expected[0]
        require(same, f"{where}: the call must end as on the reference, in {_text(expected)}, got {_text(found)}")
        return
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        require(one.shape == other.shape, f"{where}: array {number} must have shape {other.shape}, got {one.shape}")
        left, right = (array.astype(np.float64) for array in (one, other))
        close = np.allclose(left, right, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
        require(close, f"{where}: array {number} must be as on the reference, {other}, got {one}")


def _text(outcome: Outcome) -> str:
    return ": ".join(outcome) if isinstance(outcome, tuple) else f"the shapes {[array.shape for array in outcome]}"
