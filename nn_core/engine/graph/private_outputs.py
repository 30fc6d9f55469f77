"""Private outputs: whether they still belong to the inputs that the backward pass is going to read.

A kernel may keep sums or states in an output that is `private` to it, and its gradient goes on from these. They fit the inputs
of the forward pass only: the gradient of attention with the sum of other scores is off by factors of any size. So each forward
pass notes which values a function with such an output has read, and the backward pass computes the function again where one of
its inputs may have been written since.
"""

import zlib
from collections.abc import Iterable, Sequence

import numpy as np

from nn_core.engine.arrays.synced import GRAPH_VERSION, HOST, SyncedArray
from nn_core.engine.graph.node import Node, Storage, Value


class InputVersion:
    """The values of the inputs of a function when a forward pass computed it.

    Args:
        storages: Of the inputs; in place of an input that the backward pass computes again, of what it follows from.
    """

    __slots__ = ("_arrays", "_checksums", "_graph_version", "_modifications", "_storages")

    def __init__(self, storages: Sequence[Storage]) -> None:
        self._storages = storages
        self._arrays = [storage.data.synced for storage in storages]
        self.note()

    def note(self) -> None:
        """Take what the arrays hold now for what the function has read."""
        # Hot: each pass of a plan, for each function with private outputs. The counts only grow, so their sum tells
        modifications, checksums = 0, None
        for synced in self._arrays:
            modifications += synced.modifications
            if synced.exported is not None and _is_viewed(synced):
                checksums = True
        self._modifications = modifications
        # through a view that a program holds, it may write unseen; a new view counts as a modification
        self._checksums = None if checksums is None else self._checksums_now()
        self._graph_version = GRAPH_VERSION.value

    def is_present(self) -> bool:
        """Return whether the inputs hold these values for certain."""
        modifications = 0
        for synced in self._arrays:
            modifications += synced.modifications
        if modifications != self._modifications:
            return False
        if self._graph_version != GRAPH_VERSION.value and not self._has_same_arrays():
            return False
        return self._checksums is None or self._checksums == self._checksums_now()

    def _has_same_arrays(self) -> bool:
        for storage, synced in zip(self._storages, self._arrays):  # noqa: B905  # of one length, and asked in many passes
            if storage.data.synced is not synced:
                return False
        self._graph_version = GRAPH_VERSION.value  # no need to look again until the next change
        return True

    def _checksums_now(self) -> list[object]:
        return [_checksum(synced) if _is_viewed(synced) else None for synced in self._arrays]


def has_private_outputs(node: Node) -> bool:
    """Return whether the kernel of a function keeps something for its own gradient."""
    return node.python is None and any(entry.private for entry in node.spec.outputs)


def private_arrays(node: Node) -> list[SyncedArray]:
    """Return the arrays of the private outputs of a function."""
    entries = node.setup.output_entries
    return [storage.data.synced for storage, entry in zip(node.storages, entries, strict=True) if entry.private]


def versions_in(order: Iterable[Node]) -> list[tuple[Node, InputVersion]]:
    """Return the functions with private outputs among `order`, each with the present version of its inputs."""
    return [(node, InputVersion(_sources(node))) for node in order if has_private_outputs(node)]


def _sources(node: Node) -> list[Storage]:
    """Return the storages of the inputs, and those from which the backward pass computes some of the inputs again."""
    found: dict[Storage, None] = {}
    seen: set[Node] = set()
    stack = list(node.inputs)
    while stack:
        value = stack.pop()
        if value is None:
            continue
        found[value.storage] = None
        producer = value.producer
        if producer is not None and producer not in seen and (value.recompute or producer.spec.has("view")):
            seen.add(producer)
            stack.extend(producer.inputs)
    return list(found)


def note_inputs(node: Node) -> None:
    """Note that a function with private outputs has been computed from what its inputs hold now."""
    # a function that is computed as it is called keeps its inputs: none is computed again
    node.computed_from = InputVersion([value.storage for value in node.inputs if value is not None])


def outdated_among(parts: Iterable[Node | Value]) -> tuple[Node, ...]:
    """Return the functions whose private outputs may not belong to their inputs any more."""
    # a lazy value is of a function with a single output: it has no private ones
    return tuple(
        [part for part in parts if isinstance(part, Node) and part.computed_from and not part.computed_from.is_present()]
    )


def _is_viewed(synced: SyncedArray) -> bool:
    return any(synced.is_exported(key) for key in synced.exported or ())


def _checksum(synced: SyncedArray) -> object:
    """Return a number that follows from the values; on a device, where none is at hand, something that equals nothing else."""
    if synced.latest is None or synced.latest[0] is not HOST or synced.pending_fill is not None:
        return object()
    values = np.ascontiguousarray(synced.copies[synced.latest])
    return zlib.crc32(values.reshape(-1).view(np.uint8).data)
