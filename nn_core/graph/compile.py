"""What compiling a forward and a backward pass have in common: reading data, copying it, placing it in memory."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from nn_core.errors import GraphError
from nn_core.graph.execute import Prepared, is_contiguous, prepare
from nn_core.graph.memory import Buffer
from nn_core.graph.node import Node, Vertex
from nn_core.graph.plan import Entry, Plan
from nn_core.settings import is_enabled
from nn_core.synced import HOST, Key, Space, SyncedArray, convert
from nn_core.typing import Array, ArrayDesc, Backend, Runner, Shape


class Operation:
    """A piece of work whose arrays are still symbolic."""

    __slots__ = ("backend", "buffers", "node", "runner")

    def __init__(
        self, node: Node | None, runner: Runner, buffers: Sequence[Buffer | None], backend: Backend | None
    ) -> None:
        self.node = node
        self.runner = runner
        self.buffers = buffers
        self.backend = backend


class Builder:
    """Collects the operations of a plan, then places their buffers and writes the plan's entries.

    Args:
        plan: The plan.
        as_found: Copies of arrays that the plan does not compute are those of an earlier pass, where they still hold.
    """

    def __init__(self, plan: Plan, *, as_found: bool = False) -> None:
        self.plan = plan
        self._as_found = as_found
        #: arrays that an operation has rewritten; a copy of one must not be made before
        self.rewritten: set[SyncedArray] = set()
        self._runs_python = False
        self.operations: list[Operation] = []
        #: the buffer that holds the data of an array, as computed or as found
        self.data: dict[SyncedArray, Buffer] = {}
        self._copies: dict[tuple[SyncedArray, Key, bool], Buffer] = {}
        self._leaves: set[tuple[SyncedArray, Key]] = set()

    def add(
        self, node: Node | None, runner: Runner, buffers: Sequence[Buffer | None], backend: Backend | None = None
    ) -> None:
        """Append an operation on `buffers`."""
        index = len(self.operations)
        self._runs_python = self._runs_python or (node is not None and node.python is not None)
        for buffer in buffers:
            if buffer is not None:
                buffer.used(index)
        self.operations.append(Operation(node, runner, buffers, backend))

    def copy(self, source: Buffer, target: Buffer, backend: Backend | None) -> None:
        """Append a copy that converts the dtype and the layout, by the backend's own kernel if it has one."""
        runner = None
        if source.space is target.space:
            runner = copier(backend, source.desc(), target.desc())
        if runner is None:
            runner, backend = _Copy((source.space, source.dtype), (target.space, target.dtype)), None
        self.add(None, runner, (source, target), backend)

    def read(
        self, synced: SyncedArray, shape: Shape, key: Key, contiguous: bool, backend: Backend | None = None
    ) -> Buffer:
        """A buffer with the data of `synced` under `key`; converted, transferred or copied by `backend` if need be."""
        buffer = self.data.get(synced)
        if buffer is None:
            buffer = self.leaf(synced, key, backend)
        elif (buffer.space, buffer.dtype) != key or (contiguous and buffer.channels_last):
            copy = self._copies.get((synced, key, contiguous))
            if copy is None:
                copy = Buffer(synced.shape, key[1], key[0])
                copy.channels_last = buffer.channels_last and not contiguous
                self.copy(buffer, copy, backend)
                self._copies[(synced, key, contiguous)] = copy
            buffer = copy
        return buffer if buffer.shape == shape else alias(buffer, shape)

    def leaf(self, synced: SyncedArray, key: Key, backend: Backend | None = None) -> Buffer:
        """The data of an array that the plan does not compute, refreshed at each run if it lies elsewhere."""
        if synced.lazy is not None or synced.head is None:
            synced.read(key)
        if (synced, key) not in self._leaves:
            self._leaves.add((synced, key))
            self.plan.leaves.append((synced, key))
            synced.bound = True
            self._copies[(synced, key, True)] = Buffer(synced.shape, key[1], key[0], self._leaf_array(synced, key))
            if synced.head != key:
                self._add_copy(synced, key, backend)
        return self._copies[(synced, key, True)]

    def _add_copy(self, synced: SyncedArray, key: Key, backend: Backend | None) -> None:
        """Bring the copy of a leaf under `key` up to date in each run: before all operations if possible."""
        assert synced.head is not None
        if self._as_found:
            self.plan.found.append((synced, key))
        elif self._runs_python or synced in self.rewritten:
            self.add(None, Refresh(synced, key, backend), ())
        elif synced.head[0] is key[0] and key[0] is not HOST:
            source = Buffer(synced.shape, synced.head[1], key[0], synced.copies[synced.head])
            self.add(None, _Copy(synced.head, key), (source, self._copies[(synced, key, True)]))
            self.plan.casts.append((synced, key))
        else:
            self.plan.refreshes.append(Refresh(synced, key, backend))

    @staticmethod
    def _leaf_array(synced: SyncedArray, key: Key) -> Array:
        if synced.head == key:
            return synced.settle(key)
        return synced.buffer(key)

    def finish(self) -> None:
        """Give every buffer its memory, in the order of use, and write the entries of the plan."""
        arena, shares = self.plan.arena, is_enabled("share_memory")
        ends: dict[int, list[Buffer]] = {}
        seen: set[Buffer] = set()
        for operation in self.operations:
            for buffer in operation.buffers:
                if buffer is not None and (root := buffer.root()) not in seen:
                    seen.add(root)
                    if not root.keep:
                        ends.setdefault(root.last, []).append(root)
        for index, operation in enumerate(self.operations):
            arrays = tuple([None if buffer is None else buffer.resolve(arena) for buffer in operation.buffers])
            space = _space_of(operation)
            backend = operation.backend or (space.backend if space is not None else None)
            self.plan.entries.append(Entry(operation.node, operation.runner, arrays, backend, space))
            for buffer in ends.get(index, ()):
                if buffer.block is not None and shares:
                    arena.give(buffer.block)


