"""Functions as objects: what ``variable.parent`` gives, and what operators with a context and settings are.

Each operator, also of a plugin, is found here by the name it has in files: ``function.Affine(ctx, base_axis)(x, w)``.
``nn_core.functions`` is the usual way to call them.
"""

from collections.abc import Callable, Sequence
from functools import cache
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from nn_core.context import Context, checked_context, context_scope
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.graph.apply import apply
from nn_core.engine.graph.call import ResolvedCall
from nn_core.engine.graph.companions import companions_of
from nn_core.engine.graph.compile import is_view
from nn_core.engine.graph.detached_call import (
    MASKED,
    active_ones,
    all_inputs,
    arrays_of,
    compute,
    compute_noted,
    draw,
    flags_of,
    gradient_reads,
    last_key,
    place_of_output,
    places_of,
    propagate,
    resolved,
    without_updates,
)
from nn_core.engine.graph.modes import auto_forward as auto_forward_scope
from nn_core.engine.graph.modes import get_auto_forward
from nn_core.engine.graph.node import Node, invalidate
from nn_core.engine.graph.python_function import PythonFunction as PythonFunction
from nn_core.engine.graph.python_function import settings_of
from nn_core.errors import ArgumentError, GraphError
from nn_core.operators.spec.builtin import BY_NAME
from nn_core.operators.spec.model import TAGS, FunctionSpec
from nn_core.variable import Variable

#: Functions that compute on a part of their inputs if `Function.set_active_input_mask` says so.
MASKABLE = ("AddN", "MulN")


class Info(NamedTuple):
    """Name of a function in files, its settings, and its tags."""

    type_name: str
    args: dict[str, Any]
    tags: dict[str, str]


