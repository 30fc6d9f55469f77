"""Specifications of the topic arithmetic.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

ADD2 = FunctionSpec(
    name="Add2",
    api="add2",
    topic="arithmetic",
    doc="Add two arrays element by element, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="Result.", shape="common shape of the inputs"),),
    args=(
        ArgSpec(
            name="inplace",
            type="bool",
            doc="Let the result be written over the first input.",
            default=False,
        ),
    ),
    shape="broadcast",
    tags=("pointwise", "inplace_ok"),
    formula="y = x0 + x1",
    example="F.add2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [2.5, 3.5]",
)

ADD_N = FunctionSpec(
    name="AddN",
    api="add_n",
    topic="arithmetic",
    doc="Add any number of arrays of one shape element by element.",
    inputs=(InputSpec(name="x", doc="Terms, all of the same shape.", shape="any", variadic=True),),
    outputs=(OutputSpec(name="y", doc="Sum.", shape="of x"),),
    tags=("pointwise", "inplace_ok"),
    formula="y = x_1 + x_2 + ... + x_n",
    notes="Half precision inputs are added in float32.",
    example="F.add_n(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [2.5, 3.5]",
)

BC_ADD2 = FunctionSpec(
    name="BcAdd2",
    api="bc_add2",
    topic="arithmetic",
    doc="Add two arrays element by element, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="Result.", shape="common shape of the inputs"),),
    args=(
        ArgSpec(
            name="inplace",
            type="bool",
            doc="Let the result be written over the first input.",
            default=False,
        ),
    ),
    shape="broadcast",
    tags=("pointwise", "inplace_ok"),
    formula="y = x0 + x1",
    notes="The same as add2, kept for files and programs that name it.",
    example=(
        "F.bc_add2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # "
        "[2.5, 3.5]"
    ),
)

SUB2 = FunctionSpec(
    name="Sub2",
    api="sub2",
    topic="arithmetic",
    doc="Subtract the second array from the first element by element, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="Result.", shape="common shape of the inputs"),),
    args=(
        ArgSpec(
            name="inplace",
            type="bool",
            doc="Let the result be written over the first input.",
            default=False,
        ),
    ),
    shape="broadcast",
    tags=("pointwise", "inplace_ok"),
    formula="y = x0 - x1",
    example="F.sub2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [-1.5, -4.5]",
)

MUL2 = FunctionSpec(
    name="Mul2",
    api="mul2",
    topic="arithmetic",
    doc="Multiply two arrays element by element, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="Result.", shape="common shape of the inputs"),),
    args=(
        ArgSpec(
            name="inplace",
            type="bool",
            doc="Let the result be written over the first input.",
            default=False,
        ),
    ),
    shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")),
    tags=("pointwise",),
    formula="y = x0 x1",
    example="F.mul2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, -2]",
)

MUL_N = FunctionSpec(
    name="MulN",
    api="mul_n",
    topic="arithmetic",
    doc="Multiply any number of arrays of one shape element by element.",
    inputs=(InputSpec(name="x", doc="Factors, all of the same shape.", shape="any", variadic=True),),
    outputs=(OutputSpec(name="y", doc="Product.", shape="of x"),),
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = x_1 x_2 ... x_n",
    notes=(
        "The gradient multiplies the other factors and never divides, so it is exact where factors are 0. "
        "Half precision inputs are multiplied in float32."
    ),
    example="F.mul_n(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, -2]",
)

DIV2 = FunctionSpec(
    name="Div2",
    api="div2",
    topic="arithmetic",
    doc="Divide the first array by the second element by element, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="Result.", shape="common shape of the inputs"),),
    args=(
        ArgSpec(
            name="inplace",
            type="bool",
            doc="Let the result be written over the first input.",
            default=False,
        ),
    ),
    shape="broadcast",
    backward=BackwardSpec(needs=("x1", "y")),
    tags=("pointwise", "inplace_ok"),
    formula="y = x0 / x1",
    notes="Division by 0 gives an infinity, or NaN for 0 / 0.",
    example=(
        "F.div2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # "
        "[0.25, -0.125]"
    ),
)

POW2 = FunctionSpec(
    name="Pow2",
    api="pow2",
    topic="arithmetic",
    doc="Raise the first array to the power of the second element by element, with broadcasting.",
    inputs=(InputSpec(name="x0", doc="Base.", shape="any"), InputSpec(name="x1", doc="Exponent.", shape="any")),
    outputs=(OutputSpec(name="y", doc="Result.", shape="common shape of the inputs"),),
    args=(
        ArgSpec(
            name="inplace",
            type="bool",
            doc="Let the result be written over the first input.",
            default=False,
        ),
    ),
    shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1", "y")),
    tags=("pointwise",),
    formula="y = x0 ^ x1",
    notes=(
        "0 ^ 0 is 1. A negative base with a fractional exponent gives NaN. The gradient of the exponent is "
        "NaN for a negative base and 0 for the base 0; the gradient of the base is 0 where both operands "
        "are 0."
    ),
    example="F.pow2(nn.NdArray.from_numpy_array([2.0, 4.0]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [4, 256]",
)

ADD_SCALAR = FunctionSpec(
    name="AddScalar",
    api="add_scalar",
    topic="arithmetic",
    doc="Add a number to every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    args=(
        ArgSpec(name="val", type="float", doc="Term.", default=1.0),
        ArgSpec(
            name="inplace",
            type="bool",
            doc="Let the result be written over the first input.",
            default=False,
        ),
    ),
    shape="same_as x",
    tags=("pointwise", "inplace_ok"),
    formula="y = x + val",
    example="F.add_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=1)  # [1.5, 0.5]",
)

MUL_SCALAR = FunctionSpec(
    name="MulScalar",
    api="mul_scalar",
    topic="arithmetic",
    doc="Multiply every element by a number.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    args=(
        ArgSpec(name="val", type="float", doc="Factor.", default=1.0),
        ArgSpec(
            name="inplace",
            type="bool",
            doc="Let the result be written over the first input.",
            default=False,
        ),
    ),
    shape="same_as x",
    tags=("pointwise", "inplace_ok"),
    formula="y = val x",
    example="F.mul_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=3)  # [1.5, -1.5]",
)

POW_SCALAR = FunctionSpec(
    name="PowScalar",
    api="pow_scalar",
    topic="arithmetic",
    doc="Raise every element to the power of a number.",
    inputs=(InputSpec(name="x", doc="Base.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    args=(
        ArgSpec(name="val", type="float", doc="Exponent.", default=1.0),
        ArgSpec(
            name="inplace",
            type="bool",
            doc="Let the result be written over the first input.",
            default=False,
        ),
    ),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    domain=(0.1, 3.0),
    formula="y = x ^ val",
    notes=(
        "Negative elements with a fractional exponent give NaN. With val = 0 the result is 1 and the "
        "gradient 0 everywhere."
    ),
    example="F.pow_scalar(nn.NdArray.from_numpy_array([2.0, 4.0]), val=2)  # [4, 16]",
)

R_SUB_SCALAR = FunctionSpec(
    name="RSubScalar",
    api="r_sub_scalar",
    topic="arithmetic",
    doc="Subtract every element from a number.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    args=(ArgSpec(name="val", type="float", doc="Number that is subtracted from.", default=1.0),),
    shape="same_as x",
    tags=("pointwise", "inplace_ok"),
    formula="y = val - x",
    example="F.r_sub_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=1)  # [0.5, 1.5]",
)

R_DIV_SCALAR = FunctionSpec(
    name="RDivScalar",
    api="r_div_scalar",
    topic="arithmetic",
    doc="Divide a number by every element.",
    inputs=(InputSpec(name="x", doc="Divisor.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    args=(ArgSpec(name="val", type="float", doc="Dividend.", default=1.0),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    domain=(0.2, 4.0),
    formula="y = val / x",
    example="F.r_div_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=1)  # [2, -2]",
)

R_POW_SCALAR = FunctionSpec(
    name="RPowScalar",
    api="r_pow_scalar",
    topic="arithmetic",
    doc="Raise a number to the power of every element.",
    inputs=(InputSpec(name="x", doc="Exponent.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    args=(ArgSpec(name="val", type="float", doc="Base.", default=1.0),),
    shape="same_as x",
    backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"),
    formula="y = val ^ x",
    notes="The gradient is NaN for a negative base and 0 for the base 0.",
    example="F.r_pow_scalar(nn.NdArray.from_numpy_array([2.0, 4.0]), val=2)  # [4, 16]",
)

SIGN = FunctionSpec(
    name="Sign",
    api="sign",
    topic="arithmetic",
    doc="Take the sign of every element, with a gradient that passes straight through.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    args=(ArgSpec(name="alpha", type="float", doc="Value at x = 0.", default=1.0),),
    shape="same_as x",
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = 1 (x > 0), alpha (x = 0), -1 (x < 0)",
    notes="The gradient is that of the identity (straight-through estimator). NaN stays NaN.",
    references=(
        "Y. Bengio, N. Leonard, A. Courville (2013), Estimating or propagating gradients through "
        "stochastic neurons."
    ),
    example="F.sign(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, -1]",
)

MINIMUM2 = FunctionSpec(
    name="Minimum2",
    api="minimum2",
    topic="arithmetic",
    doc="Take the smaller of two elements, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="Result.", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")),
    tags=("pointwise",),
    formula="y = min(x0, x1)",
    notes=(
        "Where both are equal the gradient goes to x1. NaN in either input gives NaN, and gets the "
        "gradient; of two, that of x0."
    ),
    example=(
        "F.minimum2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  "
        "# [0.5, -0.5]"
    ),
)

MAXIMUM2 = FunctionSpec(
    name="Maximum2",
    api="maximum2",
    topic="arithmetic",
    doc="Take the larger of two elements, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="Result.", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")),
    tags=("pointwise",),
    formula="y = max(x0, x1)",
    notes=(
        "Where both are equal the gradient goes to x1. NaN in either input gives NaN, and gets the "
        "gradient; of two, that of x0."
    ),
    example="F.maximum2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [2, 4]",
)

MINIMUM_SCALAR = FunctionSpec(
    name="MinimumScalar",
    api="minimum_scalar",
    topic="arithmetic",
    doc="Limit every element from above by a number.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    args=(ArgSpec(name="val", type="float", doc="Upper limit.", default=1.0),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = min(x, val)",
    notes="The gradient is 0 where x = val. NaN stays NaN.",
    example="F.minimum_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]",
)

MAXIMUM_SCALAR = FunctionSpec(
    name="MaximumScalar",
    api="maximum_scalar",
    topic="arithmetic",
    doc="Limit every element from below by a number.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    args=(ArgSpec(name="val", type="float", doc="Lower limit.", default=1.0),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = max(x, val)",
    notes="The gradient is 0 where x = val. NaN stays NaN.",
    example="F.maximum_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 1]",
)

LOGICAL_AND = FunctionSpec(
    name="LogicalAnd",
    api="logical_and",
    topic="arithmetic",
    doc="Give 1 where both operands are true and 0 elsewhere, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
    formula="y = x0 and x1",
    notes="Every element but 0 counts as true, NaN too.",
    example=(
        "F.logical_and(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, "
        "4.0]))  # [1, 1]"
    ),
)

LOGICAL_OR = FunctionSpec(
    name="LogicalOr",
    api="logical_or",
    topic="arithmetic",
    doc="Give 1 where at least one operand is true and 0 elsewhere, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
    formula="y = x0 or x1",
    notes="Every element but 0 counts as true, NaN too.",
    example="F.logical_or(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, 1]",
)

LOGICAL_XOR = FunctionSpec(
    name="LogicalXor",
    api="logical_xor",
    topic="arithmetic",
    doc="Give 1 where exactly one operand is true and 0 elsewhere, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
    formula="y = x0 xor x1",
    notes="Every element but 0 counts as true, NaN too.",
    example=(
        "F.logical_xor(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, "
        "4.0]))  # [0, 0]"
    ),
)

EQUAL = FunctionSpec(
    name="Equal",
    api="equal",
    topic="arithmetic",
    doc="Give 1 where the first operand is equal to the second and 0 elsewhere, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
    formula="y = [x0 = x1]",
    notes="A comparison with NaN gives 0.",
    example="F.equal(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0, 0]",
)

NOT_EQUAL = FunctionSpec(
    name="NotEqual",
    api="not_equal",
    topic="arithmetic",
    doc="Give 1 where the first operand differs from the second and 0 elsewhere, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
    formula="y = [x0 != x1]",
    notes="A comparison with NaN gives 1.",
    example="F.not_equal(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, 1]",
)

GREATER_EQUAL = FunctionSpec(
    name="GreaterEqual",
    api="greater_equal",
    topic="arithmetic",
    doc="Give 1 where the first operand is greater than or equal to the second and 0 elsewhere, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
    formula="y = [x0 >= x1]",
    notes="A comparison with NaN gives 0.",
    example=(
        "F.greater_equal(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, "
        "4.0]))  # [0, 0]"
    ),
)

GREATER = FunctionSpec(
    name="Greater",
    api="greater",
    topic="arithmetic",
    doc="Give 1 where the first operand is greater than the second and 0 elsewhere, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
    formula="y = [x0 > x1]",
    notes="A comparison with NaN gives 0.",
    example="F.greater(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0, 0]",
)

LESS_EQUAL = FunctionSpec(
    name="LessEqual",
    api="less_equal",
    topic="arithmetic",
    doc="Give 1 where the first operand is less than or equal to the second and 0 elsewhere, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
    formula="y = [x0 <= x1]",
    notes="A comparison with NaN gives 0.",
    example="F.less_equal(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, 1]",
)

LESS = FunctionSpec(
    name="Less",
    api="less",
    topic="arithmetic",
    doc="Give 1 where the first operand is less than the second and 0 elsewhere, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="First operand.", shape="any"),
        InputSpec(name="x1", doc="Second operand.", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
    formula="y = [x0 < x1]",
    notes="A comparison with NaN gives 0.",
    example="F.less(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, 1]",
)

LOGICAL_AND_SCALAR = FunctionSpec(
    name="LogicalAndScalar",
    api="logical_and_scalar",
    topic="arithmetic",
    doc="Give 1 where the element and val are true and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    args=(ArgSpec(name="val", type="bool", doc="Second operand."),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = x0 and val",
    notes="Every element but 0 counts as true, NaN too.",
    example="F.logical_and_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=True)  # [1, 1]",
)

LOGICAL_OR_SCALAR = FunctionSpec(
    name="LogicalOrScalar",
    api="logical_or_scalar",
    topic="arithmetic",
    doc="Give 1 where the element or val is true and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    args=(ArgSpec(name="val", type="bool", doc="Second operand."),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = x0 or val",
    notes="Every element but 0 counts as true, NaN too.",
    example="F.logical_or_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=False)  # [1, 1]",
)

LOGICAL_XOR_SCALAR = FunctionSpec(
    name="LogicalXorScalar",
    api="logical_xor_scalar",
    topic="arithmetic",
    doc="Give 1 where exactly one of the element and val is true and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    args=(ArgSpec(name="val", type="bool", doc="Second operand."),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = x0 xor val",
    notes="Every element but 0 counts as true, NaN too.",
    example="F.logical_xor_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=True)  # [0, 0]",
)

EQUAL_SCALAR = FunctionSpec(
    name="EqualScalar",
    api="equal_scalar",
    topic="arithmetic",
    doc="Give 1 where the element is equal to a number and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    args=(ArgSpec(name="val", type="float", doc="Number to compare with.", default=1.0),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = [x0 = val]",
    notes="A comparison with NaN gives 0.",
    example="F.equal_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0, 0]",
)

NOT_EQUAL_SCALAR = FunctionSpec(
    name="NotEqualScalar",
    api="not_equal_scalar",
    topic="arithmetic",
    doc="Give 1 where the element differs from a number and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    args=(ArgSpec(name="val", type="float", doc="Number to compare with.", default=1.0),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = [x0 != val]",
    notes="A comparison with NaN gives 1.",
    example="F.not_equal_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 1]",
)

GREATER_EQUAL_SCALAR = FunctionSpec(
    name="GreaterEqualScalar",
    api="greater_equal_scalar",
    topic="arithmetic",
    doc="Give 1 where the element is greater than or equal to a number and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    args=(ArgSpec(name="val", type="float", doc="Number to compare with.", default=1.0),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = [x0 >= val]",
    notes="A comparison with NaN gives 0.",
    example="F.greater_equal_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0, 0]",
)

GREATER_SCALAR = FunctionSpec(
    name="GreaterScalar",
    api="greater_scalar",
    topic="arithmetic",
    doc="Give 1 where the element is greater than a number and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    args=(ArgSpec(name="val", type="float", doc="Number to compare with.", default=1.0),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = [x0 > val]",
    notes="A comparison with NaN gives 0.",
    example="F.greater_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0, 0]",
)

LESS_EQUAL_SCALAR = FunctionSpec(
    name="LessEqualScalar",
    api="less_equal_scalar",
    topic="arithmetic",
    doc="Give 1 where the element is less than or equal to a number and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    args=(ArgSpec(name="val", type="float", doc="Number to compare with.", default=1.0),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = [x0 <= val]",
    notes="A comparison with NaN gives 0.",
    example="F.less_equal_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 1]",
)

LESS_SCALAR = FunctionSpec(
    name="LessScalar",
    api="less_scalar",
    topic="arithmetic",
    doc="Give 1 where the element is less than a number and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    args=(ArgSpec(name="val", type="float", doc="Number to compare with.", default=1.0),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = [x0 < val]",
    notes="A comparison with NaN gives 0.",
    example="F.less_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 1]",
)

LOGICAL_NOT = FunctionSpec(
    name="LogicalNot",
    api="logical_not",
    topic="arithmetic",
    doc="Give 1 where the element is 0 and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = not x0",
    notes="NaN counts as true.",
    example="F.logical_not(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0, 0]",
)

ISNAN = FunctionSpec(
    name="IsNaN",
    api="isnan",
    topic="arithmetic",
    doc="Give 1 where the element is NaN and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok"),
    formula="y = [x0 is NaN]",
    example="F.isnan(nn.NdArray.from_numpy_array([1.0, float('nan')]))  # [0, 1]",
)

ISINF = FunctionSpec(
    name="IsInf",
    api="isinf",
    topic="arithmetic",
    doc="Give 1 where the element is an infinity of either sign and 0 elsewhere.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="of x0"),),
    shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok"),
    formula="y = [x0 is infinite]",
    example="F.isinf(nn.NdArray.from_numpy_array([1.0, float('inf')]))  # [0, 1]",
)

RESET_NAN = FunctionSpec(
    name="ResetNaN",
    api="reset_nan",
    topic="arithmetic",
    doc="Replace NaN by a number.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x0"),),
    args=(ArgSpec(name="val", type="float", doc="Replacement.", default=0.0),),
    shape="same_as x0",
    backward=BackwardSpec(needs=("x0",)),
    tags=("pointwise",),
    formula="y = val (x0 is NaN), x0 (otherwise)",
    notes="No gradient flows to replaced elements.",
    example="F.reset_nan(nn.NdArray.from_numpy_array([1.0, float('nan')]))  # [1, 0]",
)

RESET_INF = FunctionSpec(
    name="ResetInf",
    api="reset_inf",
    topic="arithmetic",
    doc="Replace infinities of both signs by a number.",
    inputs=(InputSpec(name="x0", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x0"),),
    args=(ArgSpec(name="val", type="float", doc="Replacement.", default=0.0),),
    shape="same_as x0",
    backward=BackwardSpec(needs=("x0",)),
    tags=("pointwise",),
    formula="y = val (x0 is infinite), x0 (otherwise)",
    notes="No gradient flows to replaced elements. NaN stays.",
    example="F.reset_inf(nn.NdArray.from_numpy_array([1.0, float('inf')]))  # [1, 0]",
)

WHERE = FunctionSpec(
    name="Where",
    api="where",
    topic="arithmetic",
    doc="Choose between two arrays by a condition.",
    inputs=(
        InputSpec(
            name="condition",
            doc="True where it is not 0. Its axes are the leading axes of the other inputs.",
            shape="(N_1, ..., N_k)",
            dtype="same",
        ),
        InputSpec(
            name="x_true",
            doc="Taken where the condition is true.",
            shape="(N_1, ..., N_k, M_1, ..., M_l)",
        ),
        InputSpec(name="x_false", doc="Taken elsewhere.", shape="(N_1, ..., N_k, M_1, ..., M_l)"),
    ),
    outputs=(OutputSpec(name="y", doc="Chosen elements.", shape="(N_1, ..., N_k, M_1, ..., M_l)"),),
    backward=BackwardSpec(needs=("condition",)),
    formula="y = x_true (condition != 0), x_false (otherwise)",
    notes="The condition gets no gradient.",
    example=(
        "F.where(nn.NdArray.from_numpy_array([1, 0]), nn.NdArray.from_numpy_array([0.5, -0.5]), "
        "nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0.5, 4]"
    ),
)

ABS = FunctionSpec(
    name="Abs",
    api="abs",
    topic="arithmetic",
    doc="Take the absolute value of every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = |x|",
    notes="The gradient at 0 is 1.",
    example="F.abs(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, 0.5]",
)

EXP = FunctionSpec(
    name="Exp",
    api="exp",
    topic="arithmetic",
    doc="Raise e to the power of every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"),
    formula="y = exp(x)",
    example="F.exp(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1.65, 0.607]",
)

LOG = FunctionSpec(
    name="Log",
    api="log",
    topic="arithmetic",
    doc="Take the natural logarithm of every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    domain=(0.1, 10.0),
    formula="y = ln x",
    notes="0 gives minus infinity, negative elements give NaN.",
    example="F.log(nn.NdArray.from_numpy_array([1.0, 2.0]))  # [0, 0.693]",
)

ROUND = FunctionSpec(
    name="Round",
    api="round",
    topic="arithmetic",
    doc="Round every element to the nearest integer, halves away from 0.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = sgn(x) floor(|x| + 1/2)",
    notes="The gradient is that of the identity (straight-through estimator).",
    example="F.round(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, -1]",
)

CEIL = FunctionSpec(
    name="Ceil",
    api="ceil",
    topic="arithmetic",
    doc="Round every element up to an integer.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = the least integer that is not below x",
    notes="The gradient is that of the identity (straight-through estimator).",
    example="F.ceil(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 0]",
)

FLOOR = FunctionSpec(
    name="Floor",
    api="floor",
    topic="arithmetic",
    doc="Round every element down to an integer.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = the greatest integer that is not above x",
    notes="The gradient is that of the identity (straight-through estimator).",
    example="F.floor(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0, -1]",
)

SIN = FunctionSpec(
    name="Sin",
    api="sin",
    topic="arithmetic",
    doc="Take the sine of every element.",
    inputs=(InputSpec(name="x", doc="Angle in radians.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = sin x",
    example="F.sin(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.479, -0.479]",
)

COS = FunctionSpec(
    name="Cos",
    api="cos",
    topic="arithmetic",
    doc="Take the cosine of every element.",
    inputs=(InputSpec(name="x", doc="Angle in radians.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = cos x",
    example="F.cos(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.878, 0.878]",
)

TAN = FunctionSpec(
    name="Tan",
    api="tan",
    topic="arithmetic",
    doc="Take the tangent of every element.",
    inputs=(InputSpec(name="x", doc="Angle in radians.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"),
    domain=(-1.2, 1.2),
    formula="y = tan x",
    example="F.tan(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.546, -0.546]",
)

SINH = FunctionSpec(
    name="Sinh",
    api="sinh",
    topic="arithmetic",
    doc="Take the hyperbolic sine of every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = sinh x",
    example="F.sinh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.521, -0.521]",
)

COSH = FunctionSpec(
    name="Cosh",
    api="cosh",
    topic="arithmetic",
    doc="Take the hyperbolic cosine of every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = cosh x",
    example="F.cosh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1.13, 1.13]",
)

ASIN = FunctionSpec(
    name="ASin",
    api="asin",
    topic="arithmetic",
    doc="Take the inverse sine of every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Angle in [-pi/2, pi/2].", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    domain=(-0.9, 0.9),
    formula="y = arcsin x",
    notes="Elements outside [-1, 1] give NaN; the gradient at -1 and 1 is infinite.",
    example="F.asin(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.524, -0.524]",
)

ACOS = FunctionSpec(
    name="ACos",
    api="acos",
    topic="arithmetic",
    doc="Take the inverse cosine of every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Angle in [0, pi].", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    domain=(-0.9, 0.9),
    formula="y = arccos x",
    notes="Elements outside [-1, 1] give NaN; the gradient at -1 and 1 is infinite.",
    example="F.acos(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1.05, 2.09]",
)

ATAN = FunctionSpec(
    name="ATan",
    api="atan",
    topic="arithmetic",
    doc="Take the inverse tangent of every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Angle in (-pi/2, pi/2).", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = arctan x",
    example="F.atan(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.464, -0.464]",
)

ATAN2 = FunctionSpec(
    name="ATan2",
    api="atan2",
    topic="arithmetic",
    doc="Take the angle of the point (x1, x0) in the plane, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="Second coordinate (ordinate).", shape="any"),
        InputSpec(name="x1", doc="First coordinate (abscissa).", shape="any"),
    ),
    outputs=(OutputSpec(name="y", doc="Angle in [-pi, pi].", shape="common shape of the inputs"),),
    shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")),
    tags=("pointwise",),
    formula="y = the angle between the positive first axis and the vector (x1, x0)",
    notes="The gradient at the origin is NaN.",
    example=(
        "F.atan2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # "
        "[0.245, -0.124]"
    ),
)

ASINH = FunctionSpec(
    name="ASinh",
    api="asinh",
    topic="arithmetic",
    doc="Take the inverse hyperbolic sine of every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = arsinh x",
    example="F.asinh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.481, -0.481]",
)

ACOSH = FunctionSpec(
    name="ACosh",
    api="acosh",
    topic="arithmetic",
    doc="Take the inverse hyperbolic cosine of every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    domain=(1.1, 5.0),
    formula="y = arcosh x",
    notes="Elements below 1 give NaN; the gradient at 1 is infinite.",
    example="F.acosh(nn.NdArray.from_numpy_array([1.0, 2.0]))  # [0, 1.32]",
)

ATANH = FunctionSpec(
    name="ATanh",
    api="atanh",
    topic="arithmetic",
    doc="Take the inverse hyperbolic tangent of every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    domain=(-0.9, 0.9),
    formula="y = artanh x",
    notes="-1 and 1 give infinities, elements beyond them NaN.",
    example="F.atanh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.549, -0.549]",
)

ERF = FunctionSpec(
    name="Erf",
    api="erf",
    topic="arithmetic",
    doc="Apply the Gauss error function to every element.",
    inputs=(InputSpec(name="x", doc="Operand.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Result.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = 2 / sqrt(pi) times the integral of exp(-t^2) for t from 0 to x",
    references=(
        "W. J. Cody (1969), Rational Chebyshev approximations for the error function, Mathematics of "
        "Computation 23."
    ),
    example="F.erf(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.52, -0.52]",
)

MOD2 = FunctionSpec(
    name="Mod2",
    api="mod2",
    topic="arithmetic",
    doc="Take the remainder of a division element by element, with broadcasting.",
    inputs=(
        InputSpec(name="x0", doc="Dividend.", shape="any", dtype="same"),
        InputSpec(name="x1", doc="Divisor.", shape="any", dtype="same"),
    ),
    outputs=(OutputSpec(name="y", doc="Remainder.", shape="common shape of the inputs", dtype="same"),),
    args=(
        ArgSpec(
            name="fmod",
            type="bool",
            doc=(
                "Round the quotient towards 0, so that the remainder has the sign of the dividend. "
                "False: round it down, so that integers get the sign of the divisor. Floating inputs "
                "behave as if True."
            ),
            default=False,
        ),
    ),
    shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1", "y")),
    tags=("pointwise", "discontinuous"),
    formula="y = x0 - q x1, where q is the quotient rounded to an integer",
    notes="The gradient holds wherever x0 is not a multiple of x1. A divisor of 0 gives NaN for floating inputs.",
    example="F.mod2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0.5, -0.5]",
)

BIT_SHIFT = FunctionSpec(
    name="BitShift",
    api="bit_shift",
    topic="arithmetic",
    doc="Shift the bits of integers, with broadcasting.",
    inputs=(
        InputSpec(name="x", doc="Integers.", shape="any", dtype="same"),
        InputSpec(
            name="shift",
            doc="Integers, the number of bits to shift by; not negative.",
            shape="any",
            dtype="same",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Shifted integers of the dtype of x; bits that leave on either side are lost.",
            shape="common shape of the inputs",
            dtype="same",
        ),
    ),
    args=(ArgSpec(name="direction", type="str", doc="LEFT or RIGHT.", default="LEFT", choices=("LEFT", "RIGHT")),),
    shape="broadcast",
    backward=BackwardSpec(none_because="integers have no gradient"),
    tags=("pointwise",),
    formula="y = x 2^shift (LEFT), floor(x / 2^shift) (RIGHT)",
    notes="Raises DTypeError for inputs that hold floating numbers.",
    example=(
        "F.bit_shift(nn.NdArray.from_numpy_array([1, 2]), nn.NdArray.from_numpy_array([3, "
        "1])).numpy().tolist()  # [8, 4]"
    ),
)

CLIP_GRAD_BY_VALUE = FunctionSpec(
    name="ClipGradByValue",
    api="clip_grad_by_value",
    topic="arithmetic",
    doc="Pass the input through, and limit the gradient to an interval.",
    inputs=(
        InputSpec(name="x", doc="Input.", shape="any"),
        InputSpec(name="min", doc="Lower limit of the gradient.", shape="broadcasts to that of x"),
        InputSpec(name="max", doc="Upper limit of the gradient.", shape="broadcasts to that of x"),
    ),
    outputs=(OutputSpec(name="y", doc="The input, unchanged.", shape="of x"),),
    backward=BackwardSpec(needs=("min", "max")),
    tags=("inplace_ok",),
    formula="y = x, dx = min(max(dy, min), max)",
    notes="The limits get no gradient.",
    example="F.clip_grad_by_value(nn.Variable((2, 3)), nn.Variable((2, 3)), nn.Variable((2, 3))).shape  # (2, 3)",
)

CLIP_GRAD_BY_NORM = FunctionSpec(
    name="ClipGradByNorm",
    api="clip_grad_by_norm",
    topic="arithmetic",
    doc="Pass the input through, and scale the gradient to a given norm.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="The input, unchanged.", shape="of x"),),
    args=(
        ArgSpec(
            name="clip_norm",
            type="float",
            doc="Euclidean norm that the gradient gets.",
            default=1.0,
            minimum=0,
            shown_as_none=True,
        ),
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes over which the norm is taken; default: all.",
            default_rule="all_axes",
        ),
    ),
    shape="same_as x",
    tags=("inplace_ok",),
    formula="y = x, dx = clip_norm dy / ||dy||_2",
    notes="A gradient whose norm is smaller is scaled up; a gradient of 0 stays 0.",
    example="F.clip_grad_by_norm(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]",
)

SPECS: tuple[FunctionSpec, ...] = (
    ADD2,
    ADD_N,
    BC_ADD2,
    SUB2,
    MUL2,
    MUL_N,
    DIV2,
    POW2,
    ADD_SCALAR,
    MUL_SCALAR,
    POW_SCALAR,
    R_SUB_SCALAR,
    R_DIV_SCALAR,
    R_POW_SCALAR,
    SIGN,
    MINIMUM2,
    MAXIMUM2,
    MINIMUM_SCALAR,
    MAXIMUM_SCALAR,
    LOGICAL_AND,
    LOGICAL_OR,
    LOGICAL_XOR,
    EQUAL,
    NOT_EQUAL,
    GREATER_EQUAL,
    GREATER,
    LESS_EQUAL,
    LESS,
    LOGICAL_AND_SCALAR,
    LOGICAL_OR_SCALAR,
    LOGICAL_XOR_SCALAR,
    EQUAL_SCALAR,
    NOT_EQUAL_SCALAR,
    GREATER_EQUAL_SCALAR,
    GREATER_SCALAR,
    LESS_EQUAL_SCALAR,
    LESS_SCALAR,
    LOGICAL_NOT,
    ISNAN,
    ISINF,
    RESET_NAN,
    RESET_INF,
    WHERE,
    ABS,
    EXP,
    LOG,
    ROUND,
    CEIL,
    FLOOR,
    SIN,
    COS,
    TAN,
    SINH,
    COSH,
    ASIN,
    ACOS,
    ATAN,
    ATAN2,
    ASINH,
    ACOSH,
    ATANH,
    ERF,
    MOD2,
    BIT_SHIFT,
    CLIP_GRAD_BY_VALUE,
    CLIP_GRAD_BY_NORM,
)
