"""Code of plugins, run so that nothing it does ends the program: exits and interrupts become errors, and time is bounded.

In the main thread a deadline interrupts blocking calls as well. In other threads it reaches Python code only, and native
code that does not return is never interrupted; ``nn-core doctor`` therefore examines plugins in processes of their own.
"""

import _thread
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final, TypeVar

from nn_core.engine.dispatch.exception_text import text_of
from nn_core.errors import PluginError

T = TypeVar("T")

#: Seconds between two interrupts of code of a plugin whose time is over.
_PAUSE_S: Final = 0.1


class DeadlineReached(BaseException):  # not an error: it must pass through ``except Exception``
    """Raised in code of a plugin whose time is over."""


def guarded(what: str, seconds: float | None, run: Callable[[], T]) -> T:
    """Call `run`, which is code of a plugin, for `seconds` at most.

    Raises:
        KeyboardInterrupt: when the user pressed Ctrl-C; one that the plugin raises itself is a PluginError.
        PluginError: when it exits, does not end in time, or raises what is no Exception.
        Exception: whatever else it raises.
    """
    guard = _Guard(seconds)
    try:
        with guard:
            result = run()
    except BaseException as error:
        if guard.expired:
            raise _too_slow(what, seconds) from None
        if isinstance(error, (Exception, DeadlineReached)) or (isinstance(error, KeyboardInterrupt) and guard.by_user):
            raise  # a deadline that is not ours belongs to a guard around this one
        raise PluginError(f"{what}: must not end the program, got {text_of(error)}") from error
    if guard.expired:
        raise _too_slow(what, seconds)
    return result


def _too_slow(what: str, seconds: float | None) -> PluginError:
    return PluginError(f"{what}: must end within {seconds} s, got no end")


class Clock(threading.Timer):
    """The thread that ends code of a plugin when its time is over."""


class _Guard:
    """Watches the clock and Ctrl-C while code of a plugin runs."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._previous: Any = None
        self._timer: Clock | None = None
        self._is_over = False
        self._ended = threading.Event()
        self._delivered = False
        self.expired = False
        self.by_user = False

    def __enter__(self) -> None:
        previous = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and previous is not None:
            self._previous = previous
            signal.signal(signal.SIGINT, self._interrupted)
        if self._seconds is not None:
            self._timer = Clock(self._seconds, self._expire)
            # a program that ends does not wait for it
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._lock:
            self._is_over = True
        self._ended.set()
        if self._timer is not None:
            self._timer.cancel()
        if self.expired and kind is not DeadlineReached and not self._delivered:
            with suppress(DeadlineReached):  # it is on its way, and must not hit other code
                time.sleep(1)
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)  # also where the plugin has installed a handler of its own

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.expired and not self._delivered:
            self._delivered = True
            raise DeadlineReached
        self.by_user = True
        if callable(self._previous):
            self._previous(number, frame)
        elif self._previous == signal.SIG_DFL:
            raise KeyboardInterrupt

    def _expire(self) -> None:
        while not self._ended.wait(_PAUSE_S if self.expired else 0):
            with self._lock:
                # too late: the interrupt would hit the code after the plugin's
                if self._is_over or self._delivered:
                    return
                self.expired = True
                if not self._interrupt():
                    return

    def _interrupt(self) -> bool:
        """Interrupt the code of the plugin; return whether that may have to be repeated.

        A signal that arrives just before a call blocks does not end the call.
        """
        if self._previous is None:
            _raise_in(self._thread)
            return False
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(self._thread, signal.SIGINT)
            return True
        _thread.interrupt_main()
        return False


def _raise_in(thread: int) -> None:
    import ctypes  # only where a plugin hangs in another than the main thread

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(DeadlineReached))
