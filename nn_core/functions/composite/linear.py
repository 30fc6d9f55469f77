"""The matrix product of NumPy."""

from math import prod

from nn_core.array import NdArray
from nn_core.errors import ArgumentError, ShapeError
from nn_core.functions.arithmetic import mul2, mul_scalar
from nn_core.functions.linear import batch_matmul
from nn_core.functions.operand import Operand
from nn_core.functions.reduction import sum as sum_operator
from nn_core.functions.shape import identity, reshape, transpose
from nn_core.variable import Variable

__all__ = ["dot"]


def dot(a: Operand | float, b: Operand | float, out: Operand | None = None) -> Operand:
    """Multiply like ``numpy.dot``.

    Vectors give their inner product, matrices their matrix product, numbers and 0-d arrays scale the other operand.
    Otherwise it is the sum of products over the last axis of a and the second-to-last axis (or the only one) of b.

    Args:
        a: Array of shape (A_1, ..., A_m, K), or a number.
        b: Array of shape (B_1, ..., K, B_n), or a number.
        out: Takes the result and is returned: an NdArray, or a Variable that becomes the end of the graph.

    Returns:
        An array of shape (A_1, ..., A_m, B_1, ..., B_n).

    Raises:
        ShapeError: when the axes that are summed over have different lengths, or `out` has another shape.
        ArgumentError: when both operands are numbers.
    """
    y = _product(a, b)
    if out is None:
        return y
    if out.shape != y.shape:
        raise ShapeError(f"dot: out must have the shape of the result, got {out.shape} for {y.shape}")
    if isinstance(out, Variable) and isinstance(y, Variable):
        out.rewire_on(y)
        return out
    target = out if isinstance(out, NdArray) else out.data
    return identity(y, outputs=[target])


def _product(a: Operand | float, b: Operand | float) -> Operand:
    if not isinstance(a, (Variable, NdArray)):
        if not isinstance(b, (Variable, NdArray)):
            raise ArgumentError(f"dot: a or b must be a Variable or an NdArray, got {a!r} and {b!r}")
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
