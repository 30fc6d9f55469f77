"""Reference kernels of quantization: rounding of values to few levels, and layers with such weights.

All results are stored in floating point; the kernels simulate what a device with few bits computes. ``round`` means
to the nearest integer, halves away from zero, unless another mode is asked for.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

from nn_core.errors import DTypeError
from nn_core.operators.reference.convolution import convolution
from nn_core.operators.reference.linear import affine
from nn_core.operators.reference.philox import uniform
from nn_core.operators.reference.precision import widen
from nn_core.operators.reference.reduction import mean
from nn_core.operators.reference.registry import kernel
from nn_core.typing import Array, Namespace, Shape


def _round(xp: Namespace, x: Array) -> Array:
    return xp.sign(x) * xp.floor(xp.abs(x) + 0.5)


@kernel("BinarySigmoid")
def binary_sigmoid(xp: Namespace, x: Array) -> Array:
    """1 for positive elements, else 0."""
    return xp.where(x > 0, 1.0, 0.0)


@kernel("BinaryTanh")
def binary_tanh(xp: Namespace, x: Array) -> Array:
    """1 for positive elements, else -1."""
    return xp.where(x > 0, 1.0, -1.0)


# --- Layers with binary weights (Courbariaux et al., 2015; Rastegari et al., 2016)


def _binary(xp: Namespace, weight: Array, quantize_zero_to: float) -> Array:
    return xp.where(weight == 0, quantize_zero_to, xp.sign(weight)).astype(weight.dtype)


@kernel("BinaryConnectAffine")
def binary_connect_affine(
    xp: Namespace,
    x: Array,
    weight: Array,
    binary_weight: Array,
    bias: Array | None,
    *,
    base_axis: int,
    quantize_zero_to: float,
) -> tuple[Array, Array]:
    """Affine with the signs of the weight, which become the new `binary_weight`."""
    signs = _binary(xp, weight, quantize_zero_to)
    return affine(xp, x, signs, bias, base_axis=base_axis), signs


@kernel("BinaryConnectConvolution")
def binary_connect_convolution(
    xp: Namespace,
    x: Array,
    weight: Array,
    binary_weight: Array,
    bias: Array | None,
    *,
    quantize_zero_to: float,
    **geometry: Any,
) -> tuple[Array, Array]:
    """Convolution with the signs of the weight, which become the new `binary_weight`."""
    signs = _binary(xp, weight, quantize_zero_to)
    return convolution(xp, x, signs, bias, channel_last=False, **geometry), signs


@kernel("BinaryWeightAffine")
def binary_weight_affine(
    xp: Namespace,
    x: Array,
    weight: Array,
    binary_weight: Array,
    alpha: Array,
    bias: Array | None,
    *,
    base_axis: int,
    quantize_zero_to: float,
) -> tuple[Array, Array, Array]:
    """Affine with signs times the mean magnitude of each output's weights, the new `alpha`."""
    signs = _binary(xp, weight, quantize_zero_to)
    scale = mean(xp, xp.abs(widen(xp, weight)), (0,), False)
    return affine(xp, x, signs * scale, bias, base_axis=base_axis), signs, scale.reshape(alpha.shape)


@kernel("BinaryWeightConvolution")
def binary_weight_convolution(
    xp: Namespace,
    x: Array,
    weight: Array,
    binary_weight: Array,
    alpha: Array,
    bias: Array | None,
    *,
    quantize_zero_to: float,
    **geometry: Any,
) -> tuple[Array, Array, Array]:
    """Convolution with signs times the mean magnitude of each filter, the new `alpha`."""
    signs = _binary(xp, weight, quantize_zero_to)
    scale = mean(xp, xp.abs(widen(xp, weight)), tuple(range(1, weight.ndim)), True)
    y = convolution(xp, x, signs * scale, bias, channel_last=False, **geometry)
    return y, signs, scale.reshape(alpha.shape)


# --- Incremental network quantization (Zhou et al., 2017)


