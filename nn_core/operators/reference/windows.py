"""Sliding windows over the last axes of an array, and their transpose: what convolutions and poolings are made of.

The only loop runs over the positions inside a kernel; each step is one strided slice of the whole array.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from nn_core.typing import Array, Namespace


def padded(xp: Namespace, x: Array, before: Sequence[int], after: Sequence[int], value: float = 0.0) -> Array:
    """Pad each of the last axes of `x` with `value`, by `before` and `after`."""
    leading = x.ndim - len(before)
    spatial = x.shape[leading:]
    lengths = (low + n + high for low, n, high in zip(before, spatial, after, strict=True))
    result = xp.full((*x.shape[:leading], *lengths), value, dtype=x.dtype)
    inner = (..., *(slice(low, low + n) for low, n in zip(before, spatial, strict=True)))
    result[inner] = x
    return result


def windows(
    xp: Namespace,
    x: Array,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    counts: Sequence[int],
    *,
    axis: int,
) -> Array:
    """Return the values under each of `counts` places of a kernel; the elements of the kernel are the new axis `axis`."""
    return xp.stack([x[place] for place in _places(kernel, stride, dilation, counts)], axis=axis)


def overlap_add(
    xp: Namespace,
    columns: Array,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    lengths: Sequence[int],
    *,
    axis: int,
) -> Array:
    """Return the transpose of ``windows``: add every window to its place in zeros of `lengths`."""
    first = columns.ndim - len(kernel)
    counts = columns.shape[first:]
    shape = (*columns.shape[:axis], *columns.shape[axis + 1 : first], *lengths)
    result = xp.zeros(shape, dtype=columns.dtype)
    leading = (slice(None),) * axis
    for position, place in enumerate(_places(kernel, stride, dilation, counts)):
        window = (*leading, position)
        result[place] += columns[window]
    return result


def _places(
    kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], counts: Sequence[int]
) -> Iterator[tuple[object, ...]]:
    """For each position in the kernel, the elements that it meets as the kernel moves."""
    for offset in product(*map(range, kernel)):
        starts = [step * place for step, place in zip(dilation, offset, strict=True)]
        moves = zip(starts, stride, counts, strict=True)
        yield (..., *(slice(start, start + step * (count - 1) + 1, step) for start, step, count in moves))
