"""The parts of the process that importing a plugin must leave as they are: how to look at each, and how to put it back.

A `Sight` is a row: what a remark calls it, a function that reads it, and one that restores what was read, or None where that
is impossible, as for threads. Importing a module may add modules; all else belongs to the program.
"""

import atexit
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
from types import ModuleType
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from nn_core import settings
from nn_core.engine.runtime.context_values import AMBIENTS

#: Modules of NumPy whose attributes are looked at.
_NUMPY: Final = ("numpy", "numpy.random", "numpy.linalg", "numpy.fft")
#: Hooks of the interpreter that are attributes of ``sys``.
_HOOKS: Final = ("excepthook", "unraisablehook", "displayhook", "breakpointhook")
#: Types of constants of ours, which are compared by identity.
_CONSTANTS: Final = (str, bytes, int, float, tuple, frozenset)
_TIMERS: Final = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")


class Sight(NamedTuple):
    """One thing that is looked at before and after."""

    what: str
    read: Callable[[], Any]
    restore: Callable[[Any], object] | None = None


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _logging() -> Any:
    # a library that configures logging takes the choice from the program
    root = logging.getLogger()
    return root.level, tuple(root.handlers), logging.root.manager.disable, logging.getLoggerClass()


def _restore_logging(state: Any) -> None:
    root = logging.getLogger()
    root.setLevel(state[0])
    root.handlers[:] = state[1]
    logging.disable(state[2])
    logging.setLoggerClass(state[3])


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


def _start_method() -> Any:
    module = sys.modules.get("multiprocessing")
    return None if module is None else module.get_start_method(allow_none=True)


def _restore_start_method(method: Any) -> None:
    sys.modules["multiprocessing"].set_start_method(method, force=True)


def _random_states() -> Any:
    own = sys.modules.get("nn_core.random")
    seeds = sys.modules.get("nn_core.engine.graph.seeds")
    return (
        random.getstate(),
        _plain(np.random.get_state()),
        None if own is None else _plain(own.prng.get_state()),
        None if seeds is None else seeds.FUNCTION_SEED.get(),
    )


def _plain(state: Any) -> tuple[Any, ...]:
    return tuple(tuple(part.tolist()) if isinstance(part, np.ndarray) else part for part in state)


def _restore_random_states(states: Any) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])
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
    return gc.isenabled(), gc.get_threshold(), tuple(gc.callbacks)


def _restore_collector(state: Any) -> None:
    (gc.enable if state[0] else gc.disable)()
    gc.set_threshold(*state[1])
    gc.callbacks[:] = state[2]


def _restore_list(place: Callable[[], list[Any]]) -> Callable[[Any], None]:
    def restore(items: Any) -> None:
        place()[:] = items

    return restore


def _restore_filters(filters: Any) -> None:
    warnings.filters[:] = filters  # type: ignore[index]  # a list, declared a Sequence
    getattr(warnings, "_filters_mutated", int)()  # which filters were applied to a line is remembered


def _restore_environment(environment: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if name not in environment]:
        del os.environ[name]
    os.environ.update(environment)


def _interpreter_hooks() -> dict[str, Any]:
    return {name: getattr(sys, name) for name in _HOOKS}


def _restore_interpreter_hooks(hooks: Mapping[str, Any]) -> None:
    for name, hook in hooks.items():
        setattr(sys, name, hook)


