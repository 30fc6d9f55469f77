"""Which plugins are installed, from the metadata of installed packages alone: nothing is imported."""

from functools import cache
from typing import TYPE_CHECKING, Final

from nn_core.settings import settings

if TYPE_CHECKING:
    from importlib_metadata import EntryPoint

#: The entry-point group of plugins.
GROUP: Final = "nn_core.extensions"
#: The backend of programs that name none, where it is installed.
PREFERRED_BACKEND: Final = "cpu"


@cache
def entry_points() -> "dict[str, tuple[EntryPoint, ...]]":
    """Entry points of plugins by name, names sorted; more than one under a name means that packages clash.

    The packages are scanned once; ``entry_points.cache_clear()`` forgets the result.
    """
    import importlib_metadata  # a tenth of the time of `import nn_core`, and only needed here

    found: dict[str, list[EntryPoint]] = {}
    for entry in importlib_metadata.entry_points(group=GROUP):
        found.setdefault(entry.name, []).append(entry)
    return {name: tuple(sorted(found[name], key=lambda entry: entry.value)) for name in sorted(found)}


def default_backends() -> tuple[str, ...]:
    """The priority list of a program that names none: the CPU kernels where they are installed, then the reference.

    The reference is named too, so that a broken installation of the first does not stop such a program.
    """
    preferred = settings().plugin_autoload and PREFERRED_BACKEND in entry_points()
    return (PREFERRED_BACKEND, "reference") if preferred else ("reference",)
