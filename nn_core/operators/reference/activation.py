"""Reference kernels of activation functions; half precision is computed in float32."""

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from nn_core.operators.reference.precision import sum_of, widen
from nn_core.operators.reference.registry import kernel
from nn_core.typing import Array, Namespace

#: ``expression(xp, x, **args) -> y`` of the shape of x.
_Expression: TypeAlias = Callable[..., Array]


def sigmoid(xp: Namespace, x: Array) -> Array:
    """1 / (1 + exp(-x)) from exponentials of negative numbers only."""
    small = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1 / (1 + small), small / (1 + small))


def softplus(xp: Namespace, x: Array, beta: float = 1.0) -> Array:
    return xp.logaddexp(beta * x, xp.zeros_like(x)) / beta


def elu(xp: Namespace, x: Array, alpha: float, scale: float = 1.0) -> Array:
    return scale * xp.where(x > 0, x, alpha * xp.expm1(xp.where(x > 0, xp.zeros_like(x), x)))


def gelu(xp: Namespace, x: Array) -> Array:
    return 0.5 * x * (1 + xp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def sinc(xp: Namespace, x: Array) -> Array:
    divisor = xp.where(x == 0, 1, x)
    return xp.where(x == 0, 1, xp.sin(x) / divisor)


def relu(xp: Namespace, x: Array) -> Array:
    """0 below 0; NaN and the sign of zero stay."""
    return xp.where(x < 0, xp.zeros_like(x), x)


POINTWISE: Final[Mapping[str, _Expression]] = {
    "ELU": elu,
    "GELU": gelu,
    "HardSigmoid": lambda xp, x: xp.minimum(xp.maximum(0.2 * x + 0.5, 0), 1),
    "HardTanh": lambda xp, x: xp.minimum(xp.maximum(x, -1), 1),
    "LeakyReLU": lambda xp, x, alpha, inplace: xp.where(x > 0, x, alpha * x),
    "LogSigmoid": lambda xp, x: -softplus(xp, -x),
    "Mish": lambda xp, x: x * xp.tanh(softplus(xp, x)),
    "ReLU": lambda xp, x, inplace: relu(xp, x),
    "ReLU6": lambda xp, x: xp.minimum(relu(xp, x), 6),
    "SELU": elu,
    "Sigmoid": sigmoid,
    "Sinc": sinc,
    "SoftPlus": softplus,
    "SoftSign": lambda xp, x: x / (1 + xp.abs(x)),
    "Swish": lambda xp, x: x * sigmoid(xp, x),
    "Tanh": lambda xp, x: xp.tanh(x),
    "TanhShrink": lambda xp, x: x - xp.tanh(x),
}


def _register(name: str, expression: _Expression) -> None:
    @kernel(name)
    def run(xp: Namespace, x: Array, **args: float) -> Array:
        return expression(xp, widen(xp, x), **args)


for _name, _expression in POINTWISE.items():
    _register(_name, _expression)


@kernel("Softmax")
def softmax(xp: Namespace, x: Array, axis: int) -> Array:
    return xp.exp(log_softmax(xp, x, axis))


@kernel("LogSoftmax")
def log_softmax(xp: Namespace, x: Array, axis: int) -> Array:
    if not x.shape[axis]:
        return +x
    wide = widen(xp, x)
    shifted = wide - xp.max(wide, axis=axis, keepdims=True)
    return shifted - xp.log(sum_of(xp, xp.exp(shifted), axis, keepdims=True)).astype(wide.dtype)


@kernel("CReLU")
def crelu(xp: Namespace, x: Array, axis: int) -> Array:
    return xp.concat((relu(xp, x), relu(xp, -x)), axis=axis)


@kernel("CELU")
def celu(xp: Namespace, x: Array, alpha: float, axis: int) -> Array:
    wide = widen(xp, x)
    return xp.concat((elu(xp, wide, alpha), elu(xp, -wide, alpha)), axis=axis)


@kernel("PReLU")
def prelu(xp: Namespace, x0: Array, x1: Array, base_axis: int) -> Array:
    slope = x1.reshape((-1,) + (1,) * (x0.ndim - base_axis - 1)) if x1.size != 1 else x1.reshape(())
    return xp.where(x0 >= 0, x0, slope * x0)
