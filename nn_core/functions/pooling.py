"""Functions of the topic pooling.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.pooling import (
    AVERAGE_POOLING,
    GLOBAL_AVERAGE_POOLING,
    MAX_POOLING,
    MAX_POOLING_BACKWARD,
    MAX_POOLING_GATHER,
    ROI_ALIGN,
    ROI_ALIGN_BACKWARD,
    SPECS,
    SUM_POOLING,
    UNPOOLING,
)


def max_pooling(
    x=None,
    kernel=None,
    stride=None,
    ignore_border=True,
    pad=None,
    channel_last=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Take the largest value under a window that moves over the spatial axes.

    y[..., o] = max over r < kernel of x[..., stride o + r - pad]

    Args:
        x: Input; the axes before the spatial ones are batch and channels. Shape (N_1, ..., N_k, L_1, ..., L_n).
        kernel: Lengths of a window on the spatial axes, which are the last ones of x.
        stride: Distance between neighbouring windows on each spatial axis; the kernel by default.
        ignore_border: Leave out windows that reach beyond the padded input; else every window that begins before the
            padding at the end counts.
        pad: Width of the border on each spatial axis, less than the kernel; 0 by default.
        channel_last: The channels are the last axis of all arrays.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, O_i = floor((L_i + 2 pad_i - kernel_i) / stride_i) + 1, or ceil((L_i + pad_i) / stride_i) if borders
            are not ignored. Shape (N_1, ..., N_k, O_1, ..., O_n).

    Notes:
        Padding never wins. The gradient goes to the first maximum of a window, in C order. A NaN under a window makes
        its output NaN. NNabla pools two or three spatial axes, this function any number.

    Example:
        F.max_pooling(nn.Variable((8, 3, 32, 32)), 2).shape  # (8, 3, 16, 16)

    Spec: function_spec.yaml, entry MaxPooling
    """
    if surplus or unknown:
        refuse(MAX_POOLING, surplus, unknown)
    return apply(
        MAX_POOLING,
        (x,),
        {"kernel": kernel, "stride": stride, "ignore_border": ignore_border, "pad": pad, "channel_last": channel_last},
        outputs,
    )


