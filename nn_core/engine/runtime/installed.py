"""The plugins that are installed, from the metadata of installed packages alone: nothing is imported."""

import logging
from collections.abc import Sequence
from functools import cache
from importlib import invalidate_caches
from typing import Final

from nn_core.engine.runtime.metadata import EntryPoint, Fault, Scan, canonical, scan
from nn_core.errors import quoted
from nn_core.settings import settings

#: The entry-point group of plugins.
GROUP: Final = "nn_core.extensions"
#: The entry-point group in which packages list what their plugins bring, so that finding one thing imports one plugin.
INDEX: Final = "nn_core.index"
#: The plugin of the core itself, which cannot be blocked.
CORE_PLUGIN: Final = "reference"
#: The backend of programs that name none, where it is installed.
PREFERRED_BACKEND: Final = "cpu"
#: The packages that bring backends of ours.
OWN_PACKAGES: Final = {CORE_PLUGIN: "nn-core", "cpu": "nn-ext-cpu", "cuda": "nn-ext-cuda", "cudnn": "nn-ext-cudnn"}
_CORE_MODULE: Final = "nn_core.operators.reference.plugin"
_OTHERS: Final = ("c", "caffe", "contrib", "mpi", "nnp", "onnx", "ray", "serve", "tensorboard")
#: The packages of all plugins of ours. These names are theirs alone: an entry point of another package that is called like one
#: would run in place of it, in all programs.
OWN_PLUGINS: Final = {**OWN_PACKAGES, "nccl": "nn-ext-cuda", **{name: f"nn-ext-{name}" for name in _OTHERS}}
#: The top-level modules of these packages.
OWN_MODULES: Final = frozenset(package.replace("-", "_") for package in OWN_PLUGINS.values())


@cache
def _scanned() -> Scan:
    found = scan((GROUP, INDEX), _objection)
    entries, faults = list(found.entries), found.faults
    if not any(entry.group == GROUP and entry.name == CORE_PLUGIN for entry in entries):
        # a copy of nn_core without metadata, or with damaged metadata, still has its reference kernels
        entries.append(EntryPoint(GROUP, CORE_PLUGIN, _CORE_MODULE, OWN_PACKAGES[CORE_PLUGIN], ""))
    for fault in faults:
        level = logging.WARNING if fault.is_ours else logging.DEBUG
        logging.getLogger("nn_core").log(level, "metadata of %s is passed over: %s", fault.package, fault.reason)
    return Scan(tuple(entries), faults)


def _objection(entry: EntryPoint) -> str:
    """Return the reason why an entry point is not followed, empty where it is."""
    if entry.group != GROUP:
        return ""
    owner, package = OWN_PLUGINS.get(entry.name), canonical(entry.package)
    is_own = entry.module.partition(".")[0] == package.replace("-", "_")
    # a package may call itself like ours, and may have been there before it
    if is_named_like_ours(package) and not is_own:
        return f"an entry point of {package} must name a module of it, got {entry.name} = {quoted(entry.value)}"
    if owner in (None, package) and (entry.name != CORE_PLUGIN or entry.module == _CORE_MODULE):
        return ""
    return f"the name {entry.name!r} of an entry point must be that of {owner}, got {quoted(entry.value)}"


def is_named_like_ours(package: str) -> bool:
    """Return whether a package is called like one of those that bring plugins of ours."""
    return canonical(package) in OWN_PLUGINS.values()


def faults() -> tuple[Fault, ...]:
    """Return the metadata that is passed over: what cannot be read, and entry points that are named like ours."""
    return _scanned().faults


@cache
def installed_plugins() -> dict[str, tuple[EntryPoint, ...]]:
    """Entry points of all plugins by name, also of those that NN_CORE_PLUGINS blocks."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in _scanned().entries:
        if entry.group == GROUP:
            found.setdefault(entry.name, []).append(entry)
    return {name: tuple(sorted(found[name], key=lambda entry: entry.value)) for name in sorted(found)}


@cache
def entry_points() -> dict[str, tuple[EntryPoint, ...]]:
    """Entry points of plugins by name, names sorted; more than one under a name means that packages clash.

    The packages are scanned once; ``forget()`` makes the next call scan them again.
    """
    allows = settings().allows_plugin
    return {name: entries for name, entries in installed_plugins().items() if name == CORE_PLUGIN or allows(name)}


@cache
def index() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the plugins that provide something by their metadata, by its kind and name: ``("solvers", "Ranger")``.

    A package lists what its own plugins provide; what it says of those of others does not count.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for entry in _scanned().entries:
        if entry.group == INDEX and any(owner.package == entry.package for owner in entry_points().get(entry.value, ())):
            kind, _, name = entry.name.partition(".")
            found.setdefault((kind, name), []).append(entry.value)
    return {place: tuple(sorted(set(plugins))) for place, plugins in found.items()}


def forget() -> None:
    """Scan the packages again when they are next asked for."""
    for cached in (_scanned, installed_plugins, entry_points, index):
        cached.cache_clear()
    invalidate_caches()  # folders are listed once by those who look for modules and metadata, unless their time has changed


def default_backends() -> tuple[str, ...]:
    """Return the priority list of a program that names none: the CPU kernels where they are installed, then the reference.

    The reference is named too, so that a broken installation of the first does not stop such a program.
    """
    preferred = settings().plugin_autoload and PREFERRED_BACKEND in entry_points()
    return (PREFERRED_BACKEND, "reference") if preferred else ("reference",)


def without_others(plugins: Sequence[str], kind: str) -> list[str]:
    """Return plugins without those that say in the index that they offer other kinds of extensions, and none of `kind`."""
    offered: dict[str, set[str]] = {}
    for (offered_kind, _), owners in index().items():
        for owner in owners:
            offered.setdefault(owner, set()).add(offered_kind)
    return [name for name in plugins if name not in offered or kind in offered[name]]
