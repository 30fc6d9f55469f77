"""Reference kernels of arithmetic, comparisons, logic and elementary functions.

Operators that are one expression are rows of a table. A comparison gives booleans; the caller casts them to 0 and 1.
"""

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from nn_core.errors import DTypeError
from nn_core.operators.reference.precision import widen
from nn_core.operators.reference.registry import kernel
from nn_core.operators.spec.model import INTEGERS
from nn_core.typing import Array, Namespace

_OfArray: TypeAlias = Callable[[Namespace, Array], Array]
_OfArrays: TypeAlias = Callable[[Array, Array], Array]
_OfArrayAndScalar: TypeAlias = Callable[[Array, float], Array]

# Coefficients of Cody (1969), highest power first: erf on [0, 0.46875]; times exp(-x^2), erfc on [0.46875, 4].
_ERF_NUMERATOR: Final = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_ERF_DENOMINATOR: Final = (
    1.0,
    2.36012909523441209e1,
    2.44024637934444173e2,
    1.28261652607737228e3,
    2.84423683343917062e3,
)
_ERFC_NUMERATOR: Final = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_ERFC_DENOMINATOR: Final = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)


def erf(xp: Namespace, x: Array) -> Array:
    """Return the error function, accurate to a few units in the last place of float64.

    Source: W. J. Cody (1969), Rational Chebyshev approximations for the error function. Beyond 4, where erfc is below
    2e-8, the second approximation still has the eight digits that erf = 1 - erfc needs.
    """
    wide = widen(xp, x)
    size = xp.minimum(xp.abs(wide), 6.0)
    near = wide * _polynomial(size * size, _ERF_NUMERATOR) / _polynomial(size * size, _ERF_DENOMINATOR)
    erfc = xp.exp(-size * size) * _polynomial(size, _ERFC_NUMERATOR) / _polynomial(size, _ERFC_DENOMINATOR)
    return xp.where(size <= 0.46875, near, xp.sign(wide) * (1 - erfc))


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Return the polynomial with these coefficients, highest power first, by Horner's rule."""
    return functools.reduce(lambda value, coefficient: value * x + coefficient, coefficients, 0.0 * x)


def _round_half_away(xp: Namespace, x: Array) -> Array:
    """Round to the nearest integer, halves away from zero (exact: no sum that could round comes first)."""
    towards_zero = xp.trunc(x)
    return xp.where(xp.abs(x - towards_zero) >= 0.5, towards_zero + xp.sign(x), towards_zero)


UNARY: Final[Mapping[str, _OfArray]] = {
    "Abs": lambda xp, x: xp.abs(x),
    "ACos": lambda xp, x: xp.acos(x),
    "ACosh": lambda xp, x: xp.acosh(x),
    "ASin": lambda xp, x: xp.asin(x),
    "ASinh": lambda xp, x: xp.asinh(x),
    "ATan": lambda xp, x: xp.atan(x),
    "ATanh": lambda xp, x: xp.atanh(x),
    "Ceil": lambda xp, x: xp.ceil(x),
    "Cos": lambda xp, x: xp.cos(x),
    "Cosh": lambda xp, x: xp.cosh(x),
    "Erf": erf,
    "Exp": lambda xp, x: xp.exp(x),
    "Floor": lambda xp, x: xp.floor(x),
    "IsInf": lambda xp, x0: xp.isinf(x0),
    "IsNaN": lambda xp, x0: xp.isnan(x0),
    "Log": lambda xp, x: xp.log(x),
    "LogicalNot": lambda xp, x0: x0 == 0,
    "Round": _round_half_away,
    "Sin": lambda xp, x: xp.sin(x),
    "Sinh": lambda xp, x: xp.sinh(x),
    "Tan": lambda xp, x: xp.tan(x),
}

BINARY: Final[Mapping[str, _OfArrays]] = {
    "Add2": operator.add,
    "BcAdd2": operator.add,
    "Div2": operator.truediv,
    "Equal": operator.eq,
    "Greater": operator.gt,
    "GreaterEqual": operator.ge,
    "Less": operator.lt,
    "LessEqual": operator.le,
    "LogicalAnd": lambda x0, x1: (x0 != 0) & (x1 != 0),
    "LogicalOr": lambda x0, x1: (x0 != 0) | (x1 != 0),
    "LogicalXor": lambda x0, x1: (x0 != 0) ^ (x1 != 0),
    "Mul2": operator.mul,
    "NotEqual": operator.ne,
    "Sub2": operator.sub,
}


def _comparison(operate: _OfArrayAndScalar) -> _OfArrayAndScalar:
    """Return a comparison with a number that is exact for integers, too."""

    def compare(x: Array, val: float) -> Array:
        dtype = str(x.dtype)
        # float64, in which integers are compared with a fraction, tells all apart from it
        if dtype not in INTEGERS or not float(val).is_integer():
            return operate(x, val)
        signed = dtype.startswith("int")
        highest = 1 if dtype == "bool" else 2 ** (8 * x.dtype.itemsize - signed) - 1
        lowest = -highest - 1 if signed else 0
        if not lowest <= val <= highest:  # outside of what `x` can hold, so that any number answers for all
            return operate(x != x, 1 if val > highest else -1)  # zeros
        return operate(x, int(val))

    return compare


