"""One function computed by itself, on variables that need not be those of its graph; the graph stays as it is."""

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from nn_core.context import Context, context_scope
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.dispatch.registry import gradient_of
from nn_core.engine.graph.apply import GraphFunctions
from nn_core.engine.graph.backward import run_backward
from nn_core.engine.graph.call import ResolvedCall, resolved_call
from nn_core.engine.graph.companions import ON_DEMAND
from nn_core.engine.graph.compile import needed_data, new_key
from nn_core.engine.graph.forward import run_forward
from nn_core.engine.graph.modes import auto_forward
from nn_core.engine.graph.node import Node, Storage, Value, forward_order
from nn_core.engine.graph.run import given_dtypes_of, run
from nn_core.engine.graph.seeds import FUNCTION_SEED
from nn_core.engine.graph.uncomputed import is_uncomputed
from nn_core.errors import ArgumentError, GraphError
from nn_core.operators.rules.registry import GradientCall, GradientRule
from nn_core.operators.spec.model import FunctionSpec
from nn_core.variable import Variable

#: All inputs of a function of which some are masked, and the mask; its node has the active ones only.
MASKED: WeakKeyDictionary[Node, tuple[tuple[Any, ...], list[bool]]] = WeakKeyDictionary()
#: By seeded function: the numbers that the graph had drawn when `Function.forward` drew last, and the key that it drew.
_DRAWN: WeakKeyDictionary[Node, tuple[tuple[int, ...], Any]] = WeakKeyDictionary()
#: By function that rewrites inputs: the first result of the last `Function.forward` on other variables, and the hidden ones.
_AUX: WeakKeyDictionary[Node, tuple[NdArray, list[NdArray]]] = WeakKeyDictionary()

_F = GraphFunctions()


def places_of(node: Node, call: ResolvedCall, count: int, method: str) -> list[int]:
    """Return the places, among all results of the function, of the `count` outputs that a caller has for it.

    These are the visible ones; or those and what is there on demand, as the statistics of batch normalization; or the
    places alone of a function that gives values and their places (`only_index`).

    Raises:
        ArgumentError: when the function has no such number of outputs.
    """
    visible = list(range(call.n_visible))
    names = [entry.name for entry in call.output_entries]
    shown = [visible]
    on_demand = ON_DEMAND.get(node.spec.name, ())
    if all(name in names for name in on_demand):
        shown.append(visible + [names.index(name) for name in on_demand])
    if "only_index" in call.args and len(visible) > 1:
        shown.append([names.index("index")])
    for places in shown:
        if len(places) == count:
            return places
    allowed = " or ".join(dict.fromkeys(str(len(places)) for places in shown))
    raise ArgumentError(f"{method}: outputs of {node.spec.name} must be {allowed} Variables, got {count}")


def place_of_output(node: Node, index: int) -> int:
    """Return the place, among all results of the function, of output `index` of those that programs see."""
    on_demand = ON_DEMAND.get(node.spec.name, ())
    if index < node.n_visible or not on_demand:
        return index
    return next(place for place, entry in enumerate(node.spec.outputs) if entry.name == on_demand[index - node.n_visible])


def flags_of(what: str, values: Any, count: int) -> list[bool]:
    """Return `values` as booleans, if they are `count`."""
    flags = values.tolist() if isinstance(values, np.ndarray) else values
    if not isinstance(flags, (list, tuple)) or len(flags) != count:
        raise ArgumentError(f"{what} must be a list of {count} booleans, got {values!r}")
    return [bool(flag) for flag in flags]


def all_inputs(node: Node) -> tuple[Any, ...]:
    """Return the inputs of a function, those that a mask leaves out included."""
    masked = MASKED.get(node)
    return node.inputs if masked is None else masked[0]


def arrays_of(placed: Sequence[Variable | None]) -> list[NdArray | None]:
    """Return the data of variables, None where one is not given."""
    return [None if variable is None else variable.data for variable in placed]


