"""Networks of files as graphs of nn_core."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError, FileFormatError, NNCoreError, function_spec, naming_file, one_line
from nn_core.parameter import get_parameter_or_create
from nn_ext_nnp.application import apply_function
from nn_ext_nnp.initial import initial_values
from nn_ext_nnp.loops import expand_loops
from nn_ext_nnp.places import place
from nn_ext_nnp.settings import place_inputs, read_settings, spec_of

_SEQUENCES: Final = {"PackPaddedSequence", "PadPackedSequence"}


class PlannedVariable(str):
    """A variable before there is a graph: its name, since NNabla's functions list their inputs by name, with more.

    Attributes:
        proto: its message.
        variable: what takes its place; None: a new one.
        need_grad: of a parameter; None: as the parameter has it.
    """

    __slots__ = ("need_grad", "proto", "variable")

    proto: Any
    variable: nn.Variable | None
    need_grad: bool | None

    def __new__(cls, name: str, proto: Any) -> "PlannedVariable":
        """Return the variable that a message describes."""
        made = super().__new__(cls, name)
        made.proto, made.variable, made.need_grad = proto, None, None
        return made

    @property
    def name(self) -> str:
        """Unique in its network."""
        return str(self)

    @property
    def type(self) -> str:
        """Buffer or Parameter."""
        return str(self.proto.type)

    @property
    def is_parameter(self) -> bool:
        """Whether it is one."""
        return self.type == "Parameter"

    @property
    def shape(self) -> list[int]:
        """Its shape; -1 stands for the number of samples."""
        return list(self.proto.shape.dim)


@dataclass(slots=True, eq=False)
class PlannedFunction:
    """A function before there is a graph; `inputs` and `outputs` are variables of the plan, which are their names.

    `function_instance` is the function of the graph that was built last, None before and where something takes its place.
    """

    name: str
    proto: Any
    inputs: list[PlannedVariable]
    outputs: list[PlannedVariable]
    function_instance: Any = None

    @property
    def type(self) -> str:
        """Its name in the specification."""
        return str(self.proto.type)

    @property
    def args(self) -> dict[str, Any]:
        """Its settings, with -1 where a shape has the number of samples."""
        return read_settings(self.proto, -1)


@dataclass(slots=True)
class NetworkPlan:
    """A network of a file, loops expanded and functions in an order in which they can run."""

    name: str
    batch_size: int
    variables: dict[str, PlannedVariable]
    functions: list[PlannedFunction]
    file: str = "the file"

    @property
    def inputs(self) -> list[PlannedVariable]:
        """Variables that functions read and none computes, without parameters."""
        made = {variable for function in self.functions for variable in function.outputs}
        read = dict.fromkeys(variable for function in self.functions for variable in function.inputs)
        return [variable for variable in read if variable not in made and not variable.is_parameter]

    @property
    def has_shapes_of_values(self) -> bool:
        """Whether there are functions, such as NonZero, whose shapes are known only when their inputs have values."""
        return bool(self._kinds_with_shapes_of_values)

    @property
    def loses_samples(self) -> bool:
        """Whether such shapes may lack the samples; those of sequences that are packed and padded again have them first."""
        return not self._kinds_with_shapes_of_values <= _SEQUENCES

    @property
    def _kinds_with_shapes_of_values(self) -> set[str]:
        return {function.type for function in self.functions if function_spec(function.type).has("dynamic_shape")}

    @property
    def outputs(self) -> list[PlannedVariable]:
        """Variables that functions compute and none reads."""
        read = {variable for function in self.functions for variable in function.inputs}
        return [v for function in self.functions for v in function.outputs if v not in read]


@dataclass(slots=True)
class Network:
    """A network as a graph.

    Attributes:
        name: its name in the file.
        batch_size: number of samples.
        variables: all variables by name, parameters included.
        inputs: those to be set.
        outputs: those that nothing reads.
        parameters: those that are parameters.
        plan: what it was built from.

    Called with variables in place of its inputs, it makes another graph with the same parameters.
    """

    name: str
    batch_size: int
    plan: NetworkPlan | None = None
    variables: dict[str, nn.Variable] = field(default_factory=dict)
    inputs: dict[str, nn.Variable] = field(default_factory=dict)
    outputs: dict[str, nn.Variable] = field(default_factory=dict)
    parameters: dict[str, nn.Variable] = field(default_factory=dict)

    @property
    def functions(self) -> dict[str, PlannedFunction]:
        """All functions by name, each with ``type``, ``args``, names of ``inputs`` and ``outputs``, and function."""
        planned = () if self.plan is None else self.plan.functions
        return {f.name: replace(f, function_instance=self.variables[f.outputs[0]].parent) for f in planned}

    def __call__(self, *variables: nn.Variable) -> Any:
        """Make a graph on `variables`, which take the places of the inputs; returns its output, or a list of them.

        Raises:
            ArgumentError: when there are more or fewer variables than inputs, or the network is not one of a file.
        """
        if self.plan is None:
            raise ArgumentError(f"{self.name}: a network that is called must be one of a file")
        with taking_places(self.plan, variables, self.parameters) as samples:
            outputs = list(build(self.plan, samples).outputs.values())
        return outputs[0] if len(outputs) == 1 else outputs


@contextmanager
def taking_places(
    plan: NetworkPlan, variables: Sequence[nn.Variable], parameters: Mapping[str, nn.Variable]
) -> Iterator[int | None]:
    """Put `variables` in place of the inputs of a plan, and `parameters` in that of its own, inside a ``with`` block.

    Yields the number of samples that the variables have; None where no input has samples, or there are no variables.

    Raises:
        ArgumentError: when there are more or fewer variables than inputs.
    """
    if variables and len(variables) != len(plan.inputs):
        needed = f"variables must be {len(plan.inputs)}, for {[str(v) for v in plan.inputs]}"
        raise ArgumentError(f"{plan.name}: {needed}, got {len(variables)}")
    placed = [*zip(plan.inputs, variables, strict=False), *((plan.variables[name], v) for name, v in parameters.items())]
    before = [planned.variable for planned, _ in placed]
    try:
        for planned, given in placed:
            planned.variable = given
        yield _number_of_samples(plan.inputs)
    finally:
        for (planned, _), variable in zip(placed, before, strict=True):
            planned.variable = variable


def _number_of_samples(inputs: Iterable[PlannedVariable]) -> int | None:
    shapes = [v.variable.shape for v in inputs if v.variable is not None and v.shape and v.shape[0] < 1]
    return next((shape[0] for shape in shapes if shape), None)


def plan_network(network: Any, file: str) -> NetworkPlan:
    """Check a Network message and put its functions in order.

    Raises:
        FileFormatError: when names are used twice or not known, or functions wait for each other.
    """
    expanded, where = expand_loops(network, file), _Where(file, network.name)
    variables: dict[str, PlannedVariable] = {}
    for proto in expanded.variable:
        if proto.type not in ("Buffer", "Parameter"):
            at = where.of("variable", proto.name)
            raise FileFormatError(f"{at}: type of variable {proto.name!r} must be Buffer or Parameter, got {proto.type!r}")
        if proto.name in variables:
            raise FileFormatError(f"{where}: variables must have different names, got {proto.name!r} twice")
        variable = variables[proto.name] = PlannedVariable(proto.name, proto)
        if variable.is_parameter and min((0, *variable.shape)) < 0:
            at = where.of("variable", proto.name)
            got = f"got the shape {variable.shape}"
            raise FileFormatError(f"{at}: parameter {proto.name!r} must have lengths of at least 0, {got}")

    def of(function: Any, names: Iterable[str]) -> list[PlannedVariable]:
        unknown = [name for name in names if name not in variables]
        if unknown:
            at = where.of("function", function.name)
            raise FileFormatError(f"{at}: variables of function {function.name!r} must be listed, got {unknown[0]!r}")
        return [variables[name] for name in names]

    listed = [PlannedFunction(f.name, f, of(f, f.input), of(f, f.output)) for f in expanded.function]
    return NetworkPlan(network.name, network.batch_size, variables, _in_order(listed, where), file)


@dataclass(slots=True)
class _Where:
    """The network that a message is about; lines are looked up only when a message is made."""

    file: str
    network: str

    def __str__(self) -> str:
        return f"{place(self.file, 'network', self.network)}: network {self.network!r}"

    def of(self, kind: str, name: str) -> str:
        """Return the place of a function or a variable of the network."""
        return f"{place(self.file, kind, name, self.network)}: network {self.network!r}"


def _makers(functions: Sequence[PlannedFunction], where: _Where) -> dict[PlannedVariable, PlannedFunction]:
    """Return the function that computes each variable."""
    makers: dict[PlannedVariable, PlannedFunction] = {}
    for function in functions:
        for variable in function.outputs:
            if variable in makers or variable.is_parameter:
                at = where.of("function", function.name)
                raise FileFormatError(f"{at}: one function must compute variable {variable.name!r}, got several")
            makers[variable] = function
    return makers


def _in_order(functions: list[PlannedFunction], where: _Where) -> list[PlannedFunction]:
    makers = _makers(functions, where)
    order: list[PlannedFunction] = []
    done: dict[int, bool] = {}  # False: functions before it are being put in order
    for start in functions:
        stack = [] if id(start) in done else [(start, iter(start.inputs))]
        done.setdefault(id(start), False)
        while stack:
            function, inputs = stack[-1]
            before = next((makers[v] for v in inputs if v in makers and not done.get(id(makers[v]))), None)
            if before is None:
                done[id(function)] = True
                order.append(stack.pop()[0])
            elif id(before) in done:
                at = where.of("function", before.name)
                raise FileFormatError(f"{at}: functions must not wait for each other, got a circle at {before.name!r}")
            else:
                done[id(before)] = False
                stack.append((before, iter(before.inputs)))
    return order


def build(
    plan: NetworkPlan,
    batch_size: int | None = None,
    rng: np.random.Generator | None = None,
    make: Mapping[str, Callable[..., Any]] | None = None,
) -> Network:
    """Make the graph of a plan. Parameters are those of the current scope; missing ones are made there.

    Args:
        plan: what to build.
        batch_size: number of samples; None: that of the file.
        rng: for initial values of parameters.
        make: by the name of a function, what is called with its inputs in place of it.

    Raises:
        ArgumentError: when the number of samples is not known.
        FileFormatError: when a function does not take its inputs; names it.
    """
    with naming_file(plan.file):
        return _built(plan, plan.batch_size if batch_size is None else batch_size, rng, make or {})


def _built(
    plan: NetworkPlan, samples: int, rng: np.random.Generator | None, make: Mapping[str, Callable[..., Any]]
) -> Network:
    network = Network(plan.name, samples, plan)
    inputs, outputs = plan.inputs, plan.outputs
    if samples < 1 and any(dim < 1 for v in inputs for dim in v.shape):
        raise ArgumentError(
            f"load: batch_size must be given for network {plan.name!r} of {place(plan.file, 'network', plan.name)}, "
            f"got {samples} in the file"
        )
    _add_leaves(network, plan, rng)
    for function in plan.functions:
        _apply(plan, function, network, samples, make.get(function.name))
    network.inputs = {v.name: network.variables[v.name] for v in inputs}
    network.outputs = {v.name: network.variables[v.name] for v in outputs}
    return network


def built_for_values(network: Network) -> Network:
    """Return the network itself, or one for the present values of its inputs if shapes follow from them."""
    if network.plan is None or not network.plan.has_shapes_of_values:
        return network
    for planned in network.plan.inputs:
        planned.variable = network.inputs[planned.name]
    return build(network.plan, network.batch_size)


def _add_leaves(network: Network, plan: NetworkPlan, rng: np.random.Generator | None) -> None:
    """Make what no function computes: parameters, inputs, and variables that are there already."""
    inputs = set(plan.inputs)
    for variable in dict.fromkeys(v for function in plan.functions for v in (*function.inputs, *function.outputs)):
        if variable.variable is not None:
            network.variables[variable.name] = variable.variable
        elif variable.is_parameter:
            network.variables[variable.name] = _parameter(variable, plan, rng)
        elif variable in inputs:
            network.variables[variable.name] = _input(variable, network.batch_size, rng)
        if variable.is_parameter:
            network.parameters[variable.name] = network.variables[variable.name]


def _parameter(variable: PlannedVariable, plan: NetworkPlan, rng: np.random.Generator | None) -> nn.Variable:
    shape = tuple(variable.shape)
    parameter = nn.parameter.get_parameter(variable.name)
    if parameter is None and variable.proto.HasField("initializer"):
        parameter = get_parameter_or_create(variable.name, shape, initial_values(variable.proto, shape, rng))
    elif parameter is None:
        parameter = get_parameter_or_create(variable.name, shape)  # zeros, without memory until they are read
    if parameter.shape != shape:
        at = _Where(plan.file, plan.name).of("variable", variable.name)
        raise FileFormatError(
            f"{at}: parameter {variable.name!r} must have the shape {shape} that the network says, got {parameter.shape}"
        )
    if variable.need_grad is None:
        return parameter
    return parameter.get_unlinked_variable(need_grad=variable.need_grad)


def _input(variable: PlannedVariable, samples: int, rng: np.random.Generator | None) -> nn.Variable:
    shape = tuple(samples if dim < 1 else dim for dim in variable.shape)
    made = nn.Variable(shape)
    made.name = variable.name
    if variable.proto.HasField("initializer"):
        made.d = initial_values(variable.proto, shape, rng)
    return made


def _where_of(plan: NetworkPlan, function: PlannedFunction) -> str:
    at = place(plan.file, "function", function.name, plan.name)
    return f"{at}: function {function.name!r} ({function.type}) of network {plan.name!r}"


def _apply(
    plan: NetworkPlan, function: PlannedFunction, network: Network, samples: int, custom: Callable[..., Any] | None
) -> None:
    inputs = [network.variables[v.name] for v in function.inputs]
    try:
        if custom is not None:
            results = custom(*inputs)
        else:
            settings = read_settings(function.proto, samples)
            placed = place_inputs(function.type, inputs, settings)
            results = apply_function(function.type, placed, settings, len(function.outputs))
    except (NNCoreError, ValueError, TypeError) as error:
        where = _where_of(plan, function)
        raise FileFormatError(f"{where} must fit its inputs, got: {one_line(error)}") from error
    listed = list(results) if isinstance(results, (list, tuple)) else [results]
    has_all = len(function.outputs) == len(listed) or not spec_of(function.type).outputs[-1].variadic
    if len(function.outputs) > len(listed) or not has_all:
        where = _where_of(plan, function)
        raise FileFormatError(f"{where} must have {len(listed)} outputs, got {len(function.outputs)}")
    for variable, result in zip(function.outputs, listed, strict=False):
        result.name = variable.name
        network.variables[variable.name] = result
