"""Functions of the topic arithmetic.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.arithmetic import (
    ABS,
    ACOS,
    ACOSH,
    ADD2,
    ADD_N,
    ADD_SCALAR,
    ASIN,
    ASINH,
    ATAN,
    ATAN2,
    ATANH,
    BC_ADD2,
    BIT_SHIFT,
    CEIL,
    CLIP_GRAD_BY_NORM,
    CLIP_GRAD_BY_VALUE,
    COS,
    COSH,
    DIV2,
    EQUAL,
    EQUAL_SCALAR,
    ERF,
    EXP,
    FLOOR,
    GREATER,
    GREATER_EQUAL,
    GREATER_EQUAL_SCALAR,
    GREATER_SCALAR,
    ISINF,
    ISNAN,
    LESS,
    LESS_EQUAL,
    LESS_EQUAL_SCALAR,
    LESS_SCALAR,
    LOG,
    LOGICAL_AND,
    LOGICAL_AND_SCALAR,
    LOGICAL_NOT,
    LOGICAL_OR,
    LOGICAL_OR_SCALAR,
    LOGICAL_XOR,
    LOGICAL_XOR_SCALAR,
    MAXIMUM2,
    MAXIMUM_SCALAR,
    MINIMUM2,
    MINIMUM_SCALAR,
    MOD2,
    MUL2,
    MUL_N,
    MUL_SCALAR,
    NOT_EQUAL,
    NOT_EQUAL_SCALAR,
    POW2,
    POW_SCALAR,
    R_DIV_SCALAR,
    R_POW_SCALAR,
    R_SUB_SCALAR,
    RESET_INF,
    RESET_NAN,
    ROUND,
    SIGN,
    SIN,
    SINH,
    SPECS,
    SUB2,
    TAN,
    WHERE,
)


def add2(x0=None, x1=None, inplace=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Add two arrays element by element, with broadcasting.

    y = x0 + x1

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        inplace: Let the result be written over the first input.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape common shape of the inputs.

    Example:
        F.add2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [2.5, 3.5]

    Spec: function_spec.yaml, entry Add2
    """
    if surplus or unknown:
        refuse(ADD2, surplus, unknown)
    return apply(ADD2, (x0, x1), {"inplace": inplace}, outputs)


def add_n(*x, n_outputs=-1, outputs=None, **unknown):
    """Add any number of arrays of one shape element by element.

    y = x_1 + x_2 + ... + x_n

    Args:
        *x: Terms, all of the same shape. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Sum. Shape of x.

    Notes:
        Half precision inputs are added in float32.

    Example:
        F.add_n(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [2.5, 3.5]

    Spec: function_spec.yaml, entry AddN
    """
    if unknown:
        refuse(ADD_N, (), unknown)
    return apply(ADD_N, x, {}, outputs)


