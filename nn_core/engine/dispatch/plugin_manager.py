"""Installed plugins and what has become of each: loaded one by one, when asked for, and quarantined when they fail."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from nn_core.engine.dispatch.admission import check_backend, check_refusal
from nn_core.engine.dispatch.known import EVERYTHING, KnownOperators, known_by
from nn_core.engine.dispatch.missing import absence, load_error, not_installed
from nn_core.engine.dispatch.plugin_record import Failure, Plugin, State
from nn_core.engine.dispatch.registry import REGISTRY, Added, Registry
from nn_core.engine.runtime import installed
from nn_core.engine.runtime.locks import fork_safe
from nn_core.engine.runtime.metadata import EntryPoint
from nn_core.errors import ArgumentError, BackendNotFoundError, BackendUnavailableError, NNCoreError, PluginError
from nn_core.logger import logger
from nn_core.operators.spec.model import FunctionSpec
from nn_core.settings import settings
from nn_core.typing import Backend, Kernel

if TYPE_CHECKING:
    from nn_core.engine.dispatch.extension_registry import Offer, Offers
    from nn_core.engine.dispatch.hookspecs import BackendInfo
    from nn_core.engine.dispatch.loader import Loader


T = TypeVar("T")

#: The plugin of the core itself: the reference kernels.
REFERENCE: Final = installed.CORE_PLUGIN


class Plugins:
    """The plugins named by `entry_points`, which is called when a plugin is first asked for.

    Every method may be called from any thread. Their operators go into `registry`, by default one of their own: two that
    shared one would refuse, and then remove, each other's.
    """

    def __init__(
        self,
        entry_points: Callable[[], Mapping[str, tuple[EntryPoint, ...]]] = installed.entry_points,
        registry: Registry | None = None,
    ) -> None:
        #: installed plugins that the program has unregistered
        self._hidden: set[str] = set()
        self._all_entry_points = entry_points
        self.registry = Registry() if registry is None else registry
        self._lock = fork_safe(threading.RLock())
        self._loader: Loader | None = None
        #: plugins that are being loaded, the one that needs the next one first
        self._loading: list[str] = []
        self._registered: dict[str, Plugin] = {}
        self._found: dict[tuple[str, ...], Any] = {}
        self._plugins: dict[str, Plugin] = {}
        self._backends: dict[str, Backend] = {}
        self._failures: dict[str, Failure] = {}
        self._warned: set[str] = set()
        #: Called by `forget_prepared`; whoever caches what came from a plugin drops it here.
        self.when_refreshed: list[Callable[[], None]] = []

    def _entry_points(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        found = self._all_entry_points()
        return {name: found[name] for name in found if name not in self._hidden} if self._hidden else found

    @cached_property
    def offers(self) -> "Offers":
        """Everything that plugins bring beside backends and operators."""
        from nn_core.engine.dispatch.extension_registry import Offers  # `import nn_core` does without it

        return Offers()

    def names(self) -> list[str]:
        """Names of the installed plugins and of registered modules, sorted; nothing is imported."""
        return sorted({*self._entry_points(), *self._registered})

    def backend(self, name: str) -> Backend:
        """Return the backend called `name`, loaded at the first call; no other plugin is imported for it.

        Raises:
            BackendNotFoundError: when no installed plugin brings it.
            BackendUnavailableError: when its plugin finds no device to run it on.
            PluginError: when its plugin is broken; the cause is the original exception.
        """
        # without the lock: who finds a backend needs none, and this is asked for each function that is set up
        backend = self._backends.get(name)
        if backend is not None:
            return backend
        with self._lock:
            info = self.info(name)
            if name not in self._backends and name not in self._failures:
                self._load_backend(info)
            if name in self._failures:
                raise load_error(self.plugin(name.partition(".")[0]), name, self._failures[name])
            return self._backends[name]

    def loaded(self) -> list[Backend]:
        """Return the backends that are loaded by now."""
        return list(self._backends.values())

    def info(self, name: str) -> "BackendInfo":
        """Return the description of the backend called `name`; imports its plugin and loads nothing."""
        plugin = self.plugin(name.partition(".")[0])
        if plugin.failure is not None:
            raise load_error(plugin, name, plugin.failure)
        if name not in plugin.backends:
            raise BackendNotFoundError(f"plugin {plugin.label}: must bring {name!r}, got {list(plugin.backends)}")
        return plugin.backends[name]

    def plugin(self, name: str) -> Plugin:
        """Return the plugin called `name`, imported and registered at the first call; it may have failed.

        Raises:
            BackendNotFoundError: when no installed package has a plugin of that name.
        """
        plugin = self._plugins.get(name)
        if plugin is not None:
            return plugin
        with self._lock:
            if name not in self._plugins:
                if name in self._loading:
                    # the lock is held by this thread, so whoever asks again here would wait for itself for ever
                    circle = " -> ".join([*self._loading[self._loading.index(name) :], name])
                    raise PluginError(f"plugin {name!r}: must not be used while it is being loaded, got {circle}")
                entry_points = self._entry_points().get(name)
                if entry_points is None:
                    raise BackendNotFoundError(not_installed(self, name))
                self._load(Plugin(name, entry_points))
            return self._plugins[name]

    def register(self, module: ModuleType, name: str) -> None:
        """Take over a module as the plugin called `name`, as if a package with that entry point were installed.

        Raises:
            PluginError: when the name is taken, or the module breaks a rule; nothing of it is left then.
        """
        with self._lock:
            known = self._plugins.get(name)
            if known is not None and known.module is not None and known.module.__name__ != module.__name__:
                raise PluginError(f"plugin {name!r}: must come from one place, got {known.label} and a registered module")
            if name in self._entry_points():
                raise PluginError(f"plugin {name!r}: must come from one place, got that of a package and a registered one")
            if known is not None and known.module is module and not known.is_changed:
                return
            if known is not None:  # a cell of a notebook that is run again makes its plugin anew
                self._unload(known, module)
            self._load(plugin := Plugin(name, (), module))
            if plugin.failure is not None:
                del self._plugins[name]
                self._registered.pop(name, None)
                if known is not None and known.module is not module:
                    self._load(before := Plugin(name, (), known.module))
                    self._registered[name] = before
                raise load_error(plugin, name, plugin.failure)
            self._registered[name] = plugin
        self.forget_prepared()

    def unregister(self, name: str) -> None:
        """Forget a plugin; one that is installed is not found again before `refresh`.

        Raises:
            BackendNotFoundError: when there is none of that name.
        """
        with self._lock:
            if name not in self.names() or name == REFERENCE:
                known = ", ".join(other for other in self.names() if other != REFERENCE) or "none"
                raise BackendNotFoundError(f"unregister: a plugin must be registered or installed ({known}), got {name!r}")
            if self._registered.pop(name, None) is None:
                self._hidden.add(name)
            if name in self._plugins:
                self._unload(self._plugins[name])
            self._found.clear()
        self.forget_prepared()

    def module(self, name: str) -> ModuleType:
        """Return the module of the plugin called `name`.

        Raises:
            BackendNotFoundError: when it is not installed.
            PluginError: when it is broken; the cause is the original exception.
        """
        plugin = self.plugin(name)
        if plugin.failure is not None or plugin.module is None:
            raise load_error(plugin, name, plugin.failure or Failure(State.BROKEN, "no module"))
        return plugin.module

    def all(self) -> list[Plugin]:
        """Every installed plugin, imported; broken ones included, each with one warning."""
        self._quietly(self.names())
        return [self._plugins[name] for name in self.names() if name in self._plugins]

    def best_backend(self) -> str:
        """Name of the available backend with the highest priority.

        A backend without a device is passed over in silence; a broken one with a warning, because whoever installed it
        does not expect the next one to take over.
        """
        # by name where priorities are equal: the choice must not depend on the order of the metadata
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
        """Return the operator of a plugin that `nn_core.functions` shows as `api`; its plugin is imported to find it.

        Raises:
            PluginError: when several plugins have one of that name.
        """
        return self._find(("functions",), api, lambda: self.registry.added_api(api))

    def callables(self, api: str) -> "tuple[Added | None, Offer | None]":
        """Return the operator and the composite that plugins bring as `api`; their plugins are imported to find them.

        Raises:
            PluginError: when several plugins have an operator, or a composite, of that name.
        """

        def look() -> "tuple[Added | None, Offer | None] | None":
            found = self.registry.added_api(api), self.offers.find("composites", api)
            return found if any(found) else None

        return self._find(("functions", "composites"), api, look) or (None, None)

    def function_named(self, name: str) -> FunctionSpec | None:
        """Return the operator called `name` in files, of the core or of a plugin; its plugin is imported to find it."""
        # an operator of a plugin has the name of the plugin in front, so no other has to be imported
        owner = name.partition(".")[0]
        if self.registry.spec(name) is None and settings().plugin_autoload and owner in self.names():
            self._quietly([owner])
        return self.registry.spec(name)

    def function_of_api(self, api: str) -> FunctionSpec | None:
        """Return the operator that `nn_core.functions` shows as `api`, of the core or of a plugin; see `function`."""
        spec = self.registry.core_spec_of_api(api)
        if spec is None:
            added = self.function(api)
            spec = added.spec if added else None
        return spec

    def offer(self, kind: str, key: str) -> "Offer | None":
        """Return the offer of a plugin called `key` (or ``plugin.key``); the plugin is imported to find it, the target is not.

        Args:
            kind: One of `dispatch.kinds.KINDS`.
            key: The name.

        Raises:
            PluginError: when several plugins offer one of that name.
        """
        return self._find((kind,), key, lambda: self.offers.find(kind, key))

    def required_offer(self, kind: str, key: str, role: str = "") -> "Offer":
        """As `offer`, for a name that has to be offered, in that role if one is given.

        Raises:
            ArgumentError: when no plugin offers it.
            PluginError: when several do.
        """
        found = self.offer(kind, key)
        if found is None or role not in ("", getattr(found.info, "role", "")):
            from nn_core.engine.dispatch.kinds import KINDS

            known = ", ".join(self.names_of(kind)) or "none is"
            text, cause = absence(self, (kind,), key)
            what = role or KINDS[kind].noun
            raise ArgumentError(f"{what}: must be offered by a plugin ({known}), got {key!r}{text}") from cause
        return found

    def offered(self, kind: str, *, unlisted: bool = True) -> "list[Offer]":
        """All that plugins offer of a kind; those that may offer some are imported, broken ones with a warning.

        Args:
            kind: One of `dispatch.kinds.KINDS`.
            unlisted: Import also plugins that have no index, and so may offer anything.
        """
        if settings().plugin_autoload:
            listed = [name for (found, _), names in installed.index().items() if found == kind for name in names]
            self._quietly([*listed, *(self._unlisted() if unlisted else ())])
        return self.offers.of(kind)

    def names_of(self, kind: str) -> list[str]:
        """Return the names of a kind ("functions" too) that are loaded, or listed by plugins that have not failed."""
        loaded = [added.key for added in self.registry] if kind == "functions" else self.offers.names(kind)
        failed = {plugin.name for plugin in self._plugins.values() if plugin.failure is not None}
        listed = [name for (of, name), owners in installed.index().items() if of == kind and not failed.issuperset(owners)]
        return sorted({*loaded, *listed})

    def extra_kernels(self, backend: str, name: str) -> tuple[list[Kernel], list[Kernel]]:
        """Kernels that plugins bring for a backend of another: to be asked before its own, and after."""
        listed = installed.index().get(("overlays", backend), ())
        # a package that brings overlays lists them: dispatch cannot import every plugin to find out
        if settings().plugin_autoload and any(plugin not in self._plugins for plugin in listed):
            self._quietly(listed)
        overlay, kernel = self.registry.overlay(backend, name), self.registry.kernel(backend, name)
        overlays, kernels = [overlay] if overlay else [], [kernel] if kernel else []
        if backend == REFERENCE:  # whose own kernel takes every call, so that nothing after it would ever run
            return [*overlays, *kernels], []
        return overlays, kernels

    def known_operators(self, plugin: str, name: str) -> KnownOperators:
        """Return what the kernels of `plugin` know of the operator called `name`; an operator of its own they know."""
        added = self.registry.added(name)
        if plugin == REFERENCE or (added is not None and added.plugin == plugin):
            return EVERYTHING
        stated = known_by(self.module(plugin))
        # the version that a plugin states is that of the core; others count their operators by versions of their own
        return stated if added is None else KnownOperators(also=stated.also)

    def array_class(self, backend: str) -> str:
        """Return the device family of a backend, empty where nothing can be learnt about it."""
        with suppress(NNCoreError):
            return self.info(backend).array_class
        return ""

    def asked_for(self) -> list[Plugin]:
        """Return the plugins that were asked for, sound or not."""
        return list(self._plugins.values())

    def failure(self, name: str) -> Failure | None:
        """Why a backend cannot be used, as far as somebody tried to."""
        return self._failures.get(name)

    def state(self, name: str) -> State:
        """Return the present state of the plugin or backend called `name`; nothing is imported."""
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
            installed.forget()
            self._hidden.clear()
            now = self._entry_points()
            for plugin in list(self._plugins.values()):
                # a device may be there by now
                lost = any(name in self._failures for name in plugin.backends)
                gone = plugin.name not in self._registered and now.get(plugin.name) != plugin.entry_points
                if plugin.failure is not None or lost or gone or plugin.is_changed:
                    self._unload(plugin)
                    if plugin.name in self._registered:
                        self._load(again := Plugin(plugin.name, (), plugin.module))
                        self._registered[plugin.name] = again
            self._warned.clear()
            self._found.clear()
        self.forget_prepared()

    def close(self) -> None:
        """Forget every plugin."""
        with self._lock:
            for plugin in list(self._plugins.values()):
                self._unload(plugin)
            self._registered.clear()

    def forget_prepared(self) -> None:
        """Let everybody drop what came from plugins: kernels are asked anew for whatever is set up from now on."""
        for callback in self.when_refreshed:
            callback()

    def _find(self, kinds: tuple[str, ...], key: str, look: Callable[[], T | None]) -> T | None:
        """Import as few plugins as it takes to be sure who has `key`, then `look`."""
        place = (*kinds, key)
        # a name has the same owner until a plugin is loaded or forgotten
        if place in self._found:
            found: T | None = self._found[place]
            return found
        if settings().plugin_autoload:
            listed = [name for kind in kinds for name in installed.index().get((kind, key), ())]
            self._quietly([*listed, *self.owners_by_prefix(key)])
            # who does not list what it brings may have the name too
            if not listed and not self._is_settled(key, look):
                self._quietly(self._unlisted())
        result = look()
        # while a plugin is being loaded its offers are not all there
        if result is not None and not self._loading:
            self._found[place] = result
        return result

    def _is_settled(self, key: str, look: Callable[[], object]) -> bool:
        """Return whether nobody but the owner of its prefix can have `key`."""
        return bool(self.owners_by_prefix(key)) and look() is not None

    def owners_by_prefix(self, key: str) -> list[str]:
        """Return the plugins whose name is the prefix of `key`, and which alone may bring it as a function."""
        return [name for name in self.names() if key.startswith((f"{name}_", f"{name}."))]

    def _unlisted(self) -> list[str]:
        """Plugins whose packages do not list what they bring, so that they have to be imported to know."""
        listed = {name for names in installed.index().values() for name in names}
        return [name for name in self.names() if name not in listed]

    def _quietly(self, names: Sequence[str]) -> None:
        """Load plugins that nobody named; one that fails costs a warning."""
        with self._lock:  # what another thread is loading is waited for; what this thread is loading is passed over
            for name in dict.fromkeys(names):
                if name in self._loading or name not in self.names():
                    continue
                plugin = self.plugin(name)
                if plugin.failure is not None:
                    self._warn(name, plugin.failure, plugin.hint)

    def _load(self, plugin: Plugin) -> None:
        with self._being_loaded(plugin.name):
            self._loading_steps().load(plugin)
        self._plugins[plugin.name] = plugin
        # its kernels go before those that were chosen until now
        if plugin.failure is None and self.registry.has_overlays(plugin.name):
            self.forget_prepared()

    @contextmanager
    def _being_loaded(self, name: str) -> Iterator[None]:
        self._loading.append(name)
        self._found.clear()
        try:
            yield
        finally:
            self._loading.remove(name)
            self._found.clear()

    def _loading_steps(self) -> "Loader":
        if self._loader is None:
            from nn_core.engine.dispatch.loader import Loader  # `import nn_core` does without it

            self._loader = Loader(self.registry, self.offers, self._required)
        return self._loader

    def _required(self, name: str) -> Plugin:
        plugin = self.plugin(name)
        if plugin.failure is not None:
            raise load_error(plugin, name, plugin.failure)
        return plugin

    def _load_backend(self, info: "BackendInfo") -> None:
        from nn_core.engine.dispatch.exception_text import refusal_text, text_of
        from nn_core.engine.dispatch.guard import guarded

        what, owner = f"backend {info.name!r}", info.name.partition(".")[0]
        try:
            # a probe looks for a device and may be stopped; loading may have to compile for minutes
            refusal = guarded(f"{what}: probe()", settings().plugin_timeout, info.probe)
            if refusal is not None:
                check_refusal(f"{what}: probe()", refusal)
                self._failures[info.name] = Failure(State.NO_DEVICE, refusal_text(owner, refusal.reason))
                return
            backend = guarded(f"{what}: load()", None, info.load)
            check_backend(info, backend, self.registry)
        except Exception as error:  # whatever a plugin raises, the core survives it
            self._failures[info.name] = Failure(State.BROKEN, text_of(error), error)
            return
        self._backends[info.name] = backend

    def _unload(self, plugin: Plugin, successor: ModuleType | None = None) -> None:
        self._loading_steps().unload(plugin, successor)
        self._found.clear()
        for name in plugin.backends:
            self._backends.pop(name, None)
            self._failures.pop(name, None)
        del self._plugins[plugin.name]

    def _warn(self, name: str, failure: Failure, hint: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            logger.warning("%s is passed over: %s (%s)", name, failure.reason.partition("\n")[0], hint)


PLUGINS: Final = Plugins(registry=REGISTRY)


def forget_prepared() -> None:
    """Prepare kernels again from now on, because a setting on which they depend has changed.

    Plans that are compiled already stay as they are, but one that fails afterwards is compiled again for the next pass. So
    a kernel that finds out when it runs that it cannot do a call adds it to its refusals, calls this and raises.

    Example:
        >>> from nn_core.ext import forget_prepared
        >>> forget_prepared()
    """
    PLUGINS.forget_prepared()


def get_backend(name: str) -> Backend:
    """Return the backend called `name`, loaded at the first call; see `Plugins.backend` for the exceptions."""
    return PLUGINS.backend(name)
