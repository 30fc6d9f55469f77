"""The offers of plugins by name, of all kinds of ``dispatch.kinds``: one table, with the owners of each name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any, NamedTuple

from nn_core.engine.dispatch.blame import PluginCall
from nn_core.engine.dispatch.exception_text import text_of
from nn_core.engine.dispatch.kinds import KINDS, ExtensionInfo, ImportTarget, Kind
from nn_core.engine.dispatch.registry import ambiguous
from nn_core.engine.dispatch.supplied import guarded_object
from nn_core.errors import ArgumentError, PluginError
from nn_core.logger import logger


class Offer(NamedTuple):
    """One description and the plugin that gave it."""

    plugin: str
    kind: Kind
    info: ExtensionInfo
    namespaced: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The names under which it is found."""
        return tuple(f"{self.plugin}.{key}" for key in self.info.keys) if self.namespaced else self.info.keys

    @property
    def label(self) -> str:
        """For messages."""
        return f"{self.kind.noun} {self.info.name!r} of plugin {self.plugin!r}"

    @property
    def subject(self) -> str:
        """For messages that name the plugin elsewhere."""
        where = {"composites": "F.", "parametric_functions": "PF."}.get(self.kind.key, "")
        return f"{self.kind.noun} {where + self.info.name if where else repr(self.info.name)}"

    @property
    def role(self) -> str:
        """Its role among those of its kind, such as "fusion" of a pass; empty where the kind has none."""
        return str(getattr(self.info, "role", ""))

    def called(self, part: str = "") -> PluginCall:
        """Return a ``with`` block that calls what is offered: exceptions name the plugin."""
        return PluginCall(self.plugin, f"{part + '() of ' if part else ''}the {self.subject}")

    @property
    def full_name(self) -> str:
        """The name with that of its plugin, under which nobody else can offer anything."""
        return self.info.name if self.info.name.startswith(f"{self.plugin}.") else f"{self.plugin}.{self.info.name}"


class Offers:
    """Descriptions by kind and name. Two plugins may claim one name; only asking for it by that name is refused."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], dict[str, Offer]] = {}
        self._reserved: dict[str, frozenset[str]] = {}
        self._targets: dict[tuple[str, str, str, str], Any] = {}

    def add(self, plugin: str, infos: Mapping[str, Sequence[ExtensionInfo]], *, namespaced: bool = False) -> None:
        """Take over what `plugin` offers, descriptions by kind; all of it or nothing.

        Functions of a plugin with a vendor namespace are found by "<plugin>.<name>" only.

        Raises:
            PluginError: when a description is malformed, offers a name twice, or one of the core.
        """
        offers = [
            Offer(plugin, KINDS[key], info, namespaced and KINDS[key].has_api_names)
            for key, group in infos.items()
            for info in group
        ]
        seen: set[tuple[str, str]] = set()
        for offer in offers:
            _check(offer)
            for key in offer.keys:
                if (offer.kind.key, key) in seen:
                    raise PluginError(f"{offer.label}: names must differ, got {key!r} twice")
                # a program that says ``S.Adam`` gets that of the core whatever is installed
                if key in self._names_of_the_core(offer.kind):
                    raise PluginError(f"{offer.kind.noun} {key!r}: must come from one place, got 'nn_core' and {plugin!r}")
                seen.add((offer.kind.key, key))
        for offer in offers:
            for key in offer.keys:
                self._claims.setdefault((offer.kind.key, key), {})[plugin] = offer

    def remove(self, plugin: str) -> None:
        """Forget everything that `plugin` offered."""
        for place, claims in list(self._claims.items()):
            claims.pop(plugin, None)
            if not claims:
                del self._claims[place]
        self._targets = {key: target for key, target in self._targets.items() if key[0] != plugin}

    def reserve(self, kind: str, names: Iterable[str]) -> None:
        """Say which names of a kind are the core's; plugins are refused that offer them from then on."""
        self._reserved[kind] = frozenset(names)
        for name in sorted(self._reserved[kind]):
            for plugin in self._claims.get((kind, name), ()):
                logger.warning("%s %r of plugin %r is passed over: nn_core has its own", KINDS[kind].noun, name, plugin)

    def _names_of_the_core(self, kind: Kind) -> frozenset[str]:
        if kind.key not in self._reserved and kind.own:
            # imported when the first plugin offers something of the kind
            module, _, table = kind.own.partition(":")
            place = vars(import_module(module))
            names = place[table] if table else [name for name in place if not name.startswith("_")]
            self._reserved[kind.key] = frozenset(names)
        return self._reserved.get(kind.key, frozenset())

    def find(self, kind: str, key: str) -> Offer | None:
        """Return the offer called `key`, or ``plugin.key``; None when there is none.

        Raises:
            PluginError: when several plugins claim the name.
        """
        claims = self._claims.get((kind, key))
        if claims is None:
            plugin, _, rest = key.partition(".")
            return next(iter(self._named(kind, plugin, rest)), None) if plugin and rest else None
        # an error only now: both can be used under the names of their plugins
        if len(claims) > 1:
            raise ambiguous(KINDS[kind].noun, key, list(claims))
        return next(iter(claims.values()))

    def _named(self, kind: str, plugin: str, name: str) -> Iterator[Offer]:
        """Return the object that ``plugin.name`` means; the name may lack the prefix of the plugin."""
        for key in (name, f"{plugin}_{name}"):
            found = self._claims.get((kind, key), {}).get(plugin)
            if found is not None:
                yield found

    def of(self, kind: str, plugin: str = "") -> list[Offer]:
        """All offers of a kind (of one plugin, if it is named), by name."""
        found = {
            (offer.info.name, offer.plugin): offer
            for (key, _), claims in self._claims.items()
            for offer in claims.values()
            if key == kind and plugin in ("", offer.plugin)
        }
        return [found[place] for place in sorted(found)]

    def names(self, kind: str) -> list[str]:
        """Return the names of a kind that plugins offer, sorted."""
        return sorted(key for found, key in self._claims if found == kind)

    def load(self, offer: Offer, part: str = "target") -> Any:
        """Return the object that `part` of a description names; imported at the first call.

        Raises:
            PluginError: when the import fails; the cause is the original exception.
        """
        place = (offer.plugin, offer.kind.key, offer.info.name, part)
        if place not in self._targets:
            target: ImportTarget | None = getattr(offer.info, part)
            if target is None:
                raise ArgumentError(f"{offer.label}: must offer {part}, got a description without it")
            what = offer.subject if part == "target" else f"{part}() of the {offer.subject}"
            self._targets[place] = guarded_object(load_target(offer.label, target), offer.plugin, what)
        return self._targets[place]

    def load_target(self, offer: Offer, part: str, target: ImportTarget) -> Any:
        """Return the object that `target`, a member of a table of the description, names; see `load`."""
        place = (offer.plugin, offer.kind.key, offer.info.name, part)
        if place not in self._targets:
            self._targets[place] = load_target(offer.label, target)
        return self._targets[place]

    def update_kernel(self, backend: str, rule: str) -> tuple[Any, str]:
        """Return the multi-tensor kernel that a loaded plugin offers for a rule of its solvers on `backend`, and the name of
        the plugin; None and "" where there is none.
        """
        for offer in self.of("solvers"):
            target = getattr(offer.info, "updates", {}).get(backend)
            if target is not None and offer.info.name == rule:
                return self.load_target(offer, backend, target), offer.plugin
        return None, ""


