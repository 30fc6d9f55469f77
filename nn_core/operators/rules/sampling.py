"""Reading an array at places that are computed: the gradients, in terms of gathers and scatters.

Written with functions that have gradients themselves, so that the gradient can be differentiated again; ``F.unlink``
surrounds each rounding, whose own gradient is that of the identity.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from nn_core.operators.rules.choosing import chosen
from nn_core.typing import Shape


def coordinate(F: Any, grid: Any, index: int) -> Any:
    """One coordinate of all points: (batch, points, coordinates) -> (batch, points)."""
    batch, n_points, _ = grid.shape
    chosen = F.slice(grid, start=(0, 0, index), stop=(batch, n_points, index + 1), step=(1, 1, 1))
    return F.reshape(chosen, shape=(batch, n_points))


def padded_place(F: Any, normalized: Any, length: int, padding_mode: str, align_corners: bool) -> tuple[Any, Any]:
    """Return the place in pixels, padding applied, and its derivative by the normalised coordinate."""
    scale = (length - 1 if align_corners else length) / 2
    place = normalized * scale + (length - 1) / 2
    if padding_mode == "zero":  # only so far outside that it still reads zero: at infinity as well
        inside = 1.0 - F.less_scalar(place, val=-1.0) - F.greater_scalar(place, val=float(length))
        return F.minimum_scalar(F.maximum_scalar(place, val=-1.0), val=float(length)), inside * scale
    if padding_mode == "reflect":
        place, turn = _reflected(F, place, *((0.0, length - 1) if align_corners else (-0.5, length)))
        place, slope = held_place(F, place, length)
        return place, slope * turn * scale
    place, slope = held_place(F, place, length)
    return place, slope * scale


def held_place(F: Any, place: Any, length: int) -> tuple[Any, Any]:
    """Return the place held in [0, length - 1], and 1 where it was inside, 0 elsewhere (also on the border)."""
    slope = F.greater_scalar(place, val=0.0) * F.less_scalar(place, val=length - 1.0)
    return F.minimum_scalar(F.maximum_scalar(place, val=0.0), val=length - 1.0), slope


def _reflected(F: Any, place: Any, start: float, span: int) -> tuple[Any, Any]:
    """Return the place mirrored into [start, start + span], and the sign of its derivative."""
    period = float(max(2 * span, 1))
    sign = F.greater_equal_scalar(place, val=start) * 2.0 - 1.0
    distance = (place - start) * sign
    distance = distance - F.unlink(F.floor(distance * (1.0 / period))) * period
    turned = F.greater_scalar(distance, val=float(span))
    return distance * (1.0 - turned * 2.0) + turned * (2.0 * span) + start, sign * (1.0 - turned * 2.0)


def linear_sampling_gradient(
    F: Any, wants_x: bool, wants_places: bool, x: Any, places: Sequence[Any], dy: Any
) -> tuple[Any, list[Any] | None]:
    """Gradients of multilinear sampling.

    x: (batch, *spatial, channels); places: one (batch, points) per spatial axis; dy: (batch, points, channels).
    """
    lows = [F.unlink(F.floor(place)) for place in places]
    fractions = [place - low for place, low in zip(places, lows, strict=True)]
    dx, dplaces = None, [None] * len(places)
    for corner in product((0, 1), repeat=len(places)):
        indices = [low + float(bit) for low, bit in zip(lows, corner, strict=True)]
        weights = [fraction if bit else 1.0 - fraction for fraction, bit in zip(fractions, corner, strict=True)]
        if wants_x:
            weighted = dy * F.reshape(math.prod(weights[1:], start=weights[0]), shape=(*dy.shape[:2], 1))
            dx = _added(dx, scatter(F, x.shape, indices, weighted))
        if wants_places:
            dweight = F.sum(gather(F, x, indices) * dy, axes=(2,), keep_dims=False)
            for axis, bit in enumerate(corner):
                others = math.prod(weights[:axis] + weights[axis + 1 :], start=dweight)
                dplaces[axis] = _added(dplaces[axis], others if bit else -others)
    return dx, dplaces if wants_places else None


def _added(total: Any, term: Any) -> Any:
    return term if total is None else total + term


def gather(F: Any, x: Any, indices: Sequence[Any]) -> Any:
    """Elements of x (batch, *spatial, channels) at whole places, zero outside of x. (batch, points, channels)."""
    places, inside = _inside(F, x.shape, indices)
    return chosen(F, inside, F.gather_nd(x, places))


def scatter(F: Any, x_shape: Shape, indices: Sequence[Any], dy: Any) -> Any:
    """Return the transpose of ``gather``."""
    places, inside = _inside(F, x_shape, indices)
    return F.scatter_nd(chosen(F, inside, dy), places, shape=tuple(x_shape), add=True)


def _inside(F: Any, x_shape: Shape, indices: Sequence[Any]) -> tuple[Any, Any]:
    """Return indices for gather_nd, moved inside of x, and 1 for the points that were inside."""
    batch, n_points = indices[0].shape
    sample = F.reshape(F.arange(start=0.0, stop=float(batch)), shape=(batch, 1))
    places, inside = [F.broadcast(sample, shape=(batch, n_points))], 1.0
    for index, length in zip(indices, x_shape[1:-1], strict=True):
        inside = F.greater_equal_scalar(index, val=0.0) * F.less_equal_scalar(index, val=length - 1.0) * inside
        number = F.reset_nan(index, val=0.0)
        places.append(F.minimum_scalar(F.maximum_scalar(number, val=0.0), val=length - 1.0))
    return F.stack(*places, axis=0), inside
