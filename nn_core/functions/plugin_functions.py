"""Functions of plugins, found in ``nn_core.functions``: operators, built from their specification at run time, and composites."""

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from nn_core.engine.dispatch.extension_registry import Offer
from nn_core.engine.dispatch.missing import absence
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.registry import ambiguous
from nn_core.engine.error_messages.elsewhere import attribute_suggestion
from nn_core.engine.error_messages.refusal import require_fit
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.engine.graph.apply import apply
from nn_core.engine.graph.given_variables import giving_variables
from nn_core.engine.graph.imperative import one_kind
from nn_core.engine.graph.lazy_subgraph import follows_shapes
from nn_core.errors import UnknownAttributeError
from nn_core.operators.spec.model import FunctionSpec
from nn_core.operators.spec.signature import docstring, signature

__all__ = ["__dir__", "__getattr__"]


@cache
def build_function(spec: FunctionSpec) -> Callable[..., Any]:
    """Return the function of `spec`, with the signature and docstring that a generated one would have."""
    public = signature(spec)
    fixed = [entry.name for entry in spec.inputs if not entry.variadic]
    rest = [entry.name for entry in spec.inputs if entry.variadic]
    args = [arg.name for arg in spec.args]

    def function(*positional: Any, **keywords: Any) -> Any:
        try:
            bound = public.bind(*positional, **keywords)
        except TypeError:
            require_fit(function, positional, keywords)
            raise
        bound.apply_defaults()
        given = bound.arguments
        inputs = [given[name] for name in fixed]
        for name in rest:
            inputs.extend(given[name])
        return apply(spec, tuple(inputs), {name: given[name] for name in args}, given["outputs"])

    added = PLUGINS.registry.added(spec.name)
    function.__name__ = spec.api
    function.__qualname__ = added.key if added else spec.api  # by which it is pickled
    function.__module__ = "nn_core.functions"
    function.__doc__ = docstring(spec).replace("function_spec.yaml, entry ", "")
    function.__signature__ = public  # type: ignore[attr-defined]  # read by inspect
    return function


def composite(offer: Offer) -> Callable[..., Any]:
    """Return the function that `offer` names: imperative beside an NdArray, and built again where shapes change."""
    return _composite(PLUGINS.offers.load(offer), offer.label)


@cache
def _composite(target: Callable[..., Any], label: str) -> Callable[..., Any]:
    return follows_shapes(one_kind(giving_variables(target, label)))


class PluginNamespace:
    """The functions of one plugin, as ``F.<plugin>.<name>``; a name may go without the prefix of the plugin."""

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(f"functions of plugin {self._plugin!r}: there is no attribute {name!r}")
        PLUGINS.module(self._plugin)
        spec = PLUGINS.registry.spec_of_plugin(self._plugin, name)
        if spec is not None:
            return build_function(spec)
        offer = PLUGINS.offers.find("composites", f"{self._plugin}.{name}")
        if offer is not None:
            return composite(offer)
        hint = suggestion(name, dir(self))
        raise AttributeError(f"plugin {self._plugin!r} has no function {name!r}{hint}")

    def __dir__(self) -> list[str]:
        PLUGINS.module(self._plugin)
        operators = [spec.api for spec in PLUGINS.registry.of_plugin(self._plugin)]
        return sorted([*operators, *(offer.info.name for offer in PLUGINS.offers.of("composites", self._plugin))])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._plugin,)

    def __repr__(self) -> str:
        return f"<functions of plugin {self._plugin!r}>"


def __getattr__(name: str) -> Any:
    """Return the function of a plugin, or the namespace of one (PEP 562); installed plugins are imported to find it."""
    if name.startswith("_"):
        raise AttributeError(f"module 'nn_core.functions' has no attribute {name!r}")
    if name in PLUGINS.names():
        return PluginNamespace(name)
    added, offer = PLUGINS.callables(name)
    if added is not None and offer is not None:
        raise ambiguous("function", name, [added.plugin, offer.plugin])
    if added is not None:
        return build_function(added.spec)
    if offer is not None:
        return composite(offer)
    own = vars(sys.modules["nn_core.functions"]).get("__all__", ())
    hint = attribute_suggestion(
        "nn_core.functions", name, [*own, *PLUGINS.names_of("functions"), *PLUGINS.names_of("composites")]
    )
    text, cause = absence(PLUGINS, ("functions", "composites"), name)
    raise UnknownAttributeError(
        f"module 'nn_core.functions' has no function {name!r}, of its own or of a plugin{hint}{text}"
    ) from cause


def __dir__() -> list[str]:
    own = vars(sys.modules["nn_core.functions"]).get("__all__", ())
    # names in a vendor namespace have a dot: they are attributes of the namespace
    brought = {*PLUGINS.names_of("functions"), *PLUGINS.names_of("composites")}
    return sorted({*own, *filter(str.isidentifier, brought)})
