"""Convolution layers of all kinds."""

from collections.abc import Sequence

import numpy as np

import nn_core.functions as F
from nn_core.errors import ArgumentError
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.parametric_functions.initial import Applied, bias, counted, glorot, shape_for_parameters, trained
from nn_core.parametric_functions.scope import Initializer, layer
from nn_core.typing import Shape


@layer("conv", [("W", "Weight.", "(K, C / group, *kernel)", True), ("b", "Bias.", "(K)", True)])
def convolution(
    inp: Operand,
    outmaps: int,
    kernel: int | Sequence[int],
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    channel_last: bool = False,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    apply_w: Applied | None = None,
    apply_b: Applied | None = None,
    name: str | None = None,
) -> Operand:
    """Correlate the input with trained kernels (a convolution layer in any number of dimensions).

    Args:
        inp: Input. Shape (N, C, *spatial), or (N, *spatial, C) if `channel_last`.
        base_axis: Axis of the channels, or of the first spatial axis if `channel_last`.

    Returns:
        Shape (N, K, *spatial), where K is `outmaps`, or (N, *spatial, K) if `channel_last`.

    Example:
        >>> PF.convolution(nn.Variable((8, 3, 16, 16)), 4, 3, pad=1, stride=2).shape
        (8, 4, 8, 8)
    """
    outmaps = counted("outmaps", outmaps, "convolution")
    kernel = kernel_lengths(inp, kernel, base_axis)
    channels = channels_of(inp, base_axis, channel_last)
    w_init = glorot(channels, outmaps, kernel, rng) if w_init is None else w_init
    w_shape = kernel_shape(outmaps, channels // group, kernel, channel_last)
    w = trained("W", w_shape, w_init, fix_parameters, apply_w)
    b = bias((outmaps,), b_init, fix_parameters, with_bias, apply_b)
    return F.convolution(inp, w, b, base_axis, pad, stride, dilation, group, channel_last)


@layer("deconv", [("W", "Weight.", "(C, K / group, *kernel)", True), ("b", "Bias.", "(K)", True)])
def deconvolution(
    inp: Operand,
    outmaps: int,
    kernel: int | Sequence[int],
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    channel_last: bool = False,
    output_padding: int | Sequence[int] | None = None,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    apply_w: Applied | None = None,
    apply_b: Applied | None = None,
    name: str | None = None,
) -> Operand:
    """Spread the input by trained kernels, the transpose of a convolution layer.

    Args:
        inp: Input. Shape (N, C, *spatial), or (N, *spatial, C) if `channel_last`.
        pad: Elements cut off on both sides of each spatial axis. Default: 0.
        stride: Distance in the output of neighbouring inputs along each spatial axis. Default: 1.
        output_padding: Elements added at the end of each spatial axis. Default: 0.
        base_axis: Axis of the channels, or of the first spatial axis if `channel_last`.

    Returns:
        Shape (N, K, *spatial), where K is `outmaps`, or (N, *spatial, K) if `channel_last`.

    Example:
        >>> PF.deconvolution(nn.Variable((8, 3, 16, 16)), 4, 2, stride=2).shape
        (8, 4, 32, 32)
    """
    outmaps = counted("outmaps", outmaps, "convolution")
    kernel = kernel_lengths(inp, kernel, base_axis)
    channels = channels_of(inp, base_axis, channel_last)
    w_init = glorot(channels, outmaps, kernel, rng) if w_init is None else w_init
    w_shape = kernel_shape(channels, outmaps // group, kernel, channel_last)
    w = trained("W", w_shape, w_init, fix_parameters, apply_w)
    b = bias((outmaps,), b_init, fix_parameters, with_bias, apply_b)
    return F.deconvolution(inp, w, b, base_axis, pad, stride, dilation, group, channel_last, output_padding)


@layer("deformable_conv", [("W", "Weight.", "(K, C / group, *kernel)", True), ("b", "Bias.", "(K)", True)])
def deformable_convolution(
    inp: Operand,
    outmaps: int,
    kernel: int | Sequence[int],
    offset: Operand,
    mask: Operand | None = None,
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    deformable_group: int = 1,
    channel_last: bool = False,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    apply_w: Applied | None = None,
    apply_b: Applied | None = None,
    name: str | None = None,
) -> Operand:
    """Return a convolution layer that looks up each of its inputs at a place moved by an offset.

    Args:
        inp: Input. Shape (N, C, H, W).
        offset: Offsets of each kernel element at each output. Shape (N, deformable_group * 2 * kernel size, H', W').
        mask: Factor on each kernel element at each output. Shape (N, deformable_group * kernel size, H', W').
        deformable_group: Number of groups of channels with offsets of their own.
        base_axis: Axis of the channels.

    Returns:
        Shape (N, K, H', W'), where K is `outmaps`.

    References:
        Dai et al. (2017), Deformable convolutional networks; Zhu et al. (2019), Deformable ConvNets v2 (mask).

    Example:
        >>> x = nn.Variable((8, 3, 16, 16))
        >>> offset = PF.convolution(x, 2 * 3 * 3, 3, pad=1, name="offset")
        >>> PF.deformable_convolution(x, 4, 3, offset, pad=1).shape
        (8, 4, 16, 16)
    """
    outmaps = counted("outmaps", outmaps, "convolution")
    kernel = kernel_lengths(inp, kernel, base_axis)
    channels = channels_of(inp, base_axis, channel_last)
    w_init = glorot(channels, outmaps, kernel, rng) if w_init is None else w_init
    w_shape = kernel_shape(outmaps, channels // group, kernel, channel_last)
    w = trained("W", w_shape, w_init, fix_parameters, apply_w)
    b = bias((outmaps,), b_init, fix_parameters, with_bias, apply_b)
    return F.deformable_convolution(
        inp, w, offset, mask, b, base_axis, pad, stride, dilation, group, deformable_group, channel_last
    )


@layer("depthwise_conv", [("W", "Weight.", "(C * multiplier, *kernel)", True), ("b", "Bias.", "(C * multiplier)", True)])
def depthwise_convolution(
    inp: Operand,
    kernel: int | Sequence[int],
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    multiplier: int = 1,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    name: str | None = None,
) -> Operand:
    """Return a convolution layer whose outputs see one input channel each.

    Args:
        inp: Input. Shape (N, C, *spatial).
        multiplier: Number of outputs of each input channel.
        base_axis: Axis of the channels.

    Returns:
        Shape (N, C * multiplier, *spatial).

    References:
        Chollet (2017), Xception: deep learning with depthwise separable convolutions.

    Example:
        >>> PF.depthwise_convolution(nn.Variable((8, 3, 16, 16)), 3, pad=1, multiplier=2).shape
        (8, 6, 16, 16)
    """
    kernel = kernel_lengths(inp, kernel, base_axis)
    channels = shape_for_parameters(inp)[base_axis]
    outmaps = channels * multiplier
    w_init = glorot(channels, outmaps, kernel, rng) if w_init is None else w_init
    w = trained("W", (outmaps, *kernel), w_init, fix_parameters)
    b = bias((outmaps,), b_init, fix_parameters, with_bias)
    return F.depthwise_convolution(inp, w, b, base_axis, pad, stride, dilation, multiplier)


@layer("depthwise_deconv", [("W", "Weight.", "(C, *kernel)", True), ("b", "Bias.", "(C / divisor)", True)])
def depthwise_deconvolution(
    inp: Operand,
    kernel: int | Sequence[int],
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    divisor: int = 1,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    name: str | None = None,
) -> Operand:
    """Spread each input channel by a kernel of its own, the transpose of a depthwise convolution layer.

    Args:
        inp: Input. Shape (N, C, *spatial).
        pad: Elements cut off on both sides of each spatial axis. Default: 0.
        stride: Distance in the output of neighbouring inputs along each spatial axis. Default: 1.
        divisor: Number of input channels that are added up to one output channel.
        base_axis: Axis of the channels.

    Returns:
        Shape (N, C / divisor, *spatial).

    Example:
        >>> PF.depthwise_deconvolution(nn.Variable((8, 3, 16, 16)), 2, stride=2).shape
        (8, 3, 32, 32)
    """
    kernel = kernel_lengths(inp, kernel, base_axis)
    channels = shape_for_parameters(inp)[base_axis]
    w_init = glorot(channels, channels, kernel, rng) if w_init is None else w_init
    w = trained("W", (channels, *kernel), w_init, fix_parameters)
    b = bias((channels // divisor,), b_init, fix_parameters, with_bias)
    return F.depthwise_deconvolution(inp, w, b, base_axis, pad, stride, dilation, divisor)


def channels_of(inp: Operand, base_axis: int, channel_last: bool = False) -> int:
    """Return number of channels of an input of a convolution."""
    return shape_for_parameters(inp)[-1 if channel_last else base_axis]


def kernel_lengths(inp: Operand, kernel: int | Sequence[int], base_axis: int) -> Sequence[int]:
    """Return the lengths of a kernel; one number stands for all spatial axes."""
    if isinstance(kernel, (int, np.integer)):
        kernel = (int(kernel),) * max(inp.ndim - base_axis - 1, 0)
    elif isinstance(kernel, str) or not hasattr(kernel, "__iter__"):
        raise ArgumentError(f"convolution: kernel must be an integer or a sequence of integers, got {kernel!r}")
    return tuple([counted("kernel", length, "convolution") for length in kernel])


def kernel_shape(outer: int, inner: int, kernel: Sequence[int], channel_last: bool = False) -> Shape:
    """Shape of the weight of a convolution whose first axis has the length `outer`."""
    return (outer, *kernel, inner) if channel_last else (outer, inner, *kernel)
