"""Operators and methods of Variable and NdArray that compute, bound once when nn_core is imported.

``bound_operators.pyi`` declares them for type checkers.

Operands are numbers, NumPy arrays, NdArrays and Variables. With an NdArray on either side the result is an NdArray, computed
at once. A NumPy array is a constant: it is copied when the operator is called, and converted to the number type of the
context as every operand is. ``+= -= *= /= **=`` change an NdArray in place and give a new Variable for a Variable.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.dispatch.registry import spec_of_api
from nn_core.engine.error_messages.refusal import described, door, real_numbers
from nn_core.engine.graph.apply import apply
from nn_core.engine.graph.imperative import as_one_kind
from nn_core.engine.graph.lazy_subgraph import follows_shapes
from nn_core.engine.graph.lengths import Length, Ratio
from nn_core.errors import ArgumentError, ShapeError, SignatureError
from nn_core.operators.rules.broadcasting import broadcast_shapes
from nn_core.variable import Variable

_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


def _number(name: str, number: Any) -> Any:
    """Return an operand that is a number; an integer may be larger than every float."""
    kind = type(number)
    if kind is float or kind is Ratio:
        return number
    try:
        return float(number) if kind is not Length else number * 1.0
    except OverflowError as error:
        raise ArgumentError(f"{name}: a number must fit into 64 bits, got {described(number)}") from error


def _operand(name: str, other: Any, like: Any) -> Any:
    """`other` as an operand beside `like`: a NumPy array as a constant or a number; NotImplemented for what is none."""
    if isinstance(other, np.ndarray):
        values = real_numbers(name, other)
        return type_of(like).from_numpy_array(values) if values.ndim else values[()]
    return other if isinstance(other, (*_NUMBERS, Variable, NdArray)) else NotImplemented


def _takes_arrays(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Give a binary operator NumPy arrays as constants: outside of `follows_shapes`, which repeats calls as they were."""
    name = function.__name__.removeprefix("_")

    @functools.wraps(function)
    def call(self: Any, other: Any) -> Any:
        operand = _operand(name, other, self)
        return operand if operand is NotImplemented else function(self, operand)

    return call


def _reciprocal(value: float) -> float:
    return 1.0 / value if value else float(np.copysign(np.inf, value))


#: operator: (function of two arrays, function of an array and a number, function of a number and an array);
#: a function of a number is given with what turns the number into its argument.
_ARITHMETIC: dict[str, tuple[str, tuple[str, Callable[[float], float]], tuple[str, Callable[[float], float]]]] = {
    "add": ("add2", ("add_scalar", lambda v: v), ("add_scalar", lambda v: v)),
    "sub": ("sub2", ("add_scalar", lambda v: -v), ("r_sub_scalar", lambda v: v)),
    "mul": ("mul2", ("mul_scalar", lambda v: v), ("mul_scalar", lambda v: v)),
    "truediv": ("div2", ("mul_scalar", _reciprocal), ("r_div_scalar", lambda v: v)),
    "pow": ("pow2", ("pow_scalar", lambda v: v), ("r_pow_scalar", lambda v: v)),
}


def _call(api: str, inputs: tuple[Any, ...], args: dict[str, Any], outputs: Any = None) -> Any:
    return apply(spec_of_api(api), inputs, args, outputs)


def _bind_arithmetic() -> None:
    for name, (both, (right, from_right), (left, from_left)) in _ARITHMETIC.items():
        _bind(name, both, right, from_right, left, from_left)


def _bind(
    name: str,
    both: str,
    right: str,
    from_right: Callable[[float], float],
    left: str,
    from_left: Callable[[float], float],
) -> None:
    forward = _arithmetic(name, both, right, from_right)
    for cls in (Variable, NdArray):
        setattr(cls, f"__{name}__", forward)
        setattr(cls, f"__r{name}__", _arithmetic_reflected(name, forward, left, from_left))
    setattr(NdArray, f"__i{name}__", _arithmetic_in_place(name, both, right, from_right))


