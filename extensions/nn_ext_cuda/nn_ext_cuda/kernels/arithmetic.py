"""Arithmetic, comparisons, logic and elementary functions."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import Call, Kernel, Shape
from nn_ext_cuda.codegen.pointwise import Pointwise


def _leading(call: Call) -> Sequence[Shape]:
    """Return the axes of the condition are the leading ones of the other two."""
    condition, x_true, x_false = (desc.shape for desc in call.inputs if desc is not None)
    return condition + (1,) * (len(x_true) - len(condition)), x_true, x_false


def _log_of_base(args: Mapping[str, object]) -> Mapping[str, float]:
    base = float(args["val"])  # type: ignore[arg-type]  # a number by the specification
    return {"log_val": math.log(base) if base > 0 else 0.0 if base == 0 else math.nan}


_ADD2: Final = Pointwise("x0 + x1", {"x0": "dy", "x1": "dy"})

ARITHMETIC: Final[dict[str, Kernel]] = {
    "Add2": _ADD2,
    "BcAdd2": _ADD2,
    "Sub2": Pointwise("x0 - x1", {"x0": "dy", "x1": "-dy"}),
    "Mul2": Pointwise("x0 * x1", {"x0": "dy * x1", "x1": "dy * x0"}),
    "Div2": Pointwise("x0 / x1", {"x0": "dy / x1", "x1": "-dy * y / x1"}),
    "Pow2": Pointwise("power(x0, x1)", {"x0": "dy * power_slope(x0, x1)", "x1": "dy * exponent_slope(x0, y)"}),
    "AddN": Pointwise(" + ".join, {"*": "dy"}),
    "MulN": Pointwise(" * ".join),
    "Maximum2": Pointwise(
        "larger(x0, x1)", {"x0": "takes_larger(x0, x1) ? dy : R(0)", "x1": "takes_larger(x0, x1) ? R(0) : dy"}
    ),
    "Minimum2": Pointwise(
        "smaller(x0, x1)", {"x0": "takes_smaller(x0, x1) ? dy : R(0)", "x1": "takes_smaller(x0, x1) ? R(0) : dy"}
    ),
    "ATan2": Pointwise(
        "atan2(x0, x1)",
        {"x0": "dy / (x0 * x0 + x1 * x1) * x1", "x1": "-dy / (x0 * x0 + x1 * x1) * x0"},
    ),
    "AddScalar": Pointwise("x + val", {"x": "dy"}),
    "MulScalar": Pointwise("x * val", {"x": "dy * val"}),
    "RSubScalar": Pointwise("val - x", {"x": "-dy"}),
    "RDivScalar": Pointwise("val / x", {"x": "-dy * (val / x) / x"}),
    "PowScalar": Pointwise("power(x, val)", {"x": "dy * power_slope(x, val)"}),
    "RPowScalar": Pointwise("pow(val, x)", {"x": "dy * y * log_val"}, settings=_log_of_base),
    "MaximumScalar": Pointwise("larger(x, val)", {"x": "x > val ? dy : R(0)"}),
    "MinimumScalar": Pointwise("smaller(x, val)", {"x": "x < val ? dy : R(0)"}),
    "Sign": Pointwise("sign_or(x, alpha)", {"x": "dy"}),
    "ResetNaN": Pointwise("x0 != x0 ? val : x0", {"x0": "x0 != x0 ? R(0) : dy"}),
    "ResetInf": Pointwise("fabs(x0) == infinity() ? val : x0", {"x0": "fabs(x0) == infinity() ? R(0) : dy"}),
    "IsNaN": Pointwise("x0 != x0"),
    "IsInf": Pointwise("fabs(x0) == infinity()"),
    "Where": Pointwise(
        "condition != 0 ? x_true : x_false",
        {"x_true": "condition != 0 ? dy : R(0)", "x_false": "condition != 0 ? R(0) : dy"},
        align=_leading,
    ),
    "Abs": Pointwise("fabs(x)", {"x": "x < 0 ? -dy : dy"}),
    "Exp": Pointwise("exp(x)", {"x": "dy * y"}),
    "Log": Pointwise("log(x)", {"x": "dy / x"}),
    "Sin": Pointwise("sin(x)", {"x": "dy * cos(x)"}),
    "Cos": Pointwise("cos(x)", {"x": "-dy * sin(x)"}),
    "Tan": Pointwise("tan(x)", {"x": "dy * (1 + y * y)"}),
    "Sinh": Pointwise("sinh(x)", {"x": "dy * cosh(x)"}),
    "Cosh": Pointwise("cosh(x)", {"x": "dy * sinh(x)"}),
    "ASin": Pointwise("asin(x)", {"x": "dy / sqrt((1 - x) * (1 + x))"}),
    "ACos": Pointwise("acos(x)", {"x": "-dy / sqrt((1 - x) * (1 + x))"}),
    "ATan": Pointwise("atan(x)", {"x": "dy / (1 + x * x)"}),
    "ASinh": Pointwise("asinh(x)", {"x": "dy / sqrt(x * x + 1)"}),
    "ACosh": Pointwise("acosh(x)", {"x": "dy / sqrt((x - 1) * (x + 1))"}),
    "ATanh": Pointwise("atanh(x)", {"x": "dy / ((1 - x) * (1 + x))"}),
    "Erf": Pointwise("erf(x)", {"x": "dy * exp(-x * x) * 1.1283791670955126"}),
    "Ceil": Pointwise("ceil(x)", {"x": "dy"}),
    "Floor": Pointwise("floor(x)", {"x": "dy"}),
    "Round": Pointwise("round(x)", {"x": "dy"}),
    "LogicalNot": Pointwise("x0 == 0"),
    "ClipGradByValue": Pointwise("x", {"x": "smaller(larger(dy, min), max)"}),
}

#: Comparisons and logic of two arrays; the form with a scalar has the suffix "Scalar".
_OPERATORS: Final[Mapping[str, str]] = {
    "Equal": "{} == {}",
    "NotEqual": "{} != {}",
    "Greater": "{} > {}",
    "GreaterEqual": "{} >= {}",
    "Less": "{} < {}",
    "LessEqual": "{} <= {}",
    "LogicalAnd": "{} != 0 && {} != 0",
    "LogicalOr": "{} != 0 || {} != 0",
    "LogicalXor": "({} != 0) != ({} != 0)",
}

for _name, _expression in _OPERATORS.items():
    ARITHMETIC[_name] = Pointwise(_expression.format("x0", "x1"))
    ARITHMETIC[f"{_name}Scalar"] = Pointwise(_expression.format("x0", "val"))
