"""Arithmetic, comparisons, logic and elementary functions element by element."""

from collections.abc import Callable
from typing import Any, Final

from nn_ext_c.emitting.registry import EMITTERS, Call, Emitter, NotExportableError, emitter, reshaped
from nn_ext_c.loops import number
from nn_ext_c.program import Value

_COMPARISONS: Final = {
    "Equal": "==",
    "NotEqual": "!=",
    "GreaterEqual": ">=",
    "Greater": ">",
    "LessEqual": "<=",
    "Less": "<",
    "LogicalAnd": "&&",
    "LogicalOr": "||",
    "LogicalXor": "!=",
}
_BINARY: Final = {
    "Add2": "a + b",
    "BcAdd2": "a + b",
    "Sub2": "a - b",
    "Mul2": "a * b",
    "Div2": "a / b",
    "Pow2": "powf(a, b)",
    "Maximum2": "a > b || isnan(a) ? a : b",
    "Minimum2": "a < b || isnan(a) ? a : b",
    "ATan2": "atan2f(a, b)",
}
_SCALAR: Final = {
    "AddScalar": "a + {v}",
    "MulScalar": "a * {v}",
    "PowScalar": "powf(a, {v})",
    "RSubScalar": "{v} - a",
    "RDivScalar": "{v} / a",
    "RPowScalar": "powf({v}, a)",
    "MaximumScalar": "a < {v} ? {v} : a",
    "MinimumScalar": "a > {v} ? {v} : a",
    "ResetNaN": "isnan(a) ? {v} : a",
    "ResetInf": "isinf(a) ? {v} : a",
}
_UNARY: Final = {
    "Abs": "fabsf(a)",
    "Exp": "expf(a)",
    "Log": "logf(a)",
    "Round": "roundf(a)",
    "Ceil": "ceilf(a)",
    "Floor": "floorf(a)",
    "Sin": "sinf(a)",
    "Cos": "cosf(a)",
    "Tan": "tanf(a)",
    "Sinh": "sinhf(a)",
    "Cosh": "coshf(a)",
    "ASin": "asinf(a)",
    "ACos": "acosf(a)",
    "ATan": "atanf(a)",
    "ASinh": "asinhf(a)",
    "ACosh": "acoshf(a)",
    "ATanh": "atanhf(a)",
    "Erf": "erff(a)",
    "IsNaN": "isnan(a) ? 1.0f : 0.0f",
    "IsInf": "isinf(a) ? 1.0f : 0.0f",
    "LogicalNot": "a != 0.0f ? 0.0f : 1.0f",
    "BinarySigmoid": "a > 0.0f ? 1.0f : 0.0f",
    "BinaryTanh": "a > 0.0f ? 1.0f : -1.0f",
}


def _fixed(expression: str, count: int) -> Emitter:
    return lambda call: call.map(expression, *(call[k] for k in range(count)))


def _scalar(expression: str) -> Emitter:
    return lambda call: call.map(expression.format(v=number(call.args["val"])), call.x)


def _truth(name: str, operand: str) -> str:
    return f"({operand} != 0.0f)" if name.startswith("Logical") else operand


def _comparison(name: str, operator: str) -> tuple[Emitter, Emitter]:
    def emit(call: Call) -> Value:
        return call.map(f"{_truth(name, 'a')} {operator} {_truth(name, 'b')} ? 1.0f : 0.0f", call[0], call[1])

    def emit_scalar(call: Call) -> Value:
        other: Any = call.args["val"]
        operand = number(float(bool(other)) if name.startswith("Logical") else other)
        return call.map(f"{_truth(name, 'a')} {operator} {_truth(name, operand)} ? 1.0f : 0.0f", call.x)

    return emit, emit_scalar


EMITTERS.update({name: _fixed(expression, 2) for name, expression in _BINARY.items()})
EMITTERS.update({name: _fixed(expression, 1) for name, expression in _UNARY.items()})
EMITTERS.update({name: _scalar(expression) for name, expression in _SCALAR.items()})
for _name, _operator in _COMPARISONS.items():
    EMITTERS[_name], EMITTERS[f"{_name}Scalar"] = _comparison(_name, _operator)


def _folded(operate: Callable[[Call, Value, Value], Value]) -> Emitter:
    def emit(call: Call) -> Value:
        total = call.x
        for index in range(1, len(call.inputs)):
            total = operate(call, total, call[index])
        return total

    return emit


EMITTERS["AddN"] = _folded(lambda call, total, x: call.map("a + b", total, x))
EMITTERS["MulN"] = _folded(lambda call, total, x: call.map("a * b", total, x))


@emitter("Identity", "Unlink", "Dropout", "ClipGradByValue", "ClipGradByNorm", "TopKGrad")
def _identity(call: Call) -> Value:
    """Return the computation of inference, in which the masks of Dropout do not exist."""
    if len(call.output_shapes) > 1:
        raise NotExportableError("the mask of a dropout has no value in inference")
    return call.x


@emitter("Sign")
def _sign(call: Call) -> Value:
    return call.map(f"a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : isnan(a) ? a : {number(call.args['alpha'])}", call.x)


@emitter("Where")
def _where(call: Call) -> Value:
    """Return the axes of the condition are the leading ones."""
    extra = len(call[1].shape) - len(call.shape)
    condition = reshaped(call.program, call.name, call.x, call.shape + (1,) * extra)
    return call.map("a != 0.0f ? b : c", condition, call[1], call[2])


@emitter("Mod2")
def _mod2(call: Call) -> Value:
    return call.map("fmodf(a, b)", call[0], call[1])


@emitter("BoolFill")
def _bool_fill(call: Call) -> Value:
    return call.map(f"b != 0.0f ? {number(call.args['value'])} : a", call[0], call[1])
