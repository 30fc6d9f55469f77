"""Installed plugins and what has become of each: loaded one by one, when asked for, and quarantined when they fail.

pluggy checks and calls the hooks. Its own loop over entry points is not used: it imports every plugin at once, leaves a
plugin that fails a check registered, and lets one exception end the loop.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from nn_core import installed
from nn_core.dispatch.admission import check_backend, check_backend_info, check_versions
from nn_core.dispatch.registry import REGISTRY, Added, Registry
from nn_core.errors import BackendNotFoundError, BackendUnavailableError, NNCoreError, PluginError
from nn_core.logger import logger
from nn_core.settings import settings
from nn_core.spec.model import FunctionSpec
from nn_core.typing import Backend

if TYPE_CHECKING:
    from importlib_metadata import EntryPoint
    from pluggy import PluginManager

    from nn_core.dispatch.hookspecs import BackendInfo, FunctionPackage


T = TypeVar("T")

#: The plugin of the core itself: the reference kernels.
REFERENCE: Final = "reference"


class State(Enum):
    """What can have become of a plugin or of a backend."""

    ABSENT = "absent"
    INSTALLED = "installed"
    LOADED = "loaded"
    BROKEN = "broken"
    NO_DEVICE = "no device"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something cannot be used, with the exception that said so."""

    state: State
    reason: str
    cause: Exception | None = None


@dataclass(slots=True)
class Plugin:
    """A plugin whose module was asked for, sound or not."""

    name: str
    entry_points: "tuple[EntryPoint, ...]"
    module: ModuleType | None = None
    backends: "dict[str, BackendInfo]" = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    failure: Failure | None = None

    @property
    def label(self) -> str:
        """The name with the package and the version that it comes from."""
        return f"{self.name!r} ({' and '.join(packages(self.entry_points))})"

    @property
    def hint(self) -> str:
        """What to do about a plugin that does not load."""
        names = " ".join(package_names(self.entry_points))
        return f"hint: nn-core doctor says more; pip install --upgrade {names}, or pip uninstall {names}"


