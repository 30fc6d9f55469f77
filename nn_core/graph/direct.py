"""A backward pass that is run once, function by function, without a plan.

Compiling a pass costs several times what running it does, which pays when the structure of a graph comes back. A program
whose structure is new in almost every step (layers skipped at random, trees, other lengths) would pay it each time. So
the first graph of a structure goes back through its functions here, and the second is compiled.

Kernels overwrite what they are given, as in a plan; what several functions contribute is added up here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from nn_core.arrays.ndarray import NdArray
from nn_core.arrays.synced import HOST, Key, dtype_of
from nn_core.errors import ShapeError
from nn_core.graph.call import PreparedKernel
from nn_core.graph.compile import data_read, is_view
from nn_core.graph.node import Node, Value
from nn_core.graph.replay import Part, Structure, release
from nn_core.graph.rule import RuleRunner
from nn_core.graph.run import fetch
from nn_core.typing import Array, Runner, Shape

#: Structures that were seen once, by the hash of their keys; where two share one, a pass is compiled early.
_SEEN: Final[dict[int, None]] = {}
MAX_SEEN: Final = 4096
#: Gradients of leaves add up in float32 at least; plans see to that.
_NARROW: Final = ("float16", "bfloat16")


class _Call(NamedTuple):
    """One function of the graph: its kernel, its inputs, and whose outputs they are (None: leaves)."""

    part: Part
    kernel: PreparedKernel
    inputs: Sequence[Value | None]
    origins: Sequence[tuple[int, int] | None]


def is_new(structure: Structure) -> bool:
    """Whether no graph of this structure was seen lately; from now on one was."""
    key = hash(structure.key)
    if key in _SEEN:
        return False
    # `pop` with a default, because another thread may have dropped the oldest meanwhile
    while len(_SEEN) >= MAX_SEEN:
        _SEEN.pop(next(iter(_SEEN)), None)
    # by hash: a key would keep the leases and the kernels in it alive
    _SEEN[key] = None
    return True


def can_run(structure: Structure) -> bool:
    """Whether all functions work on the host in one floating dtype of full width, and leave no gradients to be set."""
    dtypes: set[str] = set()
    for part in structure.order:
        if not _is_simple(part):
            return False
        kernel = _kernel_of(part)
        dtypes.update(name for name in (*kernel.input_dtypes, *kernel.output_dtypes) if name is not None)
    # with one dtype nothing is to be converted, which plans are better at
    floating = [name for name in dtypes if dtype_of(name).kind not in "iub"]
    return len(floating) == 1 and floating[0] not in _NARROW


def _is_simple(part: Part) -> bool:
    """Whether a function runs on the host, and takes its gradient from those that read its results."""
    kernel = _kernel_of(part)
    if kernel.space is not HOST or kernel.dynamic or kernel.spec.has("sink"):
        return False
    return isinstance(part, Value) or is_view(part) or not kernel.spec.has("view")


def run(structure: Structure, root: Value, grad: Any) -> None:
    """Compute the gradients of the leaves, and give up the intermediate values."""
    parts = {id(part): part for part in structure.order}
    calls = [_call_of(part, parts) for part in structure.order]  # reading an array may turn a lazy value into a node
    last = calls[-1]
    flow = {(id(last.part), root.output_index): _start(root.shape, last.kernel.output_dtypes[root.output_index], grad)}
    for call in reversed(calls):
        # taken out: a gradient has one reader, and its memory is free for the next
        grads = [flow.pop((id(call.part), index), None) for index in range(_n_visible(call))]
        if any(grad is not None for grad in grads):
            for value, origin, part in _gradients(call, grads):
                if origin is None:
                    _add_to_leaf(value.storage.data.shape, value.storage.grad, part)
                elif origin in flow:
                    # in place: nobody outside of this pass has seen either of them
                    flow[origin] += part
                else:
                    flow[origin] = part
    release(structure, root)


def _kernel_of(part: Part) -> PreparedKernel:
    kernel: PreparedKernel = part.kernel if isinstance(part, Node) else part.trace_node.kernel
    return kernel


def _call_of(part: Part, parts: Mapping[int, Part]) -> _Call:
    inputs = part.inputs if isinstance(part, Node) else part.lazy_inputs
    below = [None if value is None else _source_of(value, parts) for value in inputs]
    origins = [
        None if source is None or value is None else (id(source), value.output_index)
        for source, value in zip(below, inputs, strict=True)
    ]
    return _Call(part, _kernel_of(part), inputs, origins)


def _source_of(value: Value, parts: Mapping[int, Part]) -> Part | None:
    """The part of the pass that gives `value`; None for a leaf.

    `part_of` would not do: when another thread changes a flag meanwhile, it makes the node of a lazy value, under which
    no gradient would be found.
    """
    part = parts.get(id(value))
    if part is None and not value.is_leaf:
        part = parts[id(value.producer)]
    return part


def _n_visible(call: _Call) -> int:
    return call.part.n_visible if isinstance(call.part, Node) else 1


def _start(shape: Shape, dtype: str, grad: Any) -> Array:
    start = np.empty(shape, dtype_of(dtype))
    start[...] = grad.get_data("r") if isinstance(grad, NdArray) else grad
    return start


def _gradients(
    call: _Call, grads: Sequence[Array | None]
) -> Iterator[tuple[Value, tuple[int, int] | None, Array]]:
    """The inputs of a function that have a gradient, whose outputs they are, and the gradient."""
    part, _, inputs, origins = call
    wanted = _wanted(call)
    if not any(wanted):
        return
    if isinstance(part, Node) and is_view(part):
        assert inputs[0] is not None
        assert grads[0] is not None
        yield inputs[0], origins[0], grads[0].reshape(inputs[0].shape)
        return
    shapes = [None if value is None else value.shape for value in inputs]
    targets = _targets(call, wanted, shapes)
    _runner(call, wanted, shapes)(*_data(call), *_filled(call, grads), *targets)
    for value, origin, target in zip(inputs, origins, targets, strict=True):
        if value is not None and target is not None:
            yield value, origin, target


def _wanted(call: _Call) -> tuple[bool, ...]:
    """Return, for each input, whether a gradient is wanted: indices and labels have none."""
    return tuple(
        [
            value is not None and dtype is not None and value.need_grad and dtype_of(dtype).kind not in "iub"
            for value, dtype in zip(call.inputs, call.kernel.input_dtypes, strict=True)
        ]
    )


def _targets(call: _Call, wanted: Sequence[bool], shapes: Sequence[Shape | None]) -> list[Array | None]:
    """Fresh arrays for the gradients of the inputs that want one."""
    empty, dtypes = call.kernel.empty, call.kernel.input_dtypes
    return [
        empty(shape, dtype) if want and shape is not None and dtype is not None else None
        for want, shape, dtype in zip(wanted, shapes, dtypes, strict=True)
    ]


def _runner(call: _Call, wanted: tuple[bool, ...], shapes: Sequence[Shape | None]) -> Runner:
    """The fused gradient of the backend, or the gradient rule, for arrays in C order."""
    kernel = call.kernel
    runner = kernel.backward_for(wanted, (False,) * (len(shapes) + len(kernel.output_shapes)))
    if runner is not None:
        return runner
    rule = kernel.rules.get(wanted)
    if rule is None:
        # kept with the kernel, which outlives the graph
        rule = kernel.rules[wanted] = RuleRunner(kernel, shapes, kernel.output_shapes, wanted)
    return rule


def _filled(call: _Call, grads: Sequence[Array | None]) -> list[Array]:
    """The gradients of all results: zeros where none flows."""
    return [
        np.zeros(shape, dtype_of(dtype)) if grad is None else grad
        for grad, shape, dtype in zip(grads, call.kernel.output_shapes, call.kernel.output_dtypes, strict=False)
    ]


def _data(call: _Call) -> list[Array | None]:
    """The data of inputs and outputs that the gradient reads, None for the others."""
    part, kernel = call.part, call.kernel
    reads_inputs, reads_outputs = data_read(kernel.spec, kernel.args, len(call.inputs), len(kernel.output_shapes))
    arrays = [
        _values(value, key) if needed and value is not None and key is not None else None
        for value, key, needed in zip(call.inputs, kernel.input_keys, reads_inputs, strict=True)
    ]
    for index, (key, needed) in enumerate(zip(kernel.output_keys, reads_outputs, strict=True)):
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


def _add_to_leaf(shape: Shape, grad: NdArray, part: Array) -> None:
    """Add to what the gradient of a leaf holds; one that is zero is overwritten."""
    if grad.shape != shape:
        raise ShapeError(f"backward: grad must have the shape of data, got {grad.shape} for {shape}")
    if grad.synced.cleared:
        grad.zero()  # the gradient of what was an intermediate value, and is a leaf now
    if grad.is_unwritten and not grad.is_narrowed:
        grad.write(HOST, part.dtype.name)[...] = part
    else:
        total = grad.readwrite(HOST, part.dtype.name)
        total += part
