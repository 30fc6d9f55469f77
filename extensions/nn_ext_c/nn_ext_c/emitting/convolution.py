"""Convolutions and deconvolutions over any number of spatial axes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from nn_ext_c.emitting.activation import SIGMOID
from nn_ext_c.emitting.blocks import Totals, blocks, last_in_memory
from nn_ext_c.emitting.normalization import scaled_by_statistics
from nn_ext_c.emitting.registry import Call, NotExportableError, emitter, reshaped
from nn_ext_c.loops import Code, Index, dot, number
from nn_ext_c.program import Argument, Shape, Step, Value


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shapes of a convolution.

    Attributes:
        x: (batch, groups, channels of a group, *lengths).
        weight: (groups, filters of a group, channels of a group, *kernel); of a deconvolution the two in the middle
            are exchanged.
        y: (batch, groups, filters of a group, *counts).
    """

    x: Value
    weight: Value
    y: Value
    pad: Shape
    stride: Shape
    dilation: Shape

    @property
    def kernel(self) -> Shape:
        """The lengths of the kernel."""
        return self.weight.shape[3:]


def images(call: Call, x: Value, base_axis: int, channel_last: bool = False) -> Value:
    """(batch, channels, *spatial): the batch axes flattened, channels first."""
    shape = (math.prod(x.shape[:base_axis]), *x.shape[base_axis:])
    return channels_first(reshaped(call.program, call.name, x, shape), channel_last)


def channels_first(x: Value, channel_last: bool) -> Value:
    """Return the last axis becomes the second."""
    n = len(x.shape)
    return x.transpose([0, n - 1, *range(1, n - 1)]) if channel_last else x


def result_images(y: Value, base_axis: int, channel_last: bool) -> Value:
    """Return a new result, which is whole, as images."""
    shape = (math.prod(y.shape[:base_axis]), *y.shape[base_axis:])
    strides = (math.prod(y.shape[base_axis:]), *y.strides[base_axis:])
    return channels_first(Value(y.buffer, shape, strides, y.offset), channel_last)


def grouped(x: Value, axis: int, groups: int) -> Value:
    """Return an axis cut into groups."""
    n, stride = x.shape[axis] // groups, x.strides[axis]
    shape = (*x.shape[:axis], groups, n, *x.shape[axis + 1 :])
    return Value(x.buffer, shape, (*x.strides[:axis], n * stride, stride, *x.strides[axis + 1 :]), x.offset)


def checked_place(code: Code, place: Index, low_is_safe: bool, high: int | None) -> str:
    """Return a place in x as a variable; rounds of the loop whose place is outside end."""
    name = f"p{code.depth}"
    code.line(f"const int32_t {name} = {place};")
    checks = [] if low_is_safe else [f"{name} < 0"]
    checks += [] if high is None else [f"{name} >= {high}"]
    if checks:
        code.open(f"if ({' || '.join(checks)})")
        code.line("continue;")
        code.close()
    return name


def geometry_of(call: Call, weight: Value, groups: int) -> tuple[Geometry, Value]:
    """Return the shapes of a call, and its new result."""
    args = call.args
    base_axis, is_last = args["base_axis"], args.get("channel_last", False)
    x = images(call, call.x, base_axis, is_last)
    y = call.program.new(call.output_shape)
    filters = grouped(weight, 0, groups)
    made = Geometry(
        grouped(x, 1, groups),
        filters,
        grouped(result_images(y, base_axis, is_last), 1, groups),
        tuple(args["pad"]),
        tuple(args["stride"]),
        tuple(args["dilation"]),
    )
    return made, y


@emitter("Convolution")
def _convolution(call: Call) -> Value:
    weight = channels_first(call[1], call.args["channel_last"])
    geometry, y = geometry_of(call, weight, call.args["group"])
    convolved(call, geometry, call.optional(2), window_places)
    return y


@emitter("DepthwiseConvolution")
def _depthwise_convolution(call: Call) -> Value:
    geometry, y = geometry_of(call, call[1].insert(1), call.shape[call.args["base_axis"]])
    convolved(call, geometry, call.optional(2), window_places)
    return y


#: Opens the loops over a window, at a place of y, and gives where its elements are in x and in the weight.
Opening: TypeAlias = Callable[[Code, Geometry, Index, Index, Index, Sequence[Index]], tuple[Index, Index]]


def convolved(call: Call, g: Geometry, bias: Value | None, opened: Opening, filters: int = 1) -> None:
    """Compute each place of y from its window, which `opened` gives; several filters at once where the weight is a constant.

    Args:
        call: the function.
        g: its shapes.
        bias: of each filter.
        opened: opens the loops over a window.
        filters: the axis of the weight that filters have.
    """
    count = g.y.shape[2]
    if count < 2 or g.weight.buffer.kind != "constant":
        _convolved(call, g, bias, opened, 0, count, 1)
        return
    g = replace(g, weight=last_in_memory(call.program, g.weight, filters))
    for first, length, block in blocks(count):
        _convolved(call, g, bias, opened, first, length, block)


