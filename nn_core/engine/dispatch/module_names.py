"""Names of modules of NumPy, of the library and of ours, and what they stand for before and after importing a plugin.

All of them are copied, and only those that differ are looked at more closely: there are more than fifty thousand.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import PathFinder
from operator import is_
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

#: Modules of NumPy whose attributes of every kind are looked at; of the others, functions and classes.
_NUMPY: Final = ("numpy", "numpy.random", "numpy.linalg", "numpy.fft")
#: Types of constants of ours, which are compared by identity.
_CONSTANTS: Final = (str, bytes, int, float, tuple, frozenset)
#: Our modules whose tables are looked at row by row: what an operator is and computes.
_TABLES: Final = "nn_core.operators."
_MODULES: Final = "sys.modules"
_MISSING: Final = object()
#: Functions around another one that are followed to it.
_MOST_WRAPPERS: Final = 4


class _Table(NamedTuple):
    """The names of one owner: a module, a class, or a dictionary.

    Attributes:
        label: What it is called.
        owner: The object that has the names.
        values: What they stood for.
        is_looked_at: Whether a change of a name, from one value to another, counts.
    """

    label: str
    owner: Any
    values: dict[Any, Any]
    is_looked_at: Callable[["_Table", Any, Any], bool]

    def names_now(self) -> Mapping[Any, Any]:
        return self.owner if isinstance(self.owner, dict) else vars(self.owner)

    def is_as_it_was(self) -> bool:
        """Compare by identity, by operations that call no function of Python."""
        now, before = self.names_now(), self.values
        return len(now) == len(before) and all(map(is_, now, before)) and all(map(is_, now.values(), before.values()))

    def replaced(self) -> Iterator[Any]:
        if self.is_as_it_was():
            return
        now, missing = self.names_now(), _MISSING
        for name, value in self.values.items():
            if now.get(name, missing) is not value and self.is_looked_at(self, name, value):
                yield name
        yield from (name for name in now if name not in self.values and self._hides(name, now[name]))

    def _hides(self, name: Any, value: Any) -> bool:
        """Say whether a name that was added stands in front of what its owner inherits, or loads when that is asked for."""
        if isinstance(self.owner, type):
            return self.is_looked_at(self, name, _inherited(self.owner, name))
        return "_LAZY" in self.values and value is not _lazy(self.values["_LAZY"], name, value)

    def title(self, name: Any) -> str:
        return f"{self.label}[{name!r}]" if isinstance(self.owner, dict) else f"{self.label}.{name}"

    def restore(self, name: Any) -> None:
        value = self.values.get(name, _MISSING)
        if isinstance(self.owner, dict):
            self.owner[name] = value
        elif value is _MISSING:
            delattr(self.owner, name)
        else:
            setattr(self.owner, name, value)


class _Code(NamedTuple):
    """The parts of a function that can be exchanged while the function stays the same object."""

    function: Any
    code: CodeType
    defaults: Any
    keywords: Any

    @property
    def title(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"

    def is_replaced(self) -> bool:
        function = self.function
        if function.__code__ is self.code and function.__defaults__ is self.defaults:
            return bool(function.__kwdefaults__ != self.keywords)
        return True

    def restore(self) -> None:
        self.function.__code__, self.function.__defaults__ = self.code, self.defaults
        self.function.__kwdefaults__ = self.keywords


class Names:
    """The attributes of modules and of classes, the code of functions, and the modules; those that come later are no change.

    Args:
        packages: The top-level packages whose names are looked at, all that there are rules for if none are named.
    """

    def __init__(self, *packages: str) -> None:
        self._modules = _Table(_MODULES, sys.modules, dict(sys.modules), _always)
        self._tables: list[_Table] = []
        self._codes: dict[int, _Code] = {}
        for name, module in self._modules.values.items():
            package = name.partition(".")[0]
            rules = _RULES.get(package) if not packages or package in packages else None
            if rules is not None and isinstance(module, ModuleType):
                self._add(name, module, rules)
        self._are_all = not packages

    def _add(self, name: str, module: ModuleType, rules: "_Rules") -> None:
        table = _Table(name, module, dict(vars(module)), rules.attributes)
        self._tables.append(table)
        has_code = rules.members is _is_member  # of ours
        if has_code:
            self._note_code(table)
        for part, value in table.values.items():
            if isinstance(value, type) and value.__module__ == name:
                members = _Table(f"{name}.{part}", value, dict(vars(value)), rules.members)
                self._tables.append(members)
                if has_code:
                    self._note_code(members)
            elif type(value) is dict and part.isupper() and name.startswith(_TABLES):
                self._tables.append(_Table(f"{name}.{part}", value, dict(value), _always))

    def _note_code(self, table: _Table) -> None:
        for value in table.values.values():
            kind = type(value)
            if kind is FunctionType:
                function: Any = value
            elif kind in _HOLDERS:
                function = _HOLDERS[kind](value)
            else:
                continue
            for _ in range(_MOST_WRAPPERS):
                if type(function) is not FunctionType or id(function) in self._codes:
                    break
                keywords = function.__kwdefaults__
                copied = keywords and dict(keywords)
                self._codes[id(function)] = _Code(function, function.__code__, function.__defaults__, copied)
                function = getattr(function, "__wrapped__", None)

    def replaced(self) -> list["Replaced"]:
        """Return the names that are gone or stand for something else by now, and packages that are none."""
        tables = [self._modules, *self._tables]
        found = [Replaced(table.title(name), table, name) for table in tables for name in table.replaced()]
        found += [Replaced(self._modules.title(name), None, name) for name in self._invented()]
        codes = [code for code in self._codes.values() if code.is_replaced()]
        found += [Replaced(f"the code of {code.title}", code, None) for code in codes]
        return sorted(found, key=lambda one: (not one.label.startswith(_MODULES), one.label))

    def _invented(self) -> list[str]:
        added = [(name, module) for name, module in list(sys.modules.items()) if name not in self._modules.values]
        names = [name for name, module in added if _is_no_module(name, module)]
        # a library may keep something of its own under a name that nobody else has
        return names if self._are_all else [name for name in names if PathFinder.find_spec(name) is not None]


class Replaced(NamedTuple):
    """A name that stands for something else than before."""

    label: str
    place: _Table | _Code | None
    name: Any

    def restore(self) -> None:
        """Put back what it stood for."""
        if isinstance(self.place, _Table):
            self.place.restore(self.name)
        elif self.place is not None:
            self.place.restore()
        else:
            sys.modules.pop(self.name, None)


def _function_of(method: Any) -> Any:
    return method.__func__


#: How to get the function from what may hold one in a class.
_HOLDERS: Final[dict[type, Callable[[Any], Any]]] = {
    staticmethod: _function_of,
    classmethod: _function_of,
    property: lambda value: value.fget,
}


def _inherited(owner: type, name: Any) -> Any:
    """Return what a class of ours before `owner` in the order of resolution defines, None where there is none."""
    bases = (vars(base) for base in owner.__mro__[1:] if base.__module__.startswith("nn_core."))
    return next((names[name] for names in bases if name in names), None)


def _lazy(places: Mapping[str, str], name: str, otherwise: Any) -> Any:
    """Return what a name stands for that a module of ours loads when it is asked for; `otherwise` for any other name."""
    return getattr(sys.modules.get(places.get(name, "")), name, None) if name in places else otherwise


def _always(table: _Table, name: Any, value: Any) -> bool:
    return True


def _is_own(table: _Table, name: str, value: Any) -> bool:
    is_code = not name.startswith("__") and not isinstance(value, ModuleType) and callable(value)
    return is_code or (isinstance(value, _CONSTANTS) and (name.strip("_").isupper() or name == "__version__"))


def _is_of_numpy(table: _Table, name: str, value: Any) -> bool:
    return not name.startswith("_") and (table.label in _NUMPY or callable(value))


def _is_of_the_library(table: _Table, name: str, value: Any) -> bool:
    # what is a hook has a row of its own
    return not name.startswith("_") and callable(value) and not name.endswith("hook")


def _is_member(table: _Table, name: str, value: Any) -> bool:
    return callable(value) or isinstance(value, (property, classmethod, staticmethod))


class _Rules(NamedTuple):
    """The changes that count: of attributes of modules, and of those of classes that they define."""

    attributes: Callable[[_Table, Any, Any], bool]
    members: Callable[[_Table, Any, Any], bool]


#: Packages whose attributes are looked at, and how; `sys` and `builtins` are looked at more closely elsewhere.
_RULES: Final = {
    **dict.fromkeys(sys.stdlib_module_names - {"sys", "builtins"}, _Rules(_is_of_the_library, _is_of_the_library)),
    "numpy": _Rules(_is_of_numpy, _is_of_the_library),
    "nn_core": _Rules(_is_own, _is_member),
}


def _is_no_module(name: str, module: Any) -> bool:
    """Say whether somebody has put an object of his own in the place of a package; importing one sets ``__spec__``.

    Names that begin with _ are places where libraries, such as those that Cython has compiled, keep what they share.
    """
    return "." not in name and not name.startswith("_") and getattr(module, "__spec__", None) is None
