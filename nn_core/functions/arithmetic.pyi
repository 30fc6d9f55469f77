# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand

def add2(
    x0: Operand,
    x1: Operand,
    inplace: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def add_n(*x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def bc_add2(
    x0: Operand,
    x1: Operand,
    inplace: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def sub2(
    x0: Operand,
    x1: Operand,
    inplace: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def mul2(
    x0: Operand,
    x1: Operand,
    inplace: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def mul_n(*x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def div2(
    x0: Operand,
    x1: Operand,
    inplace: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def pow2(
    x0: Operand,
    x1: Operand,
    inplace: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def add_scalar(
    x: Operand,
    val: float = 1.0,
    inplace: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def mul_scalar(
    x: Operand,
    val: float = 1.0,
    inplace: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def pow_scalar(
    x: Operand,
    val: float = 1.0,
    inplace: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def r_sub_scalar(
    x: Operand,
    val: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def r_div_scalar(
    x: Operand,
    val: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def r_pow_scalar(
    x: Operand,
    val: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def sign(x: Operand, alpha: float = 1.0, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def minimum2(x0: Operand, x1: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def maximum2(x0: Operand, x1: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def minimum_scalar(
    x: Operand,
    val: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def maximum_scalar(
    x: Operand,
    val: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def logical_and(x0: Operand, x1: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def logical_or(x0: Operand, x1: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def logical_xor(x0: Operand, x1: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def equal(x0: Operand, x1: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def not_equal(x0: Operand, x1: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def greater_equal(
    x0: Operand,
    x1: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def greater(x0: Operand, x1: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def less_equal(x0: Operand, x1: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def less(x0: Operand, x1: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def logical_and_scalar(
    x0: Operand,
    val: bool,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def logical_or_scalar(
    x0: Operand,
    val: bool,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def logical_xor_scalar(
    x0: Operand,
    val: bool,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def equal_scalar(
    x0: Operand,
    val: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def not_equal_scalar(
    x0: Operand,
    val: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def greater_equal_scalar(
    x0: Operand,
    val: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def greater_scalar(
    x0: Operand,
    val: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def less_equal_scalar(
    x0: Operand,
    val: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def less_scalar(
    x0: Operand,
    val: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def logical_not(x0: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def isnan(x0: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def isinf(x0: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def reset_nan(
    x0: Operand,
    val: float = 0.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def reset_inf(
    x0: Operand,
    val: float = 0.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def where(
    condition: Operand,
    x_true: Operand,
    x_false: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def abs(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def exp(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def log(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def round(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def ceil(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def floor(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def sin(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def cos(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def tan(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def sinh(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def cosh(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def asin(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def acos(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def atan(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def atan2(x0: Operand, x1: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def asinh(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def acosh(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def atanh(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def erf(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def mod2(
    x0: Operand,
    x1: Operand,
    fmod: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def bit_shift(
    x: Operand,
    shift: Operand,
    direction: str = "LEFT",
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def clip_grad_by_value(
    x: Operand,
    min: Operand,
    max: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def clip_grad_by_norm(
    x: Operand,
    clip_norm: float | None = None,
    axes: int | Sequence[int] | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
