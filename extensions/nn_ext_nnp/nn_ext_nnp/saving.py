"""Graphs of nn_core as networks of files."""

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError, Entry, ParameterSource, atomic_writer, parameters_of
from nn_core.graph_rewriting import parameters_behind
from nn_ext_nnp.archive import Member, write_archive
from nn_ext_nnp.codec import print_text
from nn_ext_nnp.contents import checked
from nn_ext_nnp.network_writing import constants_of, in_functions, network_proto
from nn_ext_nnp.parameters import h5_bytes
from nn_ext_nnp.schema import message, solvers
from nn_ext_nnp.states import read_states, state_members
from nn_ext_nnp.wire import parameter_bytes


def save(
    filename: str | os.PathLike[str] | IO[bytes],
    contents: Mapping[str, Any],
    include_params: bool = False,
    variable_batch_size: bool = True,
    extension: str = ".nnp",
    parameters: ParameterSource | None = None,
    parameter_format: str = ".h5",
    include_solver_state: bool = False,
    solver_state_format: str = ".h5",
) -> None:
    """Write networks and what belongs to them; see `nn_core.utils.save.save`."""
    for name, given in (("parameter_format", parameter_format), ("solver_state_format", solver_state_format)):
        if given not in (".h5", ".protobuf"):
            raise ArgumentError(f"save: {name} must be '.h5' or '.protobuf', got {given!r}")
    contents = checked(contents)
    contents = in_functions(contents)
    kept = _kept(contents, parameters)
    _extension_of(filename, extension)
    proto = create_proto(contents, False, variable_batch_size, parameters=kept)
    optimizers = contents.get("optimizers", ()) if include_solver_state else ()
    states = state_members(optimizers, kept, solver_state_format)
    save_proto(filename, proto, kept, include_params, extension, parameter_format, states)


def _kept(contents: Mapping[str, Any], parameters: ParameterSource | None) -> dict[str, nn.Variable]:
    """Return what is written with its values: the parameters that were given, or those of the current scope and of modules in
    the networks; and constants of the networks.
    """
    networks = contents.get("networks", ())
    if parameters is not None:
        found = parameters_of("save", parameters, argument="parameters")
    else:
        found = parameters_behind([output for network in networks for output in _variables_of(network)])
    return {**found, **constants_of(networks, found)}


def _variables_of(network: Any) -> list[nn.Variable]:
    outputs = network.get("outputs", {}) if isinstance(network, Mapping) else {}
    return [output for output in outputs.values() if isinstance(output, nn.Variable)] if isinstance(outputs, Mapping) else []


def save_proto(
    filename: str | os.PathLike[str] | IO[bytes],
    proto: Any,
    parameters: Mapping[str, nn.Variable],
    include_params: bool,
    extension: str = ".nnp",
    parameter_format: str = ".h5",
    states: Sequence[Member] = (),
) -> None:
    """Write a message and parameters to a file; archives have `states` as well.

    Raises:
        ArgumentError: when the format is another one.
    """
    chosen = _extension_of(filename, extension)
    entries = parameter_entries(parameters)
    if chosen == ".nnp":
        data = h5_bytes(entries) if parameter_format == ".h5" else parameter_bytes(entries)
        members = [Member("network.nntxt", print_text(proto)), Member(f"parameter{parameter_format}", data), *states]
        buffer = io.BytesIO()
        write_archive(buffer, members)
        written = buffer.getvalue()
    else:
        written = message_bytes(proto, entries if include_params else {}, chosen)
    with atomic_writer(filename) as file:
        file.write(written)


def _extension_of(filename: str | os.PathLike[str] | IO[bytes], extension: str) -> str:
    suffix = Path(filename).suffix.lower() if isinstance(filename, (str, os.PathLike)) else ""
    chosen = suffix or extension
    if chosen not in (".nnp", ".nntxt", ".prototxt", ".protobuf"):
        raise ArgumentError(f"save: the file must be .nnp, .nntxt, .prototxt or .protobuf, got {chosen!r}")
    return chosen


def message_bytes(proto: Any, entries: Mapping[str, Entry], extension: str) -> bytes:
    """Return a message and parameters as a text or binary file."""
    data = proto.SerializeToString() + parameter_bytes(entries)
    if extension == ".protobuf" and not entries:
        return bytes(data)
    merged = message("NNablaProtoBuf")
    merged.ParseFromString(data)
    return bytes(merged.SerializeToString()) if extension == ".protobuf" else print_text(merged)


