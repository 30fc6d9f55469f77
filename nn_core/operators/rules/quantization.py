"""Shape and gradient rules of quantization.

A quantizer is piecewise constant. Its gradient is that of a stated surrogate: the identity (straight through), or the
identity within the range of the levels and a constant outside of it. Layers with quantized weights pass the gradient
of the quantized weight on to the weight as it is.
"""

from collections.abc import Callable
from math import inf, prod, sqrt
from typing import Any

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.broadcasting import unbroadcast
from nn_core.operators.rules.choosing import chosen
from nn_core.operators.rules.convolution import convolution, convolution_shape
from nn_core.operators.rules.linear import affine, affine_shape, batch_matmul_shape
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape


def _within(F: Any, x: Any, low: float, high: float) -> Any:
    """1 where low <= x <= high or x is NaN, else 0."""
    return 1.0 - F.less_scalar(x, val=low) - F.greater_scalar(x, val=high)


@gradient("BinarySigmoid")
def binary_sigmoid_gradient(F: Any, g: GradientCall) -> Any:
    """Return the slope 1/2 of the hard sigmoid within (-1, 1)."""
    return chosen(F, _inside_one(F, g.x), g.grad * 0.5)


@gradient("BinaryTanh")
def binary_tanh_gradient(F: Any, g: GradientCall) -> Any:
    """Return the slope 1 of the hard tanh within (-1, 1)."""
    return chosen(F, _inside_one(F, g.x), g.grad)


def _inside_one(F: Any, x: Any) -> Any:
    return 1.0 - F.less_equal_scalar(x, val=-1.0) - F.greater_equal_scalar(x, val=1.0)


# --- Layers with quantized weights


@shape_rule("BinaryConnectAffine")
def binary_connect_affine(
    x: Shape, weight: Shape, binary_weight: Shape, bias: Shape | None, *, base_axis: int, **_: Any
) -> tuple[Shape | None, ...]:
    """Of affine."""
    _check_like_weight("binary_weight", binary_weight, weight)
    return affine_shape(x, weight, bias, base_axis=base_axis)


@shape_rule("BinaryConnectConvolution")
def binary_connect_convolution(
    x: Shape, weight: Shape, binary_weight: Shape, bias: Shape | None, *, quantize_zero_to: float, **geometry: Any
) -> tuple[Shape | None, ...]:
    """Of convolution."""
    _check_like_weight("binary_weight", binary_weight, weight)
    return convolution_shape(x, weight, bias, channel_last=False, **geometry)


@shape_rule("BinaryWeightAffine")
def binary_weight_affine(
    x: Shape, weight: Shape, binary_weight: Shape, alpha: Shape, bias: Shape | None, *, base_axis: int, **_: Any
) -> tuple[Shape | None, ...]:
    """Of affine."""
    _check_like_weight("binary_weight", binary_weight, weight)
    _check_alpha(alpha, prod(weight[1:]))
    return affine_shape(x, weight, bias, base_axis=base_axis)


@shape_rule("BinaryWeightConvolution")
def binary_weight_convolution(
    x: Shape,
    weight: Shape,
    binary_weight: Shape,
    alpha: Shape,
    bias: Shape | None,
    *,
    quantize_zero_to: float,
    **geometry: Any,
) -> tuple[Shape | None, ...]:
    """Of convolution."""
    _check_like_weight("binary_weight", binary_weight, weight)
    _check_alpha(alpha, weight[0])
    return convolution_shape(x, weight, bias, channel_last=False, **geometry)


@shape_rule("INQAffine")
def inq_affine(
    x: Shape, weight: Shape, indicator_fixedweights: Shape, bias: Shape | None, *, base_axis: int, **_: Any
) -> tuple[Shape | None, ...]:
    """Of affine."""
    _check_like_weight("indicator_fixedweights", indicator_fixedweights, weight)
    return affine_shape(x, weight, bias, base_axis=base_axis)


