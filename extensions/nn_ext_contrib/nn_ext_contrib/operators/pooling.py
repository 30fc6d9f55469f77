"""Pooling of regions, and pooling that knows where its results come from. N images, C channels, H by W pixels, R regions."""

from collections.abc import Iterator
from math import prod
from typing import Any

from nn_core.ext import ArgumentError, Array, GradientCall, Namespace, Shape, ShapeError, gradient, kernel, shape_rule
from nn_ext_contrib.operators.sequences import widen


def _check_images(x: Shape) -> None:
    if len(x) != 4:
        raise ShapeError(f"x must have four axes (N, C, H, W), got {x}")


def _pair(name: str, value: tuple[int, ...]) -> tuple[int, int]:
    if len(value) != 2:
        raise ArgumentError(f"{name} must be two numbers, for height and width, got {value}")
    return value[0], value[1]


def _pooled_regions(x: Shape, rois: Shape, output_size: tuple[int, ...]) -> Shape:
    _check_images(x)
    if len(rois) != 2 or rois[1] != 5:
        raise ShapeError(f"rois must have shape (R, 5), image and corners of each region, got {rois}")
    return (rois[0], x[1], *_pair("output_size", output_size))


@shape_rule("contrib.RoiPooling2d")
def roi_pooling_2d_shape(x: Shape, rois: Shape, *, output_size: tuple[int, ...], spatial_scale: float) -> tuple[Shape, ...]:
    """One small image for each region, and where each of its elements comes from."""
    shape = _pooled_regions(x, rois, output_size)
    return shape, (prod(shape),)


@kernel("contrib.RoiPooling2d")
def roi_pooling_2d(
    xp: Namespace, x: Array, rois: Array, *, output_size: tuple[int, ...], spatial_scale: float
) -> tuple[Array, Array]:
    """Return the largest element of each bin, and its place in the flattened x; the length of that for a bin without
    elements.
    """
    n_channels, height, width = x.shape[1:]
    places = xp.full((rois.shape[0], n_channels, *output_size), x.size, dtype=xp.int64)
    for region, image, i, j, rows, columns in _windows("roi_pooling_2d", x.shape, rois, output_size, spatial_scale):
        window = x[image, :, rows, columns].reshape(n_channels, -1)
        best = xp.argmax(window, axis=1)
        n_columns = columns.stop - columns.start
        row, column = rows.start + best // n_columns, columns.start + best % n_columns
        places[region, :, i, j] = (image * n_channels + xp.arange(n_channels)) * (height * width) + row * width + column
    padded = xp.concat((x.reshape(-1), xp.zeros(1, dtype=x.dtype)))
    return padded[places], places.reshape(-1)


def _windows(
    function: str, x: Shape, rois: Array, output_size: tuple[int, ...], spatial_scale: float
) -> Iterator[tuple[int, int, int, int, slice, slice]]:
    """Region, image, bin, and rows and columns of the image that are in the bin; empty bins are left out."""
    n_images, _, height, width = x
    for region, (image, *corners) in enumerate(rois.tolist()):
        image = round(image)  # noqa: PLW2901  # numbers of images are floating, as the corners are
        if not 0 <= image < n_images:
            raise ArgumentError(f"{function}: rois must name an image in [0, {n_images}), got {image}")
        left, top, right, bottom = (round(corner * spatial_scale) for corner in corners)
        for i, (row, row_end) in enumerate(_bins(top, bottom, output_size[0], height)):
            for j, (column, column_end) in enumerate(_bins(left, right, output_size[1], width)):
                if row < row_end and column < column_end:
                    yield region, image, i, j, slice(row, row_end), slice(column, column_end)


