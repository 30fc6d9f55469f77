"""The holders of parameters, scopes of the process and modules: for messages to programs that look in the wrong place."""

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

#: More holders than this are not listed.
_LISTED: Final = 4


class Holder(Protocol):
    """A module."""

    @property
    def parent(self) -> Any:
        """The module that holds it."""
        ...

    @property
    def parameter_scope(self) -> Mapping[str, Any]:
        """Return its scope, with what its own methods have made."""
        ...

    def get_parameters(self) -> Mapping[str, Any]:
        """Its parameters by name."""
        ...

    def walk(self, path: str = "") -> "Iterator[tuple[str, Holder]]":
        """Yield it and those inside it, with what precedes the names of their parameters."""
        ...


#: Modules, by their addresses.
HOLDERS: Final[weakref.WeakValueDictionary[int, Holder]] = weakref.WeakValueDictionary()
#: The scope of all parameters of the process, once there may be some.
SCOPES: Final[list[Mapping[str, Any]]] = []
_NO_SCOPE: Final[Mapping[str, Any]] = {}
#: The last one gives the current scope; an empty one until there may be parameters in scopes.
CURRENT_SCOPE: Final[list[Callable[[], Mapping[str, Any]]]] = [lambda: _NO_SCOPE]


def modules_with_parameters() -> Iterator[tuple[Holder, Mapping[str, Any]]]:
    """Yield the modules that are inside no other one and hold parameters, each with these.

    One that cannot list them, such as a module with a key that no parameter can have, is passed over: it may have nothing to
    do with the program that is helped.
    """
    for holder in list(HOLDERS.values()):
        found: Mapping[str, Any] = {}
        with suppress(Exception):
            found = holder.get_parameters() if holder.parent is None else {}
        if found:
            yield holder, found


def where_parameters_are(scope: Mapping[str, Any] | None = None) -> str:
    """Say, as the last line of a message, which modules and scopes hold parameters; empty where none does.

    Args:
        scope: The scope that a program has looked in, which is not named.
    """
    modules = [f"module {type(holder).__name__} ({len(found)})" for holder, found in modules_with_parameters()]
    scopes = [
        f"scope {name!r} ({count})" if isinstance(member, Mapping) else f"parameter {name!r}"
        for root in SCOPES
        if root is not scope
        for name, member in list(root.items())
        if member is not scope and (count := _count(member))
    ]
    places = [*modules, *scopes]
    more = f" and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    return f"\n  hint: parameters are in {', '.join(places[:_LISTED])}{more}" if places else ""


def _count(member: Any) -> int:
    return sum(map(_count, member.values())) if isinstance(member, Mapping) else 1
