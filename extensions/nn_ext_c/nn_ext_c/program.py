"""A network as steps over buffers: what is read off it is C source, and the memory that it needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

#: Types of C by the dtypes of buffers.
C_TYPES: Final = {
    "float32": "float",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "uint8": "uint8_t",
    "uint32": "uint32_t",
}


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory of a network.

    Attributes:
        size: in elements.
        dtype: "float32", "int8", "int32" or, for constants, "int16" and "uint8"; "uint32" is a count of updates.
        kind: "arena", "constant", an "input" or "output" of the caller, or "kept" by the context between calls.
        name: in C; those in the arena have none.
        values: of a constant.
    """

    size: int
    dtype: str = "float32"
    kind: str = "arena"
    name: str = ""
    values: Array | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """An array in a buffer: element (i, j, ...) is at ``offset + i * strides[0] + j * strides[1] + ...``."""

    buffer: Buffer
    shape: Shape
    strides: Shape
    offset: int = 0

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def is_whole(self) -> bool:
        """Whether the elements fill the buffer in their order."""
        wanted = strides_of(self.shape)
        pairs = zip(self.shape, self.strides, wanted, strict=True)
        return not self.offset and self.size == self.buffer.size and all(n == 1 or s == w for n, s, w in pairs)

    def places(self) -> Array:
        """Return the position of each element in the buffer, in the shape of this value."""
        total = np.full(self.shape, self.offset, np.int64)
        for axis, (length, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            total += (np.arange(length) * stride).reshape((-1,) + (1,) * (len(self.shape) - axis - 1))
        return total

    def broadcast(self, shape: Sequence[int]) -> Value:
        """Return this value repeated along new leading axes and those of length 1."""
        added = len(shape) - len(self.shape)
        pairs = zip(self.shape, self.strides, shape[added:], strict=True)
        strides = (0,) * added + tuple(stride if n == wanted else 0 for n, stride, wanted in pairs)
        return Value(self.buffer, tuple(shape), strides, self.offset)

    def transpose(self, axes: Sequence[int]) -> Value:
        """Return the axes in another order."""
        return Value(self.buffer, tuple(self.shape[k] for k in axes), tuple(self.strides[k] for k in axes), self.offset)

    def at(self, axis: int, start: int, length: int) -> Value:
        """`length` elements of one axis from `start` on."""
        shape = (*self.shape[:axis], length, *self.shape[axis + 1 :])
        return Value(self.buffer, shape, self.strides, self.offset + start * self.strides[axis])

    def pick(self, axis: int, place: int) -> Value:
        """One element of an axis, which is removed."""
        one = self.at(axis, place, 1)
        return Value(self.buffer, one.shape[:axis] + one.shape[axis + 1 :], _without(self.strides, axis), one.offset)

    def insert(self, axis: int) -> Value:
        """Return a new axis of length 1."""
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        return Value(self.buffer, shape, (*self.strides[:axis], 0, *self.strides[axis:]), self.offset)


def _without(values: Shape, axis: int) -> Shape:
    return values[:axis] + values[axis + 1 :]


def strides_of(shape: Sequence[int]) -> Shape:
    """Strides of an array in row-major order."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


@dataclass(frozen=True, slots=True)
class Argument:
    """A pointer that a step gets."""

    name: str
    value: Value
    is_written: bool = False


@dataclass(slots=True)
class Step:
    """One call in the network.

    Attributes:
        title: what it computes, from which the name of its function is made.
        body: the statements of its function, over the names of the arguments.
        arguments: pointers, in order.
        in_place: arguments that may have the memory of the one that is written, if they are read nowhere later.
        can_fail: whether the function returns 1 where an input is wrong.
    """

    title: str
    body: str
    arguments: list[Argument]
    in_place: list[Argument] = field(default_factory=list)
    can_fail: bool = False

    @property
    def signature(self) -> str:
        """The parameters of the function in C."""
        return ", ".join(
            f"{'' if argument.is_written else 'const '}{C_TYPES[argument.value.buffer.dtype]} *{argument.name}"
            for argument in self.arguments
        )

    @property
    def written(self) -> list[Buffer]:
        """The buffers that are written."""
        return [argument.value.buffer for argument in self.arguments if argument.is_written]

    @property
    def read(self) -> list[Buffer]:
        """The buffers that are read."""
        return [argument.value.buffer for argument in self.arguments if not argument.is_written]


class Program:
    """Steps and constants of a network that grows.

    Args:
        beside: a program of the same source, with which this one shares constants.
    """

    def __init__(self, beside: Program | None = None) -> None:
        self.steps: list[Step] = []
        self.inputs: dict[str, Value] = {}
        self.outputs: dict[str, Value] = {}
        #: Scale and zero of inputs and outputs that are integers.
        self.scales: dict[Buffer, tuple[float, int]] = {}
        self._constants: dict[tuple[str, Shape, bytes], Value] = {} if beside is None else beside._constants

    def new(self, shape: Sequence[int], dtype: str = "float32") -> Value:
        """Return an array in memory of its own."""
        return whole(Buffer(math.prod(shape), dtype), shape)

    def constant(self, values: Any, dtype: str = "float32", name: str = "constant") -> Value:
        """Return an array that is written into the source; equal ones are written once."""
        array = np.ascontiguousarray(values, dtype=dtype).reshape(np.shape(values))
        key = (dtype, array.shape, array.tobytes())
        if key not in self._constants:
            buffer = Buffer(array.size, dtype, "constant", name, array.reshape(-1))
            self._constants[key] = whole(buffer, array.shape)
        return self._constants[key]

    def add(self, step: Step) -> None:
        """Append a step."""
        self.steps.append(step)

    def keep_used(self) -> None:
        """Drop steps whose results nothing reads, and which nothing keeps."""
        needed = {value.buffer for value in self.outputs.values()}
        needed.update(buffer for step in self.steps for buffer in step.written if buffer.kind == "kept")
        kept = []
        for step in reversed(self.steps):
            if needed.intersection(step.written):
                needed.update(step.read)
                kept.append(step)
        self.steps = kept[::-1]

    def constants(self) -> list[Buffer]:
        """Return the constants that steps read, in the order of their first use."""
        used = (buffer for step in self.steps for buffer in step.read if buffer.kind == "constant")
        return list(dict.fromkeys(used))


def whole(buffer: Buffer, shape: Sequence[int]) -> Value:
    """Return a value that fills a buffer."""
    return Value(buffer, tuple(shape), strides_of(shape))
