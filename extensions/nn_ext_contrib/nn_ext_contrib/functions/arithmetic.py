"""Sums, products and logarithms."""

import math
from collections.abc import Sequence

from nn_core.ext import ArgumentError, F, ShapeError, Variable
from nn_ext_contrib.functions.checks import require_ndim, require_same_shape


def log2(x: Variable) -> Variable:
    """Take the logarithm to base 2.

    Args:
        x: Array of any shape.

    Returns:
        The shape of x.

    Example:
        >>> log2(nn.NdArray.from_numpy_array([1.0, 4.0])).data.tolist()
        [0.0, 2.0]
    """
    return F.log(x) * (1 / math.log(2))


def log10(x: Variable) -> Variable:
    """Take the logarithm to base 10.

    Args:
        x: Array of any shape.

    Returns:
        The shape of x.

    Example:
        >>> log10(nn.NdArray.from_numpy_array([1.0, 100.0])).data.tolist()
        [0.0, 2.0]
    """
    return F.log(x) * (1 / math.log(10))


def linear_interpolate(p: Variable, x: Variable, y: Variable) -> Variable:
    """Mix two arrays: p x + (1 - p) y.

    Args:
        p: Share of x. Any shape.
        x: The same shape.
        y: The same shape.

    Returns:
        The same shape.

    Raises:
        ShapeError: when the shapes differ.

    Example:
        >>> p, x, y = (nn.NdArray.from_numpy_array([value]) for value in (0.25, 8.0, 4.0))
        >>> linear_interpolate(p, x, y).data.tolist()
        [5.0]
    """
    require_same_shape("linear_interpolate", p=p, x=x, y=y)
    return y + p * (x - y)


def average(
    x: Variable, axis: int | Sequence[int] | None = None, weights: Variable | None = None, keepdims: bool = False
) -> Variable:
    """Average over axes, with weights: sum(w x) / sum(w).

    Args:
        x: Array of any shape.
        axis: Axis or axes to average over; None: all.
        weights: Weights, of the shape of x or, along a single `axis`, one for each place. None: equal ones.
        keepdims: Keep the reduced axes with length 1.

    Returns:
        The averages.

    Raises:
        ShapeError: when the weights fit neither way.

    Example:
        >>> x, w = nn.NdArray.from_numpy_array([[1.0, 5.0]]), nn.NdArray.from_numpy_array([3.0, 1.0])
        >>> average(x, axis=1, weights=w).data.tolist()
        [2.0]
    """
    if weights is None:
        return F.mean(x, axis=axis, keepdims=keepdims)
    if weights.shape != x.shape:
        if not isinstance(axis, int) or weights.shape != (x.shape[axis],):
            raise ShapeError(
                f"average: weights must have the shape {x.shape} of x, or of one axis, got {weights.shape} and axis {axis}"
            )
        after = x.ndim - axis % x.ndim - 1
        weights = F.broadcast(F.reshape(weights, (1,) * (axis % x.ndim) + weights.shape + (1,) * after), x.shape)
    return F.sum(x * weights, axis=axis, keepdims=keepdims) / F.sum(weights, axis=axis, keepdims=keepdims)


def batch_l2_norm_squared(x: Variable) -> Variable:
    """Take the squared Euclidean norm of each sample.

    Args:
        x: Array of shape (N, ...).

    Returns:
        Shape (N).

    Raises:
        ShapeError: when x has no axes.

    Example:
        >>> batch_l2_norm_squared(nn.NdArray.from_numpy_array([[3.0, 4.0]])).data.tolist()
        [25.0]
    """
    if not x.ndim:
        raise ShapeError("batch_l2_norm_squared: x must have an axis of samples, got a shape of ()")
    return F.sum(x**2, axis=tuple(range(1, x.ndim))) if x.ndim > 1 else x**2