def _arithmetic(name: str, both: str, right: str, from_right: Callable[[float], float]) -> Callable[[Any, Any], Any]:
    of_both, of_one = spec_of_api(both), spec_of_api(right)  # once: dynamic graphs call this in each step

    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, (Variable, NdArray)):
            return apply(of_both, (self, other), {})
        if isinstance(other, _NUMBERS):
            return apply(of_one, (self,), {"val": from_right(_number(name, other))})
        operand = _operand(name, other, self)
        return operand if operand is NotImplemented else forward(self, operand)

    return forward


def _arithmetic_reflected(
    name: str, forward: Callable[[Any, Any], Any], left: str, from_left: Callable[[float], float]
) -> Callable[[Any, Any], Any]:
    of_one = spec_of_api(left)

    def reflected(self: Any, other: Any) -> Any:
        if isinstance(other, _NUMBERS):
            return apply(of_one, (self,), {"val": from_left(_number(name, other))})
        operand = _operand(name, other, self)
        if operand is NotImplemented:
            return operand
        return forward(operand, self) if isinstance(operand, (Variable, NdArray)) else reflected(self, operand)

    return reflected


def _arithmetic_in_place(name: str, both: str, right: str, from_right: Callable[[float], float]) -> Callable[[Any, Any], Any]:
    def in_place(self: Any, other: Any) -> Any:
        if isinstance(other, _NUMBERS):
            number = from_right(_number(name, other))
            return _call(right, (self,), {"val": number}, [self])
        if isinstance(other, (Variable, NdArray)):
            return _call(both, (self, other), {}, [self])
        operand = _operand(name, other, self)
        return operand if operand is NotImplemented else in_place(self, operand)

    return in_place


def _negative(self: Any) -> Any:
    """Return the values with their signs turned."""
    return _call("mul_scalar", (self,), {"val": -1.0})


def _positive(self: Any) -> Any:
    """Return the operand itself."""
    return self


@_takes_arrays
@follows_shapes
def _matmul(self: Any, other: Any) -> Any:
    """Matrix product of the last two axes; leading axes are broadcast."""
    if isinstance(other, _NUMBERS):
        return NotImplemented
    a, b = as_one_kind("matmul", self, other)
    squeeze: list[int] = []
    if a.ndim == 1:
        a = _call("reshape", (a,), {"shape": (1, *a.shape)})
        squeeze.append(-2)
    if b.ndim == 1:
        b = _call("reshape", (b,), {"shape": (*b.shape, 1)})
        squeeze.append(-1)
    rank = max(a.ndim, b.ndim)
    try:
        lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ShapeError as error:
        raise ShapeError(f"matmul: leading axes must fit by broadcasting, got {self.shape} and {other.shape}") from error
    a, b = (_broadcast_lead(operand, lead, rank) for operand in (a, b))
    y = _call("batch_matmul", (a, b), {})
    if squeeze:
        kept = [n for i, n in enumerate(y.shape) if i - rank not in squeeze]
        y = _call("reshape", (y,), {"shape": tuple(kept)})
    return y


def _broadcast_lead(operand: Any, lead: tuple[int, ...], rank: int) -> Any:
    padded = (1,) * (rank - operand.ndim) + operand.shape
    if padded != operand.shape:
        operand = _call("reshape", (operand,), {"shape": padded})
    target = (*lead, *padded[-2:])
    return operand if target == padded else _call("broadcast", (operand,), {"shape": target})


def _right_matmul(self: Any, other: Any) -> Any:
    """Return the matrix product with a NumPy array on the left."""
    operand = _operand("matmul", other, self)
    return _matmul(operand, self) if isinstance(operand, (Variable, NdArray)) else NotImplemented


# -- remainders --------------------------------------------------------------------------------------------------------


def _constant(value: float, like: Any) -> Any:
    """Return a number as an operand of the kind of `like`."""
    return type_of(like).from_numpy_array(np.full((1,) * like.ndim, value, np.float32))


