"""Functions that look elements up by numbers."""

from collections.abc import Sequence

import numpy as np

from nn_ext_c.emitting.registry import Call, NotExportableError, copied, emitter, filled, shown
from nn_ext_c.loops import Code, Index, dot, number
from nn_ext_c.program import Argument, Step, Value, strides_of


@emitter("Embed")
def _embed(call: Call) -> Value:
    return taken(call, call[1], call[0], 0)


@emitter("Gather")
def _gather(call: Call) -> Value:
    if call.args["batch_dims"]:
        raise NotExportableError("batch_dims must be 0")
    return taken(call, call.x, call[1], call.args["axis"] % len(call.shape))


def taken(call: Call, x: Value, indices: Value, axis: int) -> Value:
    """Elements along one axis by numbers: a view or a copy if these are constants, else looked up and checked."""
    n = x.shape[axis]
    if indices.buffer.values is not None:
        picked = indices.buffer.values[indices.places()].astype(np.int64)
        if not ((picked >= -n) & (picked < n)).all():
            raise NotExportableError(f"indices must be in [-{n}, {n})")
        return shown(call.program, call.name, x.buffer, np.take(x.places(), picked, axis=axis))
    target = call.program.new(call.output_shape)
    code = Code()
    before = code.loops(x.shape[:axis])
    middle = code.loops(indices.shape)
    row = _row(code, "0", dot(middle, indices.strides), n) * x.strides[axis]
    after = code.loops(x.shape[axis + 1 :])
    offset = row + dot([*before, *after], x.strides[:axis] + x.strides[axis + 1 :])
    code.line(f"y[{dot([*before, *middle, *after], strides_of(call.output_shape))}] = x[{offset}];")
    return _looked_up(call, code, x, indices, target)


def _looked_up(call: Call, code: Code, x: Value, indices: Value, target: Value) -> Value:
    """Add a step over x, indices and the y that is returned; it ends with an error where an index is wrong."""
    arguments = [Argument("x", x), Argument("indices", indices), Argument("y", target, True)]
    call.program.add(Step(call.name, code.text(), arguments, can_fail=True))
    return target


def _row(code: Code, suffix: str, index: Index, length: int) -> Index:
    """Declare the row of an axis that an element of `indices` stands for, or end the program with an error.

    Args:
        code: the statements, in the loops over `indices`.
        suffix: what the names of variables end with.
        index: the place of the element.
        length: of the axis.
    """
    code.line(f"const float index{suffix} = indices[{index}];")
    code.open(f"if (!(index{suffix} >= {-length}.0f && index{suffix} < {length}.0f))")
    code.line("return 1;")
    code.close()
    code.line(f"const int32_t row{suffix} = (int32_t)index{suffix} + (index{suffix} < 0.0f ? {length} : 0);")
    return Index(((f"row{suffix}", 1),))


def _block(code: Code, indices: Value, counters: Sequence[Index], array: Value) -> Index:
    """Declare the rows that the first axis of `indices` names along the first axes of an array; return the block's place."""
    place = Index()
    for axis in range(indices.shape[0]):
        element = dot(counters, indices.strides[1:]) + axis * indices.strides[0]
        place = place + _row(code, str(axis), element, array.shape[axis]) * array.strides[axis]
    return place


@emitter("GatherNd")
def _gather_nd(call: Call) -> Value:
    x, indices = call.x, call[1]
    n = indices.shape[0]
    target = call.program.new(call.output_shape)
    code = Code()
    places = code.loops(indices.shape[1:])
    block = _block(code, indices, places, x)
    inner = code.loops(x.shape[n:])
    code.line(f"y[{dot([*places, *inner], target.strides)}] = x[{block + dot(inner, x.strides[n:])}];")
    return _looked_up(call, code, x, indices, target)


@emitter("ScatterNd")
def _scatter_nd(call: Call) -> Value:
    data, indices, out = call.x, call[1], call.optional(2)
    n = indices.shape[0]
    if out is None:
        target = call.program.new(call.output_shape)
        filled(call.program, call.name, "0.0f", target)
    else:
        target = copied(call.program, call.name, out)
    code = Code()
    places = code.loops(indices.shape[1:])
    block = _block(code, indices, places, target)
    inner = code.loops(target.shape[n:])
    put = "+=" if call.args["add"] else "="
    code.line(f"y[{block + dot(inner, target.strides[n:])}] {put} x[{dot([*places, *inner], data.strides)}];")
    return _looked_up(call, code, data, indices, target)


@emitter("ScatterAdd")
def _scatter_add(call: Call) -> Value:
    indices, added = call[1], call[2]
    axis = call.args["axis"] % len(call.shape)
    target = copied(call.program, call.name, call.x)
    code = Code()
    places = code.loops(indices.shape)
    strides = list(target.strides)
    row = _row(code, "0", dot(places, indices.strides), target.shape[axis]) * strides[axis]
    strides[axis] = 0
    code.line(f"y[{row + dot(places, strides)}] += x[{dot(places, added.strides)}];")
    return _looked_up(call, code, added, indices, target)


@emitter("OneHot")
def _one_hot(call: Call) -> Value:
    """One axis of classes for each number in the last axis of x, all others 0."""
    lengths = call.args["shape"]
    total: Value | None = None
    for position, length in enumerate(lengths):
        classes = call.program.constant(
            np.arange(length).reshape([length if k == position else 1 for k in range(len(lengths))]), name="classes"
        )
        column = call.x.pick(len(call.shape) - 1, position)
        for _ in lengths:
            column = column.insert(len(column.shape))
        hits = call.map(f"a == b || a + {number(length)} == b ? 1.0f : 0.0f", column, classes)
        total = hits if total is None else call.map("a * b", total, hits)
    if total is None:
        raise NotExportableError("shape must have an axis")
    return total
