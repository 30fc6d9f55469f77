"""The matrix products of NumPy."""

import operator
from math import prod
from typing import Any

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import door
from nn_core.engine.graph.imperative import one_kind
from nn_core.engine.graph.lazy_subgraph import follows_shapes
from nn_core.errors import InputTypeError, ShapeError
from nn_core.functions.arithmetic import mul2, mul_scalar
from nn_core.functions.linear import batch_matmul
from nn_core.functions.operand import Operand
from nn_core.functions.reduction import sum as sum_operator
from nn_core.functions.shape import identity, reshape, transpose
from nn_core.variable import Variable

__all__ = ["dot", "matmul"]


@door
def matmul(a: Operand, b: Operand) -> Operand:
    """Multiply matrices like ``a @ b``: over the last two axes, the leading axes are broadcast.

    Args:
        a: Array of shape (..., M, K), or (K,).
        b: Array of shape (..., K, N), or (K,).

    Returns:
        An array of shape (..., M, N); an operand with one axis adds none.

    Example:
        >>> F.matmul(nn.Variable((8, 2, 3)), nn.Variable((3, 4))).shape
        (8, 2, 4)
    """
    for name, operand in (("a", a), ("b", b)):
        if not isinstance(operand, (Variable, NdArray)):
            kind = type(operand).__name__
            raise InputTypeError(f"matmul: {name} must be a Variable or an NdArray, got {kind}")
    y: Operand = operator.matmul(a, b)  # what the operands are
    return y


@door
def dot(a: Operand | float, b: Operand | float, out: Operand | None = None) -> Operand:
    """Multiply like ``numpy.dot``.

    Vectors give their inner product, matrices their matrix product, numbers and 0-d arrays scale the other operand.
    Otherwise it is the sum of products over the last axis of a and the second-to-last axis (or the only one) of b.

    Args:
        a: Array of shape (A_1, ..., A_m, K), or a number; Variable, NdArray or NumPy array.
        b: Array of shape (B_1, ..., K, B_n), or a number; Variable, NdArray or NumPy array.
        out: Takes the result and is returned: an NdArray, or a Variable that becomes the end of the graph.

    Returns:
        An array of shape (A_1, ..., A_m, B_1, ..., B_n); what NumPy gives where neither a nor b is a Variable or an
        NdArray.

    Raises:
        ShapeError: when the axes that are summed over have different lengths, or `out` has another shape.

    Example:
        >>> F.dot(nn.NdArray.from_numpy_array([1.0, 2.0]), nn.NdArray.from_numpy_array([3.0, 4.0])).item()
        11.0
    """
    if not isinstance(a, (Variable, NdArray)) and not isinstance(b, (Variable, NdArray)):
        return _of_numpy(a, b, out)
    y = _product(_wrapped(a, b), _wrapped(b, a))
    if out is None:
        return y
    if out.shape != y.shape:
        raise ShapeError(f"dot: out must have the shape of the result, got {out.shape} for {y.shape}")
    if isinstance(out, Variable) and isinstance(y, Variable):
        out.rewire_on(y)
        return out
    target = out if isinstance(out, NdArray) else out.data
    return identity(y, outputs=[target])


def _of_numpy(a: Any, b: Any, out: Any) -> Any:
    """Return the product of NumPy arrays and numbers, put into `out` if there is one."""
    try:
        y = np.dot(a, b)
    except ValueError as error:
        raise ShapeError(f"dot: a and b must fit, got shapes {np.shape(a)} and {np.shape(b)}") from error
    if out is None:
        return y
    if out.shape != np.shape(y):
        raise ShapeError(f"dot: out must have the shape of the result, got {out.shape} for {np.shape(y)}")
    (out.data if isinstance(out, Variable) else out).data = y
    return out


def _wrapped(value: Any, other: Any) -> Any:
    """Return a NumPy array or a list as an array of the kind of `other`; numbers stay."""
    if isinstance(value, (Variable, NdArray)) or np.ndim(value) == 0:
        return value
    values = np.asarray(value)
    if isinstance(other, NdArray):
        return NdArray.from_numpy_array(values)
    return Variable.from_numpy_array(values, need_grad=False)


@follows_shapes
@one_kind
def _product(a: Operand | float, b: Operand | float) -> Operand:
    if not isinstance(a, (Variable, NdArray)):
        assert isinstance(b, (Variable, NdArray))
        return mul_scalar(b, a)
    if not isinstance(b, (Variable, NdArray)):
        return mul_scalar(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return mul2(a, b)
    length = a.shape[-1]
    if length != b.shape[max(b.ndim - 2, 0)]:
        place = "last" if b.ndim == 1 else "second-to-last"
        raise ShapeError(f"dot: the last axis of a must equal the {place} one of b, got {a.shape} and {b.shape}")
    if a.ndim == 1 and b.ndim == 1:
        return sum_operator(mul2(a, b))
    rest = b.shape[:-2] + b.shape[-1:] if b.ndim > 1 else ()
    if b.ndim > 2:
        b = transpose(b, (b.ndim - 2, *range(b.ndim - 2), b.ndim - 1))
    y = batch_matmul(reshape(a, (prod(a.shape[:-1]), length)), reshape(b, (length, prod(rest))))
    return reshape(y, a.shape[:-1] + rest)
