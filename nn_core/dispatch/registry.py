"""What is known by name: specifications and rules of functions, and kernels that plugins bring for other backends."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nn_core.errors import ArgumentError, PluginError
from nn_core.rules.registry import GRADIENTS, SHAPE_RULES, GradientRule, ShapeRule
from nn_core.spec.builtin import BY_API, BY_NAME
from nn_core.spec.model import FunctionSpec
from nn_core.typing import Kernel


class Added(NamedTuple):
    """A function that a plugin brought."""

    plugin: str
    spec: FunctionSpec


class Registry:
    """The functions of plugins, beside those of the core."""

    def __init__(self) -> None:
        self._by_name: dict[str, Added] = {}
        self._by_api: dict[str, Added] = {}
        self._kernels: dict[tuple[str, str], Kernel] = {}

    def add(self, plugin: str, specs: Sequence[FunctionSpec], kernels: Mapping[str, Mapping[str, Kernel]]) -> None:
        """Take over what `plugin` brings, all of it or nothing.

        Raises:
            PluginError: when a name is taken already, or a kernel belongs to a function that is not among `specs`.
        """
        names = {spec.name for spec in specs}
        for spec in specs:
            self._require_free(plugin, spec)
        for backend, table in kernels.items():
            for name in table:
                if name not in names:
                    raise PluginError(
                        f"plugin {plugin!r}: kernels for backend {backend!r} must be for functions that the plugin "
                        f"brings ({', '.join(sorted(names))}), got {name!r}"
                    )
        for spec in specs:
            self._by_name[spec.name] = self._by_api[spec.api] = Added(plugin, spec)
        for backend, table in kernels.items():
            for name, kernel in table.items():
                self._kernels[backend, name] = kernel

    def remove(self, plugin: str) -> None:
        """Forget everything that `plugin` brought."""
        gone = {name for name, added in self._by_name.items() if added.plugin == plugin}
        self._by_name = {name: added for name, added in self._by_name.items() if name not in gone}
        self._by_api = {api: added for api, added in self._by_api.items() if added.plugin != plugin}
        self._kernels = {key: kernel for key, kernel in self._kernels.items() if key[1] not in gone}

    def spec(self, name: str) -> FunctionSpec | None:
        """The specification of the function called `name` in files (``Affine``)."""
        added = self._by_name.get(name)
        return added.spec if added else BY_NAME.get(name)

    def spec_of_api(self, api: str) -> FunctionSpec | None:
        """The specification of the function called `api` in ``nn_core.functions`` (``affine``)."""
        added = self._by_api.get(api)
        return added.spec if added else BY_API.get(api)

    def added_api(self, api: str) -> Added | None:
        """The function called `api` if a plugin brought it."""
        return self._by_api.get(api)

    def kernel(self, backend: str, name: str) -> Kernel | None:
        """The kernel that a plugin brought for a function of its own and a backend of another."""
        return self._kernels.get((backend, name))

    def __iter__(self) -> Iterator[Added]:
        """The functions that plugins brought, by name."""
        return iter([self._by_name[name] for name in sorted(self._by_name)])

    def _require_free(self, plugin: str, spec: FunctionSpec) -> None:
        for name, core, added in ((spec.name, BY_NAME, self._by_name), (spec.api, BY_API, self._by_api)):
            owner = "nn_core" if name in core else added[name].plugin if name in added else None
            if owner is not None:
                raise PluginError(f"function {name!r}: must come from one plugin, got {owner!r} and {plugin!r}")


REGISTRY = Registry()


def spec_of(name: str) -> FunctionSpec:
    """The specification of the function called `name` in files; plugins that are not loaded are not asked."""
    return _known("function", name, REGISTRY.spec(name))


def spec_of_api(api: str) -> FunctionSpec:
    """The specification of the function called `api` in ``nn_core.functions``; see `spec_of`."""
    return _known("F", api, REGISTRY.spec_of_api(api))


def shape_rule_of(name: str) -> ShapeRule:
    """The shape rule of the function called `name`."""
    if name not in SHAPE_RULES:
        raise PluginError(f"{name}: a function with 'shape: rule' must have a @shape_rule, got none")
    return SHAPE_RULES[name]


def gradient_of(name: str) -> GradientRule | None:
    """The gradient rule of the function called `name`, or None when there is none."""
    return GRADIENTS.get(name)


def _known(what: str, name: str, spec: FunctionSpec | None) -> FunctionSpec:
    if spec is None:
        raise ArgumentError(f"{what}: a function must be specified by the core or a loaded plugin, got {name!r}")
    return spec
