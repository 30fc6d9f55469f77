"""Check of what a table of kernels does with an operator that has grown since it was written."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from nn_core.engine.dispatch.known import table_kernel
from nn_core.engine.dispatch.plugin_manager import PLUGINS, REFERENCE
from nn_core.engine.dispatch.resolve import Dtypes, Resolution, resolve
from nn_core.engine.graph.call import PreparedKernel
from nn_core.errors import KernelNotFoundError
from nn_core.testing.assertions import assert_identical, require
from nn_core.testing.cases import DTYPES, Case, FunctionCase
from nn_core.testing.growth import ARGUMENT, INPUT, grown_spec
from nn_core.testing.operators import KEY
from nn_core.testing.samples.registry import numbers_of, samples_of
from nn_core.typing import Array, ArrayDesc, Call


def check_growth(case: FunctionCase) -> None:
    """A kernel refuses an argument and an input that its table has never heard of, and runs without them as it did."""
    plain = _native(case)
    if plain is None:  # the core knows its own operators, and a plugin those that it brings
        return
    where, call = str(case), plain.prepared.call
    same = (None,) * (not case.spec.variadic)
    later = replace(call, spec=grown_spec(case.spec), args={**call.args, ARGUMENT.name: 0.0}, inputs=(*call.inputs, *same))
    _require_refusal(plain, replace(later, args={**later.args, ARGUMENT.name: 1.0}), f"argument {ARGUMENT.name}")
    if same:
        given = call.inputs[0] if call.inputs else ArrayDesc((2,), call.dtype)
        _require_refusal(plain, replace(later, inputs=(*call.inputs, given)), f"input {INPUT.name}")
    found = _resolved(plain, later)
    require(
        table_kernel(found.kernel) is plain.prepared.implementation,
        f"{where}: the kernel must take a call that sets nothing new, got {found.refusals}",
    )
    _require_same_results(plain, PreparedKernel(later, found.kernel, found.backend, (), plain.context))


def _native(case: FunctionCase) -> Case | None:
    """Return a sample that a kernel of a table runs whose plugin may lag behind the operator."""
    if case.backend == REFERENCE or PLUGINS.registry.added(case.spec.name) is not None:
        return None
    backend = PLUGINS.backend(case.backend)
    for dtype in DTYPES:
        for sample in samples_of(case.spec):
            found = Case(case.backend, case.spec, dtype, sample)
            with suppress(KernelNotFoundError):  # no kernel takes the dtype
                if found.native and found.prepared.implementation is backend.kernels.get(case.spec.name):
                    return found
    return None


def _resolved(plain: Case, later: Call) -> Resolution:
    def described(dtypes: Dtypes) -> Call:
        return later

    return resolve(later.spec, later.args, described, plain.context)


def _require_refusal(plain: Case, asked: Call, what: str) -> None:
    found = _resolved(plain, asked)
    reasons = [refusal.reason for entry, refusal in found.refusals if entry == plain.context.backend[0]]
    require(
        table_kernel(found.kernel) is not plain.prepared.implementation and any(what in reason for reason in reasons),
        f"{plain}: the kernel must refuse a call with {what}, got the refusals {found.refusals}",
    )


def _require_same_results(plain: Case, prepared: PreparedKernel) -> None:
    """The kernel, shown as much of a call as its table knows, gives the bits that it gives alone."""
    alone = plain.prepared
    inputs = [
        None if array is None or dtype is None else array.astype(_numpy(dtype))
        for array, dtype in zip(numbers_of(plain.spec, plain.sample), alone.input_dtypes, strict=True)
    ]
    hidden = [None] * (len(prepared.input_dtypes) - len(inputs))
    expected, results = _forward(alone, inputs), _forward(prepared, [*inputs, *hidden])
    for one, other in zip(expected, results, strict=True):
        assert_identical(other, one, f"{plain}: with an operator that has grown the result must be as before")
    if not plain.spec.differentiable or plain.spec.has("dynamic_shape"):
        return
    wanted = tuple(desc is not None and "float" in desc.dtype for desc in alone.call.inputs)
    gradients = _backward(alone, inputs, expected, wanted)
    others = _backward(prepared, [*inputs, *hidden], expected, (*wanted, *[False] * len(hidden)))
    for one, other in zip(gradients, others, strict=True):
        assert_identical(other, one, f"{plain}: with an operator that has grown the gradient must be as before")


def _numpy(name: str) -> Any:
    from nn_core.engine.arrays.casting import dtype_of

    return dtype_of(name)


def _forward(prepared: PreparedKernel, inputs: Sequence[Any]) -> list[Any]:
    space = prepared.space
    arrays: list[Array] = [None if array is None else space.from_numpy(array.copy()) for array in inputs]
    if prepared.dynamic:
        results: Any = prepared.forward(*arrays)
        return [np.array(space.to_numpy(result)) for result in results]
    outputs = [space.from_numpy(np.zeros(desc.shape, _numpy(desc.dtype))) for desc in prepared.call.outputs]
    prepared.forward(*arrays, *outputs, *([np.array(KEY, np.uint64)] if prepared.seeded else []))
    return [np.array(space.to_numpy(output)) for output in outputs]


def _backward(prepared: PreparedKernel, inputs: Sequence[Any], outputs: Sequence[Any], wanted: tuple[bool, ...]) -> list[Any]:
    """Return the gradients by the kernel of the backend; none where it has none."""
    layout = (False,) * (len(wanted) + len(prepared.call.outputs))
    runner = prepared.backward_for(wanted, layout) if any(wanted) else None
    if runner is None:
        return []
    space, spec = prepared.space, prepared.spec
    n_visible = len(outputs) - sum(entry.aux for entry in spec.outputs)
    needs = spec.needed(prepared.args)
    targets = [
        space.from_numpy(np.zeros(desc.shape, _numpy(desc.dtype))) if want and desc is not None else None
        for desc, want in zip(prepared.call.inputs, wanted, strict=True)
    ]
    runner(
        *[_placed(space, array, spec.inputs, place, needs) for place, array in enumerate(inputs)],
        *[_placed(space, array, spec.outputs, place, needs) for place, array in enumerate(outputs)],
        *[space.from_numpy(np.ones_like(output)) for output in outputs[:n_visible]],
        *targets,
    )
    return [np.array(space.to_numpy(target)) for target in targets if target is not None]


def _placed(space: Any, array: Any, entries: Sequence[Any], place: int, needs: Sequence[str]) -> Array | None:
    is_needed = array is not None and entries[min(place, len(entries) - 1)].name in needs
    return space.from_numpy(array.copy()) if is_needed else None
