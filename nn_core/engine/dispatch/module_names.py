"""Names of modules of NumPy, of the library and of ours, and what they stand for before and after importing a plugin."""

import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, Final, NamedTuple

#: Modules of NumPy whose attributes of every kind are looked at; of the others, functions and classes.
_NUMPY: Final = ("numpy", "numpy.random", "numpy.linalg", "numpy.fft")
#: Types of constants of ours, which are compared by identity.
_CONSTANTS: Final = (str, bytes, int, float, tuple, frozenset)
#: Our modules whose tables are looked at row by row: what an operator is and computes.
_TABLES: Final = ("nn_core.operators.",)
_MODULES: Final = "sys.modules["
_MISSING: Final = object()


class Names(NamedTuple):
    """The attributes of modules, and the modules themselves, by their full names; those that come later are no change."""

    owners: Mapping[str, tuple[Any, str]]
    values: Mapping[str, Any]

    @staticmethod
    def now() -> "Names":
        """Return all names as they are."""
        owners: dict[str, tuple[Any, str]] = {}
        values: dict[str, Any] = {}
        for label, owner, name, value in _attributes():
            owners[label], values[label] = (owner, name), value
        return Names(owners, values)

    def replaced(self) -> list[str]:
        """Return the names that are gone or stand for something else by now, and packages that are none."""
        others = [label for label, value in self.values.items() if _current(*self.owners[label]) is not value]
        others += [_label(name) for name in self._invented()]
        return sorted(others, key=lambda label: (not label.startswith(_MODULES), label))

    def _invented(self) -> list[str]:
        modules = list(sys.modules.items())
        return [name for name, module in modules if _label(name) not in self.values and _is_no_module(name, module)]

    def restore(self, labels: list[str]) -> None:
        """Put back what some names stood for."""
        for name in self._invented():
            sys.modules.pop(name, None)
        for label in [label for label in labels if label in self.owners]:
            owner, name = self.owners[label]
            if isinstance(owner, dict):
                owner[name] = self.values[label]
            elif self.values[label] is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, self.values[label])


def _label(name: str) -> str:
    return f"{_MODULES}{name!r}]"


def _current(owner: Any, name: Any) -> Any:
    return (owner if isinstance(owner, dict) else vars(owner)).get(name, _MISSING)


def _attributes() -> Iterator[tuple[str, Any, str, Any]]:
    for name, module in list(sys.modules.items()):
        yield _label(name), sys.modules, name, module
        names = _NAMES_OF.get(name.partition(".")[0])
        if names is not None and isinstance(module, ModuleType):
            yield from ((f"{name}.{label}", owner, part, value) for label, owner, part, value in names(module))


def _own(module: ModuleType) -> Iterator[tuple[str, Any, str, Any]]:
    # a copy, since other threads import modules meanwhile
    for name, value in list(vars(module).items()):
        is_code = not name.startswith("__") and not isinstance(value, ModuleType) and callable(value)
        if is_code or _is_constant(name, value):
            yield name, module, name, value
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield from ((f"{name}.{part}", value, part, found) for part, found in _members(value))
    if module.__name__.startswith(_TABLES):
        yield from _rows(module)


def _rows(module: ModuleType) -> Iterator[tuple[str, Any, str, Any]]:
    for name, table in list(vars(module).items()):
        if isinstance(table, dict) and name.isupper():
            yield from ((f"{name}[{key!r}]", table, key, entry) for key, entry in list(table.items()))


def _of_numpy(module: ModuleType) -> Iterator[tuple[str, Any, str, Any]]:
    is_public = module.__name__ in _NUMPY
    for name, value in list(vars(module).items()):
        if not name.startswith("_") and (is_public or callable(value)):
            yield name, module, name, value


def _of_the_library(module: ModuleType) -> Iterator[tuple[str, Any, str, Any]]:
    for name, value in list(vars(module).items()):
        # what is a hook has a row of its own
        if not name.startswith("_") and callable(value) and not name.endswith("hook"):
            yield name, module, name, value


#: Packages whose attributes are looked at, and how; `sys` and `builtins` are looked at more closely elsewhere.
_NAMES_OF: Final[dict[str, Callable[[ModuleType], Iterator[tuple[str, Any, str, Any]]]]] = {
    **dict.fromkeys(sys.stdlib_module_names - {"sys", "builtins"}, _of_the_library),
    "numpy": _of_numpy,
    "nn_core": _own,
}


def _members(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield what a class defines, and what it inherits from others of ours, which nobody may define in front of them."""
    own = vars(owner)
    for base in owner.__mro__:
        if base.__module__.startswith("nn_core."):
            names = [name for name, found in list(vars(base).items()) if _is_member(found)]
            yield from ((name, own.get(name, _MISSING)) for name in names)


def _is_member(value: Any) -> bool:
    return callable(value) or isinstance(value, (property, classmethod, staticmethod))


def _is_constant(name: str, value: Any) -> bool:
    return isinstance(value, _CONSTANTS) and (name.strip("_").isupper() or name == "__version__")


def _is_no_module(name: str, module: Any) -> bool:
    """Say whether somebody has put an object of his own in the place of a package; importing one sets ``__spec__``.

    Names that begin with _ are places where libraries, such as those that Cython has compiled, keep what they share.
    """
    return "." not in name and not name.startswith("_") and getattr(module, "__spec__", None) is None
