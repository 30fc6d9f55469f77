"""Arithmetic operators of Variable and NdArray, bound once when nn_core is imported.

Operands are numbers, NdArrays and Variables. With an NdArray on either side the result is an NdArray, computed at once.
``+= -= *= /= **=`` change an NdArray in place and give a new Variable for a Variable.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from nn_core.array import NdArray
from nn_core.dispatch.registry import spec_of_api
from nn_core.errors import ArgumentError
from nn_core.graph.apply import apply
from nn_core.variable import Variable

_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


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
    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, _NUMBERS):
            return _call(right, (self,), {"val": from_right(float(other))})
        if isinstance(other, (Variable, NdArray)):
            return _call(both, (self, other), {})
        return _refuse(name, other)

    def reflected(self: Any, other: Any) -> Any:
        if isinstance(other, _NUMBERS):
            return _call(left, (self,), {"val": from_left(float(other))})
        return _refuse(name, other)

    def in_place(self: Any, other: Any) -> Any:
        if isinstance(other, _NUMBERS):
            return _call(right, (self,), {"val": from_right(float(other))}, [self])
        if isinstance(other, (Variable, NdArray)):
            return _call(both, (self, other), {}, [self])
        return _refuse(name, other)

    for cls in (Variable, NdArray):
        setattr(cls, f"__{name}__", forward)
        setattr(cls, f"__r{name}__", reflected)
    setattr(NdArray, f"__i{name}__", in_place)


def _refuse(name: str, other: Any) -> Any:
    if isinstance(other, np.ndarray):
        raise ArgumentError(
            f"{name}: operands must be numbers, Variables or NdArrays, got ndarray of shape {other.shape}\n"
            "  hint: wrap it with nn_core.Variable.from_numpy_array or nn_core.NdArray.from_numpy_array"
        )
    return NotImplemented


def _negative(self: Any) -> Any:
    """The values with their signs turned."""
    return _call("mul_scalar", (self,), {"val": -1.0})


def _positive(self: Any) -> Any:
    """The operand itself."""
    return self


def _matmul(self: Any, other: Any) -> Any:
    """Matrix product of the last two axes; leading axes are broadcast."""
    if not isinstance(other, (Variable, NdArray)):
        return _refuse("matmul", other)
    a, b = self, other
    squeeze: list[int] = []
    if a.ndim == 1:
        a = _call("reshape", (a,), {"shape": (1, *a.shape)})
        squeeze.append(-2)
    if b.ndim == 1:
        b = _call("reshape", (b,), {"shape": (*b.shape, 1)})
        squeeze.append(-1)
    rank = max(a.ndim, b.ndim)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
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


def _reshape(self: Any, shape: Any, unlink: bool = False) -> Any:
    """A new variable with the values in another shape (one length may be -1).

    Args:
        shape: the new shape.
        unlink: share the data and the gradient instead of adding a function to the graph.
    """
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    if unlink:
        other = self.get_unlinked_variable()
        cell = type(self.cell)(self.data.view(shape), self.grad.view(shape))
        return type(self).of_cell(cell, other.need_grad)
    return _call("reshape", (self,), {"shape": tuple(shape)})


def _bool_fill(self: Any, mask: Any, value: float) -> Any:
    """A new variable in which the elements where `mask` is not zero are `value`; no gradient flows through them."""
    if isinstance(mask, NdArray):
        mask = Variable.of_cell(type(self.cell)(mask), False)
    return _call("bool_fill", (self, mask), {"value": float(value)})


def bind() -> None:
    """Give Variable and NdArray their operators."""
    _bind_arithmetic()
    for cls in (Variable, NdArray):
        setattr(cls, "__neg__", _negative)  # noqa: B010  # operators are bound, not declared: variable needs no functions
        setattr(cls, "__pos__", _positive)  # noqa: B010
        setattr(cls, "__matmul__", _matmul)  # noqa: B010
    Variable.reshape = _reshape  # type: ignore[attr-defined]
    Variable.bool_fill_ = _bool_fill  # type: ignore[attr-defined]
    Variable.masked_fill_ = _bool_fill  # type: ignore[attr-defined]
