"""Poolings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.convolution import bordered, window_pads
from nn_ext_onnx.importing.host import on_host
from nn_ext_onnx.importing.registry import Made, Node, operator
from nn_ext_onnx.importing.values import Array, UnsupportedError, Value


class _Pooling:
    """The geometry of a pooling: `pads` as the model has them, `after` so that the last window is whole."""

    def __init__(self, node: Node) -> None:
        self.kernel = node.attr("kernel_shape")
        n = len(self.kernel)
        self.strides, self.dilations = node.attr("strides") or [1] * n, node.attr("dilations") or [1] * n
        self.pads = window_pads(node, self.kernel, self.strides, self.dilations)
        self.lengths = node.shape[2:]
        self.extents = [gap * (size - 1) + 1 for size, gap in zip(self.kernel, self.dilations, strict=True)]
        if any(pad >= extent for pads, extent in zip(self.pads, self.extents, strict=True) for pad in pads):
            raise UnsupportedError(f"pads {self.pads} that are not smaller than the kernel {self.extents}")
        self.counts = [self._count(k, bool(node.attr("ceil_mode", 0))) for k in range(n)]
        self.after = [
            step * (count - 1) + extent - length - before
            for step, count, extent, length, (before, _) in zip(
                self.strides, self.counts, self.extents, self.lengths, self.pads, strict=True
            )
        ]

    def _count(self, k: int, is_ceil: bool) -> int:
        length, (before, after), step = self.lengths[k], self.pads[k], self.strides[k]
        room = length + before + after - self.extents[k]
        count = (-(-room // step) if is_ceil else room // step) + 1
        if is_ceil and (count - 1) * step >= length + before:
            count -= 1
        return int(count)

    def border(self, x: nn.Variable, value: float) -> nn.Variable:
        """`x` with the border that the windows reach over; what none reaches is cut."""
        return bordered(x, [(before, after) for (before, _), after in zip(self.pads, self.after, strict=True)], value)

    def windows(self, x: nn.Variable) -> list[nn.Variable]:
        """For each place of the kernel what is under it at all stops."""
        found = []
        for place in product(*map(range, self.kernel)):
            starts = [gap * at for gap, at in zip(self.dilations, place, strict=True)]
            stops = [a + step * (count - 1) + 1 for a, step, count in zip(starts, self.strides, self.counts, strict=True)]
            found.append(F.slice(x, start=starts, stop=stops, step=self.strides))
        return found

    @property
    def is_dilated(self) -> bool:
        """Whether windows have gaps."""
        return any(gap > 1 for gap in self.dilations)

    def sums(self, x: nn.Variable) -> nn.Variable:
        """Return the sums of the windows of a bordered image."""
        if self.is_dilated:
            return F.add_n(*self.windows(x))
        return F.sum_pooling(x, self.kernel, self.strides)

    def inside(self, is_pad_counted: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        """Return the number of places of each window that count."""
        total = np.ones([1] * len(self.counts))
        for k, count in enumerate(self.counts):
            before, after = self.pads[k]
            at = np.arange(count)[:, None] * self.strides[k] + np.arange(self.kernel[k]) * self.dilations[k] - before
            low, high = (-before, self.lengths[k] + after) if is_pad_counted else (0, self.lengths[k])
            number = ((at >= low) & (at < high)).sum(axis=1)
            total = total * number.reshape([-1 if axis == k else 1 for axis in range(len(self.counts))])
        return total.astype(np.float32)


@operator("MaxPool", gives_whole=True)
def _max_pool(node: Node) -> Made:
    pooling = _Pooling(node)
    if len(node.proto.output) > 1 and node.proto.output[1]:
        return _max_and_index(node, pooling)
    return _maximum(node, pooling)


def _maximum(node: Node, pooling: _Pooling) -> nn.Variable:
    pads = [before for before, _ in pooling.pads]
    plain = [
        (n + 2 * p - k) // s + 1 for n, p, k, s in zip(pooling.lengths, pads, pooling.kernel, pooling.strides, strict=True)
    ]
    is_symmetric = all(before == after for before, after in pooling.pads)
    if not pooling.is_dilated and is_symmetric and plain == pooling.counts:
        return F.max_pooling(node.x, pooling.kernel, pooling.strides, pad=pads)
    x = pooling.border(node.x, -math.inf)
    if pooling.is_dilated:
        windows = pooling.windows(x)
        y = windows[0]
        for window in windows[1:]:
            y = F.maximum2(y, window)
        return y
    return F.max_pooling(x, pooling.kernel, pooling.strides)


@dataclass(slots=True)
class WindowIndex:
    """Indices of elements of windows in the flat input.

    Attributes:
        pooling: the windows.
        n_images: numbers of samples times channels.
        strides: numbers of elements from one index of each axis to the next.
    """

    pooling: _Pooling
    n_images: int
    strides: Sequence[int]

    def __call__(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Return the indices for those of the elements in their windows, which begin with the axes (B, C)."""
        pooling, chosen = self.pooling, np.asarray(arrays[0], np.int64)
        n = len(pooling.counts)
        index = np.arange(self.n_images).reshape(*chosen.shape[:2], *(1,) * n) * math.prod(pooling.lengths)
        taps = np.array(list(product(*map(range, pooling.kernel))))[chosen]
        for k, count in enumerate(pooling.counts):
            starts = np.arange(count) * pooling.strides[k] - pooling.pads[k][0]
            along = starts.reshape([count if axis == k else 1 for axis in range(n)]) + taps[..., k] * pooling.dilations[k]
            index = index + along * self.strides[k]
        return [index]


