"""Resampling and warping."""

import math
from collections.abc import Sequence
from typing import Any

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Node, in_float64, operator
from nn_ext_onnx.importing.sampling import resized
from nn_ext_onnx.importing.values import UnsupportedError

#: Coordinates that each axis has for itself.
_SEPARABLE = ("half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners", "pytorch_half_pixel")

#: Coordinates that depend on the length of the result, which must not have been rounded.
_WHOLE_LENGTHS = ("align_corners", "pytorch_half_pixel", "tf_crop_and_resize")


@operator("Resize", since=11)
def _resize(node: Node) -> nn.Variable:
    coordinates = node.attr("coordinate_transformation_mode", "half_pixel")
    chosen = node.attr("axes")
    axes = [node.axis_of(axis) for axis in (range(node.ndim) if chosen is None else chosen)]
    lengths, factors, is_rounded = _lengths(node, axes)
    if coordinates == "half_pixel_symmetric" or is_rounded or node.attr("antialias", 0):
        if coordinates not in _SEPARABLE:
            raise UnsupportedError(f"coordinates {coordinates!r} with antialias or a rounded length")
        _require_one_meaning(node, axes, factors, coordinates)
        return resized(node, axes, lengths, factors)
    return _plainly_resized(node, axes, coordinates, lengths if _given(node, 3) else None, factors)


def _require_one_meaning(node: Node, axes: list[int], factors: list[float], coordinates: str) -> None:
    """Refuse corners that a rounded length moves: ONNX's definition and onnxruntime differ in where they are.

    Raises:
        UnsupportedError: when a length is no integer before it is rounded.
    """
    for axis, factor in zip(axes, factors, strict=True):
        if coordinates == "align_corners" and not (node.shape[axis] * factor).is_integer():
            raise UnsupportedError(
                f"coordinates {coordinates!r} with a length of {node.shape[axis]} times {factor}, "
                "for which the definition and onnxruntime have other results"
            )


def _plainly_resized(
    node: Node, axes: list[int], coordinates: str, lengths: list[int] | None, factors: list[float]
) -> nn.Variable:
    """Return the result of a resize that `F.onnx_resize` has, to `lengths` or by `factors`."""
    settings: dict[str, Any] = {}
    if lengths is not None:
        settings["sizes"] = _of_all_axes(node.shape, axes, lengths)
    else:
        settings["scales"] = _of_all_axes([1.0] * node.ndim, axes, factors)
    if coordinates == "tf_crop_and_resize":
        roi = _given(node, 1)
        starts = _of_all_axes([0.0] * node.ndim, axes, roi[: len(axes)])
        settings["roi"] = [*starts, *_of_all_axes([1.0] * node.ndim, axes, roi[len(axes) :])]
    return F.onnx_resize(
        node.x,
        mode=node.attr("mode", "nearest"),
        coordinate_transformation_mode=coordinates,
        cubic_coeff_a=node.attr("cubic_coeff_a", -0.75),
        exclude_outside=node.attr("exclude_outside", 0),
        extrapolation_value=node.attr("extrapolation_value", 0.0),
        nearest_mode=node.attr("nearest_mode", "round_prefer_floor"),
        **settings,
    )


def _of_all_axes(values: Sequence[Any], axes: list[int], chosen: Sequence[Any]) -> list[Any]:
    """Return `values` of all axes, with those of some replaced."""
    made = list(values)
    for axis, value in zip(axes, chosen, strict=True):
        made[axis] = value
    return made


def _lengths(node: Node, axes: list[int]) -> tuple[list[int], list[float], bool]:
    """Return the length and the factor of each of `axes`, and whether a length was rounded that coordinates depend on.

    Raises:
        UnsupportedError: when a factor is not positive, or an unknown policy chooses it.
    """
    scales, sizes = (_given(node, index) for index in (2, 3))
    before = [node.shape[axis] for axis in axes]
    if not sizes:
        return _scaled(node, before, scales)
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    if len(sizes) != len(axes) or policy not in ("stretch", "not_larger", "not_smaller"):
        raise UnsupportedError(f"sizes {sizes} with keep_aspect_ratio_policy {policy!r}")
    factors = [size / n if n else 1.0 for size, n in zip(sizes, before, strict=True)]
    if policy == "stretch":
        return [int(size) for size in sizes], factors, False
    factor = (min if policy == "not_larger" else max)(factors)
    return [math.floor(factor * n + 0.5) for n in before], [factor] * len(axes), True


