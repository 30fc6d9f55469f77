"""Other names for the parameters of a file."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError
from nn_core.files import Entry

#: New names of scopes and parameters by the old ones; or a function of a name that returns the new one, None to leave it out.
Rename: TypeAlias = Mapping[str, str] | Callable[[str], str | None]


def renamed(function: str, file: str, entries: Mapping[str, Entry], rename: Rename | None) -> dict[str, Entry]:
    """Return the entries of a file under their new names.

    Raises:
        ArgumentError: when `rename` is something else, has a name that the file does not have, or gives one name twice.
    """
    if rename is None:
        return dict(entries)
    if isinstance(rename, Mapping):
        _require_known(function, file, entries, rename)
    elif not callable(rename):
        raise ArgumentError(f"{function}: rename must be new names by the old ones, or a function, got {described(rename)}")
    found: dict[str, Entry] = {}
    for name, entry in entries.items():
        new = _mapped(name, rename) if isinstance(rename, Mapping) else rename(name)
        if new is None:
            continue
        if not isinstance(new, str) or not new:
            raise ArgumentError(f"{function}: rename must give a name for {name!r} of {file}, got {described(new)}")
        if new in found:
            raise ArgumentError(f"{function}: rename must give different names to the parameters of {file}, got {new!r} twice")
        found[new] = entry
    return found


def _mapped(name: str, rename: Mapping[str, str]) -> str:
    """Return the new name by the longest scope, or the whole name, that has one; "" is the scope of all names."""
    parts = name.split("/")
    for end in range(len(parts), -1, -1):
        scope = "/".join(parts[:end])
        if scope in rename:
            return "/".join(part for part in (rename[scope], *parts[end:]) if part)
    return name


def _require_known(function: str, file: str, names: Iterable[str], rename: Mapping[Any, Any]) -> None:
    scopes = {""}
    for name in names:
        parts = name.split("/")
        scopes.update("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    for old, new in rename.items():
        if old not in scopes:
            known = ", ".join(sorted({name.partition("/")[0] for name in names})) or "none"
            raise ArgumentError(f"{function}: rename must name scopes or parameters of {file} ({known}), got {described(old)}")
        if not isinstance(new, str):
            raise ArgumentError(f"{function}: rename must give a name for {old!r}, got {described(new)}")