def bc_add2(x0=None, x1=None, inplace=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Add two arrays element by element, with broadcasting.

    y = x0 + x1

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        inplace: Let the result be written over the first input.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape common shape of the inputs.

    Notes:
        The same as add2, kept for files and programs that name it.

    Example:
        F.bc_add2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [2.5, 3.5]

    Spec: function_spec.yaml, entry BcAdd2
    """
    if surplus or unknown:
        refuse(BC_ADD2, surplus, unknown)
    return apply(BC_ADD2, (x0, x1), {"inplace": inplace}, outputs)


def sub2(x0=None, x1=None, inplace=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Subtract the second array from the first element by element, with broadcasting.

    y = x0 - x1

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        inplace: Let the result be written over the first input.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape common shape of the inputs.

    Example:
        F.sub2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [-1.5, -4.5]

    Spec: function_spec.yaml, entry Sub2
    """
    if surplus or unknown:
        refuse(SUB2, surplus, unknown)
    return apply(SUB2, (x0, x1), {"inplace": inplace}, outputs)


def mul2(x0=None, x1=None, inplace=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Multiply two arrays element by element, with broadcasting.

    y = x0 x1

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        inplace: Let the result be written over the first input.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape common shape of the inputs.

    Example:
        F.mul2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, -2]

    Spec: function_spec.yaml, entry Mul2
    """
    if surplus or unknown:
        refuse(MUL2, surplus, unknown)
    return apply(MUL2, (x0, x1), {"inplace": inplace}, outputs)


def mul_n(*x, n_outputs=-1, outputs=None, **unknown):
    """Multiply any number of arrays of one shape element by element.

    y = x_1 x_2 ... x_n

    Args:
        *x: Factors, all of the same shape. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Product. Shape of x.

    Notes:
        The gradient multiplies the other factors and never divides, so it is exact where factors are 0. Half precision
        inputs are multiplied in float32.

    Example:
        F.mul_n(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, -2]

    Spec: function_spec.yaml, entry MulN
    """
    if unknown:
        refuse(MUL_N, (), unknown)
    return apply(MUL_N, x, {}, outputs)


def div2(x0=None, x1=None, inplace=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Divide the first array by the second element by element, with broadcasting.

    y = x0 / x1

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        inplace: Let the result be written over the first input.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape common shape of the inputs.

    Notes:
        Division by 0 gives an infinity, or NaN for 0 / 0.

    Example:
        F.div2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0.25, -0.125]

    Spec: function_spec.yaml, entry Div2
    """
    if surplus or unknown:
        refuse(DIV2, surplus, unknown)
    return apply(DIV2, (x0, x1), {"inplace": inplace}, outputs)


def pow2(x0=None, x1=None, inplace=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Raise the first array to the power of the second element by element, with broadcasting.

    y = x0 ^ x1

    Args:
        x0: Base. Shape any.
        x1: Exponent. Shape any.
        inplace: Let the result be written over the first input.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape common shape of the inputs.

    Notes:
        0 ^ 0 is 1. A negative base with a fractional exponent gives NaN. The gradient of the exponent is NaN for a
        negative base and 0 for the base 0; the gradient of the base is 0 where both operands are 0.

    Example:
        F.pow2(nn.NdArray.from_numpy_array([2.0, 4.0]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [4, 256]

    Spec: function_spec.yaml, entry Pow2
    """
    if surplus or unknown:
        refuse(POW2, surplus, unknown)
    return apply(POW2, (x0, x1), {"inplace": inplace}, outputs)


def add_scalar(x=None, val=1.0, inplace=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Add a number to every element.

    y = x + val

    Args:
        x: Operand. Shape any.
        val: Term.
        inplace: Let the result be written over the first input.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.add_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=1)  # [1.5, 0.5]

    Spec: function_spec.yaml, entry AddScalar
    """
    if surplus or unknown:
        refuse(ADD_SCALAR, surplus, unknown)
    return apply(ADD_SCALAR, (x,), {"val": val, "inplace": inplace}, outputs)


def mul_scalar(x=None, val=1.0, inplace=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Multiply every element by a number.

    y = val x

    Args:
        x: Operand. Shape any.
        val: Factor.
        inplace: Let the result be written over the first input.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.mul_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=3)  # [1.5, -1.5]

    Spec: function_spec.yaml, entry MulScalar
    """
    if surplus or unknown:
        refuse(MUL_SCALAR, surplus, unknown)
    return apply(MUL_SCALAR, (x,), {"val": val, "inplace": inplace}, outputs)


def pow_scalar(x=None, val=1.0, inplace=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Raise every element to the power of a number.

    y = x ^ val

    Args:
        x: Base. Shape any.
        val: Exponent.
        inplace: Let the result be written over the first input.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        Negative elements with a fractional exponent give NaN. With val = 0 the result is 1 and the gradient 0
        everywhere.

    Example:
        F.pow_scalar(nn.NdArray.from_numpy_array([2.0, 4.0]), val=2)  # [4, 16]

    Spec: function_spec.yaml, entry PowScalar
    """
    if surplus or unknown:
        refuse(POW_SCALAR, surplus, unknown)
    return apply(POW_SCALAR, (x,), {"val": val, "inplace": inplace}, outputs)


def r_sub_scalar(x=None, val=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Subtract every element from a number.

    y = val - x

    Args:
        x: Operand. Shape any.
        val: Number that is subtracted from.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.r_sub_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=1)  # [0.5, 1.5]

    Spec: function_spec.yaml, entry RSubScalar
    """
    if surplus or unknown:
        refuse(R_SUB_SCALAR, surplus, unknown)
    return apply(R_SUB_SCALAR, (x,), {"val": val}, outputs)


def r_div_scalar(x=None, val=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Divide a number by every element.

    y = val / x

    Args:
        x: Divisor. Shape any.
        val: Dividend.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.r_div_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=1)  # [2, -2]

    Spec: function_spec.yaml, entry RDivScalar
    """
    if surplus or unknown:
        refuse(R_DIV_SCALAR, surplus, unknown)
    return apply(R_DIV_SCALAR, (x,), {"val": val}, outputs)


def r_pow_scalar(x=None, val=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Raise a number to the power of every element.

    y = val ^ x

    Args:
        x: Exponent. Shape any.
        val: Base.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        The gradient is NaN for a negative base and 0 for the base 0.

    Example:
        F.r_pow_scalar(nn.NdArray.from_numpy_array([2.0, 4.0]), val=2)  # [4, 16]

    Spec: function_spec.yaml, entry RPowScalar
    """
    if surplus or unknown:
        refuse(R_POW_SCALAR, surplus, unknown)
    return apply(R_POW_SCALAR, (x,), {"val": val}, outputs)


def sign(x=None, alpha=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the sign of every element, with a gradient that passes straight through.

    y = 1 (x > 0), alpha (x = 0), -1 (x < 0)

    Args:
        x: Operand. Shape any.
        alpha: Value at x = 0.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        The gradient is that of the identity (straight-through estimator). NaN stays NaN.

    Example:
        F.sign(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, -1]

    References:
        Y. Bengio, N. Leonard, A. Courville (2013), Estimating or propagating gradients through stochastic neurons.

    Spec: function_spec.yaml, entry Sign
    """
    if surplus or unknown:
        refuse(SIGN, surplus, unknown)
    return apply(SIGN, (x,), {"alpha": alpha}, outputs)


def minimum2(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the smaller of two elements, with broadcasting.

    y = min(x0, x1)

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape common shape of the inputs.

    Notes:
        Where both are equal the gradient goes to x1. NaN in either input gives NaN, and gets the gradient; of two, that
        of x0.

    Example:
        F.minimum2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0.5, -0.5]

    Spec: function_spec.yaml, entry Minimum2
    """
    if surplus or unknown:
        refuse(MINIMUM2, surplus, unknown)
    return apply(MINIMUM2, (x0, x1), {}, outputs)


def maximum2(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the larger of two elements, with broadcasting.

    y = max(x0, x1)

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape common shape of the inputs.

    Notes:
        Where both are equal the gradient goes to x1. NaN in either input gives NaN, and gets the gradient; of two, that
        of x0.

    Example:
        F.maximum2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [2, 4]

    Spec: function_spec.yaml, entry Maximum2
    """
    if surplus or unknown:
        refuse(MAXIMUM2, surplus, unknown)
    return apply(MAXIMUM2, (x0, x1), {}, outputs)


def minimum_scalar(x=None, val=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Limit every element from above by a number.

    y = min(x, val)

    Args:
        x: Operand. Shape any.
        val: Upper limit.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        The gradient is 0 where x = val. NaN stays NaN.

    Example:
        F.minimum_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]

    Spec: function_spec.yaml, entry MinimumScalar
    """
    if surplus or unknown:
        refuse(MINIMUM_SCALAR, surplus, unknown)
    return apply(MINIMUM_SCALAR, (x,), {"val": val}, outputs)


def maximum_scalar(x=None, val=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Limit every element from below by a number.

    y = max(x, val)

    Args:
        x: Operand. Shape any.
        val: Lower limit.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        The gradient is 0 where x = val. NaN stays NaN.

    Example:
        F.maximum_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 1]

    Spec: function_spec.yaml, entry MaximumScalar
    """
    if surplus or unknown:
        refuse(MAXIMUM_SCALAR, surplus, unknown)
    return apply(MAXIMUM_SCALAR, (x,), {"val": val}, outputs)


def logical_and(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where both operands are true and 0 elsewhere, with broadcasting.

    y = x0 and x1

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape common shape of the inputs.

    Notes:
        Every element but 0 counts as true, NaN too.

    Example:
        F.logical_and(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, 1]

    Spec: function_spec.yaml, entry LogicalAnd
    """
    if surplus or unknown:
        refuse(LOGICAL_AND, surplus, unknown)
    return apply(LOGICAL_AND, (x0, x1), {}, outputs)


def logical_or(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where at least one operand is true and 0 elsewhere, with broadcasting.

    y = x0 or x1

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape common shape of the inputs.

    Notes:
        Every element but 0 counts as true, NaN too.

    Example:
        F.logical_or(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, 1]

    Spec: function_spec.yaml, entry LogicalOr
    """
    if surplus or unknown:
        refuse(LOGICAL_OR, surplus, unknown)
    return apply(LOGICAL_OR, (x0, x1), {}, outputs)


def logical_xor(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where exactly one operand is true and 0 elsewhere, with broadcasting.

    y = x0 xor x1

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape common shape of the inputs.

    Notes:
        Every element but 0 counts as true, NaN too.

    Example:
        F.logical_xor(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0, 0]

    Spec: function_spec.yaml, entry LogicalXor
    """
    if surplus or unknown:
        refuse(LOGICAL_XOR, surplus, unknown)
    return apply(LOGICAL_XOR, (x0, x1), {}, outputs)


def equal(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the first operand is equal to the second and 0 elsewhere, with broadcasting.

    y = [x0 = x1]

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape common shape of the inputs.

    Notes:
        A comparison with NaN gives 0. Integers are compared exactly, whatever the context computes in.

    Example:
        F.equal(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0, 0]

    Spec: function_spec.yaml, entry Equal
    """
    if surplus or unknown:
        refuse(EQUAL, surplus, unknown)
    return apply(EQUAL, (x0, x1), {}, outputs)


def not_equal(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the first operand differs from the second and 0 elsewhere, with broadcasting.

    y = [x0 != x1]

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape common shape of the inputs.

    Notes:
        A comparison with NaN gives 1. Integers are compared exactly, whatever the context computes in.

    Example:
        F.not_equal(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, 1]

    Spec: function_spec.yaml, entry NotEqual
    """
    if surplus or unknown:
        refuse(NOT_EQUAL, surplus, unknown)
    return apply(NOT_EQUAL, (x0, x1), {}, outputs)


def greater_equal(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the first operand is greater than or equal to the second and 0 elsewhere, with broadcasting.

    y = [x0 >= x1]

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape common shape of the inputs.

    Notes:
        A comparison with NaN gives 0. Integers are compared exactly, whatever the context computes in.

    Example:
        F.greater_equal(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0, 0]

    Spec: function_spec.yaml, entry GreaterEqual
    """
    if surplus or unknown:
        refuse(GREATER_EQUAL, surplus, unknown)
    return apply(GREATER_EQUAL, (x0, x1), {}, outputs)


def greater(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the first operand is greater than the second and 0 elsewhere, with broadcasting.

    y = [x0 > x1]

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape common shape of the inputs.

    Notes:
        A comparison with NaN gives 0. Integers are compared exactly, whatever the context computes in.

    Example:
        F.greater(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0, 0]

    Spec: function_spec.yaml, entry Greater
    """
    if surplus or unknown:
        refuse(GREATER, surplus, unknown)
    return apply(GREATER, (x0, x1), {}, outputs)


def less_equal(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the first operand is less than or equal to the second and 0 elsewhere, with broadcasting.

    y = [x0 <= x1]

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape common shape of the inputs.

    Notes:
        A comparison with NaN gives 0. Integers are compared exactly, whatever the context computes in.

    Example:
        F.less_equal(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, 1]

    Spec: function_spec.yaml, entry LessEqual
    """
    if surplus or unknown:
        refuse(LESS_EQUAL, surplus, unknown)
    return apply(LESS_EQUAL, (x0, x1), {}, outputs)


def less(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the first operand is less than the second and 0 elsewhere, with broadcasting.

    y = [x0 < x1]

    Args:
        x0: First operand. Shape any.
        x1: Second operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape common shape of the inputs.

    Notes:
        A comparison with NaN gives 0. Integers are compared exactly, whatever the context computes in.

    Example:
        F.less(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1, 1]

    Spec: function_spec.yaml, entry Less
    """
    if surplus or unknown:
        refuse(LESS, surplus, unknown)
    return apply(LESS, (x0, x1), {}, outputs)


def logical_and_scalar(x0=None, val=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the element and val are true and 0 elsewhere.

    y = x0 and val

    Args:
        x0: Operand. Shape any.
        val: Second operand.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Notes:
        Every element but 0 counts as true, NaN too.

    Example:
        F.logical_and_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=True)  # [1, 1]

    Spec: function_spec.yaml, entry LogicalAndScalar
    """
    if surplus or unknown:
        refuse(LOGICAL_AND_SCALAR, surplus, unknown)
    return apply(LOGICAL_AND_SCALAR, (x0,), {"val": val}, outputs)


def logical_or_scalar(x0=None, val=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the element or val is true and 0 elsewhere.

    y = x0 or val

    Args:
        x0: Operand. Shape any.
        val: Second operand.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Notes:
        Every element but 0 counts as true, NaN too.

    Example:
        F.logical_or_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=False)  # [1, 1]

    Spec: function_spec.yaml, entry LogicalOrScalar
    """
    if surplus or unknown:
        refuse(LOGICAL_OR_SCALAR, surplus, unknown)
    return apply(LOGICAL_OR_SCALAR, (x0,), {"val": val}, outputs)


def logical_xor_scalar(x0=None, val=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where exactly one of the element and val is true and 0 elsewhere.

    y = x0 xor val

    Args:
        x0: Operand. Shape any.
        val: Second operand.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Notes:
        Every element but 0 counts as true, NaN too.

    Example:
        F.logical_xor_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]), val=True)  # [0, 0]

    Spec: function_spec.yaml, entry LogicalXorScalar
    """
    if surplus or unknown:
        refuse(LOGICAL_XOR_SCALAR, surplus, unknown)
    return apply(LOGICAL_XOR_SCALAR, (x0,), {"val": val}, outputs)


def equal_scalar(x0=None, val=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the element is equal to a number and 0 elsewhere.

    y = [x0 = val]

    Args:
        x0: Operand. Shape any.
        val: Number to compare with.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Notes:
        A comparison with NaN gives 0. Integers are compared exactly, whatever the context computes in.

    Example:
        F.equal_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0, 0]

    Spec: function_spec.yaml, entry EqualScalar
    """
    if surplus or unknown:
        refuse(EQUAL_SCALAR, surplus, unknown)
    return apply(EQUAL_SCALAR, (x0,), {"val": val}, outputs)


def not_equal_scalar(x0=None, val=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the element differs from a number and 0 elsewhere.

    y = [x0 != val]

    Args:
        x0: Operand. Shape any.
        val: Number to compare with.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Notes:
        A comparison with NaN gives 1. Integers are compared exactly, whatever the context computes in.

    Example:
        F.not_equal_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 1]

    Spec: function_spec.yaml, entry NotEqualScalar
    """
    if surplus or unknown:
        refuse(NOT_EQUAL_SCALAR, surplus, unknown)
    return apply(NOT_EQUAL_SCALAR, (x0,), {"val": val}, outputs)


def greater_equal_scalar(x0=None, val=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the element is greater than or equal to a number and 0 elsewhere.

    y = [x0 >= val]

    Args:
        x0: Operand. Shape any.
        val: Number to compare with.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Notes:
        A comparison with NaN gives 0. Integers are compared exactly, whatever the context computes in.

    Example:
        F.greater_equal_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0, 0]

    Spec: function_spec.yaml, entry GreaterEqualScalar
    """
    if surplus or unknown:
        refuse(GREATER_EQUAL_SCALAR, surplus, unknown)
    return apply(GREATER_EQUAL_SCALAR, (x0,), {"val": val}, outputs)


def greater_scalar(x0=None, val=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the element is greater than a number and 0 elsewhere.

    y = [x0 > val]

    Args:
        x0: Operand. Shape any.
        val: Number to compare with.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Notes:
        A comparison with NaN gives 0. Integers are compared exactly, whatever the context computes in.

    Example:
        F.greater_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0, 0]

    Spec: function_spec.yaml, entry GreaterScalar
    """
    if surplus or unknown:
        refuse(GREATER_SCALAR, surplus, unknown)
    return apply(GREATER_SCALAR, (x0,), {"val": val}, outputs)


def less_equal_scalar(x0=None, val=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the element is less than or equal to a number and 0 elsewhere.

    y = [x0 <= val]

    Args:
        x0: Operand. Shape any.
        val: Number to compare with.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Notes:
        A comparison with NaN gives 0. Integers are compared exactly, whatever the context computes in.

    Example:
        F.less_equal_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 1]

    Spec: function_spec.yaml, entry LessEqualScalar
    """
    if surplus or unknown:
        refuse(LESS_EQUAL_SCALAR, surplus, unknown)
    return apply(LESS_EQUAL_SCALAR, (x0,), {"val": val}, outputs)


def less_scalar(x0=None, val=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the element is less than a number and 0 elsewhere.

    y = [x0 < val]

    Args:
        x0: Operand. Shape any.
        val: Number to compare with.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Notes:
        A comparison with NaN gives 0. Integers are compared exactly, whatever the context computes in.

    Example:
        F.less_scalar(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 1]

    Spec: function_spec.yaml, entry LessScalar
    """
    if surplus or unknown:
        refuse(LESS_SCALAR, surplus, unknown)
    return apply(LESS_SCALAR, (x0,), {"val": val}, outputs)


def logical_not(x0=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the element is 0 and 0 elsewhere.

    y = not x0

    Args:
        x0: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Notes:
        NaN counts as true.

    Example:
        F.logical_not(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0, 0]

    Spec: function_spec.yaml, entry LogicalNot
    """
    if surplus or unknown:
        refuse(LOGICAL_NOT, surplus, unknown)
    return apply(LOGICAL_NOT, (x0,), {}, outputs)


def isnan(x0=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the element is NaN and 0 elsewhere.

    y = [x0 is NaN]

    Args:
        x0: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Example:
        F.isnan(nn.NdArray.from_numpy_array([1.0, float('nan')]))  # [0, 1]

    Spec: function_spec.yaml, entry IsNaN
    """
    if surplus or unknown:
        refuse(ISNAN, surplus, unknown)
    return apply(ISNAN, (x0,), {}, outputs)


def isinf(x0=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give 1 where the element is an infinity of either sign and 0 elsewhere.

    y = [x0 is infinite]

    Args:
        x0: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape of x0.

    Example:
        F.isinf(nn.NdArray.from_numpy_array([1.0, float('inf')]))  # [0, 1]

    Spec: function_spec.yaml, entry IsInf
    """
    if surplus or unknown:
        refuse(ISINF, surplus, unknown)
    return apply(ISINF, (x0,), {}, outputs)


def reset_nan(x0=None, val=0.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Replace NaN by a number.

    y = val (x0 is NaN), x0 (otherwise)

    Args:
        x0: Operand. Shape any.
        val: Replacement.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x0.

    Notes:
        No gradient flows to replaced elements.

    Example:
        F.reset_nan(nn.NdArray.from_numpy_array([1.0, float('nan')]))  # [1, 0]

    Spec: function_spec.yaml, entry ResetNaN
    """
    if surplus or unknown:
        refuse(RESET_NAN, surplus, unknown)
    return apply(RESET_NAN, (x0,), {"val": val}, outputs)


def reset_inf(x0=None, val=0.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Replace infinities of both signs by a number.

    y = val (x0 is infinite), x0 (otherwise)

    Args:
        x0: Operand. Shape any.
        val: Replacement.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x0.

    Notes:
        No gradient flows to replaced elements. NaN stays.

    Example:
        F.reset_inf(nn.NdArray.from_numpy_array([1.0, float('inf')]))  # [1, 0]

    Spec: function_spec.yaml, entry ResetInf
    """
    if surplus or unknown:
        refuse(RESET_INF, surplus, unknown)
    return apply(RESET_INF, (x0,), {"val": val}, outputs)


def where(condition=None, x_true=None, x_false=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Choose between two arrays by a condition.

    y = x_true (condition != 0), x_false (otherwise)

    Args:
        condition: True where it is not 0. Its axes are the leading axes of the other inputs. Shape (N_1, ..., N_k).
        x_true: Taken where the condition is true. Shape (N_1, ..., N_k, M_1, ..., M_l).
        x_false: Taken elsewhere. Shape (N_1, ..., N_k, M_1, ..., M_l).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Chosen elements. Shape (N_1, ..., N_k, M_1, ..., M_l).

    Notes:
        The condition gets no gradient.

    Example:
        F.where(nn.NdArray.from_numpy_array([1, 0]), nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0.5, 4]

    Spec: function_spec.yaml, entry Where
    """
    if surplus or unknown:
        refuse(WHERE, surplus, unknown)
    return apply(WHERE, (condition, x_true, x_false), {}, outputs)


def abs(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the absolute value of every element.

    y = |x|

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        The gradient at 0 is 1.

    Example:
        F.abs(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, 0.5]

    Spec: function_spec.yaml, entry Abs
    """
    if surplus or unknown:
        refuse(ABS, surplus, unknown)
    return apply(ABS, (x,), {}, outputs)


def exp(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Raise e to the power of every element.

    y = exp(x)

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.exp(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1.65, 0.607]

    Spec: function_spec.yaml, entry Exp
    """
    if surplus or unknown:
        refuse(EXP, surplus, unknown)
    return apply(EXP, (x,), {}, outputs)


def log(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the natural logarithm of every element.

    y = ln x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        0 gives minus infinity, negative elements give NaN.

    Example:
        F.log(nn.NdArray.from_numpy_array([1.0, 2.0]))  # [0, 0.693]

    Spec: function_spec.yaml, entry Log
    """
    if surplus or unknown:
        refuse(LOG, surplus, unknown)
    return apply(LOG, (x,), {}, outputs)


def round(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Round every element to the nearest integer, halves away from 0.

    y = sgn(x) floor(|x| + 1/2)

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        The gradient is that of the identity (straight-through estimator).

    Example:
        F.round(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, -1]

    Spec: function_spec.yaml, entry Round
    """
    if surplus or unknown:
        refuse(ROUND, surplus, unknown)
    return apply(ROUND, (x,), {}, outputs)


def ceil(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Round every element up to an integer.

    y = the least integer that is not below x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        The gradient is that of the identity (straight-through estimator).

    Example:
        F.ceil(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 0]

    Spec: function_spec.yaml, entry Ceil
    """
    if surplus or unknown:
        refuse(CEIL, surplus, unknown)
    return apply(CEIL, (x,), {}, outputs)


def floor(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Round every element down to an integer.

    y = the greatest integer that is not above x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        The gradient is that of the identity (straight-through estimator).

    Example:
        F.floor(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0, -1]

    Spec: function_spec.yaml, entry Floor
    """
    if surplus or unknown:
        refuse(FLOOR, surplus, unknown)
    return apply(FLOOR, (x,), {}, outputs)


def sin(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the sine of every element.

    y = sin x

    Args:
        x: Angle in radians. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.sin(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.479, -0.479]

    Spec: function_spec.yaml, entry Sin
    """
    if surplus or unknown:
        refuse(SIN, surplus, unknown)
    return apply(SIN, (x,), {}, outputs)


def cos(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the cosine of every element.

    y = cos x

    Args:
        x: Angle in radians. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.cos(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.878, 0.878]

    Spec: function_spec.yaml, entry Cos
    """
    if surplus or unknown:
        refuse(COS, surplus, unknown)
    return apply(COS, (x,), {}, outputs)


def tan(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the tangent of every element.

    y = tan x

    Args:
        x: Angle in radians. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.tan(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.546, -0.546]

    Spec: function_spec.yaml, entry Tan
    """
    if surplus or unknown:
        refuse(TAN, surplus, unknown)
    return apply(TAN, (x,), {}, outputs)


def sinh(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the hyperbolic sine of every element.

    y = sinh x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.sinh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.521, -0.521]

    Spec: function_spec.yaml, entry Sinh
    """
    if surplus or unknown:
        refuse(SINH, surplus, unknown)
    return apply(SINH, (x,), {}, outputs)


def cosh(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the hyperbolic cosine of every element.

    y = cosh x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.cosh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1.13, 1.13]

    Spec: function_spec.yaml, entry Cosh
    """
    if surplus or unknown:
        refuse(COSH, surplus, unknown)
    return apply(COSH, (x,), {}, outputs)


def asin(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the inverse sine of every element.

    y = arcsin x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Angle in [-pi/2, pi/2]. Shape of x.

    Notes:
        Elements outside [-1, 1] give NaN; the gradient at -1 and 1 is infinite.

    Example:
        F.asin(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.524, -0.524]

    Spec: function_spec.yaml, entry ASin
    """
    if surplus or unknown:
        refuse(ASIN, surplus, unknown)
    return apply(ASIN, (x,), {}, outputs)


def acos(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the inverse cosine of every element.

    y = arccos x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Angle in [0, pi]. Shape of x.

    Notes:
        Elements outside [-1, 1] give NaN; the gradient at -1 and 1 is infinite.

    Example:
        F.acos(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1.05, 2.09]

    Spec: function_spec.yaml, entry ACos
    """
    if surplus or unknown:
        refuse(ACOS, surplus, unknown)
    return apply(ACOS, (x,), {}, outputs)


def atan(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the inverse tangent of every element.

    y = arctan x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Angle in (-pi/2, pi/2). Shape of x.

    Example:
        F.atan(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.464, -0.464]

    Spec: function_spec.yaml, entry ATan
    """
    if surplus or unknown:
        refuse(ATAN, surplus, unknown)
    return apply(ATAN, (x,), {}, outputs)


def atan2(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the angle of the point (x1, x0) in the plane, with broadcasting.

    y = the angle between the positive first axis and the vector (x1, x0)

    Args:
        x0: Second coordinate (ordinate). Shape any.
        x1: First coordinate (abscissa). Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Angle in [-pi, pi]. Shape common shape of the inputs.

    Notes:
        The gradient at the origin is NaN.

    Example:
        F.atan2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0.245, -0.124]

    Spec: function_spec.yaml, entry ATan2
    """
    if surplus or unknown:
        refuse(ATAN2, surplus, unknown)
    return apply(ATAN2, (x0, x1), {}, outputs)


def asinh(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the inverse hyperbolic sine of every element.

    y = arsinh x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.asinh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.481, -0.481]

    Spec: function_spec.yaml, entry ASinh
    """
    if surplus or unknown:
        refuse(ASINH, surplus, unknown)
    return apply(ASINH, (x,), {}, outputs)


def acosh(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the inverse hyperbolic cosine of every element.

    y = arcosh x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        Elements below 1 give NaN; the gradient at 1 is infinite.

    Example:
        F.acosh(nn.NdArray.from_numpy_array([1.0, 2.0]))  # [0, 1.32]

    Spec: function_spec.yaml, entry ACosh
    """
    if surplus or unknown:
        refuse(ACOSH, surplus, unknown)
    return apply(ACOSH, (x,), {}, outputs)


def atanh(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the inverse hyperbolic tangent of every element.

    y = artanh x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Notes:
        -1 and 1 give infinities, elements beyond them NaN.

    Example:
        F.atanh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.549, -0.549]

    Spec: function_spec.yaml, entry ATanh
    """
    if surplus or unknown:
        refuse(ATANH, surplus, unknown)
    return apply(ATANH, (x,), {}, outputs)


def erf(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Apply the Gauss error function to every element.

    y = 2 / sqrt(pi) times the integral of exp(-t^2) for t from 0 to x

    Args:
        x: Operand. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Result. Shape of x.

    Example:
        F.erf(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.52, -0.52]

    References:
        W. J. Cody (1969), Rational Chebyshev approximations for the error function, Mathematics of Computation 23.

    Spec: function_spec.yaml, entry Erf
    """
    if surplus or unknown:
        refuse(ERF, surplus, unknown)
    return apply(ERF, (x,), {}, outputs)


def mod2(x0=None, x1=None, fmod=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the remainder of a division element by element, with broadcasting.

    y = x0 - q x1, where q is the quotient rounded to an integer

    Args:
        x0: Dividend. Shape any.
        x1: Divisor. Shape any.
        fmod: Round the quotient towards 0, so that the remainder has the sign of the dividend. False: round it down, so
            that integers get the sign of the divisor. Floating inputs behave as if True.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Remainder. Shape common shape of the inputs.

    Notes:
        The gradient holds wherever x0 is not a multiple of x1. A divisor of 0 gives NaN for floating inputs.

    Example:
        F.mod2(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0.5, -0.5]

    Spec: function_spec.yaml, entry Mod2
    """
    if surplus or unknown:
        refuse(MOD2, surplus, unknown)
    return apply(MOD2, (x0, x1), {"fmod": fmod}, outputs)


def bit_shift(x=None, shift=None, direction="LEFT", n_outputs=-1, outputs=None, *surplus, **unknown):
    """Shift the bits of integers, with broadcasting.

    y = x 2^shift (LEFT), floor(x / 2^shift) (RIGHT)

    Args:
        x: Integers. Shape any.
        shift: Integers, the number of bits to shift by; not negative. Shape any.
        direction: LEFT or RIGHT. One of 'LEFT', 'RIGHT'.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Shifted integers of the dtype of x; bits that leave on either side are lost. Shape common shape of the
            inputs.

    Notes:
        Raises DTypeError for inputs that hold floating numbers.

    Example:
        F.bit_shift(nn.NdArray.from_numpy_array([1, 2]), nn.NdArray.from_numpy_array([3, 1])).numpy().tolist()  # [8, 4]

    Spec: function_spec.yaml, entry BitShift
    """
    if surplus or unknown:
        refuse(BIT_SHIFT, surplus, unknown)
    return apply(BIT_SHIFT, (x, shift), {"direction": direction}, outputs)


def clip_grad_by_value(x=None, min=None, max=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Pass the input through, and limit the gradient to an interval.

    y = x, dx = min(max(dy, min), max)

    Args:
        x: Input. Shape any.
        min: Lower limit of the gradient. Shape broadcasts to that of x.
        max: Upper limit of the gradient. Shape broadcasts to that of x.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The input, unchanged. Shape of x.

    Notes:
        The limits get no gradient.

    Example:
        F.clip_grad_by_value(nn.Variable((2, 3)), nn.Variable((2, 3)), nn.Variable((2, 3))).shape  # (2, 3)

    Spec: function_spec.yaml, entry ClipGradByValue
    """
    if surplus or unknown:
        refuse(CLIP_GRAD_BY_VALUE, surplus, unknown)
    return apply(CLIP_GRAD_BY_VALUE, (x, min, max), {}, outputs)


def clip_grad_by_norm(x=None, clip_norm=None, axes=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Pass the input through, and scale the gradient to a given norm.

    y = x, dx = clip_norm dy / ||dy||_2

    Args:
        x: Input. Shape any.
        clip_norm: Euclidean norm that the gradient gets. Default: 1.0.
        axes: Axes over which the norm is taken; default: all.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The input, unchanged. Shape of x.

    Notes:
        A gradient whose norm is smaller is scaled up; a gradient of 0 stays 0.

    Example:
        F.clip_grad_by_norm(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]

    Spec: function_spec.yaml, entry ClipGradByNorm
    """
    if surplus or unknown:
        refuse(CLIP_GRAD_BY_NORM, surplus, unknown)
    return apply(CLIP_GRAD_BY_NORM, (x,), {"clip_norm": clip_norm, "axes": axes}, outputs)


show_signatures(globals(), SPECS)
