"""The forward pass: compile the graph of some variables into a plan, keep it, and run it."""

from collections.abc import Collection, Sequence
from typing import Any

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import HOST, SyncedArray
from nn_core.engine.graph.call import PreparedKernel
from nn_core.engine.graph.checkpoints import checkpoints
from nn_core.engine.graph.compile import (
    Builder,
    alias,
    assign,
    held_by_sinks,
    is_view,
    kernel_of,
    key_of,
    needed_data,
    new_key,
)
from nn_core.engine.graph.failure import named_leaf, raise_lack_in
from nn_core.engine.graph.fused_chain import CHAINS
from nn_core.engine.graph.hooks import Hook, NodeHook, active_hooks
from nn_core.engine.graph.infer import input_entries
from nn_core.engine.graph.inference_fusion import fused
from nn_core.engine.graph.mask_kinds import require_kind
from nn_core.engine.graph.memory import Buffer, n_bytes_of
from nn_core.engine.graph.node import RESHAPED, Node, Value, forward_order
from nn_core.engine.graph.plan import Attachment, Plan, current_plan, plans_of, remember, signature_of
from nn_core.engine.graph.plan_cache import refuse_turn
from nn_core.engine.graph.private_outputs import InputVersion, versions_in
from nn_core.engine.graph.python_function import PythonForward
from nn_core.engine.graph.reshape import OtherShapeError, adopt_found, fit, note_shapes
from nn_core.engine.graph.run import adopt_shape
from nn_core.engine.graph.seeds import FUNCTION_SEED
from nn_core.engine.graph.shared_layers import warn_of_shared_layers
from nn_core.engine.graph.uncomputed import require_values
from nn_core.engine.graph.zero_copy import Outlook
from nn_core.engine.runtime.atomic_calls import atomically
from nn_core.errors import ArgumentError, GraphError
from nn_core.settings import is_enabled, keeps_values
from nn_core.typing import Array, Runner

#: Retention policies of a forward pass: everything, what a backward pass needs, or the results only.
KEEP_ALL, KEEP_FOR_BACKWARD, KEEP_OUTPUTS = "all", "for backward", "outputs"


class ForwardPlan(Plan):
    """A plan that also remembers in which buffer it computes the data of each array."""

    def __init__(self, policy: str) -> None:
        super().__init__()
        self.policy = policy
        #: the functions with private outputs, and what a pass notes of their inputs
        self.private: list[tuple[Node, InputVersion]] = []
        self.buffers: dict[SyncedArray, Buffer] = {}


def run_forward(
    roots: Sequence[Value],
    clear_buffer: bool = False,
    clear_no_need_grad: bool = False,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
) -> None:
    """Compute the data of `roots` from the leaves of their graph."""
    hooks = active_hooks(pre_hook, post_hook)
    if (clear_buffer or clear_no_need_grad) and keeps_values():
        clear_buffer = clear_no_need_grad = False
    policy = KEEP_OUTPUTS if clear_buffer else KEEP_FOR_BACKWARD if clear_no_need_grad else KEEP_ALL
    if not roots:
        return
    turn = plans_of(roots[0]).turn
    (is_mine,) = atomically(turn.acquire, (False,))
    if not is_mine:
        raise refuse_turn("forward")
    try:
        # hooks may look at every value
        plan = forward_plan(roots, KEEP_ALL if hooks else policy)
        if plan is not None:
            _run(plan, roots, hooks)
    except ArgumentError as error:
        named = named_leaf(forward_order(roots), error)
        raise named from named.__cause__
    finally:
        turn.release()


def _run(plan: ForwardPlan, roots: Sequence[Value], hooks: tuple[list[NodeHook], list[NodeHook]] | None) -> None:
    # now and not when it is compiled: plans come and go, and the sequence of numbers must not depend on that
    for node in plan.seeded:
        new_key(node, FUNCTION_SEED.draw)
    # hooks may write: what they leave is not what the functions have read
    before = versions_in([node for node, _ in plan.private]) if hooks else None
    if plan.is_dynamic:
        _run_dynamic(plan, roots, hooks)
    else:
        plan.run(hooks)
    for node, version in plan.private if before is None else before:
        if before is None:
            version.note()
        node.computed_from = version


