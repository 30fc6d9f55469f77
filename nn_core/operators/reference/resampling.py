"""Resampling along one axis: an output element is a weighted sum of a few input elements, its taps.

Taps are two arrays of shape (outputs, taps): indices into the axis and their weights.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from nn_core.typing import Array, Namespace, Shape


def resample(xp: Namespace, x: Array, axis: int, taps: tuple[Array, Array]) -> Array:
    """Return the weighted sums of the taps along one axis."""
    indices, weights = taps
    weights = weights.astype(x.dtype).reshape((*weights.shape, *(1,) * (x.ndim - axis - 1)))
    return sum(xp.take(x, indices[:, tap], axis=axis) * weights[:, tap] for tap in range(indices.shape[1]))


def resample_transposed(xp: Namespace, dy: Array, axis: int, n_inputs: int, taps: tuple[Array, Array]) -> Array:
    """Return the transpose of ``resample``, by its matrix of shape (outputs, inputs)."""
    indices, weights = taps
    hits = indices[:, :, None] == xp.arange(n_inputs)
    matrix = xp.sum(xp.where(hits, weights[:, :, None], 0.0), axis=1).astype(dy.dtype)
    return xp.moveaxis(xp.tensordot(dy, matrix, axes=((axis,), (0,))), -1, axis)


def interpolate_taps(
    xp: Namespace,
    n_inputs: int,
    n_outputs: int,
    *,
    mode: str,
    align_corners: bool,
    half_pixel: bool,
    half_pixel_for_nn: bool,
) -> tuple[Array, Array]:
    """Taps of Interpolate. A coordinate is numerator / denominator in integers, so that no rounding moves a tap."""
    place = xp.arange(n_outputs)
    if mode == "nearest" and half_pixel_for_nn:
        numerator, denominator = (2 * place + 1) * n_inputs, 2 * n_outputs
    elif n_outputs == 1:
        numerator, denominator = place, 1
    elif align_corners:
        numerator, denominator = place * (n_inputs - 1), n_outputs - 1
    elif half_pixel:
        numerator, denominator = (2 * place + 1) * n_inputs - n_outputs, 2 * n_outputs
    else:
        numerator, denominator = place * n_inputs, n_outputs
    numerator = xp.clip(numerator, 0, (n_inputs - 1) * denominator)
    low = numerator // denominator
    if mode == "nearest":
        return low[:, None], xp.ones((n_outputs, 1))
    fraction = (numerator - low * denominator) / denominator
    high = xp.clip(low + 1, 0, n_inputs - 1)
    return xp.stack((low, high), axis=1), xp.stack((1 - fraction, fraction), axis=1)


def resized_axes(
    xp: Namespace,
    input_shape: Shape,
    output_shape: Shape,
    scales: Sequence[float],
    sizes: Shape,
    *,
    roi: Sequence[float],
    coordinate_transformation_mode: str,
    **settings: Any,
) -> Iterator[tuple[int, tuple[Array, Array], Array]]:
    """For each axis that is not copied as it is: axis, taps, which outputs a crop takes from outside of the input."""
    is_crop = coordinate_transformation_mode == "tf_crop_and_resize"
    for axis, (n_inputs, n_outputs) in enumerate(zip(input_shape, output_shape, strict=True)):
        ratio = n_inputs / n_outputs if sizes else 1 / scales[axis]
        if ratio == 1 and not is_crop:
            continue
        crop = (roi[axis], roi[len(input_shape) + axis]) if is_crop else (0.0, 1.0)
        place = _resize_coordinates(xp, n_inputs, n_outputs, ratio, crop, coordinate_transformation_mode)
        outside = is_crop & ((place < 0) | (place > n_inputs - 1))
        yield axis, _resize_taps(xp, place, n_inputs, **settings), outside


def _resize_coordinates(
    xp: Namespace, n_inputs: int, n_outputs: int, ratio: float, crop: tuple[float, float], transformation: str
) -> Array:
    """Place in the input of the centre of each output, as ONNX Resize (opset 13) defines it."""
    place = xp.arange(n_outputs, dtype="float64")
    if transformation == "tf_crop_and_resize":
        start, end = crop
        if n_outputs == 1:
            return place + (start + end) * (n_inputs - 1) / 2
        return start * (n_inputs - 1) + place * ((end - start) * (n_inputs - 1) / (n_outputs - 1))
    if transformation in ("align_corners", "pytorch_half_pixel") and n_outputs == 1:
        return place
    if transformation == "align_corners":
        return place * (n_inputs - 1) / (n_outputs - 1)
    if transformation == "asymmetric":
        return place * ratio
    return (place + 0.5) * ratio - 0.5


_ROUNDINGS = {
    "round_prefer_floor": lambda xp, place: xp.ceil(place - 0.5),
    "round_prefer_ceil": lambda xp, place: xp.floor(place + 0.5),
    "floor": lambda xp, place: xp.floor(place),
    "ceil": lambda xp, place: xp.ceil(place),
}


def _resize_taps(
    xp: Namespace,
    place: Array,
    n_inputs: int,
    *,
    mode: str,
    nearest_mode: str,
    cubic_coeff_a: float,
    exclude_outside: int,
) -> tuple[Array, Array]:
    """Taps around the coordinates `place`; cubic weights are those of Keys (1981) with the coefficient a."""
    if mode == "nearest":
        indices, weights = _ROUNDINGS[nearest_mode](xp, place)[:, None], xp.ones((place.shape[0], 1))
    elif mode == "linear":
        indices = xp.floor(place)[:, None] + xp.arange(2)
        weights = 1 - xp.abs(place[:, None] - indices)
    else:
        indices = xp.floor(place)[:, None] + xp.arange(-1, 3)
        distance, a = xp.abs(place[:, None] - indices), cubic_coeff_a
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        weights = xp.where(distance <= 1, near, (((distance - 5) * distance + 8) * distance - 4) * a)
        if exclude_outside:
            weights = xp.where((indices < 0) | (indices > n_inputs - 1), 0.0, weights)
            weights = weights / xp.sum(weights, axis=1, keepdims=True)
    return xp.clip(indices, 0, n_inputs - 1).astype("int64"), weights
