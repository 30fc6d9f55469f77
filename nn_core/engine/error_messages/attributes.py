"""Attributes that an object does not have: reading and assigning them says which ones it has."""

import sys
from collections.abc import Callable, Container
from importlib import import_module, util
from inspect import getattr_static
from types import ModuleType
from typing import Any, NoReturn

from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.errors import UnknownAttributeError


class Misnamed:
    """A name that other libraries have for something: reading and assigning it says what it is called here.

    A check of every assignment would cost time in every call of a function; this costs nothing. Subclasses of a program
    that have room for attributes may use the name for themselves.

    Args:
        instead: The advice.
    """

    def __init__(self, instead: str) -> None:
        self._instead = instead
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        own = getattr(instance, "__dict__", {})
        if self._name not in own:
            raise self._refusal(instance)
        return own[self._name]

    def __set__(self, instance: Any, value: Any) -> None:
        own = getattr(instance, "__dict__", None)
        if own is None:
            raise self._refusal(instance)
        own[self._name] = value

    def _refusal(self, instance: Any) -> UnknownAttributeError:
        return UnknownAttributeError(f"{type(instance).__name__}: has no attribute {self._name!r}\n  hint: {self._instead}")


def offered(value: Any, engine: Container[str]) -> list[str]:
    """Return the names of attributes that a program may use, for ``__dir__``: not those that only the engine uses."""
    names = object.__dir__(value)
    return [n for n in names if n not in engine and not isinstance(getattr_static(type(value), n, None), Misnamed)]


class SuggestsAttributes:
    """A base of classes whose attributes every call reads: an unknown one raises an error with a suggestion.

    Until 3.12, CPython read all attributes of a class with ``__getattr__`` three times as slowly; its own message has a
    suggestion in tracebacks there.
    """

    __slots__ = ()

    if sys.version_info >= (3, 12):

        def __getattr__(self, name: str) -> NoReturn:
            _no_attribute(self, name)


def _no_attribute(value: Any, name: str) -> NoReturn:
    """Raise what reading an attribute that `value` does not have means."""
    known = next((vars(cls)[name] for cls in type(value).__mro__ if name in vars(cls)), None)
    if known is not None:
        known.__get__(value, type(value))  # it has failed, and the interpreter has forgotten why
    text = f"{type(value).__name__}: has no attribute {name!r}"
    if name.startswith("_"):  # asked for by protocols
        raise AttributeError(text)
    names = [other for other in dir(type(value)) if not other.startswith("_")]
    names = [other for other in names if not isinstance(getattr_static(type(value), other), Misnamed)]
    raise UnknownAttributeError(f"{text}{suggestion(name, names)}")


def submodule(package: str, name: str) -> ModuleType | None:
    """Import the submodule of a package if there is a public one of that name; else return None."""
    if name.startswith("_") or util.find_spec(f"{package}.{name}") is None:
        return None
    return import_module(f"{package}.{name}")


def submodules(package: str) -> Callable[[str], ModuleType]:
    """Return the `__getattr__` of a package whose submodules are imported when they are first asked for (PEP 562)."""

    def imported(name: str) -> ModuleType:
        module = submodule(package, name)
        if module is not None:
            return module
        text = f"module {package!r} has no attribute {name!r}"
        raise UnknownAttributeError(text, name=name, obj=sys.modules[package])

    return imported
