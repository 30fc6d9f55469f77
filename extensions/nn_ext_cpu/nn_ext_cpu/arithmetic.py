"""Arithmetic, comparisons, logic and elementary functions."""

from collections.abc import Mapping
from typing import Final

from nn_core.ext import Kernel
from nn_ext_cpu.pointwise import Pointwise

_ADD2: Final = Pointwise("y = add x0 x1", {"x0": "dx0 = copy dy", "x1": "dx1 = copy dy"})

ARITHMETIC: Final[dict[str, Kernel]] = {
    "Add2": _ADD2,
    "BcAdd2": _ADD2,
    "Sub2": Pointwise("y = sub x0 x1", {"x0": "dx0 = copy dy", "x1": "dx1 = negative dy"}),
    "Mul2": Pointwise("y = mul x0 x1", {"x0": "dx0 = mul dy x1", "x1": "dx1 = mul dy x0"}),
    "Div2": Pointwise("y = div x0 x1", {"x0": "dx0 = div dy x1", "x1": "dx1 = div_grad dy y x1"}),
    "Maximum2": Pointwise("y = maximum x0 x1", {"x0": "dx0 = mask_gt dy x0 x1", "x1": "dx1 = mask_le dy x0 x1"}),
    "Minimum2": Pointwise("y = minimum x0 x1", {"x0": "dx0 = mask_lt dy x0 x1", "x1": "dx1 = mask_ge dy x0 x1"}),
    "AddScalar": Pointwise("y = add_scalar x ; val", {"x": "dx = copy dy"}),
    "MulScalar": Pointwise("y = mul_scalar x ; val", {"x": "dx = mul_scalar dy ; val"}),
    "RSubScalar": Pointwise("y = rsub_scalar x ; val", {"x": "dx = negative dy"}),
    "RDivScalar": Pointwise("y = rdiv_scalar x ; val", {"x": "dx = rdiv_scalar_grad dy x ; val"}),
    "PowScalar": Pointwise("y = pow_scalar x ; val", {"x": "dx = pow_scalar_grad dy x ; val"}),
    "RPowScalar": Pointwise("y = rpow_scalar x ; val"),
    "MaximumScalar": Pointwise("y = maximum_scalar x ; val", {"x": "dx = mask_gt_scalar dy x ; val"}),
    "MinimumScalar": Pointwise("y = minimum_scalar x ; val", {"x": "dx = mask_lt_scalar dy x ; val"}),
    "Sign": Pointwise("y = sign x ; alpha", {"x": "dx = copy dy"}),
    "ResetNaN": Pointwise("y = reset_nan x0 ; val", {"x0": "dx0 = mask_nan dy x0"}),
    "ResetInf": Pointwise("y = reset_inf x0 ; val", {"x0": "dx0 = mask_inf dy x0"}),
    "Abs": Pointwise("y = abs x", {"x": "dx = abs_grad dy x"}),
    "Exp": Pointwise("y = exp x", {"x": "dx = mul dy y"}),
    "Log": Pointwise("y = log x", {"x": "dx = div dy x"}),
    "Sin": Pointwise("y = sin x", {"x": "c = cos x\ndx = mul dy c"}),
    "Cos": Pointwise("y = cos x", {"x": "s = sin x\ndx = neg_mul dy s"}),
    "Tan": Pointwise("y = tan x", {"x": "dx = tan_grad dy y"}),
    "Sinh": Pointwise("y = sinh x", {"x": "c = cosh x\ndx = mul dy c"}),
    "Cosh": Pointwise("y = cosh x", {"x": "s = sinh x\ndx = mul dy s"}),
    "ASin": Pointwise("y = asin x", {"x": "dx = asin_grad dy x"}),
    "ACos": Pointwise("y = acos x", {"x": "dx = acos_grad dy x"}),
    "ATan": Pointwise("y = atan x", {"x": "dx = atan_grad dy x"}),
    "ASinh": Pointwise("y = asinh x", {"x": "dx = asinh_grad dy x"}),
    "ACosh": Pointwise("y = acosh x", {"x": "dx = acosh_grad dy x"}),
    "ATanh": Pointwise("y = atanh x", {"x": "dx = atanh_grad dy x"}),
    "Erf": Pointwise("y = erf x", {"x": "dx = erf_grad dy x"}),
}

#: Functions whose gradient passes straight through, by the name of their block function.
_STRAIGHT_THROUGH: Final[Mapping[str, str]] = {"Ceil": "ceil", "Floor": "floor", "Round": "round"}

#: Comparisons of two arrays, by the name of their block function; the scalar form has "_scalar" behind it.
_COMPARISONS: Final[Mapping[str, str]] = {
    "Equal": "equal",
    "NotEqual": "not_equal",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "Less": "less",
    "LessEqual": "less_equal",
}

for _name, _function in _STRAIGHT_THROUGH.items():
    ARITHMETIC[_name] = Pointwise(f"y = {_function} x", {"x": "dx = copy dy"})
for _name, _function in _COMPARISONS.items():
    ARITHMETIC[_name] = Pointwise(f"y = {_function} x0 x1")
    ARITHMETIC[f"{_name}Scalar"] = Pointwise(f"y = {_function}_scalar x0 ; val")
for _name in ("And", "Or", "Xor"):
    ARITHMETIC[f"Logical{_name}"] = Pointwise(f"y = logical_{_name.lower()} x0 x1")
ARITHMETIC["LogicalNot"] = Pointwise("y = equal_scalar x0 ; 0")
ARITHMETIC["IsNaN"] = Pointwise("y = isnan x0")
ARITHMETIC["IsInf"] = Pointwise("y = isinf x0")
