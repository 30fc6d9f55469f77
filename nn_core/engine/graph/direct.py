"""A backward pass that is run once, function by function, without a plan.

Compiling a pass costs several times what running it does, which pays when the structure of a graph comes back often. A
program whose structure is new in almost every step (layers skipped at random, trees, other lengths) would pay it each time.
So a pass is compiled when the graph before it had the same structure, or when that was seen several times; until then
graphs go back through their functions here.

Kernels overwrite what they are given, as in a plan; what several functions contribute is added up here.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import HOST, Key, SyncedArray
from nn_core.engine.graph.call import PreparedKernel
from nn_core.engine.graph.compile import data_read, is_view
from nn_core.engine.graph.failure import note_partial_sums, raise_lack, shapes_of
from nn_core.engine.graph.gradient_rule import RuleRunner
from nn_core.engine.graph.node import Node, Storage, Value
from nn_core.engine.graph.replay import GraphCall, Structure, release
from nn_core.engine.graph.run import fetch, value_of
from nn_core.engine.graph.tracing import LISTENERS, traced
from nn_core.errors import ShapeError
from nn_core.typing import Array, ArrayDesc, Runner

#: How often a structure was seen, by the hash of its key; where two share one, a pass is compiled early.
_SEEN: Final[dict[int, int]] = {}
MAX_SEEN: Final = 4096
#: So many passes of a structure are run here: compiling one costs about as much as ten compiled passes save.
MAX_RUNS: Final = 8


class _Latest(threading.local):
    """The key of the structure that a thread saw last: what others do must not decide which of two roundings it gets."""

    key = 0


_LATEST: Final = _Latest()
#: Gradients of leaves add up in float32 at least; plans see to that.
_NARROW: Final = ("float16", "bfloat16")


class _Gradient:
    """The gradient of a kernel for one choice of inputs that need one, kept with the kernel, which outlives the graph.

    Attributes:
        kernel: The kernel.
        dtype: The floating dtype of all arrays, "" where none is floating; None: it is better left to a plan.
        runner: The fused gradient of the backend, or the gradient rule, for arrays in C order; None: no input has a gradient.
        read: For each input, the key under which the gradient reads its data; None where it does not.
        read_results: The same for the outputs; empty where it reads none.
        unread: What the runner takes in place of the data of outputs that it does not read.
        makers: For each input, what makes memory for its gradient; None where there is none: indices and labels have none.
        n_visible: Of how many outputs it takes the gradients.
    """

    __slots__ = ("dtype", "kernel", "makers", "n_visible", "read", "read_results", "runner", "unread")

    def __init__(self, kernel: PreparedKernel, needs: Sequence[bool]) -> None:
        self.kernel = kernel
        self.dtype = _dtype_without_plan(kernel)
        self.runner: Runner | None = None
        if self.dtype is None:
            return
        descs, n_outputs = kernel.call.inputs, len(kernel.output_shapes)
        self.makers = [_maker(kernel, desc) if need else None for need, desc in zip(needs, descs, strict=True)]
        reads, reads_results = data_read(kernel.spec, kernel.args, len(descs), n_outputs)
        self.read = _those_read(kernel.input_keys, reads)
        self.read_results = _those_read(kernel.output_keys, reads_results) if any(reads_results) else []
        self.unread = (None,) * n_outputs
        self.n_visible = n_outputs - sum(entry.aux for entry in kernel.spec.outputs)
        wanted = tuple([maker is not None for maker in self.makers])
        if any(wanted) and kernel.spec.differentiable:
            self.runner = kernel.backward_for(wanted, (False,) * (len(descs) + n_outputs)) or _rule(kernel, wanted)


def _dtype_without_plan(kernel: PreparedKernel) -> str | None:
    # with one dtype on the host nothing is to be converted, which plans are better at; a sink's gradients are to be set
    if kernel.space is not HOST or kernel.dynamic or kernel.spec.has("sink") or kernel.one_dtype in _NARROW:
        return None
    return kernel.one_dtype


def _those_read(keys: Sequence[Key | None], reads: Sequence[bool]) -> Sequence[Key | None]:
    return [key if needed else None for key, needed in zip(keys, reads, strict=True)]


def _maker(kernel: PreparedKernel, desc: ArrayDesc | None) -> Callable[[], Array] | None:
    return None if desc is None or dtype_of(desc.dtype).kind in "iub" else kernel.maker(desc)


def _rule(kernel: PreparedKernel, wanted: Sequence[bool]) -> Runner:
    shapes = [None if desc is None else desc.shape for desc in kernel.call.inputs]
    return RuleRunner(kernel, shapes, kernel.output_shapes, wanted)


#: One function of a graph: its node or lazy value, its gradient (None: the output is the memory of the input), its inputs, and
#: where each input comes from: the slot of its gradient, None for a leaf. A tuple, because each call of a pass makes one.
_Call: TypeAlias = tuple[GraphCall, _Gradient | None, Sequence[Value | None], Sequence["_Slot | None"]]
#: Output number n of the part with this `id`; the `id` alone for the first.
_Slot: TypeAlias = "int | tuple[int, int]"


def is_new(key: Any) -> bool:
    """Return whether few graphs of this structure were seen lately, and another one came last; from now on it is one more."""
    # by hash: a key would keep the leases and the kernels in it alive
    key = hash(key)
    n_seen = _SEEN.get(key, 0)
    if n_seen and (key == _LATEST.key or n_seen == MAX_RUNS):
        return False
    _LATEST.key = key
    # `pop` with a default, because another thread may have dropped the oldest meanwhile
    while len(_SEEN) >= MAX_SEEN and not n_seen:
        _SEEN.pop(next(iter(_SEEN)), None)
    _SEEN[key] = n_seen + 1
    return True


def run_followed(root: Value, grad: Any) -> bool:
    """`run` for a graph all of whose calls one trace has followed.

    The trace knows everything about the calls, so nothing is described.
    """
    calls = _followed(root)
    dtype = None if calls is None else _common_dtype(calls)
    if calls is None or dtype is None:
        return False
    _propagate(calls, dtype, root, grad)
    release([part for part, *_ in calls], root, all_lazy=True)
    return True


def run(structure: Structure, root: Value, grad: Any) -> bool:
    """Compute the gradients of the leaves and give up the intermediate values, unless a plan is better at it.

    Returns:
        Whether that was done: all functions must work on the host in one floating dtype of full width, and leave no
        gradients to be set.
    """
    parts = {id(part): part for part in structure.order}
    # in this order: asking whether an input needs a gradient may turn a lazy value into a node
    calls = [_call_of(part, parts) for part in structure.order]
    calls.reverse()
    dtype = _common_dtype(calls)
    if dtype is None:
        return False
    _propagate(calls, dtype, root, grad)
    release(structure.order, root, structure.all_lazy)
    return True


def _common_dtype(calls: Sequence[_Call]) -> str | None:
    """Return the one floating dtype of all functions; None where there are several, or where a plan is better at one of
    them.
    """
    found = ""
    for part, gradient, _, _ in calls:
        if gradient is None:
            if not is_view(part):  # type: ignore[arg-type]  # only nodes have no gradient of their own
                return None
        elif gradient.dtype != found and gradient.dtype != "":
            if found or gradient.dtype is None:
                return None
            found = gradient.dtype
    return found or None


def _gradient_of(kernel: PreparedKernel, needs: tuple[bool, ...]) -> _Gradient:
    gradient: _Gradient | None = kernel.gradients.get(needs)
    if gradient is None:
        gradient = kernel.gradients[needs] = _Gradient(kernel, needs)
    return gradient


def _followed(root: Value) -> list[_Call] | None:
    """Return the functions before `root`, each before those that give its inputs; None when nodes of some have been made."""
    trace = root._trace
    wanted = {id(root)}
    calls: list[_Call] = []
    for reference in reversed(trace.results[: trace.position_of(root) + 1]):
        value = reference()
        if value is None or id(value) not in wanted:
            continue
        inputs, node = value.lazy_inputs, value.trace_node  # in this order: another thread may make the node
        if node is None:
            return None
        origins: list[_Slot | None] = []
        for given in inputs:
            if given is not None and given._trace is trace:
                origin = id(given)
                wanted.add(origin)
                origins.append(origin)
            elif given is None or (given.trace_node is None and given._producer is None):  # as `is_leaf`
                origins.append(None)
            else:
                return None
        calls.append((value, _gradient_of(node.kernel, node.needs), inputs, origins))
    return calls


def _call_of(part: GraphCall, parts: Mapping[int, GraphCall]) -> _Call:
    inputs, kernel = (part.inputs, part.kernel) if isinstance(part, Node) else (part.lazy_inputs, part.trace_node.kernel)
    below = [None if value is None else _source_of(value, parts) for value in inputs]
    origins = [
        None if source is None or value is None else _slot(source, value.output_index)
        for source, value in zip(below, inputs, strict=True)
    ]
    if isinstance(part, Node) and kernel.spec.has("view"):
        return part, None, inputs, origins
    needs = tuple([value is not None and value.need_grad for value in inputs])
    return part, _gradient_of(kernel, needs), inputs, origins


def _slot(part: GraphCall, index: int) -> _Slot:
    return (id(part), index) if index else id(part)


def _source_of(value: Value, parts: Mapping[int, GraphCall]) -> GraphCall | None:
    """Return the part of the pass that gives `value`; None for a leaf.

    `part_of` would not do: when another thread changes a flag meanwhile, it makes the node of a lazy value, under which
    no gradient would be found.
    """
    part = parts.get(id(value))
    if part is None and not value.is_leaf:
        part = parts[id(value.producer)]
    return part


def _propagate(calls: Sequence[_Call], dtype: str, root: Value, grad: Any) -> None:
    """Compute the gradients of the leaves; each function of `calls` comes before those that give its inputs."""
    flow: dict[_Slot, Array] = {_slot(calls[0][0], root.output_index): _start(calls[0], root, grad)}
    sums = _LeafSums((HOST, dtype))
    try:
        _flow_back(calls, flow, sums)
    except BaseException as error:
        sums.give_zeros_back(error)
        raise


def _flow_back(calls: Sequence[_Call], flow: dict[_Slot, Array], sums: "_LeafSums") -> None:
    for part, gradient, inputs, origins in calls:
        # taken out: a gradient has one reader, and its memory is free for the next
        arriving = flow.pop(id(part), None)
        if gradient is None:
            targets = _through_view(arriving, inputs)
        elif gradient.n_visible > 1:
            targets = _computed(part, gradient, inputs, _all_arriving(flow, arriving, part, gradient))
        else:
            targets = () if arriving is None else _computed(part, gradient, inputs, (arriving,))
        for value, origin, target in zip(inputs, origins, targets):  # noqa: B905  # without targets, nothing flows
            if target is None:
                continue
            if origin is None:
                sums.add(value.storage, target)  # type: ignore[union-attr]  # what is not given has no target
            elif origin in flow:
                # in place: nobody outside of this pass has seen either of them
                flow[origin] += target
            else:
                flow[origin] = target


def _start(last: _Call, root: Value, grad: Any) -> Array:
    part, gradient, *_ = last
    kernel: PreparedKernel = part.kernel if gradient is None else gradient.kernel  # type: ignore[union-attr]  # a node
    start = np.empty(root.plain_shape, dtype_of(kernel.output_dtypes[root.output_index]))
    with np.errstate(over="ignore"):  # infinite where the dtype does not go as far
        start[...] = grad.get_data("r") if isinstance(grad, NdArray) else grad
    return start


def _all_arriving(flow: dict[_Slot, Array], first: Array | None, part: GraphCall, gradient: _Gradient) -> Sequence[Array]:
    """Return the gradients of several results, zeros where none flows; nothing when there is none at all."""
    grads = [first, *[flow.pop((id(part), index), None) for index in range(1, gradient.n_visible)]]
    if all(grad is None for grad in grads):
        return ()
    kernel = gradient.kernel
    return [
        np.zeros(shape, dtype_of(dtype)) if grad is None else grad.astype(dtype_of(dtype), copy=False)
        for grad, shape, dtype in zip(grads, kernel.output_shapes, kernel.output_dtypes, strict=False)
    ]


def _through_view(arriving: Array | None, inputs: Sequence[Value | None]) -> Sequence[Array | None]:
    (value,) = inputs
    assert value is not None
    return () if arriving is None or not value.need_grad else (arriving.reshape(value.plain_shape),)


def _computed(
    part: GraphCall, gradient: _Gradient, inputs: Sequence[Value | None], grads: Sequence[Array]
) -> Sequence[Array | None]:
    """Return the gradients of the inputs, None for those that have none."""
    runner = gradient.runner
    if runner is None or not grads:
        return ()
    data = [
        None if key is None or value is None else value_of(value, key)
        for value, key in zip(inputs, gradient.read, strict=True)
    ]
    results = _results(part, gradient.read_results) if gradient.read_results else gradient.unread
    kernel = gradient.kernel
    try:
        targets = [None if make is None else make() for make in gradient.makers]
        arrays = (*data, *results, *grads, *targets)
        if LISTENERS:
            traced(runner, arrays, kernel.spec, kernel.args, kernel.backend, kernel.implementation, "backward")
        else:
            runner(*arrays)
    except MemoryError as error:
        raise_lack(kernel.spec, shapes_of(inputs), (), error, "backward")
    return targets


def _results(part: GraphCall, keys: Sequence[Key | None]) -> Sequence[Array | None]:
    if isinstance(part, Node):
        return [None if key is None else fetch(storage.data, key) for storage, key in zip(part.storages, keys, strict=True)]
    return [None if key is None else value_of(part, key) for key in keys]


class _LeafSums:
    """The gradients of leaves as a pass adds to them; one that is zero is overwritten first."""

    __slots__ = ("_is_adding", "_key", "_totals", "_zeroed")

    def __init__(self, key: Key) -> None:
        self._key = key
        self._totals: dict[int, Array] = {}  # by the address of the storage
        #: those that were zero before the pass, and whether there are others
        self._zeroed: list[SyncedArray] = []
        self._is_adding = False

    def add(self, storage: Storage, part: Array) -> None:
        """Add to what the gradient of a leaf holds."""
        total = self._totals.get(id(storage))
        if total is not None:
            total += part
            return
        grad = storage.grad
        if grad.shape != storage.data.shape:
            raise ShapeError(f"backward: grad must have the shape of data, got {grad.shape} for {storage.data.shape}")
        if grad.synced.cleared:
            grad.zero()  # the gradient of what was an intermediate value, and is a leaf now
        if grad.is_unwritten and not grad.is_narrowed:
            self._zeroed.append(grad.synced)
            total = grad.write(*self._key)
            total[...] = part
        else:
            self._is_adding = True
            total = grad.readwrite(*self._key)
            total += part
        self._totals[id(storage)] = total

    def give_zeros_back(self, error: BaseException) -> None:
        """Do what `BackwardPlan.give_zeros_back` does."""
        for synced in self._zeroed:
            synced.fill(0.0)
        if self._is_adding:
            note_partial_sums(error)
