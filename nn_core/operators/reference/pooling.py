"""Reference kernels of poolings: what is under each window, reduced to one value.

The windows move over the last axes (those before the channels, if `channel_last`); everything in front is batch.
Padding is -inf for maxima and 0 for sums, so that it never wins and never counts.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from nn_core.errors import ArgumentError
from nn_core.operators.reference.precision import sum_of, widen
from nn_core.operators.reference.reduction import mean
from nn_core.operators.reference.registry import kernel
from nn_core.operators.reference.windows import overlap_add, padded, windows
from nn_core.typing import Array, Namespace

#: Samples of a bin of ``roi_align`` on one axis: those of a box that is far larger than an image fit no memory.
_MOST_SAMPLES: Final = 1 << 16


class _Windows:
    """The windows of a pooling on the spatial axes of `x`."""

    def __init__(
        self,
        x: Array,
        kernel: Sequence[int],
        stride: Sequence[int],
        ignore_border: bool,
        pad: Sequence[int],
        channel_last: bool,
    ) -> None:
        self.kernel, self.stride, self.pad, self.channel_last = kernel, stride, pad, channel_last
        end = x.ndim - 1 if channel_last else x.ndim
        self.lengths = x.shape[end - len(kernel) : end]
        self.counts = [
            (n + 2 * edge - size) // step + 1 if ignore_border else -(-(n + edge) // step)
            for n, size, step, edge in zip(self.lengths, kernel, stride, pad, strict=True)
        ]
        self.reach = [
            max(step * (count - 1) + size, n + 2 * edge)
            for n, size, step, edge, count in zip(self.lengths, kernel, stride, pad, self.counts, strict=True)
        ]

    def columns(self, xp: Namespace, x: Array, border: float) -> Array:
        """Return the values under each window: (batch, size of the kernel, *counts)."""
        after = [whole - edge - n for whole, edge, n in zip(self.reach, self.pad, self.lengths, strict=True)]
        x = padded(xp, self.spatial_last(xp, x), self.pad, after, border)
        axis = x.ndim - len(self.kernel)
        return windows(xp, x, self.kernel, self.stride, (1,) * len(self.kernel), self.counts, axis=axis)

    def transposed(self, xp: Namespace, columns: Array) -> Array:
        """Return the transpose of ``columns``, with the channels where they belong."""
        axis = columns.ndim + self.window_axis
        whole = overlap_add(xp, columns, self.kernel, self.stride, (1,) * len(self.kernel), self.reach, axis=axis)
        inner = (..., *(slice(edge, edge + n) for edge, n in zip(self.pad, self.lengths, strict=True)))
        return self.restored(xp, whole[inner])

    def spatial_last(self, xp: Namespace, x: Array) -> Array:
        """`x` with the spatial axes last."""
        return xp.moveaxis(x, -1, -1 - len(self.kernel)) if self.channel_last else x

    def restored(self, xp: Namespace, y: Array) -> Array:
        """Return the inverse of ``spatial_last``."""
        return xp.moveaxis(y, -1 - len(self.kernel), -1) if self.channel_last else y

    @property
    def window_axis(self) -> int:
        """The axis of ``columns`` that a pooling reduces."""
        return -1 - len(self.kernel)


@kernel("MaxPooling")
def max_pooling(xp: Namespace, x: Array, **args: Any) -> Array:
    """Return the largest value under each window; NaN where there is one."""
    places = _Windows(x, **args)
    return places.restored(xp, xp.max(places.columns(xp, x, -xp.inf), axis=places.window_axis))


@kernel("MaxPoolingBackward")
def max_pooling_backward(xp: Namespace, dy: Array, x: Array, **args: Any) -> Array:
    """Add each dy to the place of the first maximum of its window."""
    places = _Windows(x, **args)
    dy = xp.expand_dims(places.spatial_last(xp, widen(xp, dy)), axis=places.window_axis)
    return places.transposed(xp, xp.where(_is_first_maximum(xp, places, x), dy, 0))


@kernel("MaxPoolingGather")
def max_pooling_gather(xp: Namespace, values: Array, x: Array, **args: Any) -> Array:
    """Return the element of `values` at the place of the first maximum of each window."""
    places = _Windows(x, **args)
    chosen = xp.where(_is_first_maximum(xp, places, x), places.columns(xp, values, 0.0), 0)
    return places.restored(xp, xp.sum(chosen, axis=places.window_axis))


def _is_first_maximum(xp: Namespace, places: _Windows, x: Array) -> Array:
    columns = places.columns(xp, x, -xp.inf)
    largest = xp.max(columns, axis=places.window_axis, keepdims=True)
    found = ((columns == largest) | xp.isnan(columns)) & (places.columns(xp, xp.ones_like(x), 0.0) != 0)  # not in the padding
    first = xp.expand_dims(xp.argmax(xp.where(found, 1, 0), axis=places.window_axis), axis=places.window_axis)
    positions = xp.reshape(xp.arange(prod(places.kernel)), (-1,) + (1,) * len(places.kernel))
    return positions == first


@kernel("SumPooling")
def sum_pooling(xp: Namespace, x: Array, **args: Any) -> Array:
    """Return the sum of the values under each window."""
    places = _Windows(x, **args)
    return places.restored(xp, sum_of(xp, places.columns(xp, x, 0.0), places.window_axis))


@kernel("AveragePooling")
def average_pooling(xp: Namespace, x: Array, *, including_pad: bool, **args: Any) -> Array:
    """Return the sum divided by how many elements the window has inside of x, with or without its padding."""
    places = _Windows(x, **args)
    total = sum_of(xp, places.columns(xp, x, 0.0), places.window_axis)
    for axis, count in enumerate(places.counts, start=-len(places.counts)):
        n, edge, size = places.lengths[axis], places.pad[axis], places.kernel[axis]
        start = xp.arange(count) * places.stride[axis] - edge
        stop = xp.minimum(start + size, n + edge)
        if not including_pad:
            start, stop = xp.maximum(start, 0), xp.minimum(stop, n)
        total = total / xp.reshape((stop - start).astype(total.dtype), (count,) + (1,) * (-1 - axis))
    return places.restored(xp, total)


@kernel("GlobalAveragePooling")
def global_average_pooling(xp: Namespace, x: Array) -> Array:
    """Return the mean of each channel of each sample."""
    return mean(xp, x, tuple(range(2, x.ndim)), True)


@kernel("Unpooling")
def unpooling(xp: Namespace, x: Array, *, kernel: Sequence[int], channel_last: bool) -> Array:
    """Repeat each element along each spatial axis."""
    for axis, repeats in enumerate(kernel, start=x.ndim - len(kernel) - channel_last):
        x = xp.repeat(x, repeats, axis=axis)
    return x


@kernel("RoiAlign")
def roi_align(
    xp: Namespace,
    input: Array,  # noqa: A002  # the public name
    boxes: Array,
    *,
    output_size: Sequence[int],
    spatial_scale: Sequence[float],
    sampling_ratio: int,
    channel_last: bool,
) -> Array:
    """Means of bilinear samples of each bin of each box: a product with a matrix per axis (He et al., 2017)."""
    images = xp.moveaxis(widen(xp, input), -1, 1) if channel_last else widen(xp, input)
    rows, columns = _bins(xp, boxes, images.shape[2:], output_size, spatial_scale, sampling_ratio)
    y = xp.zeros((boxes.shape[0], images.shape[1], *output_size), dtype=images.dtype)
    for number, image in enumerate(_image_numbers(boxes, images.shape[0])):
        y[number] = xp.matmul(xp.matmul(rows[number], images[image]), columns[number].T)
    return xp.moveaxis(y, 1, -1) if channel_last else y


@kernel("RoiAlignBackward")
def roi_align_backward(
    xp: Namespace,
    dy: Array,
    boxes: Array,
    *,
    input_shape: Sequence[int],
    output_size: Sequence[int],
    spatial_scale: Sequence[float],
    sampling_ratio: int,
    channel_last: bool,
) -> Array:
    """Return the transpose of ``roi_align``."""
    dy = xp.moveaxis(widen(xp, dy), -1, 1) if channel_last else widen(xp, dy)
    lengths = input_shape[1:3] if channel_last else input_shape[2:]
    rows, columns = _bins(xp, boxes, lengths, output_size, spatial_scale, sampling_ratio)
    dx = xp.zeros((input_shape[0], dy.shape[1], *lengths), dtype=dy.dtype)
    for number, image in enumerate(_image_numbers(boxes, input_shape[0])):
        dx[image] += xp.matmul(xp.matmul(rows[number].T, dy[number]), columns[number])
    return xp.moveaxis(dx, 1, -1) if channel_last else dx


def _require_finite(xp: Namespace, corners: Array) -> None:
    if not bool(xp.all(xp.isfinite(corners))):
        raise ArgumentError(f"roi_align: boxes must be finite, got {float(corners[~xp.isfinite(corners)][0])}")


def _counted(n_samples: float) -> int:
    if not n_samples <= _MOST_SAMPLES:
        raise ArgumentError(
            f"roi_align: bins must have at most {_MOST_SAMPLES} samples on an axis, got {n_samples:g}\n"
            "  hint: clip boxes to their images, or give sampling_ratio, a number of samples whatever the length of a bin"
        )
    return int(n_samples)


def _image_numbers(boxes: Array, n_images: int) -> list[int]:
    numbers = [float(number) for number in boxes[:, 0]]
    for number in numbers:
        if not (0 <= number < n_images and number == int(number)):
            raise ArgumentError(
                f"roi_align: boxes must begin with the number of an image, from 0 to {n_images - 1}, got {number:g}"
            )
    return [int(number) for number in numbers]


def _bins(
    xp: Namespace,
    boxes: Array,
    lengths: Sequence[int],
    output_size: Sequence[int],
    spatial_scale: Sequence[float],
    sampling_ratio: int,
) -> tuple[Array, Array]:
    """Weights of each pixel row in each row of bins, (boxes, bins, rows), and the same for columns."""
    boxes = widen(xp, boxes)
    _require_finite(xp, boxes[:, 1:])
    rows = _shares(
        xp, boxes[:, 2] * spatial_scale[0], boxes[:, 4] * spatial_scale[0], output_size[0], lengths[0], sampling_ratio
    )
    columns = _shares(
        xp, boxes[:, 1] * spatial_scale[1], boxes[:, 3] * spatial_scale[1], output_size[1], lengths[1], sampling_ratio
    )
    return rows, columns


def _shares(xp: Namespace, low: Array, high: Array, n_bins: int, length: int, sampling_ratio: int) -> Array:
    """Linear interpolation at evenly spaced samples of each bin of [low, high], averaged.

    Pixels are half a step off the box coordinates. A sample up to one pixel outside reads the edge, beyond that zero.
    """
    width = (high - low) / n_bins
    n_samples = xp.maximum(xp.ceil(width), 0) if sampling_ratio < 1 else xp.full(low.shape, sampling_ratio, dtype=low.dtype)
    most = _counted(float(xp.max(n_samples))) if low.shape[0] else 0
    number = xp.arange(most)
    within = (number + 0.5) / xp.maximum(n_samples, 1)[:, None]
    place = low[:, None, None] + (xp.arange(n_bins)[:, None] + within[:, None, :]) * width[:, None, None] - 0.5
    counts = (place >= -1) & (place <= length) & (number < n_samples[:, None, None])
    distance = xp.abs(xp.clip(place, 0, length - 1)[..., None] - xp.arange(length))
    shares = xp.where(counts[..., None], xp.maximum(1 - distance, 0), 0)
    return xp.sum(shares, axis=2) / xp.maximum(n_samples, 1)[:, None, None]
