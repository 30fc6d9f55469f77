"""Ambient values: settings that a block of code has for itself, seen by everything called inside it."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, Final, Generic, ParamSpec, TypeVar

from nn_core.engine.runtime.atomic_calls import atomically
from nn_core.errors import ArgumentError

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class _Opening:
    """An open scope and the one around it; apart from the scope object, which lives as long as its block."""

    __slots__ = ("around",)

    def __init__(self, around: "_Opening | None") -> None:
        self.around = around


class Ambient(Generic[T]):
    """A value with a process-wide default and scopes that replace it for a while.

    A scope belongs to the thread or async task that opened it and never leaks into another one. The default belongs to
    the process: threads that start later see it too.

    Args:
        name: Name of the value, for debuggers.
        default: The value outside every scope.

    Attributes:
        default: The value outside every scope.
        variables: The state that a scope changes: which scope is open, the value, and what depends on it.
        replace: ``token = replace(value)`` opens a scope and ``restore(token)`` closes it: for code that runs too often
            for the ``with`` block of `scope`. Close it in the same thread or task, and in ``finally``; write
            ``(token,) = atomically(replace, (value,))`` in front of the ``try``.
        restore: See `replace`.
        get: Returns the value of the innermost open scope, or the default. No method: each call of a function asks.
    """

    __slots__ = ("_var", "default", "get", "replace", "restore", "variables")

    def __init__(self, name: str, default: T) -> None:
        self.default = default
        self._var: ContextVar[T] = ContextVar(name, default=default)
        self.get: Callable[[], T] = self._var.get
        opening: ContextVar[_Opening | None] = ContextVar(f"{name} opening", default=None)
        self.variables: tuple[ContextVar[Any], ...] = (opening, self._var)
        self.replace: Callable[[T], Any] = self._var.set
        self.restore: Callable[[Any], None] = self._var.reset
        AMBIENTS.append(self)

    def set_default(self, value: T) -> None:
        """Change the value that holds outside every scope, for the whole process."""
        self.default = value
        self.get = partial(self._var.get, value)

    def scope(self, value: T) -> "AmbientScope[T]":
        """Replace the value inside a ``with`` block; the former one returns even when the block raises."""
        return AmbientScope(self, lambda: value)

    def scope_of(self, make: Callable[[], T], companion: object = None) -> "AmbientScope[T]":
        """Like `scope`, with what `make` returns when the block is entered; `companion`: value of the last of `variables`."""
        return AmbientScope(self, make, companion)

    @property
    def is_scoped(self) -> bool:
        """Whether a scope is open here."""
        unset = object()
        return self._var.get(unset) is not unset


#: All ambient values of the process, so that their defaults can be compared with what they were.
AMBIENTS: Final[list[Ambient[Any]]] = []
#: A result that its owner keeps for the present values of all modes; None at the beginning of each scope of a mode.
MEMO: Final[ContextVar[Any]] = ContextVar("memo", default=None)
#: Called after the default of a mode was changed.
WHEN_DEFAULT_CHANGES: Final[list[Callable[[], object]]] = []


class Mode(Ambient[T]):
    """An ambient value that decides what calls of functions do."""

    __slots__ = ()

    def __init__(self, name: str, default: T) -> None:
        super().__init__(name, default)
        self.variables = (*self.variables, MEMO)

    def set_default(self, value: T) -> None:
        """Change the value that holds outside every scope, for the whole process."""
        super().set_default(value)
        for callback in WHEN_DEFAULT_CHANGES:
            callback()


class AmbientScope(Generic[T]):
    """A scope of an ambient value: for one ``with`` block, or the decorator of a function that runs in such a scope.

    A scope is entered or left `atomically`. One that is interrupted at the first instruction of ``__exit__`` is left when
    nothing refers to it any more, unless a scope of the same value around it was left before.

    A class, because a generator with ``contextlib.contextmanager`` takes twice as long.
    """

    __slots__ = ("_ambient", "_companion", "_make", "_opening", "_tokens", "_value")

    def __init__(self, ambient: Ambient[T], make: Callable[[], T], companion: object = None) -> None:
        self._ambient = ambient
        self._make = make
        self._companion = companion
        self._tokens: Sequence[Any] | None = None
        self._opening: _Opening | None = None

    def __enter__(self) -> T:
        if self._tokens is not None:
            raise ArgumentError("scope: each with block must open a scope of its own, got one that was entered before")
        self._value = value = self._make()
        self._opening = opening = _Opening(self._ambient.variables[0].get())
        self._tokens = ()
        [*self._tokens] = atomically(ContextVar.set, self._ambient.variables, (opening, value, self._companion))
        return value

    def __exit__(self, *exception: object) -> None:
        self._leave()

    def __del__(self) -> None:
        # a scope whose __init__ was interrupted has no attributes
        if (
            getattr(self, "_opening", None) is not None
            and self._tokens
            and self._ambient.variables[1].get(None) is self._value
        ):
            with suppress(ValueError):  # collected in another thread or task, which has a state of its own
                self._leave()
                MEMO.set(None)  # scopes of other modes around this one were left before it

    def _leave(self) -> None:
        opening, innermost = self._opening, self._ambient.variables[0].get()
        while innermost is not opening and innermost is not None:
            innermost = innermost.around
        if innermost is not None and self._tokens:
            deque(atomically(ContextVar.reset, self._ambient.variables, self._tokens), maxlen=0)
        self._opening = None

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            with AmbientScope(self._ambient, self._make, self._companion):
                return function(*args, **kwargs)

        return inside
