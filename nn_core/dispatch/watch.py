"""Watch the effects of importing a plugin on the process: importing must be free of work."""

import io
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from nn_core.errors import PluginError
from nn_core.logger import logger

#: Importing a plugin for longer is worth a remark.
SLOW_IMPORT_S: Final = 0.1


class Sight(NamedTuple):
    """One thing that is looked at before and after: what a remark calls it, and how to read it."""

    what: str
    read: Callable[[], Any]


def _logging_state() -> Any:
    # a library that configures logging takes the choice from the program
    root = logging.getLogger()
    return root.level, tuple(root.handlers), logging.root.manager.disable


def _signal_handlers() -> Any:
    return tuple(signal.getsignal(number) for number in sorted(signal.valid_signals()) if number != signal.SIGINT)


def _own_names() -> dict[str, Any]:
    return {
        f"{module_name}.{name}": value
        for module_name, module in list(sys.modules.items())
        if module_name.partition(".")[0] == "nn_core" and isinstance(module, ModuleType)
        for name, value in _things(module)
    }


def _things(module: ModuleType) -> Iterator[tuple[str, Any]]:
    # a copy, since other threads import modules meanwhile
    for name, value in list(vars(module).items()):
        if not name.startswith("__") and not isinstance(value, ModuleType) and callable(value):
            yield name, value
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield from ((f"{name}.{part}", found) for part, found in list(vars(value).items()) if callable(found))


_SIGHTS: Final = (
    Sight("the configuration of logging", _logging_state),
    Sight("warning filters", lambda: tuple(warnings.filters)),
    Sight("np.seterr", lambda: tuple(sorted(np.geterr().items()))),
    Sight("signal handlers", _signal_handlers),
    Sight("sys.path", lambda: tuple(sys.path)),
    Sight("os.environ", lambda: dict(os.environ)),
    Sight("threads", lambda: frozenset(t for t in threading.enumerate() if not isinstance(t, threading.Timer))),
)


class Remarks(NamedTuple):
    """The effects of an import: changes that it must not make, and the seconds that it took."""

    changes: tuple[str, ...]
    seconds: float

    @property
    def lines(self) -> tuple[str, ...]:
        """For tables."""
        slow = [f"importing took {self.seconds * 1000:.0f} ms"] if self.seconds > SLOW_IMPORT_S else []
        return (*self.changes, *slow)


def observe(run: Callable[[], object]) -> Remarks:
    """Call `run`, which imports a plugin, and tell what it did to the process."""
    before = [sight.read() for sight in _SIGHTS]
    own = _own_names()
    printed = io.StringIO()
    start = time.perf_counter()
    with redirect_stdout(printed), redirect_stderr(printed):
        run()
    seconds = time.perf_counter() - start
    after = [sight.read() for sight in _SIGHTS]
    changes = [f"changes {sight.what}" for sight, old, new in zip(_SIGHTS, before, after, strict=True) if old != new]
    if printed.getvalue().strip():
        changes.append(f"prints {printed.getvalue().strip().splitlines()[0][:80]!r}")
    now = _own_names()
    replaced = sorted(name for name, value in own.items() if name in now and now[name] is not value)
    changes += [f"replaces {name}" for name in replaced[:3]]
    return Remarks(tuple(changes), seconds)


def watched_import(name: str) -> ModuleType:
    """Import the module of a plugin; refuses one that does more than that.

    Raises:
        PluginError: when the import changes the process or prints.
    """
    # imported before, by the program itself: its effects cannot be told any more
    if name in sys.modules:
        return sys.modules[name]
    remarks = observe(lambda: import_module(name))
    if remarks.changes:
        raise PluginError(
            f"strict mode: importing a plugin must be free of work, got: {', '.join(remarks.changes)}\n"
            "  hint: do it in load() of a backend, or in a function that a target names"
        )
    for line in remarks.lines:
        logger.warning("%s: %s", name, line)
    return sys.modules[name]
