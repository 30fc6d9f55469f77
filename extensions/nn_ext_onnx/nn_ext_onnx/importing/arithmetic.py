"""Arithmetic, comparisons and logic element by element."""

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Made, Node, operator
from nn_ext_onnx.importing.values import NARROW, UnsupportedError, is_float, is_whole

_UNARY: Final[dict[str, Callable[[nn.Variable], nn.Variable]]] = {
    "Abs": F.abs,
    "Exp": F.exp,
    "Log": F.log,
    "Sqrt": lambda x: F.pow_scalar(x, 0.5),
    "Reciprocal": lambda x: F.r_div_scalar(x, 1.0),
    "Neg": lambda x: F.mul_scalar(x, -1.0),
    "Sign": lambda x: F.sign(x, alpha=0.0),
    "Ceil": F.ceil,
    "Floor": F.floor,
    "Sin": F.sin,
    "Cos": F.cos,
    "Tan": F.tan,
    "Sinh": F.sinh,
    "Cosh": F.cosh,
    "Asin": F.asin,
    "Acos": F.acos,
    "Atan": F.atan,
    "Asinh": F.asinh,
    "Acosh": F.acosh,
    "Atanh": F.atanh,
    "Erf": F.erf,
    "Not": F.logical_not,
    "IsNaN": F.isnan,
}
_BINARY: Final[dict[str, Callable[[nn.Variable, nn.Variable], nn.Variable]]] = {
    "Add": F.add2,
    "Sub": F.sub2,
    "Mul": F.mul2,
    "Div": F.div2,
    "Pow": F.pow2,
    "Equal": F.equal,
    "Greater": F.greater,
    "GreaterOrEqual": F.greater_equal,
    "Less": F.less,
    "LessOrEqual": F.less_equal,
    "And": F.logical_and,
    "Or": F.logical_or,
    "Xor": F.logical_xor,
}


def _unary(function: Callable[[nn.Variable], nn.Variable]) -> Callable[[Node], Made]:
    return lambda node: function(node.x)


def _binary(function: Callable[[nn.Variable, nn.Variable], nn.Variable]) -> Callable[[Node], Made]:
    return lambda node: function(*_aligned(node))


def _aligned(node: Node) -> tuple[nn.Variable, nn.Variable]:
    """Both inputs; before version 7 the second may belong to axes in the middle of the first."""
    a, b = node.variable(0), node.variable(1)
    if node.opset >= 7 or not node.attr("broadcast", 0) or node.attr("axis") is None:
        return a, b
    axis = node.axis_of(node.attr("axis"))
    return a, F.reshape(b, (*b.shape, *(1,) * (a.ndim - axis - b.ndim)))


for _name, _function in _UNARY.items():
    operator(_name)(_unary(_function))
for _name, _of_two in _BINARY.items():
    operator(_name)(_binary(_of_two))


@operator("Identity", takes_whole=True)
def _identity(node: Node) -> Made:
    return node[0] if node[0].is_known else F.identity(node.x)


@operator("Round")
def _round(node: Node) -> nn.Variable:
    return rounded(node.x)


def rounded(x: nn.Variable) -> nn.Variable:
    """Return the nearest integers; halves go to the even neighbour."""
    low = F.floor(x)
    rest = x - low
    is_odd = F.not_equal_scalar(low - 2 * F.floor(low * 0.5), 0.0)
    up = F.logical_or(F.greater_scalar(rest, 0.5), F.logical_and(F.equal_scalar(rest, 0.5), is_odd))
    return where(F.isinf(x), x, low + up)


@operator("IsInf")
def _is_inf(node: Node) -> nn.Variable:
    found = F.isinf(node.x)
    if not node.attr("detect_positive", 1):
        found = F.logical_and(found, F.less_scalar(node.x, 0.0))
    if not node.attr("detect_negative", 1):
        found = F.logical_and(found, F.greater_scalar(node.x, 0.0))
    return found


def _of_all(function: Callable[[nn.Variable, nn.Variable], nn.Variable], node: Node) -> nn.Variable:
    values = [node.variable(index) for index in range(len(node.inputs))]
    return functools.reduce(function, values) if len(values) > 1 else F.identity(values[0])


@operator("Max")
def _max(node: Node) -> nn.Variable:
    return _of_all(F.maximum2, node)


@operator("Min")
def _min(node: Node) -> nn.Variable:
    return _of_all(F.minimum2, node)


@operator("Sum")
def _sum(node: Node) -> nn.Variable:
    return _of_all(F.add2, node)


@operator("Mean")
def _mean(node: Node) -> nn.Variable:
    return _of_all(F.add2, node) * (1.0 / len(node.inputs))


@operator("Clip")
def _clip(node: Node) -> nn.Variable:
    y = node.x
    for index, name, one, several in ((1, "min", F.maximum_scalar, F.maximum2), (2, "max", F.minimum_scalar, F.minimum2)):
        value = node.optional(index)
        if node.attr(name) is not None:
            y = one(y, node.attr(name))
        elif value is not None:
            y = one(y, node.number(index)) if value.is_known else several(y, value.variable)
    return F.identity(y) if y is node.x else y


@operator("Mod")
def _mod(node: Node) -> nn.Variable:
    """Without fmod the remainder has the sign of the divisor."""
    divisor = node.variable(1)
    rest = F.mod2(node.x, divisor, fmod=True)
    if node.attr("fmod", 0):
        return rest
    is_other = F.logical_and(
        F.not_equal_scalar(rest, 0.0), F.logical_xor(F.less_scalar(rest, 0.0), F.less_scalar(divisor, 0.0))
    )
    return where(is_other, rest + divisor, rest)


@operator("Where")
def _where(node: Node) -> nn.Variable:
    return where(*[node.variable(index) for index in range(3)])


def where(condition: nn.Variable, yes: nn.Variable, no: nn.Variable) -> nn.Variable:
    """Elements of `yes` where `condition` holds, else of `no`; all three are broadcast."""
    shape = np.broadcast_shapes(condition.shape, yes.shape, no.shape)
    return F.where(*[expanded(value, shape) for value in (condition, yes, no)])


def expanded(x: nn.Variable, shape: tuple[int, ...]) -> nn.Variable:
    """Return a variable broadcast to a shape."""
    if x.shape == shape:
        return x
    if x.ndim < len(shape):
        x = F.reshape(x, (*(1,) * (len(shape) - x.ndim), *x.shape))
    return F.broadcast(x, shape)


@operator("Cast")
def _cast(node: Node) -> Any:
    """Floating-point types are all computed in the number type of the context."""
    target, source = node.dtypes[0], node[0].dtype
    if target is None or not (is_float(target) or target.kind == "b") or not _is_number(source):
        raise UnsupportedError(f"numbers of type {source} as {target}")
    return F.not_equal_scalar(node.x, 0.0) if target.kind == "b" else F.identity(node.x)


def _is_number(dtype: np.dtype[Any]) -> bool:
    return is_whole(dtype) or is_float(dtype) or dtype.kind == "b" or dtype.name in NARROW


@operator("Dropout")
def _dropout(node: Node) -> Made:
    """Keep everything, as an inference model does."""
    is_training = bool(node.number(2, False)) if node.opset >= 12 else False
    if is_training and node.number(1, 0.5):
        raise UnsupportedError("training_mode: random numbers of ONNX are not specified")
    return [F.identity(node.x), np.ones(node.shape, dtype=bool if node.opset >= 10 else node[0].dtype)]