def _run_dynamic(plan: ForwardPlan, roots: Sequence[Value], hooks: tuple[list[NodeHook], list[NodeHook]] | None) -> None:
    """Run a plan in which shapes follow from values; where one has become another, start again with a plan for that.

    Random functions draw the same numbers again, and what functions rewrite is what it was before the pass. Each function
    finds its shape at most once, since those before it have found theirs.
    """
    order = forward_order(roots)
    before = _rewritten_leaves(order)
    for _ in range(1 + sum(node.spec.has("dynamic_shape") for node in order)):
        try:
            plan.run(hooks)
            return
        except OtherShapeError as found:
            for array, values in before:
                array.copy_from(values)
            adopt_found(found)
        again = forward_plan(roots, plan.policy)
        assert again is not None  # the same functions
        plan = again
    raise GraphError("forward: shapes that follow from values must be the same for the same values, got others in each run")


def compute_for_shapes(roots: Sequence[Value]) -> None:
    """Compute values from which shapes follow; what functions rewrite, such as running statistics, stays as it was."""
    before = _rewritten_leaves(forward_order(roots))
    run_forward(roots)
    for array, values in before:
        array.copy_from(values)


def _rewritten_leaves(order: Sequence[Node]) -> list[tuple[NdArray, NdArray]]:
    """Return the arrays of leaves that functions rewrite, each with a copy of its values."""
    pairs = [
        (value.storage.data, NdArray.of_shape(value.plain_shape))
        for node in order
        for entry, value in zip(input_entries(node.spec, len(node.inputs)), node.inputs, strict=True)
        if value is not None and value.is_leaf and entry.name in node.spec.updates
    ]
    for array, copy in pairs:
        copy.copy_from(array)
    return pairs


def forward_plan(roots: Sequence[Value], policy: str) -> ForwardPlan | None:
    """Return the plan for `roots`, compiled if there is none or if the graph has changed; None when nothing is to compute."""
    if not roots:
        return None
    plans = plans_of(roots[0])
    kind = (policy, *[id(root.storage) for root in roots[1:]])
    plan: ForwardPlan | None = current_plan(plans, kind, roots)
    if plan is None:
        order = forward_order(roots)
        if not order:
            return None
        if any(plans_of(root).fitted != RESHAPED.value for root in roots):
            order = fit(roots, order, compute_for_shapes)
            plans = plans_of(roots[0])
            plan = current_plan(plans, kind, roots)
        if plan is None:
            note_shapes(roots, order)
            warn_of_shared_layers(order)
            plan = compile_forward(roots, order, policy)
            remember(plans, kind, plan)
    return plan


def compile_forward(
    roots: Sequence[Value], order: Sequence[Node], policy: str, carried: frozenset[SyncedArray] = frozenset()
) -> ForwardPlan:
    """Resolve every node, place every array, and write down what the arrays hold afterwards.

    `carried` are arrays that are known to be read before they are computed.
    """
    plan = ForwardPlan(policy)
    builder = Builder(plan, carried=carried)
    dropped = {node for node in order if policy == KEEP_OUTPUTS or (policy == KEEP_FOR_BACKWARD and not node.need_grad)}
    # of what is fused nothing is left between; so nobody may be able to see it after the pass
    functions, skipped = fused(roots, order, dropped)
    pinned, survivors = _pinned(roots, order), _survivors(roots, order) | carried
    # who may look at all values may look at them in any order, so that these have memory of their own
    outlook = None if policy == KEEP_ALL else Outlook(functions, pinned, survivors)
    _emit(builder, functions, pinned, outlook)
    # an array that is read as a leaf and computed later holds two values in one pass; that is known only when all is emitted
    both = carried.union([synced for synced, _ in plan.leaves if synced in builder.data])
    if len(both) > len(carried):
        return compile_forward(roots, order, policy, both)
    plan.carried = carried
    _choose_kept(builder, survivors, order, policy)
    builder.finish()
    plan.buffers = builder.data
    plan.private = versions_in(functions)
    _attach(plan, survivors, skipped)
    plan.adopt()
    plan.bind(signature_of(order, roots), plan.bound_leaves())
    return plan