class AtExit:
    """Functions that are registered while a plugin is imported, in place of `atexit.register`, which cannot list them."""

    _register: ClassVar[Callable[..., Any]] = atexit.register
    _added: ClassVar[list[Callable[[], Any]]] = []
    _n_empty: ClassVar[int] = 0

    @classmethod
    def listen(cls) -> None:
        """Note what is registered from now on."""
        cls._added.clear()
        setattr(atexit, "register", cls._note)  # noqa: B010  # an assignment has another type

    @classmethod
    def leave(cls) -> None:
        """Stop noting; what was registered stays registered."""
        setattr(atexit, "register", cls._register)  # noqa: B010

    @classmethod
    def count(cls) -> int:
        """Return the number of functions that are registered."""
        return int(getattr(atexit, "_ncallbacks", int)()) - cls._n_empty

    @classmethod
    def forget(cls) -> None:
        """Unregister what was noted."""
        left = cls.count() - len(cls._added)
        for function in cls._added:
            atexit.unregister(function)
        cls._added.clear()
        cls._n_empty += cls.count() - left  # the interpreter may count places that unregistered functions leave

    @classmethod
    def _note(cls, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
        # an object of its own: the program may have registered the same function
        cls._added.append(partial(function, *args, **kwargs))
        cls._register(cls._added[-1])
        return function


#: How these are read and restored, where the interpreter and the system have them.
_OF_DIGITS: Final = getattr(sys, "get_int_max_str_digits", int), getattr(sys, "set_int_max_str_digits", int)
_OF_PROCESSORS: Final = (
    (lambda: os.sched_getaffinity(0), lambda processors: os.sched_setaffinity(0, processors))
    if hasattr(os, "sched_setaffinity")
    else (int, int)
)
#: Settings by which all results change.
OURS: Final = (
    Sight("modes and contexts of nn_core", _ambient_values, _restore_ambient_values),
    Sight("settings of nn_core", settings.switches, settings.set_switches),
)
#: Everything with one value. What is read must compare by ``==``.
SIGHTS: Final = (
    Sight("the configuration of logging", _logging, _restore_logging),
    Sight("warning filters", lambda: tuple(warnings.filters), _restore_filters),
    Sight("np.seterr", lambda: dict(np.geterr()), lambda state: np.seterr(**state)),
    Sight("np.seterrcall", np.geterrcall, np.seterrcall),
    Sight("print options of NumPy", _print_options, lambda state: np.set_printoptions(**state)),
    Sight("random states", _random_states, _restore_random_states),
    *OURS,
    Sight("signal handlers", _signal_handlers, _restore_signal_handlers),
    Sight("blocked signals", _blocked_signals, _restore_blocked_signals),
    Sight("timers", _timers, _restore_timers),
    Sight("sys.path", lambda: tuple(sys.path), _restore_list(lambda: sys.path)),
    Sight("sys.meta_path", lambda: tuple(sys.meta_path), _restore_list(lambda: sys.meta_path)),
    Sight("sys.path_hooks", lambda: tuple(sys.path_hooks), _restore_list(lambda: sys.path_hooks)),
    Sight("hooks of the interpreter", _interpreter_hooks, _restore_interpreter_hooks),
    Sight("threading.excepthook", lambda: threading.excepthook, lambda hook: setattr(threading, "excepthook", hook)),
    Sight("functions to call at exit", AtExit.count, lambda _: AtExit.forget()),
    Sight("the profile function", sys.getprofile, sys.setprofile),
    Sight("the trace function", sys.gettrace, sys.settrace),
    Sight("the profile function of threads", threading.getprofile, threading.setprofile),
    Sight("the trace function of threads", threading.gettrace, threading.settrace),
    Sight("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    Sight("the digits of integers in texts", *_OF_DIGITS),
    Sight("the processors of the process", *_OF_PROCESSORS),
    Sight("the switch interval", sys.getswitchinterval, sys.setswitchinterval),
    Sight("the garbage collector", _collector, _restore_collector),
    Sight("the locale", lambda: locale.setlocale(locale.LC_ALL), lambda name: locale.setlocale(locale.LC_ALL, name)),
    Sight("os.environ", lambda: dict(os.environ), _restore_environment),
    Sight("the current directory", os.getcwd, os.chdir),
    Sight("the umask", _umask, os.umask),
    Sight("resource limits", _limits, _restore_limits),
    Sight("the start method of multiprocessing", _start_method, _restore_start_method),
    Sight("threads", lambda: frozenset(t for t in threading.enumerate() if not isinstance(t, threading.Timer))),
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
        names = [n for n in {**values, **table} if n[0] != "_" and table.get(n, missing) is not values.get(n, missing)]
        for name in names:
            if name in values:
                table[name] = values[name]
            else:
                del table[name]
        return names


class Names(NamedTuple):
    """The attributes of modules, and the modules themselves, by their full names; those that come later are no change."""

    owners: Mapping[str, tuple[Any, str]]
    values: Mapping[str, Any]

    @staticmethod
    def now() -> "Names":
        """Return all names as they are."""
        owners: dict[str, tuple[Any, str]] = {}
        values: dict[str, Any] = {}
        for label, owner, name, value in _attributes():
            owners[label], values[label] = (owner, name), value
        return Names(owners, values)

    def replaced(self) -> list[str]:
        """Return the names that are gone or stand for something else by now."""
        now = Names.now().values
        return sorted(label for label, value in self.values.items() if now.get(label, self) is not value)

    def restore(self, labels: list[str]) -> None:
        """Put back what some names stood for."""
        for label in labels:
            owner, name = self.owners[label]
            if isinstance(owner, dict):
                owner[name] = self.values[label]
            else:
                setattr(owner, name, self.values[label])


def _attributes() -> Iterator[tuple[str, Any, str, Any]]:
    for name, module in list(sys.modules.items()):
        yield f"sys.modules[{name!r}]", sys.modules, name, module
        if name.partition(".")[0] == "nn_core" and isinstance(module, ModuleType):
            yield from ((f"{name}.{label}", owner, part, value) for label, owner, part, value in _own(module))
    for package in _NUMPY:
        part = sys.modules.get(package)
        for name, value in list(vars(part).items()) if part else ():
            if not name.startswith("_"):
                yield f"{package}.{name}", part, name, value


def _own(module: ModuleType) -> Iterator[tuple[str, Any, str, Any]]:
    # a copy, since other threads import modules meanwhile
    for name, value in list(vars(module).items()):
        is_code = not name.startswith("__") and not isinstance(value, ModuleType) and callable(value)
        if is_code or _is_constant(name, value):
            yield name, module, name, value
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield from ((f"{name}.{part}", value, part, found) for part, found in list(vars(value).items()) if callable(found))


def _is_constant(name: str, value: Any) -> bool:
    return isinstance(value, _CONSTANTS) and (name.strip("_").isupper() or name == "__version__")


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
