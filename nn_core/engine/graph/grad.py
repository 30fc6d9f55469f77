"""nn.grad: gradients as a part of the graph, by the same rules that backward() follows, so to any order."""

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from nn_core.context import context_scope
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.dispatch.registry import gradient_of
from nn_core.engine.error_messages.refusal import door
from nn_core.engine.graph.apply import GraphFunctions
from nn_core.engine.graph.gradient_rule import require_gradients
from nn_core.engine.graph.lazy_subgraph import Derivation, kept
from nn_core.engine.graph.lengths import PLAIN_SHAPES, renewed
from nn_core.engine.graph.node import Node, Storage, Value, forward_order
from nn_core.engine.graph.precision import graph_of_rule
from nn_core.engine.graph.python_function import settings_of
from nn_core.engine.graph.sandboxed_kernel import is_trusted
from nn_core.errors import ArgumentError, GraphError, ShapeError
from nn_core.operators.rules.registry import GRADIENTS, GradientCall
from nn_core.variable import Variable

#: Backward functions that programs registered, by function name; they take precedence over the rules.
USER_BACKWARD: dict[str, Callable[..., Any]] = {}

_F = GraphFunctions()


def register(func_name: str, func: Callable[..., Any]) -> None:
    """Use `func` for the gradient of a function in ``nn.grad``.

    Args:
        func_name: name of the function as ``variable.parent.name`` gives it, such as ``"Affine"``; also the name of a
            PythonFunction.
        func: ``func(grads, inputs, input_shapes, outputs, output_shapes, **kwargs)`` that returns the gradient of
            each input (None where there is none); `grads` are the gradients of the outputs, `kwargs` the settings. If
            its first parameter is called ``ctx``, it is called as ``func(ctx, [*grads, *inputs], **kwargs)``.
    """
    if not callable(func):
        raise ArgumentError(f"register: func must be callable, got {type(func).__name__}")
    USER_BACKWARD[func_name] = func


def show_registry() -> None:
    """Print each function with the module of the rule that differentiates it."""

    gradient_of("Identity")
    names = sorted({*GRADIENTS, *USER_BACKWARD})
    for name in names:
        rule: Any = USER_BACKWARD.get(name) or GRADIENTS[name]
        sys.stdout.write(f"{name}: {rule.__module__}.{getattr(rule, '__name__', 'rule')}\n")


@door
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    persistent_outputs: Sequence[bool] = (),
    bind_grad_output: bool = False,
) -> list[Variable]:
    """Build the gradients of the sum of `outputs` with respect to each of `inputs` as new parts of the graph.

    g_i = sum over j of d y_j / d x_i

    Args:
        outputs: one Variable or a list.
        inputs: one Variable or a list (any iterable of Variables).
        grad_outputs: the gradient that comes in at each output: None for ones, a number, an array, an NdArray, or a
            list of these, one for each output.
        persistent_outputs: whether each gradient is kept through the clear flags; all are if this is empty.
        bind_grad_output: let the ``grad`` of each input be the data of its gradient.

    Returns:
        The gradients, in the order of `inputs`. An input that the outputs do not depend on gets a variable of zeros
        that is not part of a graph.

    Raises:
        GraphError: when a function on the way has no gradient rule.

    Example:
        >>> x = nn.Variable.from_numpy_array([1.0, 2.0], need_grad=True)
        >>> y = x * x
        >>> (dx,) = nn.grad([y], [x])
        >>> dx.forward()
        >>> dx.d.tolist()
        [2.0, 4.0]
    """
    for what, given in (("outputs", outputs), ("inputs", inputs)):
        if not isinstance(given, (Variable, Iterable)):
            raise ArgumentError(f"grad: {what} must be a Variable or a list of them, got {type(given).__name__}")
    output_list = [outputs] if isinstance(outputs, Variable) else list(outputs)
    input_list = [inputs] if isinstance(inputs, Variable) else list(inputs)
    for what, values in (("outputs", output_list), ("inputs", input_list)):
        for value in values:
            if not isinstance(value, Variable):
                raise ArgumentError(f"grad: {what} must be Variables, got {type(value).__name__}")
    with PLAIN_SHAPES.scope(True):  # the gradients as a whole are built again for other shapes
        totals = _totals(output_list, input_list, grad_outputs)
    results = _results(input_list, totals, persistent_outputs, bind_grad_output)
    _follow_shapes(output_list, input_list, grad_outputs, totals)
    return results


