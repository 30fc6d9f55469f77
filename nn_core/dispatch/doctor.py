"""What has become of every installed plugin, found out by trying to use it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nn_core.dispatch.plugins import PLUGINS, Plugin, State, package_names, packages
from nn_core.errors import BackendNotFoundError, NNCoreError

if TYPE_CHECKING:
    from nn_core.dispatch.hookspecs import BackendInfo


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the doctor's table; `advice` is a command line, empty where nothing has to be done."""

    name: str
    package: str
    state: State
    reason: str = ""
    devices: str = ""
    advice: str = ""


def examine(names: Sequence[str] = ()) -> list[Finding]:
    """Import every plugin, probe and load every backend, and say what came of it.

    Args:
        names: Plugins to look for besides those that are installed.
    """
    wanted = [*PLUGINS.names(), *(name for name in names if name not in PLUGINS.names())]
    return [finding for name in wanted for finding in _findings(name)]


def _findings(name: str) -> Iterator[Finding]:
    try:
        plugin = PLUGINS.plugin(name)
    except BackendNotFoundError:
        yield Finding(name, "", State.ABSENT, "not installed", advice=f"pip install nn-ext-{name}")
        return
    package = " and ".join(packages(plugin.entry_points))
    if plugin.failure is not None:
        yield Finding(name, package, PLUGINS.state(name), plugin.failure.reason, advice=_reinstall(plugin))
        return
    if plugin.functions:
        yield Finding(name, package, State.LOADED, f"functions: {', '.join(plugin.functions)}")
    for info in plugin.backends.values():
        yield _backend_finding(plugin, package, info)


def _backend_finding(plugin: Plugin, package: str, info: "BackendInfo") -> Finding:
    try:
        PLUGINS.backend(info.name)
        devices = "\n".join(info.devices())
    except NNCoreError:
        failure = PLUGINS.failure(info.name)
        assert failure is not None
        advice = _reinstall(plugin) if failure.state is State.BROKEN else ""
        return Finding(info.name, package, failure.state, failure.reason, advice=advice)
    return Finding(info.name, package, PLUGINS.state(info.name), info.description, devices)


def _reinstall(plugin: Plugin) -> str:
    return "pip install --upgrade " + " ".join(package_names(plugin.entry_points))
