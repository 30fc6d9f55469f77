"""Signals as wishes: the step that runs is finished and saved before the process ends, or goes on.

SIGTERM, Ctrl-C and what NN_CORE_STOP_SIGNALS names (SIGHUP by default) end the process; SIGUSR1, and SIGHUP if it is not
named, only ask for a checkpoint. Slurm sends what ``--signal`` names before the limit of a job; ``nohup`` has SIGHUP ignored,
which it stays.
"""

import signal
import sys
import threading
from collections.abc import Iterable
from types import FrameType
from typing import Any, Final

from nn_core.logger import logger
from nn_core.settings import settings

#: Signals that end the process when the step is finished and saved, whatever the settings say.
_ENDS: Final = ("SIGINT", "SIGTERM")
#: Signals that only ask for a checkpoint, unless the settings say that they end the process.
_ASKS: Final = ("SIGHUP", "SIGUSR1")


class StopSignals:
    """Take note of signals inside a ``with`` block; a second one of those that end the process has its usual effect.

    SIGINT, SIGTERM and the signals of ``settings().stop_signals`` end it; SIGHUP and SIGUSR1 ask for a checkpoint otherwise.

    In threads other than the main one it does nothing, since Python handles signals there alone.

    Attributes:
        received: The signal to end that came; None before.
        is_asked: Whether a signal came that only asks for a checkpoint; who has saved sets it back.

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
        self._ends = _numbers({*_ENDS, *settings().stop_signals})
        self._asks = _numbers(set(_ASKS) - settings().stop_signals)
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in (*self._ends, *self._asks):
                previous = signal.getsignal(number)
                if previous is not signal.SIG_IGN and previous is not None:
                    self._previous[number] = previous
                    signal.signal(number, self._take if number in self._ends else self._ask)
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
        self._restore(self._ends)  # not those that ask: they would end the process while it saves
        logger.warning("%s: the step is finished first; a second one ends it at once", self.received.name)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.is_asked = True

    def _restore(self, numbers: Iterable[signal.Signals] | None = None) -> None:
        for number in list(self._previous) if numbers is None else numbers:
            if number in self._previous:
                signal.signal(number, self._previous.pop(number))


def _numbers(names: Iterable[str]) -> tuple[signal.Signals, ...]:
    """Return the signals of these names that this system has."""
    return tuple(signal.Signals[name] for name in sorted(names) if name in signal.Signals.__members__)
