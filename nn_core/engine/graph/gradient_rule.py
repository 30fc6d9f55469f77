"""Gradient rules on raw arrays: what serves ``backward()`` where a backend has no fused kernel."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.dispatch.blame import require_real
from nn_core.engine.dispatch.registry import gradient_of
from nn_core.engine.graph.array_functions import ArrayFunctions
from nn_core.engine.graph.call import PreparedKernel
from nn_core.engine.graph.failure import add_note, raise_lack
from nn_core.engine.graph.node import Node, Storage, Value
from nn_core.engine.graph.precision import NARROW, wide_context, widens
from nn_core.engine.graph.run import fetch_raw
from nn_core.engine.graph.sandboxed_kernel import is_trusted, is_write, read_only
from nn_core.errors import GraphError, PluginError
from nn_core.operators.rules.registry import GradientCall, GradientRule
from nn_core.settings import settings
from nn_core.typing import Array, Shape


def keeps_precisely(kernel: PreparedKernel) -> bool:
    """Return whether the gradient of a call may compute from its aux outputs: half precision holds too few digits of a
    mean.
    """
    n_aux = sum(entry.aux for entry in kernel.spec.outputs)
    return not any(dtype in NARROW for dtype in kernel.output_dtypes[len(kernel.output_dtypes) - n_aux :])


class RuleRunner:
    """Runner that computes the gradients of a function by its gradient rule, on raw arrays.

    Args:
        kernel: The function.
        inputs: The shapes of its inputs, None where one is not given.
        outputs: The shapes of its outputs.
        wanted: For each input, whether its gradient is wanted.
    """

    __slots__ = (
        "_backend",
        "_compares",
        "_functions",
        "_is_foreign",
        "_is_idle",
        "_keeps",
        "_n_inputs",
        "_n_outputs",
        "_n_visible",
        "_rule",
        "_shapes",
        "_space",
        "_spec_args",
        "_to_numpy",
        "_wanted",
        "_widens",
    )

    def __init__(
        self, kernel: PreparedKernel, inputs: Sequence[Shape | None], outputs: Sequence[Shape], wanted: Sequence[bool]
    ) -> None:
        spec = kernel.spec
        rule = gradient_of(spec.name)
        if rule is None:
            raise GraphError(f"{spec.api}: the gradient must have a rule, got none for {spec.name}")
        self._rule: GradientRule = rule
        self._backend = kernel.backend.name
        # in half precision each function of the rule would round its result
        self._widens = widens(spec, kernel.context)
        self._space = kernel.space
        self._functions = ArrayFunctions(wide_context(kernel.context) if self._widens else kernel.context, kernel.space)
        self._n_inputs = len(inputs)
        self._n_outputs = len(outputs)
        self._n_visible = self._n_outputs - sum(entry.aux for entry in spec.outputs)
        self._keeps = keeps_precisely(kernel)
        self._shapes = [*inputs, *outputs]
        self._spec_args = (spec, kernel.args)
        self._is_foreign = not is_trusted(getattr(rule, "__module__", None))
        #: whether the next call compares what the rule reads before and after
        self._compares = self._is_foreign or settings().check_kernels
        self._to_numpy = kernel.backend.to_numpy
        # that of an empty input is empty, and rules made of functions need not take it
        self._wanted = tuple(want and not (shape and 0 in shape) for want, shape in zip(wanted, inputs, strict=True))
        self._is_idle = not any(self._wanted)

    def __call__(self, *arrays: Array) -> None:
        if self._is_idle:
            return
        n, m = self._n_inputs, self._n_outputs
        first = n + m + self._n_visible
        if self._is_foreign:
            arrays = (*map(read_only, arrays[:first]), *arrays[first:])
        before = self._noted(arrays[:first]) if self._compares else ()
        # data that the specification does not declare as needed may be gone: a rule that reads it fails here, at once
        values = [
            _ShapeOnly(shape) if array is None and shape is not None else array
            for array, shape in zip(arrays[: n + m], self._shapes, strict=True)
        ]
        grads = arrays[n + m : first]
        if self._widens:
            values, grads = list(map(self._wide, values)), tuple(map(self._wide, grads))
        spec, args = self._spec_args
        call = GradientCall(spec, values[:n], values[n:], grads, args, self._wanted, keeps=self._keeps)
        with np.errstate(all="ignore"):  # nan and inf are values like any other, also where half precision makes them
            results = self._results(call)
            if before:
                self._require_unchanged(before)
            targets = arrays[first:]
            if len(results) != len(targets):
                raise GraphError(f"{spec.api}: a gradient rule must return {len(targets)} gradients, got {len(results)}")
            for target, result in zip(targets, results, strict=True):
                # rules also return gradients that cost little, asked for or not
                if target is not None:
                    self._write(target, result)

    def _results(self, call: GradientCall) -> Sequence[Any]:
        try:
            results = self._rule(self._functions, call)
        except BaseException as error:
            spec, args = self._spec_args
            if self._is_foreign and isinstance(error, Exception) and is_write(error):
                raise PluginError(f"{spec.api}: a gradient rule must not change what it reads, got: {error}") from error
            if isinstance(error, MemoryError):
                raise_lack(spec, self._shapes[: self._n_inputs], (), error, "backward")
            add_note(error, spec, self._backend, self._shapes[: self._n_inputs], args, what="the gradient rule of ")
            raise
        return results if isinstance(results, (tuple, list)) else (results,)

    def _write(self, target: Array, result: Any) -> None:
        spec, _ = self._spec_args
        if self._is_foreign:
            _require_array(spec.api, result, target)
        if getattr(result, "shape", target.shape) != target.shape:
            raise GraphError(f"{spec.api}: the gradient of an input must have its shape {target.shape}, got {result.shape}")
        target[...] = 0 if result is None else result

    def _wide(self, array: Any) -> Any:
        """`array` in float32 if it is in half precision."""
        return fetch_raw(array, self._space, "float32") if str(getattr(array, "dtype", "")) in NARROW else array

    def _noted(self, read: Sequence[Array]) -> list[tuple[int, Array, bytes]]:
        """Return the values that the rule reads, to be compared with what they are afterwards."""
        self._compares = settings().check_kernels
        return [(place, array, self._bytes(array)) for place, array in enumerate(read) if array is not None]

    def _require_unchanged(self, before: Sequence[tuple[int, Array, bytes]]) -> None:
        for place, array, values in before:
            if self._bytes(array) != values:
                api = self._spec_args[0].api
                raise PluginError(f"{api}: a gradient rule must not change what it reads, got array {place} changed")

    def _bytes(self, array: Array) -> bytes:
        return np.ascontiguousarray(array if isinstance(array, np.ndarray) else self._to_numpy(array)).tobytes()


def _require_array(api: str, result: Any, target: Array) -> None:
    """Refuse what is no gradient, of a rule of a plugin: a Variable of some graph, a number for an array, complex numbers."""
    if result is None:
        return
    what = type(result).__name__
    if isinstance(result, (Value, NdArray)) or (not hasattr(result, "shape") and target.shape != ()):
        raise PluginError(f"{api}: a gradient rule must return arrays of the shapes of the inputs, or None, got {what}")
    require_real(f"{api}: a gradient rule", result)


def require_gradients(api: str, results: Sequence[Any], inputs: Sequence[Value | None], given: Sequence[Value | None]) -> None:
    """Refuse what is no gradient in a graph, of a rule of a plugin.

    Args:
        api: The differentiated function.
        results: What the rule has returned, one for each input.
        inputs: The inputs of the function.
        given: What else the rule was given: outputs and their gradients.

    Raises:
        PluginError: for an array, or a number for an array, and for a Variable that follows from other leaves alone.
    """
    storages = {value.storage for value in [*inputs, *given] if value is not None}
    for result, place in zip(results, inputs, strict=True):
        if result is None or (isinstance(result, (int, float)) and place is not None and place.shape == ()):
            continue
        if not isinstance(result, Value):
            got = type(result).__name__
            raise PluginError(f"{api}: a gradient rule must return Variables of the shapes of the inputs, or None, got {got}")
        if not _follows(result, storages):
            raise PluginError(
                f"{api}: a gradient rule must return functions of what it is given, got a Variable of shape {result.shape} "
                "that has nothing to do with it"
            )


def _follows(result: Value, storages: Collection[Storage]) -> bool:
    """Return whether a value is computed from one of these storages, or from nothing, as a constant is."""
    left, seen, is_constant = [result], set[Node](), True
    while left:
        value = left.pop()
        if value.storage in storages:
            return True
        node = value.producer
        is_constant = is_constant and node is not None
        if node is not None and node not in seen:
            seen.add(node)
            left += [source for source in node.inputs if source is not None]
    return is_constant


class _ShapeOnly:
    """A placeholder for an array of which a gradient rule may know the shape and nothing else."""

    __slots__ = ("ndim", "shape", "size")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.ndim = len(shape)
        self.size = int(np.prod(shape, dtype=np.int64))
