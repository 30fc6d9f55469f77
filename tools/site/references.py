"""Entries of the reference: a class shows the members of its bases unless these have entries of their own.

Otherwise the methods of `Solver` would stand under each of the solvers.
"""

import inspect
import pkgutil
import re
from pathlib import Path

_ENTRY = re.compile(r"(?m)^::: (\S+)$")


def entries(folder: Path) -> dict[str, type]:
    """Return the classes that the pages of a folder have entries for, by the path in the entry."""
    paths = [path for page in sorted(folder.glob("*.md")) for path in _ENTRY.findall(page.read_text(encoding="utf-8"))]
    found = {path: pkgutil.resolve_name(path) for path in paths}
    return {path: thing for path, thing in found.items() if inspect.isclass(thing)}


def with_members(markdown: str, classes: dict[str, type]) -> str:
    """Return a page on which classes with a base that has an entry list their own members, and name that base."""
    documented = {thing: path for path, thing in classes.items()}

    def replace(match: "re.Match[str]") -> str:
        path = match[1]
        thing = classes.get(path)
        base = next((base for base in thing.__mro__[1:] if base in documented), None) if thing else None
        if thing is None or base is None:
            return match[0]
        options = f"\n    options:\n      inherited_members: {_inherited(thing, base)}"
        return f"{match[0]}{options}\n\nThe other members are those of [`{base.__name__}`][{documented[base]}]."

    return _ENTRY.sub(replace, markdown)


def _inherited(thing: type, base: type) -> list[str]:
    """Return the members that a class has from bases without an entry of their own."""
    before = thing.__mro__[1 : thing.__mro__.index(base)]
    return sorted({name for middle in before for name in vars(middle) if name[0] != "_" and not hasattr(base, name)})
