"""Gradient rules on raw arrays: what serves ``backward()`` where a backend has no fused kernel."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_core.dispatch.registry import gradient_of
from nn_core.errors import GraphError
from nn_core.graph.array_functions import ArrayFunctions
from nn_core.graph.call import PreparedKernel
from nn_core.graph.failure import add_note
from nn_core.graph.precision import NARROW, wide_context, widens
from nn_core.graph.run import fetch_raw
from nn_core.rules.registry import GradientCall, GradientRule
from nn_core.typing import Array, Shape


def keeps_precisely(kernel: PreparedKernel) -> bool:
    """Whether the gradient of a call may compute from its aux outputs: half precision holds too few digits of a mean."""
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
        "_functions",
        "_keeps",
        "_n_inputs",
        "_n_outputs",
        "_n_visible",
        "_rule",
        "_shapes",
        "_space",
        "_spec_args",
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
        self._wanted = tuple(wanted)

    def __call__(self, *arrays: Array) -> None:
        # data that the specification does not declare as needed may be gone: a rule that reads it fails here, at once
        n, m = self._n_inputs, self._n_outputs
        spec, args = self._spec_args
        values = [
            _ShapeOnly(shape) if array is None and shape is not None else array
            for array, shape in zip(arrays[: n + m], self._shapes, strict=True)
        ]
        grads = arrays[n + m : n + m + self._n_visible]
        targets = arrays[n + m + self._n_visible :]
        if self._widens:
            values, grads = list(map(self._wide, values)), tuple(map(self._wide, grads))
        call = GradientCall(spec, values[:n], values[n:], grads, args, self._wanted, keeps=self._keeps)
        with np.errstate(all="ignore"):  # nan and inf are values like any other
            try:
                results = self._rule(self._functions, call)
            except Exception as error:
                add_note(error, spec, self._backend, self._shapes[:n], args, what="the gradient rule of ")
                raise
        if not isinstance(results, (tuple, list)):
            results = (results,)
        if len(results) != len(targets):
            raise GraphError(f"{spec.api}: a gradient rule must return {len(targets)} gradients, got {len(results)}")
        for target, result in zip(targets, results, strict=True):
            # rules also return gradients that cost little, asked for or not
            if target is None:
                continue
            if getattr(result, "shape", target.shape) != target.shape:
                raise GraphError(
                    f"{spec.api}: the gradient of an input must have its shape {target.shape}, got {result.shape}"
                )
            target[...] = 0 if result is None else result

    def _wide(self, array: Any) -> Any:
        """`array` in float32 if it is in half precision."""
        return fetch_raw(array, self._space, "float32") if str(getattr(array, "dtype", "")) in NARROW else array


class _ShapeOnly:
    """A placeholder for an array of which a gradient rule may know the shape and nothing else."""

    __slots__ = ("ndim", "shape", "size")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.ndim = len(shape)
        self.size = int(np.prod(shape, dtype=np.int64))
