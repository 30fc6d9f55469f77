"""Exceptions in code of plugins: whose code it was, and what for.

An exception of a plugin keeps its class and gets a note with the plugin and the function. What would end the program, raised
by code of the plugin itself (``sys.exit``), becomes a `PluginError`. What is meant for the program passes: Ctrl-C, the end
of a generator or a task, and whatever a signal handler raises while code of a plugin runs.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, TypeVar

from nn_core.engine.dispatch.exception_text import message_of, text_of
from nn_core.engine.runtime.installed import OWN_PACKAGES
from nn_core.engine.runtime.tracebacks import packages_in
from nn_core.errors import PluginError
from nn_core.logger import logger
from nn_core.typing import Backend

F = TypeVar("F", bound=Callable[..., Any])

#: Packages whose code the conformance kit runs on in the tests of nn_core.
TRUSTED: Final = frozenset({"nn_core", "nn_ext_cpu", "nn_ext_cuda", "nn_ext_cudnn"})
_MARK: Final = "nn_core: "
#: Methods that end by StopIteration; raised by any other, whoever iterates over calls would take it for the end.
_ENDING: Final = ("next() ", "__next__() ")
#: Kinds of NumPy's dtypes that hold no real numbers: complex ones, objects, texts, dates and times.
_UNREAL: Final = frozenset("cOSUMm")


class PluginCall:
    """A ``with`` block that calls code of a plugin: ``with PluginCall("acme", "refuse() of F.acme_swish"):``.

    Args:
        plugin: Name of the plugin; nothing is noted of those of nn_core itself.
        what: The part of the plugin that is called.
    """

    __slots__ = ("_plugin", "_what")

    def __init__(self, plugin: str, what: str) -> None:
        self._plugin = "" if plugin in OWN_PACKAGES else plugin
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and self._plugin:
            require_no_exit(error, self._what, self._plugin)
            if not self._what.startswith(_ENDING):
                require_no_end(error, self._what, self._plugin)
            if isinstance(error, PluginError) and repr(self._plugin) in message_of(error):
                return  # it names the plugin
            note_origin(error, f"in {self._what} of plugin {self._plugin!r}")


def named(function: F, plugin: str, what: str) -> F:
    """Return `function`, whose exceptions name the plugin that it comes from; one of nn_core itself is returned as it is."""
    if plugin in OWN_PACKAGES:
        return function
    guard = PluginCall(plugin, what)

    def call(*args: Any, **kwargs: Any) -> Any:
        with guard:
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]  # it is called alike


def own_method(backend: Backend, method: str) -> Any:
    """Return a method of a backend; its exceptions name the plugin of the backend, unless that is one of nn_core."""
    function, plugin = getattr(backend, method), backend.name.partition(".")[0]
    return function if plugin in OWN_PACKAGES else named(function, plugin, f"{method}() of backend {backend.name!r}")


def note_origin(error: BaseException, origin: str) -> None:
    """Note in an exception where it comes from, unless that is noted already by who was nearer."""
    notes: list[str] = getattr(error, "__notes__", [])
    if isinstance(error, Exception) and not any(note.startswith(_MARK) for note in notes):
        attach_note(error, f"{_MARK}{origin}")


def note_by_frames(error: BaseException, what: str) -> None:
    """Note in an exception which plugin it comes from, where the traceback alone can tell; see `PluginCall`."""
    require_no_exit(error, what)
    plugins = [plugin for plugin in map(_plugin_of, packages_in(error)) if plugin]
    if plugins:
        require_no_end(error, what, plugins[-1])
        note_origin(error, f"in {what} of plugin {plugins[-1]!r}")


def attach_note(error: Any, note: str) -> None:
    """Add a line to what is printed of an exception."""
    if hasattr(error, "add_note"):
        error.add_note(note)
        return
    error.__notes__ = [*getattr(error, "__notes__", ()), note]
    logger.error("%s", note)  # Python 3.10 keeps notes and does not print them


def require_no_exit(error: BaseException, what: str, plugin: str = "") -> None:
    """Raise a PluginError in place of an exception that would end the program, where code of a plugin has raised it itself.

    Args:
        error: What was raised; an `Exception` passes.
        what: The part of the plugin that was called.
        plugin: Its name, where the caller knows it; otherwise that of the plugin whose code raised it.
    """
    if isinstance(error, (Exception, KeyboardInterrupt, GeneratorExit)) or _is_cancellation(error):
        return
    *_, package = ("", *packages_in(error))
    raising = _plugin_of(package)
    # whoever handles a signal raises in a function of its own, and not in that of the plugin
    if raising:
        owner = plugin or raising
        raise PluginError(f"{what} of plugin {owner!r}: must not end the program, got {text_of(error)}") from error


def require_no_end(error: BaseException, what: str, plugin: str) -> None:
    """Raise a PluginError in place of a StopIteration, which whoever runs calls one after another would take for their end."""
    if isinstance(error, StopIteration):
        raise PluginError(f"{what}{f' of plugin {plugin!r}' if plugin else ''}: must not raise StopIteration") from error


def _is_cancellation(error: BaseException) -> bool:
    return any(kind.__name__ == "CancelledError" for kind in type(error).__mro__)  # asyncio may not be imported


def _plugin_of(package: str) -> str:
    from nn_core.engine.dispatch.plugin_manager import PLUGINS  # which uses this module

    # a plugin that a program registers of itself shares its module with the program's signal handlers
    if package in TRUSTED or package == "__main__":
        return ""
    return next((plugin.name for plugin in PLUGINS.asked_for() if plugin.package == package), "")


def is_code_of(plugin: str, package: str) -> bool:
    """Return whether a top-level package is that of the module of a plugin."""
    from nn_core.engine.dispatch.plugin_manager import PLUGINS  # which uses this module

    return any(found.name == plugin and found.package == package for found in PLUGINS.asked_for())


def require_real(subject: str, result: Any) -> None:
    """Refuse an array of a plugin whose elements are no real numbers.

    Args:
        subject: What has returned it, as in "acme_swish: a reference kernel".
        result: An array of any library, or a number.

    Raises:
        PluginError: for complex numbers, texts, dates and objects.
    """
    dtype = getattr(result, "dtype", type(result).__name__)
    if getattr(dtype, "kind", "") in _UNREAL or "complex" in str(dtype):
        raise PluginError(f"{subject} must return real numbers, got {dtype}")
