"""An engine whose ranks are threads of one process: for tests of programs that communicate."""

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any, Final

import numpy as np

from nn_core.errors import CommunicationError, LostRankError
from nn_core.typing import Array

_REDUCTIONS: Final[dict[str, Callable[[Array, Array], Array]]] = {"sum": np.add, "max": np.maximum}


class _Meeting:
    """One collective: what each rank has brought, and how it ended."""

    def __init__(self, size: int) -> None:
        self.brought: dict[int, Any] = {}
        self.size = size
        self.over = threading.Event()
        self.result: Any = None


class ThreadWorld:
    """The meeting point of threads; one for each group of ranks."""

    def __init__(self, size: int, parent: "ThreadWorld | None" = None) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._meetings: dict[int, _Meeting] = {}
        self._parts: list[ThreadWorld] = []
        self.board: dict[int, str] = {}
        self.failure: str = ""
        self.lost: set[int] = set()
        self._votes: dict[int, dict[int, bool]] = {}
        self._decisions: dict[int, bool] = {}
        self._rest: tuple[list[int], ThreadWorld] | None = None
        self._changed = threading.Condition(self._lock)
        if parent is not None:
            parent._parts.append(self)

    def meet(self, number: int, rank: int, brought: Any, act: Callable[[dict[int, Any]], Any]) -> "ThreadHandle":
        """Bring something to collective `number`; the last rank to come calls `act` for all of them."""
        with self._lock:
            meeting = self._meetings.setdefault(number, _Meeting(self.size))
            meeting.brought[rank] = brought
            if len(meeting.brought) == self.size:
                del self._meetings[number]
                meeting.result = act(meeting.brought)
                meeting.over.set()
        return ThreadHandle(self, meeting)

    def lose(self, rank: int) -> None:
        """Let collectives that rank `rank` has not come to fail, now and later."""
        with self._changed:
            self.lost.add(rank)
            meetings = list(self._meetings.values())
            self._changed.notify_all()
        for meeting in meetings:
            meeting.over.set()

    def agree(self, number: int, rank: int, flag: bool) -> bool:
        """Vote number `number` of a rank; the result is one for all."""
        with self._changed:
            votes = self._votes.setdefault(number, {})
            votes[rank] = flag
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.failure or len(self.lost | set(votes)) == self.size)
            if self.failure:
                raise CommunicationError(self.failure)
            return self._decisions.setdefault(number, all(votes.values()) and not self.lost)

    def rest(self) -> "tuple[list[int], ThreadWorld]":
        """Return the ranks that are not lost, and their world."""
        with self._lock:
            if self._rest is None:
                living = sorted(set(range(self.size)) - self.lost)
                self._rest = living, ThreadWorld(len(living))
            return self._rest

    def fail(self, reason: str) -> None:
        """Let everybody who waits, or comes later, fail."""
        with self._changed:
            self.failure = self.failure or reason
            meetings = list(self._meetings.values())
            self._changed.notify_all()
        for meeting in meetings:
            meeting.over.set()
        for part in [*self._parts, *([self._rest[1]] if self._rest else [])]:
            part.fail(reason)


