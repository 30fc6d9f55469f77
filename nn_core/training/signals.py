"""SIGTERM and Ctrl-C as a wish: the step that runs is finished and saved before the process ends."""

import signal
import sys
import threading
from types import FrameType
from typing import Any

from nn_core.logger import logger


class StopSignals:
    """Take note of SIGTERM and SIGINT inside a ``with`` block; a second one has its usual effect.

    In threads other than the main one it does nothing, since Python handles signals there alone.

    Attributes:
        received: The signal that came; None before.

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
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                previous = signal.getsignal(number)
                if previous is not signal.SIG_IGN and previous is not None:
                    self._previous[number] = previous
                    signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def leave(self, message: str) -> None:
        """After a signal, end the program as the signal would have: by KeyboardInterrupt, or exit code 128 + 15."""
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
        self._restore()
        logger.warning("%s: the step is finished first; a second one ends it at once", self.received.name)

    def _restore(self) -> None:
        while self._previous:
            number, previous = self._previous.popitem()
            signal.signal(number, previous)