def _emit(  # noqa: C901  # each function of each new graph
    builder: Builder, functions: Sequence[Node], pinned: set[SyncedArray], outlook: Outlook | None
) -> None:
    """Add the operations of `functions`; `pinned` are arrays that must be C-contiguous."""
    dtypes: dict[SyncedArray, str] = {}  # in which functions that take any dtype find what others have computed
    for node in functions:
        try:
            if node.python is not None:
                _add_python(builder, node)
            elif not is_view(node):
                kernel = kernel_of(node, dtypes)
                if outlook is None or not outlook.shows(builder, node, kernel):
                    emit_forward(builder, node, kernel, pinned)
        except MemoryError as error:
            raise_lack_in(node, error, "inputs")
        for storage in node.storages:
            buffer = builder.data.get(storage.data.synced)
            if buffer is not None:
                dtypes[storage.data.synced] = buffer.dtype
        if node.spec.has("seeded") and node.python is None:
            builder.plan.seeded.append(node)


def _attach(plan: ForwardPlan, survivors: Collection[SyncedArray], skipped: Sequence[SyncedArray]) -> None:
    """Write down what the arrays hold after the pass: values in the plan's memory, or nothing any more."""
    for synced, buffer in plan.buffers.items():
        synced.bound = True
        array = buffer.resolve(plan.arena) if buffer.keep else None
        key = buffer.space, buffer.dtype
        plan.attachments.append(Attachment(synced, key, array, synced in survivors, buffer.is_shared))
    plan.attachments += [Attachment(synced, (HOST, "float32"), None, False) for synced in skipped]


def emit_forward(
    builder: Builder, node: Node, kernel: PreparedKernel, contiguous: set[SyncedArray], *, again: bool = False
) -> None:
    """Add the forward operation of `node`; with `again`, one that leaves running statistics alone."""
    require_kind(node, builder.data)
    as_stored = _takes_as_stored(builder, node, kernel.layout, contiguous)
    inputs = _read_inputs(builder, node, kernel, as_stored, again)
    outputs = _output_buffers(node, kernel, contiguous, as_stored)
    # a backend compiles a kernel for the layout of each array
    flags = tuple([b is not None and b.channels_last for b in (*inputs, *outputs)])
    arrays: list[Buffer | None] = [*inputs, *outputs]
    runner: Runner = kernel.forward_for(flags)
    chain = CHAINS.get(node) if CHAINS else None
    if chain is not None:
        runner = chain.guarded(runner, kernel)
    if kernel.seeded:
        arrays.append(Buffer((2,), "uint64", HOST, key_of(node)))
    if kernel.dynamic:
        runner = _FixedShape(node, runner, len(inputs))
        builder.plan.is_dynamic = True
    # hooks of a backward pass see gradients only
    builder.add(None if again else node, runner, arrays, kernel.backend, strided=kernel.strided)
    for storage, buffer in zip(node.storages, outputs, strict=True):
        synced = storage.data.synced
        builder.data[synced] = buffer if buffer.shape == synced.shape else alias(buffer, synced.shape)


def _takes_as_stored(builder: Builder, node: Node, layout: str, contiguous: set[SyncedArray]) -> bool:
    """Return whether a kernel that asks for `layout` gets channels-last arrays as they are."""
    if layout == "any":
        return _all_channels_last(builder, node, contiguous)
    return layout == "channels_last" or (layout == "first" and _first_channels_last(builder, node))


def _read_inputs(builder: Builder, node: Node, kernel: PreparedKernel, as_stored: bool, again: bool) -> list[Buffer | None]:
    """Return buffers with the inputs of `node`: in their present layout with `as_stored`, else in C order."""
    inputs: list[Buffer | None] = []
    for value, key, updated in zip(node.inputs, kernel.input_keys, kernel.updated, strict=True):
        if value is None or key is None:
            inputs.append(None)
        elif updated:
            inputs.append(_updated(builder, value.storage.data.synced, value, key, again))
        else:
            if value.storage.data.synced not in builder.data:
                require_values(node, value)
            inputs.append(builder.read(value.storage.data, key, not as_stored, kernel.backend, strided=kernel.strided))
    return inputs


