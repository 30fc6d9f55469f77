"""Activations."""

from nn_core.ext import ArgumentError, F, ShapeError, Variable


def maxout(x: Variable, pool_size: int, axis: int = 1) -> Variable:
    """Take the largest of every `pool_size` neighbours along an axis.

    y[..., m, ...] = max over p < pool_size of x[..., m pool_size + p, ...]

    Args:
        x: Array of shape (..., M pool_size, ...).
        pool_size: Number of neighbours.
        axis: Their axis.

    Returns:
        Shape (..., M, ...).

    Raises:
        ShapeError: when `pool_size` does not divide the length of the axis.

    Example:
        >>> maxout(nn.NdArray.from_numpy_array([[1.0, 4.0, 3.0, 2.0]]), 2).data.tolist()
        [[4.0, 3.0]]

    References:
        Goodfellow et al. (2013), Maxout networks.
    """
    if not -x.ndim <= axis < x.ndim:
        raise ArgumentError(f"maxout: axis must be in [{-x.ndim}, {x.ndim}), got {axis}")
    axis %= x.ndim
    if pool_size < 1 or x.shape[axis] % pool_size:
        raise ShapeError(f"maxout: pool_size must divide the length {x.shape[axis]} of axis {axis}, got {pool_size}")
    parts = (*x.shape[:axis], x.shape[axis] // pool_size, pool_size, *x.shape[axis + 1 :])
    return F.max(F.reshape(x, parts), axis=axis + 1)
