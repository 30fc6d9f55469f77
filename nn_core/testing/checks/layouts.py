"""Memory layouts: arrays off their alignment, channels-last images, and parts of larger arrays."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from nn_core.context import context_scope
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.graph.apply import operator_of
from nn_core.engine.graph.infer import input_entries
from nn_core.testing.assertions import require
from nn_core.testing.cases import Case, has_kernel
from nn_core.testing.checks.backward import compare_gradients
from nn_core.testing.checks.forward import compare, compare_outputs
from nn_core.testing.expected import Numbers, floating
from nn_core.testing.kernels import KernelRun
from nn_core.typing import Shape


def check_layouts(case: Case) -> None:
    """Require the same results for arrays of any alignment and memory layout that the kernel accepts."""
    if has_kernel(case.spec):
        run = KernelRun(case, shift=1)
        compare_outputs(case, run.truth, run.forward()[0])
        for flags in _channels_last(case):
            _check_channels_last(case, flags)
    if case.spec.inputs and not case.spec.has("seeded"):
        _check_strided(case)


def _channels_last(case: Case) -> Iterator[tuple[bool, ...]]:
    """Return flags of the inputs and outputs that may be channels-last, by the layout that the kernel asks for."""
    prepared = case.prepared
    inputs = [None if desc is None else desc.shape for desc in prepared.call.inputs]
    outputs = prepared.output_shapes
    if prepared.layout == "any":
        shapes = {*outputs, *inputs} - {None}
        require(len(shapes) == 1, f"{case}: layout 'any' needs arrays of one shape, got {shapes}")
        if _is_image(outputs[0]):
            yield tuple(shape is not None for shape in inputs) + (True,) * len(outputs)
    if prepared.layout in ("channels_last", "first"):
        may_be = [*_are_images_to_read(case, inputs), _is_image(outputs[0])]
        choices = _choices(may_be, len(outputs) - 1)
        yield from choices if prepared.layout == "channels_last" else (flags for flags in choices if flags[0])


def _are_images_to_read(case: Case, shapes: Sequence[Shape | None]) -> list[bool]:
    """For each input, whether it is an image that the function does not rewrite."""
    names = [entry.name for entry in case.spec.inputs]
    return [_is_image(shape) and names[n] not in case.spec.updates for n, shape in enumerate(shapes)]


def _choices(may_be: Sequence[bool], n_others: int) -> Iterator[tuple[bool, ...]]:
    """Flags of which some are set, for arrays that may have them set, and for others that may not."""
    for flags in product(*[(False, True)[: 1 + may] for may in may_be]):
        if any(flags):
            yield flags + (False,) * n_others


def _is_image(shape: Shape | None) -> bool:
    return shape is not None and 3 <= len(shape) <= 5


def _check_channels_last(case: Case, flags: Sequence[bool]) -> None:
    run = KernelRun(case, flags)
    outputs, _ = run.forward()
    compare_outputs(case, run.truth, outputs)
    wanted = floating(case.spec, run.truth)
    if case.spec.differentiable and case.sample.gradient and any(wanted):
        runner = run.fused(wanted)
        if runner is not None:
            gradients = run.fused_backward(runner, outputs, wanted)
            compare_gradients(run, gradients, wanted, f"by the kernel, channels-last {flags}")


def _check_strided(case: Case) -> None:
    """Inputs that are windows of larger arrays, as ``narrow`` makes them, and results in windows."""
    truth = KernelRun(case).truth
    with context_scope(case.context):
        kinds = [entry.dtype for entry in input_entries(case.spec, len(truth.inputs))]
        arrays = [
            None if array is None else _window(array, case.dtype, kind)
            for array, kind in zip(truth.inputs, kinds, strict=True)
        ]
        results = operator_of(case.spec)(*arrays, **case.sample.args)
    results = list(results) if isinstance(results, tuple) else [results]
    require(len(results) == len(truth.visible), f"{case}: {len(truth.visible)} results, got {len(results)}")
    for n, (result, true) in enumerate(zip(results, truth.visible, strict=True)):
        compare(case, truth, result.get_data("r"), true, f"result {n} of windows")
    for name in case.spec.updates:
        position = [entry.name for entry in case.spec.inputs].index(name)
        window, after = arrays[position], truth.after[position]
        if window is not None:
            compare(case, truth, window.get_data("r"), after, f"new {name} in its window")


def _window(array: Numbers, dtype: str, kind: str) -> NdArray:
    """Return the array as a window in a larger one; around it is NaN, or the largest number that can be read as `kind`."""
    if array.dtype.kind == "f":
        around = np.full([n + 2 for n in array.shape], np.nan)
    else:
        largest = np.iinfo(np.int32 if kind == "int32" else array.dtype).max
        around = np.full([n + 2 for n in array.shape], min(2**40, largest), array.dtype)
    around[(slice(1, -1),) * array.ndim] = array
    large = NdArray(around.shape)
    large.data = around
    if array.dtype.kind == "f":
        large.cast(dtype)
    for axis, length in enumerate(array.shape):
        large = large.narrow(axis, 1, length)
    return large
