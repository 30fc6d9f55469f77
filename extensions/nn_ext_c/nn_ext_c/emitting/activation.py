"""Activations."""

import math
from collections.abc import Callable
from typing import Any, Final

from nn_ext_c.emitting.registry import EMITTERS, Call, Emitter, emitter, reshaped
from nn_ext_c.loops import number
from nn_ext_c.program import Value

SIGMOID: Final = "1.0f / (1.0f + expf(-a))"
#: log(1 + exp(v)) without overflow; NaN stays.
SOFTPLUS: Final = "(fmaxf({v}, 0.0f) + log1pf(expf(-fabsf({v}))))"
_TANH_GELU: Final = f"{number(math.sqrt(2 / math.pi))} * (a + 0.044715f * a * a * a)"

#: Expressions of an element `a`, or functions from the settings to them.
_EXPRESSIONS: Final[dict[str, str | Callable[..., str]]] = {
    "Sigmoid": SIGMOID,
    "Swish": "a / (1.0f + expf(-a))",
    "Tanh": "tanhf(a)",
    "ReLU": lambda inplace: "a < 0.0f ? 0.0f : a",
    "LeakyReLU": lambda alpha, inplace: f"a > 0.0f ? a : {number(alpha)} * a",
    "ELU": lambda alpha: f"a > 0.0f ? a : {number(alpha)} * expm1f(a)",
    "SELU": lambda scale, alpha: f"{number(scale)} * (a > 0.0f ? a : {number(alpha)} * expm1f(a))",
    "GELU": f"0.5f * a * (1.0f + tanhf({_TANH_GELU}))",
    "Mish": f"a * tanhf({SOFTPLUS.format(v='a')})",
    "ReLU6": "a < 0.0f ? 0.0f : a > 6.0f ? 6.0f : a",
    "HardSigmoid": "a < -2.5f ? 0.0f : a > 2.5f ? 1.0f : 0.2f * a + 0.5f",
    "HardTanh": "a < -1.0f ? -1.0f : a > 1.0f ? 1.0f : a",
    "LogSigmoid": f"-{SOFTPLUS.format(v='-a')}",
    "SoftPlus": lambda beta: f"{SOFTPLUS.format(v=f'({number(beta)} * a)')} / {number(beta)}",
    "SoftSign": "a / (1.0f + fabsf(a))",
    "TanhShrink": "a - tanhf(a)",
    "Sinc": "a < 0.0f || a > 0.0f ? sinf(a) / a : a + 1.0f",
}


def _of(expression: str | Callable[..., str]) -> Emitter:
    def emit(call: Call) -> Value:
        return call.map(expression if isinstance(expression, str) else expression(**call.args), call.x)

    return emit


EMITTERS.update({name: _of(expression) for name, expression in _EXPRESSIONS.items()})


@emitter("Softmax")
def _softmax(call: Call) -> Value:
    return softmax(call, call.x, call.args["axis"])


def largest(call: Call, x: Value, axes: list[int]) -> Value:
    """Return the maxima over axes, which stay; NaN where there is one."""
    return call.reduce(axes, "-INFINITY", "total = a > total || isnan(a) ? a : total;", x)


def softmax(call: Call, x: Value, axis: int) -> Value:
    """exp(x) / sum(exp(x)) along an axis, of numbers that are at most 0."""
    axes = [axis % len(x.shape)]
    y = call.map("expf(a - b)", x, largest(call, x, axes))
    return call.map("a / b", y, call.reduce(axes, "0.0f", "total += a;", y))


@emitter("LogSoftmax")
def _log_softmax(call: Call) -> Value:
    axes = [call.args["axis"] % len(call.shape)]
    y = call.map("a - b", call.x, largest(call, call.x, axes))
    return call.map("a - b", y, call.reduce(axes, "0.0f", "total += expf(a);", y, result="logf(total)"))


@emitter("CReLU", "CELU")
def _concatenated(call: Call) -> Value:
    axis = call.args["axis"] % len(call.shape)
    y = call.program.new(call.output_shape)
    settings: dict[str, Any] = {key: value for key, value in call.args.items() if key != "axis"}
    for part, sign in enumerate(("a", "-a")):
        kind = f"{number(settings['alpha'])} * expm1f({sign})" if call.name == "CELU" else "0.0f"
        is_kept = f"{sign} > 0.0f || isnan(a)"
        call.map(f"{is_kept} ? {sign} : {kind}", call.x, into=y.at(axis, part * call.shape[axis], call.shape[axis]))
    return y


@emitter("PReLU")
def _prelu(call: Call) -> Value:
    slope = call[1]
    after = len(call.shape) - call.args["base_axis"] - 1
    shape = (1,) if slope.size == 1 else (slope.shape[0],) + (1,) * after
    return call.map("a >= 0.0f ? a : b * a", call.x, reshaped(call.program, call.name, slope, shape))
