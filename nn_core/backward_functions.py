"""The gradients that ``nn_core.grad`` uses, by the names of functions; ``tanh_backward`` is ``registry["Tanh"]``."""

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, Final, TypeAlias

from nn_core.engine.dispatch.registry import REGISTRY, gradient_of, spec_of
from nn_core.engine.graph.apply import GraphFunctions
from nn_core.engine.graph.grad import USER_BACKWARD
from nn_core.engine.graph.grad import register as register
from nn_core.engine.graph.grad import show_registry as show_registry
from nn_core.engine.graph.node import Node
from nn_core.engine.graph.precision import graph_of_rule
from nn_core.errors import ArgumentError, GraphError
from nn_core.operators.rules.arguments import resolve_args
from nn_core.operators.rules.registry import GRADIENTS, GradientCall, GradientRule
from nn_core.operators.spec.model import FunctionSpec
from nn_core.typing import Shape
from nn_core.variable import Variable

#: ``func(grad_inputs, inputs, input_shapes, outputs, output_shapes, **settings) -> gradients of the inputs``
BackwardFunction: TypeAlias = Callable[..., Any]


class Registry(MutableMapping[str, BackwardFunction]):
    """The gradient of each function, by the name that ``variable.parent.info.type_name`` gives.

    A value is called with the gradients of the outputs, the inputs, their shapes, the outputs, their shapes, and the
    settings by name, and returns new parts of the graph: the gradient of the input, or a tuple if there are several,
    with None where there is none. Optional inputs that the function was not given are left out; None stands for an input
    or output whose data the gradient does not read.

    Setting an item does what ``register`` does; deleting one brings back the rule that was there before.

    Example:
        >>> x = Variable.from_numpy_array([1.0, 2.0])
        >>> y = x * x
        >>> dy = Variable.from_numpy_array([1.0, 1.0])
        >>> dx, _ = registry["Mul2"]([dy], [x, x], [x.shape, x.shape], [y], [y.shape])
        >>> dx.forward()
        >>> dx.d.tolist()
        [1.0, 2.0]
    """

    def __getitem__(self, name: str) -> BackwardFunction:
        user = USER_BACKWARD.get(name)
        if user is not None:
            return user
        rule = gradient_of(name)
        if rule is None:
            raise KeyError(name)
        return _backward_function(spec_of(name), rule)

    def __setitem__(self, name: str, func: BackwardFunction) -> None:
        register(name, func)

    def __delitem__(self, name: str) -> None:
        del USER_BACKWARD[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*GRADIENTS, *USER_BACKWARD)))

    def __len__(self) -> int:
        return len({*GRADIENTS, *USER_BACKWARD})

    def __repr__(self) -> str:
        return f"<registry of the gradients of {len(self)} functions>"


registry: Final = Registry()

_F = GraphFunctions()


def __getattr__(name: str) -> BackwardFunction:
    """Return the function `<api>_backward`, the gradient of that function in the registry (PEP 562)."""
    spec = REGISTRY.spec_of_api(name.removesuffix("_backward")) if name.endswith("_backward") else None
    if spec is None or spec.name not in registry:
        raise AttributeError(f"module 'nn_core.backward_functions' has no attribute {name!r}")
    return registry[spec.name]


def _backward_function(spec: FunctionSpec, rule: GradientRule) -> BackwardFunction:
    def backward(
        grad_inputs: Sequence[Variable],
        inputs: Sequence[Variable | None],
        input_shapes: Sequence[Shape],
        outputs: Sequence[Variable | None],
        output_shapes: Sequence[Shape],
        **settings: Any,
    ) -> Any:
        _require_variables(f"{spec.api}_backward", grad_inputs=grad_inputs, inputs=inputs, outputs=outputs)
        places = _places(spec, len(inputs), outputs)
        present = zip(inputs, input_shapes, strict=True)
        values = [None if place is None else _or_shape(*next(present)) for place in places]
        args = resolve_args(spec, settings, [None if value is None else value.shape for value in values])
        results = [_or_shape(value, shape) for value, shape in zip(outputs, output_shapes, strict=True)]
        wanted = [value is not None for value in values]
        call = GradientCall(spec, values, [*results, *_aux_outputs(spec, outputs)], grad_inputs, args, wanted)
        gradients = graph_of_rule(_F, rule, spec, call)
        if not isinstance(gradients, (tuple, list)):
            return gradients
        found = [gradient for gradient, given in zip(gradients, wanted, strict=True) if given]
        return found[0] if len(found) == 1 else tuple(found)

    backward.__name__ = backward.__qualname__ = f"{spec.api}_backward"
    backward.__doc__ = f"Build the gradient of `{spec.api}`; see `Registry`."
    return backward


def _require_variables(function: str, **given: Sequence[Any]) -> None:
    for what, values in given.items():
        for value in values:
            if value is not None and not isinstance(value, Variable):
                raise ArgumentError(f"{function}: {what} must be Variables, got {type(value).__name__}")


def _places(spec: FunctionSpec, count: int, outputs: Sequence[Variable | None]) -> Sequence[object | None]:
    """One value for each input of the specification, None where it is among the optional ones that were not given."""
    if spec.variadic:
        return [True] * count
    node = _node_of(spec, outputs)
    if node is not None and sum(value is not None for value in node.inputs) == count:
        return node.inputs
    optional = {entry.name for entry in spec.inputs if entry.optional}
    for missing in (optional, set[str]()):
        if len(spec.inputs) - len(missing) == count:
            return [None if entry.name in missing else True for entry in spec.inputs]
    raise ArgumentError(
        f"{spec.api}_backward: inputs must be {', '.join(entry.name for entry in spec.inputs)}, got {count} values\n"
        "  hint: outputs that belong to a graph tell which optional ones are left out"
    )


def _node_of(spec: FunctionSpec, outputs: Sequence[Variable | None]) -> Node | None:
    """Return the place of the function in the graph that `outputs` belong to."""
    node = next((variable.producer for variable in outputs if variable is not None), None)
    return node if node is not None and node.spec is spec else None


def _or_shape(variable: Variable | None, shape: Shape) -> Variable:
    """`variable`, or one of which only the shape is of interest."""
    return Variable(shape) if variable is None else variable


def _aux_outputs(spec: FunctionSpec, outputs: Sequence[Variable | None]) -> list[Any]:
    """Extra results that the function keeps for its gradient; they are in the graph of `outputs`."""
    if not any(entry.aux and entry.name in spec.backward.needs for entry in spec.outputs):
        return []
    node = _node_of(spec, outputs)
    if node is None:
        raise GraphError(f"{spec.api}_backward: outputs must be those of a function {spec.name} in a graph, got others")
    return [node.value(index) for index in range(len(outputs), len(node.storages))]


__all__ = ["Registry", "register", "registry", "show_registry"]
