"""Shape and gradient rules of convolutions; the gradients are put together in ``rules.convolving``."""

from collections.abc import Sequence
from math import prod
from typing import Any

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.choosing import chosen
from nn_core.operators.rules.convolution_gradients import (
    bias_gradient,
    convolution_gradient,
    cut,
    deconvolution_gradient,
    image_array,
    restored,
)
from nn_core.operators.rules.deformation import placed, sampling_gradient, sizes, unplaced
from nn_core.operators.rules.geometry import (
    Steps,
    check_bias,
    check_count,
    check_kernel,
    filters,
    image,
    joined,
    layout_hint,
    split,
)
from nn_core.operators.rules.normalization import batch_normalization_gradient, batch_normalization_shape
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape


def convolution_shape(
    x: Shape,
    weight: Shape,
    bias: Shape | None,
    *,
    base_axis: int,
    pad: Shape,
    stride: Shape,
    dilation: Shape,
    group: int,
    channel_last: bool,
) -> tuple[Shape, ...]:
    """Return a channel for each filter, a place for each position of the kernel."""
    steps = Steps(pad, stride, dilation)
    n_channels, lengths = image(x, base_axis, channel_last)
    steps.check(len(lengths))
    n_inputs, kernel = filters(weight, len(lengths), channel_last)
    if n_channels != n_inputs * group:
        hint = layout_hint(x[base_axis:], n_inputs * group, channel_last)
        text = f"x channels must equal weight channels * group, got {n_channels} and {n_inputs} * {group} = "
        raise ShapeError(f"{text}{n_inputs * group}{hint}")
    if weight[0] % group:
        raise ShapeError(f"the number of filters must be a multiple of group, got {weight[0]} and {group}")
    check_bias(bias, weight[0])
    return ((*x[:base_axis], *joined(weight[0], steps.counts(lengths, kernel), channel_last)),)


shape_rule("Convolution")(convolution_shape)  # not as a decorator: other rules use it under its own type


@shape_rule("DepthwiseConvolution")
def depthwise_convolution_shape(
    x: Shape,
    weight: Shape,
    bias: Shape | None,
    *,
    base_axis: int,
    pad: Shape,
    stride: Shape,
    dilation: Shape,
    multiplier: int,
) -> tuple[Shape, ...]:
    """`multiplier` channels for each channel of x."""
    steps = Steps(pad, stride, dilation)
    n_channels, lengths = image(x, base_axis, False)
    steps.check(len(lengths))
    if len(weight) != len(lengths) + 1:
        raise ShapeError(f"weight must have 1 axis more than x has spatial axes, got {len(weight)} and {len(lengths)}")
    check_kernel(weight[1:])
    if weight[0] != n_channels * multiplier:
        product = f"{n_channels} * {multiplier} = {n_channels * multiplier}"
        raise ShapeError(f"the number of filters must equal x channels * multiplier, got {weight[0]} and {product}")
    check_bias(bias, weight[0])
    return ((*x[:base_axis], weight[0], *steps.counts(lengths, weight[1:])),)


@shape_rule("Deconvolution")
def deconvolution_shape(
    x: Shape,
    weight: Shape,
    bias: Shape | None,
    *,
    base_axis: int,
    pad: Shape,
    stride: Shape,
    dilation: Shape,
    group: int,
    channel_last: bool,
    output_padding: Shape,
) -> tuple[Shape, ...]:
    """Return the axes that a convolution with these arguments turns into those of x."""
    steps = Steps(pad, stride, dilation)
    n_channels, lengths = image(x, base_axis, channel_last)
    steps.check(len(lengths))
    check_count("output_padding", output_padding, len(lengths))
    for extra, step, gap in zip(output_padding, stride, dilation, strict=True):
        if extra >= max(step, gap):
            raise ArgumentError(f"output_padding must be less than stride or dilation, got {extra}, {step} and {gap}")
    n_outputs, kernel = filters(weight, len(lengths), channel_last)
    if n_channels != weight[0]:
        hint = layout_hint(x[base_axis:], weight[0], channel_last)
        raise ShapeError(f"x channels must equal the first axis of weight, got {n_channels} and {weight[0]}{hint}")
    if n_channels % group:
        raise ShapeError(f"x channels must be a multiple of group, got {n_channels} and {group}")
    check_bias(bias, n_outputs * group)
    outputs = _deconvolved(steps, lengths, kernel, output_padding)
    return ((*x[:base_axis], *joined(n_outputs * group, outputs, channel_last)),)