def _totals(outputs: Sequence[Variable], inputs: Sequence[Variable], grad_outputs: Any) -> list[Variable | None]:
    """Return the gradient of each input, None where the outputs do not depend on it."""
    sums = _Sums()
    for output, start in zip(outputs, _starts(outputs, grad_outputs), strict=True):
        sums.add(output.storage, start)
    order = forward_order(outputs)
    wanted = {variable.storage for variable in inputs}
    # rules build functions: those on no way to an input would be built for nothing
    relevant = _relevant(order, wanted)
    for node in reversed(order):
        # last first, so all contributions to the outputs of a node are there when its turn comes
        if node in relevant and any(storage in sums for storage in node.storages):
            with context_scope(node.context):  # gradients are computed where the function was
                _differentiate(node, relevant, wanted, sums)
    return [sums.total(variable.storage) for variable in inputs]


def _follow_shapes(
    outputs: Sequence[Variable], inputs: Sequence[Variable], grad_outputs: Any, totals: Sequence[Variable | None]
) -> None:
    """Let the gradients be built again when a leaf has got another shape."""
    given = _variables_among(grad_outputs)
    repeated = kept((outputs, inputs, grad_outputs))
    made = {id(total): (place, total) for place, total in enumerate(totals) if total is not None and _is_made(total, given)}
    if not made:
        return

    def build(counterpart: Callable[[Any], Any]) -> list[Value]:
        of, by, starts = renewed(repeated, counterpart)
        fresh = _totals(of, by, starts)
        return [_as_result(fresh[place], by[place], _variables_among(starts)) for place in places]

    places = [place for place, _ in made.values()]
    # rules look at the shapes of everything before the outputs, not at those of the outputs alone
    sources = [*outputs, *inputs, *given]
    with PLAIN_SHAPES.scope(True):  # as they were built
        Derivation(build, sources, [total for _, total in made.values()], _leaves_of(sources))


def _variables_among(grad_outputs: Any) -> list[Variable]:
    listed = grad_outputs if isinstance(grad_outputs, (list, tuple)) else [grad_outputs]
    return [value for value in listed if isinstance(value, Variable)]


def _leaves_of(sources: Sequence[Variable]) -> list[Value]:
    order = forward_order(sources)
    leaves = [value for node in order for value in node.inputs if value is not None and value.is_leaf]
    return [*leaves, *[value for node in order for value in node.setup.sources]]


def _is_made(total: Variable, given: Sequence[Variable]) -> bool:
    return not total.is_leaf and all(total is not variable for variable in given)


def _as_result(total: Variable | None, variable: Variable, given: Sequence[Variable]) -> Variable:
    """Return a gradient as the output of a function of its own."""
    if total is None:
        # for these shapes the outputs depend on the input no more; the program still holds its gradient
        total = _F.constant(val=0.0, shape=variable.shape)
    return total if _is_made(total, given) else _F.identity(total)


class _Sums:
    """The gradient of each storage so far."""

    def __init__(self) -> None:
        self._parts: dict[Storage, list[Variable]] = {}

    def __contains__(self, storage: Storage) -> bool:
        return storage in self._parts

    def add(self, storage: Storage, part: Variable) -> None:
        """Note one more contribution."""
        self._parts.setdefault(storage, []).append(part)

    def total(self, storage: Storage) -> Variable | None:
        """Return the sum of the contributions, or None when there is none."""
        parts = self._parts.get(storage)
        if parts is None:
            return None
        if len(parts) > 1:
            # summed once: the gradients of several inputs may need it
            self._parts[storage] = parts = [_F.add_n(*parts) if len(parts) > 2 else _F.add2(*parts)]
        return parts[0]


def _starts(outputs: Sequence[Variable], grad_outputs: Any) -> list[Variable]:
    if grad_outputs is None or isinstance(grad_outputs, (int, float, np.ndarray, NdArray, Variable)):
        values = [grad_outputs] * len(outputs)
    else:
        values = list(grad_outputs)
    if len(values) != len(outputs):
        raise ArgumentError(f"grad: grad_outputs must have one value for each of {len(outputs)} outputs, got {len(values)}")
    starts: list[Variable] = []
    for output, value in zip(outputs, values, strict=True):
        if isinstance(value, Variable):
            start = value
        elif isinstance(value, NdArray):
            # over the array itself, so that values which are written later count
            start = Variable.of_storage(Storage(value), False)
        elif value is None or np.ndim(value) == 0:
            start = _F.constant(val=1.0 if value is None else float(value), shape=output.shape)
        else:
            start = Variable.from_numpy_array(value, need_grad=False)
        if start.shape != output.shape:
            raise ShapeError(f"grad: grad_outputs must have the shape {output.shape} of its output, got {start.shape}")
        starts.append(start)
    return starts