@shape_rule("INQConvolution")
def inq_convolution(
    x: Shape,
    weight: Shape,
    indicator_fixedweights: Shape,
    bias: Shape | None,
    *,
    num_bits: int,
    inq_iterations: Shape,
    selection_algorithm: str,
    seed: int,
    **geometry: Any,
) -> tuple[Shape | None, ...]:
    """Of convolution."""
    _check_like_weight("indicator_fixedweights", indicator_fixedweights, weight)
    return convolution_shape(x, weight, bias, channel_last=False, **geometry)


def _check_like_weight(name: str, shape: Shape, weight: Shape) -> None:
    if shape != weight:
        raise ShapeError(f"{name} must have the shape of weight, {weight}, got {shape}")


def _check_alpha(alpha: Shape, n_outputs: int) -> None:
    if prod(alpha) != n_outputs:
        raise ShapeError(f"alpha must have one element per output, {n_outputs}, got shape {alpha}")


#: The gradient rule of affine or of convolution.
_Layer = Callable[[Any, GradientCall], tuple[Any, ...]]


def _layer_gradient(F: Any, g: GradientCall, layer: _Layer, weight: Any) -> tuple[Any, ...]:
    """Gradients of x, weight and bias by the rule of `layer`, run with another weight."""
    call = GradientCall.__new__(GradientCall)
    call.__dict__.update(g.__dict__, weight=weight, channel_last=False)
    return layer(F, call)


@gradient("BinaryConnectAffine")
def binary_connect_affine_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """As of affine with the signs of the weight."""
    dx, dweight, dbias = _layer_gradient(F, g, affine, F.sign(g.weight, alpha=g.quantize_zero_to))
    return dx, dweight, None, dbias


@gradient("BinaryConnectConvolution")
def binary_connect_convolution_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """As of convolution with the signs of the weight."""
    dx, dweight, dbias = _layer_gradient(F, g, convolution, F.sign(g.weight, alpha=g.quantize_zero_to))
    return dx, dweight, None, dbias


@gradient("BinaryWeightAffine")
def binary_weight_affine_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """As of affine with scaled signs."""
    scale = F.mean(F.abs(g.weight), axes=(0,), keep_dims=True)
    dx, dweight, dbias = _layer_gradient(F, g, affine, F.sign(g.weight, alpha=g.quantize_zero_to) * scale)
    return dx, dweight, None, None, dbias


@gradient("BinaryWeightConvolution")
def binary_weight_convolution_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """As of convolution with scaled signs."""
    scale = F.mean(F.abs(g.weight), axes=tuple(range(1, len(g.weight.shape))), keep_dims=True)
    dx, dweight, dbias = _layer_gradient(F, g, convolution, F.sign(g.weight, alpha=g.quantize_zero_to) * scale)
    return dx, dweight, None, None, dbias


@gradient("INQAffine")
def inq_affine_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """As of affine; what is fixed gets no gradient."""
    return _learnable_gradient(F, g, affine)


@gradient("INQConvolution")
def inq_convolution_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """As of convolution; what is fixed gets no gradient."""
    return _learnable_gradient(F, g, convolution)


def _learnable_gradient(F: Any, g: GradientCall, layer: _Layer) -> tuple[Any, ...]:
    """Read the weight and the indicator with their new values, those that the pass used."""
    dx, dweight, dbias = _layer_gradient(F, g, layer, g.weight)
    if dweight is not None:
        dweight = chosen(F, 1.0 - F.greater_scalar(g.indicator_fixedweights, val=0.0), dweight)
    return dx, dweight, None, dbias


# --- Quantizers


@shape_rule("FixedPointQuantize")
def fixed_point_quantize(x: Shape, *, delta: float, **_: Any) -> tuple[Shape]:
    """Return the shape of x."""
    if not 0 < delta < inf:
        raise ArgumentError(f"delta must be positive and finite, got {delta}")
    return (x,)