def max_pooling_backward(
    dy=None,
    x=None,
    kernel=None,
    stride=None,
    ignore_border=True,
    pad=None,
    channel_last=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Put values to the places where max pooling finds its maxima, the transpose of `max_pooling_gather`.

    dx[..., i] = sum of dy[..., o] over all windows o whose first maximum of x is at i

    Args:
        dy: A value for each window. Shape (N_1, ..., N_k, O_1, ..., O_n).
        x: What was pooled. Shape (N_1, ..., N_k, L_1, ..., L_n).
        kernel: Lengths of a window on the spatial axes, which are the last ones of x.
        stride: Distance between neighbouring windows on each spatial axis; the kernel by default.
        ignore_border: Leave out windows that reach beyond the padded input; else every window that begins before the
            padding at the end counts.
        pad: Width of the border on each spatial axis, less than the kernel; 0 by default.
        channel_last: The channels are the last axis of all arrays.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        dx: The values at their places, zero elsewhere. Shape (N_1, ..., N_k, L_1, ..., L_n).

    Notes:
        This is the gradient of `max_pooling`. x gets no gradient.

    Example:
        F.max_pooling_backward(nn.Variable((8, 3, 16, 16)), nn.Variable((8, 3, 32, 32)), 2).shape  # (8, 3, 32, 32)

    Spec: function_spec.yaml, entry MaxPoolingBackward
    """
    if surplus or unknown:
        refuse(MAX_POOLING_BACKWARD, surplus, unknown)
    return apply(
        MAX_POOLING_BACKWARD,
        (dy, x),
        {"kernel": kernel, "stride": stride, "ignore_border": ignore_border, "pad": pad, "channel_last": channel_last},
        outputs,
    )


def max_pooling_gather(
    values=None,
    x=None,
    kernel=None,
    stride=None,
    ignore_border=True,
    pad=None,
    channel_last=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Take the elements of an array from the places where the max pooling of another finds its maxima.

    y[..., o] = values[..., i], with i the place of the first maximum of x in window o

    Args:
        values: What is taken from. Shape (N_1, ..., N_k, L_1, ..., L_n).
        x: What is pooled. Shape (N_1, ..., N_k, L_1, ..., L_n).
        kernel: Lengths of a window on the spatial axes, which are the last ones of x.
        stride: Distance between neighbouring windows on each spatial axis; the kernel by default.
        ignore_border: Leave out windows that reach beyond the padded input; else every window that begins before the
            padding at the end counts.
        pad: Width of the border on each spatial axis, less than the kernel; 0 by default.
        channel_last: The channels are the last axis of all arrays.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: An element for each window. Shape (N_1, ..., N_k, O_1, ..., O_n).

    Notes:
        This is the gradient of `max_pooling_backward`, which NNabla does not have. x gets no gradient.

    Example:
        F.max_pooling_gather(nn.Variable((8, 3, 32, 32)), nn.Variable((8, 3, 32, 32)), 2).shape  # (8, 3, 16, 16)

    Spec: function_spec.yaml, entry MaxPoolingGather
    """
    if surplus or unknown:
        refuse(MAX_POOLING_GATHER, surplus, unknown)
    return apply(
        MAX_POOLING_GATHER,
        (values, x),
        {"kernel": kernel, "stride": stride, "ignore_border": ignore_border, "pad": pad, "channel_last": channel_last},
        outputs,
    )


def sum_pooling(
    x=None,
    kernel=None,
    stride=None,
    ignore_border=True,
    pad=None,
    channel_last=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Add up the values under a window that moves over the spatial axes.

    y[..., o] = sum over r < kernel of x[..., stride o + r - pad]

    Args:
        x: Input; the axes before the spatial ones are batch and channels. Shape (N_1, ..., N_k, L_1, ..., L_n).
        kernel: Lengths of a window on the spatial axes, which are the last ones of x.
        stride: Distance between neighbouring windows on each spatial axis; the kernel by default.
        ignore_border: Leave out windows that reach beyond the padded input; else every window that begins before the
            padding at the end counts.
        pad: Width of the border on each spatial axis, less than the kernel; 0 by default.
        channel_last: The channels are the last axis of all arrays.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, O_i = floor((L_i + 2 pad_i - kernel_i) / stride_i) + 1, or ceil((L_i + pad_i) / stride_i) if borders
            are not ignored. Shape (N_1, ..., N_k, O_1, ..., O_n).

    Notes:
        Sums are taken in float32 or wider. NNabla pools two or three spatial axes, this function any number.

    Example:
        F.sum_pooling(nn.Variable((8, 3, 32, 32)), 2).shape  # (8, 3, 16, 16)

    Spec: function_spec.yaml, entry SumPooling
    """
    if surplus or unknown:
        refuse(SUM_POOLING, surplus, unknown)
    return apply(
        SUM_POOLING,
        (x,),
        {"kernel": kernel, "stride": stride, "ignore_border": ignore_border, "pad": pad, "channel_last": channel_last},
        outputs,
    )


def average_pooling(
    x=None,
    kernel=None,
    stride=None,
    ignore_border=True,
    pad=None,
    channel_last=False,
    including_pad=True,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Take the mean of the values under a window that moves over the spatial axes.

    y[..., o] = sum over r < kernel of x[..., stride o + r - pad] / number of elements under the window

    Args:
        x: Input; the axes before the spatial ones are batch and channels. Shape (N_1, ..., N_k, L_1, ..., L_n).
        kernel: Lengths of a window on the spatial axes, which are the last ones of x.
        stride: Distance between neighbouring windows on each spatial axis; the kernel by default.
        ignore_border: Leave out windows that reach beyond the padded input; else every window that begins before the
            padding at the end counts.
        pad: Width of the border on each spatial axis, less than the kernel; 0 by default.
        channel_last: The channels are the last axis of all arrays.
        including_pad: Count the padding among the elements under a window.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, O_i = floor((L_i + 2 pad_i - kernel_i) / stride_i) + 1, or ceil((L_i + pad_i) / stride_i) if borders
            are not ignored. Shape (N_1, ..., N_k, O_1, ..., O_n).

    Notes:
        What a window has beyond the padded input is not counted in either case. NNabla pools two or three spatial axes,
        this function any number.

    Example:
        F.average_pooling(nn.Variable((8, 3, 32, 32)), 2).shape  # (8, 3, 16, 16)

    Spec: function_spec.yaml, entry AveragePooling
    """
    if surplus or unknown:
        refuse(AVERAGE_POOLING, surplus, unknown)
    return apply(
        AVERAGE_POOLING,
        (x,),
        {
            "kernel": kernel,
            "stride": stride,
            "ignore_border": ignore_border,
            "pad": pad,
            "channel_last": channel_last,
            "including_pad": including_pad,
        },
        outputs,
    )


def global_average_pooling(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the mean of each channel.

    y[n, c] = mean of x[n, c, ...]

    Args:
        x: Input with at least one spatial axis. Shape (N, C, L_1, ..., L_n).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Means, with as many axes as x. Shape (N, C, 1, ..., 1).

    Notes:
        NNabla gives four axes whatever x has.

    Example:
        F.global_average_pooling(nn.Variable((8, 3, 32, 32))).shape  # (8, 3, 1, 1)

    References:
        Lin, Chen and Yan (2014), Network in network, section 3.2.

    Spec: function_spec.yaml, entry GlobalAveragePooling
    """
    if surplus or unknown:
        refuse(GLOBAL_AVERAGE_POOLING, surplus, unknown)
    return apply(GLOBAL_AVERAGE_POOLING, (x,), {}, outputs)


def unpooling(x=None, kernel=None, channel_last=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Repeat each element along the spatial axes.

    y[..., i] = x[..., floor(i / kernel)]

    Args:
        x: Input; the axes before the spatial ones are batch and channels. Shape (N_1, ..., N_k, L_1, ..., L_n).
        kernel: How often an element is repeated on each spatial axis; these are the last ones of x.
        channel_last: The channels are the last axis of both arrays.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N_1, ..., N_k, kernel_1 L_1, ..., kernel_n L_n).

    Notes:
        The gradient is the sum pooling of dy.

    Example:
        F.unpooling(nn.Variable((8, 3, 16, 16)), 2).shape  # (8, 3, 32, 32)

    Spec: function_spec.yaml, entry Unpooling
    """
    if surplus or unknown:
        refuse(UNPOOLING, surplus, unknown)
    return apply(UNPOOLING, (x,), {"kernel": kernel, "channel_last": channel_last}, outputs)


def roi_align(
    input=None,
    boxes=None,
    output_size=None,
    spatial_scale=(1.0, 1.0),
    sampling_ratio=None,
    channel_last=None,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Resample boxes of images to one size, without rounding their borders.

    y[k, c, i, j] = mean of bilinear samples of input[b_k, c] in bin (i, j) of box k

    Args:
        input: Images, (N, H, W, C) if `channel_last`. Shape (N, C, H, W).
        boxes: For each box the number of its image, then x and y of the upper left and of the lower right corner. Shape
            (K, 5).
        output_size: Height and width of the output.
        spatial_scale: Factors from vertical and horizontal box coordinates to pixels.
        sampling_ratio: Number of samples of a bin on each axis; by default as many as the bin is long in pixels,
            rounded up.
        channel_last: The channels are the last axis of input and output. Default: False.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Resampled boxes. Shape (K, C, height, width).

    Notes:
        Pixel (0, 0) covers box coordinates 0 to 1. A sample up to one pixel outside of the image reads the edge, one
        further off zero. The boxes get no gradient.

    Example:
        images = nn.NdArray.from_numpy_array(np.arange(16.0).reshape(1, 1, 4, 4))
        F.roi_align(images, nn.NdArray.from_numpy_array([[0, 0, 0, 4, 4]]), (2, 2))  # [[[[2.5, 4.5], [10.5, 12.5]]]]

    References:
        He et al. (2017), Mask R-CNN, section 3.

    Spec: function_spec.yaml, entry RoiAlign
    """
    if surplus or unknown:
        refuse(ROI_ALIGN, surplus, unknown)
    return apply(
        ROI_ALIGN,
        (input, boxes),
        {
            "output_size": output_size,
            "spatial_scale": spatial_scale,
            "sampling_ratio": sampling_ratio,
            "channel_last": channel_last,
        },
        outputs,
    )


def roi_align_backward(
    dy=None,
    boxes=None,
    input_shape=None,
    output_size=None,
    spatial_scale=(1.0, 1.0),
    sampling_ratio=-1,
    channel_last=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Add boxes of one size into images, the transpose of `roi_align`.

    Args:
        dy: What is added. Shape (K, C, height, width).
        boxes: As in `roi_align`. Shape (K, 5).
        input_shape: Shape of the images.
        output_size: As in `roi_align`.
        spatial_scale: As in `roi_align`.
        sampling_ratio: As in `roi_align`.
        channel_last: As in `roi_align`.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        dx: Images, zero where no box has a sample. Shape (N, C, H, W).

    Notes:
        This is the gradient of `roi_align`. The boxes get no gradient.

    Example:
        boxes = nn.NdArray.from_numpy_array([[0, 0, 0, 4, 4]])
        F.roi_align_backward(nn.Variable((1, 3, 2, 2)), boxes, (1, 3, 4, 4), (2, 2)).shape  # (1, 3, 4, 4)

    Spec: function_spec.yaml, entry RoiAlignBackward
    """
    if surplus or unknown:
        refuse(ROI_ALIGN_BACKWARD, surplus, unknown)
    return apply(
        ROI_ALIGN_BACKWARD,
        (dy, boxes),
        {
            "input_shape": input_shape,
            "output_size": output_size,
            "spatial_scale": spatial_scale,
            "sampling_ratio": sampling_ratio,
            "channel_last": channel_last,
        },
        outputs,
    )


show_signatures(globals(), SPECS)
