"""Choose the values that a forward pass keeps although they are marked to be computed again in the backward pass.

A network whose values are all computed again needs as much memory as before: its backward pass begins at the end, and all that
leads there has to be computed first. Kept values here and there divide it into segments, of which one at a time is computed
again; with segments of the square root of the length both the kept values and a segment take the square root of the memory
(Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016). Where a program has divided the network by blocks of its
own, the blocks are segments already, and are divided only if that saves memory.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from nn_core.engine.arrays.synced import SyncedArray
from nn_core.engine.graph.node import Node

#: Networks are divided only if that saves so many bytes: small ones drop all that they are told to.
LEAST_SAVED: Final = 2**20
#: Into how many parts of equal memory a network is divided, for trial.
_DIVISIONS: Final = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)


def checkpoints(order: Sequence[Node], dropped: Mapping[SyncedArray, int]) -> set[SyncedArray]:
    """Return the values that are better kept than computed again, so that the backward pass takes the least memory.

    Args:
        order: The functions, each after those that compute its inputs.
        dropped: The values that are to be computed again, and the number of bytes of each.
    """
    line = _Line.of(order, dropped)
    undivided = _Division(line, sum(line.sizes))
    divisions = [_Division(line, undivided.largest // parts) for parts in _DIVISIONS if undivided.largest >= parts]
    best = min(divisions, key=lambda division: division.n_bytes, default=undivided)
    return best.kept if undivided.n_bytes - best.n_bytes >= LEAST_SAVED else set()


@dataclass(frozen=True)
class _Line:
    """The functions in their order.

    Attributes:
        n_bytes: Of each value that is to be computed again.
        sizes: Bytes of those that each function makes.
        crossing: Those that are there after each function and are read later.
    """

    n_bytes: Mapping[SyncedArray, int]
    sizes: list[int]
    crossing: list[set[SyncedArray]]

    @classmethod
    def of(cls, order: Sequence[Node], dropped: Mapping[SyncedArray, int]) -> "_Line":
        """Return those of a graph."""
        made, last_read = _life(order, dropped)
        sizes = [0] * len(order)
        changes: list[set[SyncedArray]] = [set() for _ in order]  # what begins to cross, or ends
        for synced, position in made.items():
            sizes[position] += dropped[synced]
            if synced in last_read:
                changes[position] ^= {synced}
                changes[last_read[synced]] ^= {synced}
        crossing = list(accumulate(changes, lambda present, changed: present ^ changed))
        return cls(dropped, sizes, crossing)

    def bytes_of(self, arrays: Iterable[SyncedArray]) -> int:
        """Return the bytes of some values together."""
        return sum(self.n_bytes[synced] for synced in arrays)


def _life(order: Sequence[Node], dropped: Mapping[SyncedArray, int]) -> tuple[dict[SyncedArray, int], dict[SyncedArray, int]]:
    """Return the positions of the functions that make each value, and that read it last."""
    made: dict[SyncedArray, int] = {}
    last_read: dict[SyncedArray, int] = {}
    for position, node in enumerate(order):
        read = [value.storage.data.synced for value in node.inputs if value is not None]
        last_read.update((synced, position) for synced in read if synced in made)
        for storage in node.storages:
            if storage.data.synced in dropped:
                made.setdefault(storage.data.synced, position)
    return made, last_read


class _Division:
    """A division into segments of at most `limit` bytes, as far as single functions allow.

    Attributes:
        kept: The values at the ends of segments.
        largest: Bytes of the largest segment.
    """

    def __init__(self, line: _Line, limit: int) -> None:
        self.kept: set[SyncedArray] = set()
        self.largest = 0
        made = [0, *accumulate(line.sizes)]  # before each function
        start, end, cost = 0, None, 0  # of the present segment: the cheapest end in its second half, and what it costs
        for position in range(len(line.sizes)):
            if end is not None and made[position + 1] - made[start] > limit:
                self._end(made[end + 1] - made[start], line.crossing[end])
                start, end = end + 1, None
            keeping = line.bytes_of(line.crossing[position] - self.kept)
            if keeping == 0:  # a block of the program ends here
                self._end(made[position + 1] - made[start])
                start, end = position + 1, None
            elif made[position + 1] - made[start] >= limit // 2 and (end is None or keeping <= cost):
                end, cost = position, keeping
        self._end(made[-1] - made[start])
        self.n_bytes = self.largest + line.bytes_of(self.kept)

    def _end(self, n_bytes: int, kept: Collection[SyncedArray] = ()) -> None:
        self.largest = max(self.largest, n_bytes)
        self.kept.update(kept)
