"""Lengths that follow from shapes, as nodes that compute them when the model runs."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nn_core.graph_rewriting import followed, follows_shapes

if TYPE_CHECKING:
    from nn_ext_onnx.exporting.values import GraphWriter, Value

_INT: Final = np.dtype("int64")
_REAL: Final = np.dtype("float64")
#: Operations on numbers that are one node, whole numbers included.
_ALIKE: Final = {"add": "Add", "sub": "Sub", "mul": "Mul", "neg": "Neg", "abs": "Abs"}
#: Operations that make a number whole.
_ROUNDED: Final = {"floor": "Floor", "ceil": "Ceil", "round": "Round"}


class UnknownLengthError(Exception):
    """A length that cannot be computed at this place of the model."""


class Lengths:
    """Writes numbers that follow from shapes into a graph.

    Args:
        graph: What nodes are added to.
        value_of: Returns the value of a variable in the graph; None where there is none yet.
        is_fixed: Whether an axis of a variable has the same length in all models.
    """

    def __init__(
        self,
        graph: GraphWriter,
        value_of: Callable[[Any], Value | None],
        is_fixed: Callable[[Any, int], bool],
    ) -> None:
        self._graph, self._value_of, self._is_fixed = graph, value_of, is_fixed
        self._read: dict[tuple[str, int], Value] = {}

    def simplified(self, number: Any) -> Any:
        """Return the number itself where it follows from lengths that are fixed."""
        if not follows_shapes(number):
            return number
        changes: list[bool] = []

        def read(variable: Any, axis: int) -> int:
            changes.append(not self._is_fixed(variable, axis))
            return 0

        followed(number, read, lambda operation, *operands: 0)
        return number if any(changes) else float(number) if isinstance(number, float) else int(number)

    def is_known(self, number: Any) -> bool:
        """Return whether a number can be computed from what is in the graph."""
        if not follows_shapes(number):
            return True
        missing: list[Any] = []

        def read(variable: Any, axis: int) -> int:
            if not self._is_fixed(variable, axis) and self._value_of(variable) is None:
                missing.append(variable)
            return 0

        followed(number, read, lambda operation, *operands: 0)
        return not missing

    def vector(self, numbers: Sequence[Any]) -> Value:
        """Return whole numbers as a vector, those that follow shapes included."""
        parts: list[Value] = []
        fixed: list[int] = []
        for number in numbers:
            if not follows_shapes(number):
                fixed.append(int(number))
                continue
            if fixed:
                parts.append(self._graph.constant(np.asarray(fixed, _INT)))
                fixed = []
            parts.append(self._computed(number).cast(_INT))
        if fixed:
            parts.append(self._graph.constant(np.asarray(fixed, _INT)))
        return parts[0] if len(parts) == 1 else self._graph.op("Concat", *parts, axis=0)

    def scalar(self, number: Any, dtype: np.dtype[Any]) -> Value:
        """Return a number without axes."""
        return self._computed(number).squeeze(0).cast(dtype)

    def target(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        """Return the target of a reshape: a single length that is not fixed is left open."""
        shape = tuple([self.simplified(length) for length in shape])
        unknown = [place for place, length in enumerate(shape) if not self.is_known(length)]
        following = [place for place, length in enumerate(shape) if follows_shapes(length)]
        open_places = unknown or following
        if len(open_places) != 1 or not all(follows_shapes(length) or length > 0 for length in shape):
            return shape
        return (*shape[: open_places[0]], -1, *shape[open_places[0] + 1 :])

    def _computed(self, number: Any) -> Value:
        """Return a vector of one element."""
        made = followed(number, self._length, self._operated)
        return made if not isinstance(made, (int, float)) else self._one(made)

    def _length(self, variable: Any, axis: int) -> Any:
        if self._is_fixed(variable, axis):
            return int(variable.shape[axis])
        value = self._value_of(variable)
        if value is None:
            raise UnknownLengthError(f"the length of axis {axis} of its result must follow from its inputs")
        key = value.name, axis
        if key not in self._read:
            self._read[key] = value.op("Shape", dtype=_INT).take([axis], 0)
        return self._read[key]

    def _one(self, number: Any) -> Value:
        return self._graph.constant([number], _REAL if isinstance(number, float) else _INT)

    def _operated(self, operation: Callable[..., Any], *operands: Any) -> Any:
        if all(isinstance(operand, (int, float)) for operand in operands):
            return operation(*operands)
        name = operation.__name__
        values = [self._one(operand) if isinstance(operand, (int, float)) else operand for operand in operands]
        is_whole = all(value.dtype == _INT for value in values)
        if not is_whole:
            values = [value.cast(_REAL) for value in values]
        if name == "product":
            return functools.reduce(operator.mul, values)
        if name in _ALIKE:
            return self._graph.op(_ALIKE[name], *values)
        return self._rounded(name, values[0], is_whole) if len(values) == 1 else self._divided(name, values, is_whole)

    def _rounded(self, name: str, value: Value, is_whole: bool) -> Value:
        """Return a number without its fraction, or as it is."""
        if name == "pos" or is_whole:
            return value
        return value.op(_ROUNDED[name]).cast(_INT) if name in _ROUNDED else value.cast(_INT)

    def _divided(self, name: str, values: list[Value], is_whole: bool) -> Value:
        """Quotients, which round down as in Python, and powers."""
        first, second = (value.cast(_REAL) for value in values)
        if name == "truediv":
            return first / second
        if name == "pow":
            return first**second
        if name == "mod" and is_whole:
            return values[0].op("Mod", values[1])
        if name == "floordiv" and is_whole:
            return (values[0] - values[0].op("Mod", values[1])) / values[1]
        if name in ("floordiv", "mod"):
            quotient = (first / second).op("Floor")
            return quotient if name == "floordiv" else first - quotient * second
        raise UnknownLengthError(f"a length must be computed by operations that ONNX has, got {name}")
