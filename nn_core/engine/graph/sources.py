"""Variables whose shapes a graph follows besides those of its leaves: the origins of lengths among the settings."""

from collections.abc import Iterable, Sequence

from nn_core.engine.graph.node import Node, Value
from nn_core.engine.graph.plan_cache import Shapes


def sources_of_node(node: Node) -> tuple[Value, ...]:
    """Return the variables of whose shapes the settings of a function are made, or those of the part of the graph that it
    ends.
    """
    derivation = node.derivation
    return node.setup.sources if derivation is None else (*node.setup.sources, *derivation.lengths)


def with_sources(order: Sequence[Node]) -> Sequence[Node]:
    """Return the functions of `order`, and before each one those that compute the variables whose shapes it follows."""
    if not any(map(sources_of_node, order)):
        return order
    found: dict[Node, None] = {}
    visited: set[Node] = set()
    stack = [*reversed(order)]
    while stack:
        node = stack.pop()
        if node in visited:
            found[node] = None  # those before it are there by now; a second time changes nothing
            continue
        visited.add(node)
        before = [value.producer for value in (*node.inputs, *sources_of_node(node)) if value is not None]
        stack += [node, *[producer for producer in reversed(before) if producer is not None and producer not in visited]]
    return list(found)


def leaf_shapes(order: Iterable[Node]) -> Shapes:
    """Return the shapes on which the passes of a graph depend: those of its leaves, and of variables that its settings
    follow.
    """
    leaves: list[Value] = []
    for node in order:
        leaves += [value for value in node.inputs if value is not None and value.is_leaf]
        leaves += sources_of_node(node)
    return tuple([value.plain_shape for value in leaves])


def followed_shapes(order: Sequence[Node]) -> tuple[Shapes, ...]:
    """Return the shapes that decide about those of a graph and belong to no input of it."""
    derived = [node.derivation.watched_shapes() for node in order if node.derivation is not None]
    if any(map(sources_of_node, order)):
        derived.append(leaf_shapes(with_sources(order)))
    return tuple(derived)
