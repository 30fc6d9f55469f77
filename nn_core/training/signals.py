"""Signals as wishes: the step that runs is finished and saved before the process ends, or goes on.

SIGTERM, SIGHUP and Ctrl-C end the process; SIGUSR1 only asks for a checkpoint. Slurm sends what ``--signal`` names before the
limit of a job; ``nohup`` has SIGHUP ignored, which it stays.
"""

import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final

from nn_core.logger import logger

#: Signals that end the process when the step is finished and saved, and those that only ask for a checkpoint.
_ENDS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_ASKS: Final = tuple(getattr(signal, name) for name in ("SIGUSR1",) if hasattr(signal, name))


class StopSignals:
    """Take note of signals inside a ``with`` block; a second one of those that end the process has its usual effect.

    In threads other than the main one it does nothing, since Python handles signals there alone.

    Attributes:
        received: The signal to end that came; None before.
        is_asked: Whether SIGUSR1 came; who has saved sets it back.

    Example:
        >>> with StopSignals() as signals:
        ...     for step in range(3):
        ...         if signals.received:
        ...             break
        >>> step
        2
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self.is_asked = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in (*_ENDS, *_ASKS):
                previous = signal.getsignal(number)
                if previous is not signal.SIG_IGN and previous is not None:
                    self._previous[number] = previous
                    signal.signal(number, self._take if number in _ENDS else self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def leave(self, message: str) -> None:
        """After a signal, end the program as the signal would have: by KeyboardInterrupt, or exit code 128 + its number."""
        if self.received is None:
            return
        received = self.received
        self._restore()
        logger.warning("%s by %s", message, received.name)
        if received == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + received)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        self._restore(_ENDS)  # not that of SIGUSR1, which would end the process while it saves
        logger.warning("%s: the step is finished first; a second one ends it at once", self.received.name)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.is_asked = True

    def _restore(self, numbers: Sequence[signal.Signals] = (*_ENDS, *_ASKS)) -> None:
        for number in numbers:
            if number in self._previous:
                signal.signal(number, self._previous.pop(number))
