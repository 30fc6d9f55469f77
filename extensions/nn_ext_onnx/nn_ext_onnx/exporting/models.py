"""Models: a draft with its header, dynamic axes, checks and files."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import onnx
from onnx import helper

import nn_core as nn
from nn_core.ext import ArgumentError, ParameterSource, parameters_of
from nn_core.graph_rewriting import network_ports, parameters_behind
from nn_ext_onnx.exporting.dynamic import Axes, Network, batch_axes, checked_axes, with_dynamic_axes
from nn_ext_onnx.exporting.graphs import Draft, draft
from nn_ext_onnx.exporting.writing import Constants, add_constants, check_model, write_model

#: Operator sets that are written, and the version of the file format that came with each.
IR_VERSIONS: Final = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}
DEFAULT_OPSET: Final = 17
#: Names of axes by their numbers, or numbers alone, for inputs and outputs by name.
DynamicAxes: TypeAlias = Mapping[str, Mapping[int, str] | Sequence[int]]
_BATCH_HINT: Final = "dynamic_batch=False exports it for the sizes that it has"
_AXES_HINT: Final = "lengths that are read, such as x.shape[2], follow; int(n), NumPy and range make them numbers"


class _Exported(NamedTuple):
    """A model without its constants, these, and the graphs that it has to agree with.

    Attributes:
        networks: the graph that was given, and copies of it with other lengths.
    """

    model: onnx.ModelProto
    constants: Constants
    networks: list[Network]


def export_model(
    outputs: Any,
    inputs: Mapping[str, nn.Variable] | Sequence[nn.Variable] | None = None,
    *,
    opset: int = DEFAULT_OPSET,
    dynamic_batch: bool | str = False,
    dynamic_axes: DynamicAxes | None = None,
    name: str | None = None,
    parameters: ParameterSource | None = None,
    description: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> onnx.ModelProto:
    """Return the graph of `outputs` as a model of ONNX.

    Args:
        outputs: a Variable, a sequence of them, or a mapping from names; or a network that `nn_core.utils` has loaded.
        inputs: the leaves that the model gets, by name or in order. By default these are all leaves that are neither
            parameters nor trained; all others are written as constants.
        opset: version of the operator set, 13 to 24.
        dynamic_batch: whether the first axis of the inputs may have any length, or the name of that axis. The outputs must
            have it as their first axis only.
        dynamic_axes: the axes that may have any length, by name of the input: their names by number, as in
            ``{"x": {0: "batch", 2: "height", 3: "width"}}``, or a list of numbers. Axes of one name have one length. Axes of
            outputs that follow them need not be given; they may get names here.
        name: of the graph. None: that of the network that was given, or else "network".
        parameters: names of constants: Variables by name, a module, or the name of a scope. Default: the parameters of the
            current scope and of all modules in the graph.
        description: a text about the model for those who look at the file. None: that of the network that was given, if it
            has one.
        metadata: texts by name, which the model carries. None: as for `description`.

    Returns:
        The model, checked by ``onnx.checker``. Computations are those of inference where a function has both.

    Raises:
        ArgumentError: lists every function that cannot be exported with its place; or says why an axis cannot have any
            length, and names the function that has a number in place of it.

    Example:
        >>> import nn_core.functions as F
        >>> x = nn.Variable((2, 3, 8, 8))
        >>> y = F.reshape(F.relu(x), (x.shape[0], 3, x.shape[2] * x.shape[3]))
        >>> model = export_model({"y": y}, {"x": x}, dynamic_axes={"x": {0: "N", 2: "H", 3: "W"}})
        >>> [axis.dim_param or axis.dim_value for axis in model.graph.output[0].type.tensor_type.shape.dim]
        ['N', 3, 'y_2']
    """
    title = _given_or_own(name, outputs, "name") or "network"
    made = _exported(outputs, inputs, opset, dynamic_batch, dynamic_axes, title, parameters)
    return add_constants(_described(made.model, outputs, description, metadata), made.constants)


def _given_or_own(given: Any, outputs: Any, attribute: str) -> Any:
    """Return what was given, or else that attribute of a network; variables have attributes of such names, too."""
    return getattr(outputs, attribute, None) if given is None and hasattr(outputs, "outputs") else given


def _described(
    model: onnx.ModelProto, outputs: Any, description: str | None, metadata: Mapping[str, str] | None
) -> onnx.ModelProto:
    """Put texts about a model into it; those that are not given are the network's."""
    description = _given_or_own(description, outputs, "description") or ""
    texts = dict(_given_or_own(metadata, outputs, "metadata") or {})
    if not isinstance(description, str) or not all(isinstance(text, str) for pair in texts.items() for text in pair):
        raise ArgumentError(f"export: description and metadata must be texts, got {description!r} and {texts!r}")
    _require_encodable((description, *texts, *texts.values()))
    model.doc_string = description
    helper.set_model_props(model, texts)
    return model


