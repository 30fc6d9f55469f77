"""Launches that are held back, so that those of a whole training step become one.

Inside ``nn_core.launch_together()`` what a recorded plan or a solver would launch is noted; at the end of the block, or
when somebody looks at an array, all of it is launched. A sequence that comes again is recorded as one graph.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Final, Protocol

from nn_ext_cuda.codegen.words import Letter
from nn_ext_cuda.launch.graphs import CaptureError, record
from nn_ext_cuda.memory.derived_weights import distrust

_LOGGER: Final = logging.getLogger("nn_core.cuda")
#: Different sequences that begin with one part; more than these are launched part by part.
MAX_SEQUENCES: Final = 8


class Part(Protocol):
    """Something that is launched as a whole."""

    words: Letter | None
    uses_blas: bool
    #: Whether it may be launched later.
    may_wait: bool
    #: Sequences that begin with this part, by the identities of all parts.
    together: "dict[tuple[int, ...], _Entry]"

    def run(self) -> None:
        """Launch what can be recorded; kernels read the words from the device."""
        ...

    def launch(self) -> None:
        """Launch, with the words that were taken."""
        ...


class _State(threading.local):
    depth = 0
    parts: tuple[Part, ...] = ()


_STATE: Final = _State()


@contextlib.contextmanager
def launch_together() -> Iterator[None]:
    """Hold back what is launched in the block; see `nn_core.launch_together`."""
    _STATE.depth += 1
    try:
        yield
    finally:
        _STATE.depth -= 1
        if _STATE.depth == 0:
            flush()


def is_holding() -> bool:
    """Return whether this thread holds back launches now."""
    return _STATE.depth > 0


def launch(part: Part) -> None:
    """Launch a part, with the words that the host says now: at once, or later."""
    # the words of the first time are still to be sent
    if not part.may_wait or any(part is other for other in _STATE.parts):
        flush()
    if part.words is not None:
        part.words.take()
    if _STATE.depth == 0 or not part.may_wait:
        part.launch()
    else:
        _STATE.parts = (*_STATE.parts, part)


def flush() -> None:
    """Launch what is held back."""
    parts = _STATE.parts
    if not parts:
        return
    _STATE.parts = ()
    try:
        sequence = _sequence_of(parts) if len(parts) > 1 else None
        for whole in parts if sequence is None else (sequence,):
            whole.launch()
    except BaseException:
        distrust()  # what was held back counts as done, but was not launched
        raise


class Sequence:
    """Parts recorded as one graph.

    Args:
        parts: The parts.
    """

    __slots__ = ("_graph", "_words")

    def __init__(self, parts: tuple[Part, ...]) -> None:
        words = [one for part in parts if part.words is not None for one in part.words.words]
        self._words = Letter(words) if words else None
        self._graph = record([part.run for part in parts], uses_blas=any(part.uses_blas for part in parts))

    def launch(self) -> None:
        """Launch all of them, with the words that were taken."""
        if self._words is not None:
            self._words.send()
        self._graph.launch()


class _Entry:
    """The record of a sequence; it keeps the parts alive, so that no other object gets their identities."""

    __slots__ = ("failed", "parts", "sequence")

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts
        self.sequence: Sequence | None = None
        self.failed = False


def _sequence_of(parts: tuple[Part, ...]) -> Sequence | None:
    """Return the graph of a sequence that has come before; None: its parts are to be launched one by one."""
    known = parts[0].together
    key = tuple(map(id, parts))
    entry = known.get(key)
    if entry is None:
        if len(known) < MAX_SEQUENCES:
            known[key] = _Entry(parts)
        return None
    if entry.sequence is None and not entry.failed:
        try:
            entry.sequence = Sequence(parts)
        except CaptureError as error:
            entry.failed = True
            _LOGGER.warning("a training step is launched in %d parts: %s", len(parts), error)
    return entry.sequence
