"""Watch the effects of importing a plugin on the process: importing must be free of work."""

import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

from nn_core.engine.dispatch.module_names import Names
from nn_core.engine.dispatch.sights import CTRL_C, OURS, SIGHTS, AtExit, Builtins, Sight, Streams, capture
from nn_core.errors import PluginError
from nn_core.logger import logger

#: Importing a plugin for longer is worth a remark.
SLOW_IMPORT_S: Final = 0.1
#: Remarks on all that `import_keeping_ours` has put back: whoever looks from outside would not see it.
_PUT_BACK: Final[list[str]] = []
#: Names that were replaced of which remarks tell.
_MAX_NAMES: Final = 3


class Remarks(NamedTuple):
    """The effects of an import: changes that it must not make, and the seconds that it took."""

    changes: tuple[str, ...]
    seconds: float
    restore: Callable[[], None]

    @property
    def lines(self) -> tuple[str, ...]:
        """For tables."""
        slow = [f"importing took {self.seconds * 1000:.0f} ms"] if self.seconds > SLOW_IMPORT_S else []
        return (*self.changes, *slow)


def observe(run: Callable[[], object]) -> Remarks:
    """Call `run`, which imports a plugin, and tell what it did to the process; `restore` of the result undoes that."""
    names, streams, printed = Names.now(), Streams(), capture()
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            shown = Streams()
            before = _read(SIGHTS)
            everywhere = Builtins()
            _PUT_BACK.clear()
            AtExit.listen()
            start = time.perf_counter()
            try:
                run()
            finally:
                own = everywhere.put_back()  # first: what follows needs them
                seconds = time.perf_counter() - start
                AtExit.leave()
                changed = _changed(before)
                changes = [f"changes {sight.what}" for sight, _ in changed] + shown.changes() + _PUT_BACK
                shown.restore()
                shown.close()
    finally:
        streams.restore()
        streams.close()
    if printed.getvalue().strip():
        changes.append(f"prints {printed.getvalue().strip().splitlines()[0][:80]!r}")
    replaced = names.replaced()
    changes += [f"replaces {name}" for name in [*(f"builtins.{name}" for name in own), *replaced][:_MAX_NAMES]]

    def restore() -> None:
        names.restore(replaced)
        _restore(changed)

    return Remarks(tuple(changes), seconds, restore)


def watched_import(name: str) -> ModuleType:
    """Import the module of a plugin; refuses one that does more than that, and undoes what it did where that is possible.

    Raises:
        PluginError: when the import changes the process or prints.
    """
    # imported before, by the program itself: its effects cannot be told any more
    if name in sys.modules:
        return sys.modules[name]
    remarks = observe(lambda: import_module(name))
    if remarks.changes:
        module = sys.modules.get(name)
        remarks.restore()
        if module is not None:
            sys.modules[name] = module  # the loader drops it with all others of its package
        raise PluginError(
            f"strict mode: importing a plugin must be free of work, got: {', '.join(remarks.changes)}\n"
            "  hint: do it in load() of a backend, or in a function that a target names"
        )
    for line in remarks.lines:
        logger.warning("%s: %s", name, line)
    return sys.modules[name]


def import_keeping_ours(name: str) -> ModuleType:
    """Import the module of a plugin; builtins, contexts, modes and settings of nn_core are afterwards what they were.

    A plugin that sets the default context would change the results of all that a program computes.
    """
    before, everywhere = _read((*OURS, CTRL_C)), Builtins()
    try:
        return import_module(name)
    finally:
        own = everywhere.put_back()
        changed = _changed(before)
        _restore(changed)
        names = [f"builtins.{name}" for name in own]
        _PUT_BACK.extend(f"changes {sight.what}" for sight, _ in changed)
        _PUT_BACK.extend(f"replaces {name}" for name in names[:_MAX_NAMES])
        for what in [*(sight.what for sight, _ in changed), *names]:
            logger.warning("%s: importing a plugin must not change %s; they are what they were", name, what)


def _read(sights: tuple[Sight, ...]) -> list[tuple[Sight, Any]]:
    return [(sight, sight.read()) for sight in sights]


def _changed(before: list[tuple[Sight, Any]]) -> list[tuple[Sight, Any]]:
    return [(sight, old) for sight, old in before if _now(sight) != old]


def _now(sight: Sight) -> Any:
    try:
        return sight.read()
    except Exception as error:  # the current directory may be gone
        return error


def _restore(changed: list[tuple[Sight, Any]]) -> None:
    for sight, old in changed:
        if sight.restore is not None:
            with suppress(Exception):  # as much as the system allows: the others count too
                sight.restore(old)
