"""The common parts of compiling forward and backward passes: reading data, copying it, placing it in memory."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import HOST, Key, Space, SyncedArray, convert
from nn_core.engine.dispatch.given_dtypes import GivenDtypes, given_dtypes
from nn_core.engine.graph.call import PreparedKernel, ResolvedCall, resolved_call
from nn_core.engine.graph.conversion import Conversion
from nn_core.engine.graph.failure import raise_lack_in
from nn_core.engine.graph.infer import input_entries
from nn_core.engine.graph.memory import Buffer, is_contiguous
from nn_core.engine.graph.node import Node, Value
from nn_core.engine.graph.plan import Entry, Plan
from nn_core.engine.graph.uncomputed import is_uncomputed
from nn_core.errors import GraphError
from nn_core.operators.spec.model import ArgValue, FunctionSpec
from nn_core.settings import is_enabled
from nn_core.typing import Array, ArrayDesc, Backend, Runner, Shape, extra


class Operation:
    """A piece of work whose arrays are still symbolic."""

    __slots__ = ("backend", "buffers", "node", "runner")

    def __init__(self, node: Node | None, runner: Runner, buffers: Sequence[Buffer | None], backend: Backend | None) -> None:
        self.node = node
        self.runner = runner
        self.buffers = buffers
        self.backend = backend


class Builder:
    """Collects the operations of a plan, then places their buffers and writes the plan's entries.

    Args:
        plan: The plan.
        as_found: Copies of arrays that the plan does not compute are those of an earlier pass, where they still hold.
        carried: Arrays that are read before the plan computes them anew, see `Plan.carried`.
    """

    def __init__(self, plan: Plan, *, as_found: bool = False, carried: Collection[SyncedArray] = ()) -> None:
        self.plan = plan
        self._as_found = as_found
        self._carried = carried
        #: arrays that an operation has rewritten; a copy of one must not be made before
        self.rewritten: set[SyncedArray] = set()
        self._runs_python = False
        self.operations: list[Operation] = []
        #: the buffer that holds the data of an array, as computed or as found
        self.data: dict[SyncedArray, Buffer] = {}
        self._copies: dict[tuple[SyncedArray, Key, bool], Buffer] = {}
        self._snapshots: dict[tuple[SyncedArray, Key], Buffer] = {}
        self._leaves: set[tuple[SyncedArray, Key]] = set()

    def add(
        self,
        node: Node | None,
        runner: Runner,
        buffers: Sequence[Buffer | None],
        backend: Backend | None = None,
        *,
        strided: bool = False,
    ) -> None:
        """Append an operation on `buffers`; `strided`: it takes arrays of which only the last axis is dense."""
        index = len(self.operations)
        self._runs_python = self._runs_python or (node is not None and node.python is not None)
        for buffer in buffers:
            if buffer is not None:
                buffer.used(index)
                if not strided:
                    buffer.rigid = buffer.root().rigid = True
        self.operations.append(Operation(node, runner, buffers, backend))

    def copy(self, source: Buffer, target: Buffer, backend: Backend | None) -> None:
        """Append a copy that converts the dtype and the layout, by the backend's own kernel if it has one."""
        runner = None
        if source.space is target.space and not source.strided:
            runner = copier(backend, source.desc(), target.desc())
        if runner is None:
            # between spaces, or where the backend has no kernel for this
            runner, backend = Conversion((source.space, source.dtype), (target.space, target.dtype), self.plan.is_exact), None
        self.add(None, runner, (source, target), backend)

    def converted(self, buffer: Buffer, space: Space, dtype: str, backend: Backend | None = None) -> Buffer:
        """`buffer`, or a copy of it in `space` and `dtype`."""
        if buffer.space is space and buffer.dtype == dtype:
            return buffer
        copy = Buffer(buffer.shape, dtype, space)
        copy.channels_last = buffer.channels_last and space is buffer.space
        self.copy(buffer, copy, backend)
        return copy

    def laid_out(
        self, buffer: Buffer, channels_last: bool, backend: Backend | None = None, *, strided: bool = False
    ) -> Buffer:
        """Return `buffer` if its layout is as asked for, or any with `strided`, else a copy in that layout."""
        if buffer.channels_last == channels_last and (strided or not buffer.strided):
            return buffer
        copy = Buffer(buffer.shape, buffer.dtype, buffer.space)
        copy.channels_last = channels_last
        self.copy(buffer, copy, backend)
        return copy

    def read(
        self, array: NdArray, key: Key, contiguous: bool, backend: Backend | None = None, *, strided: bool = False
    ) -> Buffer:
        """Return a buffer with the values of `array` under `key`; converted, transferred or copied by `backend` if need be.

        `strided`: only the last axis has to be dense.
        """
        if not array.is_narrowed:
            return self._read(array.synced, array.shape, key, contiguous, backend, strided)
        # a window is cut out of memory in C order
        whole = self._read(array.synced, array.synced.shape, key, True, backend)
        part = Buffer(array.shape, key[1], key[0])
        self.add(None, NarrowedRead(array), (whole, part))
        return part

    def _read(
        self,
        synced: SyncedArray,
        shape: Shape,
        key: Key,
        contiguous: bool,
        backend: Backend | None = None,
        strided: bool = False,
    ) -> Buffer:
        buffer = self.data.get(synced)
        contiguous = contiguous or shape != synced.shape  # only memory in C order can be seen in another shape
        strided = strided and shape == synced.shape
        if buffer is None:
            buffer = self._snapshot(synced, key) if synced in self._carried else self.leaf(synced, key, backend)
        elif (buffer.space, buffer.dtype) != key or _is_unfit(buffer, contiguous, strided):
            # converted once a pass, however many functions want it so
            copy = self._copies.get((synced, key, contiguous))
            if copy is None:
                copy = Buffer(synced.shape, key[1], key[0])
                copy.channels_last = buffer.channels_last and not contiguous
                self.copy(buffer, copy, backend)
                self._copies[(synced, key, contiguous)] = copy
            buffer = copy
        return buffer if buffer.shape == shape else alias(buffer, shape)

    def leaf(self, synced: SyncedArray, key: Key, backend: Backend | None = None) -> Buffer:
        """Return the data of an array that the plan does not compute, refreshed in each run if it is stored elsewhere."""
        if synced.pending_fill is not None or synced.latest is None:
            # a fill that was only noted has no memory to which a plan could be bound
            synced.read(key, self.plan.is_exact)
        if (synced, key) not in self._leaves:
            self._leaves.add((synced, key))
            # once a pass, however many functions read it
            self.plan.leaves.append((synced, key))
            synced.bound = True
            array = self.plan.leaf_arrays[synced, key] = self._leaf_array(synced, key)
            self._copies[(synced, key, True)] = leaf = Buffer(synced.shape, key[1], key[0], array)
            leaf.slot = synced, key
            if synced.latest != key:
                self._add_copy(synced, key, backend)
        return self._copies[(synced, key, True)]

    def _snapshot(self, synced: SyncedArray, key: Key) -> Buffer:
        """Return the values that an array has before the plan computes it anew: a copy, made at the start of each run."""
        if (synced, key) not in self._snapshots:  # not of `_copies`, which are of the values that the plan computes
            array = key[0].empty(synced.shape, key[1])
            self.plan.refreshes.append(Snapshot(synced, key, array, self.plan.is_exact))
            self._snapshots[(synced, key)] = Buffer(synced.shape, key[1], key[0], array)
        return self._snapshots[(synced, key)]

    def _add_copy(self, synced: SyncedArray, key: Key, backend: Backend | None) -> None:
        """Bring the copy of a leaf under `key` up to date in each run: before all operations if possible."""
        assert synced.latest is not None
        if self._as_found:  # a backward pass reads what the forward pass has read, before anything else is done
            self.plan.refreshes.append(Refresh(synced, key, backend, self.plan.is_exact))
        elif self._runs_python or synced in self.rewritten:  # what was rewritten before has to be copied after
            self.add(None, Refresh(synced, key, backend, self.plan.is_exact), ())
        elif synced.latest[0] is key[0] and key[0] is not HOST:
            array = synced.copies[synced.latest]
            source = Buffer(synced.shape, synced.latest[1], key[0], array)
            self.copy(source, self._copies[(synced, key, True)], backend if is_contiguous(array) else None)
            self.plan.casts.append((synced, key))
        else:
            self.plan.refreshes.append(Refresh(synced, key, backend, self.plan.is_exact))

    @staticmethod
    def _leaf_array(synced: SyncedArray, key: Key) -> Array:
        if synced.latest == key:
            return synced.make_contiguous(key)
        return synced.buffer(key)

    def finish(self) -> None:
        """Give every buffer its memory, in the order of use, and write the entries of the plan."""
        arena, shares = self.plan.arena, is_enabled("share_memory")
        ends = self._ends()
        for index, operation in enumerate(self.operations):
            arrays = self._resolved(index)
            space = _space_of(operation)
            backend = operation.backend or (space.backend if space is not None else None)
            # by the buffer whose memory it is: in another shape it is still the same input of the graph
            slots = tuple([None if buffer is None else buffer.root().slot for buffer in operation.buffers])
            over = ends.get(index, ())
            last = _positions(operation, over) if over else ()
            self.plan.entries.append(Entry(operation.node, operation.runner, arrays, backend, space, slots, last))
            for buffer in over:
                if buffer.block is not None and shares:  # from the next operation on, the memory may be reused
                    arena.give(buffer.block)

    def _resolved(self, index: int) -> tuple[Array | None, ...]:
        """Return the arrays of an operation, for some of which memory is taken."""
        arena = self.plan.arena
        try:
            return tuple([None if buffer is None else buffer.resolve(arena) for buffer in self.operations[index].buffers])
        except MemoryError as error:
            self._raise_lack(index, error)
            raise

    def _raise_lack(self, index: int, error: MemoryError) -> None:
        """Raise the error of an operation whose arrays do not fit, with the name of the function that it is part of."""
        part = self.plan.part if self.operations[index].node is not None else "inputs"
        for operation in self.operations[index:]:  # a copy is made for the next function
            if operation.node is not None:
                raise_lack_in(operation.node, error, part)

    def _ends(self) -> dict[int, list[Buffer]]:
        """Return the buffers that each operation is the last to read; those that are kept are not among them."""
        buffers = [buffer for operation in self.operations for buffer in operation.buffers if buffer is not None]
        ends: dict[int, list[Buffer]] = {}
        for root in dict.fromkeys([buffer.root() for buffer in buffers]):
            if not root.keep:
                ends.setdefault(root.last, []).append(root)
        return ends


