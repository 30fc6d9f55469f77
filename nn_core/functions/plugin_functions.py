"""Functions of plugins: built from their specification at run time and found in ``nn_core.functions`` by API name."""

import sys
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from nn_core.errors import PluginError
from nn_core.graph.apply import apply
from nn_core.spec.builtin import BY_API
from nn_core.spec.model import FunctionSpec
from nn_core.spec.signature import docstring, signature

__all__ = ["__dir__", "__getattr__", "register_plugin_function"]

_PACKAGE = "nn_core.functions"
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
_OWNERS: dict[str, str] = {}


def register_plugin_function(spec: FunctionSpec, owner: str) -> Callable[..., Any]:
    """Offer the function of `spec` in ``nn_core.functions``; `owner` is the name of the plugin.

    Raises:
        PluginError: when the API name is taken, by nn_core or by another plugin.
    """
    holder = "nn_core" if spec.api in BY_API else _OWNERS.get(spec.api)
    if holder is None and hasattr(sys.modules[_PACKAGE], spec.api):
        holder = "nn_core"
    if holder is not None:
        raise PluginError(f"{spec.api}: a function must have one owner, got plugin {owner!r} beside {holder!r}")
    function = build_function(spec)
    _FUNCTIONS[spec.api] = function
    _OWNERS[spec.api] = owner
    return function


def unregister_plugin_functions(owner: str) -> None:
    """Take back every function of the plugin `owner` (its registration failed half-way)."""
    for api in [api for api, name in _OWNERS.items() if name == owner]:
        del _FUNCTIONS[api], _OWNERS[api]


def build_function(spec: FunctionSpec) -> Callable[..., Any]:
    """The function of `spec`, with the signature and docstring that a generated one would have."""
    public = signature(spec)
    fixed = [entry.name for entry in spec.inputs if not entry.variadic]
    rest = [entry.name for entry in spec.inputs if entry.variadic]
    args = [arg.name for arg in spec.args]

    def function(*positional: Any, **keywords: Any) -> Any:
        bound = public.bind(*positional, **keywords)
        bound.apply_defaults()
        given = bound.arguments
        inputs = [given[name] for name in fixed]
        for name in rest:
            inputs.extend(given[name])
        return apply(spec, tuple(inputs), {name: given[name] for name in args}, given["outputs"])

    function.__name__ = function.__qualname__ = spec.api
    function.__module__ = _PACKAGE
    function.__doc__ = docstring(spec).replace("function_spec.yaml, entry ", "")
    function.__signature__ = public  # type: ignore[attr-defined]  # read by inspect
    return function


def __getattr__(name: str) -> Callable[..., Any]:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    package = sys.modules[_PACKAGE]
    close = get_close_matches(name, [*package.__all__, *_FUNCTIONS], 1)
    hint = f"; did you mean {close[0]!r}?" if close and not name.startswith("_") else ""
    raise AttributeError(f"module {_PACKAGE!r} has no function {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*vars(sys.modules[_PACKAGE]), *_FUNCTIONS})
