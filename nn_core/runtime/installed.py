"""The plugins that are installed, from the metadata of installed packages alone: nothing is imported."""

from functools import cache
from typing import TYPE_CHECKING, Final

from nn_core.settings import settings

if TYPE_CHECKING:
    from importlib_metadata import EntryPoint

#: The entry-point group of plugins.
GROUP: Final = "nn_core.extensions"
#: The entry-point group in which packages list what their plugins bring, so that finding one thing imports one plugin.
INDEX: Final = "nn_core.index"
#: The plugin of the core itself, which cannot be blocked.
CORE_PLUGIN: Final = "reference"
#: The backend of programs that name none, where it is installed.
PREFERRED_BACKEND: Final = "cpu"


@cache
def _scanned() -> "tuple[EntryPoint, ...]":
    import importlib_metadata  # a tenth of the time of `import nn_core`, and only needed here

    found = importlib_metadata.entry_points()
    return (*found.select(group=GROUP), *found.select(group=INDEX))


@cache
def installed_plugins() -> "dict[str, tuple[EntryPoint, ...]]":
    """Entry points of all plugins by name, also of those that NN_CORE_PLUGINS blocks."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in _scanned():
        if entry.group == GROUP:
            found.setdefault(entry.name, []).append(entry)
    return {name: tuple(sorted(found[name], key=lambda entry: entry.value)) for name in sorted(found)}


@cache
def entry_points() -> "dict[str, tuple[EntryPoint, ...]]":
    """Entry points of plugins by name, names sorted; more than one under a name means that packages clash.

    The packages are scanned once; ``forget()`` makes the next call scan them again.
    """
    allows = settings().allows_plugin
    return {name: entries for name, entries in installed_plugins().items() if name == CORE_PLUGIN or allows(name)}


@cache
def index() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the plugins that provide something by their metadata, by its kind and name: ``("solvers", "Ranger")``."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in _scanned():
        if entry.group == INDEX and entry.value in entry_points():
            kind, _, name = entry.name.partition(".")
            found.setdefault((kind, name), []).append(entry.value)
    return {place: tuple(sorted(set(plugins))) for place, plugins in found.items()}


def forget() -> None:
    """Scan the packages again when they are next asked for."""
    for cached in (_scanned, installed_plugins, entry_points, index):
        cached.cache_clear()


def default_backends() -> tuple[str, ...]:
    """The priority list of a program that names none: the CPU kernels where they are installed, then the reference.

    The reference is named too, so that a broken installation of the first does not stop such a program.
    """
    preferred = settings().plugin_autoload and PREFERRED_BACKEND in entry_points()
    return (PREFERRED_BACKEND, "reference") if preferred else ("reference",)
