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


def prelu(x: Variable, w: Variable) -> Variable:
    """Multiply negative elements by a slope of their own: x where x >= 0, else w x.

    Args:
        x: Array of shape (B, S_1, ..., S_k, ...).
        w: Slopes. Shape (S_1, ..., S_k), the axes of x from 1 on; one number where k is 0.

    Returns:
        The shape of x.

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> x, w = nn.NdArray.from_numpy_array([[-1.0, -1.0, 2.0]]), nn.NdArray.from_numpy_array([0.5, 0.25, 0.0])
        >>> prelu(x, w).data.tolist()
        [[-0.5, -0.25, 2.0]]

    References:
        He et al. (2015), Delving deep into rectifiers.
    """
    if x.shape[1 : 1 + w.ndim] != w.shape:
        raise ShapeError(f"prelu: w must have the shape of the axes of x from 1 on, got {w.shape} and {x.shape}")
    slopes = F.reshape(w, (1,) * min(x.ndim, 1) + w.shape + (1,) * (x.ndim - 1 - w.ndim))
    return F.where(F.greater_equal_scalar(x, 0.0), x, x * slopes)
