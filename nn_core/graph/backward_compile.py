"""Compile the gradients of a graph into a plan, one node after the other, from the last to the first."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_core.array import NdArray
from nn_core.dispatch.registry import spec_of_api
from nn_core.errors import GraphError, ShapeError
from nn_core.graph.backward_data import BackwardPlan, ForwardData, dtype_held
from nn_core.graph.call import PreparedKernel, resolved_call
from nn_core.graph.compile import alias, assign, is_view, kernel_of, needed_data
from nn_core.graph.forward import ForwardPlan
from nn_core.graph.memory import Buffer
from nn_core.graph.node import Cell, Node, Vertex
from nn_core.graph.plan import Attachment, Binding, signature_of
from nn_core.graph.python_function import PythonBackward
from nn_core.graph.rule import RuleRunner
from nn_core.graph.run import is_contiguous
from nn_core.synced import HOST, STRIDED, Key, Space, SyncedArray, dtype_of
from nn_core.typing import Array, Backend, Runner, extra

#: What gradients of leaves add up in.
_SUM_DTYPES = {"float16": "float32", "bfloat16": "float32"}


class Target:
    """The gradient of one cell while the backward pass is compiled."""

    __slots__ = ("buffer", "cell", "expected", "grad", "is_leaf", "received", "vertex", "written")

    def __init__(self, vertex: Vertex) -> None:
        self.cell: Cell = vertex.cell
        self.vertex = vertex
        self.is_leaf = vertex.producer is None
        #: the array of a leaf's gradient, once something was added to it
        self.grad: SyncedArray | None = None
        self.expected = 0
        self.received = 0
        self.buffer: Buffer | None = None
        #: whether the buffer holds a number to add to; else the first contribution overwrites it
        self.written = False


def active_nodes(root: Vertex, order: Sequence[Node]) -> tuple[list[Node], list[Target]]:
    """The nodes that a gradient of `root` reaches, last first, and the targets of their gradients."""
    reached: dict[Cell, Target] = {root.cell: Target(root)}
    active: list[Node] = []
    for node in reversed(order):
        if not node.need_grad or not any(cell in reached for cell in node.cells) or not _has_gradient(node):
            continue
        active.append(node)
        for vertex in node.inputs:
            if vertex is not None and vertex.need_grad:
                target = reached.get(vertex.cell)
                if target is None:
                    target = reached[vertex.cell] = Target(vertex)
                target.expected += 1  # a single contribution to a view can be that view of the gradient, without a copy
    return active, list(reached.values())


def _has_gradient(node: Node) -> bool:
    return node.python is not None or node.spec.differentiable


def compile_backward(
    root: Vertex,
    order: Sequence[Node],
    active: Sequence[Node],
    found: Sequence[Target],
    own_start: bool,
    clear_buffer: bool,
    overwrite: bool,
) -> BackwardPlan:
    """Resolve the gradient of every node, place every array, and write down what the arrays hold afterwards."""
    plan = BackwardPlan(clear_buffer)
    data = ForwardData(plan, root, order, clear_buffer)
    targets: dict[Cell, Target] = {target.cell: target for target in found}
    work = GradientCompiler(plan, data, targets, overwrite)
    work.start(root, own_start)
    for node in active:
        work.add(node)
    work.finish(root, clear_buffer)
    data.release()
    plan.adopt()
    if overwrite:
        for synced, key in plan.leaf_grads.items():
            synced.overwrite(key)
    plan.bind(signature_of(order, (root,)), [*plan.bindings, *plan.bound_leaves()])
    return plan


class GradientCompiler:
    """Adds the gradient of one node after the other to a plan."""

    def __init__(self, plan: BackwardPlan, data: ForwardData, targets: dict[Cell, Target], overwrite: bool) -> None:
        self._plan = plan
        self._data = data
        self._builder = data.builder
        self._targets = targets
        self._overwrite = overwrite
        #: the arrays of leaf gradients, which leaves may share, and those that hold a number to add to
        self._leaf_grads: dict[SyncedArray, Buffer] = {}
        self._written: set[SyncedArray] = set()
        #: arrays of gradients that no other variable may have
        self._own_grads: set[SyncedArray] = set()

    def start(self, root: Vertex, own_start: bool) -> None:
        """The gradient of the root: the user's value, or what its own gradient array holds."""
        dtype, space = self._place_of(root)
        target = self._targets[root.cell]
        if own_start:
            grad = root.cell.grad
            self._own_grads.add(grad.synced)
            self._plan.cells.append((root.cell, root.cell.data, grad))
            target.buffer = self._builder.read(grad, (space, dtype), True)
        else:
            target.buffer = Buffer(root.shape, dtype, space, space.empty(root.shape, dtype))
            self._plan.start = target.buffer

    def _kernel_of(self, node: Node) -> PreparedKernel:
        if any(entry.dtype == "same" for entry in node.spec.inputs):
            arrays = [vertex.cell.data.synced for vertex in node.inputs if vertex is not None]
            self._plan.dtypes += [(synced, dtype_held(synced)) for synced in arrays]
        return kernel_of(node, self._data.dtypes)

    def _place_of(self, vertex: Vertex) -> tuple[str, Space]:
        node = vertex.producer
        assert node is not None
        if node.python is not None:
            return "float32", HOST
        kernel = self._kernel_of(node)
        return kernel.output_dtypes[vertex.output_index], kernel.space

    def add(self, node: Node) -> None:
        """The gradient of `node`, and the additions that it leads to."""
        if is_view(node):
            self._add_view(node)
            return
        wanted = tuple(vertex is not None and vertex.need_grad for vertex in node.inputs)
        if node.python is not None:
            self._add_python(node, wanted)
            return
        if node.spec.has("sink") and not node.args["one_input_grad"]:
            self._take_given(node, wanted)
            return
        kernel = self._kernel_of(node)
        wanted = tuple(want and _is_floating(dtype) for want, dtype in zip(wanted, kernel.input_dtypes, strict=True))
        if any(wanted):  # indices and labels have no gradient: that of their variables stays zero
            self._add_kernel(node, kernel, wanted)

    def _add_kernel(self, node: Node, kernel: PreparedKernel, wanted: tuple[bool, ...]) -> None:
        """The gradient by the backend's kernel, or by the gradient rule."""
        backend = kernel.backend
        data = self._data_read(node, kernel)
        grads = self._output_grads(node, kernel)
        flags = self._layout(node, kernel, data)
        runner = kernel.backward_for(wanted, flags)
        if runner is None:  # the rule is array code, and takes arrays as they lie
            shapes = [None if vertex is None else vertex.shape for vertex in node.inputs]
            runner = RuleRunner(kernel, shapes, [cell.data.shape for cell in node.cells], wanted)
        data = [self._as_laid_out(buffer, flag, backend) for buffer, flag in zip(data, flags, strict=True)]
        grad_flags = flags[len(node.inputs) :]
        grads = [self._as_laid_out(buffer, flag, backend) for buffer, flag in zip(grads, grad_flags, strict=False)]
        gradients, additions = self._input_targets(node, kernel, wanted, flags)
        runner, additions = self._accumulating(runner, gradients, additions, len(data) + len(grads))
        self._builder.add(node, runner, [*data, *grads, *gradients], backend)
        self._accumulate(node, additions, backend)

    def _data_read(self, node: Node, kernel: PreparedKernel) -> list[Buffer | None]:
        """The data of inputs and outputs that the gradient reads, None for the others."""
        reads_inputs, reads_outputs = needed_data(node)
        cells, reads = [*_cells(node), *node.cells], [*reads_inputs, *reads_outputs]
        keys = [*kernel.input_keys, *kernel.output_keys]
        read = [
            (cell, key) if needed and cell is not None and key is not None else None
            for cell, key, needed in zip(cells, keys, reads, strict=True)
        ]
        for pair in read:  # all of them before one is copied: what was dropped is computed again once, in its layout
            if pair is not None:
                self._data.locate(pair[0].data.synced)
        in_order = kernel.layout not in ("channels_last", "any")
        return [None if pair is None else self._data.of(*pair, in_order, kernel.backend) for pair in read]

    def _layout(self, node: Node, kernel: PreparedKernel, data: Sequence[Buffer | None]) -> tuple[bool, ...]:
        """Which inputs and outputs lie channels-last, as the forward pass left them; their gradients lie alike."""
        cells = [*_cells(node), *node.cells]
        if kernel.layout not in ("channels_last", "any"):
            return (False,) * len(cells)
        flags = [
            cell is not None and (self._lies_channels_last(cell) if buffer is None else buffer.channels_last)
            for cell, buffer in zip(cells, data, strict=True)
        ]
        return _all_or_none(node, flags) if kernel.layout == "any" else tuple(flags)

    def _lies_channels_last(self, cell: Cell) -> bool:
        synced = cell.data.synced
        buffer = self._builder.data.get(synced)
        if buffer is not None:
            return buffer.channels_last
        if not self._data.computes(synced):
            return False  # the data of leaves is read in C order, and their gradients lie so
        owner = None if synced.lease is None else synced.lease.owner
        if isinstance(owner, ForwardPlan) and synced in owner.buffers:
            return owner.buffers[synced].channels_last
        return synced.lease is STRIDED and synced.latest is not None and not is_contiguous(synced.copies[synced.latest])

    def _as_laid_out(
        self, buffer: Buffer | None, channels_last: bool, backend: Backend | None = None
    ) -> Buffer | None:
        if buffer is None or buffer.channels_last == channels_last:
            return buffer
        copy = Buffer(buffer.shape, buffer.dtype, buffer.space)
        copy.channels_last = channels_last
        self._builder.copy(buffer, copy, backend)
        return copy

    def _output_grads(self, node: Node, kernel: PreparedKernel) -> list[Buffer | None]:
        grads: list[Buffer | None] = []
        n_visible = len(node.cells) - sum(entry.aux for entry in node.spec.outputs)
        for cell, dtype in list(zip(node.cells, kernel.output_dtypes, strict=True))[:n_visible]:
            target = self._targets.get(cell)
            if target is None or target.buffer is None:
                zeros = kernel.space.empty(cell.data.shape, dtype)
                zeros[...] = 0
                grads.append(Buffer(cell.data.shape, dtype, kernel.space, zeros))
            else:
                grads.append(self._converted(target.buffer, kernel.space, dtype, kernel.backend))
        return grads

    def _converted(self, buffer: Buffer, space: Space, dtype: str, backend: Backend | None = None) -> Buffer:
        if buffer.space is space and buffer.dtype == dtype:
            return buffer
        copy = Buffer(buffer.shape, dtype, space)
        copy.channels_last = buffer.channels_last and space is buffer.space
        self._builder.copy(buffer, copy, backend)
        return copy

    def _input_targets(
        self, node: Node, kernel: PreparedKernel, wanted: Sequence[bool], flags: Sequence[bool]
    ) -> tuple[list[Buffer | None], list[tuple[Target, Buffer]]]:
        """Where the gradients of the inputs are written, and what is to be added to what afterwards."""
        gradients: list[Buffer | None] = []
        additions: list[tuple[Target, Buffer]] = []
        for vertex, dtype, want, flag in zip(
            node.inputs, kernel.input_dtypes, wanted, flags[: len(node.inputs)], strict=True
        ):
            if vertex is None or not want or dtype is None:
                gradients.append(None)
                continue
            target = self._targets[vertex.cell]
            buffer, add = self._contribution(target, dtype, kernel.space, flag)
            gradients.append(buffer)
            if add:
                additions.append((target, buffer))
        return gradients, additions

    def _contribution(self, target: Target, dtype: str, space: Space, channels_last: bool) -> tuple[Buffer, bool]:
        """Where a gradient in `dtype` is written, and whether it is to be added to what is there.

        Gradients of leaves add up in float32 at least, in which solvers read and change them.
        """
        target.received += 1
        shape = target.cell.data.shape
        buffer = Buffer(shape, dtype, space)
        if target.is_leaf:
            if target.buffer is None:
                target.buffer = self._leaf_grad(target, _SUM_DTYPES.get(dtype, dtype), space)
            if self._has_values(target) or (target.buffer.dtype, target.buffer.space) != (dtype, space):
                return buffer, True
            self._note_values(target)
            return target.buffer, False
        buffer.channels_last = channels_last
        if target.buffer is None:
            target.buffer, target.written = buffer, True
            return buffer, False
        return buffer, True

    def _leaf_grad(self, target: Target, dtype: str, space: Space) -> Buffer:
        grad = target.cell.grad
        if grad.shape != target.cell.data.shape:
            raise ShapeError(
                f"backward: grad must have the shape of data, got {grad.shape} for {target.cell.data.shape}"
            )
        synced = target.grad = grad.synced
        self._plan.cells.append((target.cell, target.cell.data, grad))
        buffer = self._leaf_grads.get(synced)
        if buffer is None:
            buffer = self._leaf_grads[synced] = self._grad_memory(synced, (space, dtype))
        if grad.is_narrowed:
            return _narrowed(buffer, grad)
        return buffer if synced.shape == grad.shape else alias(buffer, grad.shape)

    def _grad_memory(self, synced: SyncedArray, key: Key) -> Buffer:
        """The memory in which the gradient of leaves adds up."""
        if synced.cleared:
            synced.fill(0.0)  # the gradient of what was an intermediate value, and is a leaf now
        if not self._overwrite:
            synced.make_contiguous(key)
        array = synced.buffer(key) if self._overwrite else synced.readwrite(key)
        synced.bound = True
        self._plan.leaf_grads[synced] = key
        self._plan.bindings.append(Binding(synced, key, array, None, False))
        return Buffer(synced.shape, key[1], key[0], array)

    def _has_values(self, target: Target) -> bool:
        """Whether the gradient of a target holds a number to add to; else the first contribution overwrites it."""
        if not target.is_leaf or target.grad is None:
            return target.written
        return not self._overwrite or target.grad in self._written

    def _note_values(self, target: Target) -> None:
        target.written = True
        if target.grad is not None:
            self._written.add(target.grad)

    def _accumulating(
        self, runner: Runner, gradients: list[Buffer | None], additions: list[tuple[Target, Buffer]], first: int
    ) -> tuple[Runner, list[tuple[Target, Buffer]]]:
        """Let the kernel itself add to what is there, if it can; `first` is the place of the first gradient.

        `gradients` then holds the totals, and these additions are done.
        """
        accumulating = extra(runner, "accumulating")
        if accumulating is None:
            return runner, additions
        totals = self._totals(gradients, additions)
        adder = accumulating([first + place for place in totals]) if totals else None
        if adder is None:
            return runner, additions
        parts = [gradients[place] for place in totals]
        for place, total in totals.items():
            gradients[place] = total
        return adder, [(target, part) for target, part in additions if part not in parts]

    def _totals(
        self, gradients: Sequence[Buffer | None], additions: Sequence[tuple[Target, Buffer]]
    ) -> dict[int, Buffer]:
        """The totals to which a kernel may add in place of writing gradients, by the places of these."""
        totals: dict[int, Buffer] = {}
        for target, part in additions:
            total = target.buffer
            if total is None or not self._has_values(target) or not _lie_alike(total, part):
                continue
            others = {buffer.root() for buffer in (*gradients, *totals.values()) if buffer is not None}
            if total.root() not in others:
                totals[gradients.index(part)] = total
        return totals

    def _accumulate(
        self, node: Node | None, additions: Sequence[tuple[Target, Buffer]], backend: Backend | None = None
    ) -> None:
        for target, buffer in additions:
            total = target.buffer
            assert total is not None
            if not self._has_values(target):
                self._note_values(target)
                self._builder.copy(buffer, total, backend)
                continue
            part = self._converted(buffer, total.space, total.dtype, backend)
            runner, adder = _adder(node, total, part)
            self._builder.add(None, runner, (total, part, total), adder)

    def _add_view(self, node: Node) -> None:
        vertex = node.inputs[0]
        out = self._targets.get(node.cells[0])
        if vertex is None or not vertex.need_grad or out is None or out.buffer is None:
            return
        target = self._targets[vertex.cell]
        grad = out.buffer
        if grad.channels_last:
            plain = self._as_laid_out(grad, False)
            assert plain is not None
            grad = plain
        if not target.is_leaf and target.expected == 1 and grad.array is None:
            target.received += 1
            target.buffer, target.written = alias(grad, vertex.shape), True
            return
        backend = self._kernel_of(node).backend
        buffer, add = self._contribution(target, grad.dtype, grad.space, False)
        self._builder.add(node, assign, (buffer, alias(grad, vertex.shape)))
        if add:
            self._accumulate(node, [(target, buffer)], backend)

    def _take_given(self, node: Node, wanted: Sequence[bool]) -> None:
        """Continue with the gradients that the caller has set on the inputs."""
        kernel = self._kernel_of(node)
        for vertex, dtype, want in zip(node.inputs, kernel.input_dtypes, wanted, strict=True):
            if vertex is None or not want or dtype is None or vertex.producer is None:
                continue
            target = self._targets[vertex.cell]
            target.received += 1
            target.is_leaf = True  # its gradient array is the caller's, not the plan's
            grad = vertex.cell.grad
            given = self._builder.read(grad, (kernel.space, dtype), True)
            if target.buffer is None:
                target.buffer, target.written = Buffer(vertex.shape, dtype, kernel.space), True
                self._builder.add(node, assign, (target.buffer, given))
            else:
                self._accumulate(node, [(target, given)])

    def _add_python(self, node: Node, wanted: tuple[bool, ...]) -> None:
        inputs = [None if cell is None else self._as_it_is(cell) for cell in _cells(node)]
        outputs = [self._data.of(cell, (HOST, "float32"), True) for cell in node.cells]
        grads: list[Buffer | None] = []
        for cell in node.cells:
            target = self._targets.get(cell)
            if target is None or target.buffer is None:
                grads.append(Buffer(cell.data.shape, "float32", HOST, np.zeros(cell.data.shape, np.float32)))
            else:
                grads.append(self._as_laid_out(self._converted(target.buffer, HOST, "float32"), False))
        gradients: list[Buffer | None] = []
        additions: list[tuple[Target, Buffer]] = []
        for vertex, want in zip(node.inputs, wanted, strict=True):
            if vertex is None or not want:
                gradients.append(None)
                continue
            buffer, add = self._contribution(self._targets[vertex.cell], "float32", HOST, False)
            gradients.append(buffer)
            if add:
                additions.append((self._targets[vertex.cell], buffer))
        self._builder.add(node, PythonBackward(node, wanted), [*inputs, *outputs, *grads, *gradients])
        self._accumulate(node, additions)

    def _as_it_is(self, cell: Cell) -> Buffer:
        """The data of a cell in the space and the dtype that it has."""
        located = self._data.locate(cell.data.synced)
        latest = cell.data.synced.latest if located is None else (located.space, located.dtype)
        return self._data.of(cell, latest or (HOST, "float32"), True)

    def finish(self, root: Vertex, clear_buffer: bool) -> None:
        """Place the arrays; let the gradients of kept variables be seen."""
        self._own_grads |= self._leaf_grads.keys()
        between = [
            (target, target.buffer, not clear_buffer or target.vertex.persistent)
            for target in self._targets.values()
            if not target.is_leaf and target.cell is not root.cell and target.buffer is not None
        ]
        for _, buffer, keep in between:
            if keep:
                buffer.keep = buffer.root().keep = True
        self._builder.finish()
        for target, buffer, keep in between:
            synced = target.cell.grad.synced
            array = buffer.resolve(self._plan.arena) if keep else None
            if array is not None and synced.shape != buffer.shape:
                array = array.reshape(synced.shape)
            self._attach(target.cell, Attachment(synced, (buffer.space, buffer.dtype), array, keep))

    def _attach(self, cell: Cell, attachment: Attachment) -> None:
        if attachment.synced in self._own_grads:
            raise GraphError(
                "backward: the gradient of a variable that a function computes must be an array of its own, got one that it "
                f"shares with another variable, of shape {cell.data.shape}"
            )
        self._own_grads.add(attachment.synced)
        self._plan.attachments.append(attachment)
        self._plan.cells.append((cell, cell.data, cell.made_grad))


