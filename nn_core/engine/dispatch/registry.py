"""Look-up by name: specifications and rules of functions, and kernels that plugins bring for other backends."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from nn_core.errors import ArgumentError, PluginError
from nn_core.operators.rules.registry import GRADIENTS, SHAPE_RULES, GradientRule, ShapeRule
from nn_core.operators.spec.builtin import BY_API, BY_NAME
from nn_core.operators.spec.model import FunctionSpec
from nn_core.typing import Kernel


class Added(NamedTuple):
    """A function that a plugin brought.

    Attributes:
        plugin: The plugin.
        spec: The function.
        key: Its name in ``nn_core.functions``: "acme_swish", or "acme.swish" in a vendor namespace.
    """

    plugin: str
    spec: FunctionSpec
    key: str


class Registry:
    """The functions of plugins, beside those of the core, and the kernels that plugins bring for backends of others."""

    def __init__(self) -> None:
        self._by_name: dict[str, Added] = {}
        self._by_api: dict[str, dict[str, Added]] = {}
        self._kernels: dict[tuple[str, str], Kernel] = {}
        self._overlays: dict[tuple[str, str], tuple[str, Kernel]] = {}
        #: the plugins of all these kernels, by their addresses
        self._owners: dict[int, str] = {}

    def add(
        self,
        plugin: str,
        specs: Sequence[FunctionSpec],
        kernels: Mapping[str, Mapping[str, Kernel]],
        overlays: Mapping[str, Mapping[str, Kernel]] = MappingProxyType({}),
        *,
        namespaced: bool = False,
    ) -> None:
        """Take over what `plugin` brings, all of it or nothing.

        Args:
            plugin: Its name.
            specs: Its functions.
            kernels: Kernels of these functions, by backend and function.
            overlays: Kernels of functions of others, likewise.
            namespaced: Whether its functions are found by "<plugin>.<api>" only.

        Raises:
            PluginError: when a name is taken already, a kernel belongs to a function that is not among `specs`, or an
                overlay to one that is, or that nobody specifies, or that another plugin overlays.
        """
        # all checks come before the first change: a plugin that is refused leaves nothing here
        names = {spec.name for spec in specs}
        added = [Added(plugin, spec, f"{plugin}.{spec.api}" if namespaced else spec.api) for spec in specs]
        for each in added:
            self._require_free(each)
        for backend, name in _places(kernels):
            if name not in names:
                raise PluginError(
                    f"plugin {plugin!r}: kernels for backend {backend!r} must be for functions that the plugin "
                    f"brings ({', '.join(sorted(names))}), got {name!r}\n  hint: overlays={{...}} takes those of others"
                )
        for backend, name in _places(overlays):
            self._check_overlay(plugin, backend, name, names)
        # in this order: a function that can be found has no kernels for a moment, but no kernel is without its function
        for each in added:
            self._by_name[each.spec.name] = each
            self._by_api.setdefault(each.key, {})[plugin] = each
        for backend, name in _places(kernels):
            self._kernels[backend, name] = kernels[backend][name]
        for backend, name in _places(overlays):
            self._overlays[backend, name] = plugin, overlays[backend][name]
        self._note_owners()

    def remove(self, plugin: str) -> None:
        """Forget everything that `plugin` brought."""
        # new tables in place of the old: other threads may be looking something up
        gone = {name for name, added in self._by_name.items() if added.plugin == plugin}
        self._by_name = {name: added for name, added in self._by_name.items() if name not in gone}
        for api, claims in list(self._by_api.items()):
            claims.pop(plugin, None)
            if not claims:
                del self._by_api[api]
        self._kernels = {key: kernel for key, kernel in self._kernels.items() if key[1] not in gone}
        self._overlays = {key: overlay for key, overlay in self._overlays.items() if overlay[0] != plugin}
        self._note_owners()

    def spec(self, name: str) -> FunctionSpec | None:
        """Return the specification of the function called `name` in files (``Affine``)."""
        added = self._by_name.get(name)
        return added.spec if added else BY_NAME.get(name)

    def spec_of_api(self, api: str) -> FunctionSpec | None:
        """Return the specification of the function called `api` in ``nn_core.functions`` (``affine``)."""
        added = self.added_api(api)
        return added.spec if added else BY_API.get(api)

    def core_spec_of_api(self, api: str) -> FunctionSpec | None:
        """Return the specification of the function of the core called `api`."""
        return BY_API.get(api)

    def added(self, name: str) -> Added | None:
        """Return the function called `name` in files if a plugin brought it."""
        return self._by_name.get(name)

    def added_api(self, api: str) -> Added | None:
        """Return the function called `api` if a plugin brought it.

        Raises:
            PluginError: when several plugins brought one of that name.
        """
        claims = self._by_api.get(api)
        if claims is None:
            return None
        if len(claims) > 1:  # not an error before somebody uses the name
            raise ambiguous("function", api, list(claims))
        return next(iter(claims.values()))

    def of_plugin(self, plugin: str) -> list[FunctionSpec]:
        """Return the functions that `plugin` brought, by name."""
        return [added.spec for added in self if added.plugin == plugin]

    def spec_of_plugin(self, plugin: str, api: str) -> FunctionSpec | None:
        """Return the function that ``F.<plugin>.<api>`` finds; `api` may go without the prefix of the plugin."""
        for key in (f"{plugin}.{api}", api, f"{plugin}_{api}"):
            added = self._by_api.get(key, {}).get(plugin)
            if added is not None:
                return added.spec
        return None

    def all_names(self) -> list[str]:
        """Names of all functions, of the core and of plugins."""
        return [*BY_NAME, *self._by_name]

    def kernel(self, backend: str, name: str) -> Kernel | None:
        """Return the kernel that a plugin brought for a function of its own and a backend of another."""
        return self._kernels.get((backend, name))

    def overlay(self, backend: str, name: str) -> Kernel | None:
        """Return the kernel that a plugin brought for a function and a backend of others; asked before the backend's own."""
        found = self._overlays.get((backend, name))
        return found[1] if found else None

    def owner_of_kernel(self, kernel: object) -> str:
        """Return the plugin that brought a kernel for a backend of another, empty when none did."""
        return self._owners.get(id(kernel), "")

    def owner_of_overlay(self, backend: str, name: str) -> str:
        """Return the plugin that overlays a function of others on a backend of others, empty when none does."""
        found = self._overlays.get((backend, name))
        return found[0] if found else ""

    def overlays_of(self, plugin: str) -> list[tuple[str, str]]:
        """Backends and functions of others for which `plugin` brought kernels that are asked first."""
        return sorted(place for place, (owner, _) in self._overlays.items() if owner == plugin)

    def kernels_of(self, plugin: str) -> list[tuple[str, str]]:
        """Backends of others for which `plugin` brought kernels, each with the name of a function."""
        own = [place for place in self._kernels if self._by_name[place[1]].plugin == plugin]
        return sorted([*own, *(place for place, (owner, _) in self._overlays.items() if owner == plugin)])

    def has_overlays(self, plugin: str) -> bool:
        """Return whether `plugin` brought kernels for functions of others."""
        return any(owner == plugin for owner, _ in self._overlays.values())

    def __iter__(self) -> Iterator[Added]:
        """Return the functions that plugins brought, by name."""
        return iter([self._by_name[name] for name in sorted(self._by_name)])

    def _note_owners(self) -> None:
        # the tables keep the kernels alive, so that no other object has their addresses
        owners = {id(kernel): self._by_name[name].plugin for (_, name), kernel in self._kernels.items()}
        self._owners = owners | {id(kernel): plugin for plugin, kernel in self._overlays.values()}

    def _require_free(self, new: Added) -> None:
        name, added = new.spec.name, self._by_name.get(new.spec.name)
        owner = "nn_core" if name in BY_NAME else added.plugin if added else None
        if owner is not None:
            raise PluginError(f"function {name!r}: must come from one plugin, got {owner!r} and {new.plugin!r}")
        # names of the core are the core's for good: programs rely on what they compute
        if new.key in BY_API:
            raise PluginError(f"function {new.key!r}: must come from one plugin, got 'nn_core' and {new.plugin!r}")

    def _check_overlay(self, plugin: str, backend: str, name: str, own: Collection[str]) -> None:
        # for its own function or backend a plugin has plainer means, and an overlay would hide them
        if name in own or backend.partition(".")[0] == plugin:
            raise PluginError(
                f"plugin {plugin!r}: overlays must be for functions and backends of others, got {name!r} on {backend!r}"
            )
        if self.spec(name) is None:
            raise PluginError(f"plugin {plugin!r}: overlays must be for functions that exist, got {name!r} on {backend!r}")
        if (backend, name) in self._overlays:
            first = self._overlays[backend, name][0]
            raise PluginError(f"overlay of {name!r} on {backend!r}: must come from one plugin, got {first!r} and {plugin!r}")


