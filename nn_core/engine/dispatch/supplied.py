"""Classes and functions that plugins offer by name, guarded: whatever they raise names the plugin (see `blame`).

Programs call what they get from a plugin directly, without a call site of ours in between: ``S.AcmeSgd(0.1)``,
``PF.acme_dense(x, 5)``, the methods of a monitor. So the methods of an offered class are guarded where they are defined,
and the class stays the one that the plugin has: it can be subclassed, pickled, and asked for by ``isinstance``.
"""

from contextlib import suppress
from functools import wraps
from types import FunctionType
from typing import Any, Final

from nn_core.engine.dispatch.blame import TRUSTED, is_code_of, named
from nn_core.engine.runtime.installed import OWN_PACKAGES

#: Special methods that programs call by an operator, a statement, or by making an object.
_SPECIAL: Final = frozenset(
    {
        *("__init__", "__post_init__", "__call__", "__enter__", "__exit__", "__iter__", "__next__", "__len__"),
        *("__getitem__", "__setitem__", "__contains__"),
    }
)
_MARK: Final = "__nn_core_plugin__"


def guarded_class(cls: type, plugin: str, noun: str) -> type:
    """Guard the methods that a class of a plugin defines, and those of its base classes in the same package, in place.

    Args:
        cls: The class; it is returned.
        plugin: The plugin that offers it; classes of nn_core itself stay as they are.
        noun: What it is, for notes: "solver 'AcmeSgd'".
    """
    package = cls.__module__.partition(".")[0]
    # a class that a plugin has from a library is not its code, unless it extends one of ours
    if plugin in OWN_PACKAGES or package in TRUSTED or not (is_code_of(plugin, package) or _extends_ours(cls)):
        return cls
    for part in cls.__mro__:
        if part.__module__.partition(".")[0] == package:
            _guard_methods(part, plugin, noun)
    return cls


def guarded_object(made: Any, plugin: str, noun: str) -> Any:
    """Return what a plugin offers or makes, guarded: a class, an object of a class of the plugin, or a function."""
    if plugin in OWN_PACKAGES:
        return made
    if isinstance(made, type):
        return guarded_class(made, plugin, noun)
    if isinstance(made, FunctionType):
        return made if hasattr(made, _MARK) else _guarded(made, plugin, f"the {noun}")
    guarded_class(type(made), plugin, noun)
    return made


def plugin_of(method: Any) -> str:
    """Return the plugin whose guarded function or method this is; empty for any other."""
    return str(getattr(method, _MARK, ""))


def _extends_ours(cls: type) -> bool:
    return any(base.__module__.partition(".")[0] == "nn_core" for base in cls.__mro__)


def _guard_methods(cls: type, plugin: str, noun: str) -> None:
    for name, method in list(vars(cls).items()):
        if name.startswith("__") and name not in _SPECIAL:
            continue
        what = f"the {noun}" if name == "__init__" else f"{name}() of the {noun}"
        guarded = _guarded_method(method, plugin, what)
        if guarded is not method:
            with suppress(AttributeError, TypeError):  # classes may refuse to be changed
                setattr(cls, name, guarded)


def _guarded_method(method: Any, plugin: str, what: str) -> Any:
    if isinstance(method, (staticmethod, classmethod)):
        function = method.__func__
        guarded = _guarded_method(function, plugin, what)
        return method if guarded is function else type(method)(guarded)
    if isinstance(method, property) and method.fget is not None:
        return property(_guarded_method(method.fget, plugin, what), method.fset, method.fdel, method.__doc__)
    return _guarded(method, plugin, what) if isinstance(method, FunctionType) and not hasattr(method, _MARK) else method


def _guarded(function: FunctionType, plugin: str, what: str) -> Any:
    guarded = wraps(function)(named(function, plugin, what))
    setattr(guarded, _MARK, plugin)
    return guarded
