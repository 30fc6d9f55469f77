"""Functions that look elements up by numbers."""

import numpy as np

from nn_ext_c.emitting.registry import Call, NotExportableError, emitter, shown
from nn_ext_c.loops import Code, dot, number
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
    code.line(f"const float index = indices[{dot(middle, indices.strides)}];")
    code.open(f"if (!(index >= {-n}.0f && index < {n}.0f))")
    code.line("return 1;")
    code.close()
    code.line(f"const int32_t row = (int32_t)index + (index < 0.0f ? {n} : 0);")
    after = code.loops(x.shape[axis + 1 :])
    offset = dot([*before, *after], x.strides[:axis] + x.strides[axis + 1 :])
    row = f"row * {x.strides[axis]}" if x.strides[axis] != 1 else "row"
    place = dot([*before, *middle, *after], strides_of(call.output_shape))
    code.line(f"y[{place}] = x[{f'{offset} + ' if offset.terms else ''}{row}];")
    arguments = [Argument("x", x), Argument("indices", indices), Argument("y", target, True)]
    call.program.add(Step(call.name, code.text(), arguments, can_fail=True))
    return target


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
