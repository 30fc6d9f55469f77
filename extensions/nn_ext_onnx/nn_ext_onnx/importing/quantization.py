"""Quantized numbers: levels are integers of the dtype that the model says, and products of them exact sums of integers."""

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.channels_last import with_channels_last
from nn_ext_onnx.importing.convolution import geometry, window_pads
from nn_ext_onnx.importing.levels import Origin, fixed, origin_of, product_of_levels, same_levels
from nn_ext_onnx.importing.registry import Made, Node, operator
from nn_ext_onnx.importing.values import LEVELS, Array, UnsupportedError, Value

#: The quantizers are those of ONNX, and those for 16 bits from before operator set 21.
_DOMAINS: Final = ("", "com.microsoft")
_UINT8: Final = np.dtype(np.uint8)


def scales(value: Value, ndim: int, axis: int | None = None) -> nn.Variable:
    """Return a scale or zero point with `ndim` axes: one number, one for each place of `axis`, or as many axes as it has."""
    array, shape = fixed(value), _stretching(value.shape, ndim, axis)
    if array is not None:
        return Value(value.name, value.dtype, array.reshape(shape)).variable
    return value.variable if value.shape == shape else F.reshape(value.variable, shape)


def _stretching(shape: tuple[int, ...], ndim: int, axis: int | None) -> tuple[int, ...]:
    if prod(shape) == 1:
        return (1,) * ndim
    if len(shape) == 1 and axis is not None:
        return tuple(shape[0] if k == axis % ndim else 1 for k in range(ndim))
    return (*(1,) * (ndim - len(shape)), *shape)


