"""A job of mpiexec: it is started, told of the signals that this process gets, and started again when it fails."""

import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, Final

from nn_core.ext import say, settings

#: Exit statuses after which a job is not started again: success, and those of Ctrl-C and SIGTERM, from a program or a signal;
#: nor is it after that of a time limit, by which a scheduler starts it again.
STOPPED: Final = (0, *(sign for number in (signal.SIGINT, signal.SIGTERM) for sign in (128 + number, -number)))


def handed_on(family: str, stop_signals: Sequence[str]) -> dict[signal.Signals, signal.Signals]:
    """Return what mpiexec is sent for each signal, so that every rank gets one that means the same.

    MPICH's mpiexec hands on SIGINT, SIGTERM and SIGUSR1, and waits for the ranks; SIGHUP would end it. That of Open MPI kills
    the ranks a few seconds after SIGINT, SIGTERM and SIGHUP, and hands on SIGUSR1 and SIGUSR2.

    Args:
        family: That of the library.
        stop_signals: Names of signals besides SIGINT and SIGTERM that end a training; see NN_CORE_STOP_SIGNALS.
    """
    stop = signal.SIGUSR2 if family == "Open MPI" else signal.SIGTERM
    interrupt = signal.SIGUSR2 if family == "Open MPI" else signal.SIGINT
    hangup = stop if "SIGHUP" in stop_signals else signal.SIGUSR1
    return {
        signal.SIGINT: interrupt,
        signal.SIGTERM: stop,
        signal.SIGHUP: hangup,
        signal.SIGUSR1: signal.SIGUSR1,
    }


class Job:
    """The processes that a command of mpiexec starts.

    Inside a ``with`` block signals that this process gets are handed on, and it waits until the ranks have saved and ended.
    The job is in a session of its own: Ctrl-C in a terminal would reach mpiexec twice, and end the ranks at once.

    Args:
        command: The command.
        environment: Its environment.
        signals: What it is sent for each signal.

    Attributes:
        is_stopped: Whether it was told to end.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], signals: Mapping[signal.Signals, signal.Signals]
    ) -> None:
        self.is_stopped = False
        self._command = command
        self._environment = environment
        self._signals = signals
        self._process: subprocess.Popen[bytes] | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Job":
        for number in self._signals:
            previous = signal.getsignal(number)
            if previous is not signal.SIG_IGN and previous is not None:  # nohup has SIGHUP ignored
                self._previous[number] = previous
                signal.signal(number, self._hand_on)
        return self

    def __exit__(self, *_: object) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def run(self, restarts: int) -> int:
        """Run until it succeeds, is told to stop, or has failed once more than `restarts` times; its exit status."""
        for number in range(restarts + 1):
            status = self._run_once()
            if status in (*STOPPED, settings().requeue_status) or self.is_stopped or number == restarts:
                break
            say(f"launch: the job ended with status {status}; it starts again ({number + 1} of {restarts})", to_stderr=True)
        return status

    def _run_once(self) -> int:
        self._process = subprocess.Popen(self._command, env=dict(self._environment), start_new_session=True)
        try:
            return self._process.wait()
        finally:
            self._process = None

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        sent = self._signals[signal.Signals(number)]
        self.is_stopped = self.is_stopped or sent != signal.SIGUSR1
        process = self._process
        if process is not None:
            process.send_signal(sent)
        say(f"launch: {signal.Signals(number).name} is handed on to the ranks, which save first", to_stderr=True)
