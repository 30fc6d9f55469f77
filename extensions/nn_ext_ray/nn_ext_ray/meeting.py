"""The actor at which workers meet: it hands on what they bring, and keeps their notices."""

import asyncio
from typing import Any

#: A collective: the name of the group and the number that it has there.
Key = tuple[str, int]


class _Gathering:
    """Pieces that the ranks have brought to one collective."""

    def __init__(self) -> None:
        self.brought: dict[int, list[Any]] = {}
        self.complete = asyncio.Event()
        self.n_served = 0


class Meeting:
    """The meeting point of the workers of one attempt. Large arrays do not pass through it, only references to them."""

    def __init__(self) -> None:
        self._gatherings: dict[Key, _Gathering] = {}
        self._notices: dict[str, dict[int, str]] = {}

    async def exchange(self, key: Key, rank: int, size: int, pieces: list[Any]) -> list[Any]:
        """Bring pieces and wait for those of the others.

        Args:
            key: The collective.
            rank: The rank that calls, in its group.
            size: Number of ranks in the group.
            pieces: One for each rank, or a single one for all.

        Returns:
            The piece of each rank that is for this one.
        """
        gathering = self._gatherings.setdefault(key, _Gathering())
        gathering.brought[rank] = pieces
        if len(gathering.brought) == size:
            gathering.complete.set()
        await gathering.complete.wait()
        gathering.n_served += 1
        if gathering.n_served == size:
            del self._gatherings[key]
        found = [gathering.brought[other] for other in range(size)]
        return [theirs[rank] if len(theirs) == size else theirs[0] for theirs in found]

    async def post(self, group: str, rank: int, text: str) -> None:
        """Put a notice up."""
        self._notices.setdefault(group, {})[rank] = text

    async def posts(self, group: str) -> dict[int, str]:
        """Return the last notice of each rank of a group."""
        return dict(self._notices.get(group, {}))