def resolved(node: Node, placed: Sequence[Value | None]) -> ResolvedCall:
    """Return the function of `node` for other inputs.

    Raises:
        ArgumentError: when an input is missing.
        ShapeError: when the shapes do not fit.
    """
    for entry, variable in zip(node.spec.inputs, placed, strict=False):
        if variable is None and not entry.optional:
            raise ArgumentError(f"{node.spec.api}: input {entry.name} must be given, got none")
    settings = node.setup.given if isinstance(node.setup, ResolvedCall) else node.args
    return resolved_call(node.spec, settings, [None if variable is None else variable.plain_shape for variable in placed])


def active_ones(node: Node, placed: Sequence[Any]) -> list[Any]:
    """Those of `placed` that a mask leaves active."""
    masked = MASKED.get(node)
    if masked is None:
        return list(placed)
    return [value for value, active in zip(placed, masked[1], strict=True) if active]


def compute_noted(
    node: Node, call: ResolvedCall, arrays: list[NdArray | None], results: Mapping[int, NdArray], key: Any
) -> None:
    """Run the kernel of a function, and keep the auxiliary results that its gradient cannot compute again.

    Those are the results of a function that rewrites its inputs, as a counter of steps: they stay with the graph where it is
    computed into the graph's own variables, and are noted elsewhere.
    """
    if not node.spec.updates or call.n_visible == len(call.output_shapes) or 0 not in results:
        compute(call, node.context, arrays, results, key)
    elif _is_own(node, results):
        places = range(call.n_visible, len(call.output_shapes))
        compute(call, node.context, arrays, {**{place: node.storages[place].data for place in places}, **results}, key)
    else:
        _AUX[node] = results[0], compute(call, node.context, arrays, results, key)[call.n_visible :]


def _is_own(node: Node, results: Mapping[int, NdArray]) -> bool:
    """Tell whether the first result goes into the memory of the graph that the function belongs to."""
    return len(node.storages) > 0 and results[0].synced is node.storages[0].data.synced


def compute(
    call: ResolvedCall, context: Context, arrays: list[NdArray | None], results: Mapping[int, NdArray], key: Any
) -> list[NdArray]:
    """Run the kernel on `arrays`; results that have no array in `results` go to new arrays. All are returned."""
    same = given_dtypes_of(call.spec, arrays) if call.takes_given else ()
    read = {id(array.synced) for array in arrays if array is not None}
    shapes = enumerate(call.output_shapes)
    wanted = [results[place] if place in results else NdArray.of_shape(shape) for place, shape in shapes]
    # what is read must not be written to before it was read
    written = [NdArray.of_shape(array.shape) if id(array.synced) in read else array for array in wanted]
    run(call.kernel(context, same), arrays, written, key)
    for array, target in zip(written, wanted, strict=True):
        if array is not target:
            target.copy_from(array)
    return wanted


def without_updates(spec: FunctionSpec, arrays: list[NdArray | None]) -> list[NdArray | None]:
    """`arrays` with copies of those that the function rewrites."""
    for position, entry in enumerate(spec.inputs):
        array = arrays[position] if entry.name in spec.updates else None
        if array is not None:
            copy = NdArray.of_shape(array.shape)
            copy.copy_from(array)
            arrays[position] = copy
    return arrays


def draw(node: Node) -> Any:
    """Return the numbers for the next run of a seeded function, noted for ``recompute`` and ``backward``."""
    shadow = Node(node.spec, node.args, (), (), node.context, False)
    shadow.key = _known_key(node)
    new_key(shadow, FUNCTION_SEED.draw)
    _DRAWN[node] = (_numbers(node.key), shadow.key)
    return shadow.key.copy()


def last_key(node: Node, method: str) -> Any:
    """Return the numbers of the last run of a seeded function; None for another one."""
    if not node.spec.has("seeded"):
        return None
    key = _known_key(node)
    if key is None:
        raise GraphError(f"{method}: {node.spec.name} must have been computed by forward() before, got none")
    return key


