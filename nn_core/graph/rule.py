"""Gradient rules on raw arrays: what serves ``backward()`` where a backend has no fused kernel."""

from collections.abc import Sequence

import numpy as np

from nn_core.dispatch.registry import gradient_of
from nn_core.errors import GraphError
from nn_core.graph.array_functions import ArrayFunctions
from nn_core.graph.execute import Prepared
from nn_core.graph.node import Node
from nn_core.rules.registry import GradientCall, GradientRule
from nn_core.typing import Array


class RuleRunner:
    """Runner that computes the gradients of a node by its gradient rule, on raw arrays."""

    __slots__ = ("_functions", "_n_inputs", "_n_outputs", "_n_visible", "_rule", "_shapes", "_spec_args", "_wanted")

    def __init__(self, node: Node, prepared: Prepared, wanted: Sequence[bool]) -> None:
        spec = node.spec
        rule = gradient_of(spec.name)
        if rule is None:
            raise GraphError(f"{spec.api}: the gradient must have a rule, got none for {spec.name}")
        self._rule: GradientRule = rule
        self._functions = ArrayFunctions(node.context, prepared.space)
        self._n_inputs = len(node.inputs)
        self._n_outputs = len(node.cells)
        self._n_visible = self._n_outputs - sum(entry.aux for entry in spec.outputs)
        self._shapes = [None if v is None else v.shape for v in node.inputs] + [c.data._shape for c in node.cells]
        self._spec_args = (spec, node.args)
        self._wanted = tuple(wanted)

    def __call__(self, *arrays: Array) -> None:
        n, m = self._n_inputs, self._n_outputs
        spec, args = self._spec_args
        values = [
            _ShapeOnly(shape) if array is None and shape is not None else array
            for array, shape in zip(arrays[: n + m], self._shapes, strict=True)
        ]
        grads = arrays[n + m : n + m + self._n_visible]
        targets = arrays[n + m + self._n_visible :]
        call = GradientCall(spec, values[:n], values[n:], grads, args, self._wanted)
        with np.errstate(all="ignore"):  # nan and inf are values like any other
            results = self._rule(self._functions, call)
        if not isinstance(results, (tuple, list)):
            results = (results,)
        for target, result in zip(targets, results, strict=True):
            if target is not None:
                target[...] = 0 if result is None else result


class _ShapeOnly:
    """Stands for an array of which a gradient rule may know the shape and nothing else."""

    __slots__ = ("ndim", "shape", "size")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.ndim = len(shape)
        self.size = int(np.prod(shape, dtype=np.int64))