def _bins(first: int, last: int, count: int, length: int) -> list[tuple[int, int]]:
    """Return the first and the end of each bin of a region from `first` to `last`, clipped to the image."""
    size = max(last - first + 1, 1)
    starts = [first + i * size // count for i in range(count)]
    ends = [first - (-(i + 1) * size // count) for i in range(count)]
    return [(min(max(start, 0), length), min(max(end, 0), length)) for start, end in zip(starts, ends, strict=True)]


@gradient("contrib.RoiPooling2d")
def roi_pooling_2d_gradient(F: Any, g: GradientCall) -> tuple[Any, None]:
    """Each gradient goes to the element that was the largest; those of bins without elements go past the end."""
    size = prod(g.x.shape)
    start = F.constant(val=0.0, shape=(size + 1,))
    total = F.scatter_add(start, g.places, F.reshape(g.grad, shape=(prod(g.grad.shape),)), axis=0)
    return F.reshape(F.slice(total, start=(0,), stop=(size,), step=(1,)), shape=g.x.shape), None


@shape_rule("contrib.RoiAveragePooling2d")
def roi_average_pooling_2d_shape(
    x: Shape, rois: Shape, *, output_size: tuple[int, ...], spatial_scale: float
) -> tuple[Shape, ...]:
    """One small image for each region."""
    return (_pooled_regions(x, rois, output_size),)


@kernel("contrib.RoiAveragePooling2d")
def roi_average_pooling_2d(
    xp: Namespace, x: Array, rois: Array, *, output_size: tuple[int, ...], spatial_scale: float
) -> Array:
    """Return the mean of each bin, 0 of one without elements."""
    x = widen(xp, x)
    y = xp.zeros((rois.shape[0], x.shape[1], *output_size), dtype=x.dtype)
    for region, image, i, j, rows, columns in _windows("roi_average_pooling_2d", x.shape, rois, output_size, spatial_scale):
        y[region, :, i, j] = xp.mean(x[image, :, rows, columns], axis=(1, 2))
    return y


@gradient("contrib.RoiAveragePooling2d")
def roi_average_pooling_2d_gradient(F: Any, g: GradientCall) -> tuple[Any, None]:
    """Each gradient is spread over its bin."""
    spread = F.contrib.roi_average_pooling_2d_backward
    return spread(g.grad, g.rois, input_shape=g.x.shape, output_size=g.output_size, spatial_scale=g.spatial_scale), None


@shape_rule("contrib.RoiAveragePooling2dBackward")
def roi_average_pooling_2d_backward_shape(
    dy: Shape, rois: Shape, *, input_shape: Shape, output_size: tuple[int, ...], spatial_scale: float
) -> tuple[Shape, ...]:
    """Images."""
    wanted = _pooled_regions(input_shape, rois, output_size)
    if dy != wanted:
        raise ShapeError(f"dy must have shape {wanted}, as what is pooled, got {dy}")
    return (input_shape,)


@kernel("contrib.RoiAveragePooling2dBackward")
def roi_average_pooling_2d_backward(
    xp: Namespace, dy: Array, rois: Array, *, input_shape: Shape, output_size: tuple[int, ...], spatial_scale: float
) -> Array:
    """Each element, divided by the size of its bin, is added to all places of the bin."""
    dy = widen(xp, dy)
    dx = xp.zeros(input_shape, dtype=dy.dtype)
    windows = _windows("roi_average_pooling_2d_backward", input_shape, rois, output_size, spatial_scale)
    for region, image, i, j, rows, columns in windows:
        size = (rows.stop - rows.start) * (columns.stop - columns.start)
        dx[image, :, rows, columns] += (dy[region, :, i, j] / size)[:, None, None]
    return dx


@gradient("contrib.RoiAveragePooling2dBackward")
def roi_average_pooling_2d_backward_gradient(F: Any, g: GradientCall) -> tuple[Any, None]:
    """Return the transpose of the transpose."""
    return F.contrib.roi_average_pooling_2d(g.grad, g.rois, output_size=g.output_size, spatial_scale=g.spatial_scale), None


def _pooled(length: int, kernel: int, stride: int, pad: int, cover_all: bool) -> int:
    slack = stride - 1 if cover_all else 0
    return (length + 2 * pad - kernel + slack) // stride + 1


def _geometry(
    kernel: tuple[int, ...], stride: tuple[int, ...], pad: tuple[int, ...]
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    return _pair("kernel", kernel), _pair("stride", stride), _pair("pad", pad)


@shape_rule("contrib.MaxPooling2dIndexes")
def max_pooling_2d_indexes_shape(
    x: Shape, *, kernel: tuple[int, ...], stride: tuple[int, ...], pad: tuple[int, ...], cover_all: bool
) -> tuple[Shape, ...]:
    """Return the shape of the pooled images."""
    _check_images(x)
    kernels, strides, pads = _geometry(kernel, stride, pad)
    lengths = [_pooled(*part, cover_all) for part in zip(x[2:], kernels, strides, pads, strict=True)]
    if min(lengths) < 1:
        raise ShapeError(f"x must be as large as the kernel {kernels} with pad {pads}, got {x}")
    if any((n - 1) * s - p >= size for n, s, p, size in zip(lengths, strides, pads, x[2:], strict=True)):
        raise ShapeError(f"x must have a pixel in every window; leave out cover_all or take a smaller stride, got {x}")
    return ((*x[:2], *lengths),)


@kernel("contrib.MaxPooling2dIndexes")
def max_pooling_2d_indexes(
    xp: Namespace,
    x: Array,
    *,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    pad: tuple[int, ...],
    cover_all: bool,
) -> Array:
    """Return the first largest element under each window, by its number in the window."""
    (kh, kw), (sh, sw), (ph, pw) = _geometry(kernel, stride, pad)
    _, _, height, width = x.shape
    out_height, out_width = _pooled(height, kh, sh, ph, cover_all), _pooled(width, kw, sw, pw, cover_all)
    below, beside = max(0, (out_height - 1) * sh + kh - height - ph), max(0, (out_width - 1) * sw + kw - width - pw)
    padded = xp.full((*x.shape[:2], height + ph + below, width + pw + beside), -xp.inf, dtype=x.dtype)
    padded[:, :, ph : ph + height, pw : pw + width] = x
    windows = [
        padded[:, :, i : i + (out_height - 1) * sh + 1 : sh, j : j + (out_width - 1) * sw + 1 : sw]
        for i in range(kh)
        for j in range(kw)
    ]
    return xp.argmax(xp.stack(windows), axis=0)


def _unpooled(length: int, kernel: int, stride: int, pad: int, cover_all: bool) -> int:
    slack = stride - 1 if cover_all else 0
    return stride * (length - 1) + kernel - slack - 2 * pad


@shape_rule("contrib.Upsampling2d")
def upsampling_2d_shape(
    x: Shape,
    indexes: Shape,
    *,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    pad: tuple[int, ...],
    output_size: tuple[int, ...] | None,
    cover_all: bool,
) -> tuple[Shape, ...]:
    """Return the larger images, and the place of each element in them."""
    _check_images(x)
    if indexes != x:
        raise ShapeError(f"indexes must have the shape {x} of x, got {indexes}")
    lengths = _upsampled(x, kernel, stride, pad, output_size, cover_all)
    return (*x[:2], *lengths), (prod(x),)


def _upsampled(
    x: Shape,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    pad: tuple[int, ...],
    output_size: tuple[int, ...] | None,
    cover_all: bool,
) -> tuple[int, int]:
    """Height and width of the larger images, which must be pooled to those of x."""
    parts = list(zip(x[2:], *_geometry(kernel, stride, pad), strict=True))
    height, width = (
        [_unpooled(*part, cover_all) for part in parts] if output_size is None else _pair("output_size", output_size)
    )
    pooled = tuple(_pooled(n, *part[1:], cover_all) for n, part in zip((height, width), parts, strict=True))
    if pooled != x[2:]:
        raise ShapeError(f"output_size {(height, width)} must be pooled to {x[2:]}, the size of x, got {pooled}")
    return height, width


@kernel("contrib.Upsampling2d")
def upsampling_2d(
    xp: Namespace,
    x: Array,
    indexes: Array,
    *,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    pad: tuple[int, ...],
    output_size: tuple[int, ...] | None,
    cover_all: bool,
) -> tuple[Array, Array]:
    """Zeros, and each element where its window begins plus its number in the window; equal places add up."""
    lengths = _upsampled(x.shape, kernel, stride, pad, output_size, cover_all)
    shape = (*x.shape[:2], *lengths)
    (kh, kw), (sh, sw), (ph, pw) = _geometry(kernel, stride, pad)
    rows = xp.arange(x.shape[2])[:, None] * sh - ph + indexes // kw
    columns = xp.arange(x.shape[3]) * sw - pw + indexes % kw
    _check_places(xp, indexes, rows, columns, kh * kw, shape)
    images = xp.arange(prod(x.shape[:2])).reshape(*x.shape[:2], 1, 1)
    places = ((images * shape[2] + rows) * shape[3] + columns).reshape(-1)
    y = xp.zeros(prod(shape), dtype=x.dtype)
    xp.add.at(y, places, x.reshape(-1))
    return y.reshape(shape), places


def _check_places(xp: Namespace, indexes: Array, rows: Array, columns: Array, n_places: int, shape: Shape) -> None:
    if not indexes.size:
        return
    if int(xp.min(indexes)) < 0 or int(xp.max(indexes)) >= n_places:
        low, high = int(xp.min(indexes)), int(xp.max(indexes))
        raise ArgumentError(f"upsampling_2d: indexes must be in [0, {n_places}), got values from {low} to {high}")
    for name, places, length in (("row", rows, shape[2]), ("column", columns, shape[3])):
        if int(xp.min(places)) < 0 or int(xp.max(places)) >= length:
            worst = int(xp.min(places)) if int(xp.min(places)) < 0 else int(xp.max(places))
            raise ArgumentError(f"upsampling_2d: indexes must name a {name} in [0, {length}), got {worst}")


@gradient("contrib.Upsampling2d")
def upsampling_2d_gradient(F: Any, g: GradientCall) -> tuple[Any, None]:
    """Return the gradients at the places that were written."""
    flat = F.reshape(g.grad, shape=(prod(g.grad.shape),))
    return F.reshape(F.gather(flat, g.places, axis=0), shape=g.x.shape), None
