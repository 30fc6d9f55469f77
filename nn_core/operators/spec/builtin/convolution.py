"""Specifications of the topic convolution.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

CONVOLUTION = FunctionSpec(
    name="Convolution",
    api="convolution",
    topic="convolution",
    doc="Convolve with a set of filters over any number of spatial axes (cross-correlation).",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; N stands for the axes before `base_axis`.",
            shape="(N, C, L_1, ..., L_n)",
        ),
        InputSpec(
            name="weight",
            doc="Filters.",
            shape="(K, C / group, R_1, ..., R_n)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias of each output channel.",
            shape="(K)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Output, O_i = floor((L_i + 2 pad_i - dilation_i (R_i - 1) - 1) / stride_i) + 1.",
            shape="(N, K, O_1, ..., O_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc=(
                "Axis of the channels (of the first spatial axis, if `channel_last`); the axes "
                "before it are the batch."
            ),
            default=1,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the zero border on each spatial axis; 0 by default.",
            default_rule="spatial_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring places of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="dilation",
            type="ints",
            doc="Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="group",
            type="int",
            doc="Number of groups: C / group input channels feed K / group output channels each.",
            default=1,
            minimum=1,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc=(
                "The channels are the last axis of x, weight and y: (N, L_1, ..., L_n, C), (K, R_1, "
                "..., R_n, C / group)."
            ),
            default=False,
        ),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
    formula="y[n, k, o] = b[k] + sum over c, r of w[k, c, r] x[n, c, stride o + dilation r - pad]",
    notes=(
        "Products are summed in float32 or wider. A batch of size zero gives an empty output and zero "
        "gradients of the parameters."
    ),
    references=(
        "Dumoulin and Visin (2016), A guide to convolution arithmetic for deep learning; Yu and "
        "Koltun (2016) for dilation; Krizhevsky et al. (2012) for groups."
    ),
    example="F.convolution(nn.Variable((8, 3, 32, 32)), nn.Variable((16, 3, 3, 3)), pad=1).shape  # (8, 16, 32, 32)",
)

DEPTHWISE_CONVOLUTION = FunctionSpec(
    name="DepthwiseConvolution",
    api="depthwise_convolution",
    topic="convolution",
    doc="Convolve each channel with filters of its own.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; N stands for the axes before `base_axis`.",
            shape="(N, C, L_1, ..., L_n)",
        ),
        InputSpec(
            name="weight",
            doc="Filters, those of one channel next to each other.",
            shape="(C * multiplier, R_1, ..., R_n)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias of each output channel.",
            shape="(C * multiplier)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Output, O_i = floor((L_i + 2 pad_i - dilation_i (R_i - 1) - 1) / stride_i) + 1.",
            shape="(N, C * multiplier, O_1, ..., O_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc="Axis of the channels; the axes before it are the batch.",
            default=1,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the zero border on each spatial axis; 0 by default.",
            default_rule="spatial_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring places of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="dilation",
            type="ints",
            doc="Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="multiplier",
            type="int",
            doc="Number of output channels for each input channel.",
            default=1,
            minimum=1,
        ),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
    formula=(
        "y[n, m c + j, o] = b[m c + j] + sum over r of w[m c + j, r] x[n, c, stride o + dilation r - "
        "pad], with m the multiplier"
    ),
    notes="The same as `convolution` with group = C. NNabla takes one or two spatial axes, this function any number.",
    references="Chollet (2017), Xception, section 2.",
    example=(
        "F.depthwise_convolution(nn.Variable((8, 3, 32, 32)), nn.Variable((3, 3, 3)), pad=1).shape  # "
        "(8, 3, 32, 32)"
    ),
)

DECONVOLUTION = FunctionSpec(
    name="Deconvolution",
    api="deconvolution",
    topic="convolution",
    doc="Convolve backwards, the transpose of `convolution` (also called transposed convolution).",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; N stands for the axes before `base_axis`.",
            shape="(N, C, L_1, ..., L_n)",
        ),
        InputSpec(
            name="weight",
            doc="Filters, laid out as those of the convolution that is transposed.",
            shape="(C, K / group, R_1, ..., R_n)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias of each output channel.",
            shape="(K)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Output, O_i = stride_i (L_i - 1) + dilation_i (R_i - 1) + 1 - 2 pad_i + output_padding_i.",
            shape="(N, K, O_1, ..., O_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc=(
                "Axis of the channels (of the first spatial axis, if `channel_last`); the axes "
                "before it are the batch."
            ),
            default=1,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Number of elements to cut off at both ends of each spatial axis of the output; 0 by default.",
            default_rule="spatial_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc=(
                "Distance in the output between the places of neighbouring elements of x on each "
                "spatial axis; 1 by default."
            ),
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="dilation",
            type="ints",
            doc="Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="group",
            type="int",
            doc="Number of groups: C / group input channels feed K / group output channels each.",
            default=1,
            minimum=1,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc=(
                "The channels are the last axis of x, weight and y: (N, L_1, ..., L_n, C), (C, R_1, "
                "..., R_n, K / group)."
            ),
            default=False,
        ),
        ArgSpec(
            name="output_padding",
            type="ints",
            doc=(
                "How much longer the end of each spatial axis of the output is made; less than "
                "stride or dilation; 0 by default."
            ),
            default_rule="spatial_zeros",
            minimum=0,
        ),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
    formula="y[n, k, stride o + dilation r - pad] = b[k] + sum over c, o, r of w[c, k, r] x[n, c, o]",
    notes=(
        "Products are summed in float32 or wider. `output_padding` chooses among the lengths that a "
        "convolution with this stride maps to the same one."
    ),
    references="Dumoulin and Visin (2016), A guide to convolution arithmetic for deep learning, section 4.",
    example="F.deconvolution(nn.Variable((8, 16, 8, 8)), nn.Variable((16, 3, 2, 2)), stride=2).shape  # (8, 3, 16, 16)",
)

DEPTHWISE_DECONVOLUTION = FunctionSpec(
    name="DepthwiseDeconvolution",
    api="depthwise_deconvolution",
    topic="convolution",
    doc="Convolve each channel backwards with a filter of its own, and sum neighbouring channels.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; N stands for the axes before `base_axis`.",
            shape="(N, C, L_1, ..., L_n)",
        ),
        InputSpec(
            name="weight",
            doc="Filters.",
            shape="(C, R_1, ..., R_n)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias of each output channel.",
            shape="(C / divisor)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Output, O_i = stride_i (L_i - 1) + dilation_i (R_i - 1) + 1 - 2 pad_i.",
            shape="(N, C / divisor, O_1, ..., O_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc="Axis of the channels; the axes before it are the batch.",
            default=1,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Number of elements to cut off at both ends of each spatial axis of the output; 0 by default.",
            default_rule="spatial_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc=(
                "Distance in the output between the places of neighbouring elements of x on each "
                "spatial axis; 1 by default."
            ),
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="dilation",
            type="ints",
            doc="Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="divisor",
            type="int",
            doc="Number of input channels that one output channel sums.",
            default=1,
            minimum=1,
        ),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
    formula=(
        "y[n, k, stride o + dilation r - pad] = b[k] + sum over j < divisor, o, r of w[divisor k + j, r] "
        "x[n, divisor k + j, o]"
    ),
    notes="The same as `deconvolution` with group = C / divisor, and the transpose of `depthwise_convolution`.",
    references="Dumoulin and Visin (2016), A guide to convolution arithmetic for deep learning, section 4.",
    example=(
        "F.depthwise_deconvolution(nn.Variable((8, 3, 8, 8)), nn.Variable((3, 2, 2)), stride=2).shape  # "
        "(8, 3, 16, 16)"
    ),
)

FUSED_CONVOLUTION = FunctionSpec(
    name="FusedConvolution",
    api="fused_convolution",
    topic="convolution",
    doc="Padding, convolution, batch normalization, an addition and a nonlinearity in one function.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; N stands for the axes before `base_axis`.",
            shape="(N, C, L_1, ..., L_n)",
        ),
        InputSpec(
            name="weight",
            doc="Filters.",
            shape="(K, C / group, R_1, ..., R_n)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias of each output channel.",
            shape="(K)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="beta",
            doc="Shift of the normalization.",
            shape="(1, K, 1, ..., 1)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="gamma",
            doc="Scale of the normalization.",
            shape="(1, K, 1, ..., 1)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="mean",
            doc="Running mean: rewritten if `batch_stat`, else used.",
            shape="(1, K, 1, ..., 1)",
            dtype="statistic",
            optional=True,
        ),
        InputSpec(
            name="variance",
            doc="Running variance: rewritten if `batch_stat`, else used.",
            shape="(1, K, 1, ..., 1)",
            dtype="statistic",
            optional=True,
        ),
        InputSpec(
            name="z",
            doc="Added before the nonlinearity.",
            shape="(N, K, O_1, ..., O_n)",
            optional=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Output, O_i as in `convolution`.", shape="(N, K, O_1, ..., O_n)"),
        OutputSpec(
            name="batch_mean",
            doc="Mean that was subtracted; zeros without normalization.",
            shape="(1, K, 1, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
        OutputSpec(
            name="batch_variance",
            doc="Variance that was divided by; zeros without normalization.",
            shape="(1, K, 1, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc=(
                "Axis of the channels (of the first spatial axis, if `channel_last`); the axes "
                "before it are the batch."
            ),
            default=1,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the border on each spatial axis; 0 by default.",
            default_rule="spatial_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring places of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="dilation",
            type="ints",
            doc="Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(name="group", type="int", doc="Number of groups, as in `convolution`.", default=1, minimum=1),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc=(
                "The channels are the last axis of x, weight and y: (N, L_1, ..., L_n, C), (K, R_1, "
                "..., R_n, C / group)."
            ),
            default=False,
        ),
        ArgSpec(
            name="decay_rate",
            type="float",
            doc="How much of the running statistics a step keeps.",
            default=0.9,
            minimum=0,
            maximum=1,
        ),
        ArgSpec(name="eps", type="float", doc="Added to the variance.", default=1e-05, minimum=0),
        ArgSpec(
            name="batch_stat",
            type="bool",
            doc="Normalize by the statistics of this batch (training), not by the running ones.",
            default=True,
        ),
        ArgSpec(
            name="nonlinearity",
            type="str",
            doc="Function that is applied last.",
            default="relu",
            choices=("identity", "relu", "sigmoid", "tanh", "leaky_relu", "elu", "relu6"),
        ),
        ArgSpec(
            name="nonlinearity_args",
            type="floats",
            doc="Arguments of the nonlinearity: alpha of leaky_relu and of elu.",
            default=(),
        ),
        ArgSpec(
            name="pad_mode",
            type="str",
            doc="Kind of border, as in `pad`.",
            default="constant",
            choices=("constant", "reflect", "repeat"),
        ),
        ArgSpec(name="constant_value", type="float", doc="Value of a constant border.", default=0.0),
    ),
    backward=BackwardSpec(
        needs=("x", "weight", "bias", "gamma", "mean", "variance", "y", "batch_mean", "batch_variance"),
    ),
    updates=("mean", "variance"),
    formula="y = f(batch_normalization(convolution(pad(x), w) + b) + z)",
    notes=(
        "Batch normalization takes place if one of beta, gamma, mean and variance is given. NNabla refuses "
        "a bias beside it, this function does not."
    ),
    references="Ioffe and Szegedy (2015), Batch normalization, section 3.2.",
    example=(
        "F.fused_convolution(nn.Variable((8, 3, 32, 32)), nn.Variable((16, 3, 3, 3)), pad=1).shape  # "
        "(8, 16, 32, 32)"
    ),
)

DEFORMABLE_CONVOLUTION = FunctionSpec(
    name="DeformableConvolution",
    api="deformable_convolution",
    topic="convolution",
    doc="Convolve images with filters whose elements are displaced by learned offsets.",
    inputs=(
        InputSpec(
            name="x",
            doc=(
                "Images; N stands for the axes before `base_axis`. Between pixels they are "
                "interpolated bilinearly, outside they are zero."
            ),
            shape="(N, C, H, W)",
        ),
        InputSpec(
            name="weight",
            doc="Filters.",
            shape="(K, C / group, R_1, R_2)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="offset",
            doc=(
                "Displacement of each element of the kernel at each pixel of x, vertical and "
                "horizontal one after the other."
            ),
            shape="(N, 2 * deformable_group * R_1 * R_2, H, W)",
        ),
        InputSpec(
            name="mask",
            doc="Factor of each element of the kernel at each pixel of x; 1 if not given.",
            shape="(N, deformable_group * R_1 * R_2, H, W)",
            optional=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias of each output channel.",
            shape="(K)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Output, O_i as in `convolution`.", shape="(N, K, O_1, O_2)"),),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc=(
                "Axis of the channels (of the first spatial axis, if `channel_last`); the axes "
                "before it are the batch."
            ),
            default=1,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the zero border on each spatial axis; 0 by default.",
            default_rule="spatial_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring places of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="dilation",
            type="ints",
            doc="Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(name="group", type="int", doc="Number of groups, as in `convolution`.", default=1, minimum=1),
        ArgSpec(
            name="deformable_group",
            type="int",
            doc="Number of groups of input channels with offsets of their own.",
            default=1,
            minimum=1,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc="The channels are the last axis of all arrays but bias.",
            default=False,
        ),
    ),
    backward=BackwardSpec(needs=("x", "weight", "offset", "mask")),
    formula=(
        "y[n, k, o] = b[k] + sum over c, r of w[k, c, r] mask[n, r, stride o] x[n, c, stride o + "
        "dilation r - pad + offset[n, r, stride o]]"
    ),
    notes=(
        "Offsets and masks have the resolution of x and are read at stride * o. Where a displaced position "
        "meets a pixel exactly, the gradient is that towards the next pixel."
    ),
    references=(
        "Dai et al. (2017), Deformable convolutional networks, section 2.1; Zhu et al. (2019), "
        "Deformable ConvNets v2, section 3.2."
    ),
    example=(
        "F.deformable_convolution(nn.Variable((8, 3, 8, 8)), nn.Variable((4, 3, 3, 3)), nn.Variable((8, "
        "18, 8, 8)), pad=1).shape  # (8, 4, 8, 8)"
    ),
)

ADAPTIVE_SEPARABLE_CONVOLUTION = FunctionSpec(
    name="AdaptiveSeparableConvolution",
    api="adaptive_separable_convolution",
    topic="convolution",
    doc="Convolve each pixel with its own kernel, the product of a column and a row of weights.",
    inputs=(
        InputSpec(name="x", doc="Images.", shape="(N, C, H, W)"),
        InputSpec(
            name="vertical_kernel",
            doc=(
                "Column of weights of each output pixel, H - U + 1 <= H' <= H, of which the first "
                "H - U + 1 rows are used."
            ),
            shape="(N, U, H', W')",
        ),
        InputSpec(
            name="horizontal_kernel",
            doc=(
                "Row of weights of each output pixel, W - V + 1 <= W' <= W, of which the first W - "
                "V + 1 columns are used."
            ),
            shape="(N, V, H', W')",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Filtered images.", shape="(N, C, H - U + 1, W - V + 1)"),),
    backward=BackwardSpec(needs=("x", "vertical_kernel", "horizontal_kernel")),
    formula="y[n, c, i, j] = sum over u, v of vertical[n, u, i, j] horizontal[n, v, i, j] x[n, c, i + u, j + v]",
    references="Niklaus, Mai and Liu (2017), Video frame interpolation via adaptive separable convolution, section 3.",
    example=(
        "F.adaptive_separable_convolution(nn.Variable((1, 3, 10, 10)), nn.Variable((1, 3, 8, 8)), "
        "nn.Variable((1, 3, 8, 8))).shape  # (1, 3, 8, 8)"
    ),
)

SPECS: tuple[FunctionSpec, ...] = (
    CONVOLUTION,
    DEPTHWISE_CONVOLUTION,
    DECONVOLUTION,
    DEPTHWISE_DECONVOLUTION,
    FUSED_CONVOLUTION,
    DEFORMABLE_CONVOLUTION,
    ADAPTIVE_SEPARABLE_CONVOLUTION,
)
