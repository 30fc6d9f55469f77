"""The backward pass: gradients of one variable with respect to everything before it, compiled into a plan.

Accumulation lives here and only here: kernels and gradient rules overwrite their targets. The gradient of a leaf is
added to what it holds, unless it was set to zero, in which case the first contribution is written straight into it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nn_core.array import EPOCH, HOST, NdArray, Space, SyncedArray
from nn_core.dispatch.registry import gradient_of, spec_of_api
from nn_core.errors import GraphError, ShapeError
from nn_core.graph.compile import Builder, alias, found, is_view, needed_data, prepared_of, require_alive
from nn_core.graph.execute import ArrayFunctions, Prepared, prepare
from nn_core.graph.forward import ForwardPlan, emit_forward, plans_of, remember
from nn_core.graph.hooks import Hook, active_hooks
from nn_core.graph.memory import Buffer
from nn_core.graph.node import Cell, Node, Vertex
from nn_core.graph.order import forward_order
from nn_core.graph.plan import Attachment, Plan, heads_of, is_current, signature_of
from nn_core.graph.python_function import PythonBackward
from nn_core.rules.registry import GradientCall, GradientRule
from nn_core.typing import Array, Runner


class BackwardPlan(Plan):
    """A plan that also remembers the gradient it starts from and the leaves it adds to."""

    def __init__(self, clear_buffer: bool) -> None:
        super().__init__()
        self.clear_buffer = clear_buffer
        self.start: Buffer | None = None
        self.start_value: float | None = None
        self.leaf_grads: list[tuple[SyncedArray, Any]] = []
        self.sources: set[ForwardPlan] = set()
        self.freed: list[SyncedArray] = []


def run_backward(
    root: Vertex,
    grad: Any = 1,
    clear_buffer: bool = False,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    finish: Callable[[Node], object] | None = None,
) -> None:
    """Propagate the gradient `grad` of `root` to all variables that need one."""
    if root.producer is None or not root.need_grad:
        return
    hooks = active_hooks(pre_hook, post_hook)
    plan = backward_plan(root, grad is None, clear_buffer and hooks is None)
    if plan is None:
        return
    _set_start(plan, root, grad)
    plan.run(hooks, finish)
    for source in plan.sources:
        source.release()
    for synced in plan.freed:
        synced.attach((HOST, "float32"), None, plan.gone)


def backward_plan(root: Vertex, own_start: bool, clear_buffer: bool) -> BackwardPlan | None:
    """The plan for `root` that fits which leaf gradients are zero now; compiled if there is none."""
    plans = plans_of(root)
    for overwrite in (True, False):
        plan = plans.get(("backward", own_start, clear_buffer, overwrite))
        if plan is None or not is_current(plan, (root,)):
            continue
        zeroed = all(synced.lazy == 0.0 for synced, _ in plan.leaf_grads)
        if overwrite and zeroed:
            for synced, _ in plan.leaf_grads:
                synced.lazy = None
                synced.modifications += 1
        elif overwrite:
            continue
        else:
            for synced, key in plan.leaf_grads:
                synced.readwrite(key)
        found_plan: BackwardPlan = plan
        return found_plan
    return _compile_and_remember(root, plans, own_start, clear_buffer)


def _compile_and_remember(
    root: Vertex, plans: dict[Any, Any], own_start: bool, clear_buffer: bool
) -> BackwardPlan | None:
    order = forward_order((root,))
    active, counts = _active(root, order)
    leaves = [cell for cell in counts if cell.is_leaf]
    overwrite = all(leaf.cell.grad._synced.lazy == 0.0 or leaf.cell.grad._synced.head is None for leaf in leaves)
    plan = compile_backward(root, order, active, counts, own_start, clear_buffer, overwrite)
    remember(plans, ("backward", own_start, clear_buffer, overwrite), plan)
    return plan


class _Target:
    """The gradient of one cell while the backward pass is compiled."""

    __slots__ = ("buffer", "cell", "expected", "is_leaf", "received", "vertex")

    def __init__(self, vertex: Vertex) -> None:
        self.cell: Cell = vertex.cell
        self.vertex = vertex
        self.is_leaf = vertex.producer is None
        self.expected = 0
        self.received = 0
        self.buffer: Buffer | None = None


def _active(root: Vertex, order: Sequence[Node]) -> tuple[list[Node], dict[Any, Any]]:
    """The nodes that a gradient of `root` reaches, last first, and the targets of their gradients."""
    reached: dict[Cell, _Target] = {root.cell: _Target(root)}
    active: list[Node] = []
    for node in reversed(order):
        if not node.need_grad or not any(cell in reached for cell in node.cells) or not _has_gradient(node):
            continue
        active.append(node)
        for vertex in node.inputs:
            if vertex is not None and vertex.need_grad:
                target = reached.get(vertex.cell)
                if target is None:
                    target = reached[vertex.cell] = _Target(vertex)
                target.expected += 1
    return active, {target: target for target in reached.values()}


def _has_gradient(node: Node) -> bool:
    return node.python is not None or node.spec.differentiable


def compile_backward(
    root: Vertex,
    order: Sequence[Node],
    active: Sequence[Node],
    counts: dict[Any, Any],
    own_start: bool,
    clear_buffer: bool,
    overwrite: bool,
) -> BackwardPlan:
    """Resolve the gradient of every node, place every array, and write down what the arrays hold afterwards."""
    plan = BackwardPlan(clear_buffer)
    data = _Data(plan, order, clear_buffer)
    targets: dict[Cell, _Target] = {target.cell: target for target in counts}
    work = _Compiler(plan, data, targets, overwrite)
    work.start(root, own_start)
    for node in active:
        work.add(node)
    work.finish(root, clear_buffer)
    data.release(root, clear_buffer)
    plan.signature = signature_of(order, (root,))
    plan.adopt()
    plan.leaf_heads = heads_of(plan.leaves)
    plan.epoch = EPOCH.value
    return plan


class _Data:
    """Where the gradients find the data of the forward pass; computes again what was dropped on purpose."""

    def __init__(self, plan: BackwardPlan, order: Sequence[Node], clear_buffer: bool) -> None:
        self.plan = plan
        self.builder = Builder(plan)
        self._clear = clear_buffer
        self._rank = {node: i for i, node in enumerate(order)}
        self._producers = {cell.data._synced: node for node in order for cell in node.cells if not is_view(node)}
        self._used: list[SyncedArray] = []

    def of(self, cell: Cell, key: Any, contiguous: bool) -> Buffer:
        """A buffer with the data of `cell` under `key`."""
        synced = cell.data._synced
        self.locate(synced)
        return self.builder.read(synced, cell.data._shape, key, contiguous)

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
        self._used.append(synced)
        return buffer

    def _adopt_block(self, synced: SyncedArray, buffer: Buffer) -> None:
        owner = None if synced.tenure is None else synced.tenure.owner
        if not isinstance(owner, ForwardPlan) or synced.tenure is not owner.held or not self._clear:
            return
        if owner not in self.plan.sources:
            self.plan.sources.add(owner)
            self.plan.arena.borrow(owner.arena)
        source = owner.buffers[synced].root()
        if source.block is not None and owner.policy != "keep":
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
                stack.extend(vertex.cell.data._synced for vertex in node.inputs if vertex is not None)
            else:
                self.locate(synced)
        pinned: set[SyncedArray] = set()
        for node in sorted(nodes, key=self._rank.__getitem__):
            emit_forward(self.builder, node, prepared_of(node, {}), pinned, again=True)

    def release(self, root: Vertex, clear_buffer: bool) -> None:
        """Note which arrays lose their data when the pass is over."""
        if not clear_buffer:
            return
        owned: set[SyncedArray] = set()
        for source in list(self.plan.sources):
            held = {entry.synced for entry in source.attachments if entry.array is not None and not entry.keep}
            if held <= self._producers.keys():
                owned |= held
            else:
                self.plan.sources.discard(source)
        for synced, node in self._producers.items():
            keeps = synced is root.cell.data._synced or _is_persistent(node, synced)
            if synced not in owned and not keeps and synced.head is not None:
                self.plan.freed.append(synced)


def _was_dropped(synced: SyncedArray, node: Node) -> bool:
    if not synced.cleared:
        return False
    vertices = [node.output(index) for index, cell in enumerate(node.cells) if cell.data._synced is synced]
    return any(vertex is not None and vertex._recompute for vertex in vertices)


def _is_persistent(node: Node, synced: SyncedArray) -> bool:
    for index, cell in enumerate(node.cells):
        vertex = node.output(index)
        if cell.data._synced is synced and vertex is not None and vertex._persistent:
            return True
    return False


class _Compiler:
    """Adds the gradient of one node after the other to a plan."""

    def __init__(self, plan: BackwardPlan, data: _Data, targets: dict[Cell, _Target], overwrite: bool) -> None:
        self._plan = plan
        self._data = data
        self._builder = data.builder
        self._targets = targets
        self._overwrite = overwrite

    def start(self, root: Vertex, own_start: bool) -> None:
        """The gradient of the root: the user's value, or what its own gradient array holds."""
        dtype, space = self._place_of(root)
        target = self._targets[root.cell]
        if own_start:
            grad = root.cell.grad
            target.buffer = self._builder.leaf(grad._synced, (space, dtype))
            if grad._synced.shape != root.shape:
                target.buffer = alias(target.buffer, root.shape)
        else:
            target.buffer = Buffer(root.shape, dtype, space, space.empty(root.shape, dtype))
            self._plan.start = target.buffer

    @staticmethod
    def _place_of(vertex: Vertex) -> tuple[str, Space]:
        node = vertex.producer
        assert node is not None
        if node.python is not None:
            return "float32", HOST
        prepared = prepared_of(node, {})
        return prepared.output_dtypes[vertex.index], prepared.space

    def add(self, node: Node) -> None:
        """The gradient of `node`, and the additions that it leads to."""
        if is_view(node):
            self._add_view(node)
            return
        wanted = tuple(vertex is not None and vertex.need_grad for vertex in node.inputs)
        if node.python is not None:
            self._add_python(node, wanted)
            return
        prepared = prepared_of(node, {})
        reads_inputs, reads_outputs = needed_data(node)
        for cells, reads in ((_cells(node), reads_inputs), (node.cells, reads_outputs)):
            for cell, needed in zip(cells, reads, strict=True):
                if needed and cell is not None:
                    self._data.locate(cell.data._synced)
        as_stored = prepared.layout in ("channels_last", "any")
        grads = self._output_grads(node, prepared)
        inputs = [
            self._data.of(cell, (prepared.space, dtype), not as_stored) if needed and cell is not None and dtype else None
            for cell, dtype, needed in zip(_cells(node), prepared.input_dtypes, reads_inputs, strict=True)
        ]
        outputs = [
            self._data.of(cell, (prepared.space, dtype), not as_stored) if needed else None
            for cell, dtype, needed in zip(node.cells, prepared.output_dtypes, reads_outputs, strict=True)
        ]
        flags = self._layout(node, prepared, inputs, outputs, grads, as_stored)
        n_inputs = len(node.inputs)
        runner = prepared.backward_for(wanted, flags)
        if runner is None:
            runner = RuleRunner(node, prepared, wanted)
        if any(flags) or not as_stored:
            inputs = [self._as_laid_out(b, f) for b, f in zip(inputs, flags[:n_inputs], strict=True)]
            outputs = [self._as_laid_out(b, f) for b, f in zip(outputs, flags[n_inputs:], strict=True)]
        n_visible = len(grads)
        grads = [
            self._as_laid_out(b, f) for b, f in zip(grads, flags[n_inputs : n_inputs + n_visible], strict=True)
        ]
        gradients, additions = self._input_targets(node, prepared, wanted, flags)
        self._builder.add(node, runner, [*inputs, *outputs, *grads, *gradients], prepared.backend)
        self._accumulate(node, additions)

    def _layout(
        self,
        node: Node,
        prepared: Prepared,
        inputs: Sequence[Buffer | None],
        outputs: Sequence[Buffer | None],
        grads: Sequence[Buffer | None],
        as_stored: bool,
    ) -> tuple[bool, ...]:
        """Which inputs and outputs lie channels-last: as the forward pass left them, or as their gradients lie."""
        n_inputs, n_outputs = len(node.inputs), len(node.cells)
        if not as_stored:
            return (False,) * (n_inputs + n_outputs)
        out_flags = [buffer is not None and buffer.channels_last for buffer in outputs]
        for index, grad in enumerate(grads):
            if outputs[index] is None and grad is not None:
                out_flags[index] = grad.channels_last
        in_flags = []
        for cell, buffer in zip(_cells(node), inputs, strict=True):
            if buffer is not None:
                in_flags.append(buffer.channels_last)
            else:
                in_flags.append(cell is not None and self._lies_channels_last(cell))
        flags = (*in_flags, *out_flags)
        if prepared.layout == "any":
            present = [f for f, c in zip(in_flags, _cells(node), strict=True) if c is not None] + out_flags
            shapes = {tuple(c.data._shape) for c in _cells(node) if c is not None} | {
                tuple(c.data._shape) for c in node.cells
            }
            same = len(shapes) == 1 and any(present)
            return tuple(c is not None and same for c in _cells(node)) + (same,) * n_outputs
        return flags

    def _lies_channels_last(self, cell: Cell) -> bool:
        synced = cell.data._synced
        buffer = self._builder.data.get(synced)
        if buffer is not None:
            return buffer.channels_last
        owner = None if synced.tenure is None else synced.tenure.owner
        if isinstance(owner, ForwardPlan) and synced in owner.buffers:
            return owner.buffers[synced].channels_last
        return False

    def _as_laid_out(self, buffer: Buffer | None, channels_last: bool) -> Buffer | None:
        if buffer is None or buffer.channels_last == channels_last:
            return buffer
        copy = Buffer(buffer.shape, buffer.dtype, buffer.space)
        copy.channels_last = channels_last
        self._builder.add(None, _assign, (copy, buffer))
        return copy

    def _output_grads(self, node: Node, prepared: Prepared) -> list[Buffer | None]:
        grads: list[Buffer | None] = []
        n_visible = len(node.cells) - sum(entry.aux for entry in node.spec.outputs)
        for cell, dtype in list(zip(node.cells, prepared.output_dtypes, strict=True))[:n_visible]:
            target = self._targets.get(cell)
            if target is None or target.buffer is None:
                zeros = prepared.space.empty(cell.data._shape, dtype)
                zeros[...] = 0
                grads.append(Buffer(cell.data._shape, dtype, prepared.space, zeros))
            else:
                grads.append(self._converted(target.buffer, prepared.space, dtype))
        return grads

    def _converted(self, buffer: Buffer, space: Space, dtype: str) -> Buffer:
        if buffer.space is space and buffer.dtype == dtype:
            return buffer
        copy = Buffer(buffer.shape, dtype, space)
        self._builder.add(None, _Transfer(buffer.space, space), (buffer, copy))
        return copy

    def _input_targets(
        self, node: Node, prepared: Prepared, wanted: Sequence[bool], flags: Sequence[bool]
    ) -> tuple[list[Buffer | None], list[tuple[_Target, Buffer]]]:
        """Where the gradients of the inputs are written, and what is to be added to what afterwards."""
        gradients: list[Buffer | None] = []
        additions: list[tuple[_Target, Buffer]] = []
        for vertex, dtype, want, flag in zip(
            node.inputs, prepared.input_dtypes, wanted, flags[: len(node.inputs)], strict=True
        ):
            if vertex is None or not want or dtype is None:
                gradients.append(None)
                continue
            target = self._targets[vertex.cell]
            buffer, add = self._contribution(target, dtype, prepared.space, flag)
            gradients.append(buffer)
            if add:
                additions.append((target, buffer))
        return gradients, additions

    def _contribution(self, target: _Target, dtype: str, space: Space, channels_last: bool) -> tuple[Buffer, bool]:
        target.received += 1
        shape = target.cell.data._shape
        if target.is_leaf:
            if target.buffer is None:
                target.buffer = self._leaf_grad(target, dtype, space)
                if self._overwrite and (target.buffer.dtype, target.buffer.space) == (dtype, space):
                    return target.buffer, False
            return Buffer(shape, dtype, space), True
        buffer = Buffer(shape, dtype, space)
        buffer.channels_last = channels_last
        if target.buffer is None:
            target.buffer = buffer
            return buffer, False
        return buffer, True

    def _leaf_grad(self, target: _Target, dtype: str, space: Space) -> Buffer:
        grad = target.cell.grad
        if grad._shape != target.cell.data._shape:
            raise ShapeError(
                f"backward: grad must have the shape of data, got {grad._shape} for {target.cell.data._shape}"
            )
        synced = grad._synced
        key = (space, dtype)
        if self._overwrite:
            array = synced.write(key)
        else:
            synced.settle(key)
            array = synced.readwrite(key)
        synced.bound = True
        if all(known is not synced for known, _ in self._plan.leaf_grads):
            self._plan.leaf_grads.append((synced, key))
        self._plan.leaves.append((synced, key))
        buffer = Buffer(synced.shape, dtype, space, array)
        return buffer if synced.shape == grad._shape else alias(buffer, grad._shape)

    def _accumulate(self, node: Node | None, additions: Sequence[tuple[_Target, Buffer]]) -> None:
        for target, buffer in additions:
            total = target.buffer
            assert total is not None
            runner, backend = _adder(node, total, buffer)
            self._builder.add(None, runner, (total, buffer, total), backend)

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
            target.buffer = alias(grad, vertex.shape)
            return
        buffer, add = self._contribution(target, grad.dtype, grad.space, False)
        self._builder.add(node, _assign, (buffer, alias(grad, vertex.shape)))
        if add:
            self._accumulate(node, [(target, buffer)])

    def _add_python(self, node: Node, wanted: tuple[bool, ...]) -> None:
        inputs: list[Buffer | None] = []
        for cell in _cells(node):
            if cell is None:
                inputs.append(None)
                continue
            located = self._data.locate(cell.data._synced)
            head = cell.data._synced.head if located is None else (located.space, located.dtype)
            inputs.append(self._data.of(cell, head or (HOST, "float32"), True))
        outputs = [self._data.of(cell, (HOST, "float32"), True) for cell in node.cells]
        grads: list[Buffer | None] = []
        for cell in node.cells:
            target = self._targets.get(cell)
            if target is None or target.buffer is None:
                grads.append(Buffer(cell.data._shape, "float32", HOST, np.zeros(cell.data._shape, np.float32)))
            else:
                grads.append(self._as_laid_out(self._converted(target.buffer, HOST, "float32"), False))
        gradients: list[Buffer | None] = []
        additions: list[tuple[_Target, Buffer]] = []
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

    def finish(self, root: Vertex, clear_buffer: bool) -> None:
        """Place the arrays; let the gradients of kept variables be seen."""
        kept: list[_Target] = []
        for target in self._targets.values():
            if target.is_leaf or target.cell is root.cell or target.buffer is None:
                continue
            if not clear_buffer or target.vertex._persistent:
                target.buffer.keep = target.buffer.root().keep = True
                kept.append(target)
        self._builder.finish()
        for target in self._targets.values():
            if target.is_leaf or target.cell is root.cell or target.buffer is None:
                continue
            buffer = target.buffer
            if target in kept:
                array = buffer.resolve(self._plan.arena)
                synced = target.cell.grad._synced
                if synced.shape != buffer.shape:
                    array = array.reshape(synced.shape)
                self._plan.attachments.append(Attachment(synced, (buffer.space, buffer.dtype), array, True))
            elif target.cell._grad is not None:
                synced = target.cell._grad._synced
                self._plan.attachments.append(Attachment(synced, (buffer.space, buffer.dtype), None, False))


