"""Ambient values: settings that a block of code has for itself, seen by everything called inside it."""

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, Generic, ParamSpec, TypeVar

from nn_core.errors import ArgumentError

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class Ambient(Generic[T]):
    """A value with a process-wide default and scopes that replace it for a while.

    A scope belongs to the thread or async task that opened it and never leaks into another one. The default belongs to
    the process: threads that start later see it too.

    Args:
        name: What the value is; shown by debuggers.
        default: The value outside every scope.

    Attributes:
        replace: ``token = replace(value)`` opens a scope and ``restore(token)`` closes it: for code that runs too often
            for the ``with`` block of `scope`. Close it in the same thread or task, and in ``finally``.
        restore: See `replace`.
    """

    __slots__ = ("_default", "_var", "replace", "restore")

    def __init__(self, name: str, default: T) -> None:
        self._var: ContextVar[T] = ContextVar(name)
        self._default = default
        self.replace: Callable[[T], Any] = self._var.set
        self.restore: Callable[[Any], None] = self._var.reset

    def get(self) -> T:
        """The value of the innermost open scope, or the default."""
        return self._var.get(self._default)

    def set_default(self, value: T) -> None:
        """Change the value that holds outside every scope, for the whole process."""
        self._default = value

    def scope(self, value: T) -> "AmbientScope[T]":
        """Replace the value inside a ``with`` block; the former one returns even when the block raises."""
        return AmbientScope(self, lambda: value)

    def scope_of(self, make: Callable[[], T]) -> "AmbientScope[T]":
        """Like `scope`, with what `make` returns when the block is entered."""
        return AmbientScope(self, make)

    @property
    def is_scoped(self) -> bool:
        """Whether a scope is open here."""
        unset = object()
        return self._var.get(unset) is not unset


#: What its owner has worked out for the values that all modes have now; None at the beginning of each scope of a mode.
MEMO: Final[ContextVar[Any]] = ContextVar("memo", default=None)
#: Called after the default of a mode was changed.
WHEN_DEFAULT_CHANGES: Final[list[Callable[[], object]]] = []


class Mode(Ambient[T]):
    """An ambient value that decides what calls of functions do."""

    __slots__ = ()

    def __init__(self, name: str, default: T) -> None:
        super().__init__(name, default)
        self.replace = self._open
        self.restore = self._close

    def set_default(self, value: T) -> None:
        """Change the value that holds outside every scope, for the whole process."""
        super().set_default(value)
        for callback in WHEN_DEFAULT_CHANGES:
            callback()

    def _open(self, value: T) -> Any:
        return self._var.set(value), MEMO.set(None)

    def _close(self, tokens: Any) -> None:
        of_value, of_memo = tokens
        self._var.reset(of_value)
        MEMO.reset(of_memo)


class AmbientScope(Generic[T]):
    """A scope of an ambient value: for one ``with`` block, or the decorator of a function that runs in such a scope.

    A class, because a generator with ``contextlib.contextmanager`` takes twice as long.
    """

    __slots__ = ("_ambient", "_make", "_token")

    def __init__(self, ambient: Ambient[T], make: Callable[[], T]) -> None:
        self._ambient = ambient
        self._make = make
        self._token: Any = None

    def __enter__(self) -> T:
        if self._token is not None:
            raise ArgumentError("scope: each with block must open a scope of its own, got one that was entered before")
        value = self._make()
        self._token = self._ambient.replace(value)
        return value

    def __exit__(self, *exception: object) -> None:
        self._ambient.restore(self._token)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            with AmbientScope(self._ambient, self._make):
                return function(*args, **kwargs)

        return inside