SCALAR: Final[Mapping[str, _OfArrayAndScalar]] = {
    "AddScalar": operator.add,
    "EqualScalar": _comparison(operator.eq),
    "GreaterEqualScalar": _comparison(operator.ge),
    "GreaterScalar": _comparison(operator.gt),
    "LessEqualScalar": _comparison(operator.le),
    "LessScalar": _comparison(operator.lt),
    "LogicalAndScalar": lambda x0, val: (x0 != 0) & bool(val),
    "LogicalOrScalar": lambda x0, val: (x0 != 0) | bool(val),
    "LogicalXorScalar": lambda x0, val: (x0 != 0) ^ bool(val),
    "MulScalar": operator.mul,
    "NotEqualScalar": _comparison(operator.ne),
    "RDivScalar": lambda x, val: val / x,
    "RSubScalar": lambda x, val: val - x,
}


@kernel("Pow2")
def pow2(xp: Namespace, x0: Array, x1: Array, inplace: bool = False) -> Array:
    """As in C, but -inf to a power that is not whole is NaN, as other negative bases are."""
    undefined = (x0 == -xp.inf) & (xp.floor(x1) != x1)
    return xp.where(undefined, xp.asarray(math.nan, dtype=x0.dtype), x0**x1)


@kernel("PowScalar")
def pow_scalar(xp: Namespace, x: Array, val: float, inplace: bool = False) -> Array:
    """As `pow2`."""
    whole = not math.isfinite(val) or float(val).is_integer()
    return x**val if whole else xp.where(x == -xp.inf, xp.asarray(math.nan, dtype=x.dtype), x**val)


@kernel("RPowScalar")
def r_pow_scalar(xp: Namespace, x: Array, val: float, inplace: bool = False) -> Array:
    """As `pow2`."""
    undefined = xp.floor(x) != x
    return val**x if val != -math.inf else xp.where(undefined, xp.asarray(math.nan, dtype=x.dtype), val**x)


def _register_binary(name: str, operate: _OfArrays) -> None:
    @kernel(name)
    def run(xp: Namespace, x0: Array, x1: Array, inplace: bool = False) -> Array:
        return operate(x0, x1)


def _register_scalar(name: str, operate: _OfArrayAndScalar) -> None:
    @kernel(name)
    def run(xp: Namespace, x: Array, val: float, inplace: bool = False) -> Array:
        return operate(x, val)


for _name, _expression in UNARY.items():
    kernel(_name)(_expression)
for _name, _operate in BINARY.items():
    _register_binary(_name, _operate)
for _name, _operate_scalar in SCALAR.items():
    _register_scalar(_name, _operate_scalar)


@kernel("AddN")
def add_n(xp: Namespace, *x: Array) -> Array:
    return functools.reduce(operator.add, [widen(xp, term) for term in x])


@kernel("MulN")
def mul_n(xp: Namespace, *x: Array) -> Array:
    return functools.reduce(operator.mul, [widen(xp, factor) for factor in x])


@kernel("ATan2")
def atan2(xp: Namespace, x0: Array, x1: Array) -> Array:
    return xp.atan2(x0, x1)


@kernel("Maximum2")
def maximum2(xp: Namespace, x0: Array, x1: Array) -> Array:
    return xp.maximum(x0, x1)


@kernel("Minimum2")
def minimum2(xp: Namespace, x0: Array, x1: Array) -> Array:
    return xp.minimum(x0, x1)


@kernel("MaximumScalar")
def maximum_scalar(xp: Namespace, x: Array, val: float) -> Array:
    return xp.maximum(x, val)


@kernel("MinimumScalar")
def minimum_scalar(xp: Namespace, x: Array, val: float) -> Array:
    return xp.minimum(x, val)


@kernel("Sign")
def sign(xp: Namespace, x: Array, alpha: float) -> Array:
    return xp.where(x == 0, alpha, xp.sign(x))


@kernel("ResetNaN")
def reset_nan(xp: Namespace, x0: Array, val: float) -> Array:
    return xp.where(xp.isnan(x0), val, x0)


@kernel("ResetInf")
def reset_inf(xp: Namespace, x0: Array, val: float) -> Array:
    return xp.where(xp.isinf(x0), val, x0)


@kernel("Where")
def where(xp: Namespace, condition: Array, x_true: Array, x_false: Array) -> Array:
    """Return the axes of `condition` are the leading ones of the other two."""
    aligned = condition.reshape(condition.shape + (1,) * (x_true.ndim - condition.ndim))
    return xp.where(aligned != 0, x_true, x_false)


@kernel("Mod2")
def mod2(xp: Namespace, x0: Array, x1: Array, fmod: bool) -> Array:
    floating = "f" in (x0.dtype.kind, x1.dtype.kind)
    return xp.fmod(x0, x1) if fmod or floating else xp.remainder(x0, x1)


@kernel("BitShift")
def bit_shift(xp: Namespace, x: Array, shift: Array, direction: str) -> Array:
    for name, array in (("x", x), ("shift", shift)):
        if array.dtype.kind not in "iu":
            raise DTypeError(f"bit_shift: {name} must hold integers, got {array.dtype}")
    amount = shift.astype(x.dtype)
    return x << amount if direction == "LEFT" else x >> amount


@kernel("ClipGradByValue")
def clip_grad_by_value(xp: Namespace, x: Array, low: Array, high: Array) -> Array:
    """Return the identity; only the gradient is clipped."""
    return +x


@kernel("ClipGradByNorm")
def clip_grad_by_norm(xp: Namespace, x: Array, clip_norm: float, axes: tuple[int, ...]) -> Array:
    """Return the identity; only the gradient is scaled."""
    return +x
