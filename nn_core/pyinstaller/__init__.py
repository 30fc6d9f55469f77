"""Files that PyInstaller adds to a frozen program besides its imports: the core's data, and installed plugins.

Plugins are found by metadata and imported by name, which PyInstaller does not see. It finds this package by an entry point; a
frozen program needs no settings.
"""

from pathlib import Path

from nn_core.engine.dispatch.plugin_record import package_names
from nn_core.engine.runtime import installed


def hook_dirs() -> list[str]:
    """Return the folders with hooks for PyInstaller."""
    return [str(Path(__file__).parent)]


def packages() -> list[str]:
    """Return the packages to collect as a whole, code and data: nn_core, and those of installed plugins that are not
    blocked.
    """
    plugins = {entry.module.partition(".")[0] for entries in installed.entry_points().values() for entry in entries}
    return ["nn_core", *sorted(plugins - {"nn_core"})]


def distributions() -> list[str]:
    """Return the distributions whose metadata a frozen program needs to find its plugins."""
    names = {name for entries in installed.entry_points().values() for name in package_names(entries)}
    return ["nn-core", *sorted(names - {"nn-core"})]
