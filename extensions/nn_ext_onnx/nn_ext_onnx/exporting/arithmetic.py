"""Arithmetic, comparisons and logic element by element."""

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from nn_core.graph_rewriting import follows_shapes
from nn_ext_onnx.exporting.registry import CONVERTERS, Call, Converter, NotExportableError, converter, expressions
from nn_ext_onnx.exporting.values import BOOL, DOUBLE, INT, Value

#: Operators of one input with another name.
_SAME: Final = {
    "Abs": "Abs",
    "Exp": "Exp",
    "Log": "Log",
    "Ceil": "Ceil",
    "Floor": "Floor",
    "Sin": "Sin",
    "Cos": "Cos",
    "Tan": "Tan",
    "Sinh": "Sinh",
    "Cosh": "Cosh",
    "ASin": "Asin",
    "ACos": "Acos",
    "ATan": "Atan",
    "ASinh": "Asinh",
    "ACosh": "Acosh",
    "ATanh": "Atanh",
    "Erf": "Erf",
    "ClipGradByValue": "Identity",
    "ClipGradByNorm": "Identity",
    "TopKGrad": "Identity",
}
_BINARY: Final = {
    "Add2": "Add",
    "BcAdd2": "Add",
    "Sub2": "Sub",
    "Mul2": "Mul",
    "Div2": "Div",
    "Pow2": "Pow",
    "Minimum2": "Min",
    "Maximum2": "Max",
}
_COMPARISONS: Final = {
    "Equal": "Equal",
    "GreaterEqual": "GreaterOrEqual",
    "Greater": "Greater",
    "LessEqual": "LessOrEqual",
    "Less": "Less",
}
#: The type in which bits are shifted.
_BITS: Final = np.dtype(np.uint64)
_LOGICAL: Final = {"LogicalAnd": "And", "LogicalOr": "Or", "LogicalXor": "Xor"}


def _unary(kind: str) -> Converter:
    return lambda call: call.x.op(kind)


def _binary(kind: str) -> Converter:
    return lambda call: call.x.op(kind, call[1])


def _comparison(kind: str, negated: bool = False) -> Callable[..., Value]:
    def expression(x: Value, other: Any = None, val: Any = None) -> Value:
        x, second = _with_number(x, val) if other is None else _comparable(x, other)
        found = x.compare(kind, second)
        return (found.op("Not") if negated else found).real()

    return expression


def _comparable(x: Value, other: Value) -> tuple[Value, Value]:
    """Return both operands of a comparison: integers as int64, others as floating point."""
    are_integers = x.dtype.kind in "iub" and other.dtype.kind in "iub"
    return (_integers(x), _integers(other)) if are_integers else (x.real(), other.real())


def _with_number(x: Value, val: float) -> tuple[Value, Any]:
    """Return both operands of a comparison with a number; float64 tells an integer from all numbers that are none."""
    if x.dtype.kind not in "iub" or follows_shapes(val):
        return x.real(), val
    if float(val).is_integer() and abs(val) < 2**63:
        return _integers(x), np.int64(val)
    return _integers(x).cast(DOUBLE), np.float64(val)


def _integers(x: Value) -> Value:
    """Return integers of any type that int64 holds."""
    if x.dtype == np.uint64:
        raise NotExportableError("comparisons of uint64, which has numbers that int64 does not have")
    return x.cast(INT)


def _logical(kind: str) -> Callable[..., Value]:
    def expression(x: Value, other: Value | None = None, val: bool = False) -> Value:
        return x.cast(BOOL).op(kind, val if other is None else other.cast(BOOL)).real()

    return expression


CONVERTERS.update({name: _unary(kind) for name, kind in _SAME.items()})
CONVERTERS.update({name: _binary(kind) for name, kind in _BINARY.items()})
for _name, _kind in _COMPARISONS.items():
    expressions({_name: _comparison(_kind), f"{_name}Scalar": _comparison(_kind)})
expressions({"NotEqual": _comparison("Equal", True), "NotEqualScalar": _comparison("Equal", True)})
for _name, _kind in _LOGICAL.items():
    expressions({_name: _logical(_kind), f"{_name}Scalar": _logical(_kind)})


def where(condition: Value, yes: Any, no: Any) -> Value:
    """Return elements of `yes` where `condition` holds, else of `no`; numbers are floating-point."""
    graph = condition.graph
    values = [value if isinstance(value, Value) else graph.constant(value, graph.real) for value in (yes, no)]
    return graph.op("Where", condition, *values, dtype=values[0].dtype)