def _space_of(operation: Operation) -> Space | None:
    """The device in whose memory an operation works; None where the host has a part in it besides giving keys."""
    spaces = {buffer.space for buffer in operation.buffers if buffer is not None}
    if operation.backend is not None:
        spaces.discard(HOST)
    return spaces.pop() if len(spaces) == 1 and HOST not in spaces else None


def alias(buffer: Buffer, shape: Shape) -> Buffer:
    """The memory of `buffer` under another shape."""
    view = Buffer(shape, buffer.dtype, buffer.space)
    view.target = buffer
    return view


def found(synced: SyncedArray) -> Buffer | None:
    """The data of an array as it lies in memory now, or None when there is none."""
    if synced.cleared or synced.head is None or synced.lazy is not None:
        return None
    space, dtype = synced.head
    buffer = Buffer(synced.shape, dtype, space, synced.copies[synced.head])
    buffer.channels_last = not is_contiguous(buffer.array)
    return buffer


def prepared_of(node: Node, dtypes: dict[SyncedArray, str]) -> Prepared:
    """The kernel of `node`; `dtypes` says what arrays that the plan computes will hold."""
    shapes = tuple([None if vertex is None else vertex.cell.data._shape for vertex in node.inputs])
    same: tuple[str | None, ...] = (None,) * len(shapes)
    if any(entry.dtype == "same" for entry in node.spec.inputs):
        same = tuple(
            None if vertex is None else dtypes.get(vertex.cell.data._synced) or vertex.cell.data._synced.dtype
            for vertex in node.inputs
        )
    node.prepared = prepare(node.spec, node.args, shapes, same, node.context)
    return node.prepared


def is_view(node: Node) -> bool:
    """Whether the output of `node` is the memory of its input."""
    return (
        node.spec.has("view")
        and node.python is None
        and node.inputs[0] is not None
        and node.cells[0].data._synced is node.inputs[0].cell.data._synced
    )


def needed_data(node: Node) -> tuple[list[bool], list[bool]]:
    """Of which inputs and which outputs the gradient of `node` reads the data."""
    if node.python is not None:
        return [True] * len(node.inputs), [True] * len(node.cells)
    needs = node.spec.backward.needs
    inputs, outputs = node.spec.inputs, node.spec.outputs
    return (
        [inputs[min(i, len(inputs) - 1)].name in needs for i in range(len(node.inputs))],
        [outputs[min(i, len(outputs) - 1)].name in needs for i in range(len(node.cells))],
    )


def require_alive(node: Node, synced: SyncedArray) -> None:
    """Refuse a backward pass whose data the forward pass did not keep."""
    if synced.cleared:
        raise GraphError(
            f"backward: the gradient of {node.spec.api} needs data of shape {synced.shape} of the forward pass, "
            "got data whose memory was reused\n"
            "  hint: run forward(clear_no_need_grad=True), not forward(clear_buffer=True), before each backward"
        )


def output_vertices(node: Node) -> list[Vertex | None]:
    """The vertices that hold the outputs, None where nobody does."""
    return [node.output(index) for index in range(len(node.cells))]


def assign(target: Array, source: Array) -> None:
    """Runner that copies one raw array over another."""
    target[...] = source


class _Copy:
    """Runner that converts one raw array into another."""

    __slots__ = ("_source", "_target")

    def __init__(self, source: Key, target: Key) -> None:
        self._source = source
        self._target = target

    def __call__(self, *arrays: Array) -> None:
        source, target = arrays
        if self._source[0] is HOST and self._target[0] is HOST:
            np.copyto(target, source, casting="unsafe")
        elif self._source[0] is self._target[0]:
            target[...] = source
        else:
            convert(self._source, source, self._target, target)


class Refresh:
    """Runner that brings the copy of a variable's array under `key` up to date with its head.

    A copy of an array of the host is made anew as long as somebody holds that array, who may have written to it.
    """

    __slots__ = ("_copy", "_head", "_key", "synced")

    def __init__(self, synced: SyncedArray, key: Key, backend: Backend | None = None) -> None:
        self.synced = synced
        self._key = key
        self._head = synced.head
        self._copy: Runner | None = None
        if self._head is not None and self._head[0] is key[0] and is_contiguous(synced.copies[self._head]):
            shape = synced.shape
            self._copy = copier(backend, ArrayDesc(shape, self._head[1]), ArrayDesc(shape, key[1]))

    def __call__(self, *arrays: Array) -> None:
        synced, key = self.synced, self._key
        head = synced.head
        if head is None or head == key:
            return
        if key in synced.valid and (head[0] is not HOST or not synced.is_lent(head)):
            return
        source, target = synced.copies[head], synced.copies[key]
        if self._copy is not None and head == self._head and is_contiguous(source):
            self._copy(source, target)
        else:
            convert(head, source, key, target)
        synced.valid.add(key)


def copier(backend: Backend | None, source: ArrayDesc, target: ArrayDesc) -> Runner | None:
    """A kernel of `backend` that copies one array over another and converts it, if it offers one."""
    offer = getattr(backend, "copier", None)
    return None if offer is None else cast("Runner | None", offer(source, target))


def new_key(node: Node, draw: Any) -> None:
    """Give a seeded node the numbers of its next run."""
    if node.key is None:
        node.key = np.zeros(2, np.uint64)
    seed = node.args.get("seed", -1)
    if isinstance(seed, int) and seed >= 0:
        node.key[0] = seed
        node.key[1] += np.uint64(1)
    else:
        node.key[0], node.key[1] = draw()
