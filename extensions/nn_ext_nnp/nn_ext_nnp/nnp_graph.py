"""Networks of NNP files one by one, with changes on the way; see `nn_core.utils.nnp_graph`."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import IO, Any

import nn_core as nn
from nn_core.ext import ArgumentError, Entry, naming_file, parameter_of
from nn_ext_nnp.document import read_document
from nn_ext_nnp.network import Network, NetworkPlan, PlannedFunction, PlannedVariable, build, plan_network
from nn_ext_nnp.schema import functions


class NnpLoader:
    """The networks of a file.

    Args:
        filepath: path of an .nnp, .nntxt, .prototxt or .protobuf file, or an open file.
        scope: dictionary for the parameters; None: the current scope.
        extension: format of an open file.

    Raises:
        FileFormatError: when the file is damaged.
    """

    def __init__(
        self, filepath: str | os.PathLike[str] | IO[bytes], scope: dict[str, Any] | None = None, extension: str = ".nntxt"
    ) -> None:
        self._document = read_document(filepath, extension)
        self._scope = scope
        self._networks = {network.name: network for network in self._document.proto.network}
        with self._in_scope():
            _renew_others(self._document.parameters)
            put_parameters(self._document.parameters, self._document.name)

    def get_network_names(self) -> list[str]:
        """Names of the networks, in the order of the file."""
        return list(self._networks)

    def get_network(self, name: str, batch_size: int | None = None, callback: "NnpNetworkPass | None" = None) -> "NnpNetwork":
        """Make the graph of a network.

        Parameters that were removed since the file was read, or have another shape by now, are put back with their last
        values. Graphs that were made with the others keep those.

        Args:
            name: of the network.
            batch_size: number of samples; None: that of the file.
            callback: changes on the way.

        Raises:
            ArgumentError: when there is no such network.
        """
        if name not in self._networks:
            raise ArgumentError(f"get_network: name must be one of {list(self._networks)}, got {name!r}")
        with self._in_scope():
            _renew_others(self._document.parameters)
            return NnpNetwork(plan_network(self._networks[name], self._document.name), batch_size, callback)

    @contextmanager
    def _in_scope(self) -> Iterator[None]:
        scope = nullcontext() if self._scope is None else nn.parameter_scope("", self._scope)
        with naming_file(self._document.name), scope:
            yield


def put_parameters(entries: Mapping[str, Entry], file: str) -> None:
    """Give the parameters of the current scope the values of a file; make those that are missing.

    Args:
        entries: by the names of the parameters.
        file: the file's name, for errors.

    Raises:
        ArgumentError: when a parameter exists with another shape; nothing is changed then.
    """
    with put_unless_refused(entries, file):
        pass


@contextmanager
def put_unless_refused(entries: Mapping[str, Entry], file: str) -> Iterator[None]:
    """Make the parameters that are missing before a ``with`` block, and give those that exist their values after it.

    When the block raises, the current scope has the parameters and values that it had. Errors get the name of the file.
    """
    with naming_file(file), _put_unless_refused(entries):
        yield


@contextmanager
def _put_unless_refused(entries: Mapping[str, Entry]) -> Iterator[None]:
    found = {name: nn.parameter.get_parameter(name) for name in entries}
    present = {name: parameter for name, parameter in found.items() if parameter is not None}
    _require_shapes(present, entries)
    before = nn.get_parameters(grad_only=False)
    try:
        for name in (name for name in entries if name not in present):
            nn.parameter.set_parameter(name, parameter_of(entries[name]))
        yield
    except BaseException:
        for name in nn.get_parameters(grad_only=False).keys() - before.keys():
            nn.parameter.pop_parameter(name)
        raise
    for name, parameter in present.items():
        parameter.d = entries[name].values


def _require_shapes(parameters: Mapping[str, nn.Variable], entries: Mapping[str, Entry]) -> None:
    for name, parameter in parameters.items():
        if parameter.shape != entries[name].values.shape:
            raise ArgumentError(
                f"load: parameter {name!r} must keep its shape {parameter.shape}, got {entries[name].values.shape}\n"
                "  hint: call nn_core.clear_parameters() before, or load into another scope"
            )


def _renew_others(entries: Mapping[str, Entry]) -> None:
    """Put new parameters in the place of those of the current scope that are missing or have other shapes than in a file."""
    for name, entry in entries.items():
        parameter = nn.parameter.get_parameter(name)
        if parameter is None or parameter.shape != entry.values.shape:
            nn.parameter.set_parameter(name, parameter_of(entry))


class NnpNetwork:
    """A network as a graph.

    Attributes:
        network: name, number of samples, and all that the properties give.
    """

    def __init__(self, proto_network: NetworkPlan, batch_size: int | None, callback: "NnpNetworkPass | None") -> None:
        make = None if callback is None else callback.apply(proto_network)
        self.network: Network = build(proto_network, batch_size, make=make)

    @property
    def inputs(self) -> dict[str, nn.Variable]:
        """The variables to set, by name."""
        return self.network.inputs

    @property
    def outputs(self) -> dict[str, nn.Variable]:
        """The results, by name."""
        return self.network.outputs

    @property
    def variables(self) -> dict[str, nn.Variable]:
        """All variables by name, parameters included."""
        return self.network.variables


class NnpNetworkPass:
    """Changes of a network before its graph is made.

    Callbacks for functions and variables get objects with ``name``, ``proto`` and, for functions, ``inputs`` and
    ``outputs``.

    Args:
        verbose: ignored.

    Example:
        >>> change = NnpNetworkPass()
        >>> @change.on_function_pass_by_type("Dropout")
        ... def keep_all(function, variables, param_scope):
        ...     function.proto.dropout_param.p = 0.0
    """

    def __init__(self, verbose: int = 0) -> None:
        self._pass: list[tuple[str, str, Callable[..., Any]]] = []
        self._generate: list[tuple[str, str, Callable[..., Any]]] = []
        self._variables: dict[str, Callable[..., Any]] = {}
        self._edits: list[Callable[[NetworkPlan], None]] = []

    def on_function_pass_by_name(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Call ``callback(function, variables, parameter_scope)`` for the function called `name`."""
        return self._registering(self._pass, "name", name)

    def on_function_pass_by_type(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Call ``callback(function, variables, parameter_scope)`` for all functions of a type."""
        return self._registering(self._pass, "type", name)

    def on_generate_function_by_name(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Let ``callback(function)`` change the function called `name` before it is applied."""
        return self._registering(self._generate, "name", name)

    def on_generate_function_by_type(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Let ``callback(function)`` change the functions of a type before they are applied."""
        return self._registering(self._generate, "type", name)

    def on_generate_variable(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Let ``callback(variable)`` change the variable called `name`, such as ``variable.proto.shape.dim``."""

        def register(callback: Callable[..., Any]) -> Callable[..., Any]:
            self._variables[name] = callback
            return callback

        return register

    def drop_function(self, *names: str) -> None:
        """Leave out functions; what reads them has no maker then and becomes an input."""
        self._edits.append(lambda plan: _drop(plan, names))

    def fix_parameters(self) -> None:
        """Let no parameter need a gradient."""

        def fix(plan: NetworkPlan) -> None:
            for variable in plan.variables.values():
                if variable.is_parameter:
                    variable.need_grad = False

        self._edits.append(fix)

    def use_up_to(self, *names: str) -> None:
        """Leave out all functions that the variables called `names` do not depend on."""
        self._edits.append(lambda plan: _use_up_to(plan, names))

    def remove_and_rewire(self, name: str, i: int = 0, o: int = 0) -> None:
        """Leave out a function: what reads its output `o` gets its input `i` instead."""
        self._edits.append(lambda plan: _rewire(plan, name, i, o))

    def set_variable(self, name: str, input_var: nn.Variable) -> None:
        """Put a variable in the place of that called `name`.

        Functions such as NonZero have shapes that follow from the values of their inputs at the time when the graph is built:
        a variable with values gives such a network the shapes of these values.
        """

        def put(plan: NetworkPlan) -> None:
            _variable(plan, name).variable = input_var
            for function in plan.functions:
                function.outputs = [_unread(v) if v.name == name else v for v in function.outputs]

        self._edits.append(put)

    def set_batch_normalization_batch_stat_all(self, batch_stat: bool) -> None:
        """Let all batch normalizations use the statistics of the batch, or none."""

        def change(plan: NetworkPlan) -> None:
            for function in plan.functions:
                kind = functions()[function.type]
                if "batch_stat" in kind.settings:
                    getattr(function.proto, str(kind.field)).batch_stat = batch_stat

        self._edits.append(change)

    def force_average_pooling_global(self, name: str, by_type: bool = False) -> None:
        """Replace an average pooling, or all, by one over the whole image."""

        def change(plan: NetworkPlan) -> None:
            for function in _matching(plan, name, by_type):
                if function.type != "AveragePooling":
                    raise ArgumentError(f"force_average_pooling_global: must name an AveragePooling, got {function.type}")
                function.proto.ClearField("parameter")
                function.proto.type = "GlobalAveragePooling"

        self._edits.append(change)

    def check_average_pooling_global(self, name: str, by_type: bool = False) -> None:
        """Require that an average pooling, or all, covers the whole image.

        Raises (when the network is made):
            ArgumentError: when one covers a part of it.
        """

        def change(plan: NetworkPlan) -> None:
            for function in _matching(plan, name, by_type):
                kernel, shape = list(function.proto.average_pooling_param.kernel.dim), function.inputs[0].shape
                if kernel != shape[-len(kernel) :]:
                    raise ArgumentError(
                        f"check_average_pooling_global: {function.name!r} must cover the image of {shape}, got {kernel}"
                    )

        self._edits.append(change)

    def apply(self, plan: NetworkPlan) -> Mapping[str, Callable[..., Any]]:
        """Change a plan; returns nothing that takes the place of functions."""
        for variable in list(plan.variables.values()):
            if variable.name in self._variables:
                self._variables[variable.name](variable)
        for kind, name, callback in self._generate:
            for function in _matching(plan, name, kind == "type", required=False):
                callback(function)
        for kind, name, callback in self._pass:
            for function in _matching(plan, name, kind == "type", required=False):
                callback(function, plan.variables, nn.get_current_parameter_scope())
        for edit in self._edits:
            edit(plan)
        return {}

    def _registering(
        self, table: list[tuple[str, str, Callable[..., Any]]], kind: str, name: str
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(callback: Callable[..., Any]) -> Callable[..., Any]:
            table.append((kind, name, callback))
            return callback

        return register


def _matching(plan: NetworkPlan, name: str, by_type: bool, required: bool = True) -> list[PlannedFunction]:
    found = [f for f in plan.functions if (f.type if by_type else f.name) == name]
    if required and not found and not by_type:
        raise ArgumentError(f"NnpNetworkPass: functions must be in network {plan.name!r}, got {name!r}")
    return found


def _variable(plan: NetworkPlan, name: str) -> PlannedVariable:
    if name not in plan.variables:
        raise ArgumentError(f"NnpNetworkPass: variables must be in network {plan.name!r}, got {name!r}")
    return plan.variables[name]


def _unread(variable: PlannedVariable) -> PlannedVariable:
    return PlannedVariable(f"{variable.name} (replaced)", variable.proto)


def _drop(plan: NetworkPlan, names: tuple[str, ...]) -> None:
    dropped = [function for name in names for function in _matching(plan, name, False)]
    plan.functions = [function for function in plan.functions if function not in dropped]


def _use_up_to(plan: NetworkPlan, names: tuple[str, ...]) -> None:
    needed = {_variable(plan, name) for name in names}
    kept: list[PlannedFunction] = []
    for function in reversed(plan.functions):
        if any(variable in needed for variable in function.outputs):
            kept.append(function)
            needed.update(function.inputs)
    plan.functions = kept[::-1]


def _rewire(plan: NetworkPlan, name: str, i: int, o: int) -> None:
    (function, *_) = _matching(plan, name, False)
    if not (0 <= i < len(function.inputs) and 0 <= o < len(function.outputs)):
        raise ArgumentError(
            f"remove_and_rewire: i and o must be places of {name!r}, got {i} of {len(function.inputs)} inputs and {o} of "
            f"{len(function.outputs)} outputs"
        )
    old, new = function.outputs[o], function.inputs[i]
    plan.functions.remove(function)
    for other in plan.functions:
        other.inputs = [new if variable is old else variable for variable in other.inputs]
