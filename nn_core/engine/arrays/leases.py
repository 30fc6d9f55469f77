"""Rights of arrays to values in memory that is not their own, and marks for values that have a state of their own."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol


class Owner(Protocol):
    """A plan that lends its buffers to arrays; it is told when one of them has been taken back."""

    displaced: bool


@dataclass(slots=True, eq=False)
class BufferLease:
    """The right of an array to values in a plan's memory; it ends when the plan reuses the memory.

    Attributes:
        owner: Returns the plan, unless it is gone. The reference is weak, so that a graph is freed as soon as nobody holds it.
        alive: Whether the values are still there.
        shared: Whether other arrays have the same memory, in another order or as a part of theirs.
    """

    owner: Callable[[], Owner | None]
    alive: bool
    shared: bool = False

    def displace(self) -> None:
        """Tell the plan that the array has other values now."""
        owner = self.owner()
        if owner is not None:
            owner.displaced = True


class _Nobody:
    """Owner of leases that belong to no plan."""

    displaced = False


_NOBODY = _Nobody()
_BY_NOBODY: Final = weakref.ref(_NOBODY)
#: The values were given up for good.
RELEASED = BufferLease(_BY_NOBODY, False)
#: The values are the array's own, and may be channels-last: a reader that needs C order has to check.
STRIDED = BufferLease(_BY_NOBODY, True)
#: Nothing was written yet: the array is the output of a function that has not run.
UNCOMPUTED = BufferLease(_BY_NOBODY, True)
