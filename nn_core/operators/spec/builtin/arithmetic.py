"""Specifications of the topic arithmetic.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

ADD2 = FunctionSpec(
    name="Add2", api="add2", topic="arithmetic", doc="Add two arrays element by element, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="inplace", type="bool", default=False),), shape="broadcast",
    tags=("pointwise", "inplace_ok", "passes_gradient"),
)

ADD_N = FunctionSpec(
    name="AddN", api="add_n", topic="arithmetic", doc="Add any number of arrays of one shape element by element.",
    inputs=(InputSpec(name="x", variadic=True),), outputs=(OutputSpec(name="y"),),
    tags=("pointwise", "inplace_ok", "passes_gradient"),
)

BC_ADD2 = FunctionSpec(
    name="BcAdd2", api="bc_add2", topic="arithmetic", doc="Add two arrays element by element, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="inplace", type="bool", default=False),), shape="broadcast", tags=("pointwise", "inplace_ok"),
)

SUB2 = FunctionSpec(
    name="Sub2", api="sub2", topic="arithmetic",
    doc="Subtract the second array from the first element by element, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="inplace", type="bool", default=False),), shape="broadcast", tags=("pointwise", "inplace_ok"),
)

MUL2 = FunctionSpec(
    name="Mul2", api="mul2", topic="arithmetic", doc="Multiply two arrays element by element, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="inplace", type="bool", default=False),), shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")), tags=("pointwise",),
)

MUL_N = FunctionSpec(
    name="MulN", api="mul_n", topic="arithmetic", doc="Multiply any number of arrays of one shape element by element.",
    inputs=(InputSpec(name="x", variadic=True),), outputs=(OutputSpec(name="y"),), backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
)

DIV2 = FunctionSpec(
    name="Div2", api="div2", topic="arithmetic",
    doc="Divide the first array by the second element by element, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="inplace", type="bool", default=False),), shape="broadcast",
    backward=BackwardSpec(needs=("x1", "y")), tags=("pointwise", "inplace_ok"),
)

POW2 = FunctionSpec(
    name="Pow2", api="pow2", topic="arithmetic",
    doc="Raise the first array to the power of the second element by element, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="inplace", type="bool", default=False),), shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1", "y")), tags=("pointwise",),
)

ADD_SCALAR = FunctionSpec(
    name="AddScalar", api="add_scalar", topic="arithmetic", doc="Add a number to every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0), ArgSpec(name="inplace", type="bool", default=False)),
    shape="same_as x", tags=("pointwise", "inplace_ok", "passes_gradient"),
)

MUL_SCALAR = FunctionSpec(
    name="MulScalar", api="mul_scalar", topic="arithmetic", doc="Multiply every element by a number.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0), ArgSpec(name="inplace", type="bool", default=False)),
    shape="same_as x", tags=("pointwise", "inplace_ok"),
)

POW_SCALAR = FunctionSpec(
    name="PowScalar", api="pow_scalar", topic="arithmetic", doc="Raise every element to the power of a number.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0), ArgSpec(name="inplace", type="bool", default=False)),
    shape="same_as x", backward=BackwardSpec(needs=("x",)), tags=("pointwise",), domain=(0.1, 3.0),
)

R_SUB_SCALAR = FunctionSpec(
    name="RSubScalar", api="r_sub_scalar", topic="arithmetic", doc="Subtract every element from a number.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0),), shape="same_as x", tags=("pointwise", "inplace_ok"),
)

R_DIV_SCALAR = FunctionSpec(
    name="RDivScalar", api="r_div_scalar", topic="arithmetic", doc="Divide a number by every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0),), shape="same_as x", backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",), domain=(0.2, 4.0),
)

R_POW_SCALAR = FunctionSpec(
    name="RPowScalar", api="r_pow_scalar", topic="arithmetic", doc="Raise a number to the power of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0),), shape="same_as x", backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"),
)

SIGN = FunctionSpec(
    name="Sign", api="sign", topic="arithmetic",
    doc="Take the sign of every element, with a gradient that passes straight through.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), args=(ArgSpec(name="alpha", type="float", default=1.0),), shape="same_as x",
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

MINIMUM2 = FunctionSpec(
    name="Minimum2", api="minimum2", topic="arithmetic", doc="Take the smaller of two elements, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),), shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")), tags=("pointwise",),
)

MAXIMUM2 = FunctionSpec(
    name="Maximum2", api="maximum2", topic="arithmetic", doc="Take the larger of two elements, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),), shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")), tags=("pointwise",),
)

MINIMUM_SCALAR = FunctionSpec(
    name="MinimumScalar", api="minimum_scalar", topic="arithmetic", doc="Limit every element from above by a number.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0),), shape="same_as x", backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
)

MAXIMUM_SCALAR = FunctionSpec(
    name="MaximumScalar", api="maximum_scalar", topic="arithmetic", doc="Limit every element from below by a number.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0),), shape="same_as x", backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
)

LOGICAL_AND = FunctionSpec(
    name="LogicalAnd", api="logical_and", topic="arithmetic",
    doc="Give 1 where both operands are true and 0 elsewhere, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),), shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"), tags=("pointwise", "discontinuous"),
)

LOGICAL_OR = FunctionSpec(
    name="LogicalOr", api="logical_or", topic="arithmetic",
    doc="Give 1 where at least one operand is true and 0 elsewhere, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),), shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"), tags=("pointwise", "discontinuous"),
)

LOGICAL_XOR = FunctionSpec(
    name="LogicalXor", api="logical_xor", topic="arithmetic",
    doc="Give 1 where exactly one operand is true and 0 elsewhere, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),), shape="broadcast",
    backward=BackwardSpec(none_because="the result is piecewise constant"), tags=("pointwise", "discontinuous"),
)

EQUAL = FunctionSpec(
    name="Equal", api="equal", topic="arithmetic",
    doc="Give 1 where the first operand is equal to the second and 0 elsewhere, with broadcasting.",
    inputs=(InputSpec(name="x0", dtype="exact"), InputSpec(name="x1", dtype="exact")), outputs=(OutputSpec(name="y"),),
    shape="broadcast", backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
)

NOT_EQUAL = FunctionSpec(
    name="NotEqual", api="not_equal", topic="arithmetic",
    doc="Give 1 where the first operand differs from the second and 0 elsewhere, with broadcasting.",
    inputs=(InputSpec(name="x0", dtype="exact"), InputSpec(name="x1", dtype="exact")), outputs=(OutputSpec(name="y"),),
    shape="broadcast", backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
)

GREATER_EQUAL = FunctionSpec(
    name="GreaterEqual", api="greater_equal", topic="arithmetic",
    doc="Give 1 where the first operand is greater than or equal to the second and 0 elsewhere, with broadcasting.",
    inputs=(InputSpec(name="x0", dtype="exact"), InputSpec(name="x1", dtype="exact")), outputs=(OutputSpec(name="y"),),
    shape="broadcast", backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
)

GREATER = FunctionSpec(
    name="Greater", api="greater", topic="arithmetic",
    doc="Give 1 where the first operand is greater than the second and 0 elsewhere, with broadcasting.",
    inputs=(InputSpec(name="x0", dtype="exact"), InputSpec(name="x1", dtype="exact")), outputs=(OutputSpec(name="y"),),
    shape="broadcast", backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
)

LESS_EQUAL = FunctionSpec(
    name="LessEqual", api="less_equal", topic="arithmetic",
    doc="Give 1 where the first operand is less than or equal to the second and 0 elsewhere, with broadcasting.",
    inputs=(InputSpec(name="x0", dtype="exact"), InputSpec(name="x1", dtype="exact")), outputs=(OutputSpec(name="y"),),
    shape="broadcast", backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
)

LESS = FunctionSpec(
    name="Less", api="less", topic="arithmetic",
    doc="Give 1 where the first operand is less than the second and 0 elsewhere, with broadcasting.",
    inputs=(InputSpec(name="x0", dtype="exact"), InputSpec(name="x1", dtype="exact")), outputs=(OutputSpec(name="y"),),
    shape="broadcast", backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "discontinuous"),
)

LOGICAL_AND_SCALAR = FunctionSpec(
    name="LogicalAndScalar", api="logical_and_scalar", topic="arithmetic",
    doc="Give 1 where the element and val are true and 0 elsewhere.", inputs=(InputSpec(name="x0"),),
    outputs=(OutputSpec(name="y"),), args=(ArgSpec(name="val", type="bool"),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

LOGICAL_OR_SCALAR = FunctionSpec(
    name="LogicalOrScalar", api="logical_or_scalar", topic="arithmetic",
    doc="Give 1 where the element or val is true and 0 elsewhere.", inputs=(InputSpec(name="x0"),),
    outputs=(OutputSpec(name="y"),), args=(ArgSpec(name="val", type="bool"),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

LOGICAL_XOR_SCALAR = FunctionSpec(
    name="LogicalXorScalar", api="logical_xor_scalar", topic="arithmetic",
    doc="Give 1 where exactly one of the element and val is true and 0 elsewhere.", inputs=(InputSpec(name="x0"),),
    outputs=(OutputSpec(name="y"),), args=(ArgSpec(name="val", type="bool"),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

EQUAL_SCALAR = FunctionSpec(
    name="EqualScalar", api="equal_scalar", topic="arithmetic",
    doc="Give 1 where the element is equal to a number and 0 elsewhere.", inputs=(InputSpec(name="x0", dtype="exact"),),
    outputs=(OutputSpec(name="y"),), args=(ArgSpec(name="val", type="float", default=1.0),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

NOT_EQUAL_SCALAR = FunctionSpec(
    name="NotEqualScalar", api="not_equal_scalar", topic="arithmetic",
    doc="Give 1 where the element differs from a number and 0 elsewhere.",
    inputs=(InputSpec(name="x0", dtype="exact"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

GREATER_EQUAL_SCALAR = FunctionSpec(
    name="GreaterEqualScalar", api="greater_equal_scalar", topic="arithmetic",
    doc="Give 1 where the element is greater than or equal to a number and 0 elsewhere.",
    inputs=(InputSpec(name="x0", dtype="exact"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

GREATER_SCALAR = FunctionSpec(
    name="GreaterScalar", api="greater_scalar", topic="arithmetic",
    doc="Give 1 where the element is greater than a number and 0 elsewhere.",
    inputs=(InputSpec(name="x0", dtype="exact"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

LESS_EQUAL_SCALAR = FunctionSpec(
    name="LessEqualScalar", api="less_equal_scalar", topic="arithmetic",
    doc="Give 1 where the element is less than or equal to a number and 0 elsewhere.",
    inputs=(InputSpec(name="x0", dtype="exact"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

LESS_SCALAR = FunctionSpec(
    name="LessScalar", api="less_scalar", topic="arithmetic",
    doc="Give 1 where the element is less than a number and 0 elsewhere.",
    inputs=(InputSpec(name="x0", dtype="exact"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=1.0),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

LOGICAL_NOT = FunctionSpec(
    name="LogicalNot", api="logical_not", topic="arithmetic", doc="Give 1 where the element is 0 and 0 elsewhere.",
    inputs=(InputSpec(name="x0"),), outputs=(OutputSpec(name="y"),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"),
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

ISNAN = FunctionSpec(
    name="IsNaN", api="isnan", topic="arithmetic", doc="Give 1 where the element is NaN and 0 elsewhere.",
    inputs=(InputSpec(name="x0"),), outputs=(OutputSpec(name="y"),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"), tags=("pointwise", "inplace_ok"),
)

ISINF = FunctionSpec(
    name="IsInf", api="isinf", topic="arithmetic",
    doc="Give 1 where the element is an infinity of either sign and 0 elsewhere.", inputs=(InputSpec(name="x0"),),
    outputs=(OutputSpec(name="y"),), shape="same_as x0",
    backward=BackwardSpec(none_because="the result is piecewise constant"), tags=("pointwise", "inplace_ok"),
)

RESET_NAN = FunctionSpec(
    name="ResetNaN", api="reset_nan", topic="arithmetic", doc="Replace NaN by a number.",
    inputs=(InputSpec(name="x0"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=0.0),), shape="same_as x0", backward=BackwardSpec(needs=("x0",)),
    tags=("pointwise",),
)

RESET_INF = FunctionSpec(
    name="ResetInf", api="reset_inf", topic="arithmetic", doc="Replace infinities of both signs by a number.",
    inputs=(InputSpec(name="x0"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=0.0),), shape="same_as x0", backward=BackwardSpec(needs=("x0",)),
    tags=("pointwise",),
)

WHERE = FunctionSpec(
    name="Where", api="where", topic="arithmetic", doc="Choose between two arrays by a condition.",
    inputs=(InputSpec(name="condition", dtype="same"), InputSpec(name="x_true"), InputSpec(name="x_false")),
    outputs=(OutputSpec(name="y"),), backward=BackwardSpec(needs=("condition",)),
)

ABS = FunctionSpec(
    name="Abs", api="abs", topic="arithmetic", doc="Take the absolute value of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

EXP = FunctionSpec(
    name="Exp", api="exp", topic="arithmetic", doc="Raise e to the power of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("y",)), tags=("pointwise", "inplace_ok"),
)

LOG = FunctionSpec(
    name="Log", api="log", topic="arithmetic", doc="Take the natural logarithm of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",), domain=(0.1, 10.0),
)

ROUND = FunctionSpec(
    name="Round", api="round", topic="arithmetic",
    doc="Round every element to the nearest integer, halves away from 0.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), shape="same_as x", tags=("pointwise", "inplace_ok", "discontinuous"),
)

CEIL = FunctionSpec(
    name="Ceil", api="ceil", topic="arithmetic", doc="Round every element up to an integer.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

FLOOR = FunctionSpec(
    name="Floor", api="floor", topic="arithmetic", doc="Round every element down to an integer.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    tags=("pointwise", "inplace_ok", "discontinuous"),
)

SIN = FunctionSpec(
    name="Sin", api="sin", topic="arithmetic", doc="Take the sine of every element.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), shape="same_as x", backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

COS = FunctionSpec(
    name="Cos", api="cos", topic="arithmetic", doc="Take the cosine of every element.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), shape="same_as x", backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

TAN = FunctionSpec(
    name="Tan", api="tan", topic="arithmetic", doc="Take the tangent of every element.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), shape="same_as x", backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"), domain=(-1.2, 1.2),
)

SINH = FunctionSpec(
    name="Sinh", api="sinh", topic="arithmetic", doc="Take the hyperbolic sine of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

COSH = FunctionSpec(
    name="Cosh", api="cosh", topic="arithmetic", doc="Take the hyperbolic cosine of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

ASIN = FunctionSpec(
    name="ASin", api="asin", topic="arithmetic", doc="Take the inverse sine of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",), domain=(-0.9, 0.9),
)

ACOS = FunctionSpec(
    name="ACos", api="acos", topic="arithmetic", doc="Take the inverse cosine of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",), domain=(-0.9, 0.9),
)

ATAN = FunctionSpec(
    name="ATan", api="atan", topic="arithmetic", doc="Take the inverse tangent of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

ATAN2 = FunctionSpec(
    name="ATan2", api="atan2", topic="arithmetic",
    doc="Take the angle of the point (x1, x0) in the plane, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y"),), shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")), tags=("pointwise",),
)

ASINH = FunctionSpec(
    name="ASinh", api="asinh", topic="arithmetic", doc="Take the inverse hyperbolic sine of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

ACOSH = FunctionSpec(
    name="ACosh", api="acosh", topic="arithmetic", doc="Take the inverse hyperbolic cosine of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",), domain=(1.1, 5.0),
)

ATANH = FunctionSpec(
    name="ATanh", api="atanh", topic="arithmetic", doc="Take the inverse hyperbolic tangent of every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",), domain=(-0.9, 0.9),
)

ERF = FunctionSpec(
    name="Erf", api="erf", topic="arithmetic", doc="Apply the Gauss error function to every element.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), shape="same_as x",
    backward=BackwardSpec(needs=("x",)), tags=("pointwise",),
)

MOD2 = FunctionSpec(
    name="Mod2", api="mod2", topic="arithmetic",
    doc="Take the remainder of a division element by element, with broadcasting.",
    inputs=(InputSpec(name="x0", dtype="exact"), InputSpec(name="x1", dtype="exact")),
    outputs=(OutputSpec(name="y", dtype="same"),), args=(ArgSpec(name="fmod", type="bool", default=False),),
    shape="broadcast", backward=BackwardSpec(needs=("x0", "x1", "y")), tags=("pointwise", "discontinuous"),
)

BIT_SHIFT = FunctionSpec(
    name="BitShift", api="bit_shift", topic="arithmetic", doc="Shift the bits of integers, with broadcasting.",
    inputs=(InputSpec(name="x", dtype="same"), InputSpec(name="shift", dtype="same")),
    outputs=(OutputSpec(name="y", dtype="same"),),
    args=(ArgSpec(name="direction", type="str", default="LEFT", choices=("LEFT", "RIGHT")),), shape="broadcast",
    backward=BackwardSpec(none_because="integers have no gradient"), tags=("pointwise",),
)

CLIP_GRAD_BY_VALUE = FunctionSpec(
    name="ClipGradByValue", api="clip_grad_by_value", topic="arithmetic",
    doc="Pass the input through, and limit the gradient to an interval.",
    inputs=(InputSpec(name="x"), InputSpec(name="min"), InputSpec(name="max")), outputs=(OutputSpec(name="y"),),
    backward=BackwardSpec(needs=("min", "max")), tags=("inplace_ok",),
)

CLIP_GRAD_BY_NORM = FunctionSpec(
    name="ClipGradByNorm", api="clip_grad_by_norm", topic="arithmetic",
    doc="Pass the input through, and scale the gradient to a given norm.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="clip_norm", type="float", default=1.0, minimum=0, shown_as_none=True),
        ArgSpec(name="axes", type="axes", default_rule="all_axes"),
    ),
    shape="same_as x", tags=("inplace_ok",),
)

SPECS: tuple[FunctionSpec, ...] = (
    ADD2, ADD_N, BC_ADD2, SUB2, MUL2, MUL_N, DIV2, POW2, ADD_SCALAR, MUL_SCALAR, POW_SCALAR, R_SUB_SCALAR, R_DIV_SCALAR,
    R_POW_SCALAR, SIGN, MINIMUM2, MAXIMUM2, MINIMUM_SCALAR, MAXIMUM_SCALAR, LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR, EQUAL,
    NOT_EQUAL, GREATER_EQUAL, GREATER, LESS_EQUAL, LESS, LOGICAL_AND_SCALAR, LOGICAL_OR_SCALAR, LOGICAL_XOR_SCALAR,
    EQUAL_SCALAR, NOT_EQUAL_SCALAR, GREATER_EQUAL_SCALAR, GREATER_SCALAR, LESS_EQUAL_SCALAR, LESS_SCALAR, LOGICAL_NOT,
    ISNAN, ISINF, RESET_NAN, RESET_INF, WHERE, ABS, EXP, LOG, ROUND, CEIL, FLOOR, SIN, COS, TAN, SINH, COSH, ASIN, ACOS,
    ATAN, ATAN2, ASINH, ACOSH, ATANH, ERF, MOD2, BIT_SHIFT, CLIP_GRAD_BY_VALUE, CLIP_GRAD_BY_NORM,
)