def _places(table: Mapping[str, Mapping[str, Kernel]]) -> list[tuple[str, str]]:
    return [(backend, name) for backend, kernels in table.items() for name in kernels]


REGISTRY = Registry()


def spec_of(name: str) -> FunctionSpec:
    """Return the specification of the function called `name` in files; plugins that are not loaded are not asked."""
    return _known("function", name, REGISTRY.spec(name))


def spec_of_api(api: str) -> FunctionSpec:
    """Return the specification of the function called `api` in ``nn_core.functions``; see `spec_of`."""
    return _known("F", api, REGISTRY.spec_of_api(api))


def shape_rule_of(name: str) -> ShapeRule:
    """Return the shape rule of the function called `name`."""
    if name not in SHAPE_RULES:
        raise PluginError(f"{name}: a function with 'shape: rule' must have a @shape_rule, got none")
    return SHAPE_RULES[name]


def gradient_of(name: str) -> GradientRule | None:
    """Return the gradient rule of the function called `name`, or None when there is none."""
    return GRADIENTS.get(name)


def _known(what: str, name: str, spec: FunctionSpec | None) -> FunctionSpec:
    if spec is None:
        raise ArgumentError(f"{what}: a function must be specified by the core or a loaded plugin, got {name!r}")
    return spec


def ambiguous(what: str, key: str, plugins: Sequence[str]) -> PluginError:
    """Return the refusal to choose between plugins that claim one name."""
    both = " and ".join(map(repr, sorted(plugins)))
    # file formats begin with a dot, which does not belong between plugin and name
    ways = ", ".join(f"{plugin}.{key.lstrip('.')}" for plugin in sorted(plugins))
    return PluginError(
        f"{what} {key!r}: must be claimed by one plugin, got {both}\n"
        f"  hint: name it with its plugin ({ways}), or block one: NN_CORE_PLUGINS=-{max(plugins)}"
    )
