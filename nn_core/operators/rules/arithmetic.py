"""Shapes and gradients of arithmetic, comparisons and elementary functions."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from nn_core.errors import ShapeError
from nn_core.operators.rules.broadcasting import broadcast_shapes, unbroadcast
from nn_core.operators.rules.choosing import chosen
from nn_core.operators.rules.registry import GradientCall, GradientRule, gradient, shape_rule
from nn_core.typing import Shape

_Gradient: TypeAlias = Callable[[], Any]

UNARY: Final[Mapping[str, GradientRule]] = {
    "Abs": lambda F, g: g.grad * (1 - 2 * F.less_scalar(g.x, val=0)),
    "ACos": lambda F, g: -g.grad * F.pow_scalar((1 - g.x) * (1 + g.x), val=-0.5),
    "ACosh": lambda F, g: g.grad * F.pow_scalar((g.x - 1) * (g.x + 1), val=-0.5),
    "AddScalar": lambda F, g: g.grad,
    "ASin": lambda F, g: g.grad * F.pow_scalar((1 - g.x) * (1 + g.x), val=-0.5),
    "ASinh": lambda F, g: g.grad * F.pow_scalar(g.x * g.x + 1, val=-0.5),
    "ATan": lambda F, g: g.grad / (1 + g.x * g.x),
    "ATanh": lambda F, g: g.grad / ((1 - g.x) * (1 + g.x)),
    "Ceil": lambda F, g: g.grad,
    "Cos": lambda F, g: -g.grad * F.sin(g.x),
    "Cosh": lambda F, g: g.grad * F.sinh(g.x),
    "Erf": lambda F, g: g.grad * F.exp(-g.x * g.x) * (2 / math.sqrt(math.pi)),
    "Exp": lambda F, g: g.grad * g.y,
    "Floor": lambda F, g: g.grad,
    "Log": lambda F, g: g.grad / g.x,
    "MaximumScalar": lambda F, g: chosen(F, F.greater_scalar(g.x, val=g.val), g.grad),
    "MinimumScalar": lambda F, g: chosen(F, F.less_scalar(g.x, val=g.val), g.grad),
    "MulScalar": lambda F, g: g.grad * g.val,
    "RDivScalar": lambda F, g: -g.grad * F.r_div_scalar(g.x, val=g.val) / g.x,
    "ResetInf": lambda F, g: chosen(F, 1 - F.isinf(g.x0), g.grad),
    "ResetNaN": lambda F, g: chosen(F, 1 - F.isnan(g.x0), g.grad),
    "Round": lambda F, g: g.grad,
    "RSubScalar": lambda F, g: -g.grad,
    "Sign": lambda F, g: g.grad,
    "Sin": lambda F, g: g.grad * F.cos(g.x),
    "Sinh": lambda F, g: g.grad * F.cosh(g.x),
    "Tan": lambda F, g: g.grad * (1 + g.y * g.y),
}

for _name, _rule in UNARY.items():
    gradient(_name)(_rule)


@gradient("PowScalar")
def pow_scalar(F: Any, g: GradientCall) -> Any:
    if g.val == 0:
        return g.grad * 0
    return g.grad if g.val == 1 else g.grad * F.pow_scalar(g.x, val=g.val - 1) * g.val


@gradient("RPowScalar")
def r_pow_scalar(F: Any, g: GradientCall) -> Any:
    if g.val == 0:
        return g.grad * 0
    return g.grad * g.y * (math.log(g.val) if g.val > 0 else math.nan)


def _of_two(F: Any, g: GradientCall, of_x0: _Gradient, of_x1: _Gradient) -> tuple[Any, Any]:
    """Return the gradients of two operands that were broadcast against each other; only what is wanted is computed."""
    return (
        unbroadcast(F, of_x0(), g.x0.shape) if g.wants("x0") else None,
        unbroadcast(F, of_x1(), g.x1.shape) if g.wants("x1") else None,
    )


@gradient("Add2", "BcAdd2")
def add2(F: Any, g: GradientCall) -> tuple[Any, Any]:
    return _of_two(F, g, lambda: g.grad, lambda: g.grad)


@gradient("Sub2")
def sub2(F: Any, g: GradientCall) -> tuple[Any, Any]:
    return _of_two(F, g, lambda: g.grad, lambda: -g.grad)


@gradient("Mul2")
def mul2(F: Any, g: GradientCall) -> tuple[Any, Any]:
    return _of_two(F, g, lambda: g.grad * g.x1, lambda: g.grad * g.x0)


@gradient("Div2")
def div2(F: Any, g: GradientCall) -> tuple[Any, Any]:
    return _of_two(F, g, lambda: g.grad / g.x1, lambda: -g.grad * g.y / g.x1)


@gradient("Pow2")
def pow2(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """Return a base of 0 becomes 1 where the factor beside it is 0: 0 x^-1 in the first gradient, y log 0 in the second."""
    zero_base = F.equal_scalar(g.x0, val=0)

    def of_base() -> Any:
        return g.grad * g.x1 * F.pow2(g.x0 + zero_base * F.equal_scalar(g.x1, val=0), g.x1 - 1)

    return _of_two(F, g, of_base, lambda: g.grad * g.y * F.log(g.x0 + zero_base))


@gradient("Maximum2")
def maximum2(F: Any, g: GradientCall) -> tuple[Any, Any]:
    return _of_chosen(F, g, F.greater(g.x0, g.x1))


@gradient("Minimum2")
def minimum2(F: Any, g: GradientCall) -> tuple[Any, Any]:
    return _of_chosen(F, g, F.less(g.x0, g.x1))


def _of_chosen(F: Any, g: GradientCall, first: Any) -> tuple[Any, Any]:
    """Return the gradients where the first operand is taken, and of the second elsewhere; NaN is taken, of two the first."""
    first = F.logical_or(first, F.isnan(g.x0))
    return _of_two(F, g, lambda: chosen(F, first, g.grad), lambda: chosen(F, 1 - first, g.grad))


@gradient("ATan2")
def atan2(F: Any, g: GradientCall) -> tuple[Any, Any]:
    scaled = g.grad / (g.x0 * g.x0 + g.x1 * g.x1)
    return _of_two(F, g, lambda: scaled * g.x1, lambda: -scaled * g.x0)


@gradient("Mod2")
def mod2(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """With q the truncated quotient, y = x0 - q x1, and q is constant almost everywhere."""
    return _of_two(F, g, lambda: g.grad, lambda: -g.grad * F.round((g.x0 - g.y) / g.x1))


@shape_rule("AddN", "MulN")
def same_shapes(*shapes: Shape) -> tuple[Shape, ...]:
    if not shapes or any(shape != shapes[0] for shape in shapes):
        given = " and ".join(map(str, shapes)) or "none"
        raise ShapeError(f"all inputs must have the same shape, and there must be one, got {given}")
    return (shapes[0],)


@gradient("AddN")
def add_n(F: Any, g: GradientCall) -> tuple[Any, ...]:
    return (g.grad,) * len(g.x)


@gradient("MulN")
def mul_n(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Return the gradient of a factor is the product of those before it, those after it, and `g.grad`; nothing is divided."""
    after = [g.grad]
    for factor in reversed(g.x[1:]):
        after.append(after[-1] * factor)
    gradients = [after.pop()]
    before = None
    for factor in g.x[:-1]:
        before = factor if before is None else before * factor
        gradients.append(before * after.pop())
    return tuple(gradients)