@kernel("INQAffine")
def inq_affine(
    xp: Namespace,
    x: Array,
    weight: Array,
    indicator_fixedweights: Array,
    bias: Array | None,
    *,
    base_axis: int,
    num_bits: int,
    inq_iterations: Shape,
    selection_algorithm: str,
    seed: int,
    key: Array,
) -> tuple[Array, Array, Array]:
    """Affine with a weight whose fixed elements are powers of two."""
    weight, indicator = _fix_weights(xp, weight, indicator_fixedweights, num_bits, inq_iterations, selection_algorithm, key)
    return affine(xp, x, weight, bias, base_axis=base_axis), weight, indicator


@kernel("INQConvolution")
def inq_convolution(
    xp: Namespace,
    x: Array,
    weight: Array,
    indicator_fixedweights: Array,
    bias: Array | None,
    *,
    num_bits: int,
    inq_iterations: Shape,
    selection_algorithm: str,
    seed: int,
    key: Array,
    **geometry: Any,
) -> tuple[Array, Array, Array]:
    """Convolution with a weight whose fixed elements are powers of two."""
    weight, indicator = _fix_weights(xp, weight, indicator_fixedweights, num_bits, inq_iterations, selection_algorithm, key)
    return convolution(xp, x, weight, bias, channel_last=False, **geometry), weight, indicator