def _positions(operation: Operation, buffers: Sequence[Buffer]) -> tuple[int, ...]:
    """Return the positions among the arrays of an operation of those of `buffers` that are placed in the arena."""
    roots = [None if buffer is None else buffer.root() for buffer in operation.buffers]
    return tuple([i for i, root in enumerate(roots) if root is not None and root.block is not None and root in buffers])


def _space_of(operation: Operation) -> Space | None:
    """Return the device in whose memory an operation works; None where the host has a part in it besides giving keys."""
    spaces = {buffer.space for buffer in operation.buffers if buffer is not None}
    if operation.backend is not None:
        spaces.discard(HOST)
    return spaces.pop() if len(spaces) == 1 and HOST not in spaces else None


def alias(buffer: Buffer, shape: Shape) -> Buffer:
    """Return the memory of `buffer` under another shape."""
    view = Buffer(shape, buffer.dtype, buffer.space)
    view.target = buffer
    return view


def found(synced: SyncedArray) -> Buffer | None:
    """Return the data of an array in its present layout in memory, or None when there is none."""
    if synced.cleared or synced.latest is None or synced.pending_fill is not None:
        return None
    space, dtype = synced.latest
    buffer = Buffer(synced.shape, dtype, space, synced.copies[synced.latest])
    buffer.slot = synced, synced.latest
    if not is_contiguous(buffer.array):
        buffer.strided = synced.lease is not None and synced.lease.shared
        buffer.channels_last = not buffer.strided
    return buffer