def parameter_entries(parameters: Mapping[str, nn.Variable]) -> dict[str, Entry]:
    """Return values and attributes of parameters, as files keep them: in float32.

    Raises:
        ArgumentError: when an array has integers that float32 does not hold.
    """
    return {
        name: Entry(_in_float32(name, variable.d), {"need_grad": bool(variable.need_grad), "index": index})
        for index, (name, variable) in enumerate(parameters.items())
    }


def _in_float32(name: str, values: Any) -> Any:
    rounded = values.astype("float32", copy=False)
    if values.dtype.kind in "iu" and not np.array_equal(rounded.astype("float64"), values.astype("float64")):
        raise ArgumentError(f"save: integers of {name!r} must be those that float32 holds, got {np.abs(values).max()}")
    return rounded


def create_proto(
    contents: Mapping[str, Any],
    include_params: bool = False,
    variable_batch_size: bool = True,
    save_solver_in_proto: bool = False,
    parameters: ParameterSource | None = None,
) -> Any:
    """Return the NNablaProtoBuf for `contents`.

    Raises:
        ArgumentError: when something that `contents` must say is missing or unknown.
    """
    contents = checked(contents)
    kept = _kept(contents, parameters)
    try:
        proto = _proto_of(contents, kept, variable_batch_size, save_solver_in_proto)
    except UnicodeEncodeError as error:
        raise ArgumentError(f"save: names must be text that UTF-8 can hold, got {error.object!r}") from error
    if include_params:
        proto.parameter.extend(message_of(parameter_bytes(parameter_entries(kept))).parameter)
    return proto


def _proto_of(
    contents: Mapping[str, Any], kept: Mapping[str, nn.Variable], variable_batch_size: bool, save_solver_in_proto: bool
) -> Any:
    proto = message("NNablaProtoBuf")
    if "global_config" in contents:
        context = contents["global_config"].get("default_context") or nn.get_current_context()
        _write_context(proto.global_config.default_context, context)
    if "training_config" in contents:
        _write_training(proto.training_config, contents["training_config"])
    networks = _write_networks(proto, contents.get("networks", ()), kept, variable_batch_size)
    for dataset in contents.get("datasets", ()):
        _write_dataset(proto.dataset.add(), dataset)
    _write_users(proto, contents, networks, kept)
    if save_solver_in_proto:
        for target, part in zip(proto.optimizer, contents.get("optimizers", ()), strict=True):
            read_states(target.solver, part["solver"], kept)
    return proto


def _write_networks(
    proto: Any, given: Iterable[Mapping[str, Any]], parameters: Mapping[str, nn.Variable], variable_batch_size: bool
) -> dict[str, Any]:
    """Write the networks; return their messages by name."""
    networks: dict[str, Any] = {}
    for network in given:
        made = network_proto(network, parameters, variable_batch_size)
        if made.name in networks:
            raise ArgumentError(f"save: networks must have different names, got {made.name!r} twice")
        networks[made.name] = made
        proto.network.append(made)
    return networks


def _write_users(
    proto: Any, contents: Mapping[str, Any], networks: Mapping[str, Any], parameters: Mapping[str, nn.Variable]
) -> None:
    """Write what uses networks: optimizers, monitors and executors."""
    for kind, write in (("optimizer", _write_optimizer), ("monitor", _write_monitor), ("executor", _write_executor)):
        for part in contents.get(f"{kind}s", ()):
            if part.get("network") not in networks:
                named = part.get("network")
                raise ArgumentError(f"save: {kind}s must name one of the networks {list(networks)}, got {named!r}")
            write(getattr(proto, kind).add(), part, networks[part["network"]], parameters)


def message_of(data: bytes) -> Any:
    """Return the NNablaProtoBuf that trusted bytes say."""
    made = message("NNablaProtoBuf")
    made.ParseFromString(data)
    return made


def _write_context(target: Any, context: nn.Context) -> None:
    target.backends.extend(context.backend)
    target.array_class = context.array_class
    target.device_id = str(context.device_id)


def _write_training(target: Any, config: Mapping[str, Any]) -> None:
    target.max_epoch = config["max_epoch"]
    target.iter_per_epoch = config["iter_per_epoch"]
    target.save_best = config["save_best"]
    if "monitor_interval" in config:
        target.monitor_interval = config["monitor_interval"]
    target.SetInParent()


