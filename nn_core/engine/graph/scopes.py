"""The scopes of functions, for tables and traces: of their parameters, or else those in which they were called."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nn_core.engine.graph.node import Node, Storage
from nn_core.engine.graph.parameter_sources import named_modules, parameters_of
from nn_core.engine.runtime.holders import CURRENT_SCOPE, HOLDERS, SCOPES, Holder

if TYPE_CHECKING:
    from nn_core.variable import Variable


def scopes_of(nodes: Sequence[Node], module: Holder | None = None) -> list[str]:
    """Return the scope of each function: of its first parameter that has a name, or else the one in which it was called.

    That of a function in a dynamic graph is the one in which it was called when the tree of its calls got it.

    Args:
        nodes: The functions.
        module: Begin names in this module; None: in the current scope, and in each module.
    """
    used = {value.storage for node in nodes for value in node.inputs if value is not None}
    names: dict[str, Variable] = {}
    modules: list[tuple[str, Holder]] = []
    if module is None:
        names = parameters_of("scopes_of", None)
        for prefix, holder, parameters in named_modules(names, used):
            names.update({f"{prefix}{name}": parameter for name, parameter in parameters.items()})
            modules.append((prefix, holder))
        modules += [("", holder) for holder in list(HOLDERS.values()) if holder.parent is None]
    else:
        names.update(module.get_parameters())
        modules.append(("", module))
    known = {parameter.storage: name.rpartition("/")[0] for name, parameter in names.items()}
    called = {id(scope): path for path, scope in _scopes(modules)}
    return [_scope_of(node, known, called) for node in nodes]


def _scope_of(node: Node, known: Mapping[Storage, str], called: Mapping[int, str]) -> str:
    of_parameter = next((known[v.storage] for v in node.inputs if v is not None and v.storage in known), None)
    scope = node.scope if isinstance(node.scope, int) else id(node.scope)
    return called.get(scope, "") if of_parameter is None else of_parameter


def _scopes(modules: Sequence[tuple[str, Holder]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the scopes of the process and of modules, each with its path; where it has several, the first one comes last."""
    found = [("", CURRENT_SCOPE[-1]())]
    for prefix, module in modules:
        found += [(f"{prefix}{path}".rstrip("/"), inner.parameter_scope) for path, inner in module.walk()]
    for path, scope in reversed([*found, *(("", root) for root in SCOPES)]):
        yield from _nested(path, scope)


def _nested(path: str, scope: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, scope
    for name, member in list(scope.items()):
        if isinstance(member, Mapping):
            yield from _nested(f"{path}/{name}" if path else name, member)
