"""Resampling and warping."""

from typing import Any

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Node, operator
from nn_ext_onnx.importing.values import UnsupportedError

_COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize")

#: Coordinates that depend on the length of the result, which must not have been rounded.
_WHOLE_LENGTHS = ("align_corners", "pytorch_half_pixel", "tf_crop_and_resize")


@operator("Resize", since=11)
def _resize(node: Node) -> nn.Variable:
    mode, coordinates = node.attr("mode", "nearest"), node.attr("coordinate_transformation_mode", "half_pixel")
    _refuse_resize(node, coordinates)
    chosen = node.attr("axes")
    axes = [node.axis_of(axis) for axis in (range(node.ndim) if chosen is None else chosen)]
    roi, scales, sizes = (_given(node, index) for index in (1, 2, 3))
    settings: dict[str, Any] = {}
    if sizes:
        settings["sizes"] = _lengths(node, axes, sizes)
    else:
        settings["scales"] = _factors(node, axes, scales, coordinates)
    if coordinates == "tf_crop_and_resize":
        starts, ends = [0.0] * node.ndim, [1.0] * node.ndim
        for k, axis in enumerate(axes):
            starts[axis], ends[axis] = float(roi[k]), float(roi[k + len(axes)])
        settings["roi"] = [*starts, *ends]
    return F.onnx_resize(
        node.x,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        cubic_coeff_a=node.attr("cubic_coeff_a", -0.75),
        exclude_outside=node.attr("exclude_outside", 0),
        extrapolation_value=node.attr("extrapolation_value", 0.0),
        nearest_mode=node.attr("nearest_mode", "round_prefer_floor"),
        **settings,
    )


def _refuse_resize(node: Node, coordinates: str) -> None:
    if coordinates not in _COORDINATES or node.attr("antialias", 0):
        raise UnsupportedError(f"coordinates {coordinates!r}" if coordinates not in _COORDINATES else "antialias")
    if node.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise UnsupportedError(f"keep_aspect_ratio_policy {node.attr('keep_aspect_ratio_policy')!r}")


def _lengths(node: Node, axes: list[int], sizes: list[float]) -> list[int]:
    """Give the length of every axis after a resize to `sizes` of `axes`."""
    lengths = list(node.shape)
    for axis, size in zip(axes, sizes, strict=True):
        lengths[axis] = int(size)
    return lengths


def _factors(node: Node, axes: list[int], scales: list[float], coordinates: str) -> list[float]:
    """Give the factor of every axis of a resize by `scales` of `axes`."""
    factors = [1.0] * node.ndim
    for axis, scale in zip(axes, scales, strict=True):
        factors[axis] = float(scale)
        if coordinates in _WHOLE_LENGTHS and not (node.shape[axis] * float(scale)).is_integer():
            raise UnsupportedError(f"coordinates {coordinates!r} with a length of {node.shape[axis]} times {scale}")
    return factors


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


@operator("GridSample")
def _grid_sample(node: Node) -> nn.Variable:
    mode = node.attr("mode", "linear" if node.opset >= 20 else "bilinear")
    if mode not in ("linear", "bilinear"):
        raise UnsupportedError(f"mode {mode!r}")
    padding = {"zeros": "zero", "border": "repeat", "reflection": "reflect"}[node.attr("padding_mode", "zeros")]
    return F.warp_by_grid(
        node.x, node.variable(1), mode="linear", padding_mode=padding, align_corners=bool(node.attr("align_corners", 0))
    )


@operator("DFT", since=17)
def _dft(node: Node) -> nn.Variable:
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
