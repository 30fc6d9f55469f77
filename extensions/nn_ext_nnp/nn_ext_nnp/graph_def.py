"""Networks as data: loaded, changed, saved, and called to make graphs; see `nn_core.core.graph_def`."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import nn_core as nn
from nn_core.ext import ArgumentError
from nn_ext_nnp.document import Document, read_document
from nn_ext_nnp.network import NetworkPlan, PlannedFunction, PlannedVariable, build, plan_network, taking_places
from nn_ext_nnp.network_writing import network_proto
from nn_ext_nnp.nnp_graph import put_parameters
from nn_ext_nnp.saving import message_bytes, parameter_entries, save_proto
from nn_ext_nnp.schema import message


class ProtoNetwork:
    """A network that is not a graph yet.

    Attributes:
        name: its name.
        batch_size: number of samples that it was saved with.
        owner: the `ProtoGraph` that has it.
    """

    def __init__(self, owner: "ProtoGraph", name: str | None = None, batch_size: int | None = None, proto: Any = None) -> None:
        self.owner = owner
        self._proto = message("Network", name=name or "", batch_size=batch_size or 1) if proto is None else proto
        self._plan: NetworkPlan = plan_network(self._proto, owner.file)

    @property
    def name(self) -> str:
        """Its name."""
        return self._plan.name

    @property
    def batch_size(self) -> int:
        """Number of samples that it was saved with."""
        return self._plan.batch_size

    @property
    def variables(self) -> dict[str, PlannedVariable]:
        """All variables by name; each has ``name``, ``shape`` and ``proto``."""
        return {name: v for name, v in self._plan.variables.items() if not v.is_parameter}

    @property
    def parameters(self) -> dict[str, PlannedVariable]:
        """Those that are parameters."""
        return {name: v for name, v in self._plan.variables.items() if v.is_parameter}

    @property
    def functions(self) -> dict[str, PlannedFunction]:
        """All functions by name; each has ``type``, ``inputs``, ``outputs`` and ``proto``."""
        return {function.name: function for function in self._plan.functions}

    @property
    def inputs(self) -> list[str]:
        """Names of the variables to set."""
        return [variable.name for variable in self._plan.inputs]

    @property
    def outputs(self) -> list[str]:
        """Names of the results."""
        return [variable.name for variable in self._plan.outputs]

    def forward_sequence(self) -> Iterator[PlannedFunction]:
        """Return the functions, each after those that compute its inputs."""
        return iter(self._plan.functions)

    def __call__(self, *variables: nn.Variable, batch_size: int | None = None, ctx: nn.Context | None = None) -> Any:
        """Make the graph of the network on `variables`, which take the places of ``inputs``.

        Args:
            variables: as many as ``inputs``, or none for new ones.
            batch_size: number of samples; None: that of `variables`, or of the network.
            ctx: where to run; None: the current context.

        Returns:
            The output, or a list of them.

        Raises:
            ArgumentError: when there are more or fewer variables than inputs.
        """
        with (
            taking_places(self._plan, variables, {}) as samples,
            self.owner.in_scope(),
            nn.context_scope(ctx or nn.get_current_context()),
        ):
            outputs = list(build(self._plan, samples if batch_size is None else batch_size).outputs.values())
        return outputs[0] if len(outputs) == 1 else outputs

    def execute_on_proto(self, execute: Callable[[PlannedFunction], object]) -> None:
        """Call `execute` with each function, in the order in which they run."""
        for function in self._plan.functions:
            execute(function)

    def clone(self) -> "ProtoNetwork":
        """Return an independent copy with the same owner."""
        proto = message("Network")
        proto.CopyFrom(self._proto)
        return ProtoNetwork(self.owner, proto=proto)

    def as_proto(self, **settings: Any) -> Any:
        """Return the NNablaProtoBuf with this network alone; settings as `ProtoGraph.as_proto`."""
        return self.owner.as_proto(networks=[self], **settings)

    def save(self, filename: Any, include_parameter: bool = False, variable_batch_size: bool = True) -> None:
        """Write this network alone to a file."""
        self.owner.save(filename, include_parameter, variable_batch_size, networks=[self])

    def message(self) -> Any:
        """Return the Network message."""
        return self._proto


class ProtoGraph:
    """The networks and parameters of a file.

    Args:
        networks: networks by name.
        parameter_scope: dictionary with the parameters; None: a new one.

    ``g.name(x)`` and ``g["name"](x)`` call a network, ``g(x)`` calls the first one.
    """

    def __init__(
        self, networks: Mapping[str, ProtoNetwork] | None = None, parameter_scope: dict[str, Any] | None = None
    ) -> None:
        self.networks: dict[str, ProtoNetwork] = dict(networks or {})
        self.parameter_scope: dict[str, Any] = {} if parameter_scope is None else parameter_scope
        self.executors: dict[str, Any] = {}
        self.file = "the graph"

    @staticmethod
    def from_proto(
        proto: Any, batch_size: int | None = None, param_scope: dict[str, Any] | None = None, rng: Any = None
    ) -> "ProtoGraph":
        """Return the networks of an NNablaProtoBuf."""
        return _of_document(Document(proto), batch_size, param_scope)

    def default_graph(self) -> ProtoNetwork:
        """Return the first network.

        Raises:
            ArgumentError: when there is none.
        """
        if not self.networks:
            raise ArgumentError("default_graph: there must be a network, got none")
        return next(iter(self.networks.values()))

    def __call__(self, *variables: nn.Variable, **settings: Any) -> Any:
        """Call the first network."""
        return self.default_graph()(*variables, **settings)

    def __getitem__(self, name: str) -> ProtoNetwork:
        if name not in self.networks:
            raise ArgumentError(f"ProtoGraph: networks must be one of {list(self.networks)}, got {name!r}")
        return self.networks[name]

    def __getattr__(self, name: str) -> ProtoNetwork:
        networks = self.__dict__.get("networks", {})
        if name not in networks:
            raise AttributeError(f"ProtoGraph has no network {name!r}")
        found: ProtoNetwork = networks[name]
        return found

    def get(self, key: str, value: Any = None) -> Any:
        """Return the parameter called `key`, or `value`."""
        return self.get_parameters().get(key, value)

    def get_parameters(self, grad_only: bool = False) -> dict[str, nn.Variable]:
        """Return the parameters by name."""
        with self.in_scope():
            return nn.get_parameters(grad_only=grad_only)

    def set_parameter(self, key: str, param: nn.Variable) -> None:
        """Make `param` the parameter called `key`."""
        with self.in_scope():
            nn.parameter.set_parameter(key, param)

    def set_parameters(self, params: Mapping[str, nn.Variable]) -> None:
        """Take over parameters by name."""
        for key, param in params.items():
            self.set_parameter(key, param)

    def as_proto(
        self,
        include_parameter: bool = False,
        only_parameter: bool = False,
        networks: Sequence[ProtoNetwork] | None = None,
        variable_batch_size: bool = True,
    ) -> Any:
        """Return the NNablaProtoBuf of all networks, or of `networks`."""
        made = message("NNablaProtoBuf")
        for network in () if only_parameter else (networks or self.networks.values()):
            made.network.append(network.message())
        entries = parameter_entries(self.get_parameters()) if include_parameter or only_parameter else {}
        merged = message("NNablaProtoBuf")
        merged.ParseFromString(message_bytes(made, entries, ".protobuf"))
        return merged

    def save(
        self,
        filename: str | os.PathLike[str] | IO[bytes],
        include_parameter: bool = False,
        variable_batch_size: bool = True,
        executors: Any = None,
        networks: Sequence[ProtoNetwork] | None = None,
    ) -> None:
        """Write the networks to an .nnp, .nntxt or .protobuf file; archives have the parameters as well."""
        proto = self.as_proto(networks=networks)
        save_proto(filename, proto, self.get_parameters(), include_parameter)

    @contextmanager
    def in_scope(self) -> Iterator[None]:
        """Look parameters up among those of the graph."""
        with nn.parameter_scope("", self.parameter_scope):
            yield


def load(
    filename: Any,
    batch_size: int | None = None,
    exclude_parameter: bool = False,
    parameter_only: bool = False,
    extension: str = ".nntxt",
    parameter_scope: dict[str, Any] | None = None,
    rng: Any = None,
) -> ProtoGraph:
    """Read the networks of a file; parameters go into `parameter_scope`, or a new one."""
    document = read_document(filename, extension, not exclude_parameter)
    if exclude_parameter:
        document.parameters.clear()
    if parameter_only:
        del document.proto.network[:]
    return _of_document(document, batch_size, parameter_scope)


def _of_document(document: Document, batch_size: int | None, scope: dict[str, Any] | None) -> ProtoGraph:
    graph = ProtoGraph(None, scope)
    graph.file = document.name
    with graph.in_scope():
        put_parameters(document.parameters, document.name)
    for proto in document.proto.network:
        if batch_size is not None:
            proto.batch_size = batch_size
        graph.networks[proto.name] = ProtoNetwork(graph, proto=proto)
    graph.executors = {executor.name: executor for executor in document.proto.executor}
    return graph


def save(
    filename: str | os.PathLike[str] | IO[bytes],
    content: Sequence[ProtoGraph],
    include_parameters: bool = False,
    variable_batch_size: bool = True,
    extension: str = ".nnp",
    executors: Any = None,
) -> None:
    """Write the networks of several graphs to one file."""
    together = ProtoGraph()
    for graph in content:
        together.networks.update(graph.networks)
        together.set_parameters(graph.get_parameters())
    together.save(filename, include_parameters, variable_batch_size)


def create_graph_from_variable(
    name: str,
    variables: nn.Variable | Sequence[nn.Variable],
    names: Mapping[str, nn.Variable] | None = None,
    parameter_scope: dict[str, Any] | None = None,
) -> ProtoGraph:
    """Return the network of variables of a graph.

    Args:
        name: of the network.
        variables: its outputs.
        names: variables by name; outputs that have none are called y, y_1, ...
        parameter_scope: parameters; None: those of the current scope.
    """
    outputs = [variables] if isinstance(variables, nn.Variable) else list(variables)
    scope = nn.get_current_parameter_scope() if parameter_scope is None else parameter_scope
    graph = ProtoGraph(None, scope)
    given = _with_names(outputs, names or {})
    inputs = {key: v for key, v in given.items() if v not in outputs}
    results = {key: v for key, v in given.items() if v in outputs}
    batch = next((v.shape[0] for v in inputs.values() if v.ndim), outputs[0].shape[0] if outputs[0].ndim else 1)
    contents = {"name": name, "batch_size": batch, "names": inputs, "outputs": results}
    graph.networks[name] = ProtoNetwork(graph, proto=network_proto(contents, graph.get_parameters(), False))
    return graph


def _with_names(outputs: Sequence[nn.Variable], names: Mapping[str, nn.Variable]) -> dict[str, nn.Variable]:
    """`names`, and names for the outputs that have none there."""
    known = set(names.values())
    others = [output for output in outputs if output not in known]
    return {**names, **{f"y_{index}" if index else "y": output for index, output in enumerate(others)}}


__all__ = ["ProtoGraph", "ProtoNetwork", "create_graph_from_variable", "load", "save"]
