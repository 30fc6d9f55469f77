"""Reductions with the arguments of NumPy: `axis` is one axis, several, or None for all of them."""

from typing import Any

from nn_core.errors import ArgumentError
from nn_core.functions import reduction as operators
from nn_core.functions.composite.axes import Axes, listed
from nn_core.functions.operand import Operand

__all__ = ["max", "mean", "min", "norm", "prod", "reduce", "sum"]


def sum(x: Operand, axis: Axes | None = None, keepdims: bool = False) -> Operand:
    """Sum over axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to sum over; None: all.
        keepdims: Keep the reduced axes with length 1.

    Returns:
        The sums.
    """
    return operators.sum(x, axes=listed(axis), keep_dims=keepdims)


def mean(x: Operand, axis: Axes | None = None, keepdims: bool = False) -> Operand:
    """Average over axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to average over; None: all.
        keepdims: Keep the reduced axes with length 1.

    Returns:
        The means.
    """
    return operators.mean(x, axes=listed(axis), keep_dims=keepdims)


def prod(x: Operand, axis: Axes | None = None, keepdims: bool = False) -> Operand:
    """Multiply over axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to multiply over; None: all.
        keepdims: Keep the reduced axes with length 1.

    Returns:
        The products.
    """
    return operators.prod(x, axes=listed(axis), keep_dims=keepdims)


def max(
    x: Operand, axis: Axes | None = None, keepdims: bool = False, with_index: bool = False, only_index: bool = False
) -> Operand | list[Operand]:
    """Take the largest element along axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to search; None: all.
        keepdims: Keep the reduced axes with length 1.
        with_index: Return the index too, counted in C order over the reduced axes.
        only_index: Return the index only.

    Returns:
        The maxima; with `with_index` a list of maxima and indices; with `only_index` the indices.
    """
    if only_index:
        both: Any = operators.max(x, listed(axis), keepdims, with_index=True)
        index: Operand = both[1]
        return index
    return operators.max(x, listed(axis), keepdims, with_index)


def min(
    x: Operand, axis: Axes | None = None, keepdims: bool = False, with_index: bool = False, only_index: bool = False
) -> Operand | list[Operand]:
    """Take the smallest element along axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to search; None: all.
        keepdims: Keep the reduced axes with length 1.
        with_index: Return the index too, counted in C order over the reduced axes.
        only_index: Return the index only.

    Returns:
        The minima; with `with_index` a list of minima and indices; with `only_index` the indices.
    """
    if only_index:
        both: Any = operators.min(x, listed(axis), keepdims, with_index=True)
        index: Operand = both[1]
        return index
    return operators.min(x, listed(axis), keepdims, with_index)


def norm(x: Operand, p: float | None = None, axis: Axes | None = None, keepdims: bool = False) -> Operand:
    """Compute the p-norm over axes.

    y = (sum |x|^p)^(1/p)

    Args:
        x: Array of any shape.
        p: Order of the norm, at least 1; None: 2.
        axis: Axis or axes to reduce; None: all.
        keepdims: Keep the reduced axes with length 1.

    Returns:
        The norms.
    """
    return operators.norm(x, p=p, axes=listed(axis), keep_dims=keepdims)


def reduce(x: Operand, op: str = "sum") -> Operand:
    """Reduce all elements to one; kept for older programs, which had it before `sum` and `mean`.

    Args:
        x: Array of any shape.
        op: "sum" or "mean".

    Returns:
        An array of shape ().
    """
    reductions = {"sum": operators.reduce_sum, "mean": operators.reduce_mean}
    if op not in reductions:
        raise ArgumentError(f"reduce: op must be 'sum' or 'mean', got {op!r}")
    return reductions[op](x)