def _is_unfit(buffer: Buffer, contiguous: bool, strided: bool) -> bool:
    """Return whether a reader that takes C order, or memory of which only the last axis is dense, has to get a copy."""
    return (contiguous and buffer.channels_last) or (buffer.strided and not strided)


def kernel_of(node: Node, dtypes: Mapping[SyncedArray, str]) -> PreparedKernel:
    """Return the kernel of `node`; `dtypes` says what arrays that the plan computes will hold.

    Whole numbers that need a gradient are read as floating-point numbers, so that the gradient is one too.
    """
    shapes = tuple([None if value is None else value.storage.data.shape for value in node.inputs])
    call = node.setup
    # what the caller gave serves for the shapes that it was given for; and what a node holds may have been forgotten since
    known = isinstance(call, ResolvedCall) and call.shapes == shapes
    call = resolved_call(node.spec, call.given if known else node.args, shapes)
    given: GivenDtypes = ()
    if call.takes_given:
        floating = node.context.dtype if node.spec.differentiable else None
        held = [None if value is None else _dtype_read(value, dtypes, floating) for value in node.inputs]
        given = given_dtypes(input_entries(node.spec, len(shapes)), held)
    node.kernel = call.kernel(node.context, given)
    return node.kernel


def _dtype_read(value: Value, dtypes: Mapping[SyncedArray, str], floating: str | None) -> str:
    synced = value.storage.data.synced
    dtype = dtypes.get(synced) or synced.dtype
    return floating if floating and value.need_grad and dtype_of(dtype).kind in "iub" else dtype


