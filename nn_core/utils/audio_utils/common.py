"""Scale the samples of sounds to other ranges."""

from typing import Any

import numpy as np

from nn_core.errors import ArgumentError

Sound = np.ndarray[Any, Any]


def normalize_intensity(audio_arr: Sound, input_low: float, input_high: float) -> Sound:
    """Return the samples mapped linearly so that `input_low` becomes 0 and `input_high` 1, in float64; of the same shape.

    Raises:
        ArgumentError: when `input_high` is not greater than `input_low`.

    Example:
        >>> normalize_intensity(np.array([-2, 0, 6]), -2, 6).tolist()
        [0.0, 0.25, 1.0]
    """
    if not input_low < input_high:
        raise ArgumentError(f"normalize_intensity: input_low must be less than input_high, got {input_low} and {input_high}")
    return (np.asarray(audio_arr, np.float64) - input_low) / (float(input_high) - float(input_low))


def rescale_intensity(
    audio_arr: Sound,
    input_low: float = 0,
    input_high: float = 255,
    output_low: float = 0,
    output_high: float = 255,
    output_type: Any = None,
) -> Sound:
    """Return the samples mapped linearly from one range to another.

    Args:
        audio_arr: The samples.
        input_low: Value that becomes `output_low`.
        input_high: Value that becomes `output_high`.
        output_low: See `input_low`.
        output_high: See `input_high`.
        output_type: Dtype of the result, for which fractions are cut off; None: float64.

    Raises:
        ArgumentError: when `input_high` is not greater than `input_low`.
    """
    scaled = normalize_intensity(audio_arr, input_low, input_high) * (float(output_high) - float(output_low)) + output_low
    return scaled if output_type is None else scaled.astype(output_type)


def minmax_auto_scale(audio_arr: Sound, out_datatype: Any) -> Sound:
    """Return the samples in another dtype of integers, the whole range of one mapped to that of the other.

    Args:
        audio_arr: Integers, whose range is that of their dtype; or numbers, whose least and largest are the range.
        out_datatype: uint8, int16, int32 or another dtype of integers.

    Raises:
        ArgumentError: when `out_datatype` is no dtype of integers.

    Example:
        >>> minmax_auto_scale(np.array([-2.0, 0.0, 6.0]), np.uint8).tolist()
        [0, 63, 255]
    """
    target = np.dtype(out_datatype)
    if target.kind not in "iu":
        raise ArgumentError(f"minmax_auto_scale: out_datatype must be a dtype of integers, got {target}")
    samples = np.asarray(audio_arr)
    if samples.dtype == target:
        return samples
    limits = np.iinfo(target)
    if samples.dtype.kind in "iu":
        low, high = float(np.iinfo(samples.dtype).min), float(np.iinfo(samples.dtype).max)
    else:
        low, high = (float(samples.min()), float(samples.max())) if samples.size else (0.0, 1.0)
        if low == high:  # silence has no range
            return np.zeros(samples.shape, target)
    return rescale_intensity(samples, low, high, limits.min, limits.max, target)
