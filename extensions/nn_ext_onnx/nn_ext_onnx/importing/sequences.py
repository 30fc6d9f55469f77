"""Sequences, whose lengths are known when the graph is built, and optional values."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

import nn_core.functions as F
from nn_ext_onnx.importing.builder import Scope
from nn_ext_onnx.importing.registry import SEQUENCES, Node
from nn_ext_onnx.importing.shape import sliced
from nn_ext_onnx.importing.values import AbsentValue, SequenceValue, UnsupportedError, Value, dtype_of, is_tensor


def sequence_of(node: Node, index: int = 0) -> SequenceValue:
    """Return an input that is a sequence.

    Raises:
        UnsupportedError: when it is none.
    """
    value = node[index]
    if not isinstance(value, SequenceValue):
        raise UnsupportedError(f"input {index} must be a sequence")
    return value


def _tensor(node: Node, index: int) -> Value:
    value = node[index]
    if not is_tensor(value):
        raise UnsupportedError(f"input {index} must be a tensor")
    return value


def _position(node: Node, index: int, length: int, default: int) -> int:
    """Return a position, of which negative ones count from the end."""
    given = default if node.optional(index) is None else operator.index(node.number(index))
    if not -length <= given <= length:
        raise UnsupportedError(f"position {given} of a sequence of {length}")
    return given + length if given < 0 else given


def _made(node: Node, items: Sequence[Value], dtype: np.dtype[Any]) -> list[Value | None]:
    if any(item.dtype != dtype for item in items):
        raise UnsupportedError("a sequence of values of several types")
    return [SequenceValue(node.proto.output[0], dtype, items)]


def _construct(node: Node, scope: Scope) -> list[Value | None]:
    items = [_tensor(node, index) for index in range(len(node.inputs))]
    return _made(node, items, items[0].dtype)


def _empty(node: Node, scope: Scope) -> list[Value | None]:
    return _made(node, [], dtype_of(node.attr("dtype", TensorProto.FLOAT)))


def _insert(node: Node, scope: Scope) -> list[Value | None]:
    sequence, item = sequence_of(node), _tensor(node, 1)
    at = _position(node, 2, len(sequence.items), len(sequence.items))
    dtype = sequence.dtype if sequence.items else item.dtype
    return _made(node, [*sequence.items[:at], item, *sequence.items[at:]], dtype)


def _at(node: Node, scope: Scope) -> list[Value | None]:
    sequence = sequence_of(node)
    return [sequence.items[_position(node, 1, len(sequence.items), 0)]]


def _erase(node: Node, scope: Scope) -> list[Value | None]:
    sequence = sequence_of(node)
    at = _position(node, 1, len(sequence.items), len(sequence.items) - 1)
    return _made(node, [*sequence.items[:at], *sequence.items[at + 1 :]], sequence.dtype)


def _length(node: Node, scope: Scope) -> list[Value | None]:
    sequence = sequence_of(node)
    array = np.asarray(len(sequence.items), np.int64)
    return [Value(node.proto.output[0], array.dtype, array, sources=sequence.sources)]


def _split(node: Node, scope: Scope) -> list[Value | None]:
    """Return parts along an axis, of given lengths, or of one."""
    x = _tensor(node, 0)
    axis = node.axis_of(node.attr("axis", 0))
    length = x.shape[axis]
    given = node.optional_array(1)
    if given is None or not given.ndim:
        size = 1 if given is None else int(given)
        if size < 1:
            raise UnsupportedError(f"parts of {size} elements")
        ends = [min(start + size, length) for start in range(0, length, size)]
    else:
        ends = np.cumsum(given).tolist()
        if given.min(initial=0) < 0 or (ends[-1] if ends else 0) != length:
            raise UnsupportedError(f"parts of {given.tolist()} of {length} elements")
    starts = [0, *ends[:-1]]
    is_kept = bool(node.attr("keepdims", 1)) or given is not None
    parts = [_part(x, axis, slice(start, end, 1), is_kept) for start, end in zip(starts, ends, strict=True)]
    return _made(node, parts, x.dtype)


def _part(x: Value, axis: int, chosen: slice, is_kept: bool) -> Value:
    places = [chosen if k == axis else slice(0, n, 1) for k, n in enumerate(x.shape)]
    shape = [(chosen.stop - chosen.start) if k == axis else n for k, n in enumerate(x.shape) if is_kept or k != axis]
    if x.is_known:
        return Value(x.name, x.dtype, x.array[tuple(places)].reshape(shape), sources=x.sources)
    return Value(x.name, x.dtype, variable=F.reshape(sliced(x.variable, places), shape), sources=x.sources)


def _concatenated(node: Node, scope: Scope) -> list[Value | None]:
    """Return the items next to each other, along an axis of theirs or a new one."""
    items = sequence_of(node).items
    if not items:
        raise UnsupportedError("a sequence without items")
    is_new = bool(node.attr("new_axis", 0))
    axis = node.axis_of(node.attr("axis"), items[0].ndim + is_new)
    parts = [_with_axis(item, axis) for item in items] if is_new else items
    names = [f"item {k}" for k in range(len(parts))]
    inner = Scope(scope)
    inner.update(zip(names, parts, strict=True))
    node.builder.run([helper.make_node("Concat", names, ["all items"], axis=axis)], inner)
    return [inner["all items"]]


def _with_axis(value: Value, axis: int) -> Value:
    shape = [*value.shape[:axis], 1, *value.shape[axis:]]
    if value.is_known:
        return Value(value.name, value.dtype, value.array.reshape(shape), sources=value.sources)
    return Value(value.name, value.dtype, variable=F.reshape(value.variable, shape), sources=value.sources)


def _mapped(node: Node, scope: Scope) -> list[Value | None]:
    """Return the results of a graph for the items of one or more sequences."""
    lengths = {len(value.items) for value in node.inputs if isinstance(value, SequenceValue)}
    if lengths != {len(sequence_of(node).items)}:
        raise UnsupportedError(f"sequences of {sorted(lengths)} items")
    steps = [
        node.builder.subgraph(
            node.attr("body"),
            [value.items[k] if isinstance(value, SequenceValue) else value for value in node.inputs],
            scope,
        )
        for k in range(lengths.pop())
    ]
    if not steps:
        raise UnsupportedError("sequences without items")
    return [
        SequenceValue(name, items[0].dtype, items)
        for name, items in zip(node.proto.output, map(list, zip(*steps, strict=True)), strict=True)
    ]


def _optional(node: Node, scope: Scope) -> list[Value | None]:
    """Return the value itself, or an absent one of a type."""
    return [AbsentValue(node.proto.output[0]) if node.optional(0) is None else node[0]]


def _has_element(node: Node, scope: Scope) -> list[Value | None]:
    value = node.optional(0)
    array = np.asarray(value is not None and not isinstance(value, AbsentValue))
    sources = frozenset() if value is None else value.sources
    return [Value(node.proto.output[0], array.dtype, array, sources=sources)]


def _get_element(node: Node, scope: Scope) -> list[Value | None]:
    if isinstance(node[0], AbsentValue):
        raise UnsupportedError("an optional value that is absent")
    return [node[0]]


def _identity(node: Node, scope: Scope) -> list[Value | None]:
    return [node[0]]


def given_value(name: str, data: Any, dtype: np.dtype[Any]) -> Value:
    """Return an input of texts, a sequence or an optional value as a known one: arrays, lists of them or None."""
    sources = frozenset({name})
    if data is None:
        return AbsentValue(name, sources)
    if not isinstance(data, (list, tuple)):
        return Value(name, dtype, np.asarray(data).astype(dtype), sources=sources)
    value = SequenceValue(name, dtype, [given_value(name, item, dtype) for item in data])
    value.sources = sources
    return value


def plain(value: Value) -> Any:
    """Return an output that no variable holds: an array of texts, a list of variables or arrays of texts, or None."""
    if isinstance(value, AbsentValue):
        return None
    if isinstance(value, SequenceValue):
        return [plain(item) for item in value.items]
    return value.array if value.dtype.kind == "O" else value.variable


def equal(a: Any, b: Any) -> bool:
    """Return whether two inputs are equal: arrays, lists of them or None."""
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        both = isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b)
        return both and all(map(equal, a, b))
    if a is None or b is None:
        return a is b
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


SEQUENCES.update(
    {
        "SequenceConstruct": _construct,
        "SequenceEmpty": _empty,
        "SequenceInsert": _insert,
        "SequenceAt": _at,
        "SequenceErase": _erase,
        "SequenceLength": _length,
        "SequenceMap": _mapped,
        "SplitToSequence": _split,
        "ConcatFromSequence": _concatenated,
        "Optional": _optional,
        "OptionalHasElement": _has_element,
        "OptionalGetElement": _get_element,
        "Identity": _identity,
    }
)
