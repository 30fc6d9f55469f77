"""Arithmetic, comparisons, logic and elementary functions."""

from collections.abc import Mapping
from typing import Final

from nn_core.ext import Call, Kernel, Refusal
from nn_ext_cpu.pointwise import MAX_REGISTERS, Pointwise

#: Powers that are cheaper by other functions: the lines before the last, and the last one without its target.
_POWERS: Final[Mapping[float, tuple[list[str], str]]] = {
    0: ([], "fill ; 1"),
    1: ([], "copy x"),
    2: ([], "square x"),
    3: (["s = square x"], "mul s x"),
    0.5: ([], "sqrt x"),
    -0.5: ([], "reciprocal_sqrt x"),
    -1: ([], "reciprocal x"),
}


def _power(call: Call) -> str:
    before, last = _POWERS.get(_exponent(call), ([], "pow_scalar x ; val"))
    return "\n".join([*before, f"y = {last}"])


def _power_gradient(call: Call) -> Mapping[str, str]:
    if _exponent(call) == 2:
        return {"x": "dx = square_grad dy x"}
    if _exponent(call) == 0 or _exponent(call) - 1 not in _POWERS:
        return {"x": "dx = pow_scalar_grad dy x ; val"}
    before, last = _POWERS[_exponent(call) - 1]
    return {"x": "\n".join([*before, f"slope = {last}", "scaled = mul_scalar slope ; val", "dx = mul dy scaled"])}


def _exponent(call: Call) -> float:
    return float(call.args["val"])  # type: ignore[arg-type]  # a number by the specification


def _chain(function: str, names: list[str], target: str) -> str:
    """Lines that join `names` by a function of two arrays; what is between is no array, which could be a narrow one."""
    if len(names) == 1:
        return f"{target} = copy {names[0]}"
    first, *others = names
    targets = [*["joined"] * (len(others) - 1), target]
    sources = [first, *["joined"] * (len(others) - 1)]
    return "\n".join(f"{to} = {function} {of} {name}" for to, of, name in zip(targets, sources, others, strict=True))


def _inputs(call: Call) -> list[str]:
    return [f"x{k}" for k in range(len(call.inputs))]


def _factors(call: Call) -> Mapping[str, str]:
    """Return the gradient of each factor: dy times all others; none where these are too many for one program."""
    names = _inputs(call)
    if 2 * len(names) + 2 >= MAX_REGISTERS:
        return {}
    return {name: _chain("mul", ["dy", *[other for other in names if other != name]], f"d{name}") for name in names}


def _refuse_many(call: Call) -> Refusal | None:
    """Refuse more inputs than a program takes beside the result and what is joined."""
    most = MAX_REGISTERS - 2
    return Refusal(f"takes at most {most} inputs, got {len(call.inputs)}") if len(call.inputs) > most else None


def _refuse_partial_condition(call: Call) -> Refusal | None:
    condition, x_true, _ = call.inputs
    assert condition is not None
    assert x_true is not None
    if condition.shape != x_true.shape:
        return Refusal(f"takes a condition of the shape of x_true, got {condition.shape} and {x_true.shape}")
    return None


def _truth(call: Call) -> int:
    return int(bool(call.args["val"]))


_ADD2: Final = Pointwise("y = add x0 x1", {"x0": "dx0 = copy dy", "x1": "dx1 = copy dy"})

ARITHMETIC: Final[dict[str, Kernel]] = {
    "Add2": _ADD2,
    "BcAdd2": _ADD2,
    "Sub2": Pointwise("y = sub x0 x1", {"x0": "dx0 = copy dy", "x1": "dx1 = negative dy"}),
    "Mul2": Pointwise("y = mul x0 x1", {"x0": "dx0 = mul dy x1", "x1": "dx1 = mul dy x0"}),
    "Div2": Pointwise("y = div x0 x1", {"x0": "dx0 = div dy x1", "x1": "dx1 = div_grad dy y x1"}),
    "Maximum2": Pointwise("y = maximum x0 x1", {"x0": "dx0 = mask_larger dy x0 x1", "x1": "dx1 = mask_not_larger dy x0 x1"}),
    "Minimum2": Pointwise("y = minimum x0 x1", {"x0": "dx0 = mask_smaller dy x0 x1", "x1": "dx1 = mask_not_smaller dy x0 x1"}),
    "AddScalar": Pointwise("y = add_scalar x ; val", {"x": "dx = copy dy"}),
    "MulScalar": Pointwise("y = mul_scalar x ; val", {"x": "dx = mul_scalar dy ; val"}),
    "RSubScalar": Pointwise("y = rsub_scalar x ; val", {"x": "dx = negative dy"}),
    "RDivScalar": Pointwise("y = rdiv_scalar x ; val", {"x": "dx = rdiv_scalar_grad dy x ; val"}),
    "PowScalar": Pointwise(_power, _power_gradient),
    "RPowScalar": Pointwise("y = rpow_scalar x ; val", {"x": "dx = rpow_scalar_grad dy y ; val"}),
    "Pow2": Pointwise(
        "y = pow x0 x1", {"x0": "dx0 = pow_grad dy x0 x1", "x1": "l = log_or_zero x0\nt = mul dy y\ndx1 = mul t l"}
    ),
    "AddN": Pointwise(
        lambda call: _chain("add", _inputs(call), "y"),
        lambda call: {name: f"d{name} = copy dy" for name in _inputs(call)},
        refuse=_refuse_many,
    ),
    "MulN": Pointwise(lambda call: _chain("mul", _inputs(call), "y"), _factors, refuse=_refuse_many),
    "Where": Pointwise(
        "y = select condition x_true x_false",
        {"x_true": "dx_true = mask_nonzero dy condition", "x_false": "dx_false = mask_zero dy condition"},
        refuse=_refuse_partial_condition,
    ),
    "ClipGradByValue": Pointwise("y = copy x", {"x": "t = maximum dy min\ndx = minimum t max"}),
    "Identity": Pointwise("y = copy x", {"x": "dx = copy dy"}),
    "Unlink": Pointwise("y = copy x"),
    "Constant": Pointwise("y = fill ; val"),
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

#: Comparisons of two arrays, by the name of their block function; the scalar form has the suffix "_scalar".
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
ARITHMETIC["LogicalAndScalar"] = Pointwise(lambda call: f"y = not_equal_scalar x0 ; 0\ny = mul_scalar y ; {_truth(call)}")
ARITHMETIC["LogicalOrScalar"] = Pointwise(lambda call: f"y = not_equal_scalar x0 ; 0\ny = maximum_scalar y ; {_truth(call)}")
ARITHMETIC["LogicalXorScalar"] = Pointwise(lambda call: f"y = {('not_equal', 'equal')[_truth(call)]}_scalar x0 ; 0")
ARITHMETIC["LogicalNot"] = Pointwise("y = equal_scalar x0 ; 0")
ARITHMETIC["IsNaN"] = Pointwise("y = isnan x0")
ARITHMETIC["IsInf"] = Pointwise("y = isinf x0")