def _cells(node: Node) -> list[Cell | None]:
    return [None if vertex is None else vertex.cell for vertex in node.inputs]


class RuleRunner:
    """Runner that computes the gradients of a node by its gradient rule, on raw arrays."""

    __slots__ = ("_functions", "_n_inputs", "_n_outputs", "_n_visible", "_rule", "_shapes", "_spec_args", "_wanted")

    def __init__(self, node: Node, prepared: Prepared, wanted: Sequence[bool]) -> None:
        spec = node.spec
        rule = gradient_of(spec.name)
        if rule is None:
            raise GraphError(f"{spec.api}: the gradient must have a rule, got none for {spec.name}")
        self._rule: GradientRule = rule
        self._functions = ArrayFunctions(node.context, prepared.space)
        self._n_inputs = len(node.inputs)
        self._n_outputs = len(node.cells)
        self._n_visible = self._n_outputs - sum(entry.aux for entry in spec.outputs)
        self._shapes = [None if v is None else v.shape for v in node.inputs] + [c.data._shape for c in node.cells]
        self._spec_args = (spec, node.args)
        self._wanted = tuple(wanted)

    def __call__(self, *arrays: Array) -> None:
        n, m = self._n_inputs, self._n_outputs
        spec, args = self._spec_args
        values = [
            _ShapeOnly(shape) if array is None and shape is not None else array
            for array, shape in zip(arrays[: n + m], self._shapes, strict=True)
        ]
        grads = arrays[n + m : n + m + self._n_visible]
        targets = arrays[n + m + self._n_visible :]
        call = GradientCall(spec, values[:n], values[n:], grads, args, self._wanted)
        results = self._rule(self._functions, call)
        if not isinstance(results, (tuple, list)):
            results = (results,)
        for target, result in zip(targets, results, strict=True):
            if target is not None:
                target[...] = 0 if result is None else result


