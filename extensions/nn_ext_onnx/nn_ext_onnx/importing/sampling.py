"""Images sampled at computed positions: GridSample, and Resize where `F.onnx_resize` has no such coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, Final

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.arithmetic import rounded, where
from nn_ext_onnx.importing.registry import Node, operator
from nn_ext_onnx.importing.values import Array, UnsupportedError

#: Indices are computed in float32, which holds integers up to this one.
_LARGEST_INDEX: Final = 1 << 24


# GridSample ---------------------------------------------------------------------------------------------------------


@operator("GridSample")
def _grid_sample(node: Node) -> nn.Variable:
    mode = node.attr("mode", "linear" if node.opset >= 20 else "bilinear")
    padding, align = node.attr("padding_mode", "zeros"), bool(node.attr("align_corners", 0))
    if mode in ("linear", "bilinear"):
        named = {"zeros": "zero", "border": "repeat", "reflection": "reflect"}[padding]
        return F.warp_by_grid(node.x, node.variable(1), mode="linear", padding_mode=named, align_corners=align)
    lengths = node.shape[2:]
    if mode not in ("nearest", "cubic", "bicubic") or math.prod(lengths) > _LARGEST_INDEX:
        raise UnsupportedError(f"mode {mode!r} of images of shape {node.shape}")
    parts = F.split(node.variable(1), axis=node[1].ndim - 1)[::-1]
    points = [_position(part, length, align) for part, length in zip(parts, lengths, strict=True)]
    taps = [_nearest(point) if mode == "nearest" else _cubic(point) for point in points]
    return reduce(F.add2, [_weighed(node.x, chosen, padding, align) for chosen in product(*taps)])


def _position(part: nn.Variable, length: int, align: bool) -> nn.Variable:
    """Return positions in pixels for those from -1 to 1."""
    return (part + 1.0) * ((length - 1) / 2) if align else ((part + 1.0) * float(length) - 1.0) * 0.5


#: A position of integers, and its weight; None for 1.
_Tap = tuple[nn.Variable, "nn.Variable | None"]


def _nearest(point: nn.Variable) -> list[_Tap]:
    return [(rounded(point), None)]


def _cubic(point: nn.Variable, a: float = -0.75) -> list[_Tap]:
    low = F.floor(point)
    rest = point - low
    weights = [_far(rest + 1.0, a), _near(rest, a), _near(1.0 - rest, a), _far(2.0 - rest, a)]
    return [(low + float(shift), weight) for shift, weight in zip((-1, 0, 1, 2), weights, strict=True)]


def _weighed(x: nn.Variable, taps: Sequence[_Tap], padding: str, align: bool) -> nn.Variable:
    """Return the pixels at one tap of each axis, times their weights."""
    lengths, index, factors = x.shape[2:], None, [weight for _, weight in taps if weight is not None]
    for (position, _), length in zip(taps, lengths, strict=True):
        number = F.reset_nan(position, -1.0)
        if padding == "zeros":
            factors.append(F.logical_and(F.greater_equal_scalar(number, 0.0), F.less_scalar(number, float(length))))
        placed = _mirrored(number, length, align) if padding == "reflection" else number
        inside = F.minimum_scalar(F.maximum_scalar(placed, 0.0), length - 1.0)
        index = inside if index is None else index * float(length) + inside
    assert index is not None
    flat, n_points = F.reshape(x, (*x.shape[:2], math.prod(lengths))), math.prod(index.shape[1:])
    picked = F.gather(flat, F.reshape(index, (x.shape[0], n_points)), axis=2, batch_dims=1)
    y = F.reshape(picked, (*x.shape[:2], *index.shape[1:]))
    if not factors:
        return y
    weight = F.reshape(reduce(F.mul2, factors), (x.shape[0], 1, *index.shape[1:]))
    return where(F.equal_scalar(weight, 0.0), weight, y * weight)


def _mirrored(position: nn.Variable, length: int, align: bool) -> nn.Variable:
    """Return positions mirrored at the middles of the pixels at the border, or at their outer edges."""
    low, width = (0.0, length - 1.0) if align else (-0.5, float(length))
    if not width:
        return position * 0.0
    period = nn.Variable.from_numpy_array(np.full((1,) * position.ndim, 2 * width, np.float32))
    distance = F.mod2(F.abs(position - low), period, fmod=True)
    return width + low - F.abs(distance - width)


# Resize -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """A resize along one axis, by the definition of the operator.

    Attributes:
        n_in, n_out: lengths.
        scale: the factor of the coordinates, whatever `n_out` was rounded to.
        coordinates: the attribute ``coordinate_transformation_mode``.
    """

    n_in: int
    n_out: int
    scale: float
    coordinates: str

    def positions(self) -> Array:
        """Return the position in the input of each element of the result."""
        at, length = np.arange(self.n_out, dtype=np.float64), self.scale * self.n_in
        if self.coordinates == "asymmetric":
            return np.asarray(at / self.scale)
        if self.coordinates == "align_corners":
            return np.asarray(at * (self.n_in - 1) / (length - 1) if length != 1 else at * 0)
        if self.coordinates == "pytorch_half_pixel" and length <= 1:
            return at * 0
        shift = 0.0
        if self.coordinates == "half_pixel_symmetric":
            shift = self.n_in / 2 * (1 - self.n_out / length)
        return np.asarray(shift + (at + 0.5) / self.scale - 0.5)

    def weights(self, kernel: Callable[[Array], Array], reach: int, antialias: bool, excludes: bool) -> Array:
        """Return the weight of each element of the input in each of the result, (n_in, n_out).

        Args:
            kernel: the weight at a distance.
            reach: the distance from which on it is 0.
            antialias: whether the kernel is stretched where the result is shorter.
            excludes: whether elements outside have no weight; else they are those at the border.
        """
        stretch = min(self.scale, 1.0) if antialias else 1.0
        positions = self.positions()
        low = np.floor(positions)
        far = math.ceil(reach / stretch)
        taps = low[:, None] + np.arange(1 - far, far + 1)
        made = kernel(np.abs(taps - positions[:, None]) * stretch)
        if excludes:
            made = np.where((taps >= 0) & (taps < self.n_in), made, 0.0)
        if excludes or antialias:
            made = made / made.sum(axis=1, keepdims=True)
        matrix = np.zeros((self.n_in, self.n_out))
        columns = np.broadcast_to(np.arange(self.n_out)[:, None], taps.shape)
        np.add.at(matrix, (np.clip(taps, 0, self.n_in - 1).astype(np.int64), columns), made)
        return matrix

    def nearest(self, mode: str) -> Array:
        """Return the index of the element that each of the result takes."""
        roundings: dict[str, Callable[[Array], Array]] = {
            "round_prefer_floor": lambda x: np.ceil(x - 0.5),
            "round_prefer_ceil": lambda x: np.floor(x + 0.5),
            "floor": np.floor,
            "ceil": np.ceil,
        }
        return np.clip(roundings[mode](self.positions()), 0, self.n_in - 1).astype(np.int64)


def _triangle(distance: Array) -> Array:
    return np.clip(1 - distance, 0, 1)


def cubic_kernel(a: float) -> Callable[[Array], Array]:
    """Return the weight of cubic convolution at a distance from 0 on."""

    def weight(t: Array) -> Array:
        return np.where(t <= 1, _near(t, a), np.where(t < 2, _far(t, a), 0.0))

    return weight


def _near(t: Any, a: float) -> Any:
    """Return the weight of cubic convolution at a distance up to 1, of a Variable or an array."""
    return ((a + 2) * t - (a + 3)) * t * t + 1.0


def _far(t: Any, a: float) -> Any:
    """Return the weight of cubic convolution at a distance from 1 to 2."""
    return ((t - 5.0) * t + 8.0) * (a * t) - 4 * a


def resized(node: Node, axes: Sequence[int], lengths: Sequence[int], scales: Sequence[float]) -> nn.Variable:
    """Return the first input resized along some axes, one after the other, as products with matrices of weights."""
    mode, y = node.attr("mode", "nearest"), node.x
    kernel: Callable[[Array], Array] = _triangle
    reach = 1
    if mode == "cubic":
        kernel, reach = cubic_kernel(node.attr("cubic_coeff_a", -0.75)), 2
    for k, length, scale in zip(axes, lengths, scales, strict=True):
        axis = Axis(y.shape[k], length, scale, node.attr("coordinate_transformation_mode", "half_pixel"))
        if mode == "nearest":
            index = axis.nearest(node.attr("nearest_mode", "round_prefer_floor"))
            y = F.gather(y, nn.Variable.from_numpy_array(index), axis=k)
        elif (axis.n_out, axis.scale) != (axis.n_in, 1.0):
            excludes = bool(node.attr("exclude_outside", 0))
            matrix = axis.weights(kernel, reach, bool(node.attr("antialias", 0)), excludes)
            y = _multiplied(y, k, matrix)
    return F.identity(y) if y is node.x else y


def _multiplied(x: nn.Variable, axis: int, matrix: Array) -> nn.Variable:
    """Return the product of one axis with a matrix."""
    weight = nn.Variable.from_numpy_array(matrix.astype(np.float32))
    last = x.ndim - 1
    if axis == last:
        return F.affine(x, weight, base_axis=last)
    order = [*(k for k in range(x.ndim) if k != axis), axis]
    y = F.affine(F.transpose(x, order), weight, base_axis=last)
    return F.transpose(y, [order.index(k) for k in range(x.ndim)])
