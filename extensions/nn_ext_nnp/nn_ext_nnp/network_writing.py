"""Graphs of nn_core as Network messages."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError, NNCoreError
from nn_core.function import Function
from nn_core.graph_rewriting import functions_of, holds_values, without_python
from nn_core.logger import logger
from nn_ext_nnp.application import OTHER_LAYOUT
from nn_ext_nnp.network import build, plan_network
from nn_ext_nnp.plugin import KNOWN_OPERATORS
from nn_ext_nnp.schema import functions, message
from nn_ext_nnp.settings import place_inputs, read_settings, write_settings

#: Functions whose setting `shape` has the number of samples in front.
_SHAPED: Final = ("Reshape", "Broadcast", "Constant", "Rand", "Randint", "Randn", "RandBinomial", "RandBeta", "RandGamma")
#: Poolings, which have two or three spatial axes in files.
_POOLINGS: Final = ("MaxPooling", "AveragePooling", "SumPooling")
#: Functions that broadcast here, while those of files take operands of one shape.
_OF_ONE_SHAPE: Final = ("BinaryCrossEntropy", "BinaryError", "SigmoidCrossEntropy")


def in_functions(contents: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return contents whose networks have no functions in Python, where these say by which functions they are expressed."""
    networks = contents.get("networks", ())
    found = [_in_functions(network) for network in networks]
    return contents if all(new is old for new, old in zip(found, networks, strict=True)) else {**contents, "networks": found}


def _in_functions(network: Any) -> Any:
    keys = [(part, key) for part in ("outputs", "names") for key in _named(network, part)]
    variables = [network[part][key] for part, key in keys]
    computed = [place for place, variable in enumerate(variables) if variable.parent is not None]
    copies = without_python([variables[place] for place in computed])
    if all(copy is variables[place] for copy, place in zip(copies, computed, strict=True)):
        return network
    made = {part: dict(network[part]) for part in ("outputs", "names")}
    for copy, place in zip(copies, computed, strict=True):
        part, key = keys[place]
        made[part][key] = copy
    return {**network, **made}


def _named(network: Any, key: str) -> dict[str, nn.Variable]:
    """Return variables that a network names by their names; none where it says something else, which is refused later."""
    found = network.get(key) if isinstance(network, Mapping) else None
    return {k: v for k, v in found.items() if isinstance(v, nn.Variable)} if isinstance(found, Mapping) else {}


def constants_of(networks: Iterable[Any], parameters: Mapping[str, nn.Variable]) -> dict[str, nn.Variable]:
    """Return the leaves of networks that are neither inputs nor parameters, and have values, by names that nothing else has.

    They are written as parameters. A network of whose leaves none has a name says nothing about which are inputs: it has none.

    Args:
        networks: mappings, as `network_proto` takes them.
        parameters: all parameters by name.
    """
    found: dict[str, nn.Variable] = {}
    known = set(parameters.values())
    taken = {*parameters}
    for network in networks:
        taken |= set(network.get("names", ())) | set(network.get("outputs", ())) if isinstance(network, Mapping) else set()
    for network in networks:
        for variable in _constant_leaves(network):
            if variable not in known:
                known.add(variable)
                found[_free_name(variable.name or "constant", taken)] = variable
    return found


def _constant_leaves(network: Any) -> Iterator[nn.Variable]:
    named, outputs = (_variables(network, key) for key in ("names", "outputs"))
    if all(variable.parent is not None for variable in named):
        return
    given = {*named, *outputs}
    for function in functions_of([output for output in outputs if output.parent is not None]):
        for variable in function.inputs:
            if variable.parent is None and variable not in given and holds_values(variable):
                yield variable


def _variables(network: Any, key: str) -> list[nn.Variable]:
    return list(_named(network, key).values())


def _free_name(stem: str, taken: set[str]) -> str:
    """Return a name of parts that are not empty, which is neither taken nor the folder of one that is."""
    stem = "/".join(part for part in stem.split("/") if part) or "constant"
    name, count = stem, 0
    while any(name == other or name.startswith(f"{other}/") or other.startswith(f"{name}/") for other in taken):
        count += 1
        name = f"{stem}_{count}"
    taken.add(name)
    return name


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
        _require_lengths(network, function)
        if function.name in _POOLINGS and len(function.args["kernel"]) > 3:
            raise ArgumentError(
                f"save: poolings of network {network!r} must have at most three spatial axes, got {function.name} with "
                f"kernel {tuple(function.args['kernel'])}"
            )
        if function.name in OTHER_LAYOUT:
            raise ArgumentError(
                f"save: functions of network {network!r} must have the layout of NNabla's, got {function.name}, whose "
                "channels are not last here"
            )


def _require_lengths(network: str, function: Function) -> None:
    for variable in function.inputs:
        if variable.parent is None and 0 in variable.shape:
            raise ArgumentError(
                f"save: inputs of network {network!r} must have no axis of length 0, which means the number of samples in "
                f"files, got {variable.shape} in {function.name}"
            )


