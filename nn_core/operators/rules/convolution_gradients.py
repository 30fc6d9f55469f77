"""Gradients of convolutions in terms of convolutions, for the gradient rules.

A convolution and the deconvolution of the same arguments are each other's transpose: that is the gradient of the data.
The gradient of the weight is a convolution too: batch and channels change places, and so do stride and dilation
(Dumoulin and Visin, 2016, section 4). Inside, arrays are (B, C, *spatial): batch axes flattened, channels first.
"""

from math import prod
from typing import Any

from nn_core.operators.rules.geometry import Steps, split
from nn_core.typing import Shape


def convolution_gradient(
    F: Any,
    x: Any,
    weight: Any,
    dy: Any,
    base_axis: int,
    steps: Steps,
    group: int,
    channel_last: bool,
    wanted: tuple[bool, bool],
) -> tuple[Any, Any]:
    """Gradients of x and weight, None where not `wanted`."""
    dx = dweight = None
    if wanted[0]:
        _, counts = split(tuple(dy.shape)[base_axis:], channel_last)
        _, lengths = split(tuple(x.shape)[base_axis:], channel_last)
        _, kernel = split(tuple(weight.shape)[1:], channel_last)
        rest = tuple(n - covered for n, covered in zip(lengths, steps.lengths(counts, kernel), strict=True))
        dx = F.deconvolution(
            dy, weight, None, base_axis=base_axis, group=group, channel_last=channel_last, output_padding=rest,
            pad=steps.pad, stride=steps.stride, dilation=steps.dilation,
        )  # fmt: skip
    if wanted[1]:
        dweight = weight_gradient(F, x, dy, tuple(weight.shape), base_axis, steps, group, channel_last)
    return dx, dweight


def deconvolution_gradient(
    F: Any,
    x: Any,
    weight: Any,
    dy: Any,
    base_axis: int,
    steps: Steps,
    group: int,
    channel_last: bool,
    wanted: tuple[bool, bool],
) -> tuple[Any, Any]:
    """Gradients of x and weight, None where not `wanted`."""
    dx = dweight = None
    if wanted[0]:
        dx = F.convolution(
            dy, weight, None, base_axis=base_axis, group=group, channel_last=channel_last,
            pad=steps.pad, stride=steps.stride, dilation=steps.dilation,
        )  # fmt: skip
        dx = cut(F, dx, tuple(x.shape))  # output_padding beyond a stride makes room for more places
    if wanted[1]:
        dweight = weight_gradient(F, dy, x, tuple(weight.shape), base_axis, steps, group, channel_last)
    return dx, dweight


def weight_gradient(
    F: Any, large: Any, small: Any, shape: Shape, base_axis: int, steps: Steps, group: int, channel_last: bool
) -> Any:
    """Return the gradient of a weight that maps `large` to `small` by convolution: a convolution of the one with the other.

    Samples are summed over, so they become channels; the places of the kernel are what the result has as spatial axes.
    """
    if 0 in tuple(large.shape) or 0 in tuple(small.shape):  # a convolution needs a kernel
        return F.constant(val=0, shape=shape)
    large, small = image_array(F, large, base_axis, channel_last), image_array(F, small, base_axis, channel_last)
    n_batch, n_large, *lengths = large.shape
    n_small, counts = small.shape[1], tuple(small.shape[2:])
    spatial = tuple(range(3, 3 + len(counts)))
    large = F.reshape(large, shape=(n_batch, group, n_large // group, *lengths))
    large = F.reshape(F.transpose(large, axes=(2, 1, 0, *spatial)), shape=(n_large // group, group * n_batch, *lengths))
    small = F.transpose(small, axes=(1, 0, *range(2, small.ndim)))
    full = F.convolution(
        large, small, None, base_axis=1, pad=steps.pad, stride=steps.dilation, dilation=steps.stride, group=group,
        channel_last=False,
    )  # fmt: skip
    _, kernel = split(shape[1:], channel_last)
    full = cut(F, full, (n_large // group, n_small, *kernel))
    return F.transpose(full, axes=(1, *range(2, full.ndim), 0) if channel_last else (1, 0, *range(2, full.ndim)))


def bias_gradient(F: Any, dy: Any, base_axis: int, channel_last: bool) -> Any:
    channel = dy.ndim - 1 if channel_last else base_axis
    return F.sum(dy, axes=tuple(axis for axis in range(dy.ndim) if axis != channel), keep_dims=False)


def image_array(F: Any, x: Any, base_axis: int, channel_last: bool) -> Any:
    """Return an array as (B, C, *spatial)."""
    shape = (prod(x.shape[:base_axis]), *x.shape[base_axis:])
    x = x if base_axis == 1 else F.reshape(x, shape=shape)
    return F.transpose(x, axes=(0, x.ndim - 1, *range(1, x.ndim - 1))) if channel_last else x


def restored(F: Any, x: Any, shape: Shape, channel_last: bool) -> Any:
    """Return the inverse of ``image_array``: a (B, C, *spatial) array in its own `shape`."""
    x = F.transpose(x, axes=(0, *range(2, x.ndim), 1)) if channel_last else x
    return x if tuple(x.shape) == shape else F.reshape(x, shape=shape)


def cut(F: Any, x: Any, shape: Shape) -> Any:
    """Return the first elements of each axis."""
    if tuple(x.shape) == shape:
        return x
    return F.slice(x, start=(0,) * len(shape), stop=shape, step=(1,) * len(shape))