def _output_buffers(node: Node, kernel: PreparedKernel, contiguous: set[SyncedArray], as_stored: bool) -> list[Buffer]:
    """Return buffers for the outputs of `node`; images get the layout of its inputs unless a reader needs C order."""
    for position, shape in kernel.private:
        adopt_shape(node.storages[position].data, shape)
    outputs: list[Buffer] = []
    made = zip(node.storages, kernel.output_shapes, kernel.output_dtypes, strict=True)
    for position, (storage, shape, dtype) in enumerate(made):
        buffer = Buffer(storage.data.shape if kernel.dynamic else shape, dtype, kernel.space)
        # a backend lays out images this way, and the statistics that it returns with them in C order
        is_image = 3 <= len(shape) <= 5 and (position == 0 or kernel.layout == "any")
        buffer.channels_last = as_stored and is_image and storage.data.synced not in contiguous
        outputs.append(buffer)
    return outputs


def _all_channels_last(builder: Builder, node: Node, contiguous: set[SyncedArray]) -> bool:
    """Return whether all inputs have one shape and are channels-last, and the outputs may be: the kernel then runs on
    them so.
    """
    if any(storage.data.synced in contiguous for storage in node.storages):
        return False
    shapes = set()
    for value in node.inputs:
        if value is None:
            continue
        array = value.storage.data
        buffer = builder.data.get(array.synced)
        if buffer is None or not buffer.channels_last or buffer.shape != array.shape:
            return False
        shapes.add(buffer.shape)
    return len(shapes) == 1


def _first_channels_last(builder: Builder, node: Node) -> bool:
    """Return whether the first input, in its own shape, is channels-last."""
    value = node.inputs[0] if node.inputs else None
    if value is None:
        return False
    array = value.storage.data
    buffer = builder.data.get(array.synced)
    return buffer is not None and buffer.channels_last and buffer.shape == array.shape


def _updated(builder: Builder, synced: SyncedArray, value: Value, key: Any, again: bool) -> Buffer:
    """Return an input that the function rewrites: the array of a leaf, else scratch memory.

    What another function computed stays as it is, because gradients may read it.
    """
    shape = value.storage.data.shape
    if not again:
        builder.rewritten.add(synced)
    if again or synced in builder.data:
        scratch = Buffer(shape, key[1], key[0])
        builder.add(None, assign, (scratch, builder.read(value.storage.data, key, True)))
        return scratch
    if value.storage.data.is_narrowed:
        raise GraphError(f"an array that a function rewrites must not be a narrowed one, got one of shape {shape}")
    synced.make_contiguous(key)
    synced.readwrite(key)
    builder.plan.rewritten.append(synced)
    return builder.read(value.storage.data, key, True)


def _add_python(builder: Builder, node: Node) -> None:
    """Add a function written in Python, which reads and writes the variables' arrays itself."""
    inputs: list[Buffer | None] = []
    for value in node.inputs:
        if value is None:
            inputs.append(None)
            continue
        synced = value.storage.data.synced
        key = (builder.data[synced].space, builder.data[synced].dtype) if synced in builder.data else None
        inputs.append(builder.read(value.storage.data, key or synced.latest or (HOST, "float32"), True))
    outputs = [Buffer(storage.data.shape, node.python.output_dtype, HOST) for storage in node.storages]
    builder.add(node, PythonForward(node), [*inputs, *outputs])
    for storage, buffer in zip(node.storages, outputs, strict=True):
        synced = storage.data.synced
        builder.data[synced] = buffer if buffer.shape == synced.shape else alias(buffer, synced.shape)


def _pinned(roots: Sequence[Value], order: Sequence[Node]) -> set[SyncedArray]:
    """Return the arrays that must be C-contiguous: results, arrays with views, and those that functions in Python touch."""
    # whoever gets these looks at them as NumPy does, or as at one piece of memory
    pinned = {root.storage.data.synced for root in roots}
    for node in order:
        if node.python is not None or is_view(node):
            pinned.update(value.storage.data.synced for value in node.inputs if value is not None)
            pinned.update(storage.data.synced for storage in node.storages)
    return pinned


def _choose_kept(builder: Builder, survivors: set[SyncedArray], order: Sequence[Node], policy: str) -> None:
    """Mark the buffers that keep their values after the pass."""
    moved = _moved(order)
    kept = survivors | _touched_by_python(order)
    if policy == KEEP_FOR_BACKWARD:
        kept |= _read_backward(order, moved)
    dropped = {synced for node in order if node not in moved for synced in _recomputed(node)}
    if policy != KEEP_OUTPUTS:
        ends = _ends_of_segments(builder, order, dropped - survivors)
        dropped -= ends
        kept |= ends
    for synced, buffer in builder.data.items():
        # `recompute` is stronger than the policy, and what survives every pass is stronger than `recompute`
        wanted = policy == KEEP_ALL or synced in kept
        if wanted and (synced not in dropped or synced in survivors):
            # an alias is kept with the memory that it shows
            buffer.keep = buffer.root().keep = True