def type_of(operand: Any) -> type[Variable] | type[NdArray]:
    """Return the class whose arrays go with `operand`."""
    return NdArray if isinstance(operand, NdArray) else Variable


def _operands(name: str, self: Any, other: Any) -> Any:
    if isinstance(other, _NUMBERS):
        return self, _constant(_number(name, other), self)
    return as_one_kind(name, self, other)


@_takes_arrays
@follows_shapes
def _mod(self: Any, other: Any) -> Any:
    """Return the remainder with the sign of the divisor, as in Python."""
    return _remainder(*_operands("mod", self, other))


def _remainder(x: Any, y: Any) -> Any:
    rest = _call("mod2", (x, y), {})  # of floating-point numbers it has the sign of the dividend
    signs = _call("mul2", (_call("sign", (rest,), {"alpha": 0.0}), _call("sign", (y,), {"alpha": 0.0})), {})
    return rest + y * _call("less_scalar", (signs,), {"val": 0.0})


@_takes_arrays
@follows_shapes
def _floordiv(self: Any, other: Any) -> Any:
    """Return the quotient rounded down, which goes with the remainder: x == (x // y) * y + x % y."""
    return _quotient(*_operands("floordiv", self, other))


def _quotient(x: Any, y: Any) -> Any:
    return _call("round", ((x - _remainder(x, y)) / y,), {})


@_takes_arrays
@follows_shapes
def _divmod(self: Any, other: Any) -> Any:
    """Return the quotient rounded down and the remainder."""
    operands = _operands("divmod", self, other)
    return _quotient(*operands), _remainder(*operands)


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    name = function.__name__.removeprefix("_")

    def reflected(self: Any, other: Any) -> Any:
        operand = _operand(name, other, self)
        if isinstance(operand, _NUMBERS):
            operand = _constant(_number(name, operand), self)
        return operand if operand is NotImplemented else function(operand, self)

    return reflected


# -- comparisons -------------------------------------------------------------------------------------------------------

_COMPARISONS: dict[str, str] = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def _comparison(name: str, api: str) -> Callable[[Any, Any], Any]:
    def compare(self: Any, other: Any) -> Any:
        if isinstance(other, _NUMBERS):
            result = _call(f"{api}_scalar", (self,), {"val": _number(name, other)})
        elif isinstance(other, (Variable, NdArray)):
            result = _call(api, (self, other), {})
        else:
            operand = _operand(name, other, self)
            return operand if operand is NotImplemented else compare(self, operand)
        return _as_truths(result) if isinstance(result, NdArray) else result

    return compare


def _as_truths(array: NdArray) -> NdArray:
    """Return the same array in dtype bool, where it is: so that it is a mask, and no truth value by mistake."""
    latest = array.synced.latest
    if latest is not None and array.synced.pending_fill is None:
        array.readwrite(latest[0], "bool")
    return array


# -- methods -----------------------------------------------------------------------------------------------------------


def _absolute(self: Any) -> Any:
    """Return the magnitudes of the values."""
    return _call("abs", (self,), {})


def _axes_of(self: Any, axis: Any) -> list[Any]:
    if axis is None:
        return list(range(self.ndim))
    return list(axis) if isinstance(axis, (list, tuple)) else [axis]


