"""Central differences in float64."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

#: Half the distance between the two points of a difference; relative errors are then about 1e-9.
STEP = 1e-5
#: Slopes to the left and to the right that differ by more than this are those of a kink.
KINK = 1e-3
#: A change by more than this between neighbours is that of a jump.
JUMP = 0.1
#: Over a smaller distance the slope at a jump grows; that of a steep function changes by no more than this part.
STEEP = 1e-2


class KinkError(Exception):
    """The function has a kink or a jump near the point."""


def _jumps(
    function: Callable[..., float],
    arrays: Sequence[Any],
    position: int,
    place: tuple[int, ...],
    step: float,
    slope: float,
) -> bool:
    higher = function(*_moved(arrays, position, place, step))
    lower = function(*_moved(arrays, position, place, -step))
    return abs((higher - lower) / (2 * step) - slope) > STEEP * abs(slope)


def central_difference(
    function: Callable[..., float],
    arrays: Sequence[Any],
    position: int,
    places: Sequence[tuple[int, ...]] | None = None,
    step: float = STEP,
    *,
    kinks: bool = False,
) -> dict[tuple[int, ...], float]:
    """Return the derivative of ``function(*arrays)`` by elements of one of its arrays.

    Args:
        function: From arrays to a number.
        arrays: The point of the derivative; None is passed through.
        position: Number of the array to vary.
        places: The elements to vary; all if not given.
        step: Half the distance of the two points.
        kinks: Whether kinks are allowed: the slope is then the mean of both sides.

    Raises:
        KinkError: when the slopes on both sides are not equal, unless `kinks`.
    """
    middle = function(*arrays)
    slopes: dict[tuple[int, ...], float] = {}
    for place in np.ndindex(*arrays[position].shape) if places is None else places:
        left = (middle - function(*_moved(arrays, position, place, -step))) / step
        right = (function(*_moved(arrays, position, place, step)) - middle) / step
        slope = (left + right) / 2
        smooth = abs(right - left) <= KINK * (1 + abs(slope))
        steep = abs(slope) * step >= JUMP
        if not kinks and (not smooth or (steep and _jumps(function, arrays, position, place, step / 4, slope))):
            raise KinkError(f"slopes {left:.6g} and {right:.6g} beside {place} of input {position}")
        slopes[place] = slope
    return slopes


def some_places(shape: Sequence[int], limit: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """At most `limit` different places of an array of this shape."""
    size = int(np.prod(shape, dtype=np.int64))
    chosen = np.sort(rng.choice(size, min(size, limit), replace=False))
    return [tuple(int(n) for n in np.unravel_index(flat, tuple(shape))) for flat in chosen]


def _moved(arrays: Sequence[Any], position: int, place: tuple[int, ...], step: float) -> list[Any]:
    moved = list(arrays)
    moved[position] = arrays[position].copy()
    moved[position][place] += step
    return moved
