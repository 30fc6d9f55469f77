"""Numbers in a graph that equal the batch: constants that may have been meant as lengths."""

from collections.abc import Iterator, Sequence
from typing import Any

from nn_core.engine.graph.lengths import KINDS
from nn_core.engine.graph.node import Node, Value, forward_order


def constants_like_the_batch(value: object) -> list[str]:
    """Return settings in the graph of `value` that equal the length of the first axis of an input, or its reciprocal.

    Lengths that follow the input, and a batch of 1, which equals too much, are left out. Inputs are the leaves that need no
    gradient.
    """
    if not isinstance(value, Value):
        return []
    order = forward_order((value,))
    batches = _batches(order)
    rebuilt = _built_again(order)
    found = dict.fromkeys(text for node in order for text in _settings_like(node, batches) if node not in rebuilt)
    if not found:
        return []
    note = (
        f"constants that equal the first axis of an input, and stay when it changes: {', '.join(found)}\n"
        "  hint: a length that is read, such as x.shape[0], follows the input; int(n), NumPy and range make it a constant"
    )
    return [note]


def _batches(order: Sequence[Node]) -> set[int]:
    """Return the lengths of the first axes of the leaves that need no gradient, without those that equal too much."""
    leaves = [leaf for node in order for leaf in node.inputs if leaf is not None and leaf.is_leaf and not leaf.need_grad]
    return {leaf.plain_shape[0] for leaf in leaves if leaf.plain_shape} - {0, 1}


def _built_again(order: Sequence[Node]) -> set[Node]:
    """Return the functions of parts that are built again for other shapes, such as gradients: their numbers follow."""
    rebuilt: set[Node] = set()
    for node in order:
        if node.derivation is not None:
            inputs = [value for value in node.inputs if value is not None]
            rebuilt |= {node, *forward_order(inputs)} - set(forward_order(node.derivation.sources))
    return rebuilt


def _settings_like(node: Node, batches: set[int]) -> Iterator[str]:
    given = getattr(node.setup, "given", {})
    for name, plain in given.items():
        if isinstance(plain, (bool, str)):
            continue
        setting = node.setup.lengths.get(name, plain)
        listed = isinstance(setting, (tuple, list))
        for place, number in enumerate(setting if listed else [setting]):
            text = "" if type(number) in KINDS else _likeness(number, batches)
            if text:
                yield f"{node.spec.api} {name}{f'[{place}]' if listed else ''} = {text}"


def _likeness(number: Any, batches: set[int]) -> str:
    """Return the number as text if it equals a batch, or 1 / n if that is what it is; else nothing."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return ""
    if number in batches:
        return f"{number:g}"
    return next((f"1 / {batch}" for batch in batches if number == 1 / batch), "")
