"""The rank of this process among the workers of a job."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RayRank:
    """A worker among others.

    Attributes:
        rank: Number of the worker.
        nodes: Names of the machines by rank.
        meeting: Handle of the actor at which they meet.
    """

    rank: int
    nodes: Sequence[str]
    meeting: Any

    @property
    def local_rank(self) -> int:
        """Number of the worker among those of its machine."""
        return list(self.nodes[: self.rank]).count(self.nodes[self.rank])


_current: list[RayRank] = []


def set_rank(place: RayRank) -> None:
    """Make this process a worker."""
    _current[:] = [place]


def current_rank() -> RayRank | None:
    """Return the place of this process; None when it is no worker."""
    return _current[0] if _current else None
