"""Where a backward pass finds the data of the forward pass; what was dropped on purpose is computed again."""

from collections.abc import Sequence
from typing import Any

from nn_core.array import NdArray
from nn_core.graph.compile import Builder, found, is_view, kernel_of, require_alive
from nn_core.graph.forward import KEEP_ALL, ForwardPlan, emit_forward, held_by_sinks
from nn_core.graph.memory import Buffer
from nn_core.graph.node import Cell, Node, Vertex
from nn_core.graph.plan import Binding, Plan
from nn_core.synced import HOST, SyncedArray
from nn_core.typing import Backend


class BackwardPlan(Plan):
    """A plan that also remembers the gradient it starts from and the leaves it adds to."""

    def __init__(self, clear_buffer: bool) -> None:
        super().__init__()
        self.clear_buffer = clear_buffer
        self.start: Buffer | None = None
        self.start_value: float | None = None
        self.leaf_grads: dict[SyncedArray, Any] = {}
        #: the cells whose gradients the plan writes, and where these were
        self.cells: list[tuple[Cell, NdArray, NdArray | None]] = []
        #: arrays whose dtype the functions take as it is
        self.dtypes: list[tuple[SyncedArray, str]] = []
        self.sources: set[ForwardPlan] = set()
        self.freed: list[SyncedArray] = []

    def is_bound(self) -> bool:
        """Whether data and gradients lie where the plan reads and writes them."""
        return (
            super().is_bound()
            and all(cell.data is data and cell.made_grad is grad for cell, data, grad in self.cells)
            and all(dtype_held(synced) == dtype for synced, dtype in self.dtypes)
        )

    def take_zeros(self, overwrite: bool) -> bool:
        """Prepare the leaf gradients for a run; False when they are not as zero as `overwrite` expects."""
        if not overwrite:
            for synced, key in self.leaf_grads.items():
                synced.readwrite(key)
            return True
        for synced in self.leaf_grads:
            if synced.pending_fill != 0.0:
                return False
        for synced, key in self.leaf_grads.items():  # all are zero: the first contribution overwrites
            synced.pending_fill = None
            synced.modifications += 1
            if synced.latest != key or len(synced.valid) != 1:
                synced.overwrite(key)
        return True

    def give_up_forward_data(self) -> None:
        """End the right of the graph to the values that the pass was told to clear."""
        for source in self.sources:
            source.release()
        for synced in self.freed:
            synced.attach((HOST, "float32"), None, self.gone)


class ForwardData:
    """Where the gradients find the data of the forward pass; computes again what was dropped on purpose."""

    def __init__(self, plan: BackwardPlan, root: Vertex, order: Sequence[Node], clear_buffer: bool) -> None:
        self.plan = plan
        self.builder = Builder(plan, as_found=True)
        self._clear = clear_buffer
        #: arrays whose values outlast the pass whatever is cleared
        self._lasting = {root.cell.data.synced} | held_by_sinks(order)
        self._lasting |= {c.data.synced for n in order for c in n.cells if _is_persistent(n, c.data.synced)}
        self._rank = {node: i for i, node in enumerate(order)}
        #: the dtypes of what the forward pass has computed, dropped values among them
        self.dtypes = {cell.data.synced: dtype_held(cell.data.synced) for node in order for cell in node.cells}
        self._producers = {cell.data.synced: node for node in order for cell in node.cells if not is_view(node)}

    def computes(self, synced: SyncedArray) -> bool:
        """Whether a function of the graph computes the data of `synced`."""
        return synced in self._producers

    def of(self, cell: Cell, key: Any, contiguous: bool, backend: Backend | None = None) -> Buffer:
        """A buffer with the data of `cell` under `key`, brought there by `backend`."""
        synced = cell.data.synced
        self.locate(synced)
        return self.builder.read(cell.data, key, contiguous, backend)

    def locate(self, synced: SyncedArray) -> Buffer | None:
        """Find the data of an array that the forward pass computed; None for a leaf."""
        buffer = self.builder.data.get(synced)
        if buffer is not None or synced not in self._producers:
            return buffer
        if _was_dropped(synced, self._producers[synced]):
            self._compute_again(synced)
            return self.builder.data[synced]
        require_alive(self._producers[synced], synced)
        buffer = found(synced)
        if buffer is None:
            return None
        self._adopt_block(synced, buffer)
        self.builder.data[synced] = buffer
        self.plan.bindings.append(Binding.of(synced, (buffer.space, buffer.dtype), computed=True))
        synced.bound = True
        return buffer

    def _adopt_block(self, synced: SyncedArray, buffer: Buffer) -> None:
        owner = None if synced.lease is None else synced.lease.owner
        if not isinstance(owner, ForwardPlan) or synced.lease is not owner.held or not self._clear:
            return
        if owner not in self.plan.sources:
            self.plan.sources.add(owner)
            self.plan.arena.borrow(owner.arena)
        source = owner.buffers[synced].root()
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
            if _was_dropped(synced, node) or synced.cleared:
                nodes.add(node)
                stack.extend(vertex.cell.data.synced for vertex in node.inputs if vertex is not None)
            else:
                self.locate(synced)
        pinned: set[SyncedArray] = set()
        for node in sorted(nodes, key=self._rank.__getitem__):
            emit_forward(self.builder, node, kernel_of(node, self.dtypes), pinned, again=True)

    def release(self) -> None:
        """Note which arrays lose their data when the pass is over."""
        if not self._clear:
            return
        owned: set[SyncedArray] = set()
        for source in list(self.plan.sources):
            held = {entry.synced for entry in source.attachments if entry.array is not None and not entry.keep}
            if held <= self._producers.keys() and not held & self._lasting:
                owned |= held
            else:
                self.plan.sources.discard(source)
        for synced in self._producers.keys() - self._lasting:
            if synced not in owned and synced.latest is not None:
                self.plan.freed.append(synced)


def dtype_held(synced: SyncedArray) -> str:
    """The dtype of the values, or of those that the last forward pass has dropped."""
    owner = None if synced.latest is not None or synced.lease is None else synced.lease.owner
    if isinstance(owner, ForwardPlan) and synced in owner.buffers:
        return owner.buffers[synced].dtype
    return synced.dtype


def _was_dropped(synced: SyncedArray, node: Node) -> bool:
    if not synced.cleared:
        return False
    vertices = [node.output(index) for index, cell in enumerate(node.cells) if cell.data.synced is synced]
    return any(vertex is not None and vertex.recompute for vertex in vertices)


def _is_persistent(node: Node, synced: SyncedArray) -> bool:
    for index, cell in enumerate(node.cells):
        vertex = node.output(index)
        if cell.data.synced is synced and vertex is not None and vertex.persistent:
            return True
    return False
