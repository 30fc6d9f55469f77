"""Reductions over axes."""

import math
from typing import Final

from nn_ext_c.emitting.activation import largest
from nn_ext_c.emitting.registry import Call, emitter, reshaped
from nn_ext_c.loops import Code, dot, number
from nn_ext_c.program import Argument, Step, Value, strides_of

_SUM: Final = "total += a;"


def axes_of(call: Call) -> list[int]:
    """Return the axes that are folded."""
    return sorted(axis % len(call.shape) for axis in call.args["axes"])


def finished(call: Call, value: Value) -> Value:
    """Return a result with or without the axes that were folded."""
    return reshaped(call.program, call.name, value, call.output_shape)


@emitter("Sum")
def _sum(call: Call) -> Value:
    return finished(call, call.reduce(axes_of(call), "0.0f", _SUM, call.x))


@emitter("Prod")
def _prod(call: Call) -> Value:
    return finished(call, call.reduce(axes_of(call), "1.0f", "total *= a;", call.x))


@emitter("Mean")
def _mean(call: Call) -> Value:
    return finished(call, mean(call, call.x, axes_of(call)))


@emitter("ReduceSum", "ReduceMean")
def _reduce_all(call: Call) -> Value:
    axes = list(range(len(call.shape)))
    return finished(call, mean(call, call.x, axes) if call.name == "ReduceMean" else call.reduce(axes, "0.0f", _SUM, call.x))


def mean(call: Call, x: Value, axes: list[int]) -> Value:
    """Means over axes, which stay."""
    count = math.prod(x.shape[axis] for axis in axes)
    return call.reduce(axes, "0.0f", _SUM, x, result=f"total / {number(count)}")


@emitter("Norm")
def _norm(call: Call) -> Value:
    p = call.args["p"]
    if p == 2:
        y = call.reduce(axes_of(call), "0.0f", "total += a * a;", call.x, result="sqrtf(total)")
    else:
        power = f"total += powf(fabsf(a), {number(p)});"
        y = call.reduce(axes_of(call), "0.0f", power, call.x, result=f"powf(total, {number(1 / p)})")
    return finished(call, y)


@emitter("Max", "Min")
def _extreme(call: Call) -> Value | list[Value]:
    axes = axes_of(call)
    if call.args["only_index"]:
        return finished(call, _index(call, axes))
    if call.name == "Max":
        values = largest(call, call.x, axes)
    else:
        values = call.reduce(axes, "INFINITY", "total = a < total || isnan(a) ? a : total;", call.x)
    values = finished(call, values)
    return [values, finished(call, _index(call, axes))] if call.args["with_index"] else values


def _index(call: Call, axes: list[int]) -> Value:
    """Return the position of the first extreme element, counted over the axes that are folded."""
    x, shape = call.x, call.shape
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    target = call.program.new([shape[axis] for axis in kept])
    code = Code()
    places = code.loops(shape[axis] for axis in kept)
    outer = dot(places, [x.strides[axis] for axis in kept])
    code.line(f"float best = x[{outer}];")
    code.line("int32_t index = 0;")
    depth = code.depth
    steps = code.loops(shape[axis] for axis in axes)
    position = dot(steps, strides_of([shape[axis] for axis in axes]))
    code.line(f"const float a = x[{outer + dot(steps, [x.strides[axis] for axis in axes])}];")
    code.open(f"if (a {'>' if call.name == 'Max' else '<'} best || (isnan(a) && !isnan(best)))")
    code.line("best = a;")
    code.line(f"index = {position};")
    code.close_to(depth)
    code.line(f"y[{dot(places, target.strides)}] = (float)index;")
    call.program.add(Step(call.name, code.text(), [Argument("x", x), Argument("y", target, True)]))
    return target


@emitter("CumSum", "CumProd")
def _cumulated(call: Call) -> Value:
    axis = call.args["axis"] % len(call.shape)
    is_sum = call.name == "CumSum"
    target = call.program.new(call.shape)
    n = call.shape[axis]
    x, y = (value.transpose([k for k in range(len(call.shape)) if k != axis] + [axis]) for value in (call.x, target))
    code = Code()
    outer = code.loops(x.shape[:-1])
    code.line(f"float total = {'0.0f' if is_sum else '1.0f'};")
    step = code.loop(n)
    place = step * -1 + (n - 1) if call.args["reverse"] else step
    code.line(f"const float a = x[{dot([*outer, place], x.strides)}];")
    lines = [f"total {'+' if is_sum else '*'}= a;", f"y[{dot([*outer, place], y.strides)}] = total;"]
    for line in lines[::-1] if call.args["exclusive"] else lines:
        code.line(line)
    call.program.add(Step(call.name, code.text(), [Argument("x", call.x), Argument("y", target, True)]))
    return target
