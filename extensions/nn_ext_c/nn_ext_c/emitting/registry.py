"""The table of emitters: which writes which function of nn_core, and what they are written with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from nn_ext_c.loops import Code, dot, merged
from nn_ext_c.program import Argument, Array, Buffer, Program, Shape, Step, Value, strides_of, whole

#: Names of inputs in expressions.
_LETTERS: Final = "abcdefgh"


class NotExportableError(Exception):
    """A call that has no form in C; the text says why."""


@dataclass(slots=True)
class Call:
    """One function of the graph that is exported.

    Attributes:
        program: what steps are added to.
        name: of the function.
        inputs: its inputs in the order of its specification, None where optional ones are left out.
        args: its settings.
        output_shapes: the shapes of its visible outputs.
        run: the results of the function on other inputs and with other settings, as nn_core computes them.
    """

    program: Program
    name: str
    inputs: list[Value | None]
    args: dict[str, Any]
    output_shapes: list[Shape]
    run: Callable[[Sequence[Array], dict[str, Any]], list[Array]]

    @property
    def x(self) -> Value:
        """The first input."""
        return self[0]

    @property
    def shape(self) -> Shape:
        """The shape of the first input."""
        return self.x.shape

    @property
    def output_shape(self) -> Shape:
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

    def array(self, index: int) -> Array:
        """Return the numbers of an input that is a constant.

        Raises:
            NotExportableError: when it is computed.
        """
        return array_of(self[index], f"input {index}")

    def moved(self, settings: dict[str, Any]) -> list[Array]:
        """For each element of the results of a function that moves elements, the number of the element of x, from 1 on."""
        return numbers_moved(self.shape, lambda numbers: self.run([numbers], settings))

    def map(self, expression: str, *values: Value, into: Value | None = None) -> Value:
        """Element by element, with broadcasting; `a`, `b`, ... in the expression are elements of `values`."""
        return mapped(self.program, self.name, expression, values, into)

    def reduce(self, axes: Sequence[int], start: str, update: str, *values: Value, result: str = "total") -> Value:
        """Fold over axes, which stay with length 1.

        Args:
            axes: what is folded.
            start: the value of `total` before.
            update: a statement that changes `total` by elements `a`, `b`, ... of `values`, which are broadcast.
            values: the arrays.
            result: an expression of `total`.
        """
        return reduced(self.program, self.name, axes, start, update, values, result)


def numbers_moved(shape: Shape, run: Callable[[Array], list[Array]]) -> list[Array]:
    """Return the results of a function that moves elements, for their numbers; 0 is between them."""
    numbers = np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape)
    return [np.rint(array).astype(np.int64) for array in run(numbers)]


def array_of(value: Value, what: str) -> Array:
    """Return the numbers of a value that is a constant.

    Raises:
        NotExportableError: when it is computed.
    """
    values = value.buffer.values
    if values is None:
        raise NotExportableError(f"{what} must be a constant, got one that is computed")
    return values[value.places()]


Emitter: TypeAlias = "Callable[[Call], Value | Sequence[Value]]"

EMITTERS: Final[dict[str, Emitter]] = {}


def emitter(*names: str) -> Callable[[Emitter], Emitter]:
    """Register the decorated function for functions of nn_core."""

    def decorate(function: Emitter) -> Emitter:
        for name in names:
            EMITTERS[name] = function
        return function

    return decorate


def mapped(program: Program, title: str, expression: str, values: Sequence[Value], into: Value | None = None) -> Value:
    """Return a step that computes an expression element by element."""
    shape = np.broadcast_shapes(*(value.shape for value in values)) if into is None else into.shape
    target = program.new(shape) if into is None else into
    wide = [value.broadcast(shape) for value in values]
    lengths, (out, *ins) = merged(shape, [target.strides, *(value.strides for value in wide)])
    code = Code()
    counters = code.loops(lengths)
    arguments = [Argument(f"x{k}", value) for k, value in enumerate(wide)]
    for letter, argument, strides in zip(_LETTERS, arguments, ins, strict=False):
        code.line(f"const float {letter} = {argument.name}[{dot(counters, strides)}];")
    code.line(f"y[{dot(counters, out)}] = {expression};")
    in_place = [a for a in arguments if a.value.is_whole and _is_only_view(a.value, wide)] if target.is_whole else []
    program.add(Step(title, code.text(), [*arguments, Argument("y", target, True)], in_place))
    return target


def _is_only_view(value: Value, values: Sequence[Value]) -> bool:
    """Return whether no other value reads the memory of this one in another order."""
    return all(other == value for other in values if other.buffer is value.buffer)


def reduced(
    program: Program, title: str, axes: Sequence[int], start: str, update: str, values: Sequence[Value], result: str
) -> Value:
    """Return a step that folds elements over axes; see `Call.reduce`."""
    shape = np.broadcast_shapes(*(value.shape for value in values))
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    target = program.new([1 if axis in axes else length for axis, length in enumerate(shape)])
    wide = [value.broadcast(shape) for value in values]

    def part(some: Sequence[int], *all_strides: Shape) -> tuple[Shape, list[Shape]]:
        return merged([shape[k] for k in some], [tuple(strides[k] for k in some) for strides in all_strides])

    outer, (out, *outer_strides) = part(kept, target.strides, *(value.strides for value in wide))
    inner, inner_strides = part(sorted(axes), *(value.strides for value in wide))
    code = Code()
    places = code.loops(outer)
    code.line(f"float total = {start};")
    depth = code.depth
    steps = code.loops(inner)
    for letter, k in zip(_LETTERS, range(len(wide)), strict=False):
        code.line(f"const float {letter} = x{k}[{dot(places, outer_strides[k]) + dot(steps, inner_strides[k])}];")
    code.line(update)
    code.close_to(depth)
    code.line(f"y[{dot(places, out)}] = {result};")
    arguments = [Argument(f"x{k}", value) for k, value in enumerate(wide)]
    program.add(Step(title, code.text(), [*arguments, Argument("y", target, True)]))
    return target


def filled(program: Program, title: str, constant: str, into: Value) -> None:
    """Compute a step that writes one number everywhere."""
    lengths, (strides,) = merged(into.shape, [into.strides])
    code = Code()
    counters = code.loops(lengths)
    code.line(f"y[{dot(counters, strides)}] = {constant};")
    program.add(Step(title, code.text(), [Argument("y", into, True)]))


def copied(program: Program, title: str, value: Value, into: Value | None = None) -> Value:
    """Return a step that copies an array, into memory of its own if no other is given."""
    if value.buffer.dtype == "float32":
        return mapped(program, title, "a", [value], into)
    target = program.new(value.shape, value.buffer.dtype) if into is None else into
    lengths, (out, strides) = merged(value.shape, [target.strides, value.strides])
    code = Code()
    counters = code.loops(lengths)
    code.line(f"y[{dot(counters, out)}] = x0[{dot(counters, strides)}];")
    argument = Argument("x0", value)
    program.add(Step(title, code.text(), [argument, Argument("y", target, True)]))
    return target


def delivered(program: Program, name: str, value: Value) -> Value:
    """Return a value in memory of the caller: the step that makes it writes there if nothing else needs a copy."""
    if value.buffer.kind == "arena" and value.is_whole:
        value.buffer.kind, value.buffer.name = "output", name
        return value
    return copied(program, "copy", value, whole(Buffer(value.size, value.buffer.dtype, "output", name), value.shape))


def reshaped(program: Program, title: str, value: Value, shape: Sequence[int]) -> Value:
    """Return the same elements in another shape, copied where strides cannot express it."""
    if value.is_whole or value.size == 1:
        return Value(value.buffer, tuple(shape), strides_of(shape), value.offset)
    return shown(program, title, value.buffer, value.places().reshape(tuple(shape)))


def shown(program: Program, title: str, source: Buffer, places: Array, border: str = "0.0f") -> Value:
    """Return the elements of a buffer at `places`, `border` where these are negative: a view if strides can express it.

    Else they are copied: with a table of places for each axis, or, where the axes depend on each other, for every element.
    """
    steps = _separable(places)
    if steps is not None:
        base, tables = steps
        strides = [_stride(table) for table in tables]
        if None not in strides:
            return Value(source, places.shape, tuple(stride or 0 for stride in strides), base)
        return _by_tables(program, title, source, places.shape, base, tables)
    inner = _inside(places)
    if inner is not None:
        target = program.new(places.shape, source.dtype)
        filled(program, title, border, target)
        into = Value(target.buffer, places[inner].shape, target.strides, int(target.places()[inner].flat[0]))
        copied(program, title, shown(program, title, source, places[inner]), into)
        return target
    table = program.constant(places.reshape(-1), "int32", "places")
    target = program.new(places.shape, source.dtype)
    code = Code()
    (counter,) = code.loops([places.size])
    element = f"x0[table[{counter}]]"
    code.line(f"y[{counter}] = {f'table[{counter}] < 0 ? {border} : {element}' if (places < 0).any() else element};")
    arguments = [Argument("x0", _all_of(source)), Argument("table", table), Argument("y", target, True)]
    program.add(Step(title, code.text(), arguments))
    return target


def _all_of(source: Buffer) -> Value:
    return Value(source, (source.size,), (1,))


def _separable(places: Array) -> tuple[int, list[Array]] | None:
    """Places as the sum of a number and a table for each axis, if they are such a sum and none is negative."""
    if (places < 0).any():
        return None
    base = int(places.flat[0])
    total = np.full((), base)
    tables = []
    for axis, length in enumerate(places.shape):
        table = places[(0,) * axis + (slice(None),) + (0,) * (places.ndim - axis - 1)] - base
        tables.append(table)
        total = total + table.reshape((length,) + (1,) * (places.ndim - axis - 1))
    return (base, tables) if np.array_equal(total, places) else None


def _stride(table: Array) -> int | None:
    if len(table) == 1:
        return 0
    return int(table[1]) if (np.diff(table) == table[1]).all() else None


def _by_tables(program: Program, title: str, source: Buffer, shape: Shape, base: int, tables: Sequence[Array]) -> Value:
    target = program.new(shape, source.dtype)
    code = Code()
    counters = code.loops(shape)
    offset = dot([], [])
    looked_up = []
    arguments = [Argument("x0", Value(source, (), (), base))]
    for axis, (counter, table) in enumerate(zip(counters, tables, strict=True)):
        stride = _stride(table)
        if stride is not None:
            offset = offset + counter * stride
            continue
        arguments.append(Argument(f"table{axis}", program.constant(table, "int32", "places")))
        looked_up.append(f"table{axis}[{counter}]")
    terms = [*looked_up, *([str(offset)] if offset.terms else [])]
    code.line(f"y[{dot(counters, target.strides)}] = x0[{' + '.join(terms)}];")
    program.add(Step(title, code.text(), [*arguments, Argument("y", target, True)]))
    return target


def _inside(places: Array) -> tuple[slice, ...] | None:
    """Return the box of the places that are not negative, if these fill it."""
    is_inside = places >= 0
    if not is_inside.any() or is_inside.all():
        return None
    others = [tuple(k for k in range(places.ndim) if k != axis) for axis in range(places.ndim)]
    edges = [np.flatnonzero(is_inside.any(axis=axes)) for axes in others]
    box = tuple(slice(int(edge[0]), int(edge[-1]) + 1) for edge in edges)
    return box if is_inside[box].all() else None
