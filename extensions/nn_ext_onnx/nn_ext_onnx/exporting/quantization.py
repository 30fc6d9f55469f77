"""Quantization: rounding of values to few levels, and layers with such weights."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nn_ext_onnx.exporting.arithmetic import where
from nn_ext_onnx.exporting.convolution import binary_weight, convolved
from nn_ext_onnx.exporting.linear import affine
from nn_ext_onnx.exporting.registry import Call, NotExportableError, converter, expressions, size_of
from nn_ext_onnx.exporting.values import FLOAT, INT, Value

_TINY = float(np.finfo(np.float32).tiny)
_BYTES: Final = (np.dtype(np.int8), np.dtype(np.uint8))
_INT32: Final = np.dtype(np.int32)


def _round(x: Value) -> Value:
    return x.op("Sign") * (x.op("Abs") + 0.5).op("Floor")


def _log2(x: Value) -> Value:
    return x.op("Max", _TINY).op("Log") / math.log(2)


def _fixed_point(x: Value, sign: bool, n: int, delta: float, ste_fine_grained: bool) -> Value:
    high = (2 ** (n - sign) - 1) * delta
    return (_round(x / delta) * delta).clip(-high if sign else 0.0, high)


def _pow2(x: Value, sign: bool, with_zero: bool, n: int, m: int, ste_fine_grained: bool) -> Value:
    high, low = 2.0**m, 2.0 ** (m - (2 ** (n - sign - with_zero) - 1))
    magnitude = x.op("Abs") if sign else x.op("Relu")
    y = (2.0 ** (_log2(magnitude) + 0.5).op("Floor")).clip(low, high)
    y = where(magnitude.compare("Less", low * math.sqrt(0.5)), 0.0, y) if with_zero else y
    return where(x.compare("Less", 0.0), -y, y) if sign else y


expressions(
    {
        "BinarySigmoid": lambda x: x.compare("Greater", 0.0).real(),
        "BinaryTanh": lambda x: where(x.compare("Greater", 0.0), 1.0, -1.0),
        "FixedPointQuantize": _fixed_point,
        "Pow2Quantize": _pow2,
        "DequantizeLinear": lambda x, scale, zero_point: (x - zero_point) * scale,
    }
)


@converter("BinaryConnectAffine")
def _binary_connect_affine(call: Call) -> Value:
    signs = binary_weight(call[1], call.args["quantize_zero_to"])
    return affine(call, signs, call.optional(3), call.args["base_axis"], call.shapes[1])


@converter("BinaryWeightAffine")
def _binary_weight_affine(call: Call) -> Value:
    weight = binary_weight(call[1], call.args["quantize_zero_to"]) * call[1].op("Abs").reduce("ReduceMean", [0])
    return affine(call, weight, call.optional(4), call.args["base_axis"], call.shapes[1])


@converter("BinaryConnectConvolution")
def _binary_connect_convolution(call: Call) -> Value:
    return convolved(call, binary_weight(call[1], call.args["quantize_zero_to"]), call.optional(3))


@converter("BinaryWeightConvolution")
def _binary_weight_convolution(call: Call) -> Value:
    scale = call[1].op("Abs").reduce("ReduceMean", range(1, len(call.shapes[1])))
    return convolved(call, binary_weight(call[1], call.args["quantize_zero_to"]) * scale, call.optional(4))


@converter("INQAffine", "INQConvolution")
def _inq(call: Call) -> Value:
    """Weights that are fixed become powers of two; which ones are fixed does not change any more."""
    if call.args["inq_iterations"]:
        raise NotExportableError("inq_iterations must be over: weights that are still fixed one by one change with each pass")
    weight, is_fixed = call[1], call[2].real().compare("Greater", 0.0)
    magnitude = weight.op("Abs")
    axes = range(len(call.shapes[1]))
    top = _log2(magnitude.reduce("ReduceMax", axes, False) * (4 / 3)).op("Floor")
    bottom = top + float(1 - 2 ** (call.args["num_bits"] - 2))
    exponent = _log2(magnitude * (4 / 3)).op("Floor").op("Max", bottom).op("Min", top)
    powers = weight.op("Sign") * 2.0**exponent
    powers = where(magnitude.compare("Less", 2.0 ** (bottom - 1.0)), 0.0, powers)
    weight = where(is_fixed, powers, weight)
    if call.name == "INQAffine":
        return affine(call, weight, call.optional(3), call.args["base_axis"], call.shapes[1])
    return convolved(call, weight, call.optional(3))


@converter("Prune")
def _prune(call: Call) -> Value:
    rate, size = call.args["rate"], size_of(call.shape)
    if rate == 1 or not size:
        return call.x * 0.0
    magnitude = call.x.op("Abs")
    rank = int((size - 1) * rate) + 1
    dtypes = [magnitude.dtype, INT]
    smallest, _ = call.graph.ops("TopK", magnitude.reshape((-1,)), (rank,), dtypes=dtypes, axis=0, largest=0)
    threshold = smallest.slice(0, rank - 1, rank)
    return where(magnitude.compare("Less", threshold), 0.0, call.x)


@converter("MinMaxQuantize")
def _min_max_quantize(call: Call) -> Value:
    x, qr_min, qr_max, ql_min, ql_max = (call[k] for k in range(5))
    args = call.args
    if args["x_min_max"]:
        axes = [axis for axis, length in enumerate(call.shapes[1]) if length == 1]
        x_min, x_max = x.reduce("ReduceMin", axes), x.reduce("ReduceMax", axes)
        decay = args["decay"]
        qr_min = decay * qr_min + (1 - decay) * x_min if args["ema"] else x_min
        qr_max = decay * qr_max + (1 - decay) * x_max if args["ema"] else x_max
    qr_max = qr_max.op("Max", qr_min + args["eps"])
    scale = (qr_max - qr_min) / (ql_max - ql_min)
    zero_point = _round(ql_min - qr_min / scale).op("Max", ql_min).op("Min", ql_max)
    low, high = (ql_min - zero_point) * scale, (ql_max - zero_point) * scale
    return _round((x.op("Max", low).op("Min", high) - low) / scale) * scale + low


@converter("QuantizeLinear")
def _quantize_linear(call: Call) -> Value:
    low, high = ((-128.0, 127.0), (0.0, 255.0))[call.args["dtype"] - 1]
    low += call.args["narrow_range"]
    is_even = call.args["round_mode"] == "HALF_TO_EVEN"

    def rounded(value: Value) -> Value:
        return value.op("Round") if is_even else _round(value)

    zero_point = rounded(call[2]).clip(low, high)
    return (rounded(call[0] / call[1]) + zero_point).clip(low, high)


# --- Integers


def _zero_point(call: Call, index: int, operand: int, *, is_wanted: bool = False) -> Value | None:
    """Return the zero point of an operand as ONNX has it: one number, or those of the axis that it has places along."""
    value, levels = call.optional(index), call[operand]
    if levels.dtype not in _BYTES:
        raise NotExportableError(f"levels must have 8 bits in products of ONNX, got {levels.dtype}")
    if value is None:
        return call.graph.constant(0, levels.dtype) if is_wanted else None
    shape = call.shapes[index]
    if size_of(shape) == 1:
        return value.reshape(())
    if len(shape) > 2:
        raise NotExportableError(
            f"zero points must be one number, or those of rows or columns of one matrix, got shape {shape}"
        )
    return value.reshape((size_of(shape),))


def _convolution_attributes(call: Call) -> dict[str, Any]:
    args = call.args
    if args["base_axis"] != 1:
        raise NotExportableError(f"base_axis must be 1, got {args['base_axis']}")
    names = {"strides": args["stride"], "dilations": args["dilation"], "pads": [*args["pad"], *args["pad"]]}
    return {name: list(value) for name, value in names.items()} | {"group": args["group"]}


def _quotient(call: Call, index: int) -> Value:
    """Return what sums are multiplied by: its reciprocal in float32 is the scale of the call, to the last bit."""
    scale = call.graph.constants.get(call[index].name)
    if scale is None:
        raise NotExportableError("scale must be a constant")
    flat = scale.reshape(-1).astype(np.float32)
    found = np.float32(1) / flat
    for near in (np.nextafter(found, np.float32(0)), np.nextafter(found, np.float32(np.inf))):
        found = np.where(np.float32(1) / found == flat, found, near)
    return call.graph.constant(found if found.size > 1 else found[0], FLOAT)


@converter("QuantizeInteger")
def _quantize_integer(call: Call) -> Value:
    if call[2].dtype.kind == "f":
        raise NotExportableError(f"the zero point must be an integer, got {call[2].dtype}")
    return _rounded(call, call.x, call[1], call.shapes[1], call[2], call.shapes[2])


def _rounded(call: Call, x: Value, scale: Value, shape: Sequence[int], zero_point: Value, zero_shape: Sequence[int]) -> Value:
    axes = [axis for axis, lengths in enumerate(zip(shape, zero_shape, strict=True)) if set(lengths) != {1}]
    if not axes:
        return x.op("QuantizeLinear", scale.reshape(()), zero_point.reshape(()), dtype=zero_point.dtype)
    if len(axes) > 1 or shape != zero_shape:
        raise NotExportableError(f"scale and zero point must be those of one axis, got shapes {shape} and {zero_shape}")
    call.need_opset(13, "a scale for each place of an axis")
    flat = (shape[axes[0]],)
    return x.op("QuantizeLinear", scale.reshape(flat), zero_point.reshape(flat), dtype=zero_point.dtype, axis=axes[0])


def _matrix_sums(call: Call, first_zero: int) -> Value:
    zeros = [_zero_point(call, first_zero + place, place) for place in (0, 1)]
    sums = call.x.op("MatMulInteger", call[1], *zeros, dtype=_INT32)
    bias = call.optional(first_zero + 2)
    return sums if bias is None else sums + bias


@converter("MatMulInteger")
def _matmul_integer(call: Call) -> Value:
    return _matrix_sums(call, 2)


@converter("ConvInteger")
def _conv_integer(call: Call) -> Value:
    zeros = [_zero_point(call, 2 + place, place) for place in (0, 1)]
    sums = call.x.op("ConvInteger", call[1], *zeros, dtype=_INT32, **_convolution_attributes(call))
    bias = call.optional(4)
    return sums if bias is None else sums + bias.reshape((-1, *(1,) * (call.ndim - 2)))


@converter("QLinearMatMul")
def _qlinear_matmul(call: Call) -> Value:
    zero_point, dtype = call[3].reshape(()), call.x.dtype
    if call.optional(6) is None and size_of(call.shapes[2]) == 1:
        zeros = [_zero_point(call, 4 + place, place, is_wanted=True) for place in (0, 1)]
        one = call.graph.constant(1.0, FLOAT)
        scales = (one, _quotient(call, 2), one)
        return call.x.op("QLinearMatMul", scales[0], zeros[0], call[1], scales[1], zeros[1], one, zero_point, dtype=dtype)
    # the function of ONNX adds nothing
    ndim, scale, sums = len(call.output_shape), call[2], _matrix_sums(call, 4).cast(FLOAT)
    shape = (*(1,) * (ndim - 1), size_of(call.shapes[2]))
    steps = sums / scale.reshape(shape)
    return steps.op("QuantizeLinear", call.graph.constant(1.0, FLOAT), zero_point, dtype=dtype)


@converter("QLinearConv")
def _qlinear_conv(call: Call) -> Value:
    zeros = [_zero_point(call, 4 + place, place, is_wanted=True) for place in (0, 1)]
    one, quotient = call.graph.constant(1.0, FLOAT), _quotient(call, 2)
    rest = (call[1], quotient, zeros[1], one, call[3].reshape(()), call.optional(6))
    return call.x.op("QLinearConv", one, zeros[0], *rest, dtype=call.x.dtype, **_convolution_attributes(call))
