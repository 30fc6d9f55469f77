"""Poolings."""

from collections.abc import Sequence

import numpy as np

from nn_core.graph_rewriting import follows_shapes
from nn_ext_onnx.exporting.registry import Call, converter, size_of
from nn_ext_onnx.exporting.values import INT, Value


class _Windows:
    """The windows of a pooling, over (B, C, *spatial)."""

    def __init__(self, call: Call, x: Value, shape: Sequence[int]) -> None:
        args, n_spatial = call.args, len(call.args["kernel"])
        self.call, self.kernel, self.stride, self.pad = call, args["kernel"], args["stride"], args["pad"]
        self.is_last, self.leading = args["channel_last"], tuple(shape[: len(shape) - n_spatial])
        if self.is_last:
            x = x.transpose(
                [*range(len(shape) - n_spatial - 1), len(shape) - 1, *range(len(shape) - n_spatial - 1, len(shape) - 1)]
            )
            self.leading = (*shape[: len(shape) - n_spatial - 1], shape[-1])
        self.lengths = shape[len(shape) - n_spatial - self.is_last : len(shape) - self.is_last]
        if len(self.leading) != 2:
            x = x.reshape((size_of(self.leading), 1, *self.lengths))
        self.x = x
        self.counts = [
            (n + 2 * edge - size) // step + 1 if args["ignore_border"] else -(-(n + edge) // step)
            for n, size, step, edge in self._axes()
        ]
        self.after = [
            max(step * (count - 1) + size - edge - n, edge)
            for (n, size, step, edge), count in zip(self._axes(), self.counts, strict=True)
        ]

    def _axes(self) -> list[tuple[int, int, int, int]]:
        return list(zip(self.lengths, self.kernel, self.stride, self.pad, strict=True))

    def _counted(self) -> list[tuple[tuple[int, int, int, int], int]]:
        return list(zip(self._axes(), self.counts, strict=True))

    @property
    def is_plain(self) -> bool:
        """Whether the padding is the same on both sides."""
        return bool(self.call.args["ignore_border"])

    def pool(self, kind: str, border: float, **attributes: int) -> Value:
        """Return the pooled (B, C, *counts)."""
        x, pads = self.x, [*self.pad, *self.after]
        if not self.is_plain and any(map(follows_shapes, self.lengths)):
            after = [step * (count - 1) + size - edge - n for (n, size, step, edge), count in self._counted()]
            x = x.op("Pad", [0, 0, *self.pad, 0, 0, *after], border)
            return x.op(kind, kernel_shape=self.kernel, strides=self.stride, pads=[0] * len(pads), **attributes)
        if any(edge >= size for edge, size in zip(pads, [*self.kernel, *self.kernel], strict=True)):
            x = x.op("Pad", [0, 0, *self.pad, 0, 0, *self.after], border)
            pads = [0] * len(pads)
        y = x.op(kind, kernel_shape=self.kernel, strides=self.stride, pads=pads, **attributes)
        for axis, ((n, size, step, edge), count) in enumerate(zip(self._axes(), self.counts, strict=True), start=2):
            if (n + edge + self.after[axis - 2] - size) // step + 1 != count:
                y = y.slice(axis, 0, count)
        return y

    def restored(self, y: Value) -> Value:
        """Return the axes of the result in the order of the input's."""
        if len(self.leading) != 2:
            y = y.reshape((*self.leading, *self.counts))
        if not self.is_last:
            return y
        n_axes = len(self.leading) + len(self.counts)
        channel = len(self.leading) - 1
        return y.transpose([*range(channel), *range(channel + 1, n_axes), channel])


@converter("MaxPooling")
def _max_pooling(call: Call) -> Value:
    windows = _Windows(call, call.x, call.shape)
    return windows.restored(windows.pool("MaxPool", -np.inf))


