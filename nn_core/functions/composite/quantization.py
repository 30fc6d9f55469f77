"""Quantizers that a flag can switch off."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import door
from nn_core.engine.graph.imperative import one_kind
from nn_core.errors import ArgumentTypeError
from nn_core.functions import quantization as operators
from nn_core.functions.operand import Operand

__all__ = ["fixed_point_quantize", "min_max_quantize", "pow2_quantize", "quantize_linear"]


@door
def fixed_point_quantize(
    x: Operand,
    sign: bool = True,
    n: int = 8,
    delta: float = 2.0**-4,
    quantize: bool = True,
    ste_fine_grained: bool = True,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
    """Round to multiples of `delta` that fit into n bits.

    Args:
        x: Array of any shape.
        sign: One of the bits is a sign.
        n: Number of bits.
        delta: Distance of neighbouring values.
        quantize: False gives x as it is.
        ste_fine_grained: Let no gradient flow where x is outside the representable range.
        outputs: see `nn_core.functions`.

    Returns:
        An array of the shape of x.

    Example:
        >>> F.fixed_point_quantize(nn.NdArray.from_numpy_array([0.11, -0.3, 9.0]), n=4, delta=0.25).numpy().tolist()
        [0.0, -0.25, 1.75]
    """
    if not quantize:
        return x
    return operators.fixed_point_quantize(x, sign, n, delta, ste_fine_grained, outputs=outputs)


@door
def pow2_quantize(
    x: Operand,
    sign: bool = True,
    with_zero: bool = True,
    n: int = 8,
    m: int = 1,
    quantize: bool = True,
    ste_fine_grained: bool = True,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
    """Round to powers of two that n bits can tell apart.

    Args:
        x: Array of any shape.
        sign: One of the bits is a sign.
        with_zero: One of the values is zero.
        n: Number of bits.
        m: The largest value is 2^m.
        quantize: False gives x as it is.
        ste_fine_grained: Let no gradient flow where x is outside the representable range.
        outputs: see `nn_core.functions`.

    Returns:
        An array of the shape of x.

    Example:
        >>> F.pow2_quantize(nn.NdArray.from_numpy_array([0.3, -0.7, 9.0]), n=4, m=1).numpy().tolist()
        [0.25, -0.5, 2.0]
    """
    if not quantize:
        return x
    return operators.pow2_quantize(x, sign, with_zero, n, m, ste_fine_grained, outputs=outputs)


@one_kind
def min_max_quantize(
    x: Operand,
    qr_min: Operand,
    qr_max: Operand,
    ql_min: Operand,
    ql_max: Operand,
    decay: float = 0.999,
    x_min_max: bool = False,
    ema: bool = False,
    ste_fine_grained: bool = True,
    eps: float = 0.01,
    quantize: bool = True,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
    """Round to evenly spaced levels between a minimum and a maximum.

    Args:
        x: Array of any shape.
        qr_min: Lower end of the range; broadcasts against x.
        qr_max: Upper end of the range; broadcasts against x.
        ql_min: Number of the lowest level, such as 0.
        ql_max: Number of the highest level, such as 255.
        decay: Weight of the past in a moving average of the range.
        x_min_max: Take the range from x instead of learning it.
        ema: With `x_min_max`, keep a moving average of the range in qr_min and qr_max.
        ste_fine_grained: Let no gradient flow where x is outside the range.
        eps: Smallest width of the range.
        quantize: False gives x as it is.
        outputs: see `nn_core.functions`.

    Returns:
        An array of the shape of x.

    Example:
        >>> low, high = nn.NdArray.from_numpy_array([[0.0]]), nn.NdArray.from_numpy_array([[1.0]])
        >>> bottom, top = nn.NdArray.from_numpy_array([[0.0]]), nn.NdArray.from_numpy_array([[4.0]])  # four steps
        >>> F.min_max_quantize(nn.NdArray.from_numpy_array([[0.1, 0.6, 2.0]]), low, high, bottom, top).numpy().tolist()
        [[0.0, 0.5, 1.0]]
    """
    if not quantize:
        return x
    return operators.min_max_quantize(
        x, qr_min, qr_max, ql_min, ql_max, decay, x_min_max, ema, ste_fine_grained, eps, outputs=outputs
    )


@door
def quantize_linear(
    x: Operand,
    scale: Operand,
    zero_point: Operand,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    dtype: Any = np.int8,
) -> Operand:
    """Map numbers linearly to integers and clip them to the range of a type.

    y = clip(round(x / scale) + zero_point)

    Args:
        x: Array of any shape.
        scale: Size of a step; broadcasts against x.
        zero_point: Integer that zero is mapped to; broadcasts against x.
        round_mode: "HALF_AWAY_FROM_ZERO" or "HALF_TO_EVEN".
        narrow_range: Leave out the lowest integer, so that the range is symmetric.
        dtype: Integer type of the range, np.int8 or np.uint8.

    Returns:
        An array of the shape of x.

    Example:
        >>> scale, zero_point = nn.NdArray.from_numpy_array([0.5]), nn.NdArray.from_numpy_array([10])
        >>> F.quantize_linear(nn.NdArray.from_numpy_array([0.0, 1.0, -2.0]), scale, zero_point).numpy().tolist()
        [10.0, 12.0, 6.0]
    """
    return operators.quantize_linear(x, scale, zero_point, round_mode, narrow_range, _integer_type(dtype))


def _integer_type(dtype: Any) -> int:
    """Return NumPy's number of an integer type."""
    try:
        known = None if dtype is None else np.dtype(dtype)
    except TypeError:
        known = None
    if known not in (np.int8, np.uint8):
        raise ArgumentTypeError(f"quantize_linear: dtype must be np.int8 or np.uint8, got {dtype!r}")
    return known.num