class _ShapeOnly:
    """Stands for an array of which a gradient rule may know the shape and nothing else."""

    __slots__ = ("ndim", "shape", "size")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.ndim = len(shape)
        self.size = int(np.prod(shape, dtype=np.int64))


class _Transfer:
    """Runner that brings a gradient to another space or dtype."""

    __slots__ = ("_source", "_target")

    def __init__(self, source: Space, target: Space) -> None:
        self._source = source
        self._target = target

    def __call__(self, *arrays: Array) -> None:
        source, target = arrays
        if self._source is self._target:
            target[...] = source
        else:
            target[...] = self._target.from_numpy(np.asarray(self._source.to_numpy(source)))


def _assign(target: Array, source: Array) -> None:
    target[...] = source


def _add(total: Array, part: Array, result: Array) -> None:
    result[...] = total + part


def _adder(node: Node | None, total: Buffer, part: Buffer) -> tuple[Runner, Any]:
    """A runner for total + part: the backend's kernel if both lie alike, else plain array code."""
    if node is None or (total.dtype, total.space) != (part.dtype, part.space) or total.channels_last != part.channels_last:
        return _add, None
    spec = spec_of_api("add2")
    args = {arg.name: arg.default for arg in spec.args}
    prepared = prepare(spec, args, (total.shape, total.shape), (None, None), node.context)  # type: ignore[arg-type]  # defaults are plain
    if prepared.space is not total.space or prepared.output_dtypes[0] != total.dtype:
        return _add, None
    if total.channels_last and prepared.layout != "any":
        return _add, None
    return prepared.forward_for((total.channels_last,) * 3), prepared.backend


def _set_start(plan: BackwardPlan, root: Vertex, grad: Any) -> None:
    """Write the gradient that the pass starts from."""
    buffer = plan.start
    if buffer is None:
        return
    array = buffer.array
    if isinstance(grad, NdArray):
        array[...] = grad.read(buffer.space, buffer.dtype)
        plan.start_value = None
    elif np.ndim(grad) == 0:
        value = float(grad)
        if plan.start_value != value:
            array[...] = value
            plan.start_value = value
    else:
        values = np.asarray(grad)
        if values.shape != root.shape:
            raise ShapeError(f"backward: grad must have the variable's shape {root.shape}, got {values.shape}")
        array[...] = values if buffer.space is HOST else buffer.space.from_numpy(values.astype(buffer.dtype))
        plan.start_value = None
