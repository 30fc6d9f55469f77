"""Specifications of the topic pooling.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

MAX_POOLING = FunctionSpec(
    name="MaxPooling",
    api="max_pooling",
    topic="pooling",
    doc="Take the largest value under a window that moves over the spatial axes.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; the axes before the spatial ones are batch and channels.",
            shape="(N_1, ..., N_k, L_1, ..., L_n)",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc=(
                "Output, O_i = floor((L_i + 2 pad_i - kernel_i) / stride_i) + 1, or ceil((L_i + "
                "pad_i) / stride_i) if borders are not ignored."
            ),
            shape="(N_1, ..., N_k, O_1, ..., O_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="kernel",
            type="ints",
            doc="Lengths of a window on the spatial axes, which are the last ones of x.",
            minimum=1,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring windows on each spatial axis; the kernel by default.",
            default_rule="kernel",
            minimum=1,
        ),
        ArgSpec(
            name="ignore_border",
            type="bool",
            doc=(
                "Leave out windows that reach beyond the padded input; else every window that begins "
                "before the padding at the end counts."
            ),
            default=True,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the border on each spatial axis, less than the kernel; 0 by default.",
            default_rule="kernel_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc="The channels are the last axis of all arrays.",
            default=False,
        ),
    ),
    backward=BackwardSpec(needs=("x",)),
    tags=("selecting",),
    formula="y[..., o] = max over r < kernel of x[..., stride o + r - pad]",
    notes=(
        "Padding never wins. The gradient goes to the first maximum of a window, in C order. A NaN under a "
        "window makes its output NaN. NNabla pools two or three spatial axes, this function any number."
    ),
    example="F.max_pooling(nn.Variable((8, 3, 32, 32)), 2).shape  # (8, 3, 16, 16)",
)

MAX_POOLING_BACKWARD = FunctionSpec(
    name="MaxPoolingBackward",
    api="max_pooling_backward",
    topic="pooling",
    doc="Put values to the places where max pooling finds its maxima, the transpose of `max_pooling_gather`.",
    inputs=(
        InputSpec(name="dy", doc="A value for each window.", shape="(N_1, ..., N_k, O_1, ..., O_n)"),
        InputSpec(name="x", doc="What was pooled.", shape="(N_1, ..., N_k, L_1, ..., L_n)"),
    ),
    outputs=(
        OutputSpec(
            name="dx",
            doc="The values at their places, zero elsewhere.",
            shape="(N_1, ..., N_k, L_1, ..., L_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="kernel",
            type="ints",
            doc="Lengths of a window on the spatial axes, which are the last ones of x.",
            minimum=1,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring windows on each spatial axis; the kernel by default.",
            default_rule="kernel",
            minimum=1,
        ),
        ArgSpec(
            name="ignore_border",
            type="bool",
            doc=(
                "Leave out windows that reach beyond the padded input; else every window that begins "
                "before the padding at the end counts."
            ),
            default=True,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the border on each spatial axis, less than the kernel; 0 by default.",
            default_rule="kernel_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc="The channels are the last axis of all arrays.",
            default=False,
        ),
    ),
    backward=BackwardSpec(needs=("x",)),
    formula="dx[..., i] = sum of dy[..., o] over all windows o whose first maximum of x is at i",
    notes="This is the gradient of `max_pooling`. x gets no gradient.",
    example=(
        "F.max_pooling_backward(nn.Variable((8, 3, 16, 16)), nn.Variable((8, 3, 32, 32)), 2).shape  # "
        "(8, 3, 32, 32)"
    ),
)

MAX_POOLING_GATHER = FunctionSpec(
    name="MaxPoolingGather",
    api="max_pooling_gather",
    topic="pooling",
    doc="Take the elements of an array from the places where the max pooling of another finds its maxima.",
    inputs=(
        InputSpec(name="values", doc="What is taken from.", shape="(N_1, ..., N_k, L_1, ..., L_n)"),
        InputSpec(name="x", doc="What is pooled.", shape="(N_1, ..., N_k, L_1, ..., L_n)"),
    ),
    outputs=(OutputSpec(name="y", doc="An element for each window.", shape="(N_1, ..., N_k, O_1, ..., O_n)"),),
    args=(
        ArgSpec(
            name="kernel",
            type="ints",
            doc="Lengths of a window on the spatial axes, which are the last ones of x.",
            minimum=1,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring windows on each spatial axis; the kernel by default.",
            default_rule="kernel",
            minimum=1,
        ),
        ArgSpec(
            name="ignore_border",
            type="bool",
            doc=(
                "Leave out windows that reach beyond the padded input; else every window that begins "
                "before the padding at the end counts."
            ),
            default=True,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the border on each spatial axis, less than the kernel; 0 by default.",
            default_rule="kernel_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc="The channels are the last axis of all arrays.",
            default=False,
        ),
    ),
    backward=BackwardSpec(needs=("x",)),
    formula="y[..., o] = values[..., i], with i the place of the first maximum of x in window o",
    notes="This is the gradient of `max_pooling_backward`, which NNabla does not have. x gets no gradient.",
    example="F.max_pooling_gather(nn.Variable((8, 3, 32, 32)), nn.Variable((8, 3, 32, 32)), 2).shape  # (8, 3, 16, 16)",
)

SUM_POOLING = FunctionSpec(
    name="SumPooling",
    api="sum_pooling",
    topic="pooling",
    doc="Add up the values under a window that moves over the spatial axes.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; the axes before the spatial ones are batch and channels.",
            shape="(N_1, ..., N_k, L_1, ..., L_n)",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc=(
                "Output, O_i = floor((L_i + 2 pad_i - kernel_i) / stride_i) + 1, or ceil((L_i + "
                "pad_i) / stride_i) if borders are not ignored."
            ),
            shape="(N_1, ..., N_k, O_1, ..., O_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="kernel",
            type="ints",
            doc="Lengths of a window on the spatial axes, which are the last ones of x.",
            minimum=1,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring windows on each spatial axis; the kernel by default.",
            default_rule="kernel",
            minimum=1,
        ),
        ArgSpec(
            name="ignore_border",
            type="bool",
            doc=(
                "Leave out windows that reach beyond the padded input; else every window that begins "
                "before the padding at the end counts."
            ),
            default=True,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the border on each spatial axis, less than the kernel; 0 by default.",
            default_rule="kernel_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc="The channels are the last axis of all arrays.",
            default=False,
        ),
    ),
    backward=BackwardSpec(needs=("x",)),
    formula="y[..., o] = sum over r < kernel of x[..., stride o + r - pad]",
    notes="Sums are taken in float32 or wider. NNabla pools two or three spatial axes, this function any number.",
    example="F.sum_pooling(nn.Variable((8, 3, 32, 32)), 2).shape  # (8, 3, 16, 16)",
)

AVERAGE_POOLING = FunctionSpec(
    name="AveragePooling",
    api="average_pooling",
    topic="pooling",
    doc="Take the mean of the values under a window that moves over the spatial axes.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; the axes before the spatial ones are batch and channels.",
            shape="(N_1, ..., N_k, L_1, ..., L_n)",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc=(
                "Output, O_i = floor((L_i + 2 pad_i - kernel_i) / stride_i) + 1, or ceil((L_i + "
                "pad_i) / stride_i) if borders are not ignored."
            ),
            shape="(N_1, ..., N_k, O_1, ..., O_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="kernel",
            type="ints",
            doc="Lengths of a window on the spatial axes, which are the last ones of x.",
            minimum=1,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring windows on each spatial axis; the kernel by default.",
            default_rule="kernel",
            minimum=1,
        ),
        ArgSpec(
            name="ignore_border",
            type="bool",
            doc=(
                "Leave out windows that reach beyond the padded input; else every window that begins "
                "before the padding at the end counts."
            ),
            default=True,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the border on each spatial axis, less than the kernel; 0 by default.",
            default_rule="kernel_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc="The channels are the last axis of all arrays.",
            default=False,
        ),
        ArgSpec(
            name="including_pad",
            type="bool",
            doc="Count the padding among the elements under a window.",
            default=True,
        ),
    ),
    backward=BackwardSpec(needs=("x",)),
    formula="y[..., o] = sum over r < kernel of x[..., stride o + r - pad] / number of elements under the window",
    notes=(
        "What a window has beyond the padded input is not counted in either case. NNabla pools two or "
        "three spatial axes, this function any number."
    ),
    example="F.average_pooling(nn.Variable((8, 3, 32, 32)), 2).shape  # (8, 3, 16, 16)",
)

GLOBAL_AVERAGE_POOLING = FunctionSpec(
    name="GlobalAveragePooling",
    api="global_average_pooling",
    topic="pooling",
    doc="Take the mean of each channel.",
    inputs=(InputSpec(name="x", doc="Input with at least one spatial axis.", shape="(N, C, L_1, ..., L_n)"),),
    outputs=(OutputSpec(name="y", doc="Means, with as many axes as x.", shape="(N, C, 1, ..., 1)"),),
    formula="y[n, c] = mean of x[n, c, ...]",
    notes="NNabla gives four axes whatever x has.",
    references="Lin, Chen and Yan (2014), Network in network, section 3.2.",
    example="F.global_average_pooling(nn.Variable((8, 3, 32, 32))).shape  # (8, 3, 1, 1)",
)

UNPOOLING = FunctionSpec(
    name="Unpooling",
    api="unpooling",
    topic="pooling",
    doc="Repeat each element along the spatial axes.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; the axes before the spatial ones are batch and channels.",
            shape="(N_1, ..., N_k, L_1, ..., L_n)",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Output.", shape="(N_1, ..., N_k, kernel_1 L_1, ..., kernel_n L_n)"),),
    args=(
        ArgSpec(
            name="kernel",
            type="ints",
            doc="How often an element is repeated on each spatial axis; these are the last ones of x.",
            minimum=1,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc="The channels are the last axis of both arrays.",
            default=False,
        ),
    ),
    tags=("selecting",),
    formula="y[..., i] = x[..., floor(i / kernel)]",
    notes="The gradient is the sum pooling of dy.",
    example="F.unpooling(nn.Variable((8, 3, 16, 16)), 2).shape  # (8, 3, 32, 32)",
)

ROI_ALIGN = FunctionSpec(
    name="RoiAlign",
    api="roi_align",
    topic="pooling",
    doc="Resample boxes of images to one size, without rounding their borders.",
    inputs=(
        InputSpec(name="input", doc="Images, (N, H, W, C) if `channel_last`.", shape="(N, C, H, W)"),
        InputSpec(
            name="boxes",
            doc=(
                "For each box the number of its image, then x and y of the upper left and of the "
                "lower right corner."
            ),
            shape="(K, 5)",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Resampled boxes.", shape="(K, C, height, width)"),),
    args=(
        ArgSpec(name="output_size", type="ints", doc="Height and width of the output.", minimum=1),
        ArgSpec(
            name="spatial_scale",
            type="floats",
            doc="Factors from vertical and horizontal box coordinates to pixels.",
            default=(1.0, 1.0),
        ),
        ArgSpec(
            name="sampling_ratio",
            type="int",
            doc=(
                "Number of samples of a bin on each axis; by default as many as the bin is long in "
                "pixels, rounded up."
            ),
            default=-1,
            shown_as_none=True,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc="The channels are the last axis of input and output.",
            default=False,
            shown_as_none=True,
        ),
    ),
    backward=BackwardSpec(needs=("boxes",)),
    formula="y[k, c, i, j] = mean of bilinear samples of input[b_k, c] in bin (i, j) of box k",
    notes=(
        "Pixel (0, 0) covers box coordinates 0 to 1. A sample up to one pixel outside of the image reads "
        "the edge, one further off zero. The boxes get no gradient."
    ),
    references="He et al. (2017), Mask R-CNN, section 3.",
    example=(
        "images = nn.NdArray.from_numpy_array(np.arange(16.0).reshape(1, 1, 4, 4))\nF.roi_align(images, "
        "nn.NdArray.from_numpy_array([[0, 0, 0, 4, 4]]), (2, 2))  # [[[[2.5, 4.5], [10.5, 12.5]]]]"
    ),
)

ROI_ALIGN_BACKWARD = FunctionSpec(
    name="RoiAlignBackward",
    api="roi_align_backward",
    topic="pooling",
    doc="Add boxes of one size into images, the transpose of `roi_align`.",
    inputs=(
        InputSpec(name="dy", doc="What is added.", shape="(K, C, height, width)"),
        InputSpec(name="boxes", doc="As in `roi_align`.", shape="(K, 5)"),
    ),
    outputs=(OutputSpec(name="dx", doc="Images, zero where no box has a sample.", shape="(N, C, H, W)"),),
    args=(
        ArgSpec(name="input_shape", type="shape", doc="Shape of the images."),
        ArgSpec(name="output_size", type="ints", doc="As in `roi_align`.", minimum=1),
        ArgSpec(name="spatial_scale", type="floats", doc="As in `roi_align`.", default=(1.0, 1.0)),
        ArgSpec(name="sampling_ratio", type="int", doc="As in `roi_align`.", default=-1),
        ArgSpec(name="channel_last", type="bool", doc="As in `roi_align`.", default=False),
    ),
    backward=BackwardSpec(needs=("boxes",)),
    notes="This is the gradient of `roi_align`. The boxes get no gradient.",
    example=(
        "boxes = nn.NdArray.from_numpy_array([[0, 0, 0, 4, 4]])\nF.roi_align_backward(nn.Variable((1, 3, "
        "2, 2)), boxes, (1, 3, 4, 4), (2, 2)).shape  # (1, 3, 4, 4)"
    ),
)

SPECS: tuple[FunctionSpec, ...] = (
    MAX_POOLING,
    MAX_POOLING_BACKWARD,
    MAX_POOLING_GATHER,
    SUM_POOLING,
    AVERAGE_POOLING,
    GLOBAL_AVERAGE_POOLING,
    UNPOOLING,
    ROI_ALIGN,
    ROI_ALIGN_BACKWARD,
)
