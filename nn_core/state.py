"""Ambient values: settings that a block of code has for itself, seen by everything called inside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")


class Ambient(Generic[T]):
    """A value with a process-wide default and scopes that replace it for a while.

    A scope belongs to the thread or async task that opened it and never leaks into another one. The default belongs to
    the process: threads that start later see it too.

    Args:
        name: What the value is; shown by debuggers.
        default: The value outside every scope.
    """

    __slots__ = ("_default", "_var")

    def __init__(self, name: str, default: T) -> None:
        self._var: ContextVar[T] = ContextVar(name)
        self._default = default

    def get(self) -> T:
        """The value of the innermost open scope, or the default."""
        return self._var.get(self._default)

    def set_default(self, value: T) -> None:
        """Change the value that holds outside every scope, for the whole process."""
        self._default = value

    @contextmanager
    def scope(self, value: T) -> Iterator[T]:
        """Replace the value inside a ``with`` block; the former one returns even when the block raises."""
        token = self._var.set(value)
        try:
            yield value
        finally:
            self._var.reset(token)

    @property
    def is_scoped(self) -> bool:
        """Whether a scope is open here."""
        unset = object()
        return self._var.get(unset) is not unset
