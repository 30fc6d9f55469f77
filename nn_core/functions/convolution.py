"""Functions of the topic convolution.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.convolution import (
    ADAPTIVE_SEPARABLE_CONVOLUTION,
    CONVOLUTION,
    DECONVOLUTION,
    DEFORMABLE_CONVOLUTION,
    DEPTHWISE_CONVOLUTION,
    DEPTHWISE_DECONVOLUTION,
    FUSED_CONVOLUTION,
    SPECS,
)


def convolution(
    x=None,
    weight=None,
    bias=None,
    base_axis=1,
    pad=None,
    stride=None,
    dilation=None,
    group=1,
    channel_last=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Convolve with a set of filters over any number of spatial axes (cross-correlation).

    y[n, k, o] = b[k] + sum over c, r of w[k, c, r] x[n, c, stride o + dilation r - pad]

    Args:
        x: Input; N stands for the axes before `base_axis`. Shape (N, C, L_1, ..., L_n).
        weight: Filters. Shape (K, C / group, R_1, ..., R_n).
        bias: Bias of each output channel. Shape (K). Optional.
        base_axis: Axis of the channels (of the first spatial axis, if `channel_last`); the axes before it are the
            batch.
        pad: Width of the zero border on each spatial axis; 0 by default.
        stride: Distance between neighbouring places of the kernel on each spatial axis; 1 by default.
        dilation: Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.
        group: Number of groups: C / group input channels feed K / group output channels each.
        channel_last: The channels are the last axis of x, weight and y: (N, L_1, ..., L_n, C), (K, R_1, ..., R_n, C /
            group).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, O_i = floor((L_i + 2 pad_i - dilation_i (R_i - 1) - 1) / stride_i) + 1. Shape (N, K, O_1, ..., O_n).

    Notes:
        Products are summed in float32 or wider. A batch of size zero gives an empty output and zero gradients of the
        parameters.

    Example:
        F.convolution(nn.Variable((8, 3, 32, 32)), nn.Variable((16, 3, 3, 3)), pad=1).shape  # (8, 16, 32, 32)

    References:
        Dumoulin and Visin (2016), A guide to convolution arithmetic for deep learning; Yu and Koltun (2016) for
        dilation; Krizhevsky et al. (2012) for groups.

    Spec: function_spec.yaml, entry Convolution
    """
    if surplus or unknown:
        refuse(CONVOLUTION, surplus, unknown)
    return apply(
        CONVOLUTION,
        (x, weight, bias),
        {
            "base_axis": base_axis,
            "pad": pad,
            "stride": stride,
            "dilation": dilation,
            "group": group,
            "channel_last": channel_last,
        },
        outputs,
    )


