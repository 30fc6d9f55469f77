"""Watch the effects of importing a plugin on the process: importing must be free of work."""

import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

from nn_core.engine.dispatch.exit_functions import AtExit
from nn_core.engine.dispatch.library_sights import Sight
from nn_core.engine.dispatch.module_names import Names, Replaced
from nn_core.engine.dispatch.sights import CTRL_C, FLOATING, OURS, RECURSION, SIGHTS, Builtins, Streams, capture
from nn_core.engine.runtime.installed import OWN_MODULES
from nn_core.errors import PluginError, quoted
from nn_core.logger import logger

#: Importing a plugin for longer is worth a remark.
SLOW_IMPORT_S: Final = 0.1
#: Remarks on all that `KeepingOurs` has put back: whoever looks from outside would not see it.
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


def observe(run: Callable[[], object], package: str) -> Remarks:
    """Call `run`, which imports a plugin, and tell what it did to the process; `restore` of the result undoes that.

    Args:
        run: Imports it.
        package: The top-level module of the plugin. What libraries have called at exit when they are first imported is theirs.
    """
    names, streams, printed = Names(), Streams(), capture()
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            shown = Streams()
            before, computing = _read(SIGHTS), _read((FLOATING,))
            everywhere = Builtins()
            _PUT_BACK.clear()
            AtExit.listen(package)
            start = time.perf_counter()
            try:
                run()
            finally:
                own = everywhere.put_back()  # first: what follows needs them
                rounding = _changed(computing)
                _restore(rounding)
                seconds = time.perf_counter() - start
                AtExit.leave()
                changed = [*rounding, *_changed(before)]
                changes = [f"changes {sight.what}" for sight, _ in changed] + shown.changes() + _PUT_BACK
                shown.restore()
                shown.close()
    finally:
        streams.restore()
        streams.close()
    if printed.getvalue().strip():
        changes.append(f"prints {quoted(printed.getvalue().strip().splitlines()[0], 80)}")
    replaced = names.replaced()
    labels = [*(f"builtins.{name}" for name in own), *(one.label for one in replaced)]
    changes += [f"replaces {label}" for label in labels[:_MAX_NAMES]]

    def restore() -> None:
        _put_back(replaced)
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
    remarks = observe(lambda: import_module(name), name.partition(".")[0])
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


class KeepingOurs:
    """Keeps builtins, other modules, and names, modes and settings of nn_core what they were while code of a plugin runs.

    A plugin that sets the default context would change the results of all that a program computes. One that fails leaves
    nothing else behind either, as far as that can be undone: an import hook of it would stop the rest of the program.

    Args:
        name: The module of the plugin.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # looking at all names takes time, which programs that use our own plugins need not spend
        self._names = None if name.partition(".")[0] in OWN_MODULES else Names("nn_core")
        self._before, self._builtins = _read((*OURS, CTRL_C, RECURSION)), Builtins()
        self._others = _read(SIGHTS) if self._names else []

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        own = self._builtins.put_back()  # first: what follows needs them
        replaced = self._names.replaced() if self._names else []
        _put_back(replaced)
        changed = _changed(self._before)
        _restore(changed)
        if kind is not None:
            others = [(sight, old) for sight, old in _changed(self._others) if sight.restore is not None]
            _restore(others)
            _PUT_BACK.extend(f"changes {sight.what}" for sight, _ in others)
        names = [*(f"builtins.{name}" for name in own), *(one.label for one in replaced[:_MAX_NAMES])]
        _PUT_BACK.extend(f"changes {sight.what}" for sight, _ in changed)
        _PUT_BACK.extend(f"replaces {name}" for name in names[:_MAX_NAMES])
        for what in [*(sight.what for sight, _ in changed), *names]:
            logger.warning("%s: importing a plugin must not change %s; they are what they were", self._name, what)


def _put_back(replaced: list[Replaced]) -> None:
    for one in replaced:
        with suppress(Exception):  # as much as the owner allows
            one.restore()


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