def bias(x: Variable, y: Variable, axis: int = 1) -> Variable:
    """Add an array to the axes of another from `axis` on: y is repeated along all other axes.

    Args:
        x: Array of shape (..., S_1, ..., S_k, ...).
        y: Array of shape (S_1, ..., S_k).
        axis: The axis of x that S_1 is.

    Returns:
        The shape of x.

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> x, y = nn.NdArray.from_numpy_array([[[1.0, 2.0], [3.0, 4.0]]]), nn.NdArray.from_numpy_array([10.0, 20.0])
        >>> bias(x, y).data.tolist()
        [[[11.0, 12.0], [23.0, 24.0]]]
    """
    return x + _placed("bias", x, y, axis)


def scale(x: Variable, y: Variable, axis: int = 1) -> Variable:
    """Multiply an array with the axes of another from `axis` on; shapes and errors are those of `bias`.

    Args:
        x: Array of shape (..., S_1, ..., S_k, ...).
        y: Factors. Shape (S_1, ..., S_k).
        axis: The axis of x that S_1 is.

    Returns:
        The shape of x.

    Example:
        >>> x, y = nn.NdArray.from_numpy_array([[1.0, 2.0], [3.0, 4.0]]), nn.NdArray.from_numpy_array([10.0, 0.0])
        >>> scale(x, y).data.tolist()
        [[10.0, 0.0], [30.0, 0.0]]
    """
    return x * _placed("scale", x, y, axis)


def _placed(function: str, x: Variable, y: Variable, axis: int) -> Variable:
    if not 0 <= axis <= x.ndim:
        raise ArgumentError(f"{function}: axis must be in [0, {x.ndim}], got {axis}")
    if x.shape[axis : axis + y.ndim] != y.shape:
        raise ShapeError(f"{function}: y must have the shape of x from axis {axis} on, got {y.shape} and {x.shape}")
    return F.reshape(y, (1,) * axis + y.shape + (1,) * (x.ndim - axis - y.ndim))


def bilinear(
    e1: Variable,
    e2: Variable,
    w: Variable,
    v1: Variable | None = None,
    v2: Variable | None = None,
    b: Variable | None = None,
) -> Variable:
    """Multiply the features of two inputs in pairs.

    y_l = sum_jk e1_j e2_k w_jkl + sum_j e1_j v1_jl + sum_k e2_k v2_kl + b_l.

    Args:
        e1: Features. Shape (N, ...), J in all.
        e2: Features. Shape (N, ...), K in all.
        w: Weight. Shape (J, K, L).
        v1: Weight of e1 alone. Shape (J, L). v1, v2 and b are given all or none.
        v2: Weight of e2 alone. Shape (K, L).
        b: Bias. Shape (L).

    Returns:
        Shape (N, L).

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when some of v1, v2 and b are given.

    Example:
        >>> e, w = nn.NdArray.from_numpy_array([[1.0, 2.0]]), nn.NdArray.from_numpy_array([[[1.0], [0.0]], [[0.0], [1.0]]])
        >>> bilinear(e, e, w).data.tolist()
        [[5.0]]
    """
    require_ndim("bilinear", "w", w, 3, "(J, K, L)")
    if len({v1 is None, v2 is None, b is None}) > 1:
        raise ArgumentError("bilinear: v1, v2 and b must be given all or none, got some of them")
    j, k, n_outputs = w.shape
    e1, e2 = (F.reshape(e, (e.shape[0], -1)) for e in (e1, e2))
    if (e1.shape[1], e2.shape[1]) != (j, k) or e1.shape[0] != e2.shape[0]:
        raise ShapeError(f"bilinear: e1 and e2 must have shapes (N, {j}) and (N, {k}), got {e1.shape} and {e2.shape}")
    half = F.affine(e1, F.reshape(w, (j, k * n_outputs)))
    y = F.reshape(F.batch_matmul(F.reshape(e2, (-1, 1, k)), F.reshape(half, (-1, k, n_outputs))), (-1, n_outputs))
    if v1 is None or v2 is None or b is None:
        return y
    return y + F.affine(e1, v1, b) + F.affine(e2, v2)
