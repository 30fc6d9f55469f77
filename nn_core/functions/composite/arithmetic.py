"""Roots and squares, and clipping by bounds that are numbers or arrays."""

from collections.abc import Sequence
from math import inf

from nn_core.context import get_current_context
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import door
from nn_core.engine.graph.imperative import one_kind
from nn_core.engine.graph.precision import NARROW, in_float32
from nn_core.errors import ArgumentError
from nn_core.functions import arithmetic as operators
from nn_core.functions import reduction
from nn_core.functions.composite.axes import Axes, listed
from nn_core.functions.operand import Operand
from nn_core.variable import Variable

__all__ = ["clip", "clip_by_norm", "clip_by_value", "rsqrt", "sqrt", "square"]


@door
def sqrt(x: Operand) -> Operand:
    """Take the square root of every element.

    y = x^(1/2)

    Args:
        x: Array of any shape.

    Returns:
        An array of the shape of x; NaN where x is negative. The gradient at 0 is infinite.

    Example:
        >>> F.sqrt(nn.NdArray.from_numpy_array([4.0, 9.0])).numpy().tolist()
        [2.0, 3.0]
    """
    return operators.pow_scalar(x, 0.5)


@door
def rsqrt(x: Operand) -> Operand:
    """Take the reciprocal of the square root of every element.

    y = x^(-1/2)

    Args:
        x: Array of any shape.

    Returns:
        An array of the shape of x; NaN where x is negative, infinity where it is 0.

    Example:
        >>> F.rsqrt(nn.NdArray.from_numpy_array([4.0, 16.0])).numpy().tolist()
        [0.5, 0.25]
    """
    return operators.pow_scalar(x, -0.5)


@door
def square(x: Operand) -> Operand:
    """Square every element.

    y = x^2

    Args:
        x: Array of any shape.

    Returns:
        An array of the shape of x.

    Example:
        >>> F.square(nn.NdArray.from_numpy_array([-3.0, 2.0])).numpy().tolist()
        [9.0, 4.0]
    """
    return operators.mul2(x, x)


@door
def clip(x: Operand, min: Operand | float | None = None, max: Operand | float | None = None) -> Operand:
    """Limit the elements to an interval that may be open on one side, as ``numpy.clip``.

    y = minimum(maximum(x, min), max)

    Args:
        x: Array of any shape.
        min: Lower bound, a number or an array that broadcasts against x; None: none.
        max: Upper bound, a number or an array that broadcasts against x; None: none.

    Returns:
        An array of the shape of x.

    Raises:
        ArgumentError: when neither bound is given.

    Example:
        >>> F.clip(nn.NdArray.from_numpy_array([-3.0, 0.5, 2.0]), 0, 1).numpy().tolist()
        [0.0, 0.5, 1.0]
    """
    if min is None and max is None:
        raise ArgumentError("clip: min or max must be given, got neither")
    return clip_by_value(x, -inf if min is None else min, inf if max is None else max)


@one_kind
def clip_by_value(x: Operand, min: Operand | float, max: Operand | float) -> Operand:
    """Limit the elements to an interval.

    y = minimum(maximum(x, min), max)

    Args:
        x: Array of any shape.
        min: Lower bound, a number or an array that broadcasts against x.
        max: Upper bound, a number or an array that broadcasts against x.

    Returns:
        An array of the shape of x.

    Notes:
        The gradient is that of x inside the bounds; outside, it flows to the bound if that is an array.

    Example:
        >>> F.clip_by_value(nn.NdArray.from_numpy_array([-3.0, 0.5, 2.0]), -1, 1).numpy().tolist()
        [-1.0, 0.5, 1.0]
    """
    raised = operators.maximum2(x, min) if isinstance(min, (Variable, NdArray)) else operators.maximum_scalar(x, min)
    if isinstance(max, (Variable, NdArray)):
        return operators.minimum2(raised, max)
    return operators.minimum_scalar(raised, max)


@one_kind
def clip_by_norm(x: Operand, clip_norm: Operand | float, axis: Axes | None = None) -> Operand:
    """Scale down what has an L2 norm above a limit.

    y = x * clip_norm / maximum(norm(x), clip_norm)

    Args:
        x: Array of any shape.
        clip_norm: The limit, a positive number or an array that broadcasts against the norms.
        axis: Axis or axes that a norm is taken over; None: all.

    Returns:
        An array of the shape of x.

    Notes:
        The comparison is made between squares, so the gradient is finite where x is zero.

    Example:
        >>> print(F.clip_by_norm(nn.NdArray.from_numpy_array([3.0, 4.0]), 1).numpy().round(3))
        [0.6 0.8]
    """
    if not isinstance(clip_norm, (Variable, NdArray)) and not clip_norm > 0:
        raise ArgumentError(f"clip_by_norm: clip_norm must be positive, got {clip_norm!r}")
    y = _clipped(x, clip_norm, listed(axis))
    return operators.mul_scalar(y, 1.0) if get_current_context().dtype in NARROW else y  # rounds


@in_float32
def _clipped(x: Operand, clip_norm: Operand | float, axes: Sequence[int] | None) -> Operand:
    squares = reduction.sum(operators.pow_scalar(x, 2.0), axes=axes, keep_dims=True)
    if isinstance(clip_norm, (Variable, NdArray)):
        limited = operators.maximum2(squares, operators.mul2(clip_norm, clip_norm))
        return operators.mul2(operators.mul2(x, operators.pow_scalar(limited, -0.5)), clip_norm)
    limited = operators.maximum_scalar(squares, clip_norm * clip_norm)
    return operators.mul_scalar(operators.mul2(x, operators.pow_scalar(limited, -0.5)), clip_norm)
