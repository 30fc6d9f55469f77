"""Reductions with the arguments of NumPy: `axis` is one axis, several, or None for all of them."""

import builtins
from typing import Literal, overload

from nn_core.engine.error_messages.refusal import checked_flag, door
from nn_core.engine.error_messages.whole import takes_whole_numbers
from nn_core.engine.graph.imperative import one_kind
from nn_core.engine.graph.lazy_subgraph import follows_shapes
from nn_core.engine.graph.precision import in_float32
from nn_core.errors import ArgumentError
from nn_core.functions import arithmetic, shape
from nn_core.functions import reduction as operators
from nn_core.functions.composite.axes import Axes, listed
from nn_core.functions.operand import Operand

__all__ = ["argmax", "argmin", "logsumexp", "max", "mean", "min", "norm", "prod", "reduce", "std", "sum", "var"]


@door
def sum(x: Operand, axis: Axes | None = None, keepdims: bool = False) -> Operand:
    """Sum over axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to sum over; None: all.
        keepdims: Keep the reduced axes with length 1.

    Returns:
        The sums.

    Example:
        >>> F.sum(nn.NdArray.from_numpy_array([[1.0, 2.0], [3.0, 4.0]]), axis=0).numpy().tolist()
        [4.0, 6.0]
    """
    return operators.sum(x, axes=listed(axis), keep_dims=keepdims)


@door
def mean(x: Operand, axis: Axes | None = None, keepdims: bool = False) -> Operand:
    """Average over axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to average over; None: all.
        keepdims: Keep the reduced axes with length 1.

    Returns:
        The means.

    Example:
        >>> F.mean(nn.NdArray.from_numpy_array([[1.0, 2.0], [3.0, 4.0]]), axis=1).numpy().tolist()
        [1.5, 3.5]
    """
    return operators.mean(x, axes=listed(axis), keep_dims=keepdims)


@door
def prod(x: Operand, axis: Axes | None = None, keepdims: bool = False) -> Operand:
    """Multiply over axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to multiply over; None: all.
        keepdims: Keep the reduced axes with length 1.

    Returns:
        The products.

    Example:
        >>> F.prod(nn.NdArray.from_numpy_array([[1.0, 2.0], [3.0, 4.0]]), axis=1).numpy().tolist()
        [2.0, 12.0]
    """
    return operators.prod(x, axes=listed(axis), keep_dims=keepdims)


@overload
def max(
    x: Operand,
    axis: Axes | None = None,
    keepdims: bool = False,
    with_index: Literal[False] = False,
    only_index: bool = False,
) -> Operand: ...
@overload
def max(
    x: Operand, axis: Axes | None = None, keepdims: bool = False, *, with_index: bool, only_index: Literal[True]
) -> Operand: ...
@overload
def max(
    x: Operand,
    axis: Axes | None = None,
    keepdims: bool = False,
    *,
    with_index: Literal[True],
    only_index: Literal[False] = False,
) -> tuple[Operand, Operand]: ...
@door
def max(
    x: Operand,
    axis: Axes | None = None,
    keepdims: bool = False,
    with_index: bool = False,
    only_index: bool = False,
) -> Operand | tuple[Operand, ...]:
    """Take the largest element along axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to search; None: all.
        keepdims: Keep the reduced axes with length 1.
        with_index: Return the index too, counted in C order over the reduced axes.
        only_index: Return the index only.

    Returns:
        The maxima; with `with_index` a tuple of maxima and indices; with `only_index` the indices.

    Example:
        >>> values, indices = F.max(nn.NdArray.from_numpy_array([[1.0, 5.0], [3.0, 4.0]]), axis=1, with_index=True)
        >>> values.numpy().tolist(), indices.numpy().tolist()
        ([5.0, 4.0], [1, 1])
    """
    if checked_flag("only_index", only_index):
        return operators.max(x, listed(axis), keepdims, only_index=True)
    if checked_flag("with_index", with_index):
        return operators.max(x, listed(axis), keepdims, with_index=True)
    return operators.max(x, listed(axis), keepdims)


@overload
def min(
    x: Operand,
    axis: Axes | None = None,
    keepdims: bool = False,
    with_index: Literal[False] = False,
    only_index: bool = False,
) -> Operand: ...
@overload
def min(
    x: Operand, axis: Axes | None = None, keepdims: bool = False, *, with_index: bool, only_index: Literal[True]
) -> Operand: ...
@overload
def min(
    x: Operand,
    axis: Axes | None = None,
    keepdims: bool = False,
    *,
    with_index: Literal[True],
    only_index: Literal[False] = False,
) -> tuple[Operand, Operand]: ...
@door
def min(
    x: Operand,
    axis: Axes | None = None,
    keepdims: bool = False,
    with_index: bool = False,
    only_index: bool = False,
) -> Operand | tuple[Operand, ...]:
    """Take the smallest element along axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to search; None: all.
        keepdims: Keep the reduced axes with length 1.
        with_index: Return the index too, counted in C order over the reduced axes.
        only_index: Return the index only.

    Returns:
        The minima; with `with_index` a tuple of minima and indices; with `only_index` the indices.

    Example:
        >>> F.min(nn.NdArray.from_numpy_array([[1.0, 5.0], [3.0, 4.0]]), axis=1).numpy().tolist()
        [1.0, 3.0]
    """
    if checked_flag("only_index", only_index):
        return operators.min(x, listed(axis), keepdims, only_index=True)
    if checked_flag("with_index", with_index):
        return operators.min(x, listed(axis), keepdims, with_index=True)
    return operators.min(x, listed(axis), keepdims)


