"""The parts of the process that importing a plugin must leave as they are: how to look at each, and how to put it back.

A `Sight` is a row: what a remark calls it, a function that reads it, and one that restores what was read, or None where that
is impossible, as for threads. Importing a module may add modules; all else belongs to the program.
"""

import builtins
import gc
import io
import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from nn_core import settings
from nn_core.engine.dispatch.exit_functions import AtExit
from nn_core.engine.dispatch.floating_point import FloatingPoint
from nn_core.engine.dispatch.guard import Clock
from nn_core.engine.dispatch.library_sights import LIBRARY, SYSTEM, Sight
from nn_core.engine.runtime.context_values import AMBIENTS
from nn_core.logger import logger

#: Hooks of the interpreter that are attributes of ``sys``.
_HOOKS: Final = ("excepthook", "unraisablehook", "displayhook", "breakpointhook")
#: The standard files as the interpreter has opened them.
_OWN_FILES: Final = ("__stdin__", "__stdout__", "__stderr__")
#: Attributes of ``sys`` that the interpreter reads when it imports modules and shows exceptions.
_OWN_SETTINGS: Final = ("dont_write_bytecode", "pycache_prefix", "tracebacklimit", "warnoptions")
_TIMERS: Final = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _logging() -> Any:
    # a library that configures logging takes the choice from the program
    loggers = [(one.level, tuple(one.handlers), one.disabled, one.propagate) for one in (logging.root, logger)]
    return loggers, logging.root.manager.disable, logging.getLoggerClass(), logging.lastResort


def _restore_logging(state: Any) -> None:
    for one, (level, handlers, disabled, propagate) in zip((logging.root, logger), state[0], strict=True):
        one.setLevel(level)
        one.handlers[:] = handlers
        one.disabled, one.propagate = disabled, propagate
    logging.disable(state[1])
    logging.setLoggerClass(state[2])
    logging.lastResort = state[3]


def _signal_handlers() -> dict[int, Any]:
    return {int(number): signal.getsignal(number) for number in signal.valid_signals()}


def _blocked_signals() -> Any:
    return signal.pthread_sigmask(signal.SIG_BLOCK, ()) if hasattr(signal, "pthread_sigmask") else ()


def _restore_blocked_signals(numbers: Any) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, numbers)


def _restore_signal_handlers(handlers: Mapping[int, Any]) -> None:
    for number, handler in handlers.items():
        if _in_main_thread() and handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)


def _wakeup() -> int:
    """Return the descriptor that signals are written to; -1 for none."""
    if not _in_main_thread():
        return -1
    descriptor = signal.set_wakeup_fd(-1)
    _restore_wakeup(descriptor)
    return descriptor


def _restore_wakeup(descriptor: int) -> None:
    if _in_main_thread():
        signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)


def _timers() -> tuple[bool, ...]:
    return tuple(signal.getitimer(getattr(signal, name))[0] > 0 for name in _TIMERS if hasattr(signal, name))


def _restore_timers(running: tuple[bool, ...]) -> None:
    for name, was_running in zip(_TIMERS, running, strict=False):
        if not was_running:
            signal.setitimer(getattr(signal, name), 0)


def _limits() -> dict[int, tuple[int, int]]:
    with suppress(ImportError):  # Windows
        import resource

        numbers = {getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}
        return {number: resource.getrlimit(number) for number in sorted(numbers)}
    return {}


def _restore_limits(limits: Mapping[int, tuple[int, int]]) -> None:
    import resource

    for number, (soft, _) in limits.items():
        hard = resource.getrlimit(number)[1]  # which cannot be raised again
        with suppress(ValueError, OSError):
            resource.setrlimit(number, (soft, hard))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _descriptors() -> tuple[Any, ...]:
    return tuple(map(_identity, range(3)))


def _identity(descriptor: int) -> Any:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_rdev


def _children() -> frozenset[str]:
    """Return the processes that this one has started, on Linux."""
    found: list[str] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found += path.read_text(encoding="ascii").split()
    return frozenset(found)


class _Generator:
    """The bit generator behind the functions of ``numpy.random``, and its state."""

    def __init__(self) -> None:
        self.generator = getattr(np.random, "get_bit_generator", object)()  # NumPy 1.24
        self.state: Any = np.random.get_state(legacy=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Generator):
            return NotImplemented
        is_same = self.generator is other.generator or not hasattr(np.random, "get_bit_generator")
        return is_same and repr(_plain(self.state)) == repr(_plain(other.state))

    __hash__ = None  # type: ignore[assignment]

    def restore(self) -> None:
        if hasattr(np.random, "set_bit_generator"):
            np.random.set_bit_generator(self.generator)
        np.random.set_state(self.state)


def _random_states() -> Any:
    own = sys.modules.get("nn_core.random")
    seeds = sys.modules.get("nn_core.engine.graph.seeds")
    return (
        random.getstate(),
        _Generator(),
        None if own is None else _plain(own.prng.get_state()),
        None if seeds is None else seeds.FUNCTION_SEED.get(),
    )