def _quantized(node: Node, index: int) -> nn.Variable:
    """Return a scale or zero point of a quantizer as it stretches over its input."""
    block, axis = node.attr("block_size", 0), node.attr("axis", 1)
    if not block or node[index].size == 1:
        return scales(node[index], node.ndim, node.axis_of(axis) if node[index].size > 1 else None)
    axis = node.axis_of(axis)
    blocks = nn.Variable.from_numpy_array(np.arange(node.shape[axis]) // block)
    return F.gather(node.variable(index), blocks, axis=axis)


@operator("DequantizeLinear", domains=_DOMAINS)
def _dequantize(node: Node) -> nn.Variable:
    node.gives(node[1].dtype)
    node.origin = origin_of(node)
    scale = _quantized(node, 1)
    return node.x * scale if node.optional(2) is None else F.dequantize_linear(node.x, scale, _quantized(node, 2))


@operator("QuantizeLinear", domains=_DOMAINS, gives_whole=True)
def _quantize(node: Node) -> nn.Variable:
    dtype = node.dtypes[0] or (_UINT8 if node.optional(2) is None else node[2].dtype)
    node.gives(dtype)
    require_levels(dtype)
    zero_point = zero(dtype, node.ndim) if node.optional(2) is None else _quantized(node, 2)
    sums = node[0].origin
    if sums is not None and same_levels(sums, node[1], node.optional(2), dtype):
        return sums.levels.variable
    if sums is not None and sums.levels.dtype == np.int32 and node[1].size == 1 and fixed(node[1]) is not None:
        step = node[1].array.reshape(()) / sums.scale.array
        return rounded(sums.levels.variable, constant(step), zero_point, dtype == sums.operand)
    return F.quantize_integer(node.x, _quantized(node, 1), zero_point)


def constant(array: Array) -> nn.Variable:
    """Return numbers as float32."""
    return nn.Variable.from_numpy_array(np.asarray(array, np.float32))


def require_levels(dtype: np.dtype[Any]) -> None:
    """Refuse what quantizers do not make.

    Raises:
        UnsupportedError: when levels are not of this type.
    """
    if dtype.name not in LEVELS:
        raise UnsupportedError(f"levels of type {dtype}")


def zero(dtype: np.dtype[Any], ndim: int) -> nn.Variable:
    """Return the zero point of levels that have none.

    Raises:
        UnsupportedError: when levels are not of this type.
    """
    require_levels(dtype)
    return nn.Variable.from_numpy_array(np.zeros((1,) * ndim, dtype))


def dequantized(x: Value, scale: Value, zero_point: Value | None, axis: int | None = None) -> nn.Variable:
    """Return the values that levels stand for."""
    factor = scales(scale, x.ndim, axis)
    return (
        x.variable * factor
        if zero_point is None
        else F.dequantize_linear(x.variable, factor, scales(zero_point, x.ndim, axis))
    )


def quantized(y: nn.Variable, scale: Value, zero_point: Value | None, otherwise: np.dtype[Any] = _UINT8) -> nn.Variable:
    """Return values as levels."""
    shift = zero(otherwise, y.ndim) if zero_point is None else scales(zero_point, y.ndim)
    return F.quantize_integer(y, scales(scale, y.ndim), shift)


def dynamically_quantized(x: nn.Variable) -> tuple[nn.Variable, nn.Variable, nn.Variable]:
    """Return levels of type uint8 over the range of what is quantized and zero, the scale, and the zero point."""
    low, high = F.minimum_scalar(F.min(x), 0.0), F.maximum_scalar(F.max(x), 0.0)
    scale = F.div2(high - low, nn.Variable.from_numpy_array(np.full((), 255, np.float32)))
    scale = scale + F.equal_scalar(scale, 0.0)  # that of zeros is 1
    zero_point = F.quantize_integer(-low / scale, nn.Variable.from_numpy_array(np.ones((), np.float32)), zero(_UINT8, 0))
    shape = (1,) * x.ndim
    return F.quantize_integer(x, F.reshape(scale, shape), F.reshape(zero_point, shape)), scale, zero_point


@operator("DynamicQuantizeLinear", gives_whole=True)
def _dynamically_quantize(node: Node) -> list[nn.Variable]:
    return list(dynamically_quantized(node.x))


#: Images and filters.
Operands: TypeAlias = "tuple[nn.Variable, nn.Variable] | None"

# Products -----------------------------------------------------------------------------------------------------------


def product(
    a: nn.Variable, b: nn.Variable, a_zero: Value | None, b_zero: Value | None, bias: nn.Variable | None = None
) -> nn.Variable:
    """Return the product of two operands of levels as MatMul of ONNX has it, sums of type int32."""
    left, right = (F.reshape(a, (1, *a.shape)) if a.ndim == 1 else a), (F.reshape(b, (*b.shape, 1)) if b.ndim == 1 else b)
    y = F.matmul_integer(left, right, _shift(a_zero, left.ndim, -2), _shift(b_zero, right.ndim, -1), bias)
    if a.ndim > 1 and b.ndim > 1:
        return y
    return F.reshape(y, (*y.shape[:-2], *(y.shape[-2:-1] if a.ndim > 1 else ()), *(y.shape[-1:] if b.ndim > 1 else ())))


def _shift(zero_point: Value | None, ndim: int | None, axis: int | None = None) -> nn.Variable | None:
    """Return a zero point as `scales` does; None where nothing is subtracted, as the model holds zeros.

    Args:
        ndim: the axes of the operand; None: as many as the zero point has, one at most.
    """
    array = None if zero_point is None else fixed(zero_point)
    if zero_point is None or (array is not None and not array.any()):
        return None
    return scales(zero_point, min(zero_point.ndim, 1) if ndim is None else ndim, axis)


@operator("MatMulInteger", takes_whole=True)
def _matmul_integer(node: Node) -> nn.Variable:
    return product(node.x, node.variable(1), node.optional(2), node.optional(3))


@operator("QLinearMatMul", takes_whole=True)
def _qlinear_matmul(node: Node) -> nn.Variable:
    node.gives(node[7].dtype)
    sums = product(node.x, node.variable(3), node[2], node[5])
    rows, columns = (-2, -1) if min(node.ndim, node[3].ndim) > 1 else (None, None)
    return requantized(sums, ratio(sums.ndim, [(node[1], rows), (node[4], columns)], node[6]), node[7], node[0].dtype)


def ratio(ndim: int, factors: Sequence[tuple[Value, int | None]], divisor: Value | None = None) -> nn.Variable:
    """Return the product of some scales, divided by another: a constant where the model holds them all."""
    values = [value for value, _ in factors] + ([] if divisor is None else [divisor])
    if any(fixed(value) is None for value in values):
        y = reduce(F.mul2, [scales(value, ndim, axis) for value, axis in factors])
        return y if divisor is None else y / scales(divisor, ndim)
    arrays = [value.array.reshape(_stretching(value.shape, ndim, axis)) for value, axis in factors]
    with np.errstate(all="ignore"):
        total = reduce(np.multiply, arrays) / (1 if divisor is None else divisor.array.reshape((1,) * ndim))
    if not np.isfinite(total).all():
        raise UnsupportedError("scales of which the product and quotient are not finite")
    return constant(total)


def requantized(
    sums: nn.Variable,
    factor: nn.Variable,
    zero_point: Value | None,
    operand: np.dtype[Any] | None,
    dtype: np.dtype[Any] = _UINT8,
) -> nn.Variable:
    """Return sums of products as levels: they are multiplied, rounded, halves to even, and shifted.

    Args:
        operand: the dtype of the first operand of the product.
        dtype: of the levels where there is no zero point.
    """
    made = dtype if zero_point is None else zero_point.dtype
    shift = zero(dtype, sums.ndim) if zero_point is None else scales(zero_point, sums.ndim)
    with np.errstate(all="ignore"):  # a scale of 0 makes zeros
        step = constant(1 / np.asarray(factor.d)) if factor.parent is None else 1 / factor
    return rounded(sums, step, shift, made == operand)


#: Products of which there is one that quantizes its sums, and the axis along which their scales may differ.
_QUANTIZING: Final[dict[str, tuple[Callable[..., nn.Variable], int]]] = {
    "ConvInteger": (F.qlinear_conv, 1),
    "MatMulInteger": (F.qlinear_matmul, -1),
}


def rounded(sums: nn.Variable, step: nn.Variable, zero_point: nn.Variable, has_dtype: bool) -> nn.Variable:
    """Return sums as levels.

    Args:
        has_dtype: whether levels have the dtype of the first operand of the product that makes the sums: one function
            computes both then.
    """
    function = sums.parent
    if function is None or function.name not in _QUANTIZING or not has_dtype or step.parent is not None:
        return F.quantize_integer(sums, step, zero_point)
    product, axis = _QUANTIZING[function.name]
    if zero_point.size != 1 or step.size not in (1, step.shape[axis]):
        return F.quantize_integer(sums, step, zero_point)
    inputs = iter(function.inputs)
    x, other, *rest = (None if value is None else next(inputs) for value in function.node.inputs)
    return product(x, other, constant(step.d.reshape(-1)), zero_point, *rest, **function.args)


def _convolved(
    node: Node, weight: int, zeros: tuple[Value | None, Value | None], bias: nn.Variable | None, operands: Operands = None
) -> nn.Variable:
    """Return the convolution of levels, sums of type int32; `weight` is the place of the filters among the inputs."""
    kernel, strides, dilations = geometry(node, weight)
    pads = window_pads(node, kernel, strides, dilations)
    if any(min(pair) < 0 for pair in pads):
        raise UnsupportedError(f"pads {pads}")
    # a longer border after than before: a longer one on both sides, and the places that it adds before are cut
    extra = [max(-(-(after - before) // step), 0) for (before, after), step in zip(pads, strides, strict=True)]
    wide = [before + more * step for (before, _), more, step in zip(pads, extra, strides, strict=True)]
    settings = {"pad": wide, "stride": strides, "dilation": dilations, "group": node.attr("group", 1)}
    x_zero, w_zero = (_shift(value, None) for value in zeros)
    x, filters = operands or (node.x, node.variable(weight))
    y = F.conv_integer(x, filters, x_zero, w_zero, bias, **settings)
    extents = [gap * (size - 1) + 1 for size, gap in zip(kernel, dilations, strict=True)]
    counts = [
        (length + sum(pair) - extent) // step + 1
        for length, pair, extent, step in zip(node.shape[2:], pads, extents, strides, strict=True)
    ]
    if list(y.shape[2:]) == counts:
        return y
    return F.slice(
        y, start=extra, stop=[more + count for more, count in zip(extra, counts, strict=True)], step=[1] * len(extra)
    )


@operator("ConvInteger", takes_whole=True)
def _conv_integer(node: Node) -> nn.Variable:
    return _convolved(node, 1, (node.optional(2), node.optional(3)), None)


@operator("QLinearConv", domains=_DOMAINS, takes_whole=True)
def _qlinear_conv(node: Node) -> Made:
    node.gives(node[7].dtype)
    return with_channels_last(_requantizing_conv)(node) if node.attr("channels_last", 0) else _requantizing_conv(node)


def _requantizing_conv(node: Node) -> nn.Variable:
    sums = _convolved(node, 3, (node[2], node[5]), node.optional_variable(8))
    return requantized(sums, ratio(node.ndim, [(node[1], None), (node[4], 1)], node[6]), node[7], node[0].dtype)


# Operators of values that were made of levels -----------------------------------------------------------------------


def _scaled(node: Node, sums: nn.Variable, factor: nn.Variable, axis: int, bias: Value | None = None) -> nn.Variable:
    """Return the values that sums stand for, and a bias of values."""
    operand = node[0].origin.levels.dtype
    if bias is not None:
        shape = tuple(bias.size if k == axis else 1 for k in range(sums.ndim))
        return sums * factor + F.reshape(bias.variable, shape)
    scale = Value("scale", np.dtype(np.float32), np.asarray(factor.d))
    node.origin = Origin(Value("sums", np.dtype(np.int32), variable=sums), scale, None, axis, operand)
    return sums * factor


def _of_sums(bias: Value | None, factor: nn.Variable) -> nn.Variable | None:
    """Return a bias as numbers that are added to sums, where it was quantized as these are."""
    origin: Origin | None = None if bias is None else bias.origin
    if origin is None or origin.levels.dtype != np.int32 or (origin.zero_point is not None and origin.zero_point.array.any()):
        return None
    scale, steps = origin.scale.array.reshape(-1), np.asarray(factor.d).reshape(-1)
    return origin.levels.variable if np.allclose(scale, steps, rtol=1e-6, atol=0) else None


def _fits_conv(node: Node, x: Origin, weight: Origin) -> bool:
    return weight.is_along(0) and min(node.attr("pads") or [0]) >= 0


@product_of_levels("Conv", _fits_conv)
def _conv_of_levels(node: Node) -> nn.Variable:
    x, weight, bias = node[0].origin, node[1].origin, node.optional(2)
    factor = ratio(node.ndim, [(x.scale, None), (weight.scale, 1)])
    row = _of_sums(bias, factor)
    operands = x.levels.variable, weight.levels.variable
    sums = _convolved(node, 1, (x.zero_point, weight.zero_point), row, operands)
    return _scaled(node, sums, factor, 1, None if row is not None else bias)


@product_of_levels("MatMul", lambda node, a, b: b.is_along(-1) and min(node.ndim, node[1].ndim) > 1)
def _matmul_of_levels(node: Node) -> nn.Variable:
    a, b = node[0].origin, node[1].origin
    sums = product(a.levels.variable, b.levels.variable, a.zero_point, b.zero_point)
    return _scaled(node, sums, ratio(sums.ndim, [(a.scale, None), (b.scale, -1)]), sums.ndim - 1)


def _fits_gemm(node: Node, a: Origin, b: Origin) -> bool:
    c, n = node.optional(2), node[1].shape[0 if node.attr("transB", 0) else 1]
    is_plain = node.attr("alpha", 1.0) == node.attr("beta", 1.0) == 1 and not node.attr("transA", 0)
    return is_plain and b.is_along(0 if node.attr("transB", 0) else 1) and (c is None or c.shape == (n,))


@product_of_levels("Gemm", _fits_gemm)
def _gemm_of_levels(node: Node) -> nn.Variable:
    a, b, bias = node[0].origin, node[1].origin, node.optional(2)
    right = turned(b.levels) if node.attr("transB", 0) else b.levels.variable
    factor = ratio(2, [(a.scale, None), (b.scale, 1)])
    row = _of_sums(bias, factor)
    sums = product(a.levels.variable, right, a.zero_point, b.zero_point, row)
    return _scaled(node, sums, factor, 1, None if row is not None else bias)


def turned(value: Value) -> nn.Variable:
    """Return a matrix with its axes in the other order."""
    array = fixed(value)
    if array is None:
        return F.transpose(value.variable, (1, 0))
    return nn.Variable.from_numpy_array(np.ascontiguousarray(array.T))