class Function:
    """An operator with a context and settings, and its place in a graph if it has one.

    ``variable.parent`` gives the function that computes a variable; hooks, ``visit`` and ``function_references`` give
    functions too. Two objects that stand for the same place of a graph are equal and have the same hash.

    The methods ``setup``, ``forward``, ``backward`` and ``recompute`` take lists of any Variables: `inputs` are as many
    as ``inputs`` has (optional ones that were not given are left out), `outputs` as many as ``outputs`` has. They
    compute at once and leave the graph as it is.

    Example:
        >>> x = nn.Variable.from_numpy_array([[1.0, 2.0]], need_grad=True)
        >>> y = F.affine(x, nn.Variable.from_numpy_array([[1.0], [3.0]]))
        >>> y.parent.name, y.parent.arguments
        ('Affine', {'base_axis': 1})
        >>> y.parent.forward(y.parent.inputs, [y])
        >>> y.d.tolist()
        [[7.0]]
    """

    __slots__ = ("__weakref__", "_node")

    def __init__(self, node: Node) -> None:
        self._node = node

    def __call__(
        self,
        *inputs: Any,
        n_outputs: int = -1,
        auto_forward: bool | None = None,
        outputs: Sequence[Any] | None = None,
    ) -> Any:
        """Apply the operator to Variables or NdArrays; this object then stands for its new place in the graph.

        Args:
            inputs: Variables and NdArrays.
            n_outputs: follows from the settings; ignored.
            auto_forward: whether to compute at once; None: as ``nn_core.auto_forward`` says.
            outputs: Variables or NdArrays that receive the results instead of new ones.

        Returns:
            One result, or a list of them when the operator has several.
        """
        node = self._node
        forward_now = get_auto_forward() if auto_forward is None else auto_forward
        with context_scope(node.context), auto_forward_scope(forward_now):
            if node.python is not None:
                results = node.python(*inputs, outputs=outputs)
            else:
                results = apply(node.spec, self._placed("__call__", inputs), node.args, outputs)
        first = _listed(results)[0]
        if isinstance(first, Variable) and first.producer is not None:
            self._node = first.producer
        return results

    def applied_to(self, *inputs: Any, **changes: Any) -> Any:
        """Apply the same operator, in its context, to other inputs; this object stays what it is.

        Settings that the caller left open or gave relative to a shape (-1, None) follow the shapes of the new inputs.

        Args:
            inputs: as many Variables or NdArrays as ``inputs`` has.
            changes: settings that are to be different; a PythonFunction takes none.

        Returns:
            One result, or a tuple of them when the operator has several.

        Example:
            >>> y = F.affine(nn.Variable((2, 3)), nn.Variable((3, 5)))
            >>> y.parent.applied_to(nn.Variable((7, 3)), y.parent.inputs[1]).shape
            (7, 5)
        """
        node = self._node
        if node.python is not None:
            if changes:
                raise ArgumentError(f"applied_to: changes must be empty for the PythonFunction {self.name}, got {changes}")
            with context_scope(node.context):
                return node.python(*inputs)
        settings = {**node.setup.given, **node.setup.lengths} if isinstance(node.setup, ResolvedCall) else node.args
        with context_scope(node.context):
            return apply(node.spec, self._placed("applied_to", inputs), {**settings, **changes})

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def node(self) -> Node:
        """The value of the graph that the engine works with."""
        return self._node

    @property
    def name(self) -> str:
        """Name of the operator in files, such as "Affine"; of a PythonFunction its ``name``."""
        return self._node.spec.name

    @property
    def args(self) -> dict[str, Any]:
        """The settings by name; those with several values are lists.

        Defaults that depend on the inputs are known once the function has been applied.
        """
        node = self._node
        settings = node.args if node.python is None else settings_of(node.python)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}

    @property
    def arguments(self) -> dict[str, Any]:
        """Another name of ``args``."""
        return self.args

    @property
    def info(self) -> Info:
        """Name, settings and tags."""
        return Info(self.name, self.args, self.tags)

    @property
    def tags(self) -> dict[str, str]:
        """The tags of the specification, each with its meaning."""
        return {tag: TAGS[tag] for tag in self._node.spec.tags}

    @property
    def context(self) -> Context:
        """The context that it runs in."""
        return self._node.context

    @property
    def inputs(self) -> list[Variable]:
        """The variables that it reads, without the optional ones that were not given."""
        return [value for value in all_inputs(self._node) if value is not None]

    @property
    def outputs(self) -> list[Any]:
        """The ``results``, then what its call has returned beside them: statistics, which are functions of their own.

        Those that nobody holds any more are made again, and have not been computed.
        """
        return [*self.results, *companions_of(self._node)]

    @property
    def results(self) -> list[Any]:
        """The variables that it computes itself."""
        return [self._node.value(index) for index in range(self._node.n_visible)]

    @property
    def need_grad(self) -> bool:
        """Whether any input needs a gradient."""
        return any(variable.need_grad for variable in self.inputs)

    @property
    def rank(self) -> int:
        """Number of functions on the longest path from a leaf to this one; 0 if it reads leaves only."""
        return max((variable.rank for variable in self.inputs), default=0)

    def min_outputs(self) -> int:
        """Return number of outputs; before the function is applied, of those that are always there."""
        node = self._node
        if node.storages:
            return node.n_visible
        return sum(not (entry.aux or entry.optional) for entry in node.spec.outputs)

    # -- what it depends on ----------------------------------------------------------------------------------------

    def grad_depends_input_data(self, i: int, j: int) -> bool:
        """Return whether the gradient of input `i` reads the data of input `j`.

        Raises:
            ArgumentError: when there is no such input.
        """
        self._check_index("grad_depends_input_data", "i", i, len(self.inputs))
        self._check_index("grad_depends_input_data", "j", j, len(self.inputs))
        if self._node.python is not None:
            return bool(self._node.python.grad_depends_input_data(i, j))
        return gradient_reads(self._node, self._positions()[i], input_position=self._positions()[j])

    def grad_depends_output_data(self, i: int, o: int) -> bool:
        """Return whether the gradient of input `i` reads the data of output `o`.

        Raises:
            ArgumentError: when there is no such input or output.
        """
        self._check_index("grad_depends_output_data", "i", i, len(self.inputs))
        self._check_index("grad_depends_output_data", "o", o, len(self.outputs))
        if self._node.python is not None:
            return bool(self._node.python.grad_depends_output_data(i, o))
        return gradient_reads(self._node, self._positions()[i], output_position=place_of_output(self._node, o))

    def auto_grad_depends_input_data(self, i: int, j: int) -> bool:
        """Return the same for ``nn_core.grad``, which follows the rules that ``backward()`` follows."""
        return self.grad_depends_input_data(i, j)

    def auto_grad_depends_output_data(self, i: int, o: int) -> bool:
        """Return the same for ``nn_core.grad``, which follows the rules that ``backward()`` follows."""
        return self.grad_depends_output_data(i, o)

    def inplace_data(self, i: int) -> int:
        """1 when an output is the memory of input `i` in another shape, 0 when it is not.

        Raises:
            ArgumentError: when there is no such input.
        """
        self._check_index("inplace_data", "i", i, len(self.inputs))
        return int(i == 0 and bool(self._node.storages) and is_view(self._node))

    def inplace_data_with(self, i: int) -> int:
        """Return the index of the output that shares the memory of input `i`.

        Raises:
            ArgumentError: when there is no such input.
            GraphError: when no output is.
        """
        if not self.inplace_data(i):
            raise GraphError(
                f"inplace_data_with: {self.name} must have an output in the memory of input {i}, got none\n"
                "  hint: ask inplace_data(i) first"
            )
        return 0

    def need_setup_recompute(self, o: int) -> bool:
        """Return whether computing output `o` again takes what the forward pass has drawn: true for random functions.

        Raises:
            ArgumentError: when there is no such output.
        """
        self._check_index("need_setup_recompute", "o", o, max(len(self.outputs), self.min_outputs()))
        return self._node.python is None and self._node.spec.has("seeded")

    def set_active_input_mask(self, mask: Sequence[bool]) -> None:
        """Compute on some of the inputs only, from the next forward pass on; the others get no gradient.

        Args:
            mask: whether each input takes part. All false means all true.

        Raises:
            ArgumentError: when there is not one value for each input.
            GraphError: when the function is not ``add_n`` or ``mul_n``.
        """
        node = self._node
        if node.spec.name not in MASKABLE:
            raise GraphError(f"set_active_input_mask: the function must be one of {MASKABLE}, got {self.name}")
        inputs = all_inputs(node)
        active = flags_of("set_active_input_mask: mask", mask, len(inputs))
        MASKED[node] = (inputs, active if any(active) else [True] * len(inputs))
        node.inputs = tuple(active_ones(node, inputs))
        node.setup = resolved(node, node.inputs)
        invalidate()

    # -- passes on given variables ---------------------------------------------------------------------------------

    def setup(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        """Check the shapes of `inputs`, and give `outputs` the shapes of the results.

        Raises:
            ArgumentError: when they are not Variables, or not as many as the function has.
            ShapeError: when the shapes do not fit the function.
        """
        self._set_up("setup", inputs, outputs)

    def forward(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        """Compute the data of `outputs` from that of `inputs`; outputs of another shape get that of the results.

        Raises:
            ArgumentError: when they are not Variables, or not as many as the function has.
            ShapeError: when the shapes do not fit the function.
        """
        node = self._node
        placed, call = self._set_up("forward", inputs, outputs)
        if call is None:
            node.python.forward_impl(list(inputs), list(outputs))
            return
        key = draw(node) if node.spec.has("seeded") else None
        compute_noted(node, call, arrays_of(placed), self._arrays_by_place("forward", call, outputs), key)

    def setup_recompute(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        """Do what ``recompute`` needs before the forward pass: nothing, since random functions note what they drew."""
        self._given("setup_recompute", inputs, outputs)

    def recompute(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        """Compute the data of `outputs` as the last forward pass did: random functions give the same numbers again.

        Running statistics stay as they are.

        Raises:
            ArgumentError: when they are not Variables, or not as many as the function has.
            GraphError: when a random function has not been computed before.
        """
        node = self._node
        placed, call = self._set_up("recompute", inputs, outputs)
        if call is None:
            node.python.forward_impl(list(inputs), list(outputs))
            return
        arrays = without_updates(node.spec, arrays_of(placed))
        results = self._arrays_by_place("recompute", call, outputs)
        compute(call, node.context, arrays, results, last_key(node, "recompute"))

    def backward(self, inputs: Sequence[Variable], outputs: Sequence[Variable], accum: Sequence[bool] | None = None) -> None:
        """Compute the gradients of those `inputs` that need one, from the gradients of `outputs`.

        Args:
            inputs: what ``forward`` has read.
            outputs: what ``forward`` has computed, with gradients.
            accum: for each input, whether to add to the gradient that is there; where false, it is overwritten,
                whatever it holds. None: add to all. For `assign` it may have one entry, that of the destination.

        Raises:
            ArgumentError: when they are not Variables, or not as many as the function has.
            GraphError: when the function is random and has not been computed before.
        """
        node = self._node
        placed, call = self._given("backward", inputs, outputs)
        adds = self._adds(accum, len(inputs))
        if call is None:
            wanted = [variable.need_grad for variable in inputs]
            node.python.backward_impl(list(inputs), list(outputs), wanted, adds)
            return
        for variable, add in zip(inputs, adds, strict=True):
            if variable.need_grad and not add:
                variable.grad.zero()
        if node.spec.differentiable:
            by_place = dict(zip(places_of(node, call, len(outputs), "backward"), outputs, strict=True))
            propagate(node, call, placed, by_place, active_ones(node, self._placed("backward", adds)))

    def _adds(self, accum: Any, count: int) -> list[bool]:
        """`accum` as a boolean for each of `count` inputs."""
        if accum is None:
            return [True] * count
        if self.name == "Assign" and len(accum) == 1:  # the other input has no gradient
            accum = [*accum, True]
        return flags_of("backward: accum", accum, count)

    # -- checks ----------------------------------------------------------------------------------------------------

    def _set_up(
        self, method: str, inputs: Sequence[Variable], outputs: Sequence[Variable]
    ) -> tuple[list[Any], ResolvedCall | None]:
        """As `_given`, and give `outputs` the shapes of the results."""
        placed, call = self._given(method, inputs, outputs)
        if call is not None:
            for place, variable in zip(places_of(self._node, call, len(outputs), method), outputs, strict=True):
                variable.reset_shape(call.output_shapes[place], True)
            return placed, call
        known = [variable.shape for variable in (*self.inputs, *self.outputs)]
        if method == "setup" or known != [variable.shape for variable in (*inputs, *outputs)]:
            self._node.python.setup_impl(list(inputs), list(outputs))
        return placed, None

    def _given(
        self, method: str, inputs: Sequence[Variable], outputs: Sequence[Variable]
    ) -> tuple[list[Any], ResolvedCall | None]:
        """Return the inputs that take part, in the order of the specification, and what follows from their shapes.

        What follows is None for a PythonFunction.
        """
        for what, values in (("inputs", inputs), ("outputs", outputs)):
            for value in values:
                if not isinstance(value, Variable):
                    raise ArgumentError(f"{method}: {what} must be Variables, got {type(value).__name__}")
        node = self._node
        placed = active_ones(node, self._placed(method, inputs))
        call = None if node.python is not None else resolved(node, placed)
        if call is None and len(outputs) != len(node.storages):
            raise ArgumentError(f"{method}: outputs of {self.name} must be {len(node.storages)} Variables, got {len(outputs)}")
        if call is not None:
            places_of(node, call, len(outputs), method)
        return placed, call

    def _arrays_by_place(self, method: str, call: ResolvedCall, outputs: Sequence[Variable]) -> dict[int, Any]:
        places = places_of(self._node, call, len(outputs), method)
        return {place: variable.data for place, variable in zip(places, outputs, strict=True)}

    def _placed(self, method: str, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return `inputs` in the order of the specification, None where an optional one is not given."""
        node = self._node
        positions = self._positions()
        if positions and len(inputs) == len(positions):
            given = dict(zip(positions, inputs, strict=True))
            return tuple(given.get(position) for position in range(len(all_inputs(node))))
        n_inputs = len(node.spec.inputs)
        if node.spec.variadic:
            return tuple(inputs)
        if node.python is not None or len(inputs) > n_inputs:
            raise ArgumentError(f"{method}: inputs of {self.name} must be {n_inputs} values, got {len(inputs)}")
        return (*inputs, *[None] * (n_inputs - len(inputs)))

    def _positions(self) -> list[int]:
        """Return the places of ``inputs`` in the order of the specification."""
        return [position for position, value in enumerate(all_inputs(self._node)) if value is not None]

    def _check_index(self, method: str, name: str, index: int, count: int) -> None:
        if not isinstance(index, int) or not 0 <= index < count:
            allowed = f"must be from 0 to {count - 1}" if count else "must not be asked for before there is one"
            raise ArgumentError(f"{method}: {name} {allowed} in {self.name}, got {index!r}")

    # -- Python ----------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self._node is other._node

    def __hash__(self) -> int:
        return hash(self._node)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{self.name}({', '.join(f'{name}={value!r}' for name, value in self.args.items())})>"


Node.function_class = Function


def __getattr__(name: str) -> Callable[..., Function]:
    """Return the factory of the Function of the operator `name` (PEP 562)."""
    spec = None if name.startswith("_") else PLUGINS.function_named(name)
    if spec is None:
        raise AttributeError(f"module 'nn_core.function' has no function {name!r}, of its own or of a plugin")
    return _maker(spec)


def __dir__() -> list[str]:
    return sorted({*globals(), *BY_NAME})


@cache
def _maker(spec: FunctionSpec) -> Callable[..., Function]:
    kind = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter("ctx", kind, annotation="Context")]
    parameters += [Parameter(arg.name, kind, default=None) for arg in spec.args]
    signature = Signature(parameters, return_annotation="Function")

    def make(*positional: Any, **keywords: Any) -> Function:
        settings = signature.bind(*positional, **keywords).arguments
        context = checked_context(spec.name, settings.pop("ctx"))
        return Function(Node(spec, settings, (), (), context, False))

    make.__name__ = make.__qualname__ = spec.name
    make.__doc__ = f"{spec.doc}\n\nReturns a `Function`; see `nn_core.functions.{spec.api}` for the arguments."
    make.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect
    return make


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


__all__ = ["Function", "Info", "PythonFunction"]