def round_half_away(x: Value) -> Value:
    """Return the nearest integer, halves away from zero; no sum is rounded."""
    whole = where(x.compare("Less", 0.0), x.op("Ceil"), x.op("Floor"))
    return whole + where((x - whole).op("Abs").compare("GreaterOrEqual", 0.5), x.op("Sign"), 0.0)


def _atan2(y: Value, x: Value) -> Value:
    is_negative = y.compare("Less", 0.0).op("Or", (1.0 / y).compare("Less", 0.0))
    half_turn = where(is_negative, -math.pi, math.pi)
    are_infinite = y.op("IsInf", dtype=BOOL).op("And", x.op("IsInf", dtype=BOOL))
    slope = where(are_infinite, y.op("Sign") * x.op("Sign"), y / x)
    turned = slope.op("Atan") + where(x.compare("Less", 0.0), half_turn, 0.0)
    return where(x.compare("Equal", 0.0), y.op("Sign") * (math.pi / 2), turned)


expressions(
    {
        "AddScalar": lambda x, val, inplace: x + val,
        "MulScalar": lambda x, val, inplace: x * val,
        "PowScalar": lambda x, val, inplace: x**val,
        "RSubScalar": lambda x, val: val - x,
        "RDivScalar": lambda x, val: val / x,
        "RPowScalar": lambda x, val: val**x,
        "MinimumScalar": lambda x, val: x.op("Min", val),
        "MaximumScalar": lambda x, val: x.op("Max", val),
        "Sign": lambda x, alpha: where(x.compare("Equal", 0.0), alpha, x.op("Sign")),
        "Round": round_half_away,
        "ATan2": _atan2,
        "LogicalNot": lambda x: x.cast(BOOL).op("Not").real(),
        "IsNaN": lambda x: x.op("IsNaN", dtype=BOOL).real(),
        "IsInf": lambda x: x.op("IsInf", dtype=BOOL).real(),
        "ResetNaN": lambda x, val: where(x.op("IsNaN", dtype=BOOL), val, x),
        "ResetInf": lambda x, val: where(x.op("IsInf", dtype=BOOL), val, x),
        "AddN": lambda *x: x[0].op("Sum", *x[1:]),
        "MulN": lambda *x: functools.reduce(Value.__mul__, x),
    }
)


@converter("Where")
def _where(call: Call) -> Value:
    """Return the axes of the condition are the leading ones."""
    extra = len(call.shapes[1]) - call.ndim
    condition = call.x.cast(BOOL)
    condition = condition.unsqueeze(*range(call.ndim, call.ndim + extra)) if extra else condition
    return where(condition, call[1], call[2])


@converter("Mod2")
def _mod2(call: Call) -> Value:
    """Return the remainder, in the dtype that holds both operands; integers have 0 where the divisor is 0."""
    x, divisor = in_common(call.x, call[1])
    if x.dtype.kind == "f":
        return x.op("Mod", divisor, fmod=1)
    x, divisor = (value.cast(np.dtype(np.uint8)) if value.dtype == BOOL else value for value in (x, divisor))
    is_zero = divisor.compare("Equal", 0)
    safe = call.graph.op("Where", is_zero, call.graph.constant(1, x.dtype), divisor)
    rest = x.op("Mod", safe, fmod=int(call.args["fmod"]))
    return call.graph.op("Where", is_zero, call.graph.constant(0, x.dtype), rest)


def in_common(x: Value, other: Value) -> tuple[Value, Value]:
    """Return both values in the dtype that holds the numbers of both."""
    dtype = np.result_type(x.dtype, other.dtype)
    return x.cast(dtype), other.cast(dtype)


@converter("BitShift")
def _bit_shift(call: Call) -> Value:
    """Shift unsigned numbers of 64 bits: to the right, -1 - x in the place of negative x."""
    x, by = call.x.cast(_BITS), call[1].cast(_BITS)
    if call.x.dtype.kind == "u":
        return x.op("BitShift", by, direction=call.args["direction"]).cast(call.x.dtype)
    if call.args["direction"] == "LEFT":
        return x.op("BitShift", by, direction="LEFT").cast(call.x.dtype)
    whole = call.x.cast(INT)
    is_negative = whole.compare("Less", 0)
    positive = call.graph.op("Where", is_negative, -1 - whole, whole).cast(_BITS).op("BitShift", by, direction="RIGHT")
    shifted = positive.cast(INT)
    return call.graph.op("Where", is_negative, -1 - shifted, shifted)
