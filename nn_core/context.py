"""Contexts of functions: a priority list of backends with their number types, an array class and a device."""

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nn_core.engine.error_messages.refusal import described, door, fitted, fitted_methods
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.engine.runtime.context_values import Mode
from nn_core.engine.runtime.installed import default_backends
from nn_core.errors import ArgumentError, UnknownAttributeError

#: dtype name of each number type that may follow the colon of a backend.
TYPE_CONFIGS: Final = {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64"}

#: Names of the settings, which a program may assign to.
_SETTINGS: Final = ("backend", "array_class", "device_id")


class _Key:
    """Identity of all contexts with equal settings, and their snapshot; its hash takes no call of Python."""

    __slots__ = ("snapshot",)

    snapshot: "Context"


#: The keys of all contexts that ever existed, by their settings.
_KEYS: Final[dict[tuple[object, ...], _Key]] = {}


@fitted_methods()
class Context:
    """A description of where functions run; equal and hashed by its settings.

    The settings of a context that the program made can be assigned. Functions, scopes and the default context keep a
    snapshot, which later assignments do not change and which cannot be assigned to. A context that is a key of a
    dictionary must not be assigned to, since its hash follows its settings.

    Args:
        backend: Backends in the order of preference, each ``"<name>:<float|half|bfloat16|double>"``; ``:float`` may be
            left out. An empty list stands for what is installed: the CPU kernels, then the reference.
        array_class: Name of the kind of arrays, as the backend calls them; empty: the backend's own.
        device_id: Number of the device, an integer or its digits; empty: ``"0"``. Backends that have one device, such as the
            CPU, take no notice of it; `get_extension_context` refuses another one for them.

    Raises:
        ArgumentError: when `backend` is one string, an entry is not of the form above, `array_class` is not a string,
            or `device_id` is not a whole number of at least 0; on assignment to a snapshot, which would be lost.

    Example:
        >>> ctx = Context(["fast:half", "cpu"])
        >>> ctx.device_id = 1
        >>> ctx
        Context(backend=['fast:half', 'cpu:float'], array_class='', device_id='1')
    """

    __slots__ = ("array_class", "device_id", "dtype", "entries", "key")

    array_class: str
    device_id: str
    #: (backend name, dtype name) in the order of preference; never empty.
    entries: tuple[tuple[str, str], ...]
    #: dtype name of the first entry: what new floating arrays hold.
    dtype: str
    #: The same object in equal contexts: a key that dictionaries find without a call of Python.
    key: _Key

    @door
    def __init__(self, backend: Sequence[str] = (), array_class: str = "", device_id: str | int = "0") -> None:
        if not isinstance(backend, (list, tuple)):
            raise ArgumentError(f"Context: backend must be a list of strings, got {backend!r}\n  hint: [{backend!r}]")
        if not isinstance(array_class, str):
            raise ArgumentError(f"Context: array_class must be a string, got {described(array_class)}")
        entries = tuple(_entry(text) for text in backend or default_backends())
        put = super().__setattr__
        put("array_class", array_class)
        put("device_id", _device(device_id))
        put("entries", entries)
        put("dtype", entries[0][1])
        put("key", _key((entries, array_class, self.device_id)))

    @property
    def backend(self) -> list[str]:
        """The priority list, each entry with its number type."""
        type_names = {dtype: name for name, dtype in TYPE_CONFIGS.items()}
        return [f"{name}:{type_names[dtype]}" for name, dtype in self.entries]

    def snapshot(self) -> "Context":
        """Return the context with these settings that never changes: the one for whoever keeps a context."""
        return self.key.snapshot

    def replace(
        self,
        *,
        backend: Sequence[str] | None = None,
        array_class: str | None = None,
        device_id: str | int | None = None,
    ) -> "Context":
        """Return the same context with the given settings changed."""
        return Context(
            self.backend if backend is None else backend,
            self.array_class if array_class is None else array_class,
            self.device_id if device_id is None else device_id,
        )

    @door
    def in_dtype(self, dtype: str) -> "Context":
        """Return the same backends with all of their numbers in `dtype`, a name such as ``"float32"``."""
        if all(own == dtype for _, own in self.entries):
            return self
        (type_name,) = [name for name, known in TYPE_CONFIGS.items() if known == dtype]
        return self.replace(backend=[f"{name}:{type_name}" for name, _ in self.entries])

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _SETTINGS:
            text = f"Context: has no attribute {name!r} to assign{suggestion(name, _SETTINGS)}"
            raise UnknownAttributeError(text, name=name, obj=self)
        if self is self.key.snapshot:
            raise ArgumentError(
                f"Context: settings of one that is in use must not be assigned, got an assignment to {name}\n"
                f"  hint: set_default_context(ctx.replace({name}={value!r}))"
            )
        settings: dict[str, Any] = {known: getattr(self, known) for known in _SETTINGS}
        changed = Context(**{**settings, name: value})
        for slot in Context.__slots__:
            super().__setattr__(slot, getattr(changed, slot))

    def __eq__(self, other: object) -> bool:
        return self.key is other.key if isinstance(other, Context) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Context, (self.backend, self.array_class, self.device_id)

    def __repr__(self) -> str:
        return f"Context(backend={self.backend}, array_class={self.array_class!r}, device_id={self.device_id!r})"


#: Functions of the name of a backend that return its context, of which the last one counts.
BY_NAME: Final[list[Callable[[str], Context]]] = []


def get_current_context() -> Context:
    """Return the context of the innermost scope, else the default one, as a snapshot that cannot be assigned to.

    Example:
        >>> with nn.context_scope(nn.Context(["reference:half"])):
        ...     print(nn.get_current_context().backend)
        ['reference:half']
    """
    context = _current.get()
    if context is None:
        context = Context().snapshot()
        _current.set_default(context)
    return context


def context_scope(ctx: Context | str) -> AbstractContextManager[Context | None]:
    """Make `ctx` the current context inside a ``with`` block, for this thread or async task only.

    Args:
        ctx: A context; or the name of a backend, alone or with a number type, as in ``"cpu:bfloat16"``, which stands for what
            ``get_extension_context`` gives. "auto" is the best one that is available.

    Example:
        >>> with nn.context_scope(nn.Context(["reference:float"])):
        ...     y = F.tanh(nn.Variable((2, 3)))  # remembers this context
    """
    return _current.scope(checked_context("context_scope", ctx))


@fitted
def set_default_context(ctx: Context | str) -> None:
    """Make `ctx` the context of the whole process wherever no scope says otherwise.

    Args:
        ctx: A context, or the name of a backend as for `context_scope`.

    Raises:
        ArgumentError: inside a context_scope, where the change would have no effect until the scope ends.

    Example:
        >>> before = nn.get_current_context()
        >>> nn.set_default_context(nn.Context(["reference:float"]))
        >>> nn.get_current_context().backend
        ['reference:float']
        >>> nn.set_default_context(before)
    """
    context = checked_context("set_default_context", ctx)
    if _current.is_scoped:
        raise ArgumentError("set_default_context: must be called outside every context_scope, got a call inside one")
    _current.set_default(context)


if not TYPE_CHECKING:  # so that checkers report names that do not exist

    def __getattr__(name: str) -> object:
        """NNabla's variable of the module, read when it is asked for (PEP 562)."""
        if name == "current_ctx":
            return get_current_context()
        text = f"module 'nn_core.context' has no attribute {name!r}"
        raise UnknownAttributeError(text, name=name, obj=sys.modules[__name__])


_current: Mode[Context | None] = Mode("context", None)


def _entry(text: str) -> tuple[str, str]:
    name, colon, type_config = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not name or (colon and type_config not in TYPE_CONFIGS):
        raise ArgumentError(f"Context: a backend must read '<name>:<{'|'.join(TYPE_CONFIGS)}>', got {text!r}")
    return name, TYPE_CONFIGS[type_config or "float"]


def _device(device_id: str | int) -> str:
    text = f"{device_id}" or "0"
    if isinstance(device_id, (bool, np.bool_, float)) or not (text.isascii() and text.isdecimal()):
        raise ArgumentError(
            f"Context: device_id must be a whole number of at least 0, as an integer or its digits, got {device_id!r}"
        )
    return f"{int(text)}"


def checked_context(function: str, ctx: Context | str) -> Context:
    """Return the snapshot of `ctx`, for a holder; a name stands for the context that a backend recommends.

    Raises:
        ArgumentError: when `ctx` is neither a Context nor a name.
    """
    if isinstance(ctx, str) and BY_NAME:
        ctx = BY_NAME[-1](ctx)
    if not isinstance(ctx, Context):
        raise ArgumentError(f"{function}: ctx must be a Context, or the name of a backend, got {type(ctx).__name__}")
    return ctx.snapshot()


def _key(settings: tuple[tuple[tuple[str, str], ...], str, str]) -> _Key:
    known = _KEYS.get(settings)
    if known is not None:
        return known
    entries, array_class, device_id = settings
    key = _Key()
    snapshot = Context.__new__(Context)
    for slot, value in zip(Context.__slots__, (array_class, device_id, entries[0][1], entries, key), strict=True):
        object.__setattr__(snapshot, slot, value)
    key.snapshot = snapshot
    return _KEYS.setdefault(settings, key)