def _fix_weights(
    xp: Namespace,
    weight: Array,
    indicator: Array,
    num_bits: int,
    iterations: Sequence[int],
    selection: str,
    key: Array,
) -> tuple[Array, Array]:
    """Fix more elements if it is time, and quantize all that are fixed. Returns the weight and the indicator.

    The indicator is 1 for a fixed element and minus the number of passes so far for the others.
    """
    if weight.size == 0:
        return weight, indicator
    fixed = indicator > 0
    n_passes = int(xp.max(xp.where(fixed, 0, 0 - indicator)))
    if iterations and n_passes == iterations[-1]:
        fixed = xp.ones_like(fixed)
    elif n_passes in iterations:
        rank = xp.abs(weight) if selection == "largest_abs" else uniform(xp, key, weight.size).reshape(weight.shape)
        order = xp.argsort(xp.where(fixed, math.inf, -rank).reshape(-1))
        chosen = order[: max(int(xp.sum(~fixed)) // 2, 1)]
        fixed = fixed.reshape(-1)
        fixed[chosen] = True
        fixed = fixed.reshape(weight.shape)
    learnable = -(n_passes + 1) if iterations else 0
    return xp.where(fixed, _power_of_two(xp, weight, num_bits), weight), xp.where(fixed, 1, learnable).astype(indicator.dtype)


def _power_of_two(xp: Namespace, weight: Array, num_bits: int) -> Array:
    """Return the nearest of zero and the 2**(num_bits - 2) largest powers of two that `weight` spans, with its sign."""
    magnitude = xp.abs(weight)
    top = xp.floor(_log2(xp, xp.max(magnitude) * (4 / 3)))
    bottom = top + 1 - 2 ** (num_bits - 2)
    exponent = xp.clip(xp.floor(_log2(xp, magnitude * (4 / 3))), bottom, top)
    return xp.where(magnitude < 2.0 ** (bottom - 1), 0.0, xp.sign(weight) * 2.0**exponent).astype(weight.dtype)


def _log2(xp: Namespace, x: Array) -> Array:
    """Logarithm to base 2, where 0 counts as the smallest normal number."""
    return xp.log2(xp.maximum(x, float(xp.finfo(x.dtype).tiny)))


#: The largest number of float64 below the square root of 1/2. It is rounded to the largest one of float32 below it.
_BELOW_ROOT: Final = math.nextafter(math.sqrt(0.5), 0.0)

# --- Quantizers


@kernel("FixedPointQuantize")
def fixed_point_quantize(xp: Namespace, x: Array, *, sign: bool, n: int, delta: float, ste_fine_grained: bool) -> Array:
    """Round to a multiple of `delta` within the range of n bits."""
    x = widen(xp, x)
    high = (2 ** (n - sign) - 1) * delta
    return xp.clip(_round(xp, x / delta) * delta, -high if sign else 0.0, high)


@kernel("Pow2Quantize")
def pow2_quantize(xp: Namespace, x: Array, *, sign: bool, with_zero: bool, n: int, m: int, ste_fine_grained: bool) -> Array:
    """Round to a power of two; rounding the logarithm puts the threshold at the geometric mean of two neighbours."""
    x = widen(xp, x)
    high = 2.0**m
    low = 2.0 ** (m - (2 ** (n - sign - with_zero) - 1))
    magnitude = xp.abs(x) if sign else xp.maximum(x, 0)
    y = 2.0 ** xp.floor(_log2(xp, magnitude) + 0.5)  # or a neighbour, where rounding reaches the threshold
    y = xp.where(magnitude <= y * _BELOW_ROOT, y / 2, xp.where(magnitude > y * (2 * _BELOW_ROOT), 2 * y, y))
    y = xp.clip(y, low, high)
    if with_zero:
        y = xp.where(magnitude <= low * _BELOW_ROOT, 0.0, y)
    return xp.where(x < 0, -y, y) if sign else y


@kernel("Prune")
def prune(xp: Namespace, x: Array, *, rate: float) -> Array:
    """Zero what is smaller in magnitude than the element at the fraction `rate` of the sorted magnitudes."""
    if rate == 1 or x.size == 0:
        return xp.zeros_like(x)
    magnitude = xp.abs(x)
    threshold = xp.sort(magnitude.reshape(-1))[int((x.size - 1) * rate)]
    return xp.where(magnitude < threshold, 0.0, x)


@kernel("MinMaxQuantize")
def min_max_quantize(
    xp: Namespace,
    x: Array,
    qr_min: Array,
    qr_max: Array,
    ql_min: Array,
    ql_max: Array,
    *,
    decay: float,
    x_min_max: bool,
    ema: bool,
    ste_fine_grained: bool,
    eps: float,
) -> tuple[Array, Array, Array, Array, Array]:
    """Round to evenly spaced levels of a range that is moved so that 0 is a level (Jacob et al., 2018, section 3)."""
    x, qr_min, qr_max, ql_min, ql_max = (widen(xp, array) for array in (x, qr_min, qr_max, ql_min, ql_max))
    if x_min_max and x.size:
        axes = tuple(axis for axis, length in enumerate(qr_min.shape) if length == 1)
        x_min, x_max = xp.min(x, axis=axes, keepdims=True), xp.max(x, axis=axes, keepdims=True)
        qr_min = decay * qr_min + (1 - decay) * x_min if ema else x_min
        qr_max = decay * qr_max + (1 - decay) * x_max if ema else x_max
    qr_max = xp.maximum(qr_max, qr_min + eps)
    scale = (qr_max - qr_min) / (ql_max - ql_min)
    zero_point = xp.clip(_round(xp, ql_min - qr_min / scale), ql_min, ql_max)
    low, high = (ql_min - zero_point) * scale, (ql_max - zero_point) * scale
    y = _round(xp, (xp.clip(x, low, high) - low) / scale) * scale + low
    return y, low, high, qr_min, qr_max


@kernel("QuantizeLinear")
def quantize_linear(
    xp: Namespace, x: Array, scale: Array, zero_point: Array, *, round_mode: str, narrow_range: bool, dtype: int
) -> tuple[Array, Array]:
    """Divide by the scale, round, shift and saturate; the rounded and saturated zero point is its new value."""
    low, high = ((-128, 127), (0, 255))[dtype - 1]
    low += narrow_range
    rounded = xp.round if round_mode == "HALF_TO_EVEN" else lambda value: _round(xp, value)
    zero_point = xp.clip(rounded(widen(xp, zero_point)), low, high)
    y = rounded(widen(xp, x) / widen(xp, scale)) + zero_point
    return xp.clip(y, low, high), zero_point


@kernel("DequantizeLinear")
def dequantize_linear(xp: Namespace, x: Array, scale: Array, zero_point: Array) -> Array:
    """Undo quantize_linear."""
    return (widen(xp, x) - widen(xp, zero_point)) * widen(xp, scale)


# --- Integers

#: The lowest and the highest number of each dtype that levels have.
_LEVELS: Final = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1)}


@kernel("QuantizeInteger")
def quantize_integer(xp: Namespace, x: Array, scale: Array, zero_point: Array) -> Array:
    """Divide by the scale, round halves to even, shift and saturate to the range of the dtype of the zero point."""
    _check_levels("quantize_integer", zero_point=zero_point)
    quotient = widen(xp, x) / widen(xp, scale)
    # limited before the zero point is added, so that float32 holds the sum exactly
    steps = xp.clip(xp.round(xp.where(xp.isnan(quotient), 0.0, quotient)), -(2.0**17), 2.0**17)
    return xp.clip(steps.astype(xp.int64) + zero_point.astype(xp.int64), *_LEVELS[str(zero_point.dtype)])


