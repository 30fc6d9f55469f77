"""Specifications of the topic pooling.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

MAX_POOLING = FunctionSpec(
    name="MaxPooling", api="max_pooling", topic="pooling",
    doc="Take the largest value under a window that moves over the spatial axes.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="kernel", type="ints", minimum=1),
        ArgSpec(name="stride", type="ints", default_rule="kernel", minimum=1),
        ArgSpec(name="ignore_border", type="bool", default=True),
        ArgSpec(name="pad", type="ints", default_rule="kernel_zeros", minimum=0),
        ArgSpec(name="channel_last", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x",)), tags=("selecting",),
)

MAX_POOLING_BACKWARD = FunctionSpec(
    name="MaxPoolingBackward", api="max_pooling_backward", topic="pooling",
    doc="Put values to the places where max pooling finds its maxima, the transpose of `max_pooling_gather`.",
    inputs=(InputSpec(name="dy"), InputSpec(name="x")), outputs=(OutputSpec(name="dx"),),
    args=(
        ArgSpec(name="kernel", type="ints", minimum=1),
        ArgSpec(name="stride", type="ints", default_rule="kernel", minimum=1),
        ArgSpec(name="ignore_border", type="bool", default=True),
        ArgSpec(name="pad", type="ints", default_rule="kernel_zeros", minimum=0),
        ArgSpec(name="channel_last", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x",)),
)

MAX_POOLING_GATHER = FunctionSpec(
    name="MaxPoolingGather", api="max_pooling_gather", topic="pooling",
    doc="Take the elements of an array from the places where the max pooling of another finds its maxima.",
    inputs=(InputSpec(name="values"), InputSpec(name="x")), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="kernel", type="ints", minimum=1),
        ArgSpec(name="stride", type="ints", default_rule="kernel", minimum=1),
        ArgSpec(name="ignore_border", type="bool", default=True),
        ArgSpec(name="pad", type="ints", default_rule="kernel_zeros", minimum=0),
        ArgSpec(name="channel_last", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x",)),
)

SUM_POOLING = FunctionSpec(
    name="SumPooling", api="sum_pooling", topic="pooling",
    doc="Add up the values under a window that moves over the spatial axes.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="kernel", type="ints", minimum=1),
        ArgSpec(name="stride", type="ints", default_rule="kernel", minimum=1),
        ArgSpec(name="ignore_border", type="bool", default=True),
        ArgSpec(name="pad", type="ints", default_rule="kernel_zeros", minimum=0),
        ArgSpec(name="channel_last", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x",)),
)

AVERAGE_POOLING = FunctionSpec(
    name="AveragePooling", api="average_pooling", topic="pooling",
    doc="Take the mean of the values under a window that moves over the spatial axes.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="kernel", type="ints", minimum=1),
        ArgSpec(name="stride", type="ints", default_rule="kernel", minimum=1),
        ArgSpec(name="ignore_border", type="bool", default=True),
        ArgSpec(name="pad", type="ints", default_rule="kernel_zeros", minimum=0),
        ArgSpec(name="channel_last", type="bool", default=False),
        ArgSpec(name="including_pad", type="bool", default=True),
    ),
    backward=BackwardSpec(needs=("x",)),
)

GLOBAL_AVERAGE_POOLING = FunctionSpec(
    name="GlobalAveragePooling", api="global_average_pooling", topic="pooling", doc="Take the mean of each channel.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
)

UNPOOLING = FunctionSpec(
    name="Unpooling", api="unpooling", topic="pooling", doc="Repeat each element along the spatial axes.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="kernel", type="ints", minimum=1), ArgSpec(name="channel_last", type="bool", default=False)),
    tags=("selecting",),
)

ROI_ALIGN = FunctionSpec(
    name="RoiAlign", api="roi_align", topic="pooling",
    doc="Resample boxes of images to one size, without rounding their borders.",
    inputs=(InputSpec(name="input"), InputSpec(name="boxes")), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="output_size", type="ints", minimum=1),
        ArgSpec(name="spatial_scale", type="floats", default=(1.0, 1.0)),
        ArgSpec(name="sampling_ratio", type="int", default=-1, shown_as_none=True),
        ArgSpec(name="channel_last", type="bool", default=False, shown_as_none=True),
    ),
    backward=BackwardSpec(needs=("boxes",)),
)

ROI_ALIGN_BACKWARD = FunctionSpec(
    name="RoiAlignBackward", api="roi_align_backward", topic="pooling",
    doc="Add boxes of one size into images, the transpose of `roi_align`.",
    inputs=(InputSpec(name="dy"), InputSpec(name="boxes")), outputs=(OutputSpec(name="dx"),),
    args=(
        ArgSpec(name="input_shape", type="shape"), ArgSpec(name="output_size", type="ints", minimum=1),
        ArgSpec(name="spatial_scale", type="floats", default=(1.0, 1.0)),
        ArgSpec(name="sampling_ratio", type="int", default=-1),
        ArgSpec(name="channel_last", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("boxes",)),
)

SPECS: tuple[FunctionSpec, ...] = (
    MAX_POOLING, MAX_POOLING_BACKWARD, MAX_POOLING_GATHER, SUM_POOLING, AVERAGE_POOLING, GLOBAL_AVERAGE_POOLING,
    UNPOOLING, ROI_ALIGN, ROI_ALIGN_BACKWARD,
)
