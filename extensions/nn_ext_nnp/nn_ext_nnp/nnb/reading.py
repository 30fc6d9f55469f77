"""Read NNB files as messages, so that everything that takes NNP files takes them."""

from math import prod
from typing import Any, Final

import numpy as np

from nn_core.ext import Entry, FileFormatError
from nn_ext_nnp.document import Document
from nn_ext_nnp.nnb.binary import Reader, StoredFunction, StoredVariable
from nn_ext_nnp.nnb.codes import message_values, stated_codes
from nn_ext_nnp.nnb.functions import by_number
from nn_ext_nnp.nnb.numbers import NAMES, NumberType, decoded
from nn_ext_nnp.nnb.writing import TRANSPOSED
from nn_ext_nnp.schema import message
from nn_ext_nnp.settings import write_settings

#: The network and the executor have no names in the file.
_NETWORK: Final = "network"
_EXECUTOR: Final = "runtime"


def read_nnb(data: bytes, name: str) -> Document:
    """Return the network of a file, with its parameters and an executor. Variables are called v0, v1, ... by their
    identifiers.

    Raises:
        FileFormatError: when the file is damaged, or has a function that is not known.
    """
    reader = Reader(data, name)
    variables: dict[int, StoredVariable] = {}
    for index in reader.listed("variables"):
        number, variable = reader.variable(index)
        if number in variables:
            raise reader.error("variables must have different identifiers", f"{number} twice")
        variables[number] = variable
    _check_buffers(reader, variables)
    functions = [_function(reader, index, variables) for index in reader.listed("functions")]
    document = Document(name=name)
    network = document.proto.network.add(name=_NETWORK, batch_size=1)
    for function, kind, settings in functions:
        made = network.function.add(name=f"f{len(network.function)}", type=kind)
        made.input.extend(f"v{n}" for n in function.inputs)
        made.output.extend(f"v{n}" for n in function.outputs)
        write_settings(made, settings)
    turned = {function.inputs[TRANSPOSED[kind]] for function, kind, _ in functions if kind in TRANSPOSED}
    for number, variable in variables.items():
        _add_variable(document, network, number, variable, number in turned)
    _add_executor(document, reader, variables)
    return document


def _check_buffers(reader: Reader, variables: dict[int, StoredVariable]) -> None:
    """Require that what is computed fits into its buffer."""
    buffers = reader.listed("buffers")
    for number, variable in variables.items():
        if variable.data is not None:
            continue
        if variable.buffer >= len(buffers) or variable.type >= len(NAMES):
            raise reader.error(f"variable {number} must have one of {len(buffers)} buffers and a known type", variable)
        unit = NumberType(variable.type).n_bytes if reader.version == 3 else 1
        if prod(variable.shape) * unit > buffers[variable.buffer]:
            raise reader.error(f"variable {number} must fit into its buffer of {buffers[variable.buffer]}", variable.shape)


def _function(reader: Reader, index: int, variables: dict[int, StoredVariable]) -> tuple[StoredFunction, str, dict[str, Any]]:
    function, rest = reader.function(index)
    entry = by_number().get(function.number)
    if entry is None:
        raise reader.error("functions must have identifiers of NNabla 1.39 with its latest settings", function.number)
    _require_known(reader, [*function.inputs, *function.outputs], variables)
    if not function.outputs:
        raise reader.error(f"a function {entry.name} must have an output", "none")
    if entry.name in TRANSPOSED and len(function.inputs) <= TRANSPOSED[entry.name]:
        raise reader.error(f"a function {entry.name} must have weights", f"{len(function.inputs)} inputs")
    values = reader.settings(rest, stated_codes(entry.name))
    settings = message_values(entry.name, values, reader.name)
    if entry.name == "Reshape":  # its own shape may have -1 for the number of samples
        settings["shape"] = list(variables[function.outputs[0]].shape)
    return function, entry.name, settings


def _require_known(reader: Reader, numbers: list[int], variables: dict[int, StoredVariable]) -> None:
    unknown = [number for number in numbers if number not in variables]
    if unknown:
        raise reader.error("variables must be listed", f"identifier {unknown[0]}")


def _add_variable(document: Document, network: Any, number: int, variable: StoredVariable, is_turned: bool) -> None:
    name = f"v{number}"
    kind = "Buffer" if variable.data is None else "Parameter"
    network.variable.add(name=name, type=kind, shape=message("Shape", dim=variable.shape))
    if variable.data is None:
        return
    values = decoded(variable.data, variable.shape, variable.type, variable.fraction, f"{document.name}: variable {number}")
    if is_turned:
        if values.ndim < 2:
            raise FileFormatError(f"{document.name}: weights must have at least two axes, got the shape {values.shape}")
        values = values.reshape(-1, values.shape[0]).T.reshape(values.shape) if values.size else values
    attributes = {"need_grad": False, "index": len(document.parameters)}
    document.parameters[name] = Entry(np.ascontiguousarray(values), attributes)


def _add_executor(document: Document, reader: Reader, variables: dict[int, StoredVariable]) -> None:
    inputs, outputs = reader.listed("inputs"), reader.listed("outputs")
    _require_known(reader, [*inputs, *outputs], variables)
    executor = document.proto.executor.add(name=_EXECUTOR, network_name=_NETWORK)
    for number in inputs:
        executor.data_variable.add(variable_name=f"v{number}", data_name=f"v{number}")
    for number in outputs:
        executor.output_variable.add(variable_name=f"v{number}", data_name=f"v{number}")
