"""Functions that only arrange elements, and need no copy: what they read and make is shown in the memory of each other.

Possible where everybody who reads or makes the array that is shown takes memory of which only the last axis is dense (see
`strided` of `KernelExtras`). Either the results are shown in the memory of the input, or the input in that of the result.
Nobody writes to either: functions make their results in memory of their own, and who changes an array in place is given a
copy (`SyncedArray.readwrite`).
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from nn_core.engine.arrays.synced import SyncedArray
from nn_core.engine.graph.call import PreparedKernel
from nn_core.engine.graph.compile import Builder, alias, is_view, kernel_of
from nn_core.engine.graph.memory import Buffer
from nn_core.engine.graph.node import Node
from nn_core.operators.rules.arrangements import ARRANGEMENTS, Arrangement, View
from nn_core.settings import is_enabled


def arrangement_of(node: Node) -> Arrangement | None:
    """Return how the function arranges elements; None if it does something else."""
    make = ARRANGEMENTS.get(node.spec.name) if node.python is None else None
    return None if make is None or not is_enabled("share_memory") else make(node.setup.args, len(node.storages))


def show_parts(whole: Buffer, parts: Sequence[Buffer], arrangement: Arrangement) -> bool:
    """Show each of `parts` in `whole`, if their last axes are dense then."""
    return len(parts) == len(arrangement.parts) and _show(parts, whole, arrangement.parts)


def show_whole(whole: Buffer, part: Buffer, arrangement: Arrangement) -> bool:
    """Show the input of a function in its only result, if its last axis is dense then."""
    return arrangement.whole is not None and _show([whole], part, [arrangement.whole])


def _show(buffers: Sequence[Buffer], memory: Buffer, views: Sequence[View]) -> bool:
    for buffer, view in zip(buffers, views, strict=True):
        buffer.show_in(memory, view)
    if all(_is_dense(shown.sketch()) for buffer in buffers for shown in _all_in(buffer)):
        return True
    for buffer in buffers:
        buffer.stand_alone()
    return False


def _all_in(buffer: Buffer) -> Iterator[Buffer]:
    """Yield the buffer, and all that are shown in it."""
    yield buffer
    for shown in buffer.shown_by:
        yield from _all_in(shown)


def _is_dense(sketch: Any) -> bool:
    """Return whether the last axis is dense; strides count elements."""
    return bool(sketch.ndim and (sketch.shape[-1] == 1 or sketch.strides[-1] == 1))


class Outlook:
    """The readers of the arrays of a forward pass.

    Args:
        functions: The functions of the pass.
        pinned: Arrays that must be in C order.
        survivors: Arrays that are seen after the pass.
    """

    def __init__(self, functions: Sequence[Node], pinned: Collection[SyncedArray], survivors: Collection[SyncedArray]) -> None:
        self._readers: dict[SyncedArray, list[Node]] = {}
        made = Counter(storage.data.synced for node in functions if not is_view(node) for storage in node.storages)
        self._alone = {*survivors, *(synced for synced, number in made.items() if number > 1)}
        self._in_order = set(pinned)
        for node in functions:
            self._alone.update(value.storage.data.synced for value in node.rewritten())
            self._alone.update(_computed_again(node))
            for value in node.inputs:
                if value is not None:
                    self._readers.setdefault(value.storage.data.synced, []).append(node)
        self._known: dict[Node, bool] = {}

    def shows(self, builder: Builder, node: Node, kernel: PreparedKernel) -> bool:
        """Let the results of a function that arranges elements be shown in its input, or that in them, if possible."""
        arrangement = arrangement_of(node)
        source = None if arrangement is None else _source_of(builder, node, kernel)
        if arrangement is None or source is None:
            return False
        results = [Buffer(storage.data.shape, source.dtype, source.space) for storage in node.storages]
        done = False
        if not self._alone.intersection(_arrays_of(node)):
            done = self._show(node, source, results, arrangement)
        for storage, result in zip(node.storages, results, strict=True):
            if done:
                builder.data[storage.data.synced] = result
        return done

    def _show(self, node: Node, source: Buffer, results: Sequence[Buffer], arrangement: Arrangement) -> bool:
        if self._may_show(node):
            return show_parts(source, results, arrangement)
        synced, *_ = _arrays_of(node)
        return source.is_movable and self._is_read_strided(synced, node) and show_whole(source, results[0], arrangement)

    def _may_show(self, node: Node) -> bool:
        """Return whether all who read the results of a function take them in any order."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = all(self._is_read_strided(storage.data.synced, None) for storage in node.storages)
        return known

    def _is_read_strided(self, synced: SyncedArray, besides: Node | None) -> bool:
        """Return whether an array may be shown in any order to all its readers but one."""
        readers = self._readers.get(synced, [])
        if synced in self._alone or synced in self._in_order or not readers:
            return False
        return all(reader is besides or self._reads_strided(reader, synced) for reader in readers)

    def _reads_strided(self, reader: Node, synced: SyncedArray) -> bool:
        if reader.python is not None or is_view(reader):
            return False
        values = [value for value in reader.inputs if value is not None and value.storage.data.synced is synced]
        if any(value.storage.data.shape != synced.shape or value.storage.data.is_narrowed for value in values):
            return False
        return self._may_show(reader) if arrangement_of(reader) is not None else kernel_of(reader, {}).strided


def _arrays_of(node: Node) -> list[SyncedArray]:
    """Return the input and the results of a function that arranges elements."""
    inputs = [value.storage.data.synced for value in node.inputs if value is not None]
    return [*inputs, *(storage.data.synced for storage in node.storages)]


def _computed_again(node: Node) -> list[SyncedArray]:
    """Results that the backward pass computes again."""
    values = [node.output(index) for index in range(len(node.storages))]
    pairs = zip(node.storages, values, strict=True)
    return [storage.data.synced for storage, value in pairs if value is not None and value.recompute]


def _source_of(builder: Builder, node: Node, kernel: PreparedKernel) -> Buffer | None:
    """Return the input of a function, if the pass computes it in the memory and the dtype in which the results are wanted."""
    value, key = node.inputs[0], kernel.input_keys[0]
    if value is None or value.storage.data.is_narrowed or any(own != key for own in kernel.output_keys):
        return None
    array = value.storage.data
    buffer = builder.data.get(array.synced)
    if buffer is None or (buffer.space, buffer.dtype) != key or not _is_made(buffer):
        return None
    if buffer.shape == array.shape:
        return buffer
    return None if buffer.strided else alias(buffer, array.shape)


def _is_made(buffer: Buffer) -> bool:
    """Return whether it is in memory of the pass, and not channels-last."""
    root = buffer.root()
    return root.array is None and root.slot is None and not buffer.channels_last
