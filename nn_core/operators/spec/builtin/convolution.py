"""Specifications of the topic convolution.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

CONVOLUTION = FunctionSpec(
    name="Convolution", api="convolution", topic="convolution",
    doc="Convolve with a set of filters over any number of spatial axes (cross-correlation).",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="pad", type="ints", default_rule="spatial_zeros", minimum=0),
        ArgSpec(name="stride", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="dilation", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="group", type="int", default=1, minimum=1),
        ArgSpec(name="channel_last", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
)

DEPTHWISE_CONVOLUTION = FunctionSpec(
    name="DepthwiseConvolution", api="depthwise_convolution", topic="convolution",
    doc="Convolve each channel with filters of its own.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="pad", type="ints", default_rule="spatial_zeros", minimum=0),
        ArgSpec(name="stride", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="dilation", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="multiplier", type="int", default=1, minimum=1),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
)

DECONVOLUTION = FunctionSpec(
    name="Deconvolution", api="deconvolution", topic="convolution",
    doc="Convolve backwards, the transpose of `convolution` (also called transposed convolution).",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="pad", type="ints", default_rule="spatial_zeros", minimum=0),
        ArgSpec(name="stride", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="dilation", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="group", type="int", default=1, minimum=1),
        ArgSpec(name="channel_last", type="bool", default=False),
        ArgSpec(name="output_padding", type="ints", default_rule="spatial_zeros", minimum=0),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
)

DEPTHWISE_DECONVOLUTION = FunctionSpec(
    name="DepthwiseDeconvolution", api="depthwise_deconvolution", topic="convolution",
    doc="Convolve each channel backwards with a filter of its own, and sum neighbouring channels.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="pad", type="ints", default_rule="spatial_zeros", minimum=0),
        ArgSpec(name="stride", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="dilation", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="divisor", type="int", default=1, minimum=1),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
)

FUSED_CONVOLUTION = FunctionSpec(
    name="FusedConvolution", api="fused_convolution", topic="convolution",
    doc="Padding, convolution, batch normalization, an addition and a nonlinearity in one function.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="beta", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="gamma", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="mean", dtype="statistic", optional=True),
        InputSpec(name="variance", dtype="statistic", optional=True), InputSpec(name="z", optional=True),
    ),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="batch_mean", dtype="statistic", aux=True),
        OutputSpec(name="batch_variance", dtype="statistic", aux=True),
    ),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="pad", type="ints", default_rule="spatial_zeros", minimum=0),
        ArgSpec(name="stride", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="dilation", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="group", type="int", default=1, minimum=1),
        ArgSpec(name="channel_last", type="bool", default=False),
        ArgSpec(name="decay_rate", type="float", default=0.9, minimum=0, maximum=1),
        ArgSpec(name="eps", type="float", default=1e-05, minimum=0),
        ArgSpec(name="batch_stat", type="bool", default=True),
        ArgSpec(
            name="nonlinearity", type="str", default="relu",
            choices=("identity", "relu", "sigmoid", "tanh", "leaky_relu", "elu", "relu6"),
        ),
        ArgSpec(name="nonlinearity_args", type="floats", default=()),
        ArgSpec(name="pad_mode", type="str", default="constant", choices=("constant", "reflect", "repeat")),
        ArgSpec(name="constant_value", type="float", default=0.0),
    ),
    backward=BackwardSpec(
        needs=("x", "weight", "bias", "gamma", "mean", "variance", "y", "batch_mean", "batch_variance"),
    ),
    updates=("mean", "variance"),
)

DEFORMABLE_CONVOLUTION = FunctionSpec(
    name="DeformableConvolution", api="deformable_convolution", topic="convolution",
    doc="Convolve images with filters whose elements are displaced by learned offsets.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="offset"), InputSpec(name="mask", optional=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="pad", type="ints", default_rule="spatial_zeros", minimum=0),
        ArgSpec(name="stride", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="dilation", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="group", type="int", default=1, minimum=1),
        ArgSpec(name="deformable_group", type="int", default=1, minimum=1),
        ArgSpec(name="channel_last", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x", "weight", "offset", "mask")),
)

ADAPTIVE_SEPARABLE_CONVOLUTION = FunctionSpec(
    name="AdaptiveSeparableConvolution", api="adaptive_separable_convolution", topic="convolution",
    doc="Convolve each pixel with its own kernel, the product of a column and a row of weights.",
    inputs=(InputSpec(name="x"), InputSpec(name="vertical_kernel"), InputSpec(name="horizontal_kernel")),
    outputs=(OutputSpec(name="y"),), backward=BackwardSpec(needs=("x", "vertical_kernel", "horizontal_kernel")),
)

SPECS: tuple[FunctionSpec, ...] = (
    CONVOLUTION, DEPTHWISE_CONVOLUTION, DECONVOLUTION, DEPTHWISE_DECONVOLUTION, FUSED_CONVOLUTION,
    DEFORMABLE_CONVOLUTION, ADAPTIVE_SEPARABLE_CONVOLUTION,
)
