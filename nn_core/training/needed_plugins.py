"""The plugins that a checkpoint was written with, so that loading it without them can say what to install."""

from collections.abc import Mapping
from typing import Any

from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.plugin_record import packages
from nn_core.engine.runtime import installed
from nn_core.errors import quoted


def plugins_behind(objects: Mapping[str, Any]) -> dict[str, str]:
    """Package and version of the plugins that define the classes of `objects`, and of those whose operators are loaded."""
    classes = {type(item).__module__.partition(".")[0] for item in objects.values()}
    with_operators = {added.plugin for added in PLUGINS.registry}
    return {
        name: " and ".join(packages(entry_points))
        for name, entry_points in installed.entry_points().items()
        if name in with_operators or entry_points[0].module.partition(".")[0] in classes - {"nn_core"}
    }


def hint_of_missing(recorded: object) -> str:
    """Return a line that says which plugins of a file are not installed here, empty where all are.

    The names are those that the file states: they are quoted, and no command to copy contains them.
    """
    known = recorded.items() if isinstance(recorded, Mapping) else ()
    missing = {str(name): str(package) for name, package in known if name not in installed.entry_points()}
    if not missing:
        return ""
    names = " and ".join(f"{quoted(name)} of the package {quoted(package)}" for name, package in missing.items())
    return f"hint: it says that it was written with plugins that are not installed: {names}"
