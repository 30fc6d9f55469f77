"""Functions of plugins: found in ``nn_core.functions`` by API name and built from their specification at run time."""

import sys
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Any

from nn_core.dispatch.plugins import PLUGINS
from nn_core.graph.apply import apply
from nn_core.spec.model import FunctionSpec
from nn_core.spec.signature import docstring, signature

__all__ = ["__dir__", "__getattr__"]


@cache
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
    function.__module__ = "nn_core.functions"
    function.__doc__ = docstring(spec).replace("function_spec.yaml, entry ", "")
    function.__signature__ = public  # type: ignore[attr-defined]  # read by inspect
    return function


def __getattr__(name: str) -> Callable[..., Any]:
    """The function of a plugin (PEP 562); installed plugins are imported to find it."""
    if name.startswith("_"):
        raise AttributeError(f"module 'nn_core.functions' has no attribute {name!r}")
    added = PLUGINS.function(name)
    if added is not None:
        return build_function(added.spec)
    own = vars(sys.modules["nn_core.functions"]).get("__all__", ())
    close = get_close_matches(name, [*own, *(added.spec.api for added in PLUGINS.registry)], 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise AttributeError(f"module 'nn_core.functions' has no function {name!r}, of its own or of a plugin{hint}")


def __dir__() -> list[str]:
    names = vars(sys.modules["nn_core.functions"])
    return sorted({*names, *(added.spec.api for added in PLUGINS.registry)})