@converter("SumPooling")
def _sum_pooling(call: Call) -> Value:
    windows = _Windows(call, call.x, call.shape)
    return windows.restored(windows.pool("AveragePool", 0.0, count_include_pad=1) * float(size_of(windows.kernel)))


@converter("AveragePooling")
def _average_pooling(call: Call) -> Value:
    windows = _Windows(call, call.x, call.shape)
    including = call.args["including_pad"]
    if windows.is_plain and (including or all(edge < size for edge, size in zip(windows.pad, windows.kernel, strict=True))):
        return windows.restored(windows.pool("AveragePool", 0.0, count_include_pad=int(including)))
    mean = windows.pool("AveragePool", 0.0, count_include_pad=1) * float(size_of(windows.kernel))
    for axis, ((n, size, step, edge), count) in enumerate(zip(windows._axes(), windows.counts, strict=True), start=2):
        start = np.arange(count) * step - edge
        stop = np.minimum(start + size, n + edge)
        if not including:
            start, stop = np.maximum(start, 0), np.minimum(stop, n)
        inside = (stop - start).astype(float).reshape([-1, *[1] * (len(windows.counts) + 1 - axis)])
        mean = mean / call.graph.constant(inside)
    return windows.restored(mean)


@converter("MaxPoolingBackward")
def _max_pooling_backward(call: Call) -> Value:
    call.need_opset(16, "ScatterElements with reduction")
    windows = _Windows(call, call[1], call.shapes[1])
    pads = [*windows.pad, *windows.after]
    settings = {"kernel_shape": windows.kernel, "strides": windows.stride, "pads": pads}
    _, places = call.graph.ops("MaxPool", windows.x, dtypes=[windows.x.dtype, INT], **settings)
    for axis, count in enumerate(windows.counts, start=2):
        places = places.slice(axis, 0, count)
    dy = call.x
    if windows.is_last:
        n_spatial = len(windows.counts)
        dy = dy.transpose([*range(call.ndim - n_spatial - 1), call.ndim - 1, *range(call.ndim - n_spatial - 1, call.ndim - 1)])
    size = size_of(call.shapes[1])
    total = call.zeros((size,)).op("ScatterElements", places.reshape((-1,)), dy.reshape((-1,)), axis=0, reduction="add")
    shape = (*windows.leading, *windows.lengths)
    dx = total.reshape(shape)
    channel = len(windows.leading) - 1
    return dx.transpose([*range(channel), *range(channel + 1, len(shape)), channel]) if windows.is_last else dx


@converter("GlobalAveragePooling")
def _global_average_pooling(call: Call) -> Value:
    return call.x.op("GlobalAveragePool") if call.ndim > 2 else call.x.op("Identity")


@converter("Unpooling")
def _unpooling(call: Call) -> Value:
    y = call.x
    first = call.ndim - len(call.args["kernel"]) - call.args["channel_last"]
    for axis, repeats in enumerate(call.args["kernel"], start=first):
        n = call.shape[axis]
        places = call.arange(n * repeats) / repeats if follows_shapes(n) else np.repeat(np.arange(n), repeats)
        y = y.op("Gather", places, axis=axis)
    return y


@converter("RoiAlign")
def _roi_align(call: Call) -> Value:
    call.need_opset(16, "RoiAlign without rounding")
    is_last = call.args["channel_last"]
    x = call.x.transpose([0, 3, 1, 2]) if is_last else call.x
    height, width = call.args["spatial_scale"]
    scales = np.asarray([width, height, width, height], dtype=float)
    boxes = call[1].slice(1, 1, 5) * call.graph.constant(scales)
    numbers = call[1].slice(1, 0, 1).squeeze(1).cast(INT)
    rows, columns = call.args["output_size"]
    settings = {"output_height": rows, "output_width": columns, "sampling_ratio": max(call.args["sampling_ratio"], 0)}
    y = x.op("RoiAlign", boxes, numbers, coordinate_transformation_mode="half_pixel", **settings)
    return y.transpose([0, 2, 3, 1]) if is_last else y
