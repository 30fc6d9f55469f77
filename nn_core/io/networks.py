"""Writers of networks that plugins offer: they refuse calls of functions that set what the plugin does not know."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import ArgumentError
from nn_core.graph_rewriting import functions_of
from nn_core.variable import Variable


def knowing_writer(plugin: str, write: Callable[..., Any]) -> Callable[..., Any]:
    """``write_network`` of a plugin, behind a look at the graphs that it is given; see `KnownOperators`."""

    @functools.wraps(write)
    def write_known(path: Any, contents: Any, *args: Any, **settings: Any) -> Any:
        _require_known(plugin, contents)
        return write(path, contents, *args, **settings)

    return write_known


def _require_known(plugin: str, contents: Any) -> None:
    results = [variable for variable in _variables(contents) if variable.parent is not None]
    for function in functions_of(results):
        spec = function.node.spec
        if spec.later:
            known = PLUGINS.known_operators(plugin, spec.name)
            refusal = known.refusal(spec, function.args, function.node.inputs)
            if refusal is not None:
                raise ArgumentError(f"export: functions must be those that plugin {plugin!r} can write, got: {refusal.reason}")


def _variables(contents: Any) -> Iterator[Variable]:
    """Yield the variables in nested mappings and sequences."""
    if isinstance(contents, Variable):
        yield contents
    elif isinstance(contents, Mapping):
        yield from _variables(list(contents.values()))
    elif isinstance(contents, Sequence) and not isinstance(contents, (str, bytes)):
        for item in contents:
            yield from _variables(item)
