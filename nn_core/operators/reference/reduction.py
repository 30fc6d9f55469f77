"""Reference kernels of reductions and running sums, which add up and multiply in float64."""

import math
from collections.abc import Callable

from nn_core.operators.reference.precision import sum_dtype, sum_of
from nn_core.operators.reference.registry import kernel
from nn_core.typing import Array, Namespace

Axes = tuple[int, ...]


@kernel("Sum")
def sum_(xp: Namespace, x: Array, axes: Axes, keep_dims: bool) -> Array:
    return sum_of(xp, x, axes, keep_dims)


@kernel("Mean")
def mean(xp: Namespace, x: Array, axes: Axes, keep_dims: bool) -> Array:
    """Return the mean, which is 0 / 0 of no elements."""
    count = math.prod(x.shape[axis] for axis in axes)
    return sum_of(xp, x, axes, keep_dims) / xp.asarray(count, dtype=sum_dtype(xp, x))


@kernel("Prod")
def prod(xp: Namespace, x: Array, axes: Axes, keep_dims: bool) -> Array:
    return xp.prod(x, axis=axes, keepdims=keep_dims, dtype=sum_dtype(xp, x))


@kernel("Norm")
def norm(xp: Namespace, x: Array, p: float, axes: Axes, keep_dims: bool) -> Array:
    return xp.sum(xp.abs(x.astype(sum_dtype(xp, x))) ** p, axis=axes, keepdims=keep_dims) ** (1 / p)


@kernel("ReduceSum")
def reduce_sum(xp: Namespace, x: Array) -> Array:
    return sum_of(xp, x)


@kernel("ReduceMean")
def reduce_mean(xp: Namespace, x: Array) -> Array:
    return mean(xp, x, axes=tuple(range(x.ndim)), keep_dims=False)


@kernel("Max")
def max_(
    xp: Namespace, x: Array, axes: Axes, keep_dims: bool, with_index: bool, only_index: bool
) -> Array | tuple[Array, Array]:
    value = xp.max(x, axis=axes, keepdims=keep_dims)
    return _extremum(xp, x, value, xp.argmax, axes, with_index, only_index)


@kernel("Min")
def min_(
    xp: Namespace, x: Array, axes: Axes, keep_dims: bool, with_index: bool, only_index: bool
) -> Array | tuple[Array, Array]:
    value = xp.min(x, axis=axes, keepdims=keep_dims)
    return _extremum(xp, x, value, xp.argmin, axes, with_index, only_index)


def _extremum(
    xp: Namespace, x: Array, value: Array, locate: Callable[..., Array], axes: Axes, with_index: bool, only_index: bool
) -> Array | tuple[Array, Array]:
    """Return the requested outputs: the extreme value, and its index in the reduced axes, flattened in their order in x."""
    if not (with_index or only_index):
        return value
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    count = math.prod(x.shape[axis] for axis in axes)
    rows = xp.permute_dims(x, (*kept, *sorted(axes))).reshape((*(x.shape[axis] for axis in kept), count))
    index = locate(rows, axis=-1).reshape(value.shape)
    return index if only_index else (value, index)


@kernel("CumSum")
def cumsum(xp: Namespace, x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    return _scan(xp, xp.cumsum, 0, x, axis, exclusive, reverse)


@kernel("CumProd")
def cumprod(xp: Namespace, x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    return _scan(xp, xp.cumprod, 1, x, axis, exclusive, reverse)


def _scan(
    xp: Namespace, accumulate: Callable[..., Array], start: int, x: Array, axis: int, exclusive: bool, reverse: bool
) -> Array:
    """Accumulate along `axis`, from the end if `reverse`; `exclusive` results lack the element at their own place."""
    if reverse:
        x = xp.flip(x, axis=axis)
    y = accumulate(x, axis=axis, dtype=sum_dtype(xp, x))
    if exclusive:
        head, but_last = ((slice(None),) * axis + (part,) for part in (slice(0, 1), slice(0, -1)))
        y = xp.concat((xp.full_like(y[head], start), y[but_last]), axis=axis)
    return xp.flip(y, axis=axis) if reverse else y
