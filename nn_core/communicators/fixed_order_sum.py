"""The sum of flat arrays over a group of ranks: by the engine, or in an order of our own."""

from collections.abc import Generator
from typing import Final

import numpy as np

from nn_core.communicators.engine import Handle
from nn_core.communicators.group import Circle
from nn_core.communicators.packing import memory_of
from nn_core.communicators.reduced_arrays import Live
from nn_core.communicators.reduction_tree import tree_all_reduce, tree_sum
from nn_core.typing import Array

#: From so many elements on, two ranks exchange their numbers: below, MPICH's own sum takes half the time, above twice.
_EXCHANGED: Final = 1 << 22


def total_of(circle: Circle, flat: Array, deterministic: bool, wire: str | None) -> Array:
    """Return the sum of flat arrays of one size; `flat` is used up, and may hold it afterwards.

    Args:
        circle: The ranks.
        flat: The numbers of this rank.
        deterministic: Add up in an order that does not depend on the engine.
        wire: dtype in which float32 is sent; None: as it is.
    """
    if _is_engines_own(circle, flat, deterministic, wire):
        circle.run("all_reduce", flat, "sum")
        return flat
    return tree_all_reduce(circle.engine, [flat], circle.size, circle.wait, wire, circle.scratch)


def added_in_place(circle: Circle, live: Live, deterministic: bool, wire: str | None) -> bool:
    """Let the engine add up the memory of the only array, and return whether it can."""
    flat = memory_of(live.arrays, live.dtypes[0]) if live.arrays else None
    if flat is None or not _is_engines_own(circle, flat, deterministic, wire):
        return False
    circle.run("all_reduce", flat, "sum")
    return True


def total_in_steps(
    circle: Circle, flat: Array, deterministic: bool, wire: str | None, scratch: dict[str, Array]
) -> Generator[Handle | None, None, Array]:
    """`total_of` in steps: yields what is to be waited for before the next one. Only this sum uses `scratch` meanwhile."""
    if _is_engines_own(circle, flat, deterministic, wire):
        yield circle.engine.all_reduce(flat, "sum")
        return flat
    return (yield from tree_sum(circle.engine, [flat], circle.size, wire, scratch))


def _is_engines_own(circle: Circle, flat: Array, deterministic: bool, wire: str | None) -> bool:
    """Return whether the sum of the engine has the bits of the one in a fixed order, or no order is asked for."""
    if wire is not None and flat.dtype == np.float32:
        return False
    # the sum of two numbers, and sums of whole numbers, have no order
    ordered = flat.dtype.kind == "f" and (circle.size > 2 or flat.size > _EXCHANGED)
    return not (ordered and deterministic)