@kernel("MatMulInteger")
def matmul_integer(
    xp: Namespace, a: Array, b: Array, a_zero_point: Array | None, b_zero_point: Array | None, bias: Array | None
) -> Array:
    """Multiply in float64, which holds sums of 2**21 products of 16 bits exactly."""
    _check_levels("matmul_integer", a=a, b=b, a_zero_point=a_zero_point, b_zero_point=b_zero_point)
    y = xp.matmul(_centred(xp, a, a_zero_point), _centred(xp, b, b_zero_point))
    return _wrapped(xp, y if bias is None else y + bias.astype(xp.float64))


@kernel("ConvInteger")
def conv_integer(
    xp: Namespace,
    x: Array,
    weight: Array,
    x_zero_point: Array | None,
    weight_zero_point: Array | None,
    bias: Array | None,
    **geometry: Any,
) -> Array:
    """Convolve in float64; the border is zero once the zero point is subtracted."""
    _check_levels("conv_integer", x=x, weight=weight, x_zero_point=x_zero_point, weight_zero_point=weight_zero_point)
    images = _centred(xp, x, None if x_zero_point is None else x_zero_point.reshape(-1))
    of_filters = None if weight_zero_point is None else weight_zero_point.reshape(-1, *(1,) * (weight.ndim - 1))
    filters, shifts = _centred(xp, weight, of_filters), None if bias is None else bias.astype(xp.float64)
    return _wrapped(xp, convolution(xp, images, filters, shifts, channel_last=False, **geometry))


@kernel("QLinearMatMul")
def qlinear_matmul(
    xp: Namespace,
    a: Array,
    b: Array,
    scale: Array,
    zero_point: Array,
    a_zero_point: Array | None,
    b_zero_point: Array | None,
    bias: Array | None,
) -> Array:
    """Multiply, and quantize the sums."""
    sums = matmul_integer(xp, a, b, a_zero_point, b_zero_point, bias)
    return _requantized("qlinear_matmul", xp, sums, scale.reshape(-1), zero_point, a=a)


@kernel("QLinearConv")
def qlinear_conv(
    xp: Namespace,
    x: Array,
    weight: Array,
    scale: Array,
    zero_point: Array,
    x_zero_point: Array | None,
    weight_zero_point: Array | None,
    bias: Array | None,
    **geometry: Any,
) -> Array:
    """Convolve, and quantize the sums."""
    sums = conv_integer(xp, x, weight, x_zero_point, weight_zero_point, bias, **geometry)
    along = scale.reshape(-1, *(1,) * (weight.ndim - 2))
    return _requantized("qlinear_conv", xp, sums, along, zero_point, x=x)


def _requantized(function: str, xp: Namespace, sums: Array, scale: Array, zero_point: Array, **operand: Array) -> Array:
    """Return sums, rounded to the dtype of the scale, as levels of the dtype of the operand."""
    ((name, levels),) = operand.items()
    if zero_point.dtype != levels.dtype:
        raise DTypeError(f"{function}: zero_point must hold {levels.dtype} as {name} does, got {zero_point.dtype}")
    return quantize_integer(xp, sums.astype(scale.dtype), scale, zero_point.reshape(-1))


def _check_levels(function: str, **arrays: Array | None) -> None:
    for name, array in arrays.items():
        if array is not None and str(array.dtype) not in _LEVELS:
            raise DTypeError(f"{function}: {name} must hold {', '.join(_LEVELS)}, got {array.dtype}")


def _centred(xp: Namespace, x: Array, zero_point: Array | None) -> Array:
    """Return `x` less its zero point, whole numbers in float64."""
    y = x.astype(xp.float64)
    return y if zero_point is None else y - zero_point.astype(xp.float64)


def _wrapped(xp: Namespace, sums: Array) -> Array:
    """Return sums as int64 numbers that int32 holds: those out of its range wrap around."""
    return (sums.astype(xp.int64) + 2**31) % 2**32 - 2**31
