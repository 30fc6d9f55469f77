"""Models as networks of nn_core."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError

import nn_core as nn
from nn_core.ext import ArgumentError, FileFormatError, budget, naming_file
from nn_ext_onnx.importing.builder import Builder, Scope, TooLargeError, n_in_file, n_written_out, require_written_out
from nn_ext_onnx.importing.checking import check
from nn_ext_onnx.importing.external import read_external
from nn_ext_onnx.importing.late import read_whole, read_without_numbers
from nn_ext_onnx.importing.operators import load_operators
from nn_ext_onnx.importing.sequences import given_value, plain
from nn_ext_onnx.importing.values import (
    COMPUTED,
    PresentNumbersError,
    UnknownNumbersError,
    UnsupportedError,
    Value,
    dtype_of,
    held,
    is_float,
    is_tensor,
)

_LISTED: Final = 40
_NONE: Final[Mapping[str, nn.Variable]] = {}
#: Inputs of so many numbers may be settings, such as shapes.
_SETTING_SIZE: Final = 64


@dataclass(slots=True)
class Network:
    """A model as a graph of nn_core, at fixed shapes.

    Attributes:
        name: of the model's graph.
        inputs: variables to put data into, by name.
        outputs: results by name.
        parameters: initializers that can be trained, by name.
        dtypes: element types of the model's outputs, by name.
        bound: inputs of the model whose numbers were written into the graph, because settings or shapes follow from them;
            texts, sequences and optional values always are.
        structures: outputs that are not one variable, by name: an array of texts, a list for a sequence, None for an
            optional value that is absent.
        description: the text about the model.
        metadata: the texts by name that the model carries.
    """

    name: str
    inputs: dict[str, nn.Variable] = field(default_factory=dict)
    outputs: dict[str, nn.Variable] = field(default_factory=dict)
    parameters: dict[str, nn.Variable] = field(default_factory=dict)
    dtypes: dict[str, np.dtype[Any]] = field(default_factory=dict)
    bound: dict[str, Any] = field(default_factory=dict)
    structures: dict[str, Any] = field(default_factory=dict)
    description: str = ""
    metadata: dict[str, str] = field(default_factory=dict)


def load(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    *,
    dimensions: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Any] | None = None,
    batch_size: int | None = None,
) -> Network:
    """Build the graph of a model.

    Args:
        source: a path, the bytes of a file, or a model.
        dimensions: lengths of the axes that the model names, such as ``{"batch": 8}``.
        shapes: shapes of inputs, where the model leaves them open.
        values: numbers of inputs from which settings follow, such as the shape that a Reshape gets, or shapes, such as the
            number of boxes that a NonMaxSuppression keeps. They become part of the graph, which is one for these numbers.
        batch_size: length of the first axis of inputs, where the model leaves it open and nothing else gives it.

    Returns:
        The network. It runs on any backend and can be trained; integers are computed on the host.

    Raises:
        FileFormatError: when the file is damaged.
        ArgumentError: lists every operator that cannot be built with its place; or names an axis without a length.

    Example:
        >>> from onnx import parser
        >>> text = '<ir_version: 8, opset_import: ["": 17]> g (float[N, 2] x) => (float[N, 2] y) { y = Tanh(x) }'
        >>> network = load(parser.parse_model(text), dimensions={"N": 3})
        >>> network.outputs["y"].shape, network.outputs["y"].parent.name
        ((3, 2), 'Tanh')
    """
    with naming_file(source):
        model, base = read_model(source, is_lazy=True)
        try:
            return Loader(model, base, batch_size).load(dimensions or {}, shapes or {}, values or {})
        except (ArgumentError, FileFormatError) as error:
            if type(error) not in (ArgumentError, FileFormatError) or not isinstance(source, (str, os.PathLike)):
                raise
            raise type(error)(f"{os.fspath(source)}: {error}") from error.__cause__


def read_model(source: Any, is_lazy: bool = False) -> tuple[onnx.ModelProto, Path | None]:
    """Return a model and the folder of its external data.

    Args:
        source: a path, the bytes of a file, or a model.
        is_lazy: whether large weights stay in the file until they are needed; it must not change before.

    Raises:
        FileFormatError: when the bytes are no model.
    """
    if isinstance(source, onnx.ModelProto):
        return source, None
    base = None
    name = "model"
    if not isinstance(source, bytes):
        path = Path(source)
        name, base = path.name, path.parent
        source = read_without_numbers(path) if is_lazy else read_whole(path)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(source)
    except DecodeError as error:
        raise FileFormatError(f"{name}: the file must be a model of ONNX, got damaged bytes") from error
    if not model.HasField("graph"):
        raise FileFormatError(f"{name}: the file must be a model of ONNX, got no graph")
    return model, base


class Loader:
    """Builds graphs of one model, for different shapes."""

    def __init__(self, model: onnx.ModelProto, base: Path | None = None, batch_size: int | None = None) -> None:
        load_operators()
        self.model = model
        self.graph = model.graph
        self.opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in model.opset_import}
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.base, self.batch_size = base, batch_size
        self.variables = _NONE
        read_external(model, base)
        self._check()

    def _check(self) -> None:
        newest = onnx.defs.onnx_opset_version()
        if self.opsets.get("", 1) > newest:
            raise ArgumentError(f"load: the operator set must be at most {newest}, got {self.opsets['']}")
        check(self.model)
        n_nodes = n_written_out(self.graph.node, self.functions)
        self.n_file = n_in_file(self.graph.node) + sum(n_in_file(function.node) for function in self.functions.values())
        budget().require("nodes", n_nodes, "load_onnx: nodes of the model, with its functions written out,")
        require_written_out(n_nodes, self.n_file)

    def load(
        self,
        dimensions: Mapping[str, int],
        shapes: Mapping[str, Sequence[int]],
        values: Mapping[str, Any],
        variables: Mapping[str, nn.Variable] = _NONE,
    ) -> Network:
        """Build the graph; inputs whose numbers it needs are taken from `values`.

        Args:
            dimensions: as `load`.
            shapes: as `load`.
            values: as `load`.
            variables: inputs, and parameters of an earlier graph, that this graph is to read, by name.
        """
        self.variables = variables
        needed: set[str] = set()
        is_present = False
        while True:
            try:
                with nn.auto_forward(is_present):
                    return self._build(dimensions, shapes, values, needed, is_present)
            except PresentNumbersError:
                is_present = True
            except UnknownNumbersError as error:
                more = error.value.sources - needed
                if not more or not more <= set(values):
                    wanted = sorted(error.value.sources)
                    raise ArgumentError(
                        f"load: settings of operators must be known numbers, got {error.value.name!r}, which depends on the "
                        f"inputs {wanted}\n  hint: load(..., values={{{', '.join(f'{name!r}: ...' for name in wanted)}}})"
                    ) from None
                if is_present or all(_size(values[name]) <= _SETTING_SIZE for name in more):
                    needed |= more
                is_present = is_present or not more <= needed
            except UnsupportedError as error:
                raise ArgumentError(f"load: the model must be one that can be built, got {error}") from error

    def _build(
        self,
        dimensions: Mapping[str, int],
        shapes: Mapping[str, Sequence[int]],
        values: Mapping[str, Any],
        needed: set[str],
        is_present: bool,
    ) -> Network:
        builder = Builder(self.opsets, self.functions, self.base, values, is_present, self.n_file)
        metadata = {entry.key: entry.value for entry in self.model.metadata_props}
        scope, network = Scope(), Network(self.graph.name, description=self.model.doc_string, metadata=metadata)
        builder.initializers(self.graph, scope)
        _keep(scope, self.variables)
        builder.uses = _uses(self.graph)
        constants = set(scope)
        for entry in self.graph.input:
            if entry.name not in constants:
                value = self._input(entry, dimensions, shapes, values, needed, network)
                if is_present and not value.is_known and entry.name in values:
                    value.variable.d = values[entry.name]
                    value = builder.computed(entry.name, value.dtype, value.variable, value.sources)
                scope[entry.name] = value
        _run(builder, self.graph.node, scope)
        for name in builder.used & network.inputs.keys():
            del network.inputs[name]
            network.bound[name] = np.array(values[name])
        for entry in self.graph.output:
            _take(network, entry.name, scope[entry.name])
        network.parameters = {
            name: value.variable for name, value in scope.items() if value.is_parameter and value.has_variable
        }
        return network

    def _input(
        self,
        entry: onnx.ValueInfoProto,
        dimensions: Mapping[str, int],
        shapes: Mapping[str, Sequence[int]],
        values: Mapping[str, Any],
        needed: set[str],
        network: Network,
    ) -> Value:
        dtype, is_variable = _type_of(entry.type)
        if dtype.name not in COMPUTED and dtype.kind != "O":
            raise UnsupportedError(f"input {entry.name!r} has numbers of type {dtype}")
        sources = frozenset({entry.name})
        if entry.name in needed:
            value = given_value(entry.name, values[entry.name], dtype)
            network.bound[entry.name] = values[entry.name]
            return value
        if not is_variable:
            raise UnknownNumbersError(Value(entry.name, dtype, sources=sources))
        shape = self._shape(entry, dimensions, shapes, values)
        if entry.name in self.variables:
            variable = self.variables[entry.name]
            network.inputs[entry.name] = variable
            return Value(entry.name, dtype, variable=variable, sources=sources)
        if is_float(dtype) or dtype.kind == "b":
            variable = nn.Variable(shape)
        else:
            variable = nn.Variable.from_numpy_array(np.broadcast_to(held(np.zeros((), dtype)), shape))
        variable.name = entry.name
        network.inputs[entry.name] = variable
        return Value(entry.name, dtype, variable=variable, sources=sources)

    def _shape(
        self,
        entry: onnx.ValueInfoProto,
        dimensions: Mapping[str, int],
        shapes: Mapping[str, Sequence[int]],
        values: Mapping[str, Any],
    ) -> tuple[int, ...]:
        if entry.name in shapes:
            return tuple(shapes[entry.name])
        if entry.name in values:
            return np.asarray(values[entry.name]).shape
        if not entry.type.tensor_type.HasField("shape"):
            raise ArgumentError(f"load: shapes must have input {entry.name!r}, whose shape the model leaves open")
        axes = entry.type.tensor_type.shape.dim
        lengths = [self._length(entry.name, place, axis, dimensions) for place, axis in enumerate(axes)]
        if np.prod([float(length) for length in lengths]) > 2**40:
            raise ArgumentError(f"load: inputs must fit into memory, got shape {tuple(lengths)} of {entry.name!r}")
        return tuple(lengths)

    def _length(self, name: str, place: int, axis: Any, dimensions: Mapping[str, int]) -> int:
        """Return the length of an axis of an input."""
        if axis.HasField("dim_value"):
            return int(axis.dim_value)
        if axis.dim_param in dimensions:
            return int(dimensions[axis.dim_param])
        if place == 0 and self.batch_size is not None:
            return self.batch_size
        named = f"axis {axis.dim_param!r}" if axis.dim_param else "an axis without a name"
        raise ArgumentError(
            f"load: dimensions or shapes must give the length of {named} of input {name!r}\n"
            f"  hint: load(..., dimensions={{{axis.dim_param!r}: 1}}) or shapes={{{name!r}: (...)}}"
        )


def _keep(scope: Scope, variables: Mapping[str, nn.Variable]) -> None:
    """Let variables of an earlier graph stand for the parameters of this one."""
    for name in scope.keys() & variables.keys():
        scope[name].kept = variables[name]


def _take(network: Network, name: str, value: Value) -> None:
    """Make a value an output of the network."""
    network.dtypes[name] = value.dtype
    if is_tensor(value) and value.dtype.kind != "O":
        network.outputs[name] = value.variable
    else:
        network.structures[name] = plain(value)


def _type_of(entry: onnx.TypeProto) -> tuple[np.dtype[Any], bool]:
    """Return the element type of an input, and whether a variable holds it: it is a tensor of numbers.

    Raises:
        UnsupportedError: when it is neither a tensor, nor a sequence or an optional value of tensors.
    """
    kind = entry.WhichOneof("value")
    if kind == "tensor_type":
        dtype = dtype_of(entry.tensor_type.elem_type)
        return dtype, dtype.name in COMPUTED
    if kind not in ("sequence_type", "optional_type"):
        raise UnsupportedError(f"an input of the type {kind or 'of nothing'}")
    return _type_of(getattr(entry, kind).elem_type)[0], False


def _size(data: Any) -> int:
    """Return the number of elements of an input, which may be a list of arrays or None."""
    return sum(map(_size, data)) if isinstance(data, (list, tuple)) else 0 if data is None else int(np.size(data))


def _run(builder: Builder, nodes: Iterable[onnx.NodeProto], scope: Scope) -> None:
    """Build the functions of a graph, or refuse the model with all that cannot be built."""
    try:
        builder.run(nodes, scope)
    except TooLargeError as error:
        budget().require("nodes", error.args[0], "load_onnx: nodes of the model, with loops and functions written out,")
        require_written_out(error.args[0], builder.n_file)
    if builder.problems:
        _refuse(list(builder.problems))


def _refuse(problems: Sequence[str]) -> None:
    shown = list(problems[:_LISTED])
    if len(problems) > _LISTED:
        shown.append(f"and {len(problems) - _LISTED} more")
    raise ArgumentError("load: operators must be those that nn_core can build, got\n  " + "\n  ".join(shown))


def _uses(graph: onnx.GraphProto) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in graph.node:
        for name in node.input:
            counts[name] = counts.get(name, 0) + 1
    return counts
