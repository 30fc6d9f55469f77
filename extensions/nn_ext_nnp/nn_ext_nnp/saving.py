"""Graphs of nn_core as networks of files."""

import io
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import nn_core as nn
from nn_core.ext import ArgumentError, Entry, NNCoreError, ParameterSource, atomic_writer, parameters_of
from nn_core.function import Function
from nn_core.graph_rewriting import functions_of, parameters_behind
from nn_core.logger import logger
from nn_ext_nnp.application import OTHER_LAYOUT
from nn_ext_nnp.archive import Member, write_archive
from nn_ext_nnp.codec import print_text
from nn_ext_nnp.network import build, plan_network
from nn_ext_nnp.parameters import h5_bytes
from nn_ext_nnp.plugin import KNOWN_OPERATORS
from nn_ext_nnp.schema import functions, message, solvers
from nn_ext_nnp.settings import write_settings
from nn_ext_nnp.states import read_states, state_members
from nn_ext_nnp.wire import parameter_bytes

#: Functions whose setting `shape` has the number of samples in front.
_SHAPED: Final = ("Reshape", "Broadcast", "Constant", "Rand", "Randint", "Randn", "RandBinomial", "RandBeta", "RandGamma")
#: Functions that broadcast here, while those of files take operands of one shape.
_OF_ONE_SHAPE: Final = ("BinaryCrossEntropy", "BinaryError", "SigmoidCrossEntropy")


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
    kept = _kept(contents, parameters)
    _extension_of(filename, extension)
    proto = create_proto(contents, False, variable_batch_size, parameters=kept)
    optimizers = contents.get("optimizers", ()) if include_solver_state else ()
    states = state_members(optimizers, kept, solver_state_format)
    save_proto(filename, proto, kept, include_params, extension, parameter_format, states)


def _kept(contents: Mapping[str, Any], parameters: ParameterSource | None) -> dict[str, nn.Variable]:
    """Return the parameters to write: those that were given, or those of the current scope and of modules in the networks."""
    if parameters is not None:
        return parameters_of("save", parameters, argument="parameters")
    outputs = [output for network in contents.get("networks", ()) for output in _variables_of(network)]
    return parameters_behind(outputs)


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
    """Values and attributes of parameters, as files keep them."""
    return {
        name: Entry(variable.d.astype("float32", copy=False), {"need_grad": bool(variable.need_grad), "index": index})
        for index, (name, variable) in enumerate(parameters.items())
    }


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
    _require_known(contents)
    kept = _kept(contents, parameters)
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
    if include_params:
        proto.parameter.extend(message_of(parameter_bytes(parameter_entries(kept))).parameter)
    return proto


def _require_known(contents: Mapping[str, Any]) -> None:
    known = ("global_config", "training_config", "networks", "datasets", "optimizers", "monitors", "executors")
    unknown = set(contents) - set(known)
    if unknown:
        raise ArgumentError(f"save: contents must have keys of {', '.join(known)}, got {sorted(unknown)}")


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
                given = part.get("network")
                raise ArgumentError(f"save: {kind}s must name one of the networks {list(networks)}, got {given!r}")
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


# -- networks ----------------------------------------------------------------------------------------------------------


def network_proto(network: Mapping[str, Any], parameters: Mapping[str, nn.Variable], variable_batch_size: bool) -> Any:
    """Return the Network message for ``{"name", "batch_size", "outputs", "names"}``.

    Raises:
        ArgumentError: when names are used twice, a function cannot be in files, or the graph belongs to one number of
            samples and `variable_batch_size` is true.
    """
    for key in ("name", "batch_size", "outputs", "names"):
        if key not in network:
            raise ArgumentError(f"save: each network must have name, batch_size, outputs and names, got none called {key!r}")
    writer = _NetworkWriter(network["name"], {**network["names"], **network["outputs"]}, parameters)
    outputs = network["outputs"].values()
    order = functions_of([output for output in outputs if output.parent is not None])
    _require_representable(network["name"], order)
    for function in order:
        writer.add(function)
    for output in outputs:
        writer.name_of(output, "x")
    made = writer.result(network["batch_size"])
    return _with_variable_batch(made, network["batch_size"]) if variable_batch_size else made


