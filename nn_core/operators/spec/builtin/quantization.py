"""Specifications of the topic quantization.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

BINARY_SIGMOID = FunctionSpec(
    name="BinarySigmoid", api="binary_sigmoid", topic="quantization",
    doc="Map positive elements to 1 and all others to 0, with a gradient that lets the input be trained.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise", "inplace_ok", "discontinuous"), domain=(-2.0, 2.0),
)

BINARY_TANH = FunctionSpec(
    name="BinaryTanh", api="binary_tanh", topic="quantization",
    doc="Map positive elements to 1 and all others to -1, with a gradient that lets the input be trained.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise", "inplace_ok", "discontinuous"), domain=(-2.0, 2.0),
)

BINARY_CONNECT_AFFINE = FunctionSpec(
    name="BinaryConnectAffine", api="binary_connect_affine", topic="quantization",
    doc="Apply an affine layer whose weights are the signs of trained weights.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="binary_weight", dtype="parameter", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="quantize_zero_to", type="float", default=1.0),
    ),
    backward=BackwardSpec(needs=("x", "weight")), updates=("binary_weight",),
)

BINARY_CONNECT_CONVOLUTION = FunctionSpec(
    name="BinaryConnectConvolution", api="binary_connect_convolution", topic="quantization",
    doc="Convolve with filters that are the signs of trained filters.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="binary_weight", dtype="parameter", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="pad", type="ints", default_rule="spatial_zeros", minimum=0),
        ArgSpec(name="stride", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="dilation", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="group", type="int", default=1, minimum=1),
        ArgSpec(name="quantize_zero_to", type="float", default=1.0),
    ),
    backward=BackwardSpec(needs=("x", "weight")), updates=("binary_weight",),
)

BINARY_WEIGHT_AFFINE = FunctionSpec(
    name="BinaryWeightAffine", api="binary_weight_affine", topic="quantization",
    doc="Apply an affine layer whose weights are the signs of trained weights, scaled by their mean magnitude.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="binary_weight", dtype="parameter", parameter=True),
        InputSpec(name="alpha", dtype="parameter", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="quantize_zero_to", type="float", default=1.0),
    ),
    backward=BackwardSpec(needs=("x", "weight")), updates=("binary_weight", "alpha"),
)

BINARY_WEIGHT_CONVOLUTION = FunctionSpec(
    name="BinaryWeightConvolution", api="binary_weight_convolution", topic="quantization",
    doc="Convolve with the signs of trained filters, scaled by the mean magnitude of each filter.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="binary_weight", dtype="parameter", parameter=True),
        InputSpec(name="alpha", dtype="parameter", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="pad", type="ints", default_rule="spatial_zeros", minimum=0),
        ArgSpec(name="stride", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="dilation", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="group", type="int", default=1, minimum=1),
        ArgSpec(name="quantize_zero_to", type="float", default=1.0),
    ),
    backward=BackwardSpec(needs=("x", "weight")), updates=("binary_weight", "alpha"),
)

INQ_AFFINE = FunctionSpec(
    name="INQAffine", api="inq_affine", topic="quantization",
    doc="Apply an affine layer whose weights are fixed to powers of two, step by step while the others are trained.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="indicator_fixedweights", dtype="same", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="num_bits", type="int", default=4, minimum=2, maximum=64),
        ArgSpec(name="inq_iterations", type="ints", default=(), minimum=0),
        ArgSpec(
            name="selection_algorithm", type="str", default="largest_abs", choices=("largest_abs", "random"),
        ),
        ArgSpec(name="seed", type="int", default=-1, minimum=-1),
    ),
    backward=BackwardSpec(needs=("x", "weight", "indicator_fixedweights")), tags=("seeded",),
    updates=("weight", "indicator_fixedweights"),
)

INQ_CONVOLUTION = FunctionSpec(
    name="INQConvolution", api="inq_convolution", topic="quantization",
    doc="Convolve with filters that are fixed to powers of two, step by step while the others are trained.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="indicator_fixedweights", dtype="same", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="pad", type="ints", default_rule="spatial_zeros", minimum=0),
        ArgSpec(name="stride", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="dilation", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="group", type="int", default=1, minimum=1),
        ArgSpec(name="num_bits", type="int", default=4, minimum=2, maximum=64),
        ArgSpec(name="inq_iterations", type="ints", default=(), minimum=0),
        ArgSpec(
            name="selection_algorithm", type="str", default="largest_abs", choices=("largest_abs", "random"),
        ),
        ArgSpec(name="seed", type="int", default=-1, minimum=-1),
    ),
    backward=BackwardSpec(needs=("x", "weight", "indicator_fixedweights")), tags=("seeded",),
    updates=("weight", "indicator_fixedweights"),
)

FIXED_POINT_QUANTIZE = FunctionSpec(
    name="FixedPointQuantize", api="fixed_point_quantize", topic="quantization",
    doc="Round to the levels of a fixed-point number.", inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="sign", type="bool", default=True),
        ArgSpec(name="n", type="int", default=8, minimum=1, maximum=64),
        ArgSpec(name="delta", type="float", default=0.0625),
        ArgSpec(name="ste_fine_grained", type="bool", default=True),
    ),
    backward=BackwardSpec(needs=("x",)), tags=("pointwise", "inplace_ok", "discontinuous"),
)

POW2_QUANTIZE = FunctionSpec(
    name="Pow2Quantize", api="pow2_quantize", topic="quantization", doc="Round to powers of two.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="sign", type="bool", default=True), ArgSpec(name="with_zero", type="bool", default=True),
        ArgSpec(name="n", type="int", default=8, minimum=1, maximum=64),
        ArgSpec(name="m", type="int", default=1, maximum=127),
        ArgSpec(name="ste_fine_grained", type="bool", default=True),
    ),
    backward=BackwardSpec(needs=("x",)), tags=("pointwise", "inplace_ok", "discontinuous"),
)

MIN_MAX_QUANTIZE = FunctionSpec(
    name="MinMaxQuantize", api="min_max_quantize", topic="quantization",
    doc="Round to evenly spaced levels between a minimum and a maximum that may follow the data.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="qr_min", dtype="parameter"),
        InputSpec(name="qr_max", dtype="parameter"), InputSpec(name="ql_min"), InputSpec(name="ql_max"),
    ),
    outputs=(OutputSpec(name="y"), OutputSpec(name="range_min", aux=True), OutputSpec(name="range_max", aux=True)),
    args=(
        ArgSpec(name="decay", type="float", default=0.999, minimum=0, maximum=1),
        ArgSpec(name="x_min_max", type="bool", default=False), ArgSpec(name="ema", type="bool", default=False),
        ArgSpec(name="ste_fine_grained", type="bool", default=True),
        ArgSpec(name="eps", type="float", default=0.01, minimum=0),
    ),
    backward=BackwardSpec(needs=("x", "range_min", "range_max")), tags=("discontinuous",), updates=("qr_min", "qr_max"),
)

PRUNE = FunctionSpec(
    name="Prune", api="prune", topic="quantization", doc="Set the elements of smallest magnitude to zero.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="rate", type="float", default=0.9, minimum=0, maximum=1),), shape="same_as x",
)

QUANTIZE_LINEAR = FunctionSpec(
    name="QuantizeLinear", api="quantize_linear", topic="quantization",
    doc="Quantize to 8-bit integers with a scale and a zero point.",
    inputs=(InputSpec(name="x"), InputSpec(name="scale"), InputSpec(name="zero_point", dtype="parameter")),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(
            name="round_mode", type="str", default="HALF_AWAY_FROM_ZERO",
            choices=("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"),
        ),
        ArgSpec(name="narrow_range", type="bool", default=False),
        ArgSpec(name="dtype", type="int", default=1, minimum=1, maximum=2),
    ),
    backward=BackwardSpec(needs=("x", "scale")), tags=("discontinuous",), updates=("zero_point",),
)

DEQUANTIZE_LINEAR = FunctionSpec(
    name="DequantizeLinear", api="dequantize_linear", topic="quantization",
    doc="Turn levels of quantize_linear back into values.",
    inputs=(InputSpec(name="x"), InputSpec(name="scale"), InputSpec(name="zero_point")),
    outputs=(OutputSpec(name="y"),), backward=BackwardSpec(needs=("x", "scale", "zero_point")),
)

QUANTIZE_INTEGER = FunctionSpec(
    name="QuantizeInteger", api="quantize_integer", topic="quantization",
    doc="Quantize to integers of the dtype of the zero point.",
    inputs=(InputSpec(name="x"), InputSpec(name="scale"), InputSpec(name="zero_point", dtype="same")),
    outputs=(OutputSpec(name="y", dtype="same"),), backward=BackwardSpec(none_because="integers have no gradient"),
    tags=("discontinuous",),
)

MATMUL_INTEGER = FunctionSpec(
    name="MatMulInteger", api="matmul_integer", topic="quantization",
    doc="Multiply matrices of integers, less their zero points, and add up exactly.",
    inputs=(
        InputSpec(name="a", dtype="same"), InputSpec(name="b", dtype="same"),
        InputSpec(name="a_zero_point", dtype="same", optional=True),
        InputSpec(name="b_zero_point", dtype="same", optional=True),
        InputSpec(name="bias", dtype="int32", optional=True),
    ),
    outputs=(OutputSpec(name="y", dtype="int32"),), backward=BackwardSpec(none_because="integers have no gradient"),
)

CONV_INTEGER = FunctionSpec(
    name="ConvInteger", api="conv_integer", topic="quantization",
    doc="Convolve integers, less their zero points, and add up exactly.",
    inputs=(
        InputSpec(name="x", dtype="same"), InputSpec(name="weight", dtype="same"),
        InputSpec(name="x_zero_point", dtype="same", optional=True),
        InputSpec(name="weight_zero_point", dtype="same", optional=True),
        InputSpec(name="bias", dtype="int32", optional=True),
    ),
    outputs=(OutputSpec(name="y", dtype="int32"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="pad", type="ints", default_rule="spatial_zeros", minimum=0),
        ArgSpec(name="stride", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="dilation", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="group", type="int", default=1, minimum=1),
    ),
    backward=BackwardSpec(none_because="integers have no gradient"),
)

QLINEAR_MATMUL = FunctionSpec(
    name="QLinearMatMul", api="qlinear_matmul", topic="quantization",
    doc="Multiply matrices of integers, and quantize the sums to integers of the dtype of the first matrix.",
    inputs=(
        InputSpec(name="a", dtype="same"), InputSpec(name="b", dtype="same"), InputSpec(name="scale"),
        InputSpec(name="zero_point", dtype="same"), InputSpec(name="a_zero_point", dtype="same", optional=True),
        InputSpec(name="b_zero_point", dtype="same", optional=True),
        InputSpec(name="bias", dtype="int32", optional=True),
    ),
    outputs=(OutputSpec(name="y", dtype="same"),), backward=BackwardSpec(none_because="integers have no gradient"),
    tags=("discontinuous",),
)

QLINEAR_CONV = FunctionSpec(
    name="QLinearConv", api="qlinear_conv", topic="quantization",
    doc="Convolve integers, and quantize the sums to integers of the dtype of the images.",
    inputs=(
        InputSpec(name="x", dtype="same"), InputSpec(name="weight", dtype="same"), InputSpec(name="scale"),
        InputSpec(name="zero_point", dtype="same"), InputSpec(name="x_zero_point", dtype="same", optional=True),
        InputSpec(name="weight_zero_point", dtype="same", optional=True),
        InputSpec(name="bias", dtype="int32", optional=True),
    ),
    outputs=(OutputSpec(name="y", dtype="same"),),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="pad", type="ints", default_rule="spatial_zeros", minimum=0),
        ArgSpec(name="stride", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="dilation", type="ints", default_rule="spatial_ones", minimum=1),
        ArgSpec(name="group", type="int", default=1, minimum=1),
    ),
    backward=BackwardSpec(none_because="integers have no gradient"), tags=("discontinuous",),
)

SPECS: tuple[FunctionSpec, ...] = (
    BINARY_SIGMOID, BINARY_TANH, BINARY_CONNECT_AFFINE, BINARY_CONNECT_CONVOLUTION, BINARY_WEIGHT_AFFINE,
    BINARY_WEIGHT_CONVOLUTION, INQ_AFFINE, INQ_CONVOLUTION, FIXED_POINT_QUANTIZE, POW2_QUANTIZE, MIN_MAX_QUANTIZE,
    PRUNE, QUANTIZE_LINEAR, DEQUANTIZE_LINEAR, QUANTIZE_INTEGER, MATMUL_INTEGER, CONV_INTEGER, QLINEAR_MATMUL,
    QLINEAR_CONV,
)
