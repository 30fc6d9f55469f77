"""Signals as wishes: the step that runs is finished and saved before the process ends, or goes on.

SIGTERM, Ctrl-C and what NN_CORE_STOP_SIGNALS names (SIGHUP by default) end the process; SIGUSR1, and SIGHUP if it is not
named, only ask for a checkpoint. Slurm sends what ``--signal`` names before the limit of a job; ``nohup`` has SIGHUP ignored,
which it stays. A time limit of the process ends it in the same way. After the limit, and after SIGUSR1 where that is the
notice of a scheduler that time is over, the exit status asks for the job to be started again (NN_CORE_REQUEUE_STATUS).
"""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, Final

from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.engine.runtime.limits import TimeLimit, deadline_of
from nn_core.logger import logger
from nn_core.settings import settings

#: Signals that end the process when the step is finished and saved, whatever the settings say.
_ENDS: Final = ("SIGINT", "SIGTERM")
#: Signals that only ask for a checkpoint, unless the settings say that they end the process.
_ASKS: Final = ("SIGHUP", "SIGUSR1")
#: The one among them by which schedulers give notice of the limit of a job.
_NOTICE: Final = "SIGUSR1"


@fitted_methods()
class StopSignals:
    """Take note of signals inside a ``with`` block; a second one of those that end the process has its usual effect.

    SIGINT, SIGTERM and the signals of ``settings().stop_signals`` end it; SIGHUP and SIGUSR1 ask for a checkpoint otherwise.

    In threads other than the main one no signals are seen, since Python handles them there alone.

    Args:
        time_limit: When this process is to end as if a signal had come: seconds from now, a text such as "3h50m", "slurm"
            for two minutes before Slurm ends the job, "slurm-5m" for another time before it, or "@" and a Unix time. None:
            NN_CORE_TIME_LIMIT, or never.

    Attributes:
        received: The signal to end that came; None before.
        is_asked: Whether a signal came that only asks for a checkpoint; who has saved sets it back.
        is_expired: Whether the time limit was reached when `ends` was read, here or on another rank.

    Raises:
        ArgumentError: when `time_limit` is no such limit.

    Example:
        >>> with StopSignals() as signals:
        ...     for step in range(3):
        ...         if signals.ends:
        ...             break
        >>> step
        2
    """

    @fitted
    def __init__(self, time_limit: TimeLimit | None = None) -> None:
        limit = settings().time_limit if time_limit is None else time_limit
        self.received: signal.Signals | None = None
        self.is_asked = False
        self.is_expired = False
        self._deadline = None if limit is None else deadline_of("time_limit", limit)
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

    @property
    def ends(self) -> bool:
        """Whether the program is to end: a signal to end came, or the time limit is reached."""
        if self._deadline is not None and not self.is_expired:
            self.is_expired = time.monotonic() >= self._deadline
        return self.is_expired or self.received is not None

    def flags(self) -> list[bool]:
        """Return flags that other ranks take over by `take_flags`; the time is not looked at again."""
        return [self.received is not None, _is_notice(self.received), self.is_expired, self.is_asked]

    def take_flags(self, flags: Sequence[bool]) -> bool:
        """Take over what any rank has seen, as `flags` tells it, and return whether the program is to end."""
        received, is_notice, expired, asked = flags
        if received and self.received is None:
            self.received = signal.Signals[_NOTICE if is_notice else "SIGTERM"]
        self.is_expired, self.is_asked = expired, self.is_asked or asked
        return received or expired

    def leave(self, message: str, wait: Callable[[], None] | None = None) -> None:
        """Say why the program ends after a signal or the time limit, and end it.

        By KeyboardInterrupt after Ctrl-C; by the exit status NN_CORE_REQUEUE_STATUS (75), which asks for another start, after
        the time limit and SIGUSR1; by 128 and the number of the signal after others.

        Args:
            message: What has ended, to be told before "by SIGTERM".
            wait: Is called after the message: several ranks wait for each other, since the first that ends may end the others.
        """
        if self.received is None and not self.is_expired:
            return
        received = self.received
        self._restore()
        logger.warning("%s by %s", message, "its time limit" if received is None else received.name)
        if wait is not None:
            wait()
        if received == signal.SIGINT:
            raise KeyboardInterrupt
        if received is None or _is_notice(received):
            sys.exit(settings().requeue_status)
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


def _is_notice(received: signal.Signals | None) -> bool:
    return received is not None and received.name == _NOTICE


def _numbers(names: Iterable[str]) -> tuple[signal.Signals, ...]:
    """Return the signals of these names that this system has."""
    return tuple(signal.Signals[name] for name in sorted(names) if name in signal.Signals.__members__)
