"""ModuleList and ModuleDict: modules as the elements of a module.

Their parameters have the same names as those of plain lists and dictionaries, so that one may replace the other:
``@layers/@0/conv/W``.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from nn_core.core.members import Path, found_in
from nn_core.core.module import Module
from nn_core.engine.error_messages.refusal import described, door, fitted, fitted_methods
from nn_core.errors import ArgumentError, UnknownNameError


@fitted_methods()
class ModuleList(Module):
    """A list of modules that is a module itself.

    Args:
        modules: The first elements.

    Raises:
        ArgumentError: when an element is not a module, here and in all methods.

    Example:
        >>> from nn_core.core.sequential import Sequential
        >>> blocks = ModuleList([Sequential(), Sequential()])
        >>> blocks.append(Sequential())
        >>> list(blocks.submodules), len(blocks)
        (['0', '1', '2'], 3)
    """

    @fitted
    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._modules: list[Module] = []
        self.extend(modules)

    def append(self, module: Module) -> None:
        """Add a module at the end."""
        self.insert(len(self), module)

    def extend(self, modules: Iterable[Module]) -> None:
        """Add modules at the end."""
        for module in modules:
            self.append(module)

    def insert(self, index: int, module: Module) -> None:
        """Add a module in front of the one at `index`."""
        self._modules[index:index] = [_checked("ModuleList", module)]  # a slice takes any index, however large
        self._take((str(index),), module)

    def _held(self) -> Iterator[tuple[Path, Any]]:
        """Yield the modules by position."""
        for position, module in enumerate(self._modules):
            yield (str(position),), module

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules)

    @overload
    def __getitem__(self, index: int) -> Module: ...

    @overload
    def __getitem__(self, index: slice) -> "list[Module]": ...

    def __getitem__(self, index: int | slice) -> "Module | list[Module]":
        return self._modules[index]

    def __setitem__(self, index: int, module: Module) -> None:
        old = self._modules[index]
        self._modules[index] = _checked("ModuleList", module)
        self._release(old)
        self._take((str(index),), module)

    def __delitem__(self, index: int | slice) -> None:
        old = self._modules[index]
        del self._modules[index]
        self._release(old)


@fitted_methods()
class ModuleDict(Module):
    """Modules by name that are a module themselves.

    Args:
        modules: The first modules.

    Raises:
        ArgumentError: when a value is not a module, or a name is empty or has a '/', here and in all methods.

    Example:
        >>> from nn_core.core.sequential import Sequential
        >>> heads = ModuleDict({"mask": Sequential()})
        >>> heads["box"] = Sequential()
        >>> list(heads), heads["box"].get_scope_name()
        (['mask', 'box'], '@box')
    """

    @fitted
    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self._modules: dict[str, Module] = {}
        if modules is not None:
            self.update(modules)

    @door
    def update(self, modules: Mapping[str, Module]) -> None:
        """Add modules, in place of those of the same names."""
        for name, module in modules.items():
            self[name] = module

    def pop(self, name: str) -> Module:
        """Take out the module called `name`."""
        module = self[name]
        del self[name]
        return module

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """Return the modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Return the names, each with its module."""
        return self._modules.items()

    def _held(self) -> Iterator[tuple[Path, Any]]:
        """Yield the modules by name."""
        yield from found_in(self._modules, (Module,), ())

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __getitem__(self, name: str) -> Module:
        self._require(name)
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        ((path, _),) = found_in({name: _checked("ModuleDict", module)}, (Module,), ())
        old = self._modules.get(name)
        self._modules[name] = module
        self._release(old)
        self._take(path, module)

    def __delitem__(self, name: str) -> None:
        self._require(name)
        self._release(self._modules.pop(name))

    def _require(self, name: str) -> None:
        if name not in self._modules:
            known = ", ".join(self._modules) or "none"
            raise UnknownNameError(f"ModuleDict: the name must be that of a module ({known}), got {described(name)}")


def _checked(container: str, module: Any) -> Module:
    if not isinstance(module, Module):
        raise ArgumentError(f"{container}: every element must be a Module, got {type(module).__name__}")
    return module