@gradient("FixedPointQuantize")
def fixed_point_quantize_gradient(F: Any, g: GradientCall) -> Any:
    """Return the identity, with `ste_fine_grained` only within the range."""
    if not g.ste_fine_grained:
        return g.grad
    high = (2 ** (g.n - g.sign) - 1) * g.delta
    return chosen(F, _within(F, g.x, -high if g.sign else 0.0, high), g.grad)


@shape_rule("Pow2Quantize")
def pow2_quantize(x: Shape, *, sign: bool, with_zero: bool, n: int, **_: Any) -> tuple[Shape]:
    """Return the shape of x."""
    if n <= sign + with_zero:
        raise ArgumentError(f"n must leave a bit for the exponent beside those for sign and zero, got {n}")
    return (x,)


@gradient("Pow2Quantize")
def pow2_quantize_gradient(F: Any, g: GradientCall) -> Any:
    """Return the identity, with `ste_fine_grained` only for what is not rounded to more than the largest level."""
    if not g.ste_fine_grained:
        return g.grad
    threshold = 2.0**g.m * sqrt(2.0)
    return chosen(F, _within(F, g.x, -threshold if g.sign else 0.0, threshold), g.grad)


@gradient("Prune")
def prune_gradient(F: Any, g: GradientCall) -> Any:
    """Return the identity."""
    return g.grad


@shape_rule("MinMaxQuantize")
def min_max_quantize(x: Shape, qr_min: Shape, qr_max: Shape, ql_min: Shape, ql_max: Shape, **_: Any) -> tuple[Shape, ...]:
    """Return the shape of x, and twice that of the range."""
    for name, shape in (("qr_max", qr_max), ("ql_min", ql_min), ("ql_max", ql_max)):
        if shape != qr_min:
            raise ShapeError(f"{name} must have the shape of qr_min, {qr_min}, got {shape}")
    _check_stretches("qr_min", qr_min, x)
    return x, qr_min, qr_min


def _check_stretches(name: str, shape: Shape, x: Shape, of: str = "x") -> None:
    if len(shape) != len(x) or any(length not in (1, full) for length, full in zip(shape, x, strict=True)):
        raise ShapeError(f"{name} must have as many axes as {of}, each of length 1 or that of {of}, got {shape} for {x}")


@gradient("MinMaxQuantize")
def min_max_quantize_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Of clipping to the range; the straight-through estimator replaces that of x unless it is `ste_fine_grained`."""
    below, above = F.less(g.x, g.range_min), F.greater(g.x, g.range_max)
    dx = dmin = dmax = None
    if g.wants("x"):
        dx = chosen(F, 1.0 - below - above, g.grad) if g.ste_fine_grained else g.grad
    if not (g.x_min_max or g.ema):
        shape = g.range_min.shape
        dmin = unbroadcast(F, chosen(F, below, g.grad), shape) if g.wants("qr_min") else None
        dmax = unbroadcast(F, chosen(F, above, g.grad), shape) if g.wants("qr_max") else None
    return dx, dmin, dmax, None, None


@shape_rule("QuantizeLinear")
def quantize_linear(x: Shape, scale: Shape, zero_point: Shape, **_: Any) -> tuple[Shape]:
    """Return the shape of x."""
    _check_stretches("scale", scale, x)
    _check_stretches("zero_point", zero_point, x)
    return (x,)


@gradient("QuantizeLinear")
def quantize_linear_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Of x / scale + zero_point: straight through rounding and saturation."""
    dx = dscale = dzero_point = None
    if g.wants("x"):
        dx = g.grad / g.scale
    if g.wants("scale"):
        dscale = unbroadcast(F, -(g.grad * g.x) / (g.scale * g.scale), g.scale.shape)
    if g.wants("zero_point"):
        dzero_point = unbroadcast(F, g.grad, g.zero_point.shape)
    return dx, dscale, dzero_point


@shape_rule("DequantizeLinear")
def dequantize_linear(x: Shape, scale: Shape, zero_point: Shape) -> tuple[Shape]:
    """Return the shape of x."""
    _check_stretches("scale", scale, x)
    _check_stretches("zero_point", zero_point, x)
    return (x,)


