"""Masks of attention that functions of static graphs add to scores: those that become boolean after the call are refused."""

import weakref
from collections.abc import Mapping
from typing import Final

from nn_core.engine.arrays.synced import SyncedArray
from nn_core.engine.graph.memory import Buffer
from nn_core.engine.graph.node import Node, Value
from nn_core.errors import GraphError

#: Functions that read a mask which a composite function took for numbers: its name, and the position of the mask.
NUMERIC: Final["weakref.WeakKeyDictionary[Node, tuple[str, int]]"] = weakref.WeakKeyDictionary()


def expect_numbers(result: Value, function: str, position: int) -> None:
    """Note that the input of the function behind `result` at this position is a mask that `function` took for numbers.

    Functions that were computed at once have read it already.
    """
    if result.trace_node is None and result.producer is not None:
        NUMERIC[result.producer] = function, position


def require_numbers(node: Node, computed: Mapping[SyncedArray, Buffer]) -> None:
    """Refuse a function that reads a boolean mask, which it would add as 1 and 0.

    Args:
        node: The function; most have no mask.
        computed: Arrays that functions before it compute.

    Raises:
        GraphError: when the mask has become boolean since the call, or another function gives a boolean one.
    """
    function, value = _mask_of(node)
    if value is None:
        return
    array = value.storage.data
    buffer = computed.get(array.synced)
    if (array.synced.dtype if buffer is None else buffer.dtype) == "bool":
        raise GraphError(
            f"{function}: a mask that was not known to be boolean when the function was called must hold numbers, "
            f"got booleans of shape {value.plain_shape}\n  hint: write them to the mask before the call, or numbers: "
            "F.log(mask), or np.where(mask, 0, -np.inf)"
        )


def _mask_of(node: Node) -> tuple[str, Value | None]:
    """Return the name of what the user called, and the mask that must hold numbers; None where there is no such mask."""
    if NUMERIC and node in NUMERIC:
        function, position = NUMERIC[node]
        return function, node.inputs[position]
    if not node.spec.has("numeric_mask"):
        return node.spec.api, None
    return node.spec.api, node.inputs[[entry.name for entry in node.spec.inputs].index("mask")]