# -- what belongs to networks ------------------------------------------------------------------------------------------


def _write_dataset(target: Any, dataset: Mapping[str, Any]) -> None:
    target.name = dataset["name"]
    for key in ("uri", "batch_size", "shuffle", "no_image_normalization"):
        if key in dataset:
            setattr(target, key, dataset[key])
    if "cache_dir" in dataset:
        target.cache_dir = dataset["cache_dir"] or ""
    target.variable.extend(dataset["variables"])


def _parameters_of(network: Any) -> list[str]:
    return [variable.name for variable in network.variable if variable.type == "Parameter"]


def _inputs_of(network: Any) -> list[str]:
    computed = {name for function in network.function for name in function.output}
    return [v.name for v in network.variable if v.type == "Buffer" and v.name not in computed]


def _outputs_of(network: Any) -> list[str]:
    read = {name for function in network.function for name in function.input}
    return [name for function in network.function for name in function.output if name not in read]


def _write_data(target: Any, part: Mapping[str, Any], key: str) -> None:
    for variable, column in _pairs(part.get(key, {})):
        target.data_variable.add(variable_name=variable, data_name=column)
    for variable in part.get("generator_variables", ()):
        target.generator_variable.add(variable_name=str(variable), type="Constant", multiplier=0.0)


def _pairs(names: Any) -> list[tuple[str, str]]:
    return [(str(k), str(v)) for k, v in names.items()] if isinstance(names, Mapping) else [(str(n), str(n)) for n in names]


def _write_optimizer(target: Any, part: Mapping[str, Any], network: Any, parameters: Mapping[str, nn.Variable]) -> None:
    target.name, target.network_name = part["name"], part["network"]
    target.dataset_name.extend([part["dataset"]] if isinstance(part["dataset"], str) else part["dataset"])
    write_solver(target.solver, part["solver"])
    for key, default in (("weight_decay", 0.0), ("lr_decay", 1.0), ("lr_decay_interval", 1)):
        setattr(target.solver, key, part.get(key, default))
    target.update_interval = part.get("update_interval", 1)
    _write_data(target, part, "data_variables")
    for name in part.get("loss_variables") or _outputs_of(network):
        target.loss_variable.add(variable_name=str(name))
    trained = set(part["solver"].get_parameters().values())
    for name in _parameters_of(network):
        target.parameter_variable.add(variable_name=name, learning_rate_multiplier=1.0 if parameters[name] in trained else 0.0)


def write_solver(target: Any, solver: Any) -> None:
    """Put the name of a solver and all its hyperparameters into a Solver message.

    Raises:
        ArgumentError: when files have no such solver.
    """
    kind = solvers().get(solver.name)
    if kind is None:
        raise ArgumentError(f"save: solvers must be those of NNabla 1.39, got {solver.name!r}")
    target.type = kind.name
    parameter = getattr(target, str(kind.field))
    parameter.SetInParent()
    for name in kind.settings:
        value = solver.learning_rate() if name in ("lr", "alpha", "eta") else getattr(solver, name)
        setattr(parameter, name, value)


def _write_monitor(target: Any, part: Mapping[str, Any], network: Any, parameters: Mapping[str, nn.Variable]) -> None:
    target.name, target.network_name = part["name"], part["network"]
    target.dataset_name.extend([part["dataset"]] if isinstance(part["dataset"], str) else part["dataset"])
    _write_data(target, part, "data_variables")
    for name in part.get("monitor_variables") or _outputs_of(network):
        target.monitor_variable.add(variable_name=str(name), type="Error")


def _write_executor(target: Any, part: Mapping[str, Any], network: Any, parameters: Mapping[str, nn.Variable]) -> None:
    target.name, target.network_name = part["name"], part["network"]
    for key in ("num_evaluations", "repeat_evaluation_type", "need_back_propagation", "no_image_normalization"):
        if key in part:
            setattr(target, key, part[key])
    _write_data(target, {**part, "data": part.get("data") or _inputs_of(network)}, "data")
    renamed = dict(part.get("remp", {}))
    for name, column in _pairs(part.get("output") or _outputs_of(network)):
        target.output_variable.add(variable_name=name, data_name=renamed.get(name, column))
    for name in _parameters_of(network):
        target.parameter_variable.add(variable_name=name)