def _max_and_index(node: Node, pooling: _Pooling) -> Made:
    """Return the maxima, and the index of each in the flat input: in memory order, or with columns in the place of rows."""
    lengths = pooling.lengths
    n = len(lengths)
    is_column_major = bool(node.attr("storage_order", 0))
    strides = [math.prod(lengths[:k] if is_column_major else lengths[k + 1 :]) for k in range(n)]
    stacked = F.stack(*pooling.windows(pooling.border(node.x, -math.inf)), axis=0)
    y, chosen = F.max(stacked, axis=0, with_index=True)
    tap = Value("tap", np.dtype(np.int64), variable=chosen, sources=node[0].sources)
    index = WindowIndex(pooling, math.prod(node.shape[:2]), strides)
    return [y, *on_host(node.kind, index, [tap], [y.shape])]


@operator("AveragePool")
def _average_pool(node: Node) -> nn.Variable:
    pooling = _Pooling(node)
    sums = pooling.sums(pooling.border(node.x, 0.0))
    return sums / nn.Variable.from_numpy_array(pooling.inside(bool(node.attr("count_include_pad", 0)))[None, None])


@operator("LpPool")
def _lp_pool(node: Node) -> nn.Variable:
    p, pooling = float(node.attr("p", 2)), _Pooling(node)
    powers = F.pow_scalar(F.abs(pooling.border(node.x, 0.0)), p)
    return F.pow_scalar(pooling.sums(powers), 1 / p)


@operator("GlobalAveragePool")
def _global_average_pool(node: Node) -> nn.Variable:
    return F.mean(node.x, axis=_spatial(node), keepdims=True)


@operator("GlobalMaxPool")
def _global_max_pool(node: Node) -> nn.Variable:
    return F.max(node.x, axis=_spatial(node), keepdims=True)


@operator("GlobalLpPool")
def _global_lp_pool(node: Node) -> nn.Variable:
    p = float(node.attr("p", 2))
    return F.pow_scalar(F.sum(F.pow_scalar(F.abs(node.x), p), axis=_spatial(node), keepdims=True), 1 / p)


def _spatial(node: Node) -> Sequence[int]:
    return tuple(range(2, node.ndim))


@operator("RoiAlign")
def _roi_align(node: Node) -> nn.Variable:
    mode = node.attr("coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "output_half_pixel")
    if node.attr("mode", "avg") != "avg" or mode not in ("half_pixel", "output_half_pixel"):
        raise UnsupportedError(f"mode {node.attr('mode', 'avg')!r} with {mode!r}")
    scale = node.attr("spatial_scale", 1.0)
    corners = node.variable(1) if mode == "half_pixel" else _from_the_middle(node.variable(1), scale)
    numbers = F.reshape(node.variable(2), (-1, 1))
    boxes = F.concatenate(numbers, corners, axis=1)
    size = (node.attr("output_height", 1), node.attr("output_width", 1))
    ratio = node.attr("sampling_ratio", 0) or -1
    return F.roi_align(node.x, boxes, size, (scale, scale), ratio)


def _from_the_middle(corners: nn.Variable, scale: float) -> nn.Variable:
    """Return boxes that count from the middle of the first pixel, and are at least a pixel long, from its edge."""
    low, high = (F.slice(corners, start=[0, k], stop=[corners.shape[0], k + 2], step=[1, 1]) for k in (0, 2))
    return F.concatenate(low, F.maximum2(high, low + 1 / scale), axis=1) + 0.5 / scale
