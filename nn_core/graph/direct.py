"""A backward pass that is run once, function by function, without a plan.

Compiling a pass costs several times what running it does, which pays when the structure of a graph comes back often. A
program whose structure is new in almost every step (layers skipped at random, trees, other lengths) would pay it each time.
So a pass is compiled when the graph before it had the same structure, or when that was seen several times; until then
graphs go back through their functions here.

Kernels overwrite what they are given, as in a plan; what several functions contribute is added up here.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from nn_core.arrays.ndarray import NdArray
from nn_core.arrays.synced import HOST, Key, dtype_of
from nn_core.errors import ShapeError
from nn_core.graph.call import PreparedKernel
from nn_core.graph.compile import data_read, is_view
from nn_core.graph.node import Node, Value
from nn_core.graph.replay import Part, Structure, is_kept, release
from nn_core.graph.rule import RuleRunner
from nn_core.graph.run import fetch
from nn_core.typing import Array, Runner, Shape

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


class _Call(NamedTuple):
    """One function of a graph: its kernel, its inputs, which of them need a gradient, and whose outputs they are.

    An input is output number n of a function, the part with the `id` that `origins` has, or a leaf (None).
    """

    part: Part
    kernel: PreparedKernel
    inputs: Sequence[Value | None]
    needs: tuple[bool, ...]
    origins: Sequence[tuple[int, int] | None]


class _Gradient:
    """The gradient of a kernel for one choice of inputs, kept with the kernel, which outlives the graph.

    Attributes:
        runner: The fused gradient of the backend, or the gradient rule, for arrays in C order; None: no input has a gradient.
        reads_inputs, reads_outputs: Of which inputs and outputs it reads the data.
        makers: For each input, what makes memory for its gradient; None where there is none: indices and labels have none.
    """

    __slots__ = ("makers", "reads_inputs", "reads_outputs", "runner")

    def __init__(self, kernel: PreparedKernel, needs: Sequence[bool]) -> None:
        descs = kernel.call.inputs
        self.makers: list[Callable[[], Array] | None] = [
            kernel.maker(desc) if need and desc is not None and dtype_of(desc.dtype).kind not in "iub" else None
            for need, desc in zip(needs, descs, strict=True)
        ]
        self.reads_inputs, self.reads_outputs = data_read(kernel.spec, kernel.args, len(descs), len(kernel.output_shapes))
        self.runner: Runner | None = None
        wanted = tuple([maker is not None for maker in self.makers])
        if any(wanted):
            self.runner = kernel.backward_for(wanted, (False,) * (len(descs) + len(kernel.output_shapes)))
            if self.runner is None:
                shapes = [None if desc is None else desc.shape for desc in descs]
                self.runner = RuleRunner(kernel, shapes, kernel.output_shapes, wanted)


def is_new(key: Any) -> bool:
    """Whether few graphs of this structure were seen lately, and another one came last; from now on it is one more."""
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
    if calls is None or not _can_run(calls):
        return False
    _propagate(calls, root, grad)
    release([call.part for call in calls], root, all_lazy=True)
    return True


def run(structure: Structure, root: Value, grad: Any) -> bool:
    """Compute the gradients of the leaves and give up the intermediate values, unless a plan is better at it.

    Returns:
        Whether that was done: all functions must work on the host in one floating dtype of full width, and leave no
        gradients to be set.
    """
    parts = {id(part): part for part in structure.order}
    calls = [_call_of(part, parts) for part in structure.order]  # reading an array may turn a lazy value into a node
    if not _can_run(calls):
        return False
    _propagate(calls, root, grad)
    release(structure.order, root, structure.all_lazy)
    return True


def _can_run(calls: Sequence[_Call]) -> bool:
    # with one dtype nothing is to be converted, which plans are better at
    dtype = next((call.kernel.one_dtype for call in calls if call.kernel.one_dtype), None)
    if dtype is None or dtype in _NARROW:
        return False
    return all(call.kernel.one_dtype in (dtype, "") and _is_simple(call) for call in calls)


def _is_simple(call: _Call) -> bool:
    """Whether a function runs on the host, and takes its gradient from those that read its results."""
    kernel, spec = call.kernel, call.kernel.spec
    if kernel.space is not HOST or kernel.dynamic or spec.has("sink"):
        return False
    return isinstance(call.part, Value) or not spec.has("view") or is_view(call.part)


def _followed(root: Value) -> list[_Call] | None:
    """The functions before `root`, each after those that give its inputs; None when nodes of some have been made."""
    trace = root._trace
    needed = {id(root)}
    calls: list[_Call] = []
    for reference in reversed(trace.results[: root.trace_node.position + 1]):
        value = reference()
        if value is None or id(value) not in needed:
            continue
        inputs, node = value.lazy_inputs, value.trace_node  # in this order: another thread may make the node
        if node is None or not is_kept(value):
            return None
        origins: list[tuple[int, int] | None] = []
        for given in inputs:
            if given is not None and given._trace is trace:
                needed.add(id(given))
                origins.append((id(given), 0))
            elif given is None or given.is_leaf:
                origins.append(None)
            else:
                return None
        calls.append(_Call(value, node.kernel, inputs, node.needs, origins))
    calls.reverse()
    return calls


def _call_of(part: Part, parts: Mapping[int, Part]) -> _Call:
    inputs, kernel = (part.inputs, part.kernel) if isinstance(part, Node) else (part.lazy_inputs, part.trace_node.kernel)
    below = [None if value is None else _source_of(value, parts) for value in inputs]
    origins = [
        None if source is None or value is None else (id(source), value.output_index)
        for source, value in zip(below, inputs, strict=True)
    ]
    return _Call(part, kernel, inputs, tuple([value is not None and value.need_grad for value in inputs]), origins)


def _source_of(value: Value, parts: Mapping[int, Part]) -> Part | None:
    """The part of the pass that gives `value`; None for a leaf.

    `part_of` would not do: when another thread changes a flag meanwhile, it makes the node of a lazy value, under which
    no gradient would be found.
    """
    part = parts.get(id(value))
    if part is None and not value.is_leaf:
        part = parts[id(value.producer)]
    return part


def _propagate(calls: Sequence[_Call], root: Value, grad: Any) -> None:
    """Compute the gradients of the leaves."""
    last = calls[-1]
    flow = {(id(last.part), root.output_index): _start(root.shape, last.kernel.output_dtypes[root.output_index], grad)}
    for call in reversed(calls):
        # taken out: a gradient has one reader, and its memory is free for the next
        n_visible = call.part.n_visible if isinstance(call.part, Node) else 1
        grads = [flow.pop((id(call.part), index), None) for index in range(n_visible)]
        if all(grad is None for grad in grads):
            continue
        gradients, keys = _gradients(call, grads), call.kernel.input_keys
        for value, origin, part, key in zip(call.inputs, call.origins, gradients, keys, strict=False):
            if value is None or part is None or key is None:
                continue
            if origin is None:
                _add_to_leaf(value.storage.data.shape, value.storage.grad, key, part)
            elif origin in flow:
                # in place: nobody outside of this pass has seen either of them
                flow[origin] += part
            else:
                flow[origin] = part


def _start(shape: Shape, dtype: str, grad: Any) -> Array:
    start = np.empty(shape, dtype_of(dtype))
    start[...] = grad.get_data("r") if isinstance(grad, NdArray) else grad
    return start


def _gradients(call: _Call, grads: Sequence[Array | None]) -> Sequence[Array | None]:
    """The gradients of the inputs, None for those that have none."""
    part, kernel, inputs, needs, _ = call
    if isinstance(part, Node) and is_view(part):
        assert inputs[0] is not None
        assert grads[0] is not None
        return [grads[0].reshape(inputs[0].shape) if needs[0] else None]
    gradient = kernel.gradients.get(needs)
    if gradient is None:
        gradient = kernel.gradients[needs] = _Gradient(kernel, needs)
    if gradient.runner is None:
        return ()
    targets = [None if make is None else make() for make in gradient.makers]
    gradient.runner(*_data(call, gradient), *_filled(kernel, grads), *targets)
    return targets


def _filled(kernel: PreparedKernel, grads: Sequence[Array | None]) -> Sequence[Array]:
    """The gradients of all results but the aux ones: zeros where none flows."""
    return [
        np.zeros(shape, dtype_of(dtype)) if grad is None else grad
        for grad, shape, dtype in zip(grads, kernel.output_shapes, kernel.output_dtypes, strict=False)
    ]


def _data(call: _Call, gradient: _Gradient) -> list[Array | None]:
    """The data of inputs and outputs that the gradient reads, None for the others."""
    part, kernel = call.part, call.kernel
    arrays = [
        _values(value, key) if needed and value is not None and key is not None else None
        for value, key, needed in zip(call.inputs, kernel.input_keys, gradient.reads_inputs, strict=True)
    ]
    for index, (key, needed) in enumerate(zip(kernel.output_keys, gradient.reads_outputs, strict=True)):
        if not needed:
            arrays.append(None)
        elif isinstance(part, Node):
            arrays.append(fetch(part.storages[index].data, key))
        else:
            arrays.append(_values(part, key))
    return arrays


def _values(value: Value, key: Key) -> Array:
    array, node = value.lazy_array, value.trace_node  # in this order: the node says whether that is still its array
    if node is not None and node.output_key == key:
        return array
    return fetch(value.storage.data, key)


def _add_to_leaf(shape: Shape, grad: NdArray, key: Key, part: Array) -> None:
    """Add to what the gradient of a leaf holds; one that is zero is overwritten."""
    if grad.shape != shape:
        raise ShapeError(f"backward: grad must have the shape of data, got {grad.shape} for {shape}")
    if grad.synced.cleared:
        grad.zero()  # the gradient of what was an intermediate value, and is a leaf now
    if grad.is_unwritten and not grad.is_narrowed:
        grad.write(*key)[...] = part
    else:
        total = grad.readwrite(*key)
        total += part
