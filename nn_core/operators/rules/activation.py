"""Shapes and gradients of activation functions."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.choosing import chosen
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape


@shape_rule("SoftPlus")
def softplus_shape(x: Shape, beta: float) -> tuple[Shape]:
    """Return the shape of x."""
    if not (beta and math.isfinite(beta)):
        raise ArgumentError(f"beta must be finite and not 0, got {beta}")
    return (x,)


def _elu(F: Any, x: Any, alpha: float) -> Any:
    """Return the derivative of the exponential linear unit; 1 at 0."""
    negative = F.less_scalar(x, val=0)
    return 1 - negative + negative * F.exp(F.minimum_scalar(x, val=0)) * alpha


def _selu(F: Any, g: GradientCall) -> Any:
    """Unlike in ELU, 0 belongs to the exponential part."""
    positive = F.greater_scalar(g.x, val=0)
    return (positive + (1 - positive) * F.exp(F.minimum_scalar(g.x, val=0)) * g.alpha) * g.scale


def _gelu(F: Any, g: GradientCall) -> Any:
    """Multiplied so that the powers of a large x meet the vanishing 1 - t^2 first, and cannot overflow to 0 inf."""
    slope = math.sqrt(2 / math.pi)
    t = F.tanh((g.x + g.x * g.x * g.x * 0.044715) * slope)
    near = F.minimum_scalar(F.maximum_scalar(g.x, val=-20.0), val=20.0)  # t is 1 or -1 from there on
    bell = (1 - t * t) * near
    return (1 + t + bell * slope + bell * near * near * (3 * 0.044715 * slope)) * 0.5


def _mish(F: Any, g: GradientCall) -> Any:
    t = F.tanh(F.softplus(g.x))
    return t + (1 - t * t) * g.x * F.sigmoid(g.x)


def _swish(F: Any, g: GradientCall) -> Any:
    s = F.sigmoid(g.x)
    return s + s * (1 - s) * g.x


def _softsign(F: Any, g: GradientCall) -> Any:
    root = F.r_div_scalar(1 + F.abs(g.x), val=1)
    return root * root


def _sinc(F: Any, g: GradientCall) -> Any:
    """(cos x - sinc x) / x; near 0, where the difference cancels, its Taylor series."""
    x = g.x
    near = F.less_scalar(F.abs(x), val=0.1)
    square = x * x
    series = x * (square * (square * (square * (1 / 45360) - 1 / 840) + 1 / 30) - 1 / 3)
    return F.where(near, series, (F.cos(x) - F.sinc(x)) / (x + near))


#: The derivative that the gradient of y is multiplied by.
DERIVATIVES: Final[Mapping[str, Callable[[Any, GradientCall], Any]]] = {
    "ELU": lambda F, g: _elu(F, g.x, g.alpha),
    "GELU": _gelu,
    "LeakyReLU": lambda F, g: F.greater_scalar(g.x if g.alpha < 0 else g.y, val=0) * (1 - g.alpha) + g.alpha,
    "LogSigmoid": lambda F, g: F.sigmoid(-g.x),
    "Mish": _mish,
    "SELU": _selu,
    "Sigmoid": lambda F, g: g.y * (1 - g.y),
    "Sinc": _sinc,
    "SoftPlus": lambda F, g: F.sigmoid(g.x * g.beta),
    "SoftSign": _softsign,
    "Swish": _swish,
    "Tanh": lambda F, g: 1 - g.y * g.y,
    "TanhShrink": lambda F, g: F.pow_scalar(F.tanh(g.x), val=2),
}


#: The interval in which the derivative is not 0, and its value there.
CHOICES: Final[Mapping[str, tuple[Callable[[Any, GradientCall], Any], float]]] = {
    "HardSigmoid": (lambda F, g: F.less_equal_scalar(F.abs(g.x), val=2.5), 0.2),
    "HardTanh": (lambda F, g: F.less_equal_scalar(F.abs(g.x), val=1), 1),
    "ReLU": (lambda F, g: F.greater_scalar(g.y, val=0), 1),
    "ReLU6": (lambda F, g: F.greater_scalar(g.y, val=0) * F.less_scalar(g.y, val=6), 1),
}


def _register(name: str, derivative: Callable[[Any, GradientCall], Any]) -> None:
    @gradient(name)
    def run(F: Any, g: GradientCall) -> Any:
        return g.grad * derivative(F, g)


def _register_choice(name: str, mask: Callable[[Any, GradientCall], Any], slope: float) -> None:
    @gradient(name)
    def run(F: Any, g: GradientCall) -> Any:
        return chosen(F, mask(F, g), g.grad if slope == 1 else g.grad * slope)


for _name, _derivative in DERIVATIVES.items():
    _register(_name, _derivative)
for _name, _choice in CHOICES.items():
    _register_choice(_name, *_choice)


@gradient("Softmax")
def softmax(F: Any, g: GradientCall) -> Any:
    weighted = g.grad * g.y
    return weighted - g.y * F.sum(weighted, axes=(g.axis,), keep_dims=True)


@gradient("LogSoftmax")
def log_softmax(F: Any, g: GradientCall) -> Any:
    return g.grad - F.exp(g.y) * F.sum(g.grad, axes=(g.axis,), keep_dims=True)


@shape_rule("CReLU", "CELU")
def doubled(x: Shape, axis: int, alpha: float = 1.0) -> tuple[Shape, ...]:
    return ((*x[:axis], 2 * x[axis], *x[axis + 1 :]),)


def _halves(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """Return the gradients of the two parts that were joined along the axis."""
    shape, axis, length = tuple(g.grad.shape), g.axis, g.x.shape[g.axis]
    start, step = [0] * len(shape), (1,) * len(shape)
    stop = [*shape[:axis], length, *shape[axis + 1 :]]
    first = F.slice(g.grad, start=tuple(start), stop=tuple(stop), step=step)
    start[axis] = length
    return first, F.slice(g.grad, start=tuple(start), stop=shape, step=step)


@gradient("CReLU")
def crelu(F: Any, g: GradientCall) -> Any:
    of_positive, of_negative = _halves(F, g)
    return F.where(F.greater_scalar(g.x, val=0), of_positive, -of_negative)


@gradient("CELU")
def celu(F: Any, g: GradientCall) -> Any:
    of_positive, of_negative = _halves(F, g)
    return of_positive * _elu(F, g.x, g.alpha) - of_negative * _elu(F, -g.x, g.alpha)


@shape_rule("PReLU")
def prelu_shape(x0: Shape, x1: Shape, base_axis: int) -> tuple[Shape, ...]:
    channels = x0[base_axis]
    if x1 not in ((), (1,), (channels,)):
        raise ShapeError(f"x1 must have the shape (), (1,) or ({channels},) of the channels of x0, got {x1}")
    return (x0,)


@gradient("PReLU")
def prelu(F: Any, g: GradientCall) -> tuple[Any, Any]:
    positive = F.greater_equal_scalar(g.x0, val=0)
    per_channel = tuple(g.x1.shape) not in ((), (1,))
    dx0 = dx1 = None
    if g.wants("x0"):
        shape = (1,) * g.x0.ndim
        if per_channel:
            shape = (*shape[: g.base_axis], g.x1.shape[0], *shape[g.base_axis + 1 :])
        dx0 = F.where(positive, g.grad, g.grad * F.reshape(g.x1, shape=shape))
    if g.wants("x1"):
        axes = tuple(axis for axis in range(g.x0.ndim) if not (per_channel and axis == g.base_axis))
        dx1 = F.reshape(F.sum(chosen(F, 1 - positive, g.grad * g.x0), axes=axes), shape=tuple(g.x1.shape))
    return dx0, dx1
