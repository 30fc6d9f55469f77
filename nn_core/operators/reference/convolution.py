"""Reference kernels of convolutions (cross-correlations) over any number of spatial axes.

Inside, arrays are (B, C, *spatial): batch axes flattened, channels first. A convolution gathers what is under each
kernel element at all places into columns (C, R, B, *counts), and makes one product of matrices for each group; a
deconvolution is its transpose (Dumoulin and Visin, 2016, "A guide to convolution arithmetic for deep learning",
sections 2 and 4).
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from nn_core.operators.reference import axis_maps
from nn_core.operators.reference.activation import relu
from nn_core.operators.reference.normalization import batch_normalization
from nn_core.operators.reference.precision import widen
from nn_core.operators.reference.registry import kernel
from nn_core.operators.reference.windows import overlap_add, padded, windows
from nn_core.typing import Array, Namespace


@kernel("Convolution")
def convolution(
    xp: Namespace,
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    base_axis: int,
    pad: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    group: int,
    channel_last: bool,
) -> Array:
    """Slide each filter over the padded input."""
    images = _images(xp, x, base_axis, channel_last)
    filters = _channels_first(xp, weight, channel_last)
    y = _add_bias(xp, _convolve(xp, images, filters, pad, stride, dilation, group), bias)
    return _restored(xp, y, x.shape[:base_axis], channel_last)


@kernel("DepthwiseConvolution")
def depthwise_convolution(
    xp: Namespace,
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    base_axis: int,
    pad: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    multiplier: int,
) -> Array:
    """Return a convolution with one group for each channel of x."""
    filters = xp.reshape(weight, (weight.shape[0], 1, *weight.shape[1:]))
    geometry: dict[str, Any] = {"base_axis": base_axis, "pad": pad, "stride": stride, "dilation": dilation}
    return convolution(xp, x, filters, bias, group=x.shape[base_axis], channel_last=False, **geometry)


@kernel("Deconvolution")
def deconvolution(
    xp: Namespace,
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    base_axis: int,
    pad: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    group: int,
    channel_last: bool,
    output_padding: Sequence[int],
) -> Array:
    """Add each filter, scaled by the input, at its place in the output; cut the padding off."""
    images = _images(xp, x, base_axis, channel_last)
    filters = _channels_first(xp, weight, channel_last)
    y = _add_bias(xp, _deconvolve(xp, images, filters, pad, stride, dilation, group, output_padding), bias)
    return _restored(xp, y, x.shape[:base_axis], channel_last)


@kernel("DepthwiseDeconvolution")
def depthwise_deconvolution(
    xp: Namespace,
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    base_axis: int,
    pad: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    divisor: int,
) -> Array:
    """Return a deconvolution in which each output channel has a group of `divisor` input channels."""
    filters = xp.reshape(weight, (weight.shape[0], 1, *weight.shape[1:]))
    group = x.shape[base_axis] // divisor
    geometry: dict[str, Any] = {"base_axis": base_axis, "pad": pad, "stride": stride, "dilation": dilation}
    geometry["output_padding"] = (0,) * len(pad)
    return deconvolution(xp, x, filters, bias, group=group, channel_last=False, **geometry)


@kernel("FusedConvolution")
def fused_convolution(
    xp: Namespace,
    x: Array,
    weight: Array,
    bias: Array | None,
    beta: Array | None,
    gamma: Array | None,
    mean: Array | None,
    variance: Array | None,
    z: Array | None,
    *,
    base_axis: int,
    pad: Sequence[int],
    channel_last: bool,
    decay_rate: float,
    eps: float,
    batch_stat: bool,
    nonlinearity: str,
    nonlinearity_args: Sequence[float],
    pad_mode: str,
    constant_value: float,
    **steps: Any,
) -> tuple[Array | None, ...]:
    """One after the other: padding, convolution, batch normalization, addition, nonlinearity."""
    x = _bordered(xp, x, pad, base_axis if channel_last else base_axis + 1, pad_mode, constant_value)
    no_pad = (0,) * len(pad)
    y = convolution(xp, x, weight, bias, base_axis=base_axis, pad=no_pad, channel_last=channel_last, **steps)
    parameters = (beta, gamma, mean, variance)
    channel = y.ndim - 1 if channel_last else base_axis
    if any(parameter is not None for parameter in parameters):
        settings: dict[str, Any] = {"decay_rate": decay_rate, "eps": eps, "batch_stat": batch_stat}
        y, *statistics = batch_normalization(xp, y, *parameters, axes=(channel,), **settings)
    else:
        zeros = xp.zeros([length if axis == channel else 1 for axis, length in enumerate(y.shape)], dtype=y.dtype)
        statistics = [zeros, zeros, None, None]
    return _NONLINEARITIES[nonlinearity](xp, y if z is None else y + z, *nonlinearity_args), *statistics


def _bordered(xp: Namespace, x: Array, pad: Sequence[int], first_axis: int, pad_mode: str, constant_value: float) -> Array:
    """`x` with a border on the axes from `first_axis` on: a constant, the mirror image, or the edge repeated."""
    if pad_mode == "constant":
        widths = [0] * first_axis + list(pad) + [0] * (x.ndim - first_axis - len(pad))
        return padded(xp, x, widths, widths, constant_value)
    mode = axis_maps.reflected if pad_mode == "reflect" else axis_maps.nearest
    for axis, width in enumerate(pad, start=first_axis):
        places = xp.arange(-width, x.shape[axis] + width)
        x = xp.take(x, mode(xp, places, x.shape[axis]), axis=axis)
    return x


_NONLINEARITIES: dict[str, Callable[..., Array]] = {
    "identity": lambda xp, x: x,
    "relu": relu,
    "sigmoid": lambda xp, x: (xp.tanh(x / 2) + 1) / 2,
    "tanh": lambda xp, x: xp.tanh(x),
    "leaky_relu": lambda xp, x, alpha: xp.where(x > 0, x, alpha * x),
    "elu": lambda xp, x, alpha: xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, 0))),
    "relu6": lambda xp, x: xp.minimum(relu(xp, x), 6),
}


def _convolve(
    xp: Namespace,
    x: Array,
    weight: Array,
    pad: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    group: int,
) -> Array:
    n_outputs, _, *shape = weight.shape
    x = padded(xp, xp.moveaxis(x, 1, 0), pad, pad)
    extents = [step * (length - 1) + 1 for step, length in zip(dilation, shape, strict=True)]
    counts = [(n - extent) // step + 1 for n, extent, step in zip(x.shape[2:], extents, stride, strict=True)]
    columns = windows(xp, x, shape, stride, dilation, counts, axis=1)
    y = _multiply(xp, weight, columns, group)
    return xp.moveaxis(xp.reshape(y, (n_outputs, x.shape[1], *counts)), 1, 0)


def _multiply(xp: Namespace, weight: Array, columns: Array, group: int) -> Array:
    """One product for each group, of its weight matrix and all of its (C, R, ...) columns: (n_outputs, places)."""
    n_outputs, *rest = weight.shape
    matrices = xp.reshape(weight, (group, n_outputs // max(group, 1), prod(rest)))  # no group where there is no channel
    n_places = prod(columns.shape[2:])
    products = xp.matmul(matrices, xp.reshape(columns, (group, prod(rest), n_places)))
    return xp.reshape(products, (n_outputs, n_places))


def _deconvolve(
    xp: Namespace,
    x: Array,
    weight: Array,
    pad: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    group: int,
    output_padding: Sequence[int],
) -> Array:
    n_batch, n_inputs, *counts = x.shape
    n_outputs, shape = weight.shape[1], weight.shape[2:]
    per_group = n_inputs // max(group, 1)
    matrices = xp.reshape(weight, (group, per_group, n_outputs * prod(shape)))
    rows = xp.reshape(xp.moveaxis(x, 1, 0), (group, per_group, n_batch * prod(counts)))
    columns = xp.matmul(xp.moveaxis(matrices, 1, 2), rows)
    columns = xp.reshape(columns, (group * n_outputs, prod(shape), n_batch, *counts))
    lengths = [
        step * (count - 1) + gap * (length - 1) + 1 + extra
        for step, count, gap, length, extra in zip(stride, counts, dilation, shape, output_padding, strict=True)
    ]
    y = overlap_add(xp, columns, shape, stride, dilation, lengths, axis=1)
    inner = (..., *(slice(cut, length - cut) for cut, length in zip(pad, lengths, strict=True)))
    return xp.moveaxis(y[inner], 1, 0)


def _images(xp: Namespace, x: Array, base_axis: int, channel_last: bool) -> Array:
    """`x` as (B, C, *spatial)."""
    return _channels_first(xp, xp.reshape(x, (prod(x.shape[:base_axis]), *x.shape[base_axis:])), channel_last)


def _channels_first(xp: Namespace, x: Array, channel_last: bool) -> Array:
    """Return a widened image or weight array whose last axis becomes the second if `channel_last`."""
    return xp.moveaxis(widen(xp, x), -1, 1) if channel_last else widen(xp, x)


def _restored(xp: Namespace, y: Array, batch: tuple[int, ...], channel_last: bool) -> Array:
    y = xp.moveaxis(y, 1, -1) if channel_last else y
    return xp.reshape(y, (*batch, *y.shape[1:]))


def _add_bias(xp: Namespace, y: Array, bias: Array | None) -> Array:
    return y if bias is None else y + xp.reshape(bias, (bias.shape[0],) + (1,) * (y.ndim - 2))


@kernel("DeformableConvolution")
def deformable_convolution(
    xp: Namespace,
    x: Array,
    weight: Array,
    offset: Array,
    mask: Array | None,
    bias: Array | None,
    *,
    base_axis: int,
    pad: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    group: int,
    deformable_group: int,
    channel_last: bool,
) -> Array:
    """Return a convolution whose columns are read at displaced positions (Dai et al., 2017; Zhu et al., 2019)."""
    images, filters = _images(xp, x, base_axis, channel_last), _channels_first(xp, weight, channel_last)
    n_batch, n_channels, height, width = images.shape
    n_outputs, _, *shape = filters.shape
    counts = [
        (n + 2 * edge - gap * (length - 1) - 1) // step + 1
        for n, edge, gap, length, step in zip((height, width), pad, dilation, shape, stride, strict=True)
    ]
    places = (..., *(slice(0, step * (count - 1) + 1, step) for step, count in zip(stride, counts, strict=True)))
    moves = _images(xp, offset, base_axis, channel_last)[places]
    moves = xp.reshape(moves, (n_batch, deformable_group, *shape, 2, *counts))
    rows = moves[:, :, :, :, 0] + _grid(xp, 0, shape, counts, pad, stride, dilation)
    cols = moves[:, :, :, :, 1] + _grid(xp, 1, shape, counts, pad, stride, dilation)
    values = xp.reshape(images, (n_batch, deformable_group, n_channels // deformable_group, height, width))
    columns = _sample(xp, values, rows, cols)
    if mask is not None:
        scale = _images(xp, mask, base_axis, channel_last)[places]
        columns = columns * xp.reshape(scale, (n_batch, deformable_group, 1, *shape, *counts))
    columns = xp.moveaxis(xp.reshape(columns, (n_batch, n_channels, prod(shape), *counts)), 0, 2)
    y = xp.reshape(_multiply(xp, filters, columns, group), (n_outputs, n_batch, *counts))
    y = xp.moveaxis(y, 1, 0)
    return _restored(xp, _add_bias(xp, y, bias), x.shape[:base_axis], channel_last)


def _grid(
    xp: Namespace,
    axis: int,
    shape: Sequence[int],
    counts: Sequence[int],
    pad: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Array:
    """Place of each kernel element on spatial axis 0 or 1 before it is displaced; broadcasts to (*shape, *counts)."""
    inside = xp.reshape(xp.arange(shape[axis]) * dilation[axis], (-1, 1, 1, 1) if axis == 0 else (-1, 1, 1))
    moved = xp.reshape(xp.arange(counts[axis]) * stride[axis] - pad[axis], (-1, 1) if axis == 0 else (-1,))
    return inside + moved


def _sample(xp: Namespace, images: Array, rows: Array, cols: Array) -> Array:
    """Bilinear values of (B, D, C, H, W) images at (B, D, ...) positions, zero outside, NaN at NaN: (B, D, C, ...)."""
    n_batch, n_groups, n_channels, height, width = images.shape
    flat = xp.reshape(images, (n_batch, n_groups, n_channels, height * width))
    total = xp.zeros((n_batch, n_groups, n_channels, prod(rows.shape[2:])), dtype=images.dtype)
    for row_step in (0, 1):
        for col_step in (0, 1):
            row, col = xp.floor(rows) + row_step, xp.floor(cols) + col_step
            share = (1 - xp.abs(rows - row)) * (1 - xp.abs(cols - col))
            inside = (row >= 0) & (row < height) & (col >= 0) & (col < width)
            share = xp.where(inside | xp.isnan(row) | xp.isnan(col), share, 0)
            place = xp.where(inside, row * width + col, 0)
            place = xp.reshape(place.astype(xp.int64), (n_batch, n_groups, 1, prod(rows.shape[2:])))
            total = total + xp.take_along_axis(flat, place, axis=-1) * xp.reshape(share, place.shape)
    return xp.reshape(total, (n_batch, n_groups, n_channels, *rows.shape[2:]))


@kernel("AdaptiveSeparableConvolution")
def adaptive_separable_convolution(xp: Namespace, x: Array, vertical_kernel: Array, horizontal_kernel: Array) -> Array:
    """Weigh the window of each output pixel by the product of its own column and row (Niklaus et al., 2017)."""
    x, vertical, horizontal = widen(xp, x), widen(xp, vertical_kernel), widen(xp, horizontal_kernel)
    counts = (x.shape[2] - vertical.shape[1] + 1, x.shape[3] - horizontal.shape[1] + 1)
    vertical, horizontal = (array[:, :, : counts[0], : counts[1]] for array in (vertical, horizontal))
    total = xp.zeros((*x.shape[:2], *counts), dtype=x.dtype)
    for row in range(vertical.shape[1]):
        for col in range(horizontal.shape[1]):
            weight = vertical[:, None, row] * horizontal[:, None, col]
            total = total + weight * x[:, :, row : row + counts[0], col : col + counts[1]]
    return total