def _require_representable(network: str, order: Sequence[Function]) -> None:
    in_python = sorted({f.name for f in order if f.node.python is not None})  # their names say nothing about what they compute
    if in_python:
        raise ArgumentError(
            f"save: functions of network {network!r} must not be written in Python, got {', '.join(in_python)}"
        )
    wrong = sorted({f.name for f in order if f.name not in functions()})
    if wrong:
        raise ArgumentError(f"save: functions of network {network!r} must be those of NNabla 1.39, got {', '.join(wrong)}")
    for function in order:
        unread = KNOWN_OPERATORS.refusal(function.node.spec, function.args, function.node.inputs)
        if unread is not None:
            raise ArgumentError(f"save: functions of network {network!r} must have a form in files, got: {unread.reason}")
        if function.name in OTHER_LAYOUT:
            raise ArgumentError(
                f"save: functions of network {network!r} must have the layout of NNabla's, got {function.name}, whose "
                "channels are not last here"
            )


class _NetworkWriter:
    def __init__(self, name: str, names: Mapping[str, nn.Variable], parameters: Mapping[str, nn.Variable]) -> None:
        self.name = name
        self.prefix = "" if name == "model" else f"@{name}/"
        self.parameters = {variable: key for key, variable in parameters.items()}
        self.given: dict[nn.Variable, str] = {}
        for key, variable in names.items():
            if not isinstance(variable, nn.Variable):
                raise ArgumentError(f"save: names and outputs must be Variables, got {type(variable).__name__} for {key!r}")
            if self.given.get(variable, key) == key:
                self.given[variable] = key
        self.taken: set[str] = {*names, *parameters}
        self.counts: dict[str, int] = {}
        self.known: dict[nn.Variable, str] = {}
        self.functions: list[Any] = []

    def add(self, function: Function) -> None:
        inputs = self._operands(function)
        made = message("Function", type=function.name, name=self._fresh(function.name))
        made.input.extend(inputs)
        made.output.extend(self.name_of(variable, f"{function.name}_out") for variable in function.outputs)
        _, settings, _ = KNOWN_OPERATORS.narrowed(function.node.spec, function.args, ())
        if function.name == "Reshape":
            settings["shape"] = function.outputs[0].shape  # without -1
        if function.name == "ImageAugmentation" and settings["shape"] is None:
            settings["shape"] = function.outputs[0].shape[-3:]  # of an image, whatever the number of samples
        write_settings(made, settings)
        self.functions.append(made)

    def _operands(self, function: Function) -> list[str]:
        """Return the names of the inputs; operands with fewer axes are reshaped, since NNabla does not align them."""
        names = [self.name_of(variable, f"{function.name}_in") for variable in function.inputs]
        if function.node.spec.shape != "broadcast" and function.name != "BatchMatmul":
            return names
        shapes = [variable.shape for variable in function.inputs]
        if function.name in _OF_ONE_SHAPE and len(set(shapes)) > 1:
            raise ArgumentError(
                f"save: operands of {function.name} must have one shape in files, got {shapes}\n"
                "  hint: F.broadcast or F.broadcast_to gives them one"
            )
        n_axes = max(map(len, shapes))
        return [
            name if len(shape) == n_axes else self._reshaped(name, (1,) * (n_axes - len(shape)) + shape)
            for name, shape in zip(names, shapes, strict=True)
        ]

    def _reshaped(self, name: str, shape: tuple[int, ...]) -> str:
        """Return the name of a new variable, which is the one called `name` in another shape."""
        variable = nn.Variable(shape)
        made = message("Function", type="Reshape", name=self._fresh("Reshape"))
        self.known[variable] = self._fresh("Reshape_out")
        made.input.append(name)
        made.output.append(self.known[variable])
        write_settings(made, {"shape": shape, "inplace": True})
        self.functions.append(made)
        return self.known[variable]

    def name_of(self, variable: nn.Variable, stem: str) -> str:
        name = self.known.get(variable)
        if name is None:
            name = self.parameters.get(variable) or self.given.get(variable)
            if name is None:
                name = self._fresh(stem)
                if variable.parent is None:
                    logger.warning(
                        f"save: inputs of network {self.name!r} must have names, got none for one of shape {variable.shape}; "
                        f"it becomes the input {name!r}, and its values are not saved\n"
                        "  hint: add it to names, or make constants parameters, as get_parameter_or_create does"
                    )
            self.known[variable] = name
        return name

    def result(self, batch_size: int) -> Any:
        made = message("Network", name=self.name, batch_size=batch_size)
        buffers = [v for v in self.known if v not in self.parameters]
        parameters = [v for v in self.known if v in self.parameters]
        for variable in (*buffers, *parameters):
            proto = made.variable.add(name=self.known[variable])
            proto.type = "Parameter" if variable in self.parameters else "Buffer"
            proto.shape.dim.extend(variable.shape)
            proto.shape.SetInParent()
        for function in self.functions:
            made.function.append(function)
        return made

    def _fresh(self, stem: str) -> str:
        while True:
            count = self.counts.get(stem, 0)
            self.counts[stem] = count + 1
            name = f"{self.prefix}{stem}" + (f"_{count}" if count else "")
            if name not in self.taken:
                return name