class Plugins:
    """The plugins named by `entry_points`, which is called when a plugin is first asked for.

    Every method may be called from any thread.
    """

    def __init__(
        self,
        entry_points: "Callable[[], Mapping[str, tuple[EntryPoint, ...]]]" = installed.entry_points,
        registry: Registry = REGISTRY,
    ) -> None:
        self._entry_points = entry_points
        self.registry = registry
        self._lock = threading.RLock()
        self._plugins: dict[str, Plugin] = {}
        self._backends: dict[str, Backend] = {}
        self._failures: dict[str, Failure] = {}
        self._warned: set[str] = set()
        #: Called by `forget_prepared`; whoever caches what came from a plugin drops it here.
        self.when_refreshed: list[Callable[[], None]] = []

    def names(self) -> list[str]:
        """Names of the installed plugins, sorted; nothing is imported."""
        return list(self._entry_points())

    def backend(self, name: str) -> Backend:
        """The backend called `name`, loaded at the first call; no other plugin is imported for it.

        Raises:
            BackendNotFoundError: when no installed plugin brings it.
            BackendUnavailableError: when its plugin finds no device to run it on.
            PluginError: when its plugin is broken; the cause is the original exception.
        """
        backend = self._backends.get(name)
        if backend is not None:
            return backend
        with self._lock:
            info = self.info(name)
            if name not in self._backends and name not in self._failures:
                self._load_backend(info)
            if name in self._failures:
                raise self._error(name, self._failures[name])
            return self._backends[name]

    def loaded(self) -> list[Backend]:
        """The backends that are loaded by now."""
        return list(self._backends.values())

    def info(self, name: str) -> "BackendInfo":
        """What the plugin of the backend called `name` says about it; imports the plugin and loads nothing."""
        plugin = self.plugin(name.partition(".")[0])
        if plugin.failure is not None:
            raise self._error(name, plugin.failure)
        if name not in plugin.backends:
            raise BackendNotFoundError(f"plugin {plugin.label}: must bring {name!r}, got {list(plugin.backends)}")
        return plugin.backends[name]

    def plugin(self, name: str) -> Plugin:
        """The plugin called `name`, imported and registered at the first call; it may have failed.

        Raises:
            BackendNotFoundError: when no installed package has a plugin of that name.
        """
        with self._lock:
            if name not in self._plugins:
                entry_points = self._entry_points().get(name)
                if entry_points is None:
                    package = "nn-core" if name == REFERENCE else f"nn-ext-{name}"
                    raise BackendNotFoundError(
                        f"a plugin must be among those installed ({', '.join(self.names()) or 'none'}), got {name!r}\n"
                        f"  hint: extensions are usually named nn-ext-<backend>: pip install {package}"
                    )
                self._plugins[name] = self._load_plugin(Plugin(name, entry_points))
            return self._plugins[name]

    def module(self, name: str) -> ModuleType:
        """The module of the plugin called `name`.

        Raises:
            BackendNotFoundError: when it is not installed.
            PluginError: when it is broken; the cause is the original exception.
        """
        plugin = self.plugin(name)
        if plugin.failure is not None or plugin.module is None:
            raise self._error(name, plugin.failure or Failure(State.BROKEN, "no module"))
        return plugin.module

    def all(self) -> list[Plugin]:
        """Every installed plugin, imported; broken ones included, each with one warning."""
        plugins = [self.plugin(name) for name in self.names()]
        for plugin in plugins:
            if plugin.failure is not None:
                self._warn(plugin.name, plugin.failure, plugin.hint)
        return plugins

    def best_backend(self) -> str:
        """Name of the available backend with the highest priority.

        A backend without a device is passed over in silence; a broken one with a warning, because whoever installed it
        does not expect the next one to take over.
        """
        offers = [(plugin, info) for plugin in self.all() for info in plugin.backends.values()]
        for plugin, info in sorted(offers, key=lambda offer: (-offer[1].priority, offer[1].name)):
            with suppress(BackendUnavailableError, PluginError):
                self.backend(info.name)
                return info.name
            failure = self._failures[info.name]
            if failure.state is State.BROKEN:
                self._warn(info.name, failure, plugin.hint)
        raise BackendNotFoundError(f"auto: an installed backend must be available, got {self.names()}")

    def function(self, api: str) -> Added | None:
        """The operator of a plugin that `nn_core.functions` shows as `api`; plugins are imported to find it."""
        return self._find(lambda: self.registry.added_api(api))

    def function_named(self, name: str) -> FunctionSpec | None:
        """The operator called `name` in files, of the core or of a plugin; plugins are imported to find it."""
        return self._find(lambda: self.registry.spec(name))

    def function_of_api(self, api: str) -> FunctionSpec | None:
        """The operator that `nn_core.functions` shows as `api`, of the core or of a plugin; see `function_named`."""
        return self._find(lambda: self.registry.spec_of_api(api))

    def array_class(self, backend: str) -> str:
        """The device family of a backend, empty where nothing can be learnt about it."""
        with suppress(NNCoreError):
            return self.info(backend).array_class
        return ""

    def failure(self, name: str) -> Failure | None:
        """Why a backend cannot be used, as far as somebody tried to."""
        return self._failures.get(name)

    def state(self, name: str) -> State:
        """What is known of the plugin or the backend called `name` by now; nothing is imported to find out."""
        plugin_name = name.partition(".")[0]
        plugin = self._plugins.get(plugin_name)
        if name in self._failures:
            return self._failures[name].state
        if plugin is not None and plugin.failure is not None:
            return plugin.failure.state
        if name in self._backends or (plugin is not None and not plugin.backends):
            return State.LOADED
        return State.INSTALLED if plugin_name in self._entry_points() else State.ABSENT

    def refresh(self) -> None:
        """Look again at what is installed; plugins that failed, changed or are gone are forgotten, others are kept."""
        with self._lock:
            installed.entry_points.cache_clear()
            now = self._entry_points()
            for plugin in list(self._plugins.values()):
                lost = any(name in self._failures for name in plugin.backends)
                if plugin.failure is not None or lost or now.get(plugin.name) != plugin.entry_points:
                    self._unload(plugin)
            self._warned.clear()
        self.forget_prepared()

    def forget_prepared(self) -> None:
        """Let everybody drop what came from plugins: kernels are asked anew for whatever is set up from now on."""
        for callback in self.when_refreshed:
            callback()

    @cached_property
    def _manager(self) -> "PluginManager":
        import pluggy  # `import nn_core` does without it

        from nn_core.dispatch import hookspecs

        manager = pluggy.PluginManager("nn_core")
        manager.add_hookspecs(hookspecs)
        return manager

    def _find(self, look: Callable[[], T | None]) -> T | None:
        found = look()
        if found is None and settings().plugin_autoload and any(name not in self._plugins for name in self.names()):
            self.all()
            found = look()
        return found

    def _load_plugin(self, plugin: Plugin) -> Plugin:
        try:
            self._register(plugin)
        except Exception as error:  # whatever a plugin raises, the core survives it
            plugin.failure = Failure(State.BROKEN, _reason(error), error)
            plugin.backends = {}
            self._forget(plugin)
        return plugin

    def _register(self, plugin: Plugin) -> None:
        if len(plugin.entry_points) > 1:
            both = " and ".join(packages(plugin.entry_points))
            uninstall = " or ".join(package_names(plugin.entry_points))
            raise PluginError(f"a plugin must come from one package, got {both}\n  hint: pip uninstall {uninstall}")
        plugin.module = module = import_module(plugin.entry_points[0].module)
        if not settings().skip_plugin_check:
            check_versions(module, package_names(plugin.entry_points)[0])
        self._manager.register(module, plugin.name)
        self._manager.check_pending()
        backends: list[BackendInfo] = self._call("nn_core_backends", module)
        functions: list[FunctionPackage] = self._call("nn_core_functions", module)
        if not self._manager.get_hookcallers(module):
            raise PluginError("a plugin must have an @hookimpl of nn_core_backends or nn_core_functions, got neither")
        plugin.backends = {info.name: info for info in backends}
        for info in backends:
            check_backend_info(plugin.name, info)
        if len(plugin.backends) != len(backends):
            raise PluginError(f"backends must have different names, got {[info.name for info in backends]}")
        plugin.functions = self._add_functions(plugin.name, functions)

    def _call(self, hook: str, module: ModuleType) -> list[Any]:
        others = [other for other in self._manager.get_plugins() if other is not module]
        results = self._manager.subset_hook_caller(hook, others)()
        return [item for result in results for item in result]

    def _add_functions(self, name: str, functions: "Iterable[FunctionPackage]") -> tuple[str, ...]:
        specs: list[FunctionSpec] = []
        kernels: dict[str, dict[str, Any]] = {}
        for package in functions:
            from nn_core.spec.load import load, loads  # yaml is needed for plugins' operators only

            source = package.spec
            specs += load(source) if isinstance(source, Path) else loads(source, f"plugin {name}")
            for backend, table in package.kernels.items():
                kernels.setdefault(backend, {}).update(table)
        self.registry.add(name, specs, kernels)
        return tuple(spec.name for spec in specs)

    def _load_backend(self, info: "BackendInfo") -> None:
        try:
            refusal = info.probe()
            if refusal is not None:
                self._failures[info.name] = Failure(State.NO_DEVICE, refusal.reason)
                return
            backend = info.load()
            check_backend(info, backend)
        except Exception as error:  # see _load_plugin
            self._failures[info.name] = Failure(State.BROKEN, _reason(error), error)
            return
        self._backends[info.name] = backend

    def _error(self, name: str, failure: Failure) -> NNCoreError:
        plugin = self._plugins[name.partition(".")[0]]
        if failure.state is State.NO_DEVICE:
            return BackendUnavailableError(f"backend {name!r}: a device must be usable, got: {failure.reason}")
        error = PluginError(f"plugin {plugin.label}: must load, got: {failure.reason}\n  {plugin.hint}")
        error.__cause__ = failure.cause
        return error

    def _unload(self, plugin: Plugin) -> None:
        self._forget(plugin)
        for name in plugin.backends:
            self._backends.pop(name, None)
            self._failures.pop(name, None)
        del self._plugins[plugin.name]

    def _forget(self, plugin: Plugin) -> None:
        if self._manager.get_plugin(plugin.name) is not None:
            self._manager.unregister(name=plugin.name)
        self.registry.remove(plugin.name)

    def _warn(self, name: str, failure: Failure, hint: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            logger.warning("%s is passed over: %s (%s)", name, failure.reason.partition("\n")[0], hint)


PLUGINS: Final = Plugins()


def forget_prepared() -> None:
    """Say that a setting has changed on which kernels depend: whatever is set up from now on is prepared anew.

    Plans that are compiled already go on as they are.
    """
    PLUGINS.forget_prepared()


def get_backend(name: str) -> Backend:
    """The backend called `name`, loaded at the first call; see `Plugins.backend` for the exceptions."""
    return PLUGINS.backend(name)


def packages(entry_points: "Sequence[EntryPoint]") -> list[str]:
    """Name and version of the packages that entry points come from."""
    return [f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value for entry in entry_points]


def package_names(entry_points: "Sequence[EntryPoint]") -> list[str]:
    """Names of the packages that entry points come from, as pip knows them."""
    return [entry.dist.name if entry.dist else entry.module for entry in entry_points]


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, NNCoreError) else f"{type(error).__name__}: {error}"
