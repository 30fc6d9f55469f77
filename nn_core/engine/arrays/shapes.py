"""Shapes as programs give them: numbers, sequences of numbers, with -1 for a length that follows."""

import math
from collections.abc import Iterable
from operator import index
from typing import Any

import numpy as np

from nn_core.engine.error_messages.whole import fraction_hint, is_number, whole
from nn_core.errors import ShapeError
from nn_core.typing import MAX_SIZE, Shape


def checked_shape(shape: Iterable[int] | int) -> Shape:
    """Return `shape` as a tuple of non-negative ints."""
    lengths = shape if type(shape) is tuple else _listed(shape)
    try:
        result = tuple(map(index, lengths))
    except (AttributeError, TypeError):
        result = _whole_lengths(lengths)
    if result and min(result) < 0:
        raise ShapeError(f"shape: every length must be at least 0, got {result}")
    if math.prod(result) > MAX_SIZE:
        raise ShapeError(f"shape: an array must have at most 2**48 elements, got {result}")
    return result


def _listed(shape: Iterable[int] | int) -> tuple[Any, ...]:
    """Return the lengths that a shape other than a tuple has."""
    if isinstance(shape, np.ndarray) and shape.ndim and (shape.ndim != 1 or shape.dtype.kind not in "iu"):
        raise ShapeError(
            f"shape: must be an int or a sequence of ints, got an array of shape {shape.shape}\n"
            "  hint: from_numpy_array(values) makes a Variable or an NdArray with these values"
        )
    try:
        return (shape,) if is_number(shape) else tuple(shape)  # type: ignore[arg-type]  # told apart
    except TypeError as error:
        raise ShapeError(f"shape: must be an int or a sequence of ints, got {shape!r}") from error


def _whole_lengths(lengths: tuple[Any, ...]) -> Shape:
    try:
        return tuple([whole(length) for length in lengths])
    except TypeError as error:
        hint = next((hint for hint in map(fraction_hint, lengths) if hint), "")
        raise ShapeError(f"shape: every length must be an int, got {lengths}{hint}") from error


def inferred_shape(shape: Iterable[int], size: int) -> Shape:
    """Return `shape` with its -1, if there is one, replaced so that it has `size` elements."""
    lengths = _whole_lengths(tuple(shape))
    unknown = lengths.count(-1)
    known = math.prod(length for length in lengths if length != -1)
    if unknown == 1 and known > 0 and size % known == 0:
        lengths = tuple(size // known if length == -1 else length for length in lengths)
    elif unknown or known != size:
        raise ShapeError(f"the new shape must have {size} elements, got {lengths}")
    return checked_shape(lengths)