def _require_same(function: Function, made: Any, network: str) -> None:
    """Refuse what is read back as another call: files do not say which optional inputs, or which lists, are left out."""
    settings = read_settings(made, -1)
    axes = function.args.get("axes")
    if axes is not None and not len(axes) and "axes" not in settings and function.inputs[0].ndim:
        raise ArgumentError(
            f"save: axes of {function.name} of network {network!r} must not be empty: in files that means all axes"
        )
    placed = [] if function.node.spec.variadic else place_inputs(function.name, function.inputs, settings)
    for entry, given, read in zip(function.node.spec.inputs, function.node.inputs, placed, strict=False):
        if (given is None) != (read is None):
            raise ArgumentError(
                f"save: inputs of {function.name} of network {network!r} must be such that files can tell which ones are left "
                f"out, got {'no ' if given is None else ''}{entry.name}"
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
        if function.name == "BatchMatmul" and all(variable.ndim == 2 for variable in function.inputs):
            self._add_product(function)
        elif function.name in _POOLINGS and len(function.args["kernel"]) == 1:
            self._add_pooling(function)
        elif function.name == "GlobalAveragePooling" and function.inputs[0].ndim != 4:
            self._add_means(function)
        else:
            self._add_alike(function)

    def _add_alike(self, function: Function) -> None:
        """Write a function as it is, but for operands that are aligned."""
        inputs = self._operands(function)
        _, settings, _ = KNOWN_OPERATORS.narrowed(function.node.spec, function.args, ())
        if function.name == "Reshape":
            settings["shape"] = function.results[0].shape  # without -1
        if function.name == "ImageAugmentation" and settings["shape"] is None:
            settings["shape"] = function.results[0].shape[-3:]  # of an image, whatever the number of samples
        if function.name == "RandomCrop" and settings["shape"] is None:
            settings["shape"] = function.results[0].shape[settings["base_axis"] :]
        self._add_message(function.name, inputs, function.results, settings)
        _require_same(function, self.functions[-1], self.name)

    def _add_product(self, function: Function) -> None:
        """Write the product of two matrices as Affine: BatchMatmul of files takes three axes at least."""
        names = [self.name_of(variable, "BatchMatmul_in") for variable in function.inputs]
        flags = (function.args["transpose_a"], function.args["transpose_b"])
        operands = [
            self._moved("Transpose", name, variable.shape[::-1], {"axes": (1, 0)}) if is_turned else name
            for name, variable, is_turned in zip(names, function.inputs, flags, strict=True)
        ]
        self._add_message("Affine", operands, function.results, {"base_axis": 1})

    def _add_pooling(self, function: Function) -> None:
        """Write a pooling along one axis as one of images with one row."""
        x, y = function.inputs[0], function.results[0]
        _, settings, _ = KNOWN_OPERATORS.narrowed(function.node.spec, function.args, ())
        place = x.ndim - 1 - bool(settings["channel_last"])
        rows, pooled = ((*shape[:place], 1, *shape[place:]) for shape in (x.shape, y.shape))
        image = self._moved("Reshape", self.name_of(x, f"{function.name}_in"), rows, {"shape": rows, "inplace": True})
        settings |= {name: (1, *settings[name]) for name in ("kernel", "stride")} | {"pad": (0, *settings["pad"])}
        result = self._moved(function.name, image, pooled, settings)
        self.name_of(y, f"{function.name}_out")
        self._add_message("Reshape", [result], [y], {"shape": tuple(y.shape), "inplace": True})

    def _add_means(self, function: Function) -> None:
        """Write means of all spatial axes, which are those of images in files."""
        x, (y,) = function.inputs[0], function.results
        source = self.name_of(x, f"{function.name}_in")
        self.name_of(y, f"{function.name}_out")
        self._add_message("Mean", [source], [y], {"axes": tuple(range(2, x.ndim)), "keep_dims": True})

    def _add_message(self, kind: str, inputs: Iterable[str], outputs: Iterable[nn.Variable], settings: dict[str, Any]) -> None:
        made = message("Function", type=kind, name=self._fresh(kind))
        made.input.extend(inputs)
        made.output.extend(self.name_of(variable, f"{kind}_out") for variable in outputs)
        write_settings(made, settings)
        self.functions.append(made)

    def _operands(self, function: Function) -> list[str]:
        """Return the names of the inputs; NNabla does not align operands with fewer axes, nor broadcast those of losses."""
        names = [self.name_of(variable, f"{function.name}_in") for variable in function.inputs]
        if function.node.spec.shape != "broadcast" and function.name != "BatchMatmul":
            return names
        shapes = [variable.shape for variable in function.inputs]
        n_axes = max(map(len, shapes))
        aligned = [(1,) * (n_axes - len(shape)) + tuple(shape) for shape in shapes]
        names = [
            name if len(shape) == n_axes else self._moved("Reshape", name, wanted, {"shape": wanted, "inplace": True})
            for name, shape, wanted in zip(names, shapes, aligned, strict=True)
        ]
        if function.name not in _OF_ONE_SHAPE:
            return names
        whole = np.broadcast_shapes(*aligned)
        return [
            name if shape == whole else self._moved("Broadcast", name, whole, {"shape": whole})
            for name, shape in zip(names, aligned, strict=True)
        ]

    def _moved(self, kind: str, name: str, shape: Sequence[int], settings: dict[str, Any]) -> str:
        """Return the name of a new variable, which has the values of the one called `name` in another shape."""
        variable = nn.Variable(tuple(shape))
        self.known[variable] = self._fresh(f"{kind}_out")
        self._add_message(kind, [name], [variable], settings)
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
    following = _following(made)
    buffers = {variable.name: variable for variable in made.variable if variable.name in following}
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


def _following(network: Any) -> set[str]:
    """Return the names of variables that may have the number of samples: inputs, and what is not made of parameters only."""
    computed = {name for function in network.function for name in function.output}
    found = {v.name for v in network.variable if v.type == "Buffer" and v.name not in computed}
    for function in network.function:
        if not function.input or any(name in found for name in function.input):
            found.update(function.output)
    return found


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
