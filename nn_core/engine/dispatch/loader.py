"""The steps from an entry point to a registered plugin: all of them, or none that can be noticed.

pluggy checks and calls the hooks. Its own loop over entry points is not used: it imports every plugin at once, leaves a
plugin that fails a check registered, and lets one exception end the loop.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from nn_core.engine.dispatch.admission import check_backend_info, check_versions, has_namespace, required_plugins, stated_api
from nn_core.engine.dispatch.contract import (
    check_functions,
    check_index,
    check_registrations,
    checked_items,
    other_packages,
    unprefixed_names,
)
from nn_core.engine.dispatch.exception_text import text_of
from nn_core.engine.dispatch.extension_registry import Offers
from nn_core.engine.dispatch.guard import guarded
from nn_core.engine.dispatch.kinds import KINDS, ExtensionInfo
from nn_core.engine.dispatch.known import known_by
from nn_core.engine.dispatch.plugin_record import Failure, Plugin, State, hooks_of, package_names, packages
from nn_core.engine.dispatch.registry import Registry
from nn_core.engine.runtime import installed
from nn_core.engine.runtime.registrations import Registration, recorded, redo, settle, undo
from nn_core.errors import PluginError, quoted
from nn_core.operators.spec.model import FunctionSpec
from nn_core.settings import settings

if TYPE_CHECKING:
    from pluggy import PluginManager

    from nn_core.engine.dispatch.hookspecs import BackendInfo, FunctionPackage


@dataclass(slots=True)
class _Brought:
    """The registrations that importing a module made; in force while at least one `Plugins` of the process uses it."""

    module: ModuleType
    registrations: tuple[Registration, ...]
    users: int = 0


#: By name of the module. A module is imported once a process, so its registrations outlive the `Plugins` that imported it.
_BROUGHT: Final[dict[str, _Brought]] = {}


class Loader:
    """Imports plugins and takes over what they bring.

    Args:
        registry: Takes operators.
        offers: Takes everything else but backends.
        require: Loads the plugin of a name, for plugins that need it; raises where it cannot be used.
    """

    def __init__(self, registry: Registry, offers: Offers, require: Callable[[str], Plugin]) -> None:
        self.registry = registry
        self.offers = offers
        self._require = require

    def load(self, plugin: Plugin) -> None:
        """Import and register `plugin`, or note in it why not."""
        before = set(sys.modules)
        seen = _made_by_others(plugin)
        try:
            guarded(f"plugin {plugin.name!r}", settings().plugin_timeout, lambda: self._register(plugin))
        except BaseException as error:
            plugin.backends = {}
            self._forget(plugin)
            # also registrations that no hook declared, but not those of other plugins that were loaded meanwhile
            others = other_packages(plugin)
            undo(entry for entry in set(recorded()) - seen if entry.package not in others)
            _drop_modules(plugin, before)
            if not isinstance(error, Exception):  # Ctrl-C by the user
                raise
            plugin.failure = Failure(State.BROKEN, text_of(error), error)

    def unload(self, plugin: Plugin, successor: ModuleType | None = None) -> None:
        """Forget what `plugin` brought; loading it again puts the same in place.

        Args:
            plugin: The plugin.
            successor: The module that takes its place, whose decorators have run already: what they registered stays.
        """
        self._forget(plugin)
        brought = _BROUGHT.get(plugin.module.__name__) if plugin.module else None
        if plugin.failure is None and brought is not None and brought.module is plugin.module:
            brought.users -= 1
            if successor is None or successor is plugin.module:
                brought.registrations = _latest(brought.registrations)
            if brought.users == 0 and successor is not plugin.module:
                undo(brought.registrations)

    def _forget(self, plugin: Plugin) -> None:
        if self.manager.get_plugin(plugin.name) is not None:
            self.manager.unregister(name=plugin.name)
        self.registry.remove(plugin.name)
        self.offers.remove(plugin.name)

    @cached_property
    def manager(self) -> "PluginManager":
        """Knows the hooks and the plugins that are registered."""
        import pluggy  # `import nn_core` does without it

        from nn_core.engine.dispatch import hookspecs

        manager = pluggy.PluginManager("nn_core")
        manager.add_hookspecs(hookspecs)
        return manager

    def _register(self, plugin: Plugin) -> None:
        seen = _made_by_others(plugin)
        keeping = _keeping_ours(plugin)
        with keeping:
            plugin.module = module = plugin.module or self._imported(plugin)
        brought = _BROUGHT.get(module.__name__)
        if brought is None or brought.module is not module:
            brought = _Brought(module, ())
        # a module that was imported before runs no decorators again
        redo(brought.registrations)
        _check_version(plugin, module)
        known_by(module)  # refused now where it is no such statement, not when an operator has grown
        needed = required_plugins(module)
        for name in needed:
            self._require(name)
        with _keeping_ours(plugin) if needed else keeping:  # what came with the others is no change
            backends, functions, offers = self._answers(plugin, module)
        _take_backends(plugin, backends)
        words = [*(offer.info for offer in self.offers.of("words")), *offers["words"]]
        plugin.namespaced = has_namespace(module)
        specs = self._add_functions(plugin, functions, words)
        _refuse_composites(specs, offers["composites"])
        self.offers.add(plugin.name, offers, namespaced=plugin.namespaced)
        if not plugin.namespaced:
            plugin.unprefixed = unprefixed_names(plugin, stated_api(module), _api_names(plugin, specs, offers))
        plugin.functions = tuple(spec.name for spec in specs)
        plugin.samples = tuple(package.samples for package in functions if package.samples)
        check_index(plugin.name, _places(plugin, specs, functions, offers))
        plugin.hooks = hooks_of(module)
        brought.registrations = check_registrations(plugin, specs, seen, self.registry)
        settle(brought.registrations)
        brought.users += 1
        _BROUGHT[module.__name__] = brought

    def _imported(self, plugin: Plugin) -> ModuleType:
        if len(plugin.entry_points) > 1:
            # which one would win depends on the order of installation
            both = " and ".join(packages(plugin.entry_points))
            uninstall = " or ".join(package_names(plugin.entry_points))
            raise PluginError(f"a plugin must come from one package, got {both}\n  hint: pip uninstall {uninstall}")
        from nn_core.engine.dispatch.import_audit import watched_import  # installed plugins alone need it

        (entry,) = plugin.entry_points
        if not entry.module:
            raise PluginError(f"the entry point {plugin.name!r} must name a module, got {quoted(entry.value)}")
        with _searching(entry.folder):
            return watched_import(entry.module) if settings().strict else import_module(entry.module)

    def _answers(
        self, plugin: Plugin, module: ModuleType
    ) -> "tuple[list[BackendInfo], list[FunctionPackage], dict[str, list[ExtensionInfo]]]":
        """Call all hooks of a plugin."""
        self.manager.register(module, plugin.name)
        self.manager.check_pending()
        backends, functions = self._call(plugin, "nn_core_backends"), self._call(plugin, "nn_core_functions")
        offers = {kind.key: self._call(plugin, kind.hook) for kind in KINDS.values()}
        if not self.manager.get_hookcallers(module):
            raise PluginError("a plugin must have an @hookimpl of a hook of nn_core.ext, got none")
        return backends, functions, offers

    def _call(self, plugin: Plugin, hook: str) -> list[Any]:
        # pluggy would ask every plugin that has the hook; only the new one is to answer
        others = [other for other in self.manager.get_plugins() if other is not plugin.module]
        results = self.manager.subset_hook_caller(hook, others)()
        function = getattr(plugin.module, hook, None)
        return [item for result in results for item in checked_items(hook, function, result)]

    def _add_functions(
        self, plugin: Plugin, functions: "Iterable[FunctionPackage]", words: Sequence[ExtensionInfo]
    ) -> list[FunctionSpec]:
        known = {role: [word.name for word in words if getattr(word, "role", "") == role] for role in ("topic", "tag")}
        places: dict[str, str] = {}
        specs: list[FunctionSpec] = []
        kernels: dict[str, dict[str, Any]] = {}
        overlays: dict[str, Mapping[str, Any]] = {}
        for package in functions:
            from nn_core.operators.spec.load import located  # yaml is needed for plugins' operators only
            from nn_core.operators.spec.places import text_of

            source, file = package.spec, f"plugin {plugin.name}"
            if isinstance(source, Path):
                if not source.is_file():  # reading a device would never end
                    raise PluginError(f"the specification must be a file, got {quoted(str(source))}")
                source, file = text_of(source), str(source)
            # with the line of each, for the messages of the checks
            for spec, place in located(source, file, known["topic"], known["tag"]):
                specs.append(spec)
                places[spec.name] = place
            for backend, table in package.kernels.items():
                kernels.setdefault(backend, {}).update(table)
            for backend, table in package.overlays.items():
                overlays[backend] = {**overlays.get(backend, {}), **table}
        self.registry.add(plugin.name, specs, kernels, overlays, namespaced=plugin.namespaced)
        check_functions(plugin.name, specs, places, kernels)
        return specs


def _keeping_ours(plugin: Plugin) -> AbstractContextManager[None]:
    """Keep what is ours as it is while code of an installed plugin runs; what a program registers is its own code."""
    if not plugin.entry_points or not plugin.entry_points[0].module:
        return nullcontext()
    from nn_core.engine.dispatch.import_audit import KeepingOurs  # installed plugins alone need it

    return KeepingOurs(plugin.entry_points[0].module)


@contextmanager
def _searching(folder: str) -> Iterator[None]:
    """Search a folder for modules after all others, where it is not on the path.

    A plugin that was found by a relative path is still there when the program has changed its current directory.
    """
    if not folder or folder in (os.path.realpath(path) for path in sys.path if isinstance(path, str)):
        yield
        return
    sys.path.append(folder)
    try:
        yield
    finally:
        with suppress(ValueError):  # a plugin may have changed the path meanwhile
            sys.path.remove(folder)


def _latest(registrations: Iterable[Registration]) -> tuple[Registration, ...]:
    """Return registrations as they are now, of a module that may have been run again since it was loaded."""
    now = {entry.key: entry for entry in recorded()}
    return tuple([now.get(entry.key, entry) for entry in registrations])


def _check_version(plugin: Plugin, module: ModuleType) -> None:
    is_stated = bool(plugin.entry_points) or hasattr(module, "PLUGIN_API")  # a notebook may leave it out
    if is_stated and not settings().skip_plugin_check:
        check_versions(module, " ".join(package_names(plugin.entry_points)) or plugin.name)


def _take_backends(plugin: Plugin, backends: "Sequence[BackendInfo]") -> None:
    plugin.backends = {info.name: info for info in backends}
    for info in backends:
        check_backend_info(plugin.name, info)
    if len(plugin.backends) != len(backends):
        raise PluginError(f"backends must have different names, got {[info.name for info in backends]}")


def _refuse_composites(specs: Iterable[FunctionSpec], composites: Iterable[ExtensionInfo]) -> None:
    """Refuse composites with the name of an operator of the same plugin."""
    both = {spec.api for spec in specs} & {info.name for info in composites}
    if both:
        raise PluginError(f"functions must be operators or composites, got both for {', '.join(sorted(both))}")


def _api_names(
    plugin: Plugin, specs: Iterable[FunctionSpec], offers: Mapping[str, Iterable[ExtensionInfo]]
) -> Iterator[tuple[str, str]]:
    """Iterate over the functions of a plugin: their description in messages, and their API name."""
    yield from ((spec.name, spec.api) for spec in specs)
    for kind in KINDS.values():
        if kind.has_api_names:
            yield from ((f"{kind.noun} {info.name!r} of plugin {plugin.name!r}", info.name) for info in offers[kind.key])


def _places(
    plugin: Plugin,
    specs: Iterable[FunctionSpec],
    functions: "Iterable[FunctionPackage]",
    offers: Mapping[str, Iterable[ExtensionInfo]],
) -> set[tuple[str, str]]:
    """Kind and name of everything that a plugin brings, as an index lists it."""
    front = f"{plugin.name}." if plugin.namespaced else ""
    places = {
        (key, front + name if KINDS[key].has_api_names else name)
        for key, group in offers.items()
        for info in group
        for name in info.keys
    }
    places |= {("functions", front + spec.api) for spec in specs} | {("backends", name) for name in plugin.backends}
    return places | {("overlays", backend) for package in functions for backend in package.overlays}


def _made_by_others(plugin: Plugin) -> set[Registration]:
    """Return the registrations in force, less those of a module that the program registers as `plugin`."""
    own = plugin.module.__name__ if plugin.module else ""
    return {entry for entry in recorded() if not own or entry.module != own}


def _drop_modules(plugin: Plugin, before: Sequence[str] | set[str]) -> None:
    """Forget the modules of a plugin that failed, so that trying again runs them again."""
    package = plugin.package if plugin.entry_points else ""
    owners = [name for name, entries in installed.entry_points().items() if entries[0].module.partition(".")[0] == package]
    # two plugins of one package share modules, which the sound one still uses
    if package in ("", "nn_core") or owners != [plugin.name]:
        return
    for name in set(sys.modules) - set(before):
        if name.partition(".")[0] == package:
            del sys.modules[name]
