"""A group of ranks: its collectives have numbers and a time limit, and differences between the ranks are found out."""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final
from zlib import crc32

import numpy as np

from nn_core.communicators.engine import Engine, Handle
from nn_core.errors import ArgumentError, CommunicationError
from nn_core.typing import Array

#: Part of the time limit after which a waiting rank tells the others so, and which it gives late notices to arrive.
_NOTICE: Final = 1 / 8
#: Length of a description of a collective that is sent to explain a difference.
_TEXT_BYTES: Final = 240
#: Seconds between two looks at the notices of ranks that have ended.
_LOOK_S: Final = 0.5
#: In place of a collective in the last notice of a rank.
_ENDED: Final = "the end of the program"
#: Number of different collectives whose digests are kept.
_DIGESTS: Final = 1000


class Circle:
    """One group of ranks.

    Args:
        name: Name of the group.
        ranks: Its ranks in the world.
        engine: The engine of this rank within the group.
        timeout_s: Seconds that a collective may take; 0: any time.

    Each collective starts with a ticket: every rank says what it is about to do, and waits, within the time limit, until
    all have said so. Ranks that disagree learn it here, in place of waiting for ever or adding up what does not belong
    together.
    """

    def __init__(self, name: str, ranks: Sequence[int], engine: Engine, timeout_s: float) -> None:
        self.name = name
        self.ranks = list(ranks)
        self.engine = engine
        self.timeout_s = timeout_s
        self.number = 0
        self.scratch: dict[str, Array] = {}
        self._call = ""
        self._broken = ""
        self._ticket: Array = getattr(engine, "ticket", np.zeros(8, np.int64))
        self._start: Callable[[], Handle | None] = getattr(
            engine, "start_ticket", partial(engine.all_reduce, self._ticket, "max")
        )
        #: the same memory: single numbers are written and read much faster so
        self._numbers = self._ticket.data
        self._digests: dict[tuple[str, str], int] = {}

    @property
    def rank(self) -> int:
        """Number of this process within the group."""
        return self.engine.rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.engine.size

    def require_rank(self, call: str, what: str, rank: int) -> None:
        """Refuse a number that is no rank of this group.

        Args:
            call: Name of the method.
            what: Name of the argument.
            rank: The number.
        """
        if not 0 <= rank < self.size:
            raise ArgumentError(f"{call}: {what} must be a rank within group {self.name!r}, 0 to {self.size - 1}, got {rank}")

    def agree(self, call: str, subject: str = "", *facts: int) -> list[int]:
        """Begin a collective.

        Args:
            call: Name of the method.
            subject: A value that must be the same on all ranks.
            facts: Up to six numbers of this rank.

        Returns:
            The maximum of each fact over all ranks.

        Raises:
            CommunicationError: when ranks do not come within the time limit, or come for something else.
        """
        if self._broken:
            raise CommunicationError(
                f"{call}: the group {self.name!r} must be whole, got a call after a failure\n  first failure: {self._broken}"
            )
        self.number += 1
        self._call = call
        numbers = self._numbers
        digest = self._digests.get((call, subject))
        if digest is None:
            if len(self._digests) > _DIGESTS:
                self._digests.clear()
            digest = self._digests[call, subject] = crc32(f"{call} {subject}".encode())
        digest += self.number << 32
        numbers[0], numbers[1] = digest, -digest
        for place, fact in enumerate(facts, 2):
            numbers[place] = fact
        handle = self._start()
        if handle is not None:
            self.wait(handle)
        if numbers[0] != -numbers[1]:
            raise self._fail(self._difference(f"{call}({subject})"))
        return numbers[2 : 2 + len(facts)].tolist() if facts else []

    def wait(self, handle: Handle | None) -> None:
        """Wait for what an engine has started.

        Raises:
            CommunicationError: after the time limit; it names the collective and the missing ranks.
        """
        if handle is None:
            return
        limit = self.timeout_s or math.inf
        pause = min(_LOOK_S, limit * _NOTICE)
        if not handle.wait(pause):
            self._wait_long(handle, limit, pause)

    def _wait_long(self, handle: Handle, limit: float, pause: float) -> None:
        """Wait on, look for ranks that have ended, and tell the others in time that this one waits."""
        start = time.monotonic() - pause
        has_posted = False
        while not handle.wait(pause):
            self._require_present(handle)
            elapsed = time.monotonic() - start
            if not has_posted and elapsed >= limit * _NOTICE:
                has_posted = True
                self._post(self._call)
            if elapsed >= limit * (1 + _NOTICE):
                raise self._fail(self._absence())

    def _require_present(self, handle: Handle) -> None:
        """Raise an error if a rank that has ended takes no part in this collective.

        Raises:
            CommunicationError: when there is one.
        """
        ended = [place for place, (number, call) in self._notices().items() if call == _ENDED and number < self.number]
        if ended and not handle.done():
            ranks = _ranks([self.ranks[place] for place in sorted(ended)])
            raise self._fail(
                f"{self._call}: every rank must take part in collective {self.number} of group {self.name!r}, got the end of "
                f"the program on {ranks}"
            )

    def leave(self) -> None:
        """Tell the other ranks that this one has made its last call."""
        if self.size > 1:
            self._post(_ENDED)

    def _post(self, call: str) -> None:
        post = getattr(self.engine, "post", None)
        if post is not None:
            post(f"{self.number}\t{call}")

    def _notices(self) -> dict[int, tuple[int, str]]:
        """Return the number and the name of the collective in the last notice of each rank, by its place in the group."""
        posts: dict[int, str] = getattr(self.engine, "posts", dict)()
        parts = {place: text.partition("\t") for place, text in posts.items()}
        return {place: (int(number), call) for place, (number, _, call) in parts.items() if place != self.rank}

    def _fail(self, reason: str) -> CommunicationError:
        self._broken = reason.partition("\n")[0]
        return CommunicationError(reason)

    def _absence(self) -> str:
        """Return the missing ranks, by the notices of those that wait."""
        what = f"{self._call}: every rank must take part in collective {self.number} of group {self.name!r} within "
        what += f"{self.timeout_s:g} s, got"
        if not hasattr(self.engine, "posts"):
            others = [rank for place, rank in enumerate(self.ranks) if place != self.rank]
            return f"{what} no answer from at least one of {_ranks(others)}"
        missing, lines = [], []
        notices = self._notices()
        for place, rank in enumerate(self.ranks):
            number, call = notices.get(place, (0, ""))
            has_come = (number, call) == (self.number, self._call) or (call == _ENDED and number >= self.number)
            if place == self.rank or has_come:
                continue
            if number >= self.number:
                lines.append(f"\n  rank {rank} waits in collective {number}: {call}")
            missing.append(rank)
        where = sorted({self.engine.hosts[self.ranks.index(rank)] for rank in missing})
        return f"{what} nothing from {_ranks(missing)} on {', '.join(where)}{''.join(lines)}" if missing else f"{what} no end"

    def _difference(self, own: str) -> str:
        """Return the next collective of each rank, where they differ."""
        text = f"collective {self.number}: {own}".encode("ascii", "replace")[:_TEXT_BYTES]
        send = np.zeros(_TEXT_BYTES, np.uint8)
        send[: len(text)] = np.frombuffer(text, np.uint8)
        receive = np.zeros(self.size * _TEXT_BYTES, np.uint8)
        self.wait(self.engine.all_gather(send, receive))
        rows = receive.reshape(self.size, -1)
        texts = [bytes(row).rstrip(bytes(1)).decode() for row in rows]
        lines = [f"\n  rank {rank}: {text}" for rank, text in zip(self.ranks, texts, strict=True)]
        call = own.partition("(")[0]
        return f"{call}: all ranks of group {self.name!r} must make the same call, got{''.join(lines)}"

    def run(self, call: str, *args: Any) -> None:
        """Call a method of the engine and wait for its end."""
        handle = getattr(self.engine, call)(*args)
        if handle is not None:
            self.wait(handle)


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
