"""Kinds of masks of attention: booleans say what is seen, numbers are added. The call decides, and a graph keeps to it."""

import weakref
from collections.abc import Mapping
from typing import Final

from nn_core.engine.arrays.synced import SyncedArray
from nn_core.engine.graph.memory import Buffer
from nn_core.engine.graph.node import Node, Value
from nn_core.errors import GraphError

#: Functions that read a mask in place of a composite function: its name, the position of the mask, and whether it is boolean.
_KNOWN: Final["weakref.WeakKeyDictionary[Node, tuple[str, int, bool]]"] = weakref.WeakKeyDictionary()


def expect_kind(result: Value, function: str, position: int, *, is_boolean: bool) -> None:
    """Note that the input of the function behind `result` at this position is a mask that `function` took for one kind.

    Functions that were computed at once have read it already.
    """
    if result.trace_node is None and result.producer is not None:
        _KNOWN[result.producer] = function, position, is_boolean


def require_kind(node: Node, computed: Mapping[SyncedArray, Buffer]) -> None:
    """Refuse a function that reads a mask of another kind than the call has found: it would be read as something else.

    Args:
        node: The function; most have no mask.
        computed: Arrays that functions before it compute.

    Raises:
        GraphError: when the mask has become boolean since the call, or is no longer, or another function gives a boolean one.
    """
    function, value, expects_booleans = _mask_of(node)
    if value is None:
        return
    array = value.storage.data
    buffer = computed.get(array.synced)
    dtype = array.synced.dtype if buffer is None else buffer.dtype
    if (dtype == "bool") == expects_booleans:
        return
    if expects_booleans:
        raise GraphError(
            f"{function}: a mask that was boolean when the function was called must stay so, got {dtype} of shape "
            f"{value.plain_shape}\n  hint: write booleans to it, or call the function anew for numbers that are added"
        )
    raise GraphError(
        f"{function}: a mask that was not known to be boolean when the function was called must hold numbers, "
        f"got booleans of shape {value.plain_shape}\n  hint: write them to the mask before the call, or numbers: "
        "F.log(mask), or np.where(mask, 0, -np.inf)"
    )


def _mask_of(node: Node) -> tuple[str, Value | None, bool]:
    """Return the name of what the user called, its mask, and whether that is boolean; None where there is no such mask."""
    if _KNOWN and node in _KNOWN:
        function, position, is_boolean = _KNOWN[node]
        return function, node.inputs[position], is_boolean
    if not node.spec.has("numeric_mask"):
        return node.spec.api, None, False
    return node.spec.api, node.inputs[[entry.name for entry in node.spec.inputs].index("mask")], False
