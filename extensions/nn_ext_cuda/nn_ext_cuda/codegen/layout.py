"""Shapes and strides: broadcasting, merging of axes, and which axes a gradient is summed over. No array is touched."""

import math
from collections.abc import Sequence

import numpy as np

from nn_core.ext import Shape


def aligned(shape: Shape, rank: int) -> Shape:
    """`shape` with axes of length 1 in front, `rank` axes in all."""
    return (1,) * (rank - len(shape)) + tuple(shape)


def broadcast_strides(shape: Shape, frame: Shape) -> tuple[int, ...]:
    """Strides in elements of a C-contiguous array of `shape` that is broadcast to `frame`; 0 where it repeats.

    All are 0 where the frame has no elements: nobody walks, and axes beside one of length 0 may be too long for 32 bits.
    """
    if 0 in frame:
        return (0,) * len(frame)
    shape = aligned(shape, len(frame))
    strides, step = [0] * len(frame), 1
    for axis in range(len(frame) - 1, -1, -1):
        if shape[axis] != 1:
            strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def merged(frame: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return the same walk with as few axes as possible.

    Args:
        frame: Lengths of the axes, outermost first.
        strides: For each array its strides in elements on these axes.

    Returns:
        The lengths and the strides of each array after axes of length 1 were dropped, and neighbours were merged that
        every array steps over as if they were one.
    """
    lengths: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, length in enumerate(frame):
        if length == 1:
            continue
        if lengths and all(own[-1] == given[axis] * length for own, given in zip(steps, strides, strict=True)):
            lengths[-1] *= length
            for own, given in zip(steps, strides, strict=True):
                own[-1] = given[axis]
        else:
            lengths.append(length)
            for own, given in zip(steps, strides, strict=True):
                own.append(given[axis])
    return tuple(lengths), [tuple(own) for own in steps]


def reduced_axes(shape: Shape, frame: Shape) -> tuple[int, ...]:
    """Return the axes of `frame` over which the gradient of an array of `shape` is summed."""
    return tuple(k for k, (own, whole) in enumerate(zip(aligned(shape, len(frame)), frame, strict=True)) if own != whole)


def split_axes(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Return (number of elements before `axis`, its length, number of elements after it)."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def pitch(shape: Shape) -> tuple[int, ...]:
    """Strides in elements of a C-contiguous array."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def divider(divisor: int) -> tuple[int, int]:
    """Factor and shift by which ``divided`` of ``prelude.cuh`` divides numbers below 2^31; `divisor` is below 2^31 too."""
    shift = (divisor - 1).bit_length()
    return 2**32 * (2**shift - divisor) // divisor + 1, shift


def length_arguments(lengths: Sequence[int]) -> list[np.generic]:
    """Return the values of `code.length_parameters` for axes of these lengths: each but the first, and how to divide by it."""
    return [np.uint32(part) for length in lengths[1:] for part in (length, *divider(max(length, 1)))]