def _scaled(node: Node, before: list[int], scales: list[float]) -> tuple[list[int], list[float], bool]:
    if len(scales) != len(before) or min(scales, default=1.0) <= 0:
        raise UnsupportedError(f"scales {scales}")
    whole = [n * scale for n, scale in zip(before, scales, strict=True)]
    is_dependent = node.attr("coordinate_transformation_mode", "half_pixel") in _WHOLE_LENGTHS
    is_rounded = is_dependent and not all(map(float.is_integer, whole))
    return [math.floor(length) for length in whole], scales, is_rounded


def _given(node: Node, index: int) -> list[float]:
    array = node.optional_array(index)
    return [] if array is None else [v.item() for v in array.reshape(-1)]


@operator("Resize", since=10)
@operator("Upsample")
def _upsample(node: Node) -> nn.Variable:
    """Before version 11 places are those of the input divided by the scale."""
    scales = node.attr("scales") or _given(node, 1)
    mode = node.attr("mode", "nearest")
    if mode not in ("nearest", "linear"):
        raise UnsupportedError(f"mode {mode!r}")
    return F.onnx_resize(
        node.x,
        scales=[float(s) for s in scales],
        mode=mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


@operator("DFT", since=17)
def _dft(node: Node) -> nn.Variable:
    """Transform in float64: sums of which most cancel are zeros to 1e-7 then, as the definition has them."""
    with in_float64():
        return _transformed(node)


def _transformed(node: Node) -> nn.Variable:
    """Before version 20 the axis is an attribute, and counts from 0 on as 1."""
    inverse, is_half = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    axis, last = _signal_axis(node), node.ndim - 1
    length = int(node.number(1, 2 * (node.shape[axis] - 1) if inverse and is_half else node.shape[axis]))
    if length < 1:
        raise UnsupportedError(f"a length of {length}")
    x = node.x
    if node.shape[last] == 1:
        x = F.pad(x, (0, 0) * last + (0, 1))
    order = [*(n for n in range(last) if n != axis), axis, last]
    x = F.transpose(x, order)
    if inverse and is_half:
        y = _real_signal(x, length)
    else:
        x = _of_length(x, length)
        y = F.ifft(x, 1) if inverse else F.fft(x, 1)
        y = _first(y, length // 2 + 1) if is_half else y
    return F.transpose(y, [order.index(n) for n in range(node.ndim)])


def _real_signal(half: nn.Variable, length: int) -> nn.Variable:
    """Return the real signal of `length` numbers of which `half` is the first half of the spectrum; the rest mirrors it."""
    half = _of_length(half, length // 2 + 1)
    n_mirrored = (length - 1) // 2
    if n_mirrored:
        start, stop = [0] * half.ndim, list(half.shape)
        start[-2], stop[-2] = 1, n_mirrored + 1
        mirrored = F.flip(F.slice(half, start=start, stop=stop, step=[1] * half.ndim), axes=[half.ndim - 2])
        real, imaginary = F.split(mirrored, axis=half.ndim - 1)
        half = F.concatenate(half, F.stack(real, -imaginary, axis=half.ndim - 1), axis=half.ndim - 2)
    signal = F.ifft(half, 1)
    return F.slice(signal, start=[0] * half.ndim, stop=[*half.shape[:-1], 1], step=[1] * half.ndim)


def _signal_axis(node: Node) -> int:
    axis = node.axis_of(int(node.attr("axis", 1) if node.opset < 20 else node.number(2, -2)))
    if axis == node.ndim - 1 or node.shape[-1] not in (1, 2):
        raise UnsupportedError(f"the axis {axis} of a signal of the shape {node.shape}, which must end with 1 or 2 parts")
    return axis


def _of_length(x: nn.Variable, length: int) -> nn.Variable:
    """`x` with zeros after the last axis but one, or a part of it."""
    missing = length - x.shape[-2]
    return F.pad(x, (0, missing, 0, 0)) if missing > 0 else _first(x, length) if missing < 0 else x


def _first(x: nn.Variable, count: int) -> nn.Variable:
    """Return the first elements of the last axis but one."""
    stops = [*x.shape[:-2], count, x.shape[-1]]
    return F.slice(x, start=[0] * x.ndim, stop=stops, step=[1] * x.ndim)
