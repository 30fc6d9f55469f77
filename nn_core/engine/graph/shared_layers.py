"""Layers without a name that read each other's results and share their parameters: most likely meant to be two layers."""

import weakref
from collections.abc import Sequence
from typing import Final

from nn_core.engine.graph.node import Node, Storage, Value
from nn_core.logger import logger

#: Parameters of layers that were made without a name and outside of scopes, each with its path ("affine/W"), until it is told.
NAMELESS: Final[weakref.WeakKeyDictionary[Value, str]] = weakref.WeakKeyDictionary()


def warn_of_shared_layers(order: Sequence[Node]) -> None:
    """Log once for each parameter that a function reads which depends on the result of another one that reads it.

    Two graphs, or two branches, that share a layer are left alone: that is what networks with shared weights look like. So is
    a gradient, whose functions read the parameter in another way than the layer.
    """
    if not NAMELESS:
        return
    paths = {parameter.storage: (parameter, path) for parameter, path in list(NAMELESS.items())}
    readers: dict[tuple[Storage, str, int], list[Node]] = {}
    for node in order:
        for place, value in enumerate(node.inputs):
            if value is not None and value.is_leaf and value.storage in paths:
                readers.setdefault((value.storage, node.spec.name, place), []).append(node)
    for (storage, _, _), nodes in readers.items():
        if len(nodes) > 1 and _depends(order, nodes[0], nodes[1:]):
            parameter, path = paths[storage]
            NAMELESS.pop(parameter, None)
            layer = path.partition("/")[0]
            logger.warning(
                "%s: layers without a name share their parameters, got %d in one graph that read %s, one after the other\n"
                "  hint: name=... gives each its own, and says so where they are to share them",
                layer, len(nodes), path,
            )  # fmt: skip


def _depends(order: Sequence[Node], first: Node, others: Sequence[Node]) -> bool:
    """Return whether one of `others` reads what follows from the result of `first`."""
    reached = set(first.storages)
    for node in order[order.index(first) + 1 :]:
        if any(value is not None and value.storage in reached for value in node.inputs):
            if node in others:
                return True
            reached.update(node.storages)
    return False
