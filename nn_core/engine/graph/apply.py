"""The one door through which functions enter a graph: check, shape rule, node, and in dynamic mode the computation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nn_core.context import get_current_context
from nn_core.engine.arrays.leases import UNCOMPUTED
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import SyncedArray
from nn_core.engine.dispatch.explain import NOTES_ON_GRAPHS
from nn_core.engine.dispatch.registry import spec_of_api
from nn_core.engine.error_messages.refusal import described
from nn_core.engine.graph.array_functions import bound_arguments, operator_or_namespace
from nn_core.engine.graph.call import PreparedKernel, ResolvedCall, resolved_call
from nn_core.engine.graph.compile import is_view, kernel_of, new_key
from nn_core.engine.graph.constants import constants_like_the_batch
from nn_core.engine.graph.failure import raise_lack
from nn_core.engine.graph.forward import compute_for_shapes
from nn_core.engine.graph.hooks import POST_HOOKS, PRE_HOOKS, active_hooks
from nn_core.engine.graph.imperative import array_of, call_at_once, has_ndarray
from nn_core.engine.graph.infer import require_shapes
from nn_core.engine.graph.lengths import lengths_among, present_settings, present_shape
from nn_core.engine.graph.modes import AUTO_FORWARD, RECOMPUTE, stops_gradients
from nn_core.engine.graph.node import COMPUTED_AT_ONCE, Node, Setup, Storage, invalidate, require_no_circle
from nn_core.engine.graph.private_outputs import note_inputs
from nn_core.engine.graph.python_function import WRAPPERS, PythonForward, PythonFunction, spec_of_python
from nn_core.engine.graph.run import given_dtypes_of, run
from nn_core.engine.graph.seeds import FUNCTION_SEED
from nn_core.engine.graph.trace import Trace, current_trace
from nn_core.engine.runtime.context_values import MEMO
from nn_core.engine.runtime.holders import CURRENT_SCOPE
from nn_core.errors import ArgumentError, GraphError, InputTypeError, ShapeError
from nn_core.operators.spec.model import FunctionSpec
from nn_core.typing import Shape
from nn_core.variable import Variable


def apply(spec: FunctionSpec, inputs: tuple[Any, ...], args: Mapping[str, Any], outputs: Sequence[Any] | None = None) -> Any:
    """Apply a function: on Variables a new part of the graph, on NdArrays the result at once.

    Args:
        spec: which function.
        inputs: Variables and NdArrays in the order of the specification; None where an optional one is not given.
        args: settings by name; None stands for the default.
        outputs: Variables or NdArrays that receive the results instead of new ones.

    Returns:
        One result, or a tuple of them when the function has several.

    Raises:
        ArgumentError: when an input is missing or of the wrong kind, or a setting does not exist or is out of range.
        ShapeError: when the shapes do not fit.
        HostMemoryError: when a result that is computed at once does not fit into memory.
    """
    trace: Trace | None = None
    try:
        if outputs is None:
            trace = MEMO.get()  # the one that this thread was on; looking for another costs more, and comes second
            variable = None if trace is None else trace.follow(spec, inputs, args)
            if variable is None:
                trace, before = current_trace(), trace
                if trace is not None and trace is not before:
                    variable = trace.follow(spec, inputs, args)
            if variable is not None:
                return variable
        return _apply_anew(spec, inputs, args, outputs, trace)
    except MemoryError as error:
        shapes = [None if value is None else tuple(value.shape) for value in inputs]
        raise_lack(spec, shapes, (), error)


def _apply_anew(
    spec: FunctionSpec, inputs: tuple[Any, ...], args: Mapping[str, Any], outputs: Sequence[Any] | None, trace: Trace | None
) -> Any:
    """Apply a function whose call was not made at this place of a trace before."""
    shapes, imperative = _shapes_of(spec, inputs)
    # no other call can lack an input that it must have
    if spec.variadic or None in shapes:
        require_shapes(spec, inputs)
    lengths = lengths_among(args)
    call = _call_with_lengths(spec, args, shapes, lengths) if lengths else resolved_call(spec, args, shapes)
    if outputs is not None:
        outputs = _listed_outputs(spec, outputs)
        imperative = imperative or (not inputs and isinstance(outputs[0], NdArray))
    # before the trace is asked: an NdArray has no place in a graph
    if imperative:
        return _apply_at_once(call, inputs, outputs)
    if trace is not None and call.plain:
        variable = trace.branch(spec, inputs, args, call)
        if variable is not None:
            return variable
    return _apply_in_graph(call, inputs, outputs)


def _call_with_lengths(
    spec: FunctionSpec, args: Mapping[str, Any], shapes: list[Shape | None], lengths: Mapping[str, Any]
) -> ResolvedCall:
    """Resolve a call with the present numbers of the lengths among its settings, which a static graph keeps."""
    call = resolved_call(spec, {**args, **present_settings(spec.api, lengths, present_shape)}, shapes)
    return call if AUTO_FORWARD.get() else call.with_lengths(lengths)


def _shapes_of(spec: FunctionSpec, inputs: tuple[Any, ...]) -> tuple[list[Shape | None], bool]:
    """Return the shapes of the inputs, and whether there is an NdArray among them, with which a call is imperative."""
    imperative = False
    shapes: list[Shape | None] = []
    for value in inputs:
        if type(value) is Variable:
            shapes.append(value.plain_shape)
        elif isinstance(value, NdArray):
            imperative = True
            shapes.append(value._shape)
        elif value is None:
            shapes.append(None)
        elif isinstance(value, Variable):  # a subclass, which the walks of dynamic graphs pass over
            shapes.append(value.plain_shape)
        else:
            raise _wrong_kind(spec, inputs, value)
    return shapes, imperative


def _wrong_kind(spec: FunctionSpec, inputs: Sequence[Any], value: Any) -> InputTypeError:
    position = next(i for i, candidate in enumerate(inputs) if candidate is value)
    name = spec.inputs[min(position, len(spec.inputs) - 1)].name
    hint = ""
    if isinstance(value, np.ndarray):
        hint = "\n  hint: wrap it with nn_core.Variable.from_numpy_array or nn_core.NdArray.from_numpy_array"
    elif isinstance(value, (list, tuple)) and spec.variadic:
        hint = f"\n  hint: pass the inputs one after the other, {spec.api}(*inputs)"
    return InputTypeError(f"{spec.api}: input {name} must be a Variable or an NdArray, got {type(value).__name__}{hint}")


def _apply_in_graph(call: ResolvedCall, inputs: tuple[Any, ...], outputs: Sequence[Any] | None) -> Any:
    spec = call.spec
    if spec.has("dynamic_shape"):
        _compute_inputs(inputs)
    blocked = not spec.differentiable or stops_gradients()
    storages = _output_storages(call, inputs, outputs)
    node = Node(spec, call.args, inputs, storages, get_current_context(), not blocked and _any_needs_grad(inputs))
    node.scope = CURRENT_SCOPE[-1]()
    node.setup = call
    results = _connected(node, call.n_visible, blocked, outputs or ())
    at_once = AUTO_FORWARD.get()
    if at_once:
        node.fitted = COMPUTED_AT_ONCE
    if at_once or spec.has("dynamic_shape"):  # the shape of such a result follows from its values
        run_node(node, call)
    elif not call.view:
        for storage in storages:
            storage.data.synced.expect()
    return results[0] if call.single else tuple(results)


def _any_needs_grad(inputs: Sequence[Any]) -> bool:
    for value in inputs:  # noqa: SIM110  # each function that is built asks this, and `any` with a generator takes longer
        if value is not None and value.need_grad:
            return True
    return False


def _output_storages(call: ResolvedCall, inputs: Sequence[Any], outputs: Sequence[Any] | None) -> list[Storage]:
    if outputs is not None:
        storages = _given_storages(call.spec, outputs, call.output_shapes)
        require_no_circle(call.spec.api, inputs, storages)
        return storages
    if call.view:
        return [Storage(_view_of(inputs[0], call.output_shapes[0]))]
    return [Storage(NdArray.of_shape(shape)) for shape in call.output_shapes]


def _connected(node: Node, n_visible: int, blocked: bool, outputs: Sequence[Any]) -> list[Variable]:
    """Return the variables of the outputs that the caller sees: those that were given, else new ones."""
    recompute_now = RECOMPUTE.get()
    results: list[Variable] = []
    for index in range(n_visible):
        given = outputs[index] if index < len(outputs) else None
        variable = given if isinstance(given, Variable) else Variable.of_storage(node.storages[index])
        if blocked:
            # past the property, which would count FLAGS_VERSION up and end every trace
            variable._need_grad = False
        variable._recompute = recompute_now
        node.connect(index, variable)
        if variable is given:  # plans may know it as a leaf
            invalidate()
        results.append(variable)
    return results


def _given_storages(spec: FunctionSpec, outputs: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[Storage]:
    storages: list[Storage] = []
    for index, shape in enumerate(shapes):
        if index < len(outputs):
            given = _given_output(spec, outputs, index, shape)
            storage = given.storage if isinstance(given, Variable) else Storage(given)
            if storage.data.is_narrowed:
                raise GraphError(f"{spec.api}: outputs[{index}] must not be a narrowed array, got one of shape {shape}")
            storages.append(storage)
        else:
            storages.append(Storage(NdArray.of_shape(shape)))
    return storages


def _listed_outputs(spec: FunctionSpec, outputs: Any) -> Sequence[Any]:
    given = (outputs,) if isinstance(outputs, (Variable, NdArray)) else outputs
    listed = isinstance(given, (list, tuple)) and bool(given)
    if not listed or not all(isinstance(one, (Variable, NdArray)) for one in given):
        raise ArgumentError(f"{spec.api}: outputs must be a list of Variables or NdArrays, got {described(outputs)}")
    return given


def _given_output(spec: FunctionSpec, outputs: Sequence[Any], index: int, shape: tuple[int, ...]) -> Any:
    given = outputs[index]
    if given.shape != shape:
        raise ShapeError(f"{spec.api}: outputs[{index}] must have the shape {shape}, got {given.shape}")
    return given


def _view_of(variable: Any, shape: tuple[int, ...]) -> NdArray:
    data = variable.storage.data
    # what a narrowed array shows is not one piece of memory: its view is a copy, which the function makes
    view: NdArray = NdArray.of_shape(shape) if data.is_narrowed else data.view(shape)
    return view


def _compute_inputs(inputs: Sequence[Any]) -> None:
    """Let the inputs of a function whose output shape follows from values have some."""
    roots = [v for v in inputs if v is not None and v.producer is not None]
    if AUTO_FORWARD.get():
        # computing again what was computed as it was called would draw other random numbers
        roots = [v for v in roots if not _is_computed(v.storage.data.synced)]
    if roots:
        compute_for_shapes(tuple(roots))


def _is_computed(values: SyncedArray) -> bool:
    return values.lease is None or (values.lease is not UNCOMPUTED and values.lease.alive)


def run_node(node: Node, call: ResolvedCall | None = None) -> None:
    """Compute one function of a graph at once, on the data that its inputs hold."""
    hooks = active_hooks(None, None) if PRE_HOOKS or POST_HOOKS else None
    if hooks:
        for hook in hooks[0]:
            hook(node)
    if node.python is not None:
        _run_python(node)
    elif (call is not None and not call.view) or not is_view(node):
        _run_kernel(node, call)
    else:
        kernel_of(node, {})  # nothing is computed, but a later backward pass asks what was called
    if hooks:
        for hook in hooks[1]:
            hook(node)


def _run_python(node: Node) -> None:
    arrays = [None if value is None else value.storage.data.data for value in node.inputs]
    arrays += [storage.data.get_data("w", node.python.output_dtype) for storage in node.storages]
    PythonForward(node)(*arrays)


def _run_kernel(node: Node, call: ResolvedCall | None) -> None:
    # the dtypes of the inputs have a say here, and a resolved call knows shapes only
    if call is None or call.takes_given:
        kernel = kernel_of(node, {})
    else:
        kernel = node.kernel = call.kernel(node.context)
    if kernel.seeded:
        new_key(node, FUNCTION_SEED.draw)
    inputs = [None if value is None else value.storage.data for value in node.inputs]
    if node.spec.updates:
        _protect_intermediates(node, kernel, inputs)
    run(kernel, inputs, [storage.data for storage in node.storages], node.key)
    if kernel.private:
        note_inputs(node)


def _protect_intermediates(node: Node, kernel: PreparedKernel, inputs: list[NdArray | None]) -> None:
    """Let a function rewrite copies of what other functions computed, because gradients may read that."""
    for position, (value, updated) in enumerate(zip(node.inputs, kernel.updated, strict=True)):
        if updated and value is not None and value.producer is not None:
            copy = NdArray.of_shape(value.plain_shape)
            copy.copy_from(value.storage.data)
            inputs[position] = copy


def _apply_at_once(call: ResolvedCall, inputs: tuple[Any, ...], outputs: Sequence[Any] | None) -> Any:
    spec = call.spec
    arrays = [array_of(value, spec.api) for value in inputs]
    if call.view and outputs is None and not arrays[0].is_narrowed:
        return arrays[0].view(call.output_shapes[0])
    same = given_dtypes_of(spec, arrays) if call.takes_given else ()
    kernel = call.kernel(get_current_context(), same)
    results = _result_arrays(call, outputs or ())
    key = _imperative_key(call) if kernel.seeded else None
    if outputs is None:
        run(kernel, arrays, results, key)
    else:
        _run_into(kernel, arrays, results, key)
    return results[0] if call.single else tuple(results[: call.n_visible])


def _result_arrays(call: ResolvedCall, outputs: Sequence[Any]) -> list[NdArray]:
    """Return the arrays that were given for the results, and new ones for those for which none was."""
    results: list[NdArray] = []
    for index, shape in enumerate(call.output_shapes):
        if index >= len(outputs):
            results.append(NdArray.of_shape(shape))
            continue
        given = _given_output(call.spec, outputs, index, shape)
        results.append(given.storage.data if isinstance(given, Variable) else given)
    return results


def _run_into(kernel: PreparedKernel, arrays: list[Any], results: Sequence[NdArray], key: Any) -> None:
    """Run a kernel whose results may have the memory of its inputs: then it computes elsewhere, unless it may do that."""
    shared = [any(result.synced is array.synced for array in arrays if array is not None) for result in results]
    if kernel.spec.has("inplace_ok") or not any(shared):
        run(kernel, arrays, results, key)
        return
    # a kernel may read an element after it has written others
    fresh = [NdArray.of_shape(result.shape) if same else result for result, same in zip(results, shared, strict=True)]
    run(kernel, arrays, fresh, key)
    for result, new in zip(results, fresh, strict=True):
        if new is not result:
            result.copy_from(new)


def _imperative_key(call: ResolvedCall) -> Any:
    key = np.zeros(2, np.uint64)
    seed = call.args.get("seed", -1)
    # counter 1, as in the first run of a graph: both draw the same numbers
    key[0], key[1] = (seed, 1) if isinstance(seed, int) and seed >= 0 else FUNCTION_SEED.draw()
    return key


def call_python(function: PythonFunction, inputs: tuple[Any, ...], n_outputs: int, outputs: Any) -> Any:
    """Apply a PythonFunction: on Variables a new part of the graph, on NdArrays the result at once."""
    if has_ndarray(inputs):
        return _call_python_at_once(function, inputs, n_outputs, outputs)
    _require_variables(function, inputs)
    made = list(outputs) if outputs is not None else [Variable(()) for _ in range(n_outputs)]
    if outputs is not None:
        require_no_circle(function.name, inputs, [variable.storage for variable in made])
    function.setup_impl(list(inputs), made)
    node = _python_node(function, inputs, made)
    if outputs is not None:
        invalidate()
    if AUTO_FORWARD.get():
        node.fitted = COMPUTED_AT_ONCE
        run_node(node)
    else:
        _expect_outputs(node)
    return made[0] if len(made) == 1 else tuple(made)


def _require_variables(function: PythonFunction, inputs: Sequence[Any]) -> None:
    for value in inputs:
        if value is not None and not isinstance(value, Variable):
            raise InputTypeError(f"{function.name}: inputs must be Variables or NdArrays, got {type(value).__name__}")


def _python_node(function: PythonFunction, inputs: tuple[Any, ...], made: Sequence[Variable]) -> Node:
    need_grad = not stops_gradients() and _any_needs_grad(inputs)
    spec = spec_of_python(function, len(inputs), len(made))
    node = Node(spec, {}, inputs, [variable.storage for variable in made], function.ctx, need_grad)
    node.python = function
    node.scope = CURRENT_SCOPE[-1]()
    shapes = tuple([None if value is None else value.plain_shape for value in inputs])
    node.setup = Setup(shapes, tuple([variable.plain_shape for variable in made]))
    for index, variable in enumerate(made):
        # made as a leaf without a gradient; as a result its answer follows from the inputs
        variable._need_grad = None
        node.connect(index, variable)
    return node


def _expect_outputs(node: Node) -> None:
    taken = [value.storage.data.synced for value in node.inputs if value is not None]
    for storage in node.storages:
        if storage.data.synced not in taken:  # setup_impl may let an output share the array of an input
            storage.data.synced.expect()


def _call_python_at_once(function: PythonFunction, inputs: tuple[Any, ...], n_outputs: int, outputs: Any) -> Any:
    def call(*arrays: Any) -> Any:
        leaves = tuple([Variable.of_storage(Storage(a), False) if isinstance(a, NdArray) else a for a in arrays])
        targets = None
        if outputs is not None:
            targets = [Variable.of_storage(Storage(t)) if isinstance(t, NdArray) else t for t in outputs]
        return call_python(function, leaves, n_outputs, targets)

    call.__name__ = str(function.name)
    return call_at_once(call, *inputs)


def operator(api: str) -> Callable[..., Any]:
    """Return the raw operator called `api`, with the arguments of its specification, on Variables or NdArrays."""
    return operator_of(spec_of_api(api))


def operator_of(spec: FunctionSpec) -> Callable[..., Any]:
    """As `operator`, for a specification: names of plugins may be in a namespace."""

    def call(*positional: Any, **keywords: Any) -> Any:
        inputs, args = bound_arguments(spec, positional, keywords)
        return apply(spec, inputs, args)

    call.__name__ = spec.api
    return call


class GraphFunctions:
    """Every operator under its API name, building graph: the F of gradient rules in ``nn.grad``."""

    def __getattr__(self, api: str) -> Any:
        found = operator_or_namespace(api, operator_of)
        setattr(self, api, found)
        return found


NOTES_ON_GRAPHS.append(constants_like_the_batch)
WRAPPERS["call"] = call_python
WRAPPERS["variable"] = Variable.of_storage