@shape_rule("Where")
def where_shape(condition: Shape, x_true: Shape, x_false: Shape) -> tuple[Shape, ...]:
    if x_true != x_false:
        raise ShapeError(f"x_true and x_false must have the same shape, got {x_true} and {x_false}")
    if x_true[: len(condition)] != condition:
        raise ShapeError(f"x_true must start with the shape of condition, got {x_true} and {condition}")
    return (x_true,)


@gradient("Where")
def where(F: Any, g: GradientCall) -> tuple[Any, Any, Any]:
    zero = F.constant(val=0, shape=tuple(g.grad.shape))
    return None, F.where(g.condition, g.grad, zero), F.where(g.condition, zero, g.grad)


@shape_rule("ClipGradByValue")
def clip_grad_by_value_shape(x: Shape, low: Shape, high: Shape) -> tuple[Shape, ...]:
    for name, shape in (("min", low), ("max", high)):
        if broadcast_shapes(x, shape) != x:
            raise ShapeError(f"{name} must broadcast to the shape of x, got {shape} and {x}")
    return (x,)


@gradient("ClipGradByValue")
def clip_grad_by_value(F: Any, g: GradientCall) -> tuple[Any, None, None]:
    return F.minimum2(F.maximum2(g.grad, g.min), g.max), None, None


@gradient("ClipGradByNorm")
def clip_grad_by_norm(F: Any, g: GradientCall) -> Any:
    norm = F.norm(g.grad, p=2, axes=g.axes, keep_dims=True)
    return g.grad * (g.clip_norm / (norm + F.equal_scalar(norm, val=0)))
