"""Rights of arrays to values in memory that is not their own, and marks for values that have a state of their own."""

import weakref
from typing import Protocol


class Owner(Protocol):
    """A plan that lends its buffers to arrays; it is told when one of them has been taken back."""

    displaced: bool


class BufferLease:
    """The right of an array to values in a plan's memory; it ends when the plan reuses the memory."""

    __slots__ = ("_owner", "alive")

    def __init__(self, owner: Owner, alive: bool) -> None:
        self._owner = weakref.ref(owner)
        self.alive = alive

    @property
    def owner(self) -> Owner | None:
        """The plan, unless it is gone. The reference is weak, so that a graph is freed as soon as nobody holds it."""
        return self._owner()

    def displace(self) -> None:
        """Tell the plan that the array has other values now."""
        owner = self._owner()
        if owner is not None:
            owner.displaced = True


class _Nobody:
    """Owner of leases that belong to no plan."""

    displaced = False


_NOBODY = _Nobody()
#: The values were given up for good.
RELEASED = BufferLease(_NOBODY, False)
#: The values are the array's own, and may be channels-last: a reader that needs C order has to check.
STRIDED = BufferLease(_NOBODY, True)
#: Nothing was written yet: the array is the output of a function that has not run.
UNCOMPUTED = BufferLease(_NOBODY, True)