class ThreadHandle:
    """A collective between threads."""

    def __init__(self, world: ThreadWorld, meeting: _Meeting) -> None:
        self._world = world
        self._meeting = meeting

    def done(self) -> bool:
        """Return whether all ranks have come."""
        return self.wait(0)

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until all ranks have come."""
        meeting, world = self._meeting, self._world
        while not (meeting.over.is_set() and len(meeting.brought) == meeting.size):
            if world.lost:
                raise LostRankError(f"every rank must live, got the loss of {sorted(world.lost)}")
            if world.failure:
                raise CommunicationError(world.failure)
            if not meeting.over.wait(timeout_s):
                return False
        return True

    @property
    def result(self) -> Any:
        """The result that the last rank to arrive has computed."""
        return self._meeting.result


class ThreadEngine:
    """The engine of one of the threads.

    Args:
        world: The meeting point of its collectives.
        rank: Number of the thread.
    """

    is_tolerant = True

    def __init__(self, world: ThreadWorld, rank: int) -> None:
        self.rank = self.local_rank = rank
        self.size = world.size
        self.hosts: Sequence[str] = ("localhost",) * world.size
        self.world = world
        self._number = 0
        self._n_votes = 0

    def _meet(self, brought: Any, act: Callable[[dict[int, Any]], Any]) -> ThreadHandle:
        self._number += 1
        return self.world.meet(self._number, self.rank, brought, act)

    def all_reduce(self, array: Array, op: str = "sum") -> ThreadHandle:
        """Replace the arrays by their sum or maximum."""

        def act(arrays: dict[int, Array]) -> None:
            total = _reduced([arrays[rank] for rank in range(self.size)], op)
            for each in arrays.values():
                np.copyto(each, total)

        return self._meet(array, act)

    def broadcast(self, array: Array, src: int) -> ThreadHandle:
        """Replace the arrays by that of `src`."""

        def act(arrays: dict[int, Array]) -> None:
            for rank, each in arrays.items():
                if rank != src:
                    np.copyto(each, arrays[src])

        return self._meet(array, act)

    def reduce(self, array: Array, dst: int, op: str = "sum") -> ThreadHandle:
        """Replace the array of `dst` by the sum or maximum."""

        def act(arrays: dict[int, Array]) -> None:
            np.copyto(arrays[dst], _reduced([arrays[rank] for rank in range(self.size)], op))

        return self._meet(array, act)

    def all_gather(self, send: Array, receive: Array) -> ThreadHandle:
        """Gather the arrays of all ranks."""

        def act(pairs: dict[int, tuple[Array, Array]]) -> None:
            for _, target in pairs.values():
                parts = target.reshape(self.size, -1)
                for rank in range(self.size):
                    parts[rank] = pairs[rank][0].reshape(-1)

        return self._meet((send, receive), act)

    def reduce_scatter(self, send: Array, receive: Array, op: str = "sum") -> ThreadHandle:
        """Reduce, and keep the own part."""

        def act(pairs: dict[int, tuple[Array, Array]]) -> None:
            total = _reduced([pairs[rank][0] for rank in range(self.size)], op).reshape(self.size, -1)
            for rank, (_, target) in pairs.items():
                np.copyto(target.reshape(-1), total[rank])

        return self._meet((send, receive), act)

    def all_to_all(self, send: Array, receive: Array) -> ThreadHandle:
        """Exchange the parts."""

        def act(pairs: dict[int, tuple[Array, Array]]) -> None:
            for rank, (_, target) in pairs.items():
                parts = target.reshape(self.size, -1)
                for source in range(self.size):
                    parts[source] = pairs[source][0].reshape(self.size, -1)[rank]

        return self._meet((send, receive), act)

    def barrier(self) -> ThreadHandle:
        """Wait for all ranks."""
        return self._meet(None, lambda brought: None)

    def split(self, ranks: Sequence[int]) -> "ThreadEngine | None":
        """Return the engine of some of the threads."""
        handle = self._meet(None, lambda brought: ThreadWorld(len(ranks), self.world))
        handle.wait(None)
        return ThreadEngine(handle.result, list(ranks).index(self.rank)) if self.rank in ranks else None

    def agree(self, flag: bool) -> bool:
        """Return whether all threads have given True and none is lost; one answer for all."""
        self._n_votes += 1  # on its own: some have made fewer collectives than others when one is lost
        return self.world.agree(self._n_votes, self.rank, flag)

    def shrink(self) -> "ThreadEngine":
        """Return the engine of the threads that are left."""
        living, world = self.world.rest()
        return ThreadEngine(world, living.index(self.rank))

    def die(self) -> None:
        """Be lost to the others, as a process is that was killed."""
        self.world.lose(self.rank)

    def post(self, text: str) -> None:
        """Put a notice up."""
        self.world.board[self.rank] = text

    def posts(self) -> dict[int, str]:
        """Return the last notice of each rank."""
        return dict(self.world.board)

    def abort(self, status: int = 1) -> None:
        """Let the collectives of all threads fail."""
        self.world.fail(f"abort: every rank must continue, got abort() on rank {self.rank}")


def _reduced(arrays: Sequence[Array], op: str) -> Array:
    total = arrays[0].copy()
    for array in arrays[1:]:
        total = _REDUCTIONS[op](total, array)
    return np.asarray(total, arrays[0].dtype)


def run_threads(size: int, program: Callable[[ThreadEngine], Any]) -> list[Any]:
    """Call ``program(engine)`` in `size` threads and return the results by rank.

    Raises:
        Exception: the first exception of a rank; the collectives of the others fail then.
    """
    world = ThreadWorld(size)
    results: list[Any] = [None] * size
    failures: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = program(ThreadEngine(world, rank))
        except BaseException as error:
            failures.append(error)
            world.fail(f"rank {rank} must not fail, got {type(error).__name__}: {error}")

    # Each rank computes in the context, and with the modes, of the caller.
    threads = [threading.Thread(target=copy_context().run, args=(run, rank), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results
