"""The table of converters: which writes which function of nn_core."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.graph_rewriting import follows_shapes
from nn_ext_onnx.exporting.values import INT, GraphWriter, Value
from nn_ext_onnx.exporting.values import NotExportableError as NotExportableError


@dataclass(slots=True)
class Call:
    """One function of the graph that is exported.

    Attributes:
        graph: what nodes are added to.
        name: of the function.
        inputs: its inputs in the order of its specification, None where optional ones are left out.
        shapes: their shapes; a length that is not the same in all models that are written `follows_shapes`.
        args: its settings.
        output_shapes: the shapes of its visible outputs.
    """

    graph: GraphWriter
    name: str
    inputs: list[Value | None]
    shapes: list[tuple[int, ...]]
    args: dict[str, Any]
    output_shapes: list[tuple[int, ...]]

    @property
    def x(self) -> Value:
        """The first input."""
        return self[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first input."""
        return self.shapes[0]

    @property
    def ndim(self) -> int:
        """The number of axes of the first input."""
        return len(self.shapes[0])

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the first output."""
        return self.output_shapes[0]

    def __getitem__(self, index: int) -> Value:
        value = self.inputs[index]
        if value is None:
            raise NotExportableError(f"input {index} must be given")
        return value

    def optional(self, index: int) -> Value | None:
        """Return an input, or None where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def need_opset(self, opset: int, what: str) -> None:
        """Refuse when the operator set is older.

        Raises:
            NotExportableError: says which one is needed.
        """
        self.graph.need_opset(opset, what)

    def zeros(self, shape: Sequence[int], value: float = 0.0) -> Value:
        """Return an array of one number; its shape may follow from others."""
        return self.graph.op("Expand", self.graph.constant(float(value)), tuple(shape))

    def arange(self, stop: int, dtype: np.dtype[Any] = INT) -> Value:
        """Return the numbers below `stop`."""
        if follows_shapes(stop):
            zero, one = self.graph.constant(0, INT), self.graph.constant(1, INT)
            return self.graph.op("Range", zero, self.graph.constant(stop, INT), one, dtype=INT).cast(dtype)
        return self.graph.constant(np.arange(stop), dtype)


Converter: TypeAlias = Callable[[Call], "Value | Sequence[Value]"]

CONVERTERS: Final[dict[str, Converter]] = {}


def converter(*names: str) -> Callable[[Converter], Converter]:
    """Register the decorated function for functions of nn_core."""

    def decorate(function: Converter) -> Converter:
        for name in names:
            CONVERTERS[name] = function
        return function

    return decorate


def expressions(table: dict[str, Callable[..., Value]]) -> None:
    """Register functions of the values of all inputs and the settings."""
    for name, expression in table.items():
        CONVERTERS[name] = _of_expression(expression)


def _of_expression(expression: Callable[..., Value]) -> Converter:
    return lambda call: expression(*call.inputs, **call.args)


def size_of(shape: Sequence[int]) -> int:
    """Return the number of elements."""
    return math.prod(shape)
