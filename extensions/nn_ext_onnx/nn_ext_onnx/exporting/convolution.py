"""Convolutions."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from nn_ext_onnx.exporting.normalization import batch_normalized
from nn_ext_onnx.exporting.registry import Call, converter, size_of
from nn_ext_onnx.exporting.values import Value


def images(x: Value, shape: Sequence[int], base_axis: int, channel_last: bool = False) -> Value:
    """(B, C, *spatial): the batch axes flattened, channels first."""
    if base_axis != 1:
        x = x.reshape((size_of(shape[:base_axis]), *shape[base_axis:]))
    return channels_first(x, len(shape) - base_axis + 1, channel_last)


def channels_first(x: Value, ndim: int, channel_last: bool) -> Value:
    """Return the last axis becomes the second."""
    return x.transpose([0, ndim - 1, *range(1, ndim - 1)]) if channel_last else x


def restored(call: Call, y: Value, base_axis: int, channel_last: bool = False) -> Value:
    """Return the inverse of `images`, for a result."""
    ndim = len(call.output_shape) - base_axis + 1
    y = y.transpose([0, *range(2, ndim), 1]) if channel_last else y
    return y if base_axis == 1 else y.reshape(call.output_shape)


def geometry(args: dict[str, Any]) -> dict[str, Any]:
    """Attributes of a convolution."""
    return {"pads": [*args["pad"], *args["pad"]], "strides": args["stride"], "dilations": args["dilation"]}


@converter("Convolution")
def _convolution(call: Call) -> Value:
    return convolved(call, call[1], call.optional(2))


def convolved(call: Call, weight: Value, bias: Value | None) -> Value:
    """Return the convolution of the first input with a weight."""
    args, is_last = call.args, call.args.get("channel_last", False)
    x = images(call.x, call.shape, args["base_axis"], is_last)
    filters = channels_first(weight, len(call.shapes[1]), is_last)
    y = x.op("Conv", filters, bias, group=args["group"], **geometry(args))
    return restored(call, y, args["base_axis"], is_last)


@converter("DepthwiseConvolution")
def _depthwise_convolution(call: Call) -> Value:
    base_axis, shape = call.args["base_axis"], call.shapes[1]
    weight = call[1].reshape((shape[0], 1, *shape[1:]))
    x = images(call.x, call.shape, base_axis)
    y = x.op("Conv", weight, call.optional(2), group=call.shape[base_axis], **geometry(call.args))
    return restored(call, y, base_axis)


@converter("Deconvolution")
def _deconvolution(call: Call) -> Value:
    args, is_last = call.args, call.args["channel_last"]
    x = images(call.x, call.shape, args["base_axis"], is_last)
    weight = channels_first(call[1], len(call.shapes[1]), is_last)
    settings = {"group": args["group"], "output_padding": args["output_padding"], **geometry(args)}
    return restored(call, x.op("ConvTranspose", weight, call.optional(2), **settings), args["base_axis"], is_last)


@converter("DepthwiseDeconvolution")
def _depthwise_deconvolution(call: Call) -> Value:
    base_axis, shape = call.args["base_axis"], call.shapes[1]
    weight = call[1].reshape((shape[0], 1, *shape[1:]))
    x = images(call.x, call.shape, base_axis)
    group = call.shape[base_axis] // call.args["divisor"]
    return restored(call, x.op("ConvTranspose", weight, call.optional(2), group=group, **geometry(call.args)), base_axis)


_NONLINEARITIES: Final[dict[str, Callable[..., Value]]] = {
    "identity": lambda x: x,
    "relu": lambda x: x.op("Relu"),
    "sigmoid": lambda x: x.op("Sigmoid"),
    "tanh": lambda x: x.op("Tanh"),
    "leaky_relu": lambda x, alpha: x.op("LeakyRelu", alpha=alpha),
    "elu": lambda x, alpha: x.op("Elu", alpha=alpha),
    "relu6": lambda x: x.clip(0.0, 6.0),
}


@converter("FusedConvolution")
def _fused_convolution(call: Call) -> Value:
    args, is_last = call.args, call.args["channel_last"]
    base_axis, n_spatial = args["base_axis"], len(args["pad"])
    x = images(call.x, call.shape, base_axis, is_last)
    if any(args["pad"]):
        pads = [0, 0, *args["pad"], 0, 0, *args["pad"]]
        mode = {"constant": "constant", "reflect": "reflect"}.get(args["pad_mode"], "edge")
        x = x.op("Pad", pads, args["constant_value"] if mode == "constant" else None, mode=mode)
    filters = channels_first(call[1], len(call.shapes[1]), is_last)
    no_pad = {**geometry(args), "pads": [0] * (2 * n_spatial)}
    y = restored(call, x.op("Conv", filters, call.optional(2), group=args["group"], **no_pad), base_axis, is_last)
    if any(call.optional(index) is not None for index in range(3, 7)):
        channel = len(call.output_shape) - 1 if is_last else base_axis
        y = batch_normalized(call, y, call.output_shape, 3, (channel,))[0]
    z = call.optional(7)
    return _NONLINEARITIES[args["nonlinearity"]](y if z is None else y + z, *args["nonlinearity_args"])


@converter("DeformableConvolution")
def _deformable_convolution(call: Call) -> Value:
    call.need_opset(19, "DeformConv")
    args, is_last, base_axis = call.args, call.args["channel_last"], call.args["base_axis"]
    x = images(call.x, call.shape, base_axis, is_last)
    filters = channels_first(call[1], len(call.shapes[1]), is_last)
    counts = call.output_shape[base_axis : base_axis + 2] if is_last else call.output_shape[base_axis + 1 :]
    offset, mask = (
        None if (value := call.optional(index)) is None else _strided(call, value, index, counts) for index in (2, 3)
    )
    settings = {"group": args["group"], "offset_group": args["deformable_group"], **geometry(args)}
    settings["kernel_shape"] = call.shapes[1][1:3] if is_last else call.shapes[1][2:]
    y = x.op("DeformConv", filters, offset, call.optional(4), mask, **settings)
    return restored(call, y, base_axis, is_last)


def _strided(call: Call, value: Value, index: int, counts: Sequence[int]) -> Value:
    """Offsets are given at every place of x; read are those where the kernel stops."""
    y = images(value, call.shapes[index], call.args["base_axis"], call.args["channel_last"])
    for axis, (step, count) in enumerate(zip(call.args["stride"], counts, strict=True), start=2):
        y = y.slice(axis, 0, step * (count - 1) + 1, step)
    return y


@converter("AdaptiveSeparableConvolution")
def _adaptive_separable_convolution(call: Call) -> Value:
    counts = call.output_shape[2:]
    vertical, horizontal = (call[k].slice(2, 0, counts[0]).slice(3, 0, counts[1]) for k in (1, 2))
    rows = []
    for column in range(call.shapes[2][1]):
        total = None
        for row in range(call.shapes[1][1]):
            window = call.x.slice(2, row, row + counts[0]).slice(3, column, column + counts[1])
            term = vertical.slice(1, row, row + 1) * window
            total = term if total is None else total + term
        assert total is not None
        rows.append(horizontal.slice(1, column, column + 1) * total)
    return functools.reduce(Value.__add__, rows)


def binary_weight(weight: Value, quantize_zero_to: float) -> Value:
    """Return the signs of a weight; its zeros become a number."""
    zero = weight.graph.constant(float(quantize_zero_to))
    return weight.compare("Equal", 0.0).op("Where", zero, weight.op("Sign"), dtype=weight.dtype)