def is_view(node: Node) -> bool:
    """Return whether the output of `node` is the memory of its input."""
    return (
        node.spec.has("view")
        and node.python is None
        and node.inputs[0] is not None
        and node.storages[0].data.synced is node.inputs[0].storage.data.synced
        and not node.inputs[0].storage.data.is_narrowed
    )


def holds_places(value: Value) -> bool:
    """Return whether a value holds places of extrema, as that of `max(x, only_index=True)`, in whatever shape."""
    node = value.producer
    while node is not None and is_view(node) and node.inputs[0] is not None:
        value = node.inputs[0]
        node = value.producer
    if node is None or not node.spec.has("copied_index"):
        return False
    return bool(node.args.get("only_index")) or node.spec.outputs[value.output_index].name == "index"


def needed_data(node: Node) -> tuple[list[bool], list[bool]]:
    """Of which inputs and which outputs the gradient of `node` reads the data."""
    if node.python is not None:
        return [True] * len(node.inputs), [True] * len(node.storages)
    return data_read(node.spec, node.args, len(node.inputs), len(node.storages))


def data_read(
    spec: FunctionSpec, args: Mapping[str, ArgValue], n_inputs: int, n_outputs: int
) -> tuple[list[bool], list[bool]]:
    """Of which of so many inputs and outputs the gradient of a function reads the data."""
    needs, inputs, outputs = spec.needed(args), spec.inputs, spec.outputs
    return (
        [inputs[min(i, len(inputs) - 1)].name in needs for i in range(n_inputs)],
        [outputs[min(i, len(outputs) - 1)].name in needs for i in range(n_outputs)],
    )


def held_by_sinks(order: Iterable[Node]) -> set[SyncedArray]:
    """Arrays of the ends of a graph that a sink holds together: they are results too."""
    return {value.storage.data.synced for node in order if node.spec.has("sink") for value in node.inputs if value is not None}