def _relevant(order: Sequence[Node], wanted: set[Storage]) -> set[Node]:
    """Return the nodes through which the inputs reach the outputs."""
    relevant: set[Node] = set()
    for node in order:
        for value in node.inputs:
            if value is not None and _leads_to(value, relevant, wanted):
                relevant.add(node)
                break
    return relevant


def _leads_to(value: Value, relevant: set[Node], wanted: set[Storage]) -> bool:
    """Return whether a gradient that arrives at `value` is one that was asked for, or leads to one."""
    if value.storage in wanted:
        return True
    # a flag that was set to False stops the gradient here; None says what the function says
    return value._need_grad is not False and value.producer is not None and value.producer in relevant


def _is_asked_for(value: Value | None, relevant: set[Node], wanted: set[Storage]) -> bool:
    """Return whether a rule is asked for the gradient of an input; that of an empty one is empty."""
    return value is not None and _leads_to(value, relevant, wanted) and 0 not in value.shape


def _differentiate(node: Node, relevant: set[Node], wanted: set[Storage], sums: _Sums) -> None:
    if node.python is None and not node.spec.differentiable:
        return
    asked = [_is_asked_for(value, relevant, wanted) for value in node.inputs]
    if not any(asked):
        return
    totals = [sums.total(storage) for storage in node.storages[: node.n_visible]]
    grads = [_or_zeros(total, storage) for storage, total in zip(node.storages, totals, strict=False)]
    for value, want, result in zip(node.inputs, asked, _call_rule(node, grads, asked), strict=True):
        if not want or result is None:
            continue
        assert value is not None
        if result.shape != value.shape:
            raise GraphError(
                f"{node.spec.api}: the gradient of an input must have its shape {value.shape}, got {result.shape}"
            )
        sums.add(value.storage, result)


def _or_zeros(total: Variable | None, storage: Storage) -> Variable:
    return _F.constant(val=0.0, shape=storage.data.shape) if total is None else total


def _call_rule(node: Node, grads: list[Variable], wants: list[bool]) -> list[Any]:
    name = node.spec.name
    outputs: list[Any] = [node.value(index) for index in range(len(node.storages))]
    # what a program has registered goes before the rule of the function
    user = USER_BACKWARD.get(name)
    is_foreign = False
    if user is not None:
        results = _call_user(user, node, grads, outputs)
    else:
        rule = None if node.python is not None else gradient_of(name)
        if rule is None:
            raise GraphError(
                f"grad: {name} must have a gradient rule, got none\n"
                f"  hint: nn_core.backward_functions.register({name!r}, func)"
            )
        call = GradientCall(node.spec, node.inputs, outputs, grads, node.args, wants)
        results = graph_of_rule(_F, rule, node.spec, call)
        is_foreign = not is_trusted(getattr(rule, "__module__", None))
    if not isinstance(results, (tuple, list)):
        results = (results,)
    n_inputs = len(node.inputs)
    if len(results) != n_inputs:
        raise GraphError(f"{node.spec.api}: a gradient rule must return {n_inputs} gradients, got {len(results)}")
    if is_foreign:
        require_gradients(node.spec.api, results, node.inputs, [*outputs, *grads])
    return [_as_variable(result, value) for result, value in zip(results, node.inputs, strict=True)]


def _call_user(user: Callable[..., Any], node: Node, grads: list[Variable], outputs: list[Any]) -> Any:
    inputs = [value for value in node.inputs if value is not None]
    settings = dict(node.args) if node.python is None else settings_of(node.python)
    parameters = list(inspect.signature(user).parameters)
    if parameters and parameters[0] == "ctx":
        return user(node.context, [*grads, *inputs], **settings)
    return user(grads, inputs, [v.shape for v in inputs], outputs, [v.shape for v in outputs], **settings)


def _as_variable(result: Any, value: Any) -> Any:
    if result is None or isinstance(result, Variable):
        return result
    return _F.constant(val=float(result), shape=value.shape)


def _results(
    inputs: Sequence[Variable], totals: Sequence[Variable | None], persistent_outputs: Sequence[bool], bind_grad_output: bool
) -> list[Variable]:
    flags = list(persistent_outputs) or [True] * len(inputs)
    if len(flags) != len(inputs):
        raise ArgumentError(f"grad: persistent_outputs must have one flag for each of {len(inputs)} inputs, got {len(flags)}")
    results: list[Variable] = []
    for variable, found, persistent in zip(inputs, totals, flags, strict=True):
        total = found
        if total is None:
            total = Variable(variable.shape, need_grad=False)
            total.data.zero()
        total.persistent = persistent
        if bind_grad_output:
            # from now on a forward pass of the gradient fills ``variable.g``
            variable.grad = total.data
        results.append(total)
    return results


__all__ = ["grad", "register", "show_registry"]