def _known_key(node: Node) -> Any:
    seen, key = _DRAWN.get(node, ((), None))
    if key is None or seen != _numbers(node.key):  # the graph has drawn since
        key = node.key
    return None if key is None else key.copy()


def _numbers(key: Any) -> tuple[int, ...]:
    return () if key is None else tuple(int(number) for number in key)


def propagate(
    node: Node,
    call: ResolvedCall,
    placed: Sequence[Variable | None],
    outputs: Mapping[int, Variable],
    adds: Sequence[bool],
) -> None:
    """Add to the gradients of `placed`, one after the other, what follows from those of `outputs`, which are by place."""
    storages = _result_storages(node, call, arrays_of(placed), outputs)
    leaves = _leaves(placed)
    if not any(leaf is not None and leaf.need_grad for leaf in leaves):
        return
    repeated = _connect_gradients(leaves, placed, adds)
    scratch = Node(node.spec, call.args, leaves, storages, node.context, True)
    scratch.setup = call
    roots = [Value(storage) for storage in storages[: call.n_visible]]
    for index, root in enumerate(roots):
        scratch.connect(index, root)
    for root in roots:
        run_backward(root, None)
    _propagate_statistics(call, leaves, [variable for place, variable in outputs.items() if place >= call.n_visible])
    for variable, part, add in repeated:
        variable.grad.copy_from(_F.add2(variable.grad, part) if add else part)


def _visible_storages(call: ResolvedCall, outputs: Mapping[int, Variable]) -> list[Storage]:
    """Return data and gradients of the visible results; zeros of those that the caller has no variable for."""
    return [
        Storage(outputs[place].data, outputs[place].grad) if place in outputs else Storage(NdArray.of_shape(shape))
        for place, shape in enumerate(call.output_shapes[: call.n_visible])
    ]


def _result_storages(
    node: Node, call: ResolvedCall, arrays: list[NdArray | None], outputs: Mapping[int, Variable]
) -> list[Storage]:
    """Return data and gradients of all results.

    A kernel reads its private outputs and the others as results of one run: with private outputs, all are computed again.
    """
    if not any(entry.private for entry in call.output_entries):
        aux = _aux_outputs(node, call, arrays, outputs)
        return _visible_storages(call, outputs) + [Storage(array) for array in aux]
    results = compute(call, node.context, without_updates(node.spec, arrays), {}, last_key(node, "backward"))
    return [Storage(array, outputs[place].grad if place in outputs else None) for place, array in enumerate(results)]


def _propagate_statistics(call: ResolvedCall, leaves: Sequence[Value | None], given: Sequence[Variable]) -> None:
    """Add what follows from the gradients of the mean and the variance of a batch to that of the input."""
    x = leaves[0]
    if len(given) != 2 or x is None or not x.need_grad:
        return
    with auto_forward(False):
        x, axes = _normalized_together(call.args, Variable.of_storage(x.storage, True))
        mean = _F.mean(x, axes=axes, keep_dims=True)
        centred = _F.sub2(x, mean)
        variance = _F.mean(_F.mul2(centred, centred), axes=axes, keep_dims=True)
    run_forward((mean, variance))
    for result, variable in zip((mean, variance), given, strict=True):
        run_backward(result, variable.grad)