def _read_backward(order: Sequence[Node], moved: set[Node]) -> set[SyncedArray]:
    """Return what the backward pass reads, and the results of functions that cannot be computed again."""
    read: set[SyncedArray] = set()
    for node in order:
        if node in moved:  # the recomputation of others must not come as far
            read.update(storage.data.synced for storage in node.storages)
        if node.need_grad:
            read.update(_for_backward(node))
    return read


def _ends_of_segments(builder: Builder, order: Sequence[Node], dropped: set[SyncedArray]) -> set[SyncedArray]:
    """Return which of the values that are to be computed again are kept, so that not all are needed at once."""
    if not dropped or not is_enabled("checkpoints"):
        return set()
    return checkpoints(order, {synced: n_bytes_of(builder.data[synced]) for synced in dropped if synced in builder.data})


def _recomputed(node: Node) -> list[SyncedArray]:
    """Return the outputs of `node` that the backward pass computes again."""
    # a view holds no memory of its own: it is dropped with what it is a view of, or not at all; what a PythonFunction has
    # computed is kept, since its second run might see and give something else
    if is_view(node) or node.python is not None:
        return []
    values = [node.output(index) for index in range(len(node.storages))]
    pairs = zip(node.storages, values, strict=True)
    return [storage.data.synced for storage, value in pairs if value is not None and value.recompute]


def _for_backward(node: Node) -> list[SyncedArray]:
    """Return what the gradient of `node` reads of its inputs and outputs."""
    inputs, outputs = needed_data(node)
    found = [v.storage.data.synced for v, n in zip(node.inputs, inputs, strict=True) if n and v is not None]
    found += [c.data.synced for c, n in zip(node.storages, outputs, strict=True) if n]
    return found


def _moved(order: Sequence[Node]) -> set[Node]:
    """Return the functions that read what they or others rewrite: computed again, they would give other results."""
    rewritten = {value.storage.data.synced for node in order for value in node.rewritten()}
    if not rewritten:
        return set()
    return {node for node in order if any(array in rewritten for array in _decisive(node))}


def _decisive(node: Node) -> list[SyncedArray]:
    """Return the inputs that the results depend on: all but running statistics that are written only."""
    recomputable = node.python is None and node.spec.has("recomputable")
    unread = {value.storage.data.synced for value in node.rewritten()} if recomputable else set()
    read = [value.storage.data.synced for value in node.inputs if value is not None]
    return [array for array in read if array not in unread]


def _touched_by_python(order: Sequence[Node]) -> set[SyncedArray]:
    touched: set[SyncedArray] = set()
    for node in order:
        if node.python is not None:
            touched.update(value.storage.data.synced for value in node.inputs if value is not None)
            touched.update(storage.data.synced for storage in node.storages)
    return touched


def _survivors(roots: Sequence[Value], order: Sequence[Node]) -> set[SyncedArray]:
    """Arrays whose values survive every clear flag: those of results, of persistent variables and of what sinks hold."""
    survivors = {root.storage.data.synced for root in roots} | held_by_sinks(order)
    for node in order:
        for index, storage in enumerate(node.storages):
            value = node.output(index)
            if value is not None and value.persistent:
                survivors.add(storage.data.synced)
    return survivors


class _FixedShape:
    """Runner of a function whose result has a shape known only now; where that is not the one of the plan, the pass ends."""

    __slots__ = ("_n_inputs", "_node", "_runner")

    def __init__(self, node: Node, runner: Runner, n_inputs: int) -> None:
        self._node = node
        self._runner = runner
        self._n_inputs = n_inputs

    def __call__(self, *arrays: Array) -> None:
        results: Any = self._runner(*arrays[: self._n_inputs])
        if any(result.shape != target.shape for target, result in zip(arrays[self._n_inputs :], results, strict=False)):
            raise OtherShapeError(self._node, [tuple(result.shape) for result in results])
        for target, result in zip(arrays[self._n_inputs :], results, strict=False):
            target[...] = result


__all__ = ["ForwardPlan", "compile_forward", "emit_forward", "forward_plan", "run_forward"]