@door
def argmax(x: Operand, axis: Axes | None = None, keepdims: bool = False) -> Operand:
    """Find the place of the largest element along axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to search; None: all.
        keepdims: Keep the reduced axes with length 1.

    Returns:
        The indices, counted in C order over the reduced axes; the first of equal elements.

    Example:
        >>> F.argmax(nn.NdArray.from_numpy_array([[1.0, 5.0], [7.0, 2.0]]), axis=1).numpy().tolist()
        [1, 0]
    """
    return max(x, axis, keepdims, only_index=True)


@door
def argmin(x: Operand, axis: Axes | None = None, keepdims: bool = False) -> Operand:
    """Find the place of the smallest element along axes.

    Args:
        x: Array of any shape.
        axis: Axis or axes to search; None: all.
        keepdims: Keep the reduced axes with length 1.

    Returns:
        The indices, counted in C order over the reduced axes; the first of equal elements.

    Example:
        >>> F.argmin(nn.NdArray.from_numpy_array([[1.0, 5.0], [7.0, 2.0]]), axis=1).numpy().tolist()
        [0, 1]
    """
    return min(x, axis, keepdims, only_index=True)


@follows_shapes
@one_kind
@takes_whole_numbers
@in_float32
def var(x: Operand, axis: Axes | None = None, keepdims: bool = False, ddof: int = 0) -> Operand:
    """Compute the variance over axes.

    y = sum (x - mean(x))^2 / (n - ddof)

    Args:
        x: Array of any shape.
        axis: Axis or axes to reduce; None: all.
        keepdims: Keep the reduced axes with length 1.
        ddof: What is subtracted from the number n of elements: 0 gives the variance of the values themselves, 1 the
            unbiased estimate.

    Returns:
        The variances.

    Raises:
        ArgumentError: when `ddof` is not less than the number of elements.

    Example:
        >>> F.var(nn.NdArray.from_numpy_array([1.0, 3.0])).item()
        1.0
    """
    axes = listed(axis)
    mean = operators.mean(x, axes=axes, keep_dims=True)
    centred = arithmetic.sub2(x, mean)
    y = operators.mean(arithmetic.mul2(centred, centred), axes=axes, keep_dims=keepdims)
    n = x.size // builtins.max(mean.size, 1)
    if not 0 <= ddof < builtins.max(n, 1):
        raise ArgumentError(f"var: ddof must be from 0 to below the number of elements {n}, got {ddof!r}")
    return y if ddof == 0 else arithmetic.mul_scalar(y, n / (n - ddof))


@one_kind
@takes_whole_numbers
@in_float32
def std(x: Operand, axis: Axes | None = None, keepdims: bool = False, ddof: int = 0) -> Operand:
    """Compute the standard deviation over axes, the root of the variance.

    Args:
        x: Array of any shape.
        axis: Axis or axes to reduce; None: all.
        keepdims: Keep the reduced axes with length 1.
        ddof: What is subtracted from the number of elements, as in `var`.

    Returns:
        The standard deviations. Their gradient is 0 where they are 0.

    Example:
        >>> F.std(nn.NdArray.from_numpy_array([1.0, 5.0])).item()
        2.0
    """
    variance = var(x, axis, keepdims, ddof)
    is_zero = arithmetic.equal_scalar(variance, 0.0)
    root = arithmetic.pow_scalar(arithmetic.add2(variance, is_zero), 0.5)  # of 1 for 0, so that no slope is infinite
    return arithmetic.mul2(root, arithmetic.logical_not(is_zero))


@one_kind
@in_float32
def logsumexp(x: Operand, axis: Axes | None = None, keepdims: bool = False) -> Operand:
    """Compute the logarithm of the sum of exponentials over axes, without overflow.

    y = log(sum exp(x))

    Args:
        x: Array of any shape.
        axis: Axis or axes to reduce; None: all.
        keepdims: Keep the reduced axes with length 1.

    Returns:
        An array without the reduced axes; -inf where all elements are -inf.

    Example:
        >>> f"{F.logsumexp(nn.NdArray.from_numpy_array([1000.0, 1000.0])):.3f}"
        '1000.693'
    """
    axes = listed(axis)
    largest = shape.unlink(operators.max(x, axes, keep_dims=True))
    finite = arithmetic.reset_inf(largest, 0.0)
    sums = operators.sum(arithmetic.exp(arithmetic.sub2(x, finite)), axes=axes, keep_dims=True)
    y = arithmetic.add2(arithmetic.log(sums), finite)
    return y if keepdims else operators.sum(y, axes=axes)


@door
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

    Example:
        >>> F.norm(nn.NdArray.from_numpy_array([[3.0, 4.0], [6.0, 8.0]]), axis=1).numpy().round(3).tolist()
        [5.0, 10.0]
    """
    return operators.norm(x, p=p, axes=listed(axis), keep_dims=keepdims)


@door
def reduce(x: Operand, op: str = "sum") -> Operand:
    """Reduce all elements to one; kept for older programs, which had it before `sum` and `mean`.

    Args:
        x: Array of any shape.
        op: "sum" or "mean".

    Returns:
        An array of shape ().

    Example:
        >>> F.reduce(nn.NdArray.from_numpy_array([1.0, 2.0, 6.0]), op="mean").item()
        3.0
    """
    reductions = {"sum": operators.reduce_sum, "mean": operators.reduce_mean}
    if op not in reductions:
        raise ArgumentError(f"reduce: op must be 'sum' or 'mean', got {op!r}")
    return reductions[op](x)