def _normalized_together(args: Mapping[str, Any], x: Variable) -> tuple[Variable, list[int]]:
    """Return the input of a normalization, with groups of channels along an axis, and the axes of its statistics."""
    shape = list(x.plain_shape)
    kept = {axis % len(shape) for axis in (*args.get("axes", ()), *args.get("batch_axis", ()))}
    if "channel_axis" in args:
        channels = args["channel_axis"] % len(shape)
        if "num_groups" in args:
            shape[channels : channels + 1] = [args["num_groups"], shape[channels] // args["num_groups"]]
            x = _F.reshape(x, shape=shape, inplace=False)
            kept = {axis + (axis > channels) for axis in kept}
        kept.add(channels)
    return x, [axis for axis in range(len(shape)) if axis not in kept]


def _leaves(placed: Sequence[Variable | None]) -> list[Value | None]:
    """Leaves over the data of variables, with gradients of their own."""
    return [None if variable is None else Value(Storage(variable.data), variable.need_grad) for variable in placed]


def _connect_gradients(
    leaves: Sequence[Value | None], placed: Sequence[Variable | None], adds: Sequence[bool]
) -> list[tuple[Variable, NdArray, bool]]:
    """Let each leaf that stands for a variable have its gradient.

    Returns:
        Variables that are given several times, each time with a gradient of its own, and whether that is to be added.
    """
    repeated: list[tuple[Variable, NdArray, bool]] = []
    for leaf, variable, add in zip(leaves, placed, adds, strict=True):
        if leaf is None or variable is None or not leaf.need_grad:
            continue
        if list(placed).count(variable) == 1:
            leaf.storage.grad = variable.grad
        else:  # a gradient of its own, since a later one may be told to overwrite it
            repeated.append((variable, leaf.storage.grad, add))
    return repeated


def _aux_outputs(
    node: Node, call: ResolvedCall, arrays: list[NdArray | None], outputs: Mapping[int, Variable]
) -> list[NdArray]:
    """Return the auxiliary results that the gradient reads, those of a run that has rewritten inputs, else computed again."""
    n_visible, entries = call.n_visible, node.spec.outputs
    if len(call.output_shapes) == n_visible:
        return []
    if not any(entry.aux and entry.name in node.spec.backward.needs for entry in entries):
        return [NdArray.of_shape(shape) for shape in call.output_shapes[n_visible:]]
    if node.spec.updates and 0 in outputs:
        left = _left_by_run(node, outputs[0].data, n_visible)
        if left is not None:
            return left
    arrays = without_updates(node.spec, list(arrays))
    return compute(call, node.context, arrays, {}, last_key(node, "backward"))[n_visible:]


def _left_by_run(node: Node, result: NdArray, n_visible: int) -> list[NdArray] | None:
    """Return the auxiliary results of the run that has computed `result`; None where it has left none."""
    noted, kept = _AUX.get(node, (None, []))
    if noted is not None and noted.synced is result.synced:
        return kept
    if _is_own(node, {0: result}) and not is_uncomputed(result.synced):
        return [storage.data for storage in node.storages[n_visible:]]
    return None


def gradient_reads(node: Node, position: int, input_position: int | None = None, output_position: int | None = None) -> bool:
    """Return whether the gradient of one input depends on the data of an input or output, as the gradient rule has it."""
    if not node.spec.differentiable:
        return False
    rule = gradient_of(node.spec.name)
    if rule is None:
        reads_inputs, reads_outputs = needed_data(node)
        return reads_outputs[output_position or 0] if input_position is None else reads_inputs[input_position]
    # the rule builds a graph on variables without values: what it reads is what its result depends on
    inputs = [None if value is None else Variable(value.plain_shape) for value in node.inputs]
    outputs = [Variable(storage.data.shape) for storage in node.storages]
    result = _gradient_built(node, rule, inputs, outputs, position)
    target = outputs[output_position or 0] if input_position is None else inputs[input_position]
    return target is not None and _depends_on(result, target)


def _gradient_built(
    node: Node, rule: GradientRule, inputs: Sequence[Variable | None], outputs: Sequence[Variable], position: int
) -> Any:
    """Return the gradient of the input at `position`, as `rule` builds it on other variables."""
    grads = [Variable(storage.data.shape) for storage in node.storages[: node.n_visible]]
    wanted = [index == position for index in range(len(inputs))]
    with context_scope(node.context), auto_forward(False):
        results = rule(_F, GradientCall(node.spec, inputs, outputs, grads, node.args, wanted))
    return results[position] if isinstance(results, (tuple, list)) else results


def _depends_on(result: Any, target: Variable) -> bool:
    if not isinstance(result, Variable):
        return False
    return result is target or any(value is target for part in forward_order((result,)) for value in part.inputs)
