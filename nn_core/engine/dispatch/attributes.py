"""The offers of plugins as attributes of the module of their kind: ``S.Name``, ``PF.name`` (PEP 562)."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

from nn_core.engine.dispatch.extension_registry import Offer
from nn_core.engine.dispatch.missing import absence
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.error_messages.elsewhere import attribute_suggestion
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.errors import UnknownAttributeError

#: Makes what a program gets of an object that a plugin offers, and its label.
Shown: TypeAlias = Callable[[Any, str], Any]


def _loaded(offer: Offer, shown: Shown | None) -> Any:
    found = PLUGINS.offers.load(offer)
    return found if shown is None else shown(found, offer.label)


class PluginAttributes:
    """Everything of one kind that one plugin offers, as ``S.<plugin>.<name>``."""

    def __init__(self, kind: str, plugin: str, shown: Shown | None = None) -> None:
        self._kind = kind
        self._plugin = plugin
        self._shown = shown

    def __getattr__(self, name: str) -> Any:
        offer = None if name.startswith("_") else PLUGINS.offer(self._kind, f"{self._plugin}.{name}")
        if offer is None:
            raise AttributeError(f"plugin {self._plugin!r} offers no {name!r}{suggestion(name, dir(self))}")
        return _loaded(offer, self._shown)

    def __dir__(self) -> list[str]:
        PLUGINS.module(self._plugin)
        return [offer.info.name for offer in PLUGINS.offers.of(self._kind, self._plugin)]


def module_attributes(
    module: str, kind: str, roles: Collection[str] = (), shown: Shown | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of the module called `module`: what plugins offer of a kind, in some roles of it.

    `shown` makes what programs get of the object and its label.
    """

    def get(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        offer = PLUGINS.offer(kind, name)
        if offer is not None and (not roles or getattr(offer.info, "role", "") in roles):
            return _loaded(offer, shown)
        # after the offers: a name says more than that of a plugin
        if name in PLUGINS.names():
            return PluginAttributes(kind, name, shown)
        hint = attribute_suggestion(module, name, _own_names(module) | set(PLUGINS.names_of(kind)))
        text, cause = absence(PLUGINS, (kind,), name)
        raise UnknownAttributeError(
            f"module {module!r} has no attribute {name!r}, of its own or of a plugin{hint}{text}"
        ) from cause

    def list_names() -> list[str]:
        return sorted({*_own_names(module), *filter(str.isidentifier, PLUGINS.names_of(kind))})

    return get, list_names


def lazy_attributes(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose modules are imported when a name of theirs is first used."""
    places = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in places:
            text = f"module {package!r} has no attribute {name!r}{attribute_suggestion(package, name, places)}"
            raise UnknownAttributeError(text, name=name, obj=sys.modules[package])
        value = getattr(import_module(places[name]), name)
        vars(sys.modules[package])[name] = value
        return value

    return get, lambda: sorted(places)


def hide_submodules(module: str) -> None:
    """Take the modules out of the attributes of a package, where they would pass for functions: ``F.linear``."""
    namespace = vars(sys.modules[module])
    for name in [name for name in namespace if sys.modules.get(f"{module}.{name}") is namespace[name]]:
        del namespace[name]


def _own_names(module: str) -> set[str]:
    """Return the public names of a module: those in ``__all__``, and classes of its own that it has beside them."""
    own = vars(sys.modules[module])
    beside = {name for name, value in own.items() if isinstance(value, type) and value.__module__.startswith(f"{module}.")}
    return {*own["__all__"], *beside} if "__all__" in own else {name for name in own if not name.startswith("_")}