def _all_or_none(node: Node, flags: Sequence[bool]) -> tuple[bool, ...]:
    """Which arrays lie channels-last for a kernel that takes them in any layout, if it is the same for all."""
    inputs = [cell for cell in _cells(node) if cell is not None]
    shapes = {cell.data.shape for cell in inputs}
    every = all(flag for flag, cell in zip(flags, _cells(node), strict=False) if cell is not None)
    rank = len(next(iter(shapes), ()))
    alike = len(shapes) == 1 and every and 3 <= rank <= 5
    return tuple([alike and cell is not None and len(cell.data.shape) == rank for cell in (*_cells(node), *node.cells)])


def _narrowed(whole: Buffer, array: NdArray) -> Buffer:
    """What a narrowed array shows of the memory of a leaf's gradient."""
    part = Buffer(array.shape, whole.dtype, whole.space, array.present(whole.array))
    part.narrow = True
    return part


def _is_floating(dtype: str | None) -> bool:
    return dtype is not None and dtype_of(dtype).kind not in "iub"


def _cells(node: Node) -> list[Cell | None]:
    return [None if vertex is None else vertex.cell for vertex in node.inputs]


def _add(total: Array, part: Array, result: Array) -> None:
    result[...] = total + part


def _adder(node: Node | None, total: Buffer, part: Buffer) -> tuple[Runner, Any]:
    """A runner for total + part: the backend's kernel if both lie alike, else plain array code."""
    if (
        node is None
        or (total.dtype, total.space) != (part.dtype, part.space)
        or total.channels_last != part.channels_last
        or total.narrow
    ):
        return _add, None
    spec = spec_of_api("add2")
    kernel = resolved_call(spec, {}, (total.shape, total.shape)).kernel(node.context.in_dtype(total.dtype))
    if kernel.space is not total.space or kernel.output_dtypes[0] != total.dtype:
        return _add, None
    if total.channels_last and kernel.layout != "any":
        return _add, None
    return kernel.forward_for((total.channels_last,) * 3), kernel.backend


def _lie_alike(a: Buffer, b: Buffer) -> bool:
    # a kernel that adds does so to arrays of the kind that it would write
    alike = (a.space, a.dtype, a.shape, a.channels_last) == (b.space, b.dtype, b.shape, b.channels_last)
    return alike and not (a.narrow or b.narrow)
