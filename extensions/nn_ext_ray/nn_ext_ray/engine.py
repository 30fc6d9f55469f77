"""The engine: collectives between the workers of a Ray job, whose arrays Ray's object store moves.

Every collective is one exchange: each rank brings a piece for each other one, and gets those that are for it. Sums are added
up by the ranks themselves, in the order of the ranks.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import ray
from ray.exceptions import RayError

from nn_core.errors import CommunicationError
from nn_core.ext import Array, BackendUnavailableError, Context
from nn_ext_ray.rank import RayRank, current_rank

#: Larger pieces go into the object store, from which other workers read them; smaller ones travel with the call.
STORED_BYTES: Final = 1 << 16
_REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {"sum": np.add, "max": np.maximum}


class Exchange:
    """A collective that was started."""

    def __init__(self, answer: Any, kept: Sequence[Any], finish: Callable[[list[Any]], None]) -> None:
        self._answer = answer
        self._kept = kept  # references to what the others have yet to read
        self._finish: Callable[[list[Any]], None] | None = finish

    def done(self) -> bool:
        """Return whether it is over."""
        return self.wait(0)

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until it is over, or the time is.

        Raises:
            CommunicationError: when another worker has died.
        """
        if self._finish is None:
            return True
        try:
            ready, _ = ray.wait([self._answer], timeout=timeout_s)
            if not ready:
                return False
            pieces = _resolved(ray.get(self._answer))
        except RayError as error:
            reason = str(error).strip().partition("\n")[0]
            raise CommunicationError(f"ray: every worker must live, got {type(error).__name__}: {reason}") from error
        finish, self._finish = self._finish, None
        finish(pieces)
        self._kept = ()
        return True


class RayEngine:
    """The workers of an attempt, or some of them.

    Args:
        place: The place of this worker among the others.
        group: Name of the group; its collectives are counted.
    """

    def __init__(self, place: RayRank, group: str = "world") -> None:
        self.rank: int = place.rank
        self.size: int = len(place.nodes)
        self.hosts: Sequence[str] = place.nodes
        self.local_rank: int = place.local_rank
        self._place = place
        self._group = group
        self._number = 0
        self._n_parts = 0

    def _exchange(self, pieces: Sequence[Array | None], finish: Callable[[list[Any]], None]) -> Exchange:
        """Bring pieces, one for each rank or one for all, and call `finish` with those for this rank."""
        self._number += 1
        sent = [piece if piece is None or piece.nbytes <= STORED_BYTES else ray.put(piece) for piece in pieces]
        answer = self._place.meeting.exchange.remote((self._group, self._number), self.rank, self.size, sent)
        return Exchange(answer, sent, finish)

    def _others(self, pieces: Sequence[Array]) -> list[Array | None]:
        """Return the pieces without the own one, which need not travel."""
        return [None if rank == self.rank else piece for rank, piece in enumerate(pieces)]

    def all_reduce(self, array: Array, op: str = "sum") -> Exchange:
        """Replace the array by the sum or maximum over all ranks."""
        return self._exchange([array], lambda pieces: np.copyto(array, _reduced(pieces, op)))

    def broadcast(self, array: Array, src: int) -> Exchange:
        """Replace the array by that of rank `src`."""

        def finish(pieces: list[Any]) -> None:
            if self.rank != src:
                np.copyto(array, pieces[src])

        return self._exchange([array if self.rank == src else None], finish)

    def reduce(self, array: Array, dst: int, op: str = "sum") -> Exchange:
        """Replace the array of rank `dst` by the sum or maximum."""

        def finish(pieces: list[Any]) -> None:
            if self.rank == dst:
                np.copyto(array, _reduced(pieces, op))

        return self._exchange([array if rank == dst else None for rank in range(self.size)], finish)

    def all_gather(self, send: Array, receive: Array) -> Exchange:
        """Gather the arrays of all ranks."""

        def finish(pieces: list[Any]) -> None:
            for part, piece in zip(receive.reshape(self.size, -1), pieces, strict=True):
                part[...] = piece.reshape(-1)

        return self._exchange([send], finish)

    def reduce_scatter(self, send: Array, receive: Array, op: str = "sum") -> Exchange:
        """Reduce, and keep the own part."""
        parts = send.reshape(self.size, -1)
        own = parts[self.rank].copy()

        def finish(pieces: list[Any]) -> None:
            pieces[self.rank] = own
            np.copyto(receive.reshape(-1), _reduced(pieces, op))

        return self._exchange(self._others(parts), finish)

    def all_to_all(self, send: Array, receive: Array) -> Exchange:
        """Exchange the parts."""
        parts = send.reshape(self.size, -1)
        own = parts[self.rank].copy()

        def finish(pieces: list[Any]) -> None:
            pieces[self.rank] = own
            for part, piece in zip(receive.reshape(self.size, -1), pieces, strict=True):
                part[...] = piece

        return self._exchange(self._others(parts), finish)

    def barrier(self) -> Exchange:
        """Wait for all ranks."""
        return self._exchange([None], lambda pieces: None)

    def split(self, ranks: Sequence[int]) -> "RayEngine | None":
        """Return the engine of some of the workers."""
        self._n_parts += 1
        places = list(ranks)
        if self.rank not in places:
            return None
        nodes = [self.hosts[rank] for rank in places]
        return RayEngine(RayRank(places.index(self.rank), nodes, self._place.meeting), f"{self._group}/{self._n_parts}")

    def post(self, text: str) -> None:
        """Put a notice up; nobody waits for it."""
        self._place.meeting.post.remote(self._group, self.rank, text)

    def posts(self) -> dict[int, str]:
        """Return the last notice of each rank."""
        notices: dict[int, str] = ray.get(self._place.meeting.posts.remote(self._group))
        return notices

    def abort(self, status: int = 1) -> None:
        """End this worker at once; the attempt ends with it."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _reduced(pieces: Sequence[Array], op: str) -> Array:
    total: Array = pieces[0].copy()
    for piece in pieces[1:]:
        _REDUCTIONS[op](total, piece, out=total)
    return total


def _resolved(pieces: Sequence[Any]) -> list[Any]:
    """Return the pieces, those in the object store among them."""
    places = [place for place, piece in enumerate(pieces) if isinstance(piece, ray.ObjectRef)]
    found = list(pieces)
    for place, piece in zip(places, ray.get([pieces[place] for place in places]), strict=True):
        found[place] = piece
    return found


def make(context: Context | None = None) -> RayEngine:
    """Return the engine of the workers that `nn_ext_ray.train` has started.

    Raises:
        BackendUnavailableError: in a process that is not one of them.
    """
    place = current_rank()
    if place is None:
        raise BackendUnavailableError(
            "ray: the process must be a worker of nn_ext_ray.train, got another one\n"
            "  hint: call comm.init() in the function that is passed to nn_ext_ray.train"
        )
    return RayEngine(place)
