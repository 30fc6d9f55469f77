"""Gathering, scattering and slicing with indices that are arrays, lists or None."""

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import checked_flag, door
from nn_core.errors import ArgumentError
from nn_core.functions import indexing as operators
from nn_core.functions.operand import Operand
from nn_core.variable import Variable

__all__ = ["gather_nd", "scatter_nd", "sort"]


@door
def gather_nd(data: Operand, indices: Any) -> Operand:
    """Pick elements or slices by index tuples.

    y[j] = data[indices[0, j], ..., indices[M-1, j]]

    Args:
        data: Array of shape (X_0, ..., X_{N-1}).
        indices: Indices of shape (M, Y_0, ..., Y_{K-1}) with M <= N: Variable, NdArray, NumPy array or nested lists.

    Returns:
        An array of shape (Y_0, ..., Y_{K-1}, X_M, ..., X_{N-1}).

    Example:
        >>> data = nn.NdArray.from_numpy_array([[1.0, 2.0], [3.0, 4.0]])
        >>> F.gather_nd(data, [[0, 1], [1, 0]]).numpy().tolist()  # data[0, 1] and data[1, 0]
        [2.0, 3.0]
    """
    y: Operand = operators.gather_nd(data, _as_operand(data, indices))
    return y


@door
def scatter_nd(
    data: Operand, indices: Any, shape: Sequence[int] | None = None, out: Operand | None = None, add: bool = False
) -> Operand:
    """Put elements or slices at places given by index tuples, into zeros or into an array.

    y[indices[0, j], ..., indices[M-1, j]] = data[j]

    Args:
        data: Array of shape (Y_0, ..., Y_{K-1}, X_M, ..., X_{N-1}).
        indices: Indices of shape (M, Y_0, ..., Y_{K-1}) with M <= N: Variable, NdArray, NumPy array or nested lists.
        shape: Shape (X_0, ..., X_{N-1}) of the result, which starts from zeros.
        out: Array of that shape to start from; exactly one of `shape` and `out` is given.
        add: Add to what is there instead of replacing it.

    Returns:
        An array of the shape `shape`, or that of `out`.

    Raises:
        ArgumentError: when both or none of `shape` and `out` are given.

    Example:
        >>> F.scatter_nd(nn.NdArray.from_numpy_array([7.0, 8.0]), [[0, 1], [1, 0]], shape=(2, 2)).numpy().tolist()
        [[0.0, 7.0], [8.0, 0.0]]
    """
    if (shape is None) == (out is None):
        given = "none" if shape is None else "both"
        raise ArgumentError(f"scatter_nd: exactly one of shape and out must be given, got {given}")
    y: Operand = operators.scatter_nd(data, _as_operand(data, indices), out, shape=shape, add=add)
    return y


@overload
def sort(
    x: Operand,
    axis: int = -1,
    reverse: bool = False,
    with_index: Literal[False] = False,
    only_index: bool = False,
) -> Operand: ...
@overload
def sort(x: Operand, axis: int = -1, reverse: bool = False, *, with_index: bool, only_index: Literal[True]) -> Operand: ...
@overload
def sort(
    x: Operand,
    axis: int = -1,
    reverse: bool = False,
    *,
    with_index: Literal[True],
    only_index: Literal[False] = False,
) -> tuple[Operand, Operand]: ...
@door
def sort(
    x: Operand,
    axis: int = -1,
    reverse: bool = False,
    with_index: bool = False,
    only_index: bool = False,
) -> Operand | tuple[Operand, ...]:
    """Put the elements along an axis in order.

    Args:
        x: Array with at least one axis.
        axis: Axis to sort along.
        reverse: Largest first.
        with_index: Return the place in x that each element had too.
        only_index: Return the places only.

    Returns:
        The ordered elements; with `with_index` a tuple of elements and places; with `only_index` the places.

    Notes:
        Equal elements keep their order. NaN comes last.

    Example:
        >>> values, indices = F.sort(nn.NdArray.from_numpy_array([3.0, 1.0, 2.0]), with_index=True)
        >>> values.numpy().tolist(), indices.numpy().tolist()
        ([1.0, 2.0, 3.0], [1, 2, 0])
    """
    if checked_flag("only_index", only_index):
        return operators.sort(x, axis, reverse, only_index=True)
    if checked_flag("with_index", with_index):
        return operators.sort(x, axis, reverse, with_index=True)
    return operators.sort(x, axis, reverse)


def _as_operand(data: Variable | NdArray, indices: Any) -> Any:
    """Return `indices` as an array of the kind of `data`."""
    if isinstance(indices, (Variable, NdArray)):
        return indices
    kind = NdArray if isinstance(data, NdArray) else Variable
    return kind.from_numpy_array(np.asarray(indices))