def depthwise_convolution(
    x=None,
    weight=None,
    bias=None,
    base_axis=1,
    pad=None,
    stride=None,
    dilation=None,
    multiplier=1,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Convolve each channel with filters of its own.

    y[n, m c + j, o] = b[m c + j] + sum over r of w[m c + j, r] x[n, c, stride o + dilation r - pad], with m the
    multiplier

    Args:
        x: Input; N stands for the axes before `base_axis`. Shape (N, C, L_1, ..., L_n).
        weight: Filters, those of one channel next to each other. Shape (C * multiplier, R_1, ..., R_n).
        bias: Bias of each output channel. Shape (C * multiplier). Optional.
        base_axis: Axis of the channels; the axes before it are the batch.
        pad: Width of the zero border on each spatial axis; 0 by default.
        stride: Distance between neighbouring places of the kernel on each spatial axis; 1 by default.
        dilation: Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.
        multiplier: Number of output channels for each input channel.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, O_i = floor((L_i + 2 pad_i - dilation_i (R_i - 1) - 1) / stride_i) + 1. Shape (N, C * multiplier,
            O_1, ..., O_n).

    Notes:
        The same as `convolution` with group = C. NNabla takes one or two spatial axes, this function any number.

    Example:
        F.depthwise_convolution(nn.Variable((8, 3, 32, 32)), nn.Variable((3, 3, 3)), pad=1).shape  # (8, 3, 32, 32)

    References:
        Chollet (2017), Xception, section 2.

    Spec: function_spec.yaml, entry DepthwiseConvolution
    """
    if surplus or unknown:
        refuse(DEPTHWISE_CONVOLUTION, surplus, unknown)
    return apply(
        DEPTHWISE_CONVOLUTION,
        (x, weight, bias),
        {"base_axis": base_axis, "pad": pad, "stride": stride, "dilation": dilation, "multiplier": multiplier},
        outputs,
    )


def deconvolution(
    x=None,
    weight=None,
    bias=None,
    base_axis=1,
    pad=None,
    stride=None,
    dilation=None,
    group=1,
    channel_last=False,
    output_padding=None,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Convolve backwards, the transpose of `convolution` (also called transposed convolution).

    y[n, k, stride o + dilation r - pad] = b[k] + sum over c, o, r of w[c, k, r] x[n, c, o]

    Args:
        x: Input; N stands for the axes before `base_axis`. Shape (N, C, L_1, ..., L_n).
        weight: Filters, laid out as those of the convolution that is transposed. Shape (C, K / group, R_1, ..., R_n).
        bias: Bias of each output channel. Shape (K). Optional.
        base_axis: Axis of the channels (of the first spatial axis, if `channel_last`); the axes before it are the
            batch.
        pad: Number of elements to cut off at both ends of each spatial axis of the output; 0 by default.
        stride: Distance in the output between the places of neighbouring elements of x on each spatial axis; 1 by
            default.
        dilation: Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.
        group: Number of groups: C / group input channels feed K / group output channels each.
        channel_last: The channels are the last axis of x, weight and y: (N, L_1, ..., L_n, C), (C, R_1, ..., R_n, K /
            group).
        output_padding: How much longer the end of each spatial axis of the output is made; less than stride or
            dilation; 0 by default.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, O_i = stride_i (L_i - 1) + dilation_i (R_i - 1) + 1 - 2 pad_i + output_padding_i. Shape (N, K, O_1,
            ..., O_n).

    Notes:
        Products are summed in float32 or wider. `output_padding` chooses among the lengths that a convolution with this
        stride maps to the same one.

    Example:
        F.deconvolution(nn.Variable((8, 16, 8, 8)), nn.Variable((16, 3, 2, 2)), stride=2).shape  # (8, 3, 16, 16)

    References:
        Dumoulin and Visin (2016), A guide to convolution arithmetic for deep learning, section 4.

    Spec: function_spec.yaml, entry Deconvolution
    """
    if surplus or unknown:
        refuse(DECONVOLUTION, surplus, unknown)
    return apply(
        DECONVOLUTION,
        (x, weight, bias),
        {
            "base_axis": base_axis,
            "pad": pad,
            "stride": stride,
            "dilation": dilation,
            "group": group,
            "channel_last": channel_last,
            "output_padding": output_padding,
        },
        outputs,
    )


def depthwise_deconvolution(
    x=None,
    weight=None,
    bias=None,
    base_axis=1,
    pad=None,
    stride=None,
    dilation=None,
    divisor=1,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Convolve each channel backwards with a filter of its own, and sum neighbouring channels.

    y[n, k, stride o + dilation r - pad] = b[k] + sum over j < divisor, o, r of w[divisor k + j, r] x[n, divisor k +
    j, o]

    Args:
        x: Input; N stands for the axes before `base_axis`. Shape (N, C, L_1, ..., L_n).
        weight: Filters. Shape (C, R_1, ..., R_n).
        bias: Bias of each output channel. Shape (C / divisor). Optional.
        base_axis: Axis of the channels; the axes before it are the batch.
        pad: Number of elements to cut off at both ends of each spatial axis of the output; 0 by default.
        stride: Distance in the output between the places of neighbouring elements of x on each spatial axis; 1 by
            default.
        dilation: Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.
        divisor: Number of input channels that one output channel sums.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, O_i = stride_i (L_i - 1) + dilation_i (R_i - 1) + 1 - 2 pad_i. Shape (N, C / divisor, O_1, ..., O_n).

    Notes:
        The same as `deconvolution` with group = C / divisor, and the transpose of `depthwise_convolution`.

    Example:
        F.depthwise_deconvolution(nn.Variable((8, 3, 8, 8)), nn.Variable((3, 2, 2)), stride=2).shape  # (8, 3, 16, 16)

    References:
        Dumoulin and Visin (2016), A guide to convolution arithmetic for deep learning, section 4.

    Spec: function_spec.yaml, entry DepthwiseDeconvolution
    """
    if surplus or unknown:
        refuse(DEPTHWISE_DECONVOLUTION, surplus, unknown)
    return apply(
        DEPTHWISE_DECONVOLUTION,
        (x, weight, bias),
        {"base_axis": base_axis, "pad": pad, "stride": stride, "dilation": dilation, "divisor": divisor},
        outputs,
    )


def fused_convolution(
    x=None,
    weight=None,
    bias=None,
    beta=None,
    gamma=None,
    mean=None,
    variance=None,
    z=None,
    base_axis=1,
    pad=None,
    stride=None,
    dilation=None,
    group=1,
    channel_last=False,
    decay_rate=0.9,
    eps=1e-05,
    batch_stat=True,
    nonlinearity="relu",
    nonlinearity_args=(),
    pad_mode="constant",
    constant_value=0.0,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Padding, convolution, batch normalization, an addition and a nonlinearity in one function.

    y = f(batch_normalization(convolution(pad(x), w) + b) + z)

    Args:
        x: Input; N stands for the axes before `base_axis`. Shape (N, C, L_1, ..., L_n).
        weight: Filters. Shape (K, C / group, R_1, ..., R_n).
        bias: Bias of each output channel. Shape (K). Optional.
        beta: Shift of the normalization. Shape (1, K, 1, ..., 1). Optional.
        gamma: Scale of the normalization. Shape (1, K, 1, ..., 1). Optional.
        mean: Running mean: rewritten if `batch_stat`, else used. Shape (1, K, 1, ..., 1). Optional.
        variance: Running variance: rewritten if `batch_stat`, else used. Shape (1, K, 1, ..., 1). Optional.
        z: Added before the nonlinearity. Shape (N, K, O_1, ..., O_n). Optional.
        base_axis: Axis of the channels (of the first spatial axis, if `channel_last`); the axes before it are the
            batch.
        pad: Width of the border on each spatial axis; 0 by default.
        stride: Distance between neighbouring places of the kernel on each spatial axis; 1 by default.
        dilation: Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.
        group: Number of groups, as in `convolution`.
        channel_last: The channels are the last axis of x, weight and y: (N, L_1, ..., L_n, C), (K, R_1, ..., R_n, C /
            group).
        decay_rate: How much of the running statistics a step keeps.
        eps: Added to the variance.
        batch_stat: Normalize by the statistics of this batch (training), not by the running ones.
        nonlinearity: Function that is applied last. One of 'identity', 'relu', 'sigmoid', 'tanh', 'leaky_relu', 'elu',
            'relu6'.
        nonlinearity_args: Arguments of the nonlinearity: alpha of leaky_relu and of elu.
        pad_mode: Kind of border, as in `pad`. One of 'constant', 'reflect', 'repeat'.
        constant_value: Value of a constant border.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, O_i as in `convolution`. Shape (N, K, O_1, ..., O_n).

    Notes:
        Batch normalization takes place if one of beta, gamma, mean and variance is given. NNabla refuses a bias beside
        it, this function does not.

    Example:
        F.fused_convolution(nn.Variable((8, 3, 32, 32)), nn.Variable((16, 3, 3, 3)), pad=1).shape  # (8, 16, 32, 32)

    References:
        Ioffe and Szegedy (2015), Batch normalization, section 3.2.

    Spec: function_spec.yaml, entry FusedConvolution
    """
    if surplus or unknown:
        refuse(FUSED_CONVOLUTION, surplus, unknown)
    return apply(
        FUSED_CONVOLUTION,
        (x, weight, bias, beta, gamma, mean, variance, z),
        {
            "base_axis": base_axis,
            "pad": pad,
            "stride": stride,
            "dilation": dilation,
            "group": group,
            "channel_last": channel_last,
            "decay_rate": decay_rate,
            "eps": eps,
            "batch_stat": batch_stat,
            "nonlinearity": nonlinearity,
            "nonlinearity_args": nonlinearity_args,
            "pad_mode": pad_mode,
            "constant_value": constant_value,
        },
        outputs,
    )


def deformable_convolution(
    x=None,
    weight=None,
    offset=None,
    mask=None,
    bias=None,
    base_axis=1,
    pad=None,
    stride=None,
    dilation=None,
    group=1,
    deformable_group=1,
    channel_last=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Convolve images with filters whose elements are displaced by learned offsets.

    y[n, k, o] = b[k] + sum over c, r of w[k, c, r] mask[n, r, stride o] x[n, c, stride o + dilation r - pad +
    offset[n, r, stride o]]

    Args:
        x: Images; N stands for the axes before `base_axis`. Between pixels they are interpolated bilinearly, outside
            they are zero. Shape (N, C, H, W).
        weight: Filters. Shape (K, C / group, R_1, R_2).
        offset: Displacement of each element of the kernel at each pixel of x, vertical and horizontal one after the
            other. Shape (N, 2 * deformable_group * R_1 * R_2, H, W).
        mask: Factor of each element of the kernel at each pixel of x; 1 if not given. Shape (N, deformable_group * R_1
            * R_2, H, W). Optional.
        bias: Bias of each output channel. Shape (K). Optional.
        base_axis: Axis of the channels (of the first spatial axis, if `channel_last`); the axes before it are the
            batch.
        pad: Width of the zero border on each spatial axis; 0 by default.
        stride: Distance between neighbouring places of the kernel on each spatial axis; 1 by default.
        dilation: Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.
        group: Number of groups, as in `convolution`.
        deformable_group: Number of groups of input channels with offsets of their own.
        channel_last: The channels are the last axis of all arrays but bias.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, O_i as in `convolution`. Shape (N, K, O_1, O_2).

    Notes:
        Offsets and masks have the resolution of x and are read at stride * o. Where a displaced position meets a pixel
        exactly, the gradient is that towards the next pixel.

    Example:
        F.deformable_convolution(nn.Variable((8, 3, 8, 8)), nn.Variable((4, 3, 3, 3)), nn.Variable((8, 18, 8, 8)), pad=1).shape  # (8, 4, 8, 8)

    References:
        Dai et al. (2017), Deformable convolutional networks, section 2.1; Zhu et al. (2019), Deformable ConvNets v2,
        section 3.2.

    Spec: function_spec.yaml, entry DeformableConvolution
    """
    if surplus or unknown:
        refuse(DEFORMABLE_CONVOLUTION, surplus, unknown)
    return apply(
        DEFORMABLE_CONVOLUTION,
        (x, weight, offset, mask, bias),
        {
            "base_axis": base_axis,
            "pad": pad,
            "stride": stride,
            "dilation": dilation,
            "group": group,
            "deformable_group": deformable_group,
            "channel_last": channel_last,
        },
        outputs,
    )


def adaptive_separable_convolution(
    x=None,
    vertical_kernel=None,
    horizontal_kernel=None,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Convolve each pixel with its own kernel, the product of a column and a row of weights.

    y[n, c, i, j] = sum over u, v of vertical[n, u, i, j] horizontal[n, v, i, j] x[n, c, i + u, j + v]

    Args:
        x: Images. Shape (N, C, H, W).
        vertical_kernel: Column of weights of each output pixel, H - U + 1 <= H' <= H, of which the first H - U + 1 rows
            are used. Shape (N, U, H', W').
        horizontal_kernel: Row of weights of each output pixel, W - V + 1 <= W' <= W, of which the first W - V + 1
            columns are used. Shape (N, V, H', W').
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Filtered images. Shape (N, C, H - U + 1, W - V + 1).

    Example:
        F.adaptive_separable_convolution(nn.Variable((1, 3, 10, 10)), nn.Variable((1, 3, 8, 8)), nn.Variable((1, 3, 8, 8))).shape  # (1, 3, 8, 8)

    References:
        Niklaus, Mai and Liu (2017), Video frame interpolation via adaptive separable convolution, section 3.

    Spec: function_spec.yaml, entry AdaptiveSeparableConvolution
    """
    if surplus or unknown:
        refuse(ADAPTIVE_SEPARABLE_CONVOLUTION, surplus, unknown)
    return apply(ADAPTIVE_SEPARABLE_CONVOLUTION, (x, vertical_kernel, horizontal_kernel), {}, outputs)


show_signatures(globals(), SPECS)