def _plain(state: Any) -> Any:
    if isinstance(state, np.ndarray):
        return tuple(state.tolist())
    if isinstance(state, dict):
        return {name: _plain(part) for name, part in state.items()}
    return tuple(map(_plain, state)) if isinstance(state, tuple) else state


def _restore_random_states(states: Any) -> None:
    random.setstate(states[0])
    states[1].restore()
    if states[2] is not None:
        sys.modules["nn_core.random"].prng.set_state(states[2])
    if states[3] is not None:
        sys.modules["nn_core.engine.graph.seeds"].FUNCTION_SEED.restore(*states[3])


class _Defaults(tuple[Any, ...]):
    """The values outside every scope; those of modules that are imported later are no change."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and all(one is another for one, another in zip(self, other, strict=False))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


def _ambient_values() -> _Defaults:
    return _Defaults(ambient.default for ambient in AMBIENTS)


def _restore_ambient_values(values: _Defaults) -> None:
    for ambient, value in zip(AMBIENTS, values, strict=False):
        if ambient.default is not value:
            ambient.set_default(value)


def _print_options() -> dict[str, Any]:
    return {name: value for name, value in np.get_printoptions().items() if name != "override_repr"}


def _collector() -> Any:
    return gc.isenabled(), gc.get_threshold(), tuple(gc.callbacks), gc.get_debug(), gc.get_freeze_count() > 0


def _restore_collector(state: Any) -> None:
    (gc.enable if state[0] else gc.disable)()
    gc.set_threshold(*state[1])
    gc.callbacks[:] = state[2]
    gc.set_debug(state[3])
    if not state[4]:
        gc.unfreeze()


def _restore_list(place: Callable[[], list[Any]]) -> Callable[[Any], None]:
    def restore(items: Any) -> None:
        place()[:] = items

    return restore


def _restore_filters(filters: Any) -> None:
    warnings.filters[:] = filters  # type: ignore[index]  # a list, declared a Sequence
    getattr(warnings, "_filters_mutated", int)()  # which filters were applied to a line is remembered


def _environment() -> Any:
    return id(os.environ), os.environ, dict(os.environ)  # mappings of the same content are equal


def _restore_environment(state: Any) -> None:
    _, os.environ, variables = state  # the object that the program had
    for name in [name for name in os.environ if name not in variables]:
        del os.environ[name]
    os.environ.update(variables)


def _threads() -> frozenset[int]:
    """Return the threads that Python knows, started by whichever module, but for those that watch the time of plugins."""
    return frozenset(sys._current_frames()) - {thread.ident for thread in threading.enumerate() if isinstance(thread, Clock)}


def _attributes_of_sys(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(sys, name, None) for name in names}


def _restore_attributes_of_sys(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if value is not None or hasattr(sys, name):
            setattr(sys, name, value)


#: How these are read and restored, where the interpreter and the system have them.
_OF_DIGITS: Final = getattr(sys, "get_int_max_str_digits", int), getattr(sys, "set_int_max_str_digits", int)
_OF_PROCESSORS: Final = (
    (lambda: os.sched_getaffinity(0), lambda processors: os.sched_setaffinity(0, processors))
    if hasattr(os, "sched_setaffinity")
    else (int, int)
)
_OF_LOADER: Final = getattr(sys, "getdlopenflags", int), getattr(sys, "setdlopenflags", int)
#: Looked at before all others, since it changes what is read of them.
FLOATING: Final = Sight("floating-point arithmetic", FloatingPoint, FloatingPoint.restore)


def _stack_size() -> int:
    size = threading.stack_size()  # which sets it to 0
    threading.stack_size(size)
    return size


#: Settings by which all results change.
OURS: Final = (
    FLOATING,
    Sight("modes and contexts of nn_core", _ambient_values, _restore_ambient_values),
    Sight("settings of nn_core", settings.switches, settings.set_switches),
)
#: While time is measured, the handler is that of the clock, which is gone when others look.
CTRL_C: Final = Sight("signal handlers", lambda: {signal.SIGINT: signal.getsignal(signal.SIGINT)}, _restore_signal_handlers)
#: With too low a limit healthy plugins fail that are loaded later.
RECURSION: Final = Sight("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit)
#: Everything with one value. What is read must compare by ``==``.
SIGHTS: Final = (
    Sight("the configuration of logging", _logging, _restore_logging),
    Sight("warning filters", lambda: tuple(warnings.filters), _restore_filters),
    Sight("np.seterr", lambda: dict(np.geterr()), lambda state: np.seterr(**state)),
    Sight("np.seterrcall", np.geterrcall, np.seterrcall),
    Sight("the buffer size of NumPy", np.getbufsize, np.setbufsize),
    Sight("print options of NumPy", _print_options, lambda state: np.set_printoptions(**state)),
    Sight("random states", _random_states, _restore_random_states),
    *OURS,
    Sight("signal handlers", _signal_handlers, _restore_signal_handlers),
    Sight("blocked signals", _blocked_signals, _restore_blocked_signals),
    Sight("the descriptor that signals are written to", _wakeup, _restore_wakeup),
    Sight("timers", _timers, _restore_timers),
    Sight("sys.path", lambda: tuple(sys.path), _restore_list(lambda: sys.path)),
    Sight("sys.meta_path", lambda: tuple(sys.meta_path), _restore_list(lambda: sys.meta_path)),
    Sight("sys.path_hooks", lambda: tuple(sys.path_hooks), _restore_list(lambda: sys.path_hooks)),
    Sight("sys.argv", lambda: tuple(sys.argv), _restore_list(lambda: sys.argv)),
    Sight("hooks of the interpreter", partial(_attributes_of_sys, _HOOKS), _restore_attributes_of_sys),
    Sight("hooks of asynchronous generators", sys.get_asyncgen_hooks, lambda hooks: sys.set_asyncgen_hooks(*hooks)),
    Sight("files of the interpreter", partial(_attributes_of_sys, _OWN_FILES), _restore_attributes_of_sys),
    Sight("settings of the interpreter", partial(_attributes_of_sys, _OWN_SETTINGS), _restore_attributes_of_sys),
    Sight("threading.excepthook", lambda: threading.excepthook, lambda hook: setattr(threading, "excepthook", hook)),
    Sight("functions to call at exit", AtExit.count, lambda _: AtExit.forget()),
    Sight("the profile function", sys.getprofile, sys.setprofile),
    Sight("the trace function", sys.gettrace, sys.settrace),
    Sight("the profile function of threads", threading.getprofile, threading.setprofile),
    Sight("the trace function of threads", threading.gettrace, threading.settrace),
    RECURSION,
    Sight("the digits of integers in texts", *_OF_DIGITS),
    Sight("the processors of the process", *_OF_PROCESSORS),
    Sight("the flags of the dynamic loader", *_OF_LOADER),
    Sight("the stack size of threads", _stack_size, threading.stack_size),
    Sight("the switch interval", sys.getswitchinterval, sys.setswitchinterval),
    Sight("the garbage collector", _collector, _restore_collector),
    Sight("the locale", lambda: locale.setlocale(locale.LC_ALL), lambda name: locale.setlocale(locale.LC_ALL, name)),
    Sight("os.environ", _environment, _restore_environment),
    Sight("the current directory", os.getcwd, os.chdir),
    Sight("the umask", _umask, os.umask),
    Sight("resource limits", _limits, _restore_limits),
    *SYSTEM,
    *LIBRARY,
    Sight("threads", _threads),
    Sight("child processes", _children),
)


class Builtins:
    """The names that every module can use. They are put back by operations that need none of them."""

    _TABLE: Final = builtins.__dict__
    _MISSING: Final = object()

    def __init__(self) -> None:
        self._values = dict(self._TABLE)

    def put_back(self) -> list[str]:
        """Restore what a plugin has replaced, removed or added, and return the names."""
        table, values, missing = self._TABLE, self._values, self._MISSING
        # interactive interpreters and translations keep their `_`
        names = [n for n in {**values, **table} if n != "_" and table.get(n, missing) is not values.get(n, missing)]
        for name in names:
            if name in values:
                table[name] = values[name]
            else:
                del table[name]
        return names


class Streams:
    """The three standard files, kept while a plugin is imported."""

    def __init__(self) -> None:
        self._names = (sys.stdin, sys.stdout, sys.stderr)
        self._identities = _descriptors()
        self._copies = [None if identity is None else os.dup(number) for number, identity in enumerate(self._identities)]

    def changes(self) -> list[str]:
        """Return the files that are others by now."""
        found = [f"changes sys.{name}" for name, stream in self._named() if getattr(sys, name) is not stream]
        return found + [f"changes file descriptor {n}" for n, old in enumerate(self._identities) if _identity(n) != old]

    def restore(self) -> None:
        """Put them back."""
        for name, stream in self._named():
            setattr(sys, name, stream)
        for number, copy in enumerate(self._copies):
            if copy is not None and _identity(number) != self._identities[number]:
                os.dup2(copy, number)

    def close(self) -> None:
        """Let go of the copies."""
        for copy in self._copies:
            if copy is not None:
                os.close(copy)

    def _named(self) -> Iterator[tuple[str, Any]]:
        return zip(("stdin", "stdout", "stderr"), self._names, strict=True)


def capture() -> io.StringIO:
    """Return a text file in memory for what is printed; closing it has no effect, since a plugin may do that."""
    printed = io.StringIO()
    printed.close = lambda: None  # type: ignore[method-assign]  # whoever prints afterwards would fail
    return printed
