"""The parts of the process that the system keeps, and modules of Python's library: see `sights`.

Modules that nobody has imported yet have nothing to look at: a plugin may import them.
"""

import codecs
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

#: Bytes that hold what the system keeps of a signal, on every known platform.
_N_BYTES: Final = 512
#: Those of them that say what it does, and how; the library of C leaves others as they happen to be.
_HANDLER, _FLAGS = (slice(0, 8), slice(136, 140)) if sys.platform == "linux" else (slice(0, 8), slice(8, 16))
#: A flag that the library of C sets itself, SA_RESTORER of Linux.
_ITS_OWN: Final = 0x04000000
#: Names of the ways to encode and decode texts that do not fit.
_HANDLERS: Final = (
    *("strict", "ignore", "replace", "backslashreplace", "namereplace", "surrogateescape", "surrogatepass"),
    "xmlcharrefreplace",
)
#: Whether a priority that was lowered can be raised again.
_MAY_HURRY: Final = getattr(os, "geteuid", lambda: 1)() == 0


class Sight(NamedTuple):
    """One thing that is looked at before and after."""

    what: str
    read: Callable[[], Any]
    restore: Callable[[Any], object] | None = None


def _library(*names: str) -> Any:
    """Return the library of C, or None where it lacks one of these names, as on Windows."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
    return library if all(hasattr(library, name) for name in names) else None


class _Action:
    """The action of the system at a signal, which code in C may have chosen, and whether it interrupts calls."""

    def __init__(self, library: Any, number: int) -> None:
        self.library, self.number, self.raw = library, number, ctypes.create_string_buffer(_N_BYTES)
        self.is_known = library.sigaction(number, None, self.raw) == 0

    def _compared(self) -> tuple[bytes, int]:
        return self.raw.raw[_HANDLER], int.from_bytes(self.raw.raw[_FLAGS], sys.byteorder) & ~_ITS_OWN

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Action):
            return NotImplemented
        return self._compared() == other._compared()

    __hash__ = None  # type: ignore[assignment]


def _signal_actions() -> list[_Action]:
    library = _library("sigaction")
    actions = [_Action(library, int(number)) for number in signal.valid_signals()] if library else []
    return [action for action in actions if action.is_known]


def _restore_signal_actions(actions: list[_Action]) -> None:
    for action in actions:
        if _Action(action.library, action.number) != action:
            action.library.sigaction(action.number, action.raw, None)


def _environment_of_c() -> dict[bytes, bytes]:
    """Return the variables that libraries in C and child processes see; ``os.putenv`` leaves ``os.environ`` alone."""
    library = _library("environ")
    if library is None:
        return {}
    entries = ctypes.POINTER(ctypes.c_char_p).in_dll(library, "environ")
    found: dict[bytes, bytes] = {}
    while entries and (entry := entries[len(found)]) is not None:
        name, _, value = entry.partition(b"=")
        if name in found:  # there twice: it cannot be counted like this
            return {}
        found[name] = value
    return found


def _restore_environment_of_c(variables: Mapping[bytes, bytes]) -> None:
    for name in _environment_of_c().keys() - variables.keys():
        os.unsetenv(name)
    for name, value in variables.items():
        os.putenv(name, value)


def _priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0) if hasattr(os, "getpriority") else 0


def _restore_priority(priority: int) -> None:
    os.setpriority(os.PRIO_PROCESS, 0, priority)


def _attribute(module: str, name: str) -> Callable[[], Any]:
    return lambda: getattr(sys.modules.get(module), name, None)


def _restore_attribute(module: str, name: str) -> Callable[[Any], None]:
    return lambda value: setattr(sys.modules[module], name, value)


def _faulthandler() -> bool:
    module = sys.modules.get("faulthandler")
    return module is not None and module.is_enabled()


def _restore_faulthandler(was_enabled: bool) -> None:
    module = sys.modules["faulthandler"]
    if was_enabled:
        module.enable(sys.__stderr__)
    else:
        module.disable()
    module.cancel_dump_traceback_later()


class _Folder:
    """The folder of temporary files; finding it, at the first use, is no change."""

    def __init__(self) -> None:
        self.folder = _attribute("tempfile", "tempdir")()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Folder):
            return NotImplemented
        folders = {self.folder, other.folder} - {None}
        return (
            len(folders) < 1 or self.folder == other.folder or (len(folders) == 1 and not folders.isdisjoint(_usual_folders()))
        )

    __hash__ = None  # type: ignore[assignment]

    def restore(self) -> None:
        sys.modules["tempfile"].tempdir = self.folder  # type: ignore[attr-defined]


def _usual_folders() -> list[str]:
    module = sys.modules["tempfile"]
    return list(module._candidate_tempdir_list())


def _error_handlers() -> tuple[Any, ...]:
    return tuple(map(codecs.lookup_error, _HANDLERS))


def _restore_error_handlers(handlers: tuple[Any, ...]) -> None:
    for name, handler in zip(_HANDLERS, handlers, strict=True):
        codecs.register_error(name, handler)


def _restore_time_zone(_: object) -> None:
    getattr(time, "tzset", int)()  # the environment, which says which zone it is, has been restored


def _decimals() -> Any:
    """Return precision and rounding of decimal numbers, of this thread and of those that are to come."""
    module = sys.modules.get("decimal")
    contexts = () if module is None else (module.getcontext(), module.DefaultContext)
    return [(context, context.prec, context.rounding) for context in contexts]


def _restore_decimals(state: Any) -> None:
    for context, precision, rounding in state:
        context.prec, context.rounding = precision, rounding
    if state:
        sys.modules["decimal"].setcontext(state[0][0])


def _socket_timeout() -> Any:
    module = sys.modules.get("socket")
    return None if module is None else module.getdefaulttimeout()


def _restore_socket_timeout(seconds: Any) -> None:
    sys.modules["socket"].setdefaulttimeout(seconds)


def _start_method() -> Any:
    module = sys.modules.get("multiprocessing")
    return None if module is None else module.get_start_method(allow_none=True)


def _restore_start_method(method: Any) -> None:
    sys.modules["multiprocessing"].set_start_method(method, force=True)


#: The sights of the system.
SYSTEM: Final = (
    Sight("what the system does at signals", _signal_actions, _restore_signal_actions),
    Sight("the environment of libraries in C", _environment_of_c, _restore_environment_of_c),
    Sight("the time zone", lambda: (time.timezone, time.tzname), _restore_time_zone),
    Sight("the priority of the process", _priority, _restore_priority if _MAY_HURRY else None),
)
_POLICY: Final = "asyncio.events", "_event_loop_policy"
#: The sights of modules of Python's library.
LIBRARY: Final = (
    Sight("the policy of event loops", _attribute(*_POLICY), _restore_attribute(*_POLICY)),
    Sight("the faulthandler", _faulthandler, _restore_faulthandler),
    Sight("the folder of temporary files", _Folder, _Folder.restore),
    Sight("how texts that do not fit are encoded", _error_handlers, _restore_error_handlers),
    Sight("decimal arithmetic", _decimals, _restore_decimals),
    Sight("the default timeout of sockets", _socket_timeout, _restore_socket_timeout),
    Sight("the start method of multiprocessing", _start_method, _restore_start_method),
)