def _method(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As `door`, for a function that becomes a method called `name`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__name__ = function.__qualname__ = name
        return door(function)

    return decorate


def _reduction(api: str, summary: str) -> Callable[..., Any]:
    @_method(api)
    def reduce(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return _call(api, (self,), {"axes": _axes_of(self, axis), "keep_dims": keepdims})

    reduce.__doc__ = f"""{summary}

    Args:
        axis: Axis or axes to reduce; None: all.
        keepdims: Keep the reduced axes with length 1.
    """
    return reduce


@_method("transpose")
def _transpose(self: Any, *axes: Any) -> Any:
    """Return the axes in another order.

    Args:
        axes: The old place of each axis, as one sequence or one after the other; none: the reverse order.
    """
    order = axes[0] if len(axes) == 1 and isinstance(axes[0], (list, tuple)) else axes
    return _call("transpose", (self,), {"axes": tuple(order) or tuple(reversed(range(self.ndim)))})


@_method("reshape")
def _array_reshape(self: Any, *lengths: Any, shape: Any = None) -> Any:
    """Return the values in another shape (one length may be -1); shares memory.

    Args:
        lengths: the new shape, as one sequence or one length after the other.
        shape: the same as a keyword.
    """
    return _call("reshape", (self,), {"shape": _as_shape(lengths if shape is None else _only(shape, lengths))})


def _only(shape: Any, lengths: Sequence[Any]) -> tuple[Any, ...]:
    """Refuse a shape that is given twice."""
    if lengths:
        raise SignatureError(f"reshape: the shape must be given once, got {tuple(lengths)} and shape={shape}")
    return (shape,)


def _as_shape(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape


@_method("reshape")
def _reshape(self: Any, *lengths: Any, shape: Any = None, unlink: bool = False) -> Any:
    """Return a new variable with the values in another shape (one length may be -1).

    Args:
        lengths: the new shape, as one sequence or one length after the other.
        shape: the same as a keyword.
        unlink: share the data and the gradient instead of adding a function to the graph.
    """
    if shape is not None:
        lengths = _only(shape, lengths)
    if isinstance(lengths[-1], bool):  # as reshape(shape, unlink)
        *lengths, unlink = lengths  # type: ignore[assignment]  # a list serves
    target = _as_shape(lengths)
    if unlink:
        other = self.get_unlinked_variable()
        storage = type(self.storage)(self.data.view(target), self.grad.view(target))
        return type(self).of_storage(storage, other.need_grad)
    return _call("reshape", (self,), {"shape": target})


@_method("bool_fill_")
def _bool_fill(self: Any, mask: Any, value: float) -> Any:
    """Return the elements, with `value` where `mask` is not zero, as a new variable; an NdArray as the mask gives an NdArray.

    No gradient flows through the elements that are replaced.
    """
    return _call("bool_fill", (self, mask), {"value": _number("bool_fill", value)})


#: The common methods of Variable and NdArray, by name.
_SHARED: dict[str, Any] = {
    "__neg__": _negative,
    "__pos__": _positive,
    "__abs__": _absolute,
    "__matmul__": _matmul,
    "__rmatmul__": _right_matmul,
    "__mod__": _mod,
    "__rmod__": _reflected(_mod),
    "__floordiv__": _floordiv,
    "__rfloordiv__": _reflected(_floordiv),
    "__divmod__": _divmod,
    "__rdivmod__": _reflected(_divmod),
    **{f"__{name}__": _comparison(name, api) for name, api in _COMPARISONS.items()},
    "sum": _reduction("sum", "The sum over axes."),
    "mean": _reduction("mean", "The mean over axes."),
    "max": _reduction("max", "The largest elements along axes."),
    "min": _reduction("min", "The smallest elements along axes."),
    "transpose": _transpose,
    "T": property(_transpose, doc="The array with its axes in reverse order."),
}
_OF_ARRAYS: dict[str, Any] = {"reshape": _array_reshape}
_OF_VARIABLES: dict[str, Any] = {"reshape": _reshape, "bool_fill_": _bool_fill, "masked_fill_": _bool_fill}


def bind() -> None:
    """Give Variable and NdArray their operators and methods."""
    _bind_arithmetic()
    for cls in (Variable, NdArray):
        for name, function in _SHARED.items():  # bound, not declared: variable needs no functions
            setattr(cls, name, function)
    for cls, methods in ((NdArray, _OF_ARRAYS), (Variable, _OF_VARIABLES)):
        for name, function in methods.items():
            setattr(cls, name, function)
