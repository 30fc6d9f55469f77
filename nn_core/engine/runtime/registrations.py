"""Tables that decorators fill by name of the function, with a record of what was not the core's, so that it can be undone."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nn_core.errors import PluginError
from nn_core.operators.spec.builtin import BY_NAME


@dataclass(slots=True, eq=False)  # not frozen, which makes its creation three times as long: plugins have thousands
class Registration:
    """One entry of one table that a module outside of nn_core made; nothing changes it.

    Attributes:
        key: The place in its table, under which one registration can be in force.
    """

    table: dict[str, Any]
    what: str
    name: str
    value: Any
    module: str
    key: tuple[int, str]

    @property
    def package(self) -> str:
        """Top-level package of the module."""
        return self.module.partition(".")[0]


#: Registrations for functions that the core does not specify, in order, each by its table and name.
_RECORD: Final[dict[tuple[int, str], Registration]] = {}
#: The places of those with which a plugin has been loaded.
_SETTLED: Final[set[tuple[int, str]]] = set()
#: The registrations that functions have, by kind and name; two tables of one kind do not exist.
_KINDS: Final[set[tuple[str, str]]] = set()


def registering(table: dict[str, Any], what: str, names: Sequence[str]) -> Callable[[Any], Any]:
    """Return the decorator that puts a function into `table` under each of `names`, or under none of them.

    Raises:
        PluginError: when a name is taken, or belongs to the core and the decorated function does not.
    """

    def decorate(value: Any) -> Any:
        module = str(getattr(value, "__module__", None) or "an unnamed module")
        for name in names:
            if (name in table or name in BY_NAME) and not _is_again(table, name, value):
                _require_free(table, what, name, module)
        for name in names:
            table[name] = value
            if name not in BY_NAME:
                _note(Registration(table, what, name, value, module, (id(table), name)))
        return value

    return decorate


def settle(registrations: Iterable[Registration]) -> None:
    """Note that a plugin has been loaded with registrations: its module may be run again, and make them anew."""
    _SETTLED.update(entry.key for entry in registrations)


def recorded() -> tuple[Registration, ...]:
    """All registrations for functions of plugins that are in force."""
    return tuple(_RECORD.values())


def undo(registrations: Iterable[Registration]) -> None:
    """Take registrations back; those that are not in force any more are passed over."""
    for registration in registrations:
        if _RECORD.get(registration.key) is registration:
            del _RECORD[registration.key]
            _KINDS.discard((registration.what, registration.name))
            registration.table.pop(registration.name, None)


def redo(registrations: Iterable[Registration]) -> None:
    """Put registrations in force that were undone while the module that made them stayed imported."""
    for registration in registrations:
        if _RECORD.get(registration.key) is not registration:
            _require_free(registration.table, registration.what, registration.name, registration.module)
            registration.table[registration.name] = registration.value
            _note(registration)


def is_registered(what: str, name: str) -> bool:
    """Return whether the function called `name`, of a plugin, has a registration of the kind `what`."""
    return (what, name) in _KINDS


def _note(registration: Registration) -> None:
    key = registration.key
    _RECORD.pop(key, None)  # the order is that of the latest
    _RECORD[key] = registration
    _KINDS.add((registration.what, registration.name))
    _SETTLED.discard(key)


def _is_again(table: dict[str, Any], name: str, value: Any) -> bool:
    """Return whether a function is one of a loaded plugin, defined anew, as a cell of a notebook and ``importlib.reload``
    do.
    """
    if name not in table:
        return False
    own, former = [(getattr(one, "__module__", None), getattr(one, "__qualname__", None)) for one in (value, table.get(name))]
    return own == former and None not in own and ((id(table), name) in _SETTLED or own[0] == "__main__")


def _require_free(table: dict[str, Any], what: str, name: str, module: str) -> None:
    if name in BY_NAME and module.partition(".")[0] != "nn_core":
        raise PluginError(
            f"{name}: the {what} must come from nn_core, which specifies the function, got one from {module}\n"
            "  hint: kernels of existing functions go into FunctionPackage(overlays={backend: {function: kernel}})"
        )
    if name in table:
        first = getattr(table[name], "__module__", "elsewhere")
        raise PluginError(f"{name}: a function has one {what}, got a second one from {module} after that of {first}")
