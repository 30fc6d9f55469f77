"""The arithmetic of integer networks; docs of the package state it, the reference computes it, the C code repeats it."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

LOW: Final = -128
HIGH: Final = 127
#: Accumulators must stay below this magnitude.
ACCUMULATOR: Final = 2**31
#: Biases get at most so large as integers; a channel whose weights are small beside its bias gets a larger scale.
_BIAS: Final = 2**26


@dataclass(frozen=True, slots=True)
class Scale:
    """The mapping of integers to numbers: ``scale * (q - zero)``. The scale is a float32."""

    scale: float
    zero: int


def scale_of(low: float, high: float) -> Scale:
    """Return the scale whose 256 integers reach from `low` to `high`, stretched so that 0 is one of them."""
    low, high = min(low, 0.0), max(high, 0.0)
    step = float(np.float32((high - low) / 255))
    if step == 0 or not math.isfinite(step):
        step = 1.0
    return Scale(step, int(np.clip(round_half_away(np.asarray(LOW - low / step)), LOW, HIGH)))


def round_half_away(x: Array) -> Array:
    """Return the nearest integers, halves away from zero."""
    whole = np.trunc(x)
    return np.asarray(whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0))


def quantized(x: Array, scale: Scale) -> Array:
    """Return the nearest integers for numbers, in float32 as C computes it; NaN becomes the lowest."""
    q = round_half_away(np.asarray(x, np.float32) / np.float32(scale.scale)) + np.float32(scale.zero)
    return np.asarray(np.where(q >= HIGH, HIGH, np.where(q > LOW, q, LOW)).astype(np.int64))


def dequantized(q: Array, scale: Scale) -> Array:
    """Return the numbers that integers stand for."""
    return np.asarray((q - scale.zero).astype(np.float32) * np.float32(scale.scale))


def fixed_point(factor: float) -> tuple[int, int]:
    """Return a factor as ``multiplier * 2 ** -shift`` with a multiplier of 31 bits; 0 where it is below 2 ** -32.

    Raises:
        ValueError: when it is 2 ** 30 or more.
    """
    mantissa, exponent = math.frexp(factor)
    multiplier, shift = round(mantissa * 2**31), 31 - exponent
    if multiplier == 2**31:
        multiplier, shift = 2**30, shift - 1
    if shift > 62:
        return 0, 1
    if shift < 1:
        raise ValueError(f"factors must be below 2 ** 30, got {factor}")
    return multiplier, shift


def shifted(x: Array, shift: Array | int) -> Array:
    """``x / 2 ** shift``, rounded to the nearest integer, halves away from zero."""
    half = np.left_shift(np.int64(1), np.asarray(shift, np.int64) - 1)
    return np.asarray(np.where(x >= 0, (x + half) >> shift, -((half - x) >> shift)))


def clamped(q: Array, low: int, high: int) -> Array:
    """Integers between two bounds."""
    return np.asarray(np.clip(q, low, high))


def weights_in_integers(weight: Array, bias: Array | None, input_scale: float) -> tuple[Array, Array, Array]:
    """Symmetric integers for each row of a weight, its bias as an accumulator has it, and the scale of each row."""
    rows = weight.reshape(weight.shape[0], -1).astype(np.float64)
    offsets = np.zeros(len(rows)) if bias is None else bias.astype(np.float64)
    scales = np.maximum(np.abs(rows).max(axis=1) / HIGH, np.abs(offsets) / (input_scale * _BIAS))
    scales = np.where(scales > 0, scales, 1.0)
    integers = round_half_away(rows / scales[:, None]).astype(np.int64).reshape(weight.shape)
    return integers, round_half_away(offsets / (input_scale * scales)).astype(np.int64), scales
