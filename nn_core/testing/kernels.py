"""Run a kernel as the engine does, on arrays with guards around them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.synced import Space
from nn_core.engine.dispatch.registry import gradient_of
from nn_core.engine.graph.array_functions import ArrayFunctions
from nn_core.engine.graph.call import PreparedKernel
from nn_core.engine.graph.gradient_rule import keeps_precisely
from nn_core.engine.graph.plan import bind
from nn_core.engine.graph.sandboxed_kernel import runner_of
from nn_core.operators.rules.registry import GradientCall
from nn_core.testing.assertions import assert_identical, require
from nn_core.testing.cases import Case
from nn_core.testing.expected import Numbers, Truth, rounded, truth_of
from nn_core.testing.operators import KEY
from nn_core.typing import Array, Runner, Shape

#: Elements before and after each array that nothing may write.
GUARD_BYTES = 128


@dataclass(slots=True, eq=False)
class Guarded:
    """An array in the middle of a larger one, with what is around it."""

    array: Array
    _whole: Array
    _start: int
    _size: int
    _space: Space
    _before: Numbers

    def intact(self) -> bool:
        """Return whether nothing was written outside of the array."""
        whole = np.asarray(self._space.to_numpy(self._whole))
        edges = np.concatenate([whole[: self._start], whole[self._start + self._size :]])
        return edges.tobytes() == self._before.tobytes()


def guarded(
    space: Space,
    shape: Shape,
    dtype: str,
    values: Numbers | None = None,
    *,
    channels_last: bool = False,
    shift: int = 0,
) -> Guarded:
    """Return an array in `space`, filled with `values` or with NaN.

    Args:
        space: Memory space of the array.
        shape: Its shape.
        dtype: Its dtype.
        values: Its content; None: NaN, or the smallest integer.
        channels_last: Whether its second axis is innermost in memory.
        shift: By how many elements it is moved off the alignment of the space.
    """
    kind = dtype_of(dtype)
    start = GUARD_BYTES // kind.itemsize + shift
    size = int(np.prod(shape, dtype=np.int64))
    host = np.empty(size + 2 * start, kind)
    host[...] = np.iinfo(kind).min if kind.kind in "iu" else kind.kind != "b" and np.nan
    edges = np.concatenate([host[:start], host[start + size :]])
    middle = shaped(host[start : start + size], shape, channels_last)
    if values is not None:
        middle[...] = values
    whole = space.empty((host.size,), dtype)
    whole[...] = space.from_numpy(host)
    array = shaped(whole[start : start + size], shape, channels_last)
    return Guarded(array, whole, start, size, space, edges)


def shaped(flat: Array, shape: Shape, channels_last: bool) -> Array:
    """Return a flat array in another shape, laid out as the engine lays out images if asked for."""
    if not channels_last:
        return flat.reshape(shape)
    batch, channels, *spatial = shape
    n_axes = len(shape)
    return flat.reshape((batch, *spatial, channels)).transpose((0, n_axes - 1, *range(1, n_axes - 1)))


class KernelRun:
    """One case, run on its backend at the level of kernels.

    Args:
        case: Case to run.
        channels_last: For each input and output, whether it is channels-last in memory; none if empty.
        shift: By how many elements the inputs are moved off the alignment of the backend.
    """

    def __init__(self, case: Case, channels_last: Sequence[bool] = (), shift: int = 0) -> None:
        self.case = case
        self.prepared: PreparedKernel = case.prepared
        self.truth: Truth = truth_of(case.spec, case.sample, case.dtype, KEY if case.spec.has("seeded") else None)
        self._flags = tuple(channels_last) or (False,) * (len(self.prepared.input_dtypes) + len(self.prepared.output_shapes))
        self._shift = shift

    # -- arrays ----------------------------------------------------------------------------------------------------

    def inputs(self, *, after: bool = False) -> list[Guarded | None]:
        """Return the inputs on the device; with `after`, as they are once the function has run."""
        space, shift = self.prepared.space, self._shift
        values = self.truth.after if after else self.truth.inputs
        return [
            None if array is None or dtype is None
            else guarded(space, array.shape, dtype, array, channels_last=flag, shift=shift)
            for array, dtype, flag in zip(values, self.prepared.input_dtypes, self._flags, strict=False)
        ]  # fmt: skip

    def outputs(self) -> list[Guarded]:
        """Memory for the outputs."""
        flags = self._flags[len(self.prepared.input_dtypes) :]
        pairs = zip(self.prepared.output_shapes, self.prepared.output_dtypes, flags, strict=True)
        return [
            guarded(self.prepared.space, shape, dtype, channels_last=flag, shift=self._shift) for shape, dtype, flag in pairs
        ]

    def numpy(self, array: Array) -> Numbers:
        """Return the values of a device array, in a copy."""
        return np.array(self.prepared.space.to_numpy(array), order="C")

    # -- forward ---------------------------------------------------------------------------------------------------

    def forward(self, *, bound: bool = False, key: Sequence[int] = KEY) -> tuple[list[Numbers], list[Numbers | None]]:
        """All outputs, and what the inputs in `updates` hold afterwards.

        Fails when the kernel writes to another input or beside an array, or returns memory of an input.
        """
        inputs = self.inputs()
        # without guard: the memory that the kernel is given is poisoned here
        runner: Runner = runner_of(self.prepared.forward_for(self._flags))
        arrays: list[Any] = [None if entry is None else entry.array for entry in inputs]
        if self.case.spec.has("dynamic_shape"):
            results = self._dynamic_results(runner, arrays)
            self._require_unchanged(inputs)
            return results, []
        outputs = self.outputs()
        arrays += [entry.array for entry in outputs]
        if self.case.spec.has("seeded"):
            arrays.append(np.array(key, np.uint64))
        _call(runner, arrays, bound)
        self._require_unchanged(inputs)
        self._require_guards([*inputs, *outputs])
        updated = [inputs[position] for position in self._updated()]
        return (
            [self.numpy(entry.array) for entry in outputs],
            [None if entry is None else self.numpy(entry.array) for entry in updated],
        )

    def _dynamic_results(self, runner: Runner, arrays: Sequence[Array | None]) -> list[Numbers]:
        results: Any = runner(*arrays)
        for result in results:
            require(
                not any(_shares(result, array) for array in arrays),
                f"{self.case}: an output of dynamic shape is memory of an input",
            )
        return [self.numpy(result) for result in results]

    def _updated(self) -> list[int]:
        names = [entry.name for entry in self.case.spec.inputs]
        return [names.index(name) for name in self.case.spec.updates]

    def _require_unchanged(self, inputs: Sequence[Guarded | None], what: str = "an input") -> None:
        for position, (entry, values) in enumerate(zip(inputs, self.truth.inputs, strict=True)):
            if entry is not None and position not in self._updated():
                before = np.asarray(values).astype(dtype_of(self.prepared.input_dtypes[position] or "float32"))
                assert_identical(self.numpy(entry.array), before, f"{self.case}: the kernel wrote to {what} ({position})")

    def _require_guards(self, entries: Sequence[Guarded | None]) -> None:
        for entry in entries:
            require(entry is None or entry.intact(), f"{self.case}: the kernel wrote beside an array")

    # -- backward --------------------------------------------------------------------------------------------------

    def fused(self, wanted: Sequence[bool]) -> Runner | None:
        """Return the backend's own gradient kernel, if it has one for these inputs."""
        return runner_of(self.prepared.backward_for(tuple(wanted), self._flags))

    def fused_backward(
        self, runner: Runner, outputs: Sequence[Numbers], wanted: Sequence[bool], *, bound: bool = False
    ) -> list[Numbers | None]:
        """Gradients of the wanted inputs by the backend's own kernel, which gets None where no need is declared."""
        spec = self.case.spec
        space = self.prepared.space
        n_inputs = len(self.prepared.input_dtypes)
        out_flags = self._flags[n_inputs:]
        inputs = self.inputs(after=True)
        results = [
            guarded(space, y.shape, dtype, y, channels_last=flag)
            for y, dtype, flag in zip(outputs, self.prepared.output_dtypes, out_flags, strict=True)
        ]
        grads = self.output_grads(out_flags)
        gradients = self._gradient_targets(wanted)
        needs = spec.needed(self.prepared.args)
        known_inputs = [e if _needed(spec.inputs, n, needs) else None for n, e in enumerate(inputs)]
        known_results = [e if _needed(spec.outputs, n, needs) else None for n, e in enumerate(results)]
        entries = [*known_inputs, *known_results, *grads, *gradients]
        arrays = [None if entry is None else entry.array for entry in entries]
        _call(runner, arrays, bound)
        self._require_guards(entries)
        self._require_kept(known_inputs, self.truth.after, "an input")
        self._require_kept(known_results, outputs, "an output")
        self._require_kept(grads, self.truth.grads, "the gradient of an output")
        return [None if entry is None else self.numpy(entry.array) for entry in gradients]

    def _gradient_targets(self, wanted: Sequence[bool]) -> list[Guarded | None]:
        """Memory for the gradients of the wanted inputs."""
        given = zip(self.truth.inputs, self.prepared.input_dtypes, wanted, self._flags, strict=False)
        return [
            guarded(self.prepared.space, array.shape, dtype, channels_last=flag)
            if want and array is not None and dtype
            else None
            for array, dtype, want, flag in given
        ]

    def output_grads(self, flags: Sequence[bool]) -> list[Guarded]:
        """Return the gradients of the visible outputs on the device."""
        return [
            guarded(self.prepared.space, grad.shape, dtype, grad, channels_last=flag)
            for grad, dtype, flag in zip(self.truth.grads, self.prepared.output_dtypes, flags, strict=False)
        ]

    def rule_backward(self, outputs: Sequence[Numbers], wanted: Sequence[bool]) -> list[Numbers | None]:
        """Gradients by the gradient rule, made of the kernels of the backend; NaN where no need is declared."""
        spec = self.case.spec
        rule = gradient_of(spec.name)
        assert rule is not None
        space = self.prepared.space
        inputs, placed = self._known(outputs)
        grads = [entry.array for entry in self.output_grads((False,) * len(self.truth.grads))]
        call = GradientCall(spec, inputs, placed, grads, self.prepared.args, wanted, keeps=keeps_precisely(self.prepared))
        with np.errstate(all="ignore"):
            results = rule(ArrayFunctions(self.case.context, space), call)
        if not isinstance(results, (tuple, list)):
            results = (results,)
        require(
            len(results) == len(inputs),
            f"{self.case}: the rule returns {len(results)} gradients of {len(inputs)} inputs",
        )
        return [
            None if not want or array is None else np.zeros(array.shape) if result is None else self.numpy(result)
            for result, want, array in zip(results, wanted, self.truth.inputs, strict=True)
        ]

    def _known(self, outputs: Sequence[Numbers]) -> tuple[list[Array | None], list[Array]]:
        """Return inputs and outputs on the device as the gradient rule may read them; NaN where no need is declared."""
        spec, needs = self.case.spec, self.case.spec.needed(self.prepared.args)
        inputs = [
            None if entry is None else entry.array if _needed(spec.inputs, n, needs) else self._unread(entry)
            for n, entry in enumerate(self.inputs(after=True))
        ]
        placed = [
            guarded(self.prepared.space, y.shape, dtype, y if _needed(spec.outputs, n, needs) else None).array
            for n, (y, dtype) in enumerate(zip(outputs, self.prepared.output_dtypes, strict=True))
        ]
        return inputs, placed

    def _unread(self, entry: Guarded) -> Array:
        shape, dtype = tuple(entry.array.shape), str(entry.array.dtype)
        return guarded(self.prepared.space, shape, dtype).array

    def _require_kept(self, entries: Sequence[Guarded | None], numbers: Sequence[Any], what: str) -> None:
        for entry, values in zip(entries, numbers, strict=True):
            if entry is not None:
                after = self.numpy(entry.array)
                assert_identical(after, np.asarray(values).astype(after.dtype), f"{self.case}: the kernel wrote to {what}")


def _call(runner: Runner, arrays: Sequence[Array | None], bound: bool) -> None:
    if bound:
        bind(runner, arrays)()
    else:
        runner(*arrays)


def _needed(entries: Sequence[Any], position: int, needs: Sequence[str]) -> bool:
    return entries[min(position, len(entries) - 1)].name in needs


def _shares(result: Array, array: Array) -> bool:
    plain = isinstance(result, np.ndarray) and isinstance(array, np.ndarray)
    return plain and np.may_share_memory(result, array)


__all__ = ["Guarded", "KernelRun", "guarded", "rounded"]