@gradient("DequantizeLinear")
def dequantize_linear_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Products with the other factor."""
    dx = dscale = dzero_point = None
    if g.wants("x"):
        dx = g.grad * g.scale
    if g.wants("scale"):
        dscale = unbroadcast(F, g.grad * (g.x - g.zero_point), g.scale.shape)
    if g.wants("zero_point"):
        dzero_point = unbroadcast(F, -(g.grad * g.scale), g.zero_point.shape)
    return dx, dscale, dzero_point


# --- Integers


@shape_rule("QuantizeInteger")
def quantize_integer(x: Shape, scale: Shape, zero_point: Shape) -> tuple[Shape]:
    """Return the shape of x."""
    _check_stretches("scale", scale, x)
    _check_stretches("zero_point", zero_point, x)
    return (x,)


@shape_rule("MatMulInteger")
def matmul_integer(
    a: Shape, b: Shape, a_zero_point: Shape | None, b_zero_point: Shape | None, bias: Shape | None
) -> tuple[Shape | None, ...]:
    """Of batch_matmul; zero points are the same along the axis that is summed over."""
    for name, zero_point, operand, axis in (("a", a_zero_point, a, -1), ("b", b_zero_point, b, -2)):
        if zero_point is not None:
            _check_stretches(f"{name}_zero_point", zero_point, operand, name)
            if zero_point[axis] != 1:
                text = f"{name}_zero_point must be one number along the axis that is summed over"
                raise ShapeError(f"{text}, length 1 on axis {axis}, got shape {zero_point}")
    shapes = batch_matmul_shape(a, b, transpose_a=False, transpose_b=False)
    if bias is not None and bias != b[-1:]:
        raise ShapeError(f"bias must have one number for each column of b, shape {b[-1:]}, got {bias}")
    return shapes


@shape_rule("ConvInteger")
def conv_integer(
    x: Shape,
    weight: Shape,
    x_zero_point: Shape | None,
    weight_zero_point: Shape | None,
    bias: Shape | None,
    **geometry: Any,
) -> tuple[Shape | None, ...]:
    """Of convolution."""
    if x_zero_point is not None and prod(x_zero_point) != 1:
        raise ShapeError(f"x_zero_point must have one element, got shape {x_zero_point}")
    if weight_zero_point is not None and prod(weight_zero_point) != 1 and weight_zero_point != weight[:1]:
        text = f"weight_zero_point must have one element, or one for each of the {weight[0]} filters"
        raise ShapeError(f"{text}, got shape {weight_zero_point}")
    return convolution_shape(x, weight, bias, channel_last=False, **geometry)


@shape_rule("QLinearMatMul")
def qlinear_matmul(
    a: Shape,
    b: Shape,
    scale: Shape,
    zero_point: Shape,
    a_zero_point: Shape | None,
    b_zero_point: Shape | None,
    bias: Shape | None,
) -> tuple[Shape | None, ...]:
    """Return the shape of the product; a scale for each column, or one."""
    _check_requantization(scale, zero_point, b[-1], "columns of b")
    return matmul_integer(a, b, a_zero_point, b_zero_point, bias)


@shape_rule("QLinearConv")
def qlinear_conv(
    x: Shape,
    weight: Shape,
    scale: Shape,
    zero_point: Shape,
    x_zero_point: Shape | None,
    weight_zero_point: Shape | None,
    bias: Shape | None,
    **geometry: Any,
) -> tuple[Shape | None, ...]:
    """Return the shape of the convolution; a scale for each filter, or one."""
    _check_requantization(scale, zero_point, weight[0], "filters")
    return conv_integer(x, weight, x_zero_point, weight_zero_point, bias, **geometry)


def _check_requantization(scale: Shape, zero_point: Shape, count: int, places: str) -> None:
    if prod(scale) != 1 and scale != (count,):
        raise ShapeError(f"scale must have one element, or one for each of the {count} {places}, got shape {scale}")
    if prod(zero_point) != 1:
        raise ShapeError(f"zero_point must have one element, got shape {zero_point}")
