"""The data of the forward pass that a backward pass reads; what was dropped on purpose is computed again."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from nn_core.engine.arrays.leases import STRIDED
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import HOST, SyncedArray, ready
from nn_core.engine.graph.call import PreparedKernel
from nn_core.engine.graph.compile import (
    Builder,
    found,
    held_by_sinks,
    is_view,
    kernel_of,
    require_alive,
    require_computed,
)
from nn_core.engine.graph.failure import note_partial_sums
from nn_core.engine.graph.forward import KEEP_ALL, ForwardPlan, emit_forward
from nn_core.engine.graph.memory import Buffer, is_contiguous
from nn_core.engine.graph.node import Node, Storage, Value
from nn_core.engine.graph.plan import Binding, Plan
from nn_core.engine.graph.private_outputs import private_arrays
from nn_core.typing import Backend


class BackwardPlan(Plan):
    """A plan that also remembers the gradient it starts from and the leaves it adds to."""

    is_exact = False
    part = "backward"

    def __init__(self, clear_buffer: bool) -> None:
        super().__init__()
        self.clear_buffer = clear_buffer
        self.start: Buffer | None = None
        self.start_value: float | None = None
        #: the storages whose gradients the plan writes, and where these were
        self.storages: list[tuple[Storage, NdArray, NdArray | None]] = []
        #: arrays whose dtype the functions take as it is
        self.dtypes: list[tuple[SyncedArray, str]] = []
        self.sources: set[ForwardPlan] = set()
        #: the gradients of leaves that were zero before the run that is not over yet; None between runs
        self.zeroed: Collection[SyncedArray] | None = None
        self.freed: list[SyncedArray] = []
        #: the functions with private outputs whose gradients it computes
        self.private: list[Node] = []

    def is_bound(self) -> bool:
        """Return whether data and gradients are still where the plan reads and writes them."""
        return (
            super().is_bound()
            and all(storage.data is data and storage.made_grad is grad for storage, data, grad in self.storages)
            and all(dtype_held(synced) == dtype for synced, dtype in self.dtypes)
        )

    def is_outdated(self) -> bool:
        """Return whether private outputs that the plan reads may not belong to their inputs any more."""
        for node in self.private:
            version = node.computed_from
            if version is not None and not version.is_present():
                return True
        return False

    def take_zeros(self, overwrite: bool) -> bool:
        """Prepare the leaf gradients for a run; False when they are not as zero as `overwrite` expects."""
        if not overwrite:
            self.zeroed = zeroed = []
            for synced, key in self.leaf_grads.items():
                if synced.pending_fill == 0.0:
                    zeroed.append(synced)
                # writes zeros that were only noted, and brings up to date the copy to which the plan adds
                synced.readwrite(key)
            return True
        for synced in self.leaf_grads:
            if synced.pending_fill != 0.0:
                return False
        self.zeroed = self.leaf_grads
        for synced, key in self.leaf_grads.items():  # all are zero: the first contribution overwrites
            synced.pending_fill = None
            synced.modifications += 1
            if synced.latest != key or len(synced.valid) != 1:
                synced.overwrite(key)
        return True

    def overwrite_leaves(self) -> None:
        """Take the memory of the gradients of leaves, all of which are zero, for the first run to write."""
        self.zeroed = self.leaf_grads
        for synced, key in self.leaf_grads.items():
            synced.overwrite(key)

    def add_to(self, synced: SyncedArray) -> None:
        """Note that the first run adds to a gradient of leaves, before anything is written to it."""
        is_zero = synced.pending_fill == 0.0 or (synced.pending_fill is None and synced.latest is None)
        self.zeroed = [*(self.zeroed or ()), *([synced] if is_zero else ())]

    def give_zeros_back(self, error: BaseException) -> None:
        """Let the gradients of leaves that were zero before a run be zero again, since `error` has ended it.

        The others keep what was added to them, because no copy of them is made; the error says so.
        """
        if self.zeroed is None:
            return
        for synced in self.zeroed:
            synced.fill(0.0)
        if len(self.zeroed) < len(self.leaf_grads):
            note_partial_sums(error)
        self.zeroed = None

    def set_start(self, grad: Any) -> None:
        """Write the gradient that the pass starts from: a number, an array of the host or an NdArray."""
        buffer = self.start
        if buffer is None:
            return
        array = buffer.array
        assert array is not None
        # most passes start from 1 or from a loss scale, and the number of the last run is still there
        if (type(grad) is int or type(grad) is float) and grad == self.start_value:
            return
        ready(buffer.space)
        self.start_value = None
        with np.errstate(over="ignore"):  # infinite where the dtype does not go as far
            if isinstance(grad, NdArray):
                array[...] = grad.read(buffer.space, buffer.dtype)
            elif np.ndim(grad) == 0:
                array[...] = self.start_value = float(grad)
            else:
                array[...] = grad if buffer.space is HOST else buffer.space.from_numpy(grad.astype(buffer.dtype))

    def give_up_forward_data(self) -> None:
        """End the right of the graph to the values that the pass, which has come to its end, was told to clear."""
        self.zeroed = None
        # after the run, which has read these values
        for source in self.sources:
            source.release()
        for synced in self.freed:
            synced.attach((HOST, "float32"), None, self.gone)


class ForwardData:
    """The data of the forward pass, for the gradients to read; computes again what was dropped on purpose.

    Args:
        plan: The plan of the backward pass.
        root: Where the pass starts.
        order: The functions of the graph.
        clear_buffer: Whether the pass gives up the data that it reads.
        outdated: Functions whose private outputs are computed again, because inputs may have been written meanwhile.
    """

    def __init__(
        self, plan: BackwardPlan, root: Value, order: Sequence[Node], clear_buffer: bool, outdated: Sequence[Node] = ()
    ) -> None:
        self.plan = plan
        self.builder = Builder(plan, as_found=True)
        self._clear = clear_buffer
        #: arrays whose values outlast the pass whatever is cleared
        self._lasting = {root.storage.data.synced} | held_by_sinks(order)
        self._lasting |= {c.data.synced for n in order for c in n.storages if _is_persistent(n, c.data.synced)}
        self._rank = {node: i for i, node in enumerate(order)}
        #: the dtypes of what the forward pass has computed, dropped values among them
        self.dtypes = {storage.data.synced: dtype_held(storage.data.synced) for node in order for storage in node.storages}
        # a view is not among them: who gives the memory gives its values
        self._outdated = {synced for node in outdated for synced in private_arrays(node)}
        self._producers = {storage.data.synced: node for node in order for storage in node.storages if not is_view(node)}

    def of(
        self, storage: Storage, key: Any, contiguous: bool, backend: Backend | None = None, *, strided: bool = False
    ) -> Buffer:
        """Return a buffer with the data of `storage` under `key`, brought there by `backend`; see `Builder.read`."""
        synced = storage.data.synced
        self.locate(synced)
        return self.builder.read(storage.data, key, contiguous, backend, strided=strided)

    def locate(self, synced: SyncedArray) -> Buffer | None:
        """Find the data of an array that the forward pass computed; None for a leaf."""
        buffer = self.builder.data.get(synced)
        if buffer is not None or synced not in self._producers:
            return buffer
        if self._is_computed_again(synced):
            self._compute_again(synced)
            return self.builder.data[synced]
        require_computed(self._producers[synced], synced)
        # dropped, and not marked to be computed again: the values are gone for good
        require_alive(self._producers[synced], synced)
        buffer = found(synced)
        if buffer is None:
            return None
        self._adopt_block(synced, buffer)
        self.builder.data[synced] = buffer
        # when the forward pass puts the values elsewhere, this plan does not hold any more
        self.plan.bindings.append(Binding.of(synced, (buffer.space, buffer.dtype), computed=True))
        synced.bound = True
        return buffer

    def layout(self, node: Node, kernel: PreparedKernel, data: Sequence[Buffer | None]) -> tuple[bool, ...]:
        """Return which inputs and outputs the forward pass left channels-last; their gradients get the same layout."""
        storages = [*storages_read(node), *node.storages]
        if kernel.layout == "contiguous":
            return (False,) * len(storages)
        flags = [
            storage is not None and (self._lies_channels_last(storage) if buffer is None else buffer.channels_last)
            for storage, buffer in zip(storages, data, strict=True)
        ]
        return _all_or_none(node, flags) if kernel.layout == "any" else tuple(flags)

    def _lies_channels_last(self, storage: Storage) -> bool:
        """Return whether the data of a storage is channels-last, whether or not the pass has asked for it."""
        synced = storage.data.synced
        if storage.data.shape != synced.shape:
            return False  # a view in another shape is read in C order
        buffer = self.builder.data.get(synced)
        if buffer is not None:
            return buffer.channels_last
        if synced not in self._producers:
            return False  # the data of leaves is read in C order, and so are their gradients
        owner = None if synced.lease is None else synced.lease.owner()
        if isinstance(owner, ForwardPlan) and synced in owner.buffers:
            return owner.buffers[synced].channels_last
        return synced.lease is STRIDED and synced.latest is not None and not is_contiguous(synced.copies[synced.latest])

    def _adopt_block(self, synced: SyncedArray, buffer: Buffer) -> None:
        owner = None if synced.lease is None else synced.lease.owner()
        if not isinstance(owner, ForwardPlan) or synced.lease is not owner.held or not self._clear:
            return
        # what is free in the memory of the forward pass serves this one: each overwrites it before it reads
        if owner not in self.plan.sources:
            self.plan.sources.add(owner)
            self.plan.arena.borrow(owner.arena)
        source = owner.buffers[synced].root()
        # the graph gives these values up: their memory may be reused after their last use here
        if source.block is not None and owner.policy != KEEP_ALL and synced not in self._lasting:
            buffer.block = source.block

    def _compute_again(self, wanted: SyncedArray) -> None:
        nodes: set[Node] = set()
        stack = [wanted]
        while stack:
            synced = stack.pop()
            node = self._producers.get(synced)
            if node is None or node in nodes or synced in self.builder.data:
                continue
            # back to what is still there
            if self._is_computed_again(synced) or synced.cleared:
                nodes.add(node)
                stack.extend(value.storage.data.synced for value in node.inputs if value is not None)
            else:
                self.locate(synced)
        pinned: set[SyncedArray] = set()
        for node in sorted(nodes, key=self._rank.__getitem__):
            # random functions draw the same numbers, since a backward plan renews no keys
            emit_forward(self.builder, node, kernel_of(node, self.dtypes), pinned, again=True)

    def _is_computed_again(self, synced: SyncedArray) -> bool:
        return synced in self._outdated or _was_dropped(synced, self._producers[synced])

    def release(self) -> None:
        """Note which arrays lose their data when the pass is over."""
        if not self._clear:
            return
        owned: set[SyncedArray] = set()
        for source in list(self.plan.sources):
            held = {entry.synced for entry in source.attachments if entry.array is not None and not entry.keep}
            # a lease ends as a whole. Where it covers what is not this graph's, or must last, arrays are cleared one
            # by one
            if held <= self._producers.keys() and not held & self._lasting:
                owned |= held
            else:
                self.plan.sources.discard(source)
        for synced in self._producers.keys() - self._lasting:
            if synced not in owned and synced.latest is not None:
                self.plan.freed.append(synced)


def dtype_held(synced: SyncedArray) -> str:
    """Return the dtype of the values, or of those that the last forward pass has dropped."""
    owner = None if synced.latest is not None or synced.lease is None else synced.lease.owner()
    if isinstance(owner, ForwardPlan) and synced in owner.buffers:
        return owner.buffers[synced].dtype
    return synced.dtype


def _was_dropped(synced: SyncedArray, node: Node) -> bool:
    if not synced.cleared:
        return False
    values = [node.output(index) for index, storage in enumerate(node.storages) if storage.data.synced is synced]
    return any(value is not None and value.recompute for value in values)


def _is_persistent(node: Node, synced: SyncedArray) -> bool:
    for index, storage in enumerate(node.storages):
        value = node.output(index)
        if storage.data.synced is synced and value is not None and value.persistent:
            return True
    return False


def _all_or_none(node: Node, flags: Sequence[bool]) -> tuple[bool, ...]:
    """Return which arrays are channels-last for a kernel that takes any layout, provided that all of them agree."""
    inputs = [storage for storage in storages_read(node) if storage is not None]
    shapes = {storage.data.shape for storage in inputs}
    all_read = all(flag for flag, storage in zip(flags, storages_read(node), strict=False) if storage is not None)
    rank = len(next(iter(shapes), ()))
    alike = len(shapes) == 1 and all_read and 3 <= rank <= 5
    every = (*storages_read(node), *node.storages)
    return tuple([alike and storage is not None and len(storage.data.shape) == rank for storage in every])


def storages_read(node: Node) -> list[Storage | None]:
    """Return data and gradient of each input, None where one is not given."""
    return [None if value is None else value.storage for value in node.inputs]