def load_target(label: str, target: ImportTarget) -> Any:
    """Return the object itself, or what "module:attribute" names.

    Raises:
        PluginError: when it cannot be imported; the cause is the original exception.
    """
    if not isinstance(target, str):
        return target
    from nn_core.engine.dispatch.guard import guarded  # `import nn_core` does without it

    try:
        return guarded(label, None, lambda: _imported(target))
    except Exception as error:  # whatever a plugin raises
        raise PluginError(f"{label}: {target!r} must be importable, got: {text_of(error)}") from error


def _imported(target: str) -> Any:
    module, _, path = target.partition(":")
    found: Any = import_module(module)
    # also a method or a nested class
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _check(offer: Offer) -> None:
    kind, info = offer.kind, offer.info
    _check_names(offer, info.keys)
    role = getattr(info, "role", None)
    if kind.roles and role not in kind.roles:
        raise PluginError(f"{offer.label}: role must be one of {', '.join(kind.roles)}, got {role!r}")
    for entry in fields(info):
        value = getattr(info, entry.name)
        # targets are looked at as texts: importing what nobody has asked for would take time
        if entry.name not in _PLAIN_FIELDS and value is not None:
            _check_targets(f"{offer.label}: {entry.name}", value)


def _check_names(offer: Offer, keys: object) -> None:
    kind = offer.kind
    if not isinstance(keys, tuple) or not keys:
        raise PluginError(f"{offer.label}: must have a tuple of names, got {keys!r}")
    for key in keys:
        if not isinstance(key, str) or not kind.names.fullmatch(key):
            raise PluginError(f"{offer.label}: names must be like {kind.names.pattern}, got {key!r}")
        if kind.is_prefixed and not key.startswith(f"{offer.plugin}."):
            raise PluginError(f"{offer.label}: names must start with {offer.plugin + '.'!r}, got {key!r}")


def _check_targets(what: str, value: Any) -> None:
    for target in value.values() if isinstance(value, Mapping) else (value,):
        if not (callable(target) or (isinstance(target, str) and _is_reference(target))):
            raise PluginError(f"{what} must be an object or 'module:attribute', got {target!r}")


_PLAIN_FIELDS = frozenset({"name", "description", "extensions", "families", "help", "priority", "role"})


def _is_reference(target: str) -> bool:
    module, colon, path = target.partition(":")
    parts = [*module.split("."), *path.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts)
