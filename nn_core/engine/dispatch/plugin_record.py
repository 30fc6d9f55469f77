"""One plugin: where it comes from, what it brought, and what has become of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import TYPE_CHECKING

from nn_core.engine.runtime.metadata import EntryPoint

if TYPE_CHECKING:
    from nn_core.engine.dispatch.hookspecs import BackendInfo


class State(Enum):
    """The states of a plugin or a backend."""

    ABSENT = "absent"
    INSTALLED = "installed"
    LOADED = "loaded"
    BROKEN = "broken"
    BLOCKED = "blocked"
    NO_DEVICE = "no device"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something cannot be used, with the exception that said so."""

    state: State
    reason: str
    cause: BaseException | None = None


@dataclass(slots=True)
class Plugin:
    """A plugin whose module was asked for, sound or not; without entry points it was registered by the program."""

    name: str
    entry_points: tuple[EntryPoint, ...]
    module: ModuleType | None = None
    backends: "dict[str, BackendInfo]" = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    unprefixed: tuple[str, ...] = ()
    namespaced: bool = False
    samples: tuple[str, ...] = ()
    failure: Failure | None = None
    hooks: tuple[object, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether its module has been run again since it was loaded."""
        return self.module is not None and hooks_of(self.module) != self.hooks

    @property
    def label(self) -> str:
        """The name with the package and the version that it comes from."""
        return f"{self.name!r} ({' and '.join(packages(self.entry_points)) or 'registered by the program'})"

    @property
    def package(self) -> str:
        """Name of the top-level package of its module."""
        # of an entry point without importing it
        module = self.entry_points[0].module if self.entry_points else self.module.__name__ if self.module else ""
        return module.partition(".")[0]

    @property
    def hint(self) -> str:
        """Advice about a plugin that does not load."""
        if not self.entry_points:
            return "hint: correct the module and call nn_core.ext.register() again"
        names = " ".join(package_names(self.entry_points))
        return f"hint: nn-core doctor says more; pip install --upgrade {names}, or pip uninstall {names}"


def hooks_of(module: ModuleType) -> tuple[object, ...]:
    """Return the functions of a module that are called like hooks, as they are now."""
    return tuple([value for name, value in sorted(vars(module).items()) if name.startswith("nn_core_")])


def packages(entry_points: Sequence[EntryPoint]) -> list[str]:
    """Name and version of the packages that entry points come from."""
    return [f"{entry.package} {entry.version}".strip() for entry in entry_points]


def package_names(entry_points: Sequence[EntryPoint]) -> list[str]:
    """Names of the packages that entry points come from, as pip knows them."""
    return [entry.package for entry in entry_points]
