"""The precision in which the reference kernels compute: half precision is widened, and sums are taken in float64."""

from collections.abc import Sequence
from typing import Any

from nn_core.typing import Array, Namespace


def widen(xp: Namespace, x: Array) -> Array:
    """`x` in float32 if it is a narrower floating array, else `x` itself."""
    return x if x.dtype.itemsize >= 4 else x.astype(xp.float32)


def sum_dtype(xp: Namespace, x: Array) -> Any:
    """Return the dtype in which numbers like those of `x` are added up: float64 for real ones, where the library has it.

    NumPy adds the rows of a matrix one after the other, and so do running sums: over a million rows of float32 the result
    would be off by one percent.
    """
    return xp.float64 if x.dtype.kind == "f" and hasattr(xp, "float64") else widen(xp, x).dtype


def sum_of(xp: Namespace, x: Array, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """Return the sum of `x` over some axes, not rounded to the dtype of `x`."""
    axis = tuple(axis) if isinstance(axis, Sequence) else axis
    return xp.sum(x, axis=axis, keepdims=keepdims, dtype=sum_dtype(xp, x))


def mean_of(xp: Namespace, x: Array, axis: int | Sequence[int] | None, count: int) -> Array:
    """Return the sum of `x` over some axes, which stay, divided by `count`; in the dtype of `x`, or float32 for narrower
    ones.
    """
    return (sum_of(xp, x, axis, keepdims=True) / count).astype(widen(xp, x).dtype)