def _convolved(call: Call, g: Geometry, bias: Value | None, opened: Opening, first: int, length: int, block: int) -> None:
    """Compute `length` filters from number `first` on, `block` at once."""
    code = Code()
    b, group, number_, *counts = code.loops([*g.y.shape[:2], length // block, *g.y.shape[3:]])
    filter_ = number_ * block + first
    biases = None if bias is None else grouped(bias, 0, g.y.shape[1]).strides
    totals = Totals(code, block)
    totals.begin("0.0f" if biases is None else f"bias[{dot([group, filter_ + totals.lane], biases)}]")
    offset, weight_at = opened(code, g, b, group, filter_, counts)
    totals.add(f"x[{offset}]", f"w[{weight_at + totals.lane}]")
    place = dot([b, group, filter_ + totals.lane, *counts], g.y.strides)
    totals.store(f"y[{place}]")
    arguments = [Argument("x", g.x), Argument("w", g.weight), *([Argument("bias", bias)] if bias else [])]
    call.program.add(Step(call.name, code.text(), [*arguments, Argument("y", g.y, True)]))


def window_places(
    code: Code, g: Geometry, b: Index, group: Index, filter_: Index, counts: Sequence[Index]
) -> tuple[Index, Index]:
    """Open the loops over a window, and give where its elements are in x and in the weight."""
    channel = code.loop(g.x.shape[2])
    offset = dot([b, group, channel], g.x.strides[:3])
    weight_at = dot([group, filter_, channel], g.weight.strides[:3])
    for axis, (count, length) in enumerate(zip(counts, g.kernel, strict=True)):
        k = code.loop(length)
        place = count * g.stride[axis] + k * g.dilation[axis] + -g.pad[axis]
        n, stride = g.x.shape[3 + axis], g.x.strides[3 + axis]
        reach = (g.y.shape[3 + axis] - 1) * g.stride[axis] + (length - 1) * g.dilation[axis] - g.pad[axis]
        weight_at = weight_at + k * g.weight.strides[3 + axis]
        if not g.pad[axis] and reach < n:
            offset = offset + place * stride
        else:
            offset = offset + window_place(code, k, place, g.pad[axis] == 0, n if reach >= n else None) * stride
    return offset, weight_at


def window_place(code: Code, k: Index, place: Index, low_is_safe: bool, high: int | None) -> Index:
    """Return the place as a variable that is inside; a loop that has no counter of its own gets one round to leave."""
    if not k.terms:
        code.open("for (int32_t once = 0; once < 1; ++once)")
    return Index(((checked_place(code, place, low_is_safe, high), 1),))


@emitter("Deconvolution")
def _deconvolution(call: Call) -> Value:
    weight = channels_first(call[1], call.args["channel_last"])
    geometry, y = geometry_of(call, weight, call.args["group"])
    convolved(call, geometry, call.optional(2), source_places, 2)
    return y


@emitter("DepthwiseDeconvolution")
def _depthwise_deconvolution(call: Call) -> Value:
    groups = call.shape[call.args["base_axis"]] // call.args["divisor"]
    geometry, y = geometry_of(call, call[1].insert(1), groups)
    convolved(call, geometry, call.optional(2), source_places, 2)
    return y


def source_places(
    code: Code, g: Geometry, b: Index, group: Index, filter_: Index, counts: Sequence[Index]
) -> tuple[Index, Index]:
    """As `window_places`, of a deconvolution: the elements of x whose windows hold a place of y."""
    channel = code.loop(g.x.shape[2])
    offset = dot([b, group, channel], g.x.strides[:3])
    weight_at = dot([group, channel, filter_], g.weight.strides[:3])
    for axis, (count, length) in enumerate(zip(counts, g.kernel, strict=True)):
        k = code.loop(length)
        weight_at = weight_at + k * g.weight.strides[3 + axis]
        place = window_place(code, k, count + k * -g.dilation[axis] + g.pad[axis], False, None)
        step = g.stride[axis]
        name = str(place)
        checks = [f"{name} % {step} != 0"] if step > 1 else []
        checks.append(f"{name} / {step} >= {g.x.shape[3 + axis]}" if step > 1 else f"{name} >= {g.x.shape[3 + axis]}")
        code.open(f"if ({' || '.join(checks)})")
        code.line("continue;")
        code.close()
        stride = g.x.strides[3 + axis]
        offset = offset + (place if step == 1 else Index(((f"({name} / {step})", 1),))) * stride
    return offset, weight_at


_NONLINEARITIES: Final[dict[str, str]] = {
    "relu": "a < 0.0f ? 0.0f : a",
    "sigmoid": SIGMOID,
    "tanh": "tanhf(a)",
    "leaky_relu": "a > 0.0f ? a : {0} * a",
    "elu": "a > 0.0f ? a : {0} * expm1f(a)",
    "relu6": "a < 0.0f ? 0.0f : a > 6.0f ? 6.0f : a",
}


@emitter("FusedConvolution")
def _fused_convolution(call: Call) -> Value | list[Value]:
    args: dict[str, Any] = call.args
    is_plain = args["pad_mode"] == "constant" and args["constant_value"] == 0
    if any(args["pad"]) and not is_plain:
        raise NotExportableError("pad_mode must be 'constant' with 0; pad before")
    if len(call.output_shapes) > 1:
        raise NotExportableError("statistics of the batch are for training")
    geometry, y = geometry_of(call, channels_first(call[1], args["channel_last"]), args["group"])
    convolved(call, geometry, call.optional(2), window_places)
    if any(call.optional(index) is not None for index in range(3, 7)):
        channel = len(call.output_shape) - 1 if args["channel_last"] else args["base_axis"]
        y = scaled_by_statistics(call, y, 3, [channel])
    z = call.optional(7)
    y = y if z is None else call.map("a + b", y, z)
    if args["nonlinearity"] == "identity":
        return y
    numbers: Sequence[str] = [number(value) for value in args["nonlinearity_args"]]
    return call.map(_NONLINEARITIES[args["nonlinearity"]].format(*numbers), y)