def _deconvolved(steps: Steps, counts: Shape, kernel: Shape, output_padding: Shape) -> Shape:
    lengths = tuple(n + extra for n, extra in zip(steps.lengths(counts, kernel), output_padding, strict=True))
    if any(length < 1 for length in lengths):
        raise ShapeError(f"the output must be at least 1 long on each spatial axis, got {lengths}")
    return lengths


@shape_rule("DepthwiseDeconvolution")
def depthwise_deconvolution_shape(
    x: Shape,
    weight: Shape,
    bias: Shape | None,
    *,
    base_axis: int,
    pad: Shape,
    stride: Shape,
    dilation: Shape,
    divisor: int,
) -> tuple[Shape, ...]:
    """Return a channel for every `divisor` channels of x."""
    steps = Steps(pad, stride, dilation)
    n_channels, lengths = image(x, base_axis, False)
    steps.check(len(lengths))
    if len(weight) != len(lengths) + 1:
        raise ShapeError(f"weight must have 1 axis more than x has spatial axes, got {len(weight)} and {len(lengths)}")
    check_kernel(weight[1:])
    if weight[0] != n_channels:
        raise ShapeError(f"the number of filters must equal x channels, got {weight[0]} and {n_channels}")
    if n_channels % divisor:
        raise ShapeError(f"x channels must be a multiple of divisor, got {n_channels} and {divisor}")
    check_bias(bias, n_channels // divisor)
    outputs = _deconvolved(steps, lengths, weight[1:], (0,) * len(lengths))
    return ((*x[:base_axis], n_channels // divisor, *outputs),)


def _steps(g: GradientCall) -> Steps:
    return Steps(g.pad, g.stride, g.dilation)


@gradient("Convolution", rounds_once=True)
def convolution(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """dx is a deconvolution of dy, dw a convolution of x with dy."""
    dx, dweight = convolution_gradient(
        F, g.x, g.weight, g.grad, g.base_axis, _steps(g), g.group, g.channel_last, (g.wants("x"), g.wants("weight"))
    )
    dbias = bias_gradient(F, g.grad, g.base_axis, g.channel_last) if g.wants("bias") else None
    return dx, dweight, dbias


@gradient("Deconvolution", rounds_once=True)
def deconvolution(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """dx is a convolution of dy; in dw, x and dy change roles."""
    dx, dweight = deconvolution_gradient(
        F, g.x, g.weight, g.grad, g.base_axis, _steps(g), g.group, g.channel_last, (g.wants("x"), g.wants("weight"))
    )
    dbias = bias_gradient(F, g.grad, g.base_axis, g.channel_last) if g.wants("bias") else None
    return dx, dweight, dbias


@gradient("DepthwiseConvolution", rounds_once=True)
def depthwise_convolution(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Return that of a convolution with a group for each channel."""
    weight = _with_channel_axis(F, g.weight)
    group = g.x.shape[g.base_axis]
    wanted = (g.wants("x"), g.wants("weight"))
    dx, dweight = convolution_gradient(F, g.x, weight, g.grad, g.base_axis, _steps(g), group, False, wanted)
    return (
        dx,
        _without_channel_axis(F, dweight),
        bias_gradient(F, g.grad, g.base_axis, False) if g.wants("bias") else None,
    )


@gradient("DepthwiseDeconvolution", rounds_once=True)
def depthwise_deconvolution(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Return that of a deconvolution with a group for each output channel."""
    weight = _with_channel_axis(F, g.weight)
    group = g.x.shape[g.base_axis] // g.divisor
    wanted = (g.wants("x"), g.wants("weight"))
    dx, dweight = deconvolution_gradient(F, g.x, weight, g.grad, g.base_axis, _steps(g), group, False, wanted)
    return (
        dx,
        _without_channel_axis(F, dweight),
        bias_gradient(F, g.grad, g.base_axis, False) if g.wants("bias") else None,
    )


def _with_channel_axis(F: Any, weight: Any) -> Any:
    return F.reshape(weight, shape=(weight.shape[0], 1, *weight.shape[1:]))


def _without_channel_axis(F: Any, dweight: Any) -> Any:
    return None if dweight is None else F.reshape(dweight, shape=(dweight.shape[0], *dweight.shape[2:]))


@shape_rule("FusedConvolution")
def fused_convolution_shape(
    x: Shape,
    weight: Shape,
    bias: Shape | None,
    beta: Shape | None,
    gamma: Shape | None,
    mean: Shape | None,
    variance: Shape | None,
    z: Shape | None,
    *,
    base_axis: int,
    channel_last: bool,
    batch_stat: bool,
    nonlinearity: str,
    nonlinearity_args: Sequence[float],
    pad: Shape,
    stride: Shape,
    dilation: Shape,
    group: int,
    **_: Any,
) -> tuple[Shape, ...]:
    """As the convolution; statistics for each output channel."""
    _check_nonlinearity(nonlinearity, nonlinearity_args)
    (y,) = convolution_shape(
        x, weight, bias, base_axis=base_axis, pad=pad, stride=stride, dilation=dilation, group=group,
        channel_last=channel_last,
    )  # fmt: skip
    if z is not None and z != y:
        raise ShapeError(f"z must have the shape of the output, got {z} and {y}")
    channel = len(y) - 1 if channel_last else base_axis
    parameters = (beta, gamma, mean, variance)
    if any(parameter is not None for parameter in parameters):
        return batch_normalization_shape(y, *parameters, axes=(channel,), batch_stat=batch_stat)
    stat = tuple(length if axis == channel else 1 for axis, length in enumerate(y))
    return y, stat, stat


def _check_nonlinearity(nonlinearity: str, args: Sequence[float]) -> None:
    n_wanted = 1 if nonlinearity in ("leaky_relu", "elu") else 0
    if len(args) != n_wanted:
        wanted = "one value (alpha)" if n_wanted else "no value"
        raise ArgumentError(f"nonlinearity_args must hold {wanted} for {nonlinearity}, got {args}")
    if n_wanted and args[0] < 0:  # the gradient reads the output, which does not tell the sign then
        raise ArgumentError(f"nonlinearity_args must not be negative for {nonlinearity}, got {args}")


@gradient("FusedConvolution")
def fused_convolution(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Back through nonlinearity, normalization (the convolution is computed anew for it), convolution and padding."""
    steps = Steps((0,) * len(g.pad), g.stride, g.dilation)
    first = g.base_axis if g.channel_last else g.base_axis + 1
    widths = tuple(g.pad[axis - first] if 0 <= axis - first < len(g.pad) else 0 for axis in range(g.x.ndim) for _ in range(2))
    x = F.pad(g.x, pad_width=widths, mode=g.pad_mode, constant_value=g.constant_value)
    dsum = _through_nonlinearity(F, g)
    names = ("x", "weight", "bias", "beta", "gamma", "mean", "variance")
    wanted = tuple(map(g.wants, names))
    dy, normalization = dsum, (None, None, None, None)
    if any(array is not None for array in (g.beta, g.gamma, g.mean, g.variance)):
        y = F.convolution(
            x, g.weight, g.bias, base_axis=g.base_axis, group=g.group, channel_last=g.channel_last,
            pad=steps.pad, stride=steps.stride, dilation=steps.dilation,
        )  # fmt: skip
        channel = y.ndim - 1 if g.channel_last else g.base_axis
        dy, *rest = batch_normalization_gradient(
            F, y, g.beta, g.gamma, (g.mean, g.variance), dsum, (channel,), g.eps, g.batch_stat,
            (any(wanted[:3]), *wanted[3:]), g.kept("batch_mean", "batch_variance"),
        )  # fmt: skip
        normalization = tuple(rest)
    dx, dweight = convolution_gradient(F, x, g.weight, dy, g.base_axis, steps, g.group, g.channel_last, (wanted[0], wanted[1]))
    dx = F.pad_backward(dx, pad_width=widths, mode=g.pad_mode) if wanted[0] else None
    dbias = bias_gradient(F, dy, g.base_axis, g.channel_last) if wanted[2] else None
    return dx, dweight, dbias, *normalization, dsum if g.wants("z") else None


def _through_nonlinearity(F: Any, g: GradientCall) -> Any:
    """dy times the slope of the nonlinearity, which its output tells."""
    y, dy = g.y, g.grad
    if g.nonlinearity == "sigmoid":
        return dy * (y * (1.0 - y))
    if g.nonlinearity == "tanh":
        return dy * (1.0 - y * y)
    if g.nonlinearity == "identity":
        return dy
    positive = F.greater_scalar(y, val=0.0)
    if g.nonlinearity == "relu6":
        return chosen(F, positive * F.less_scalar(y, val=6.0), dy)
    if g.nonlinearity == "relu":
        return chosen(F, positive, dy)
    alpha = g.nonlinearity_args[0]
    below = alpha if g.nonlinearity == "leaky_relu" else y + alpha
    return dy * (positive + (1.0 - positive) * below)


@shape_rule("DeformableConvolution")
def deformable_convolution_shape(
    x: Shape,
    weight: Shape,
    offset: Shape,
    mask: Shape | None,
    bias: Shape | None,
    *,
    base_axis: int,
    pad: Shape,
    stride: Shape,
    dilation: Shape,
    group: int,
    deformable_group: int,
    channel_last: bool,
) -> tuple[Shape, ...]:
    """As the convolution; offset and mask have the resolution of x."""
    n_channels, lengths = image(x, base_axis, channel_last)
    if len(lengths) != 2:
        raise ShapeError(f"x must have 2 spatial axes, got {len(lengths)}")
    (y,) = convolution_shape(
        x, weight, bias, base_axis=base_axis, pad=pad, stride=stride, dilation=dilation, group=group,
        channel_last=channel_last,
    )  # fmt: skip
    if n_channels % deformable_group:
        raise ShapeError(f"x channels must be a multiple of deformable_group, got {n_channels} and {deformable_group}")
    _, kernel = split(weight[1:], channel_last)
    n_elements = deformable_group * prod(kernel)
    for name, shape, n in (("offset", offset, 2 * n_elements), ("mask", mask, n_elements)):
        expected = (*x[:base_axis], *joined(n, lengths, channel_last))
        if shape is not None and shape != expected:
            raise ShapeError(f"{name} must have shape {expected}, got {shape}")
    _, counts = split(y[base_axis:], channel_last)
    last = tuple(step * (count - 1) for step, count in zip(stride, counts, strict=True))
    if any(place >= length for place, length in zip(last, lengths, strict=True)):
        raise ArgumentError(f"pad must leave stride * (outputs - 1) inside of x, got {last} in {lengths}")
    return (y,)


@gradient("DeformableConvolution")
def deformable_convolution(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Dai et al. (2017), appendix A. Columns are (B, C, R, O): samples, channels, kernel elements, output places."""
    n_outputs, counts = sizes(g.grad, g)
    n_channels, lengths = sizes(g.x, g)
    _, kernel = split(tuple(g.weight.shape)[1:], g.channel_last)
    images = image_array(F, g.x, g.base_axis, g.channel_last)
    n_batch, n_elements, n_places = images.shape[0], prod(kernel), prod(counts)
    dy = image_array(F, g.grad, g.base_axis, g.channel_last)
    dy = F.reshape(dy, shape=(n_batch, g.group, n_outputs // g.group, n_places))
    offset = image_array(F, g.offset, g.base_axis, g.channel_last)
    mask = None if g.mask is None else placed(F, g, g.mask, counts, (n_batch, g.deformable_group, 1, n_elements))
    grouped = (n_batch, g.deformable_group, n_channels // g.deformable_group, n_elements, n_places)
    samples = dx = dweight = doffset = dmask = None
    if g.wants("weight") or g.wants("mask"):
        units = F.broadcast(F.matrix_diag(F.constant(val=1.0, shape=(n_elements,))), shape=(n_channels, *[n_elements] * 2))
        units = F.reshape(units, shape=(n_channels * n_elements, 1, *kernel))
        samples = F.deformable_convolution(
            images, units, offset, None, None, base_axis=1, pad=g.pad, stride=g.stride, dilation=g.dilation,
            group=n_channels, deformable_group=g.deformable_group, channel_last=False,
        )  # fmt: skip
        samples = F.reshape(samples, shape=grouped)
    if g.wants("weight"):
        columns = F.reshape(_weighted(samples, mask), shape=(n_batch, g.group, n_channels // g.group * n_elements, n_places))
        dweight = F.sum(F.batch_matmul(dy, columns, transpose_b=True), axes=(0,), keep_dims=False)
        dweight = F.reshape(dweight, shape=(n_outputs, n_channels // g.group, *kernel))
        dweight = restored(F, dweight, tuple(g.weight.shape), g.channel_last)
    if g.wants("x") or g.wants("offset") or g.wants("mask"):
        weight = image_array(F, g.weight, 1, g.channel_last)
        weight = F.reshape(weight, shape=(1, g.group, n_outputs // g.group, n_channels // g.group * n_elements))
        dcolumns = F.reshape(F.batch_matmul(weight, dy, transpose_a=True), shape=grouped)
        if g.wants("mask"):
            dmask = unplaced(F, g, F.sum(dcolumns * samples, axes=(2,), keep_dims=False), counts, g.mask)
        dimages, dmoved = sampling_gradient(F, g, images, _weighted(dcolumns, mask), kernel, counts)
        if g.wants("x"):
            dx = restored(F, F.reshape(dimages, shape=(n_batch, n_channels, *lengths)), tuple(g.x.shape), g.channel_last)
        if g.wants("offset"):
            doffset = unplaced(F, g, dmoved, counts, g.offset)
    dbias = bias_gradient(F, g.grad, g.base_axis, g.channel_last) if g.wants("bias") else None
    return dx, dweight, doffset, dmask, dbias


def _weighted(samples: Any, mask: Any) -> Any:
    return samples if mask is None else samples * mask


@shape_rule("AdaptiveSeparableConvolution")
def adaptive_separable_convolution_shape(x: Shape, vertical_kernel: Shape, horizontal_kernel: Shape) -> tuple[Shape, ...]:
    """Return the places where both kernels are inside x."""
    for name, shape in (("x", x), ("vertical_kernel", vertical_kernel), ("horizontal_kernel", horizontal_kernel)):
        if len(shape) != 4:
            raise ShapeError(f"{name} must have 4 axes, got {len(shape)}")
        if shape[0] != x[0]:
            raise ShapeError(f"{name} must have as many samples as x, got {shape[0]} and {x[0]}")
    counts = (x[2] - vertical_kernel[1] + 1, x[3] - horizontal_kernel[1] + 1)
    if min(counts) < 1:
        kernel = (vertical_kernel[1], horizontal_kernel[1])
        raise ShapeError(f"x must be as large as the kernel, got {x[2:]} and {kernel}")
    for name, shape in (("vertical_kernel", vertical_kernel), ("horizontal_kernel", horizontal_kernel)):
        if not all(count <= n <= whole for count, n, whole in zip(counts, shape[2:], x[2:], strict=True)):
            raise ShapeError(f"{name} must have a place for each output, from {counts} to {x[2:]}, got {shape[2:]}")
    return ((*x[:2], *counts),)


@gradient("AdaptiveSeparableConvolution")
def adaptive_separable_convolution(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """All windows are formed by a convolution with unit filters; dx is the matching deconvolution."""
    n_batch, n_channels, height, width = g.x.shape
    kernel = (g.vertical_kernel.shape[1], g.horizontal_kernel.shape[1])
    counts = tuple(g.grad.shape[2:])
    units = F.matrix_diag(F.constant(val=1.0, shape=(prod(kernel),)))
    units = F.reshape(units, shape=(prod(kernel), 1, *kernel))
    vertical = F.reshape(cut(F, g.vertical_kernel, (n_batch, kernel[0], *counts)), shape=(n_batch, 1, kernel[0], 1, *counts))
    horizontal = F.reshape(
        cut(F, g.horizontal_kernel, (n_batch, kernel[1], *counts)), shape=(n_batch, 1, 1, kernel[1], *counts)
    )
    dy = F.reshape(g.grad, shape=(n_batch, n_channels, 1, 1, *counts))
    dx = dvertical = dhorizontal = None
    if g.wants("x"):
        parts = F.reshape(dy * vertical * horizontal, shape=(n_batch * n_channels, prod(kernel), *counts))
        dx = F.reshape(F.deconvolution(parts, units, None), shape=(n_batch, n_channels, height, width))
    if g.wants("vertical_kernel") or g.wants("horizontal_kernel"):
        windows = F.convolution(F.reshape(g.x, shape=(n_batch * n_channels, 1, height, width)), units, None)
        products = F.reshape(windows, shape=(n_batch, n_channels, *kernel, *counts)) * dy
        if g.wants("vertical_kernel"):
            dvertical = _grown(F, F.sum(products * horizontal, axes=(1, 3), keep_dims=False), g.vertical_kernel)
        if g.wants("horizontal_kernel"):
            dhorizontal = _grown(F, F.sum(products * vertical, axes=(1, 2), keep_dims=False), g.horizontal_kernel)
    return dx, dvertical, dhorizontal


def _grown(F: Any, x: Any, like: Any) -> Any:
    """Pad the ends of the last axes of `x` with zeros, up to the shape of `like`."""
    missing = [whole - n for whole, n in zip(like.shape, x.shape, strict=True)]
    return F.pad(x, pad_width=tuple(width for n in missing for width in (0, n))) if any(missing) else x
