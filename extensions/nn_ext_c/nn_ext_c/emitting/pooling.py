"""Poolings."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_ext_c.emitting.reduction import mean
from nn_ext_c.emitting.registry import Call, emitter, filled, reshaped
from nn_ext_c.loops import Code, Index, dot
from nn_ext_c.program import Argument, Step, Value


def spatial_last(value: Value, n_spatial: int, channel_last: bool) -> Value:
    """Return the channels before the spatial axes."""
    n = len(value.shape)
    if not channel_last:
        return value
    return value.transpose([*range(n - n_spatial - 1), n - 1, *range(n - n_spatial - 1, n - 1)])


def images(call: Call, value: Value) -> Value:
    """Return an array of a pooling with the channels before the spatial axes."""
    return spatial_last(value, len(call.args["kernel"]), call.args["channel_last"])


def windows_over(call: Call, y: Value, x: Value) -> tuple[Code, list[Index], int]:
    """Open the loops over y and declare the window of x at each place; return them and the number of axes without windows."""
    args: dict[str, Any] = call.args
    lead = len(x.shape) - len(args["kernel"])
    code = Code()
    places = code.loops(y.shape)
    code.windows(y.shape[lead:], x.shape[lead:], args["kernel"], args["stride"], args["pad"], places[lead:])
    return code, places, lead


def pooled(call: Call, start: str, update: str, result: str, divisors: Sequence[Value] = ()) -> Value:
    """Each place of y from the elements of its window that are inside x."""
    target = call.program.new(call.output_shape)
    x, y = (images(call, value) for value in (call.x, target))
    code, places, lead = windows_over(call, y, x)
    code.line(f"float total = {start};")
    depth = code.depth
    counters = code.window_loops(len(x.shape) - lead)
    code.line(f"const float a = x[{dot([*places[:lead], *counters], x.strides)}];")
    code.line(update)
    code.close_to(depth)
    for k in range(len(divisors)):
        code.line(f"total /= count{k}[{places[lead + k]}];")
    code.line(f"y[{dot(places, y.strides)}] = {result};")
    counts = [Argument(f"count{k}", value) for k, value in enumerate(divisors)]
    call.program.add(Step(call.name, code.text(), [Argument("x", call.x), *counts, Argument("y", target, True)]))
    return target


@emitter("MaxPooling")
def _max_pooling(call: Call) -> Value:
    return pooled(call, "-INFINITY", "total = a > total || isnan(a) ? a : total;", "total")


@emitter("MaxPoolingBackward")
def _max_pooling_backward(call: Call) -> Value:
    """Add each gradient to the place of the first maximum of its window; NaN is the largest."""
    target = call.program.new(call.output_shape)
    filled(call.program, call.name, "0.0f", target)
    g, x, y = (images(call, value) for value in (call[0], call[1], target))
    code, places, lead = windows_over(call, g, x)
    code.line("float top = 0.0f;")
    code.line("int32_t place = -1;")
    depth = code.depth
    counters = [*places[:lead], *code.window_loops(len(x.shape) - lead)]
    code.line(f"const float a = x[{dot(counters, x.strides)}];")
    code.open("if (place < 0 || a > top || (isnan(a) && !isnan(top)))")
    code.line("top = a;")
    code.line(f"place = {dot(counters, y.strides)};")
    code.close_to(depth)
    code.open("if (place >= 0)")
    code.line(f"y[place] += g[{dot(places, g.strides)}];")
    arguments = [Argument("g", call[0]), Argument("x", call[1]), Argument("y", target, True)]
    call.program.add(Step(call.name, code.text(), arguments))
    return target


@emitter("SumPooling")
def _sum_pooling(call: Call) -> Value:
    return pooled(call, "0.0f", "total += a;", "total")


@emitter("AveragePooling")
def _average_pooling(call: Call) -> Value:
    """Return sums, divided by the product of the numbers of elements along each axis."""
    return pooled(call, "0.0f", "total += a;", "total", [call.program.constant(c, name="counts") for c in window_counts(call)])


def window_counts(call: Call) -> list[np.ndarray[Any, Any]]:
    """Return the number of elements that the windows count along each axis."""
    args = call.args
    n_spatial, is_last = len(args["kernel"]), args["channel_last"]
    end = len(call.shape) - is_last
    lengths, counts = (shape[end - n_spatial : end] for shape in (call.shape, call.output_shape))
    found = []
    for n, count, kernel, stride, pad in zip(lengths, counts, args["kernel"], args["stride"], args["pad"], strict=True):
        start = np.arange(count) * stride - pad
        stop = np.minimum(start + kernel, n + pad)
        if not args["including_pad"]:
            start, stop = np.maximum(start, 0), np.minimum(stop, n)
        found.append(stop - start)
    return found


@emitter("GlobalAveragePooling")
def _global_average_pooling(call: Call) -> Value:
    return reshaped(call.program, call.name, mean(call, call.x, list(range(2, len(call.shape)))), call.output_shape)
