"""Reference kernels of resampling, Fourier transforms, warping and patch correlation.

Resampling is separable and goes axis by axis; warping sums the 2**d corners around a point of d coordinates.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from nn_core.operators.reference import axis_maps
from nn_core.operators.reference.precision import widen
from nn_core.operators.reference.registry import kernel
from nn_core.operators.reference.resampling import interpolate_taps, resample, resample_transposed, resized_axes
from nn_core.operators.reference.windows import padded
from nn_core.typing import Array, Namespace, Shape


@kernel("Interpolate")
def interpolate(xp: Namespace, x: Array, *, output_size: Shape, channel_last: bool, **settings: Any) -> Array:
    """Resample one spatial axis after the other."""
    x = widen(xp, x)
    for axis, size in _spatial_axes(x.ndim, output_size, channel_last):
        x = resample(xp, x, axis, interpolate_taps(xp, x.shape[axis], size, **settings))
    return x


@kernel("InterpolateBackward")
def interpolate_backward(xp: Namespace, dy: Array, *, input_size: Shape, channel_last: bool, **settings: Any) -> Array:
    """Apply the transpose of the resampling of each spatial axis."""
    dx = widen(xp, dy)
    for axis, size in _spatial_axes(dx.ndim, input_size, channel_last):
        dx = resample_transposed(xp, dx, axis, size, interpolate_taps(xp, size, dx.shape[axis], **settings))
    return dx


def _spatial_axes(ndim: int, sizes: Shape, channel_last: bool) -> list[tuple[int, int]]:
    """Each spatial axis with its new length: the last axes, in front of the channel if that is last."""
    first = ndim - len(sizes) - channel_last
    return [(first + position, size) for position, size in enumerate(sizes)]


@kernel("ONNXResize")
def onnx_resize(
    xp: Namespace, x: Array, *, scales: Sequence[float], sizes: Shape, extrapolation_value: float, **settings: Any
) -> Array:
    """Resample every axis that changes, then fill what a crop takes from outside of the input."""
    x = widen(xp, x)
    output = tuple(sizes) or tuple(math.floor(length * scale) for length, scale in zip(x.shape, scales, strict=True))
    extrapolated = xp.zeros((1,) * x.ndim, dtype=bool)
    for axis, taps, outside in resized_axes(xp, x.shape, output, scales, sizes, **settings):
        x = resample(xp, x, axis, taps)
        extrapolated = extrapolated | outside.reshape((-1,) + (1,) * (x.ndim - axis - 1))
    return xp.where(extrapolated, extrapolation_value, x)


@kernel("ONNXResizeBackward")
def onnx_resize_backward(
    xp: Namespace, dy: Array, *, input_size: Shape, scales: Sequence[float], sizes: Shape, **settings: Any
) -> Array:
    """Apply the transpose of the resampling of each axis; an extrapolated element depends on no input."""
    dx = widen(xp, dy)
    for axis, (indices, weights), outside in resized_axes(xp, input_size, dy.shape, scales, sizes, **settings):
        taps = indices, xp.where(outside[:, None], 0.0, weights)
        dx = resample_transposed(xp, dx, axis, input_size[axis], taps)
    return dx


@kernel("FFT")
def fft(xp: Namespace, x: Array, *, signal_ndim: int, normalized: bool) -> Array:
    """Complex transform of the last axes; real and imaginary part are the two elements of the last axis."""
    axes = tuple(range(-signal_ndim, 0))
    return _pairs(xp, xp.fft.fftn(_complex(xp, x), axes=axes, norm="ortho" if normalized else "backward"))


@kernel("IFFT")
def ifft(xp: Namespace, x: Array, *, signal_ndim: int, normalized: bool) -> Array:
    """Inverse of ``fft``."""
    axes = tuple(range(-signal_ndim, 0))
    return _pairs(xp, xp.fft.ifftn(_complex(xp, x), axes=axes, norm="ortho" if normalized else "backward"))


def _complex(xp: Namespace, pairs: Array) -> Array:
    pairs = widen(xp, pairs)
    return pairs[..., 0] + 1j * pairs[..., 1]


def _pairs(xp: Namespace, z: Array) -> Array:
    return xp.stack((z.real, z.imag), axis=-1)


@kernel("STFT")
def stft(
    xp: Namespace,
    x: Array,
    *,
    window_size: int,
    stride: int,
    fft_size: int,
    window_type: str,
    center: bool,
    pad_mode: str,
    as_istft_backward: bool,
) -> tuple[Array, Array]:
    """Return transforms of windowed real frames; or the transpose of ``istft``, which divides by the window sum first."""
    x = widen(xp, x)
    window = _window(xp, window_size, fft_size, window_type)
    margin = fft_size // 2 if center else 0
    n_frames = (x.shape[1] + 2 * margin - fft_size) // stride + 1
    if as_istft_backward:
        weight = _window_sum(xp, window, n_frames, stride, margin)
        x = x[:, : weight.shape[0]] / weight.astype(x.dtype)
        pad_mode = "constant"
    if margin:
        x = _with_margin(xp, x, margin, pad_mode)
    places = stride * xp.arange(n_frames)[:, None] + xp.arange(fft_size)
    spectrum = xp.fft.rfft(x[:, places] * window.astype(x.dtype), axis=2)
    if as_istft_backward:
        spectrum = spectrum * (_bin_counts(xp, fft_size, x.dtype) / fft_size)
    return xp.moveaxis(spectrum.real, 1, 2), xp.moveaxis(spectrum.imag, 1, 2)


@kernel("ISTFT")
def istft(
    xp: Namespace,
    y_r: Array,
    y_i: Array,
    *,
    window_size: int,
    stride: int,
    fft_size: int,
    window_type: str,
    center: bool,
    pad_mode: str,
    as_stft_backward: bool,
) -> Array:
    """Overlap-add of windowed inverse transforms, divided by the window sum (Griffin and Lim, 1984, eq. 6); or the
    transpose of ``stft``, which folds the padding back."""
    y_r, y_i = widen(xp, y_r), widen(xp, y_i)
    window = _window(xp, window_size, fft_size, window_type).astype(y_r.dtype)
    margin = fft_size // 2 if center else 0
    spectrum = xp.moveaxis(y_r + 1j * y_i, 1, 2)
    if as_stft_backward:
        spectrum = spectrum * (fft_size / _bin_counts(xp, fft_size, y_r.dtype))
    frames = xp.fft.irfft(spectrum, n=fft_size, axis=2).astype(y_r.dtype) * window
    whole = _overlap_add(xp, frames, stride)
    x = whole[:, margin : whole.shape[1] - margin]
    if not as_stft_backward:
        return x / _window_sum(xp, window, frames.shape[1], stride, margin)
    if margin and pad_mode == "reflect":
        left = xp.flip(whole[:, :margin], axis=1)
        right = xp.flip(whole[:, whole.shape[1] - margin :], axis=1)
        rest = x.shape[1] - margin - 1
        x = x + padded(xp, left, (1,), (rest,)) + padded(xp, right, (rest,), (1,))
    return x


def _with_margin(xp: Namespace, x: Array, margin: int, pad_mode: str) -> Array:
    """Pad `x` (batch, samples) at both ends with zeros, or with its mirror image."""
    if pad_mode == "constant":
        return padded(xp, x, (margin,), (margin,))
    places = axis_maps.reflected(xp, xp.arange(-margin, x.shape[1] + margin), x.shape[1])
    return xp.take(x, places, axis=1)


def _window(xp: Namespace, window_size: int, fft_size: int, window_type: str) -> Array:
    """Return the periodic window, centred in `fft_size` zeros. Shape (fft_size,)."""
    phase = 2 * math.pi / window_size * xp.arange(window_size, dtype="float64")
    a, b = {"hanning": (0.5, 0.5), "hamming": (0.54, 0.46), "rectangular": (1.0, 0.0)}[window_type]
    left = (fft_size - window_size) // 2
    return padded(xp, a - b * xp.cos(phase), (left,), (fft_size - window_size - left,))


def _window_sum(xp: Namespace, window: Array, n_frames: int, stride: int, margin: int) -> Array:
    """Return the squared windows of all frames, added where they overlap, without the margins. Shape (samples,)."""
    total = _overlap_add(xp, xp.broadcast_to(window**2, (1, n_frames, window.shape[0])), stride)[0]
    return total[margin : total.shape[0] - margin]


def _overlap_add(xp: Namespace, frames: Array, stride: int) -> Array:
    """Add frames of shape (batch, frames, size) that start every `stride` samples, one block of `stride` at a time."""
    batch, n_frames, size = frames.shape
    n_blocks = -(-size // stride)
    blocks = padded(xp, frames, (0,), (n_blocks * stride - size,))
    blocks = blocks.reshape(batch, n_frames, n_blocks, stride)
    total = xp.zeros((batch, n_frames + n_blocks - 1, stride), dtype=frames.dtype)
    for block in range(n_blocks):
        total[:, block : block + n_frames] += blocks[:, :, block]
    return total.reshape(batch, (n_frames - 1 + n_blocks) * stride)[:, : (n_frames - 1) * stride + size]


def _bin_counts(xp: Namespace, fft_size: int, dtype: Any) -> Array:
    """Return number of times that each bin of the half spectrum occurs in the full one: 2, except for the frequencies 0 and
    1/2.
    """
    k = xp.arange(fft_size // 2 + 1)
    return xp.where((k == 0) | (2 * k == fft_size), 1.0, 2.0).astype(dtype)


@kernel("AffineGrid")
def affine_grid(xp: Namespace, theta: Array, *, size: Shape, align_corners: bool) -> Array:
    """Transform the normalised coordinates (x, y, 1) or (x, y, z, 1) of every place of a grid of `size`."""
    theta = widen(xp, theta)
    lines = [_normalized_line(xp, length, align_corners).astype(theta.dtype) for length in size]
    planes = xp.meshgrid(*lines, indexing="ij")
    places = xp.stack((*planes[::-1], xp.ones_like(planes[0])), axis=-1)
    return xp.tensordot(theta, places, axes=((2,), (places.ndim - 1,))).transpose((0, *range(2, len(size) + 2), 1))


def _normalized_line(xp: Namespace, length: int, align_corners: bool) -> Array:
    """`length` places in [-1, 1]: the end points included, or the middles of equal cells. One place is 0."""
    steps = max(length - 1, 1) if align_corners else length
    return (2 * xp.arange(length) - (length - 1)) / steps


@kernel("WarpByGrid")
def warp_by_grid(
    xp: Namespace, x: Array, grid: Array, *, mode: str, padding_mode: str, align_corners: bool, channel_last: bool
) -> Array:
    """Sample x at the places of `grid`, given in [-1, 1] and in the order (x, y) or (x, y, z)."""
    x, grid = widen(xp, x), widen(xp, grid)
    x = x if channel_last else xp.moveaxis(x, 1, -1)
    places = []
    for axis, length in enumerate(x.shape[1:-1]):
        normalized = grid[..., grid.shape[-1] - 1 - axis]
        place = (normalized + 1) * (length - 1) / 2 if align_corners else ((normalized + 1) * length - 1) / 2
        places.append(_padded_place(xp, place, length, padding_mode, align_corners))
    y = _sample_nearest(xp, x, places) if mode == "nearest" else _sample_linear(xp, x, places)
    return y if channel_last else xp.moveaxis(y, -1, 1)


def _padded_place(xp: Namespace, place: Array, length: int, padding_mode: str, align_corners: bool) -> Array:
    """Move what is outside of [0, length - 1] inside; with zero padding only so far that it still reads zero."""
    if padding_mode == "zero":
        return xp.clip(place, -1, length)
    if padding_mode == "reflect":
        start, span = (0.0, length - 1) if align_corners else (-0.5, length)
        place = xp.abs(place - start) % max(2 * span, 1)
        place = xp.where(place > span, 2 * span - place, place) + start
    return xp.clip(place, 0, length - 1)


def _sample_linear(xp: Namespace, x: Array, places: Sequence[Array]) -> Array:
    """Multilinear interpolation. x: (batch, *spatial, channels); places: one (batch, *output) per spatial axis."""
    y: Any = 0
    lows = [xp.floor(place) for place in places]
    for corner in product((0, 1), repeat=len(places)):
        weight: Any = 1.0
        for place, low, bit in zip(places, lows, corner, strict=True):
            weight = weight * (place - low if bit else 1 - (place - low))
        y = y + weight[..., None] * _pick(xp, x, [low + bit for low, bit in zip(lows, corner, strict=True)])
    return y


def _sample_nearest(xp: Namespace, x: Array, places: Sequence[Array]) -> Array:
    """Return the element at the nearest place, halves away from zero."""
    return _pick(xp, x, [xp.sign(place) * xp.floor(xp.abs(place) + 0.5) for place in places])


def _pick(xp: Namespace, x: Array, indices: Sequence[Array]) -> Array:
    """Return the elements of x (batch, *spatial, channels) at whole places; zero outside of x. NaN reads the first element."""
    batch = xp.arange(x.shape[0]).reshape((-1,) + (1,) * (indices[0].ndim - 1))
    inside: Any = True
    picked = []
    for index, length in zip(indices, x.shape[1:-1], strict=True):
        inside = inside & (index >= 0) & (index <= length - 1)
        picked.append(xp.where(index >= 0, xp.clip(index, 0, length - 1), 0).astype("int64"))
    place = (batch, *picked)
    return xp.where(inside[..., None], x[place], 0)


@kernel("WarpByFlow")
def warp_by_flow(xp: Namespace, data: Array, flow: Array) -> Array:
    """Sample data at each pixel plus its flow (horizontal, vertical), held inside of the image."""
    data, flow = widen(xp, data), widen(xp, flow)
    _, _, height, width = data.shape
    rows = xp.clip(flow[:, 1] + xp.arange(height)[:, None].astype(flow.dtype), 0, height - 1)
    columns = xp.clip(flow[:, 0] + xp.arange(width).astype(flow.dtype), 0, width - 1)
    return xp.moveaxis(_sample_linear(xp, xp.moveaxis(data, 1, -1), [rows, columns]), -1, 1)


@kernel("PatchCorrelation")
def patch_correlation(
    xp: Namespace,
    x1: Array,
    x2: Array,
    *,
    patch: Shape,
    shift: Shape,
    patch_step: Shape,
    shift_step: Shape,
    padding: Shape,
) -> Array:
    """Sum over channels and patches of x1 times shifted x2 (Fischer et al., 2015), one shift at a time."""
    x1, x2 = widen(xp, x1), widen(xp, x2)
    x1, x2 = _pad_image(xp, x1, padding), _pad_image(xp, x2, _with_shift(padding, shift))
    rows, columns = _shifts(shift, shift_step)
    maps = []
    for row, column in product(rows, columns):
        similarity = xp.sum(x1 * _shifted(x2, row, column, x1.shape), axis=1)
        for axis in (1, 2):
            similarity = _patch_sum(similarity, axis, patch[axis - 1], patch_step[axis - 1])
        maps.append(similarity)
    return xp.stack(maps, axis=1).reshape(x1.shape[0], len(rows), len(columns), *maps[0].shape[1:])


@kernel("PatchCorrelationBackward")
def patch_correlation_backward(
    xp: Namespace,
    dy: Array,
    x1: Array,
    x2: Array,
    *,
    patch: Shape,
    shift: Shape,
    patch_step: Shape,
    shift_step: Shape,
    padding: Shape,
) -> tuple[Array, Array]:
    """Spread each map of dy over its patches; times the other image it is the gradient of one image."""
    dy, x1, x2 = widen(xp, dy), widen(xp, x1), widen(xp, x2)
    height, width = x1.shape[2:]
    wide = _with_shift(padding, shift)
    x1, x2 = _pad_image(xp, x1, padding), _pad_image(xp, x2, wide)
    dx1, dx2 = xp.zeros_like(x1), xp.zeros_like(x2)
    rows, columns = _shifts(shift, shift_step)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            spread = dy[:, i, j]
            for axis in (1, 2):
                spread = _patch_spread(xp, spread, axis, patch[axis - 1], patch_step[axis - 1], x1.shape[axis + 1])
            spread = spread[:, None]
            dx1 += spread * _shifted(x2, row, column, x1.shape)
            dx2[_shift_places(row, column, x1.shape)] += spread * x1
    return (
        dx1[:, :, padding[0] : padding[0] + height, padding[2] : padding[2] + width],
        dx2[:, :, wide[0] : wide[0] + height, wide[2] : wide[2] + width],
    )


def _shifts(shift: Shape, shift_step: Shape) -> tuple[range, range]:
    """Offsets of the second image, counted from the largest negative shift."""
    return range(0, 2 * shift[0] + 1, shift_step[0]), range(0, 2 * shift[1] + 1, shift_step[1])


def _with_shift(padding: Shape, shift: Shape) -> Shape:
    """Return padding (top, bottom, left, right) that leaves room for every shift."""
    return padding[0] + shift[0], padding[1] + shift[0], padding[2] + shift[1], padding[3] + shift[1]


def _pad_image(xp: Namespace, x: Array, padding: Shape) -> Array:
    return padded(xp, x, (padding[0], padding[2]), (padding[1], padding[3]))


def _shifted(x: Array, row: int, column: int, shape: Shape) -> Array:
    return x[_shift_places(row, column, shape)]


def _shift_places(row: int, column: int, shape: Shape) -> tuple[slice, ...]:
    return slice(None), slice(None), slice(row, row + shape[2]), slice(column, column + shape[3])


def _patch_sum(x: Array, axis: int, size: int, step: int) -> Array:
    """Return sums over windows of `size` that start every `step` elements of `axis` (1 or 2)."""
    extent = x.shape[axis] - size + 1
    windows = [(slice(None),) * axis + (slice(k, k + extent, step),) for k in range(size)]
    return sum(x[window] for window in windows)


def _patch_spread(xp: Namespace, dy: Array, axis: int, size: int, step: int, length: int) -> Array:
    """Return the transpose of ``_patch_sum``."""
    dx = xp.zeros((*dy.shape[:axis], length, *dy.shape[axis + 1 :]), dtype=dy.dtype)
    for k in range(size):
        window = (slice(None),) * axis + (slice(k, k + length - size + 1, step),)
        dx[window] += dy
    return dx
