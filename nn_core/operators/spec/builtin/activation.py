"""Specifications of the topic activation.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

SIGMOID = FunctionSpec(
    name="Sigmoid", api="sigmoid", topic="activation",
    doc="Squash every element into (0, 1) with the logistic function.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), shape="same_as x", backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"),
)

SWISH = FunctionSpec(
    name="Swish", api="swish", topic="activation", doc="Weight every element with its sigmoid.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

TANH = FunctionSpec(
    name="Tanh", api="tanh", topic="activation", doc="Squash every element into (-1, 1) with the hyperbolic tangent.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("y",)), tags=("pointwise", "inplace_ok"),
)

RELU = FunctionSpec(
    name="ReLU", api="relu", topic="activation", doc="Set negative elements to 0 (rectified linear unit).",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="inplace", type="bool", default=False),), shape="same_as x", backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"),
)

LEAKY_RELU = FunctionSpec(
    name="LeakyReLU", api="leaky_relu", topic="activation", doc="Scale negative elements down.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="alpha", type="float", default=0.1), ArgSpec(name="inplace", type="bool", default=False)),
    shape="same_as x", backward=BackwardSpec(needs=("y",), needs_if_negative=(("alpha", ("x",)),)),
    tags=("pointwise", "inplace_ok"),
)

SOFTMAX = FunctionSpec(
    name="Softmax", api="softmax", topic="activation", doc="Turn scores along an axis into probabilities.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="axis", type="axis", default_rule="last_axis"),), shape="same_as x",
    backward=BackwardSpec(needs=("y",)),
)

LOG_SOFTMAX = FunctionSpec(
    name="LogSoftmax", api="log_softmax", topic="activation",
    doc="Turn scores along an axis into logarithms of probabilities.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), args=(ArgSpec(name="axis", type="axis", default_rule="last_axis"),),
    shape="same_as x", backward=BackwardSpec(needs=("y",)),
)

ELU = FunctionSpec(
    name="ELU", api="elu", topic="activation", doc="Bend negative elements towards -alpha (exponential linear unit).",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="alpha", type="float", default=1.0),), shape="same_as x", backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
)

SELU = FunctionSpec(
    name="SELU", api="selu", topic="activation",
    doc="Apply the exponential linear unit whose scale keeps mean 0 and variance 1 through layers.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="scale", type="float", default=1.05070098735548),
        ArgSpec(name="alpha", type="float", default=1.673263242354377),
    ),
    shape="same_as x", backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

CRELU = FunctionSpec(
    name="CReLU", api="crelu", topic="activation",
    doc="Rectify the input and its negative and join both along an axis.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), args=(ArgSpec(name="axis", type="axis", default=1),),
    backward=BackwardSpec(needs=("x",)), tags=("selecting",),
)

CELU = FunctionSpec(
    name="CELU", api="celu", topic="activation",
    doc="Apply the exponential linear unit to the input and its negative and join both along an axis.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="alpha", type="float", default=1.0), ArgSpec(name="axis", type="axis", default=1)),
    backward=BackwardSpec(needs=("x",)),
)

PRELU = FunctionSpec(
    name="PReLU", api="prelu", topic="activation", doc="Scale negative elements by learned slopes.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1", dtype="parameter", parameter=True)),
    outputs=(OutputSpec(name="y"),), args=(ArgSpec(name="base_axis", type="axis", default=1),),
    backward=BackwardSpec(needs=("x0", "x1")),
)

GELU = FunctionSpec(
    name="GELU", api="gelu", topic="activation",
    doc="Weight every element with the normal distribution function, in its tanh approximation.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

MISH = FunctionSpec(
    name="Mish", api="mish", topic="activation",
    doc="Weight every element with the hyperbolic tangent of its softplus.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), shape="same_as x", backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

RELU6 = FunctionSpec(
    name="ReLU6", api="relu6", topic="activation", doc="Limit every element to [0, 6].", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), shape="same_as x", backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"),
)

HARD_SIGMOID = FunctionSpec(
    name="HardSigmoid", api="hard_sigmoid", topic="activation", doc="Approximate the sigmoid by three straight lines.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

HARD_TANH = FunctionSpec(
    name="HardTanh", api="hard_tanh", topic="activation", doc="Limit every element to [-1, 1].",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

LOG_SIGMOID = FunctionSpec(
    name="LogSigmoid", api="log_sigmoid", topic="activation",
    doc="Take the logarithm of the sigmoid without forming the sigmoid.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), shape="same_as x", backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

SOFTPLUS = FunctionSpec(
    name="SoftPlus", api="softplus", topic="activation", doc="Rectify smoothly.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), args=(ArgSpec(name="beta", type="float", default=1.0),),
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

SOFTSIGN = FunctionSpec(
    name="SoftSign", api="softsign", topic="activation",
    doc="Squash every element into (-1, 1) with a rational function.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), shape="same_as x", backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

TANH_SHRINK = FunctionSpec(
    name="TanhShrink", api="tanh_shrink", topic="activation", doc="Subtract its hyperbolic tangent from every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

SINC = FunctionSpec(
    name="Sinc", api="sinc", topic="activation", doc="Apply the unnormalised sinc function.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

SPECS: tuple[FunctionSpec, ...] = (
    SIGMOID, SWISH, TANH, RELU, LEAKY_RELU, SOFTMAX, LOG_SOFTMAX, ELU, SELU, CRELU, CELU, PRELU, GELU, MISH, RELU6,
    HARD_SIGMOID, HARD_TANH, LOG_SIGMOID, SOFTPLUS, SOFTSIGN, TANH_SHRINK, SINC,
)
