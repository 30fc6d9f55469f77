"""Maps of positions that act on each axis by itself: what padding, shifting, cropping and flipping have in common.

A map is an index array of shape (S, L): for each of S samples (or S = 1 for all), and for each of L places of the
result along one axis, the position that it is read from along the same axis of the source. -1 reads from outside.
"""

from collections.abc import Sequence

from nn_core.operators.reference.precision import sum_dtype
from nn_core.typing import Array, Namespace, Shape


def nearest(xp: Namespace, positions: Array, length: int) -> Array:
    """Positions outside of [0, length) become the nearest one inside."""
    return xp.clip(positions, 0, length - 1)


def mirrored(xp: Namespace, positions: Array, length: int) -> Array:
    """Positions outside of [0, length) are mirrored at the edges, edge elements repeated: ... 1 0 | 0 1 2 | 2 1 ..."""
    turned = positions % (2 * length)
    return xp.minimum(turned, 2 * length - 1 - turned)


def reflected(xp: Namespace, positions: Array, length: int) -> Array:
    """Positions outside of [0, length) are mirrored at the edge elements, once each: ... 2 1 | 0 1 2 | 1 0 ..."""
    if length == 1:
        return positions * 0
    turned = positions % (2 * length - 2)
    return xp.minimum(turned, 2 * length - 2 - turned)


def outside(xp: Namespace, positions: Array, length: int) -> Array:
    """Positions outside of [0, length) become -1."""
    return xp.where((positions >= 0) & (positions < length), positions, -1)


def take(xp: Namespace, x: Array, maps: Sequence[Array], fill: float = 0.0) -> Array:
    """Read `x` (S, D_1, ..., D_k) at one map for each axis, `fill` from outside. Shape (S, L_1, ..., L_k)."""
    if not maps:
        return x.copy()
    if x.size == 0:
        return xp.full((x.shape[0], *[axis_map.shape[-1] for axis_map in maps]), fill, dtype=x.dtype)
    places, is_outside = _places(xp, maps, x.shape[0])
    return xp.where(is_outside, xp.asarray(fill, dtype=x.dtype), x[places])


def give_back(xp: Namespace, dy: Array, maps: Sequence[Array], lengths: Shape) -> Array:
    """Return the transpose of ``take``: add each element of `dy` (S, L_1, ..., L_k) where it was read. Shape (S, *lengths)."""
    if not maps:
        return dy.copy()
    total = xp.zeros((dy.shape[0], *lengths), dtype=sum_dtype(xp, dy))
    if total.size and dy.size:
        places, is_outside = _places(xp, maps, dy.shape[0])
        xp.add.at(total, places, xp.where(is_outside, 0, dy).astype(total.dtype, copy=False))
    return total


def _places(xp: Namespace, maps: Sequence[Array], n_samples: int) -> tuple[tuple[Array, ...], Array]:
    """Index arrays that broadcast to (S, L_1, ..., L_k), outside positions moved inside, and where those are."""
    ndim = len(maps)
    spread = [
        axis_map.reshape(axis_map.shape[0], *[-1 if axis == place else 1 for axis in range(ndim)])
        for place, axis_map in enumerate(maps)
    ]
    samples = xp.arange(n_samples).reshape(-1, *[1] * ndim)
    is_outside = spread[0] < 0
    for axis_map in spread[1:]:
        is_outside = is_outside | (axis_map < 0)
    return (samples, *[xp.maximum(axis_map, 0) for axis_map in spread]), is_outside