def _exported(
    outputs: Any,
    inputs: Mapping[str, nn.Variable] | Sequence[nn.Variable] | None,
    opset: int,
    dynamic_batch: bool | str,
    dynamic_axes: DynamicAxes | None,
    name: str,
    parameters: ParameterSource | None,
) -> _Exported:
    """Convert a graph and check the model."""
    if opset not in IR_VERSIONS:
        raise ArgumentError(f"export: opset must be from {min(IR_VERSIONS)} to {max(IR_VERSIONS)}, got {opset}")
    given = None if parameters is None else parameters_of("export", parameters, argument="parameters")
    wanted, leaves = network_ports(outputs, inputs, parameters=() if given is None else given.values())
    names = parameters_behind(wanted.values()) if given is None else given
    _require_encodable((*wanted, *leaves, *names, name))
    axes: Axes = {}
    copies: list[Network] = []
    if dynamic_batch and dynamic_axes:
        raise ArgumentError("export: dynamic_batch and dynamic_axes must not be given both, got both")
    if dynamic_batch:
        axes = batch_axes(leaves, dynamic_batch if isinstance(dynamic_batch, str) else "batch")
        made, axes, copies = with_dynamic_axes(wanted, leaves, names, opset, axes, _BATCH_HINT)
        _require_first_axes(wanted, axes)
    elif dynamic_axes:
        axes = checked_axes(dynamic_axes, leaves, wanted)
        made, axes, copies = with_dynamic_axes(wanted, leaves, names, opset, axes, _AXES_HINT)
    else:
        made = draft(wanted, leaves, names, opset)
    model = _model(made, wanted, leaves, name, axes)
    constants = made.graph.read_constants()
    try:
        check_model(model, constants)
    except onnx.checker.ValidationError as error:  # by a name: those of functions and values come from here
        raise ArgumentError(f"export: names must be ones that ONNX allows, got: {str(error).splitlines()[0]}") from error
    return _Exported(model, constants, [(wanted, leaves), *copies])


def _require_encodable(names: Iterable[str]) -> None:
    """Refuse names and texts with lone surrogates, which UTF-8 lacks."""
    for name in names:
        if isinstance(name, str) and name.encode(errors="replace").decode() != name:
            raise ArgumentError(f"export: names and texts must be text that UTF-8 can hold, got {name!r}")


def _require_first_axes(outputs: Mapping[str, nn.Variable], axes: Axes) -> None:
    """Refuse outputs in which another axis than the first follows the batch."""
    for name in outputs:
        if set(axes[name]) - {0}:
            raise ArgumentError(
                f"export: output {name!r} must have the batch as its first axis only, got axes {sorted(axes[name])} that "
                f"follow it\n  hint: dynamic_axes takes it with any"
            )


def export(
    path: str | os.PathLike[str],
    outputs: Any,
    inputs: Mapping[str, nn.Variable] | Sequence[nn.Variable] | None = None,
    *,
    opset: int = DEFAULT_OPSET,
    dynamic_batch: bool | str = False,
    dynamic_axes: DynamicAxes | None = None,
    name: str | None = None,
    verify: bool = False,
    external_data: bool | None = None,
    parameters: ParameterSource | None = None,
    description: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write the graph of `outputs` as a file of ONNX; see `export_model`.

    Args:
        path: the file; it appears when it is complete.
        outputs: see `export_model`.
        inputs: see `export_model`.
        opset: see `export_model`.
        dynamic_batch: see `export_model`.
        dynamic_axes: see `export_model`.
        name: see `export_model`.
        verify: compute the model with onnxruntime and compare, before the file appears: with the data that the inputs have,
            and, where axes may have any length, with random numbers of other lengths.
        external_data: whether constants go into a second file `<path>.data`; None: if the model is too large for one.
        parameters: see `export_model`.
        description: see `export_model`.
        metadata: see `export_model`.

    Raises:
        ArgumentError: see `export_model`; or `verify` found a difference.

    Example:
        >>> import tempfile
        >>> import nn_core.functions as F
        >>> x = nn.Variable((2, 3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export(f"{folder}/net.onnx", {"y": F.tanh(x)}, {"x": x}, dynamic_batch=True)
        ...     onnx.load(f"{folder}/net.onnx").graph.node[0].op_type
        'Tanh'
    """
    title = _given_or_own(name, outputs, "name") or "network"
    model, constants, networks = _exported(outputs, inputs, opset, dynamic_batch, dynamic_axes, title, parameters)
    _described(model, outputs, description, metadata)
    if verify:
        from nn_ext_onnx.exporting.verification import verify_networks  # onnxruntime is for those who ask

        verify_networks(model, constants, networks)
    write_model(path, model, constants, external_data)


def _model(
    made: Draft,
    outputs: Mapping[str, nn.Variable],
    inputs: Mapping[str, nn.Variable],
    name: str,
    axes: Axes,
) -> onnx.ModelProto:
    def described(key: str, value: Any, variable: nn.Variable) -> onnx.ValueInfoProto:
        shape: list[int | str] = list(map(int, variable.shape))
        for axis, symbol in axes.get(key, {}).items():
            shape[axis] = symbol
        return helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(value.dtype), shape)

    graph = helper.make_graph(
        made.graph.nodes,
        name,
        [described(key, value, inputs[key]) for key, value in made.inputs.items()],
        [described(key, value, outputs[key]) for key, value in made.outputs.items()],
    )
    opset = made.graph.opset
    imports = [helper.make_opsetid(domain, version) for domain, version in {"": opset, **made.graph.domains}.items()]
    model = helper.make_model(graph, opset_imports=imports, producer_name="nn_core", producer_version=nn.__version__)
    model.ir_version = IR_VERSIONS[opset]
    return model