def _with_variable_batch(network: Any, batch_size: int) -> Any:
    """Return a network whose shapes have -1 for the number of samples, tried with two other numbers.

    Raises:
        ArgumentError: when it does not work with them, or works differently.
    """
    made = message("Network")
    made.CopyFrom(network)
    buffers = {variable.name: variable for variable in made.variable if variable.type == "Buffer"}
    batch = _batch_of(made, buffers, batch_size)
    if batch is None:
        return network
    lengths = [variable.shape.dim for variable in buffers.values()]
    lengths += [_shape_setting(function) for function in made.function if _follows_batch(function, buffers)]
    for shape in lengths:
        if shape and shape[0] == batch:
            shape[0] = -1
    for samples in (batch, batch + 1, 2 * batch + 3):
        _try(made, samples, batch)
    return made


def _follows_batch(function: Any, buffers: Collection[str]) -> bool:
    """Return whether a function has a shape among its settings that is that of its samples."""
    return function.type in _SHAPED and (not function.input or any(name in buffers for name in function.input))


def _shape_setting(function: Any) -> Any:
    return getattr(function, str(functions()[function.type].field)).shape.dim


def _batch_of(network: Any, buffers: Mapping[str, Any], batch_size: int) -> int | None:
    """Return the number of samples that the inputs have: `batch_size` if any has it, else what all have in common."""
    computed = {name for function in network.function for name in function.output}
    lengths = [v.shape.dim[0] for v in buffers.values() if v.name not in computed and v.shape.dim]
    if batch_size in lengths or not lengths:
        return batch_size
    return lengths[0] if len(set(lengths)) == 1 else None


def _try(network: Any, samples: int, batch: int) -> None:
    expected = {v.name: tuple(samples if dim < 0 else dim for dim in v.shape.dim) for v in network.variable}
    hint = "variable_batch_size=False saves it for this number of samples only"
    try:
        with nn.parameter_scope("", {}), nn.auto_forward(False):
            built = build(plan_network(network, "save"), samples)
    except NNCoreError as error:
        raise ArgumentError(
            f"save: network {network.name!r} must work for any number of samples, got for {samples} in place of {batch}: "
            f"{error}\n  hint: {hint}"
        ) from error
    for name, variable in built.variables.items():
        if variable.shape != expected[name]:
            raise ArgumentError(
                f"save: variable {name!r} of network {network.name!r} must have the samples as its first axis only, got the "
                f"shape {variable.shape} for {samples} samples in place of {expected[name]}\n  hint: {hint}"
            )


# -- what belongs to networks ------------------------------------------------------------------------------------------


def _write_dataset(target: Any, dataset: Mapping[str, Any]) -> None:
    for key in ("name", "uri", "batch_size", "shuffle", "no_image_normalization"):
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