def require_alive(node: Node, synced: SyncedArray) -> None:
    """Refuse a backward pass whose data the forward pass did not keep."""
    if synced.cleared:
        raise GraphError(
            f"backward: the gradient of {node.spec.api} needs data of shape {synced.shape} of the forward pass, "
            "got data whose memory was reused\n"
            "  hint: run forward(clear_no_need_grad=True), not forward(clear_buffer=True), before each backward"
        )


def require_computed(node: Node, synced: SyncedArray) -> None:
    """Refuse a backward pass that reads an output of a function that has not run."""
    if is_uncomputed(synced):
        raise GraphError(
            f"backward: what a gradient reads must be computed first, got the output of {node!r}, which has not run\n"
            "  hint: call forward() before backward()"
        )


def assign(target: Array, source: Array) -> None:
    """Runner that copies one raw array over another."""
    target[...] = source


class NarrowedRead:
    """Runner that copies what a narrowed array shows of its memory."""

    __slots__ = ("_array",)

    def __init__(self, array: NdArray) -> None:
        self._array = array

    def __call__(self, *arrays: Array) -> None:
        whole, part = arrays
        part[...] = self._array.present(whole)


class Refresh:
    """Runner that brings the copy of a variable's array under `key` up to date with the latest copy.

    The copy is made anew as long as somebody else holds the latest one, who may have written to it.
    """

    __slots__ = ("_copy", "_exact", "_key", "_latest", "synced")

    def __init__(self, synced: SyncedArray, key: Key, backend: Backend | None, exact: bool) -> None:
        self.synced = synced
        self._key = key
        self._exact = exact
        self._latest = synced.latest
        self._copy: Runner | None = None
        if self._latest is not None and self._latest[0] is key[0] and is_contiguous(synced.copies[self._latest]):
            shape = synced.shape
            self._copy = copier(backend, ArrayDesc(shape, self._latest[1]), ArrayDesc(shape, key[1]))

    def __call__(self, *arrays: Array) -> None:
        synced, key = self.synced, self._key
        latest = synced.latest
        if latest is None or latest == key:
            return
        if key in synced.valid and not synced.is_exported(latest):
            return
        source, target = synced.copies[latest], synced.copies[key]
        # the kernel was made for a source in this dtype, in C order
        if self._copy is not None and latest == self._latest and is_contiguous(source):
            self._copy(source, target)
        else:
            convert(latest, source, key, target, self._exact)
        if not synced.is_exported(latest):  # else the copy may be old as soon as the view is given up
            synced.valid.add(key)


class Snapshot:
    """Runner that copies the present values of an array elsewhere."""

    __slots__ = ("_array", "_exact", "_key", "synced")

    def __init__(self, synced: SyncedArray, key: Key, array: Array, exact: bool) -> None:
        self.synced = synced
        self._key = key
        self._array = array
        self._exact = exact

    def __call__(self) -> None:
        latest = self.synced.latest
        assert latest is not None
        convert(latest, self.synced.copies[latest], self._key, self._array, self._exact)


def copier(backend: Backend | None, source: ArrayDesc, target: ArrayDesc) -> Runner | None:
    """Return a kernel of `backend` that copies one array over another and converts it, if it offers one."""
    offer = extra(backend, "copier")
    runner: Runner | None = None if offer is None else offer(source, target)
    return runner


def key_of(node: Node) -> Array:
    """Return the array for the random key of a seeded node; compiling draws none, so that plans can be dropped and rebuilt."""
    if node.key is None:  # plans bind this array: it is made once, and its numbers are replaced in place
        node.key = np.zeros(2, np.uint64)
    return node.key


def new_key(node: Node, draw: Any) -> None:
    """Give a seeded node the numbers of its next run."""
    key_of(node)
    seed = node.args.get("seed", -1)
    if isinstance(seed, int) and seed >= 0:
        node.key[0] = seed
        # in place, since plans are bound to the array
        node.key[1] += np.uint64(1)
    else:
        node.key[0], node.key[1] = draw()
