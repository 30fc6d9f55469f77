"""Shapes and gradients of reductions and running sums."""

import math
from collections.abc import Callable
from typing import Any

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.choosing import chosen
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape

Axes = tuple[int, ...]


def _kept(x: Shape, axes: Axes) -> Shape:
    """Return the shape of `x` with length 1 on the reduced axes."""
    return tuple(1 if axis in axes else length for axis, length in enumerate(x))


@shape_rule("Sum", "Mean", "Prod")
def reduced(x: Shape, axes: Axes, keep_dims: bool) -> tuple[Shape, ...]:
    if keep_dims:
        return (_kept(x, axes),)
    return (tuple(length for axis, length in enumerate(x) if axis not in axes),)


@shape_rule("Norm")
def norm_shape(x: Shape, p: float, axes: Axes, keep_dims: bool) -> tuple[Shape | None, ...]:
    if not math.isfinite(p):
        raise ArgumentError(f"p must be finite, got {p}")
    return reduced(x, axes, keep_dims)


@shape_rule("Max", "Min")
def extremum(x: Shape, axes: Axes, keep_dims: bool, with_index: bool, only_index: bool) -> tuple[Shape | None, ...]:
    """One output, the value or only its index, or both."""
    if not all(x[axis] for axis in axes):
        raise ShapeError(f"x must have an element along the reduced axes {axes}, got shape {x}")
    (y,) = reduced(x, axes, keep_dims)
    return (None if only_index else y, y if with_index or only_index else None)


@shape_rule("ReduceSum", "ReduceMean")
def scalar(x: Shape) -> tuple[Shape, ...]:
    return ((),)


def _spread(F: Any, value: Any, x: Shape, axes: Axes) -> Any:
    """Repeat a reduced array over the reduced axes, to the shape of the input."""
    kept = _kept(x, axes)
    if tuple(value.shape) != kept:
        value = F.reshape(value, shape=kept)
    return value if kept == tuple(x) else F.broadcast(value, shape=tuple(x))


def _count(x: Shape, axes: Axes) -> int:
    """Return number of elements that one element of the result is made of (at least 1, so that it may divide)."""
    return max(1, math.prod(x[axis] for axis in axes))


@gradient("Sum")
def sum_(F: Any, g: GradientCall) -> Any:
    return _spread(F, g.grad, g.x.shape, g.axes)


@gradient("Mean")
def mean(F: Any, g: GradientCall) -> Any:
    return _spread(F, g.grad / _count(g.x.shape, g.axes), g.x.shape, g.axes)


@gradient("ReduceSum")
def reduce_sum(F: Any, g: GradientCall) -> Any:
    return _spread(F, g.grad, g.x.shape, tuple(range(g.x.ndim)))


@gradient("ReduceMean")
def reduce_mean(F: Any, g: GradientCall) -> Any:
    axes = tuple(range(g.x.ndim))
    return _spread(F, g.grad / _count(g.x.shape, axes), g.x.shape, axes)


@gradient("Norm")
def norm(F: Any, g: GradientCall) -> Any:
    """dy sgn(x) (|x| / y)^(p - 1), with 0 for a norm of 0 (if p > 1)."""
    y, dy = (_spread(F, value, g.x.shape, g.axes) for value in (g.y, g.grad))
    sign = 1 - 2 * F.less_scalar(g.x, val=0)
    ratio = F.abs(g.x) / (y + F.equal_scalar(y, val=0))
    return dy * sign * F.pow_scalar(ratio, val=g.p - 1)


@gradient("Max", "Min")
def max_(F: Any, g: GradientCall) -> Any:
    """Give the gradient to the first of the elements that are equal to the result, or are NaN as it is."""
    if g.only_index:
        return None
    y, dy = (_spread(F, value, g.x.shape, g.axes) for value in (g.y, g.grad))
    return chosen(F, _in_rows(F, F.equal(g.x, y) + F.isnan(g.x) * F.isnan(y), g.axes, _first), dy)


def _first(F: Any, mask: Any, axis: int) -> Any:
    """Return the mask with only its first 1 along `axis`."""
    return mask * F.equal_scalar(F.cumsum(mask, axis=axis), val=1)


@gradient("Prod")
def prod(F: Any, g: GradientCall) -> Any:
    return _spread(F, g.grad, g.x.shape, g.axes) * _in_rows(F, g.x, g.axes, _product_of_others)


def _product_of_others(F: Any, x: Any, axis: int) -> Any:
    """Return the product along `axis` of all elements but the one at each place, without a division."""
    before = F.cumprod(x, axis=axis, exclusive=True)
    return before * F.cumprod(x, axis=axis, exclusive=True, reverse=True)


def _in_rows(F: Any, x: Any, axes: Axes, function: Callable[[Any, Any, int], Any]) -> Any:
    """Apply ``function(F, x, axis)`` with the reduced axes made one: moved to the end and flattened in order."""
    if len(axes) == 1:
        return function(F, x, axes[0])
    ndim, shape = x.ndim, tuple(x.shape)
    order = (*(axis for axis in range(ndim) if axis not in axes), *sorted(axes))
    moved = tuple(shape[axis] for axis in order)
    n_kept = ndim - len(axes)
    x = F.transpose(x, axes=order)
    rows = function(F, F.reshape(x, shape=(*moved[:n_kept], math.prod(moved[n_kept:]))), n_kept)
    back = tuple(order.index(axis) for axis in range(ndim))
    return F.transpose(F.reshape(rows, shape=moved), axes=back)


@gradient("CumSum")
def cumsum(F: Any, g: GradientCall) -> Any:
    return F.cumsum(g.grad, axis=g.axis, exclusive=g.exclusive, reverse=not g.reverse)


@gradient("CumProd")
def cumprod(F: Any, g: GradientCall) -> Any:
    """Sum dy y / x over the results y that an element is part of; they are computed anew rather than kept.

    A zero ends every product from its place on. Its own gradient comes from the products in which it is replaced
    by 1, and after it both sums are 0. (Products with a second zero have lost the first in this sum, which shows in
    second derivatives only.)
    """
    settings = {"axis": g.axis, "exclusive": g.exclusive}

    def sum_over_results(x: Any) -> Any:
        return F.cumsum(g.grad * F.cumprod(x, reverse=g.reverse, **settings), reverse=not g.reverse, **settings)

    zero = F.equal_scalar(g.x, val=0)
    first = zero * F.equal_scalar(F.cumsum(zero, axis=g.axis, reverse=g.reverse), val=1)
    return (1 - first) * sum_over_results(g.x) / (g.x + zero) + first * sum_over_results(g.x + first)
