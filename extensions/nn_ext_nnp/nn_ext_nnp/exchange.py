"""Networks of other formats, such as ONNX, by the packages that read and write these."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import ArgumentError, NNCoreError, find_extension
from nn_core.logger import logger
from nn_ext_nnp.document import OWN_EXTENSIONS, Document
from nn_ext_nnp.network import Network, build, plan_network
from nn_ext_nnp.network_writing import constants_of, in_functions
from nn_ext_nnp.nnp_graph import put_parameters
from nn_ext_nnp.places import TextFile
from nn_ext_nnp.saving import create_proto, parameter_entries

#: For how many samples a network is built while it is found out whether it takes any number of them; hardly a file has this
#: one as its own.
_SAMPLES: Final = 5
#: Texts that a network may have besides its graph. Writers of all formats take the first; the others, those that read them.
_TEXTS: Final = ("name", "description", "metadata")


def read_other(
    source: str | bytes, name: str, extension: str, batch_size: int | None = None, dimensions: Mapping[str, int] | None = None
) -> Document:
    """Return what a file of another format says: one network, one executor, and its weights and constants as parameters.

    Args:
        source: path of the file, or its bytes.
        name: of the file, for messages.
        extension: of the format, such as ``.onnx``.
        batch_size: number of samples where the file leaves it open and the network can only be written for one number.
        dimensions: lengths of the axes that the file names.

    Raises:
        ArgumentError: when no package reads the format, or the network has no form in files of NNabla.
    """
    read = _reader(extension, name)
    settings = {"dimensions": dict(dimensions)} if dimensions else {}
    with nn.auto_forward(False):
        loaded = read(source, batch_size=_SAMPLES, **settings)
        if _has_samples(loaded, _SAMPLES):
            try:
                return _document_of(loaded, name, is_open=True)
            except ArgumentError as error:
                samples = batch_size or 1
                loaded = read(source, batch_size=samples, **settings)
                if not _has_samples(loaded, _SAMPLES):
                    logger.warning(f"load: {name} is read for {samples} samples only: {error}")
        return _document_of(loaded, name, is_open=False)


def _reader(extension: str, name: str) -> Any:
    """Return the function that reads networks of a format."""
    try:
        return find_extension("file_formats", extension, "read_network")
    except ArgumentError as error:
        hint = "\n  hint: pip install nn-ext-onnx" if extension == ".onnx" else ""
        known = f"{', '.join(OWN_EXTENSIONS)}, or of a format that an installed package reads"
        raise ArgumentError(f"load: files must be {known}, got {name!r}{hint}") from error


def graph_of(path: Path, batch_size: int, dimensions: Mapping[str, int] | None = None) -> Network:
    """Return the network of a file of another format as a graph, which may have functions that files of NNabla do not have.

    Args:
        path: the file.
        batch_size: number of samples where the file leaves it open.
        dimensions: lengths of the axes that the file names.

    Raises:
        ArgumentError: when no package reads the format.
    """
    read = _reader(path.suffix.lower(), str(path))
    settings = {"dimensions": dict(dimensions)} if dimensions else {}
    with nn.auto_forward(False):
        loaded = read(path, batch_size=batch_size, **settings)
        inputs, outputs = dict(loaded.inputs), _different(loaded)
    parameters = dict(getattr(loaded, "parameters", {}))
    samples = next((int(variable.shape[0]) for variable in inputs.values() if variable.ndim), batch_size)
    name = getattr(loaded, "name", "") or "network"
    return Network(name, samples, None, {**parameters, **inputs, **outputs}, inputs, outputs, parameters)


def _has_samples(network: Any, samples: int) -> bool:
    return any(variable.shape[:1] == (samples,) for variable in network.inputs.values())


def _document_of(loaded: Any, name: str, is_open: bool) -> Document:
    """Return a network as a document; `is_open`: for any number of samples."""
    title = getattr(loaded, "name", "") or "network"
    inputs, outputs = dict(loaded.inputs), _different(loaded)
    samples = next((int(variable.shape[0]) for variable in inputs.values() if variable.ndim), 1)
    network = {"name": title, "batch_size": samples, "names": inputs, "outputs": outputs}
    executor = {"name": "runtime", "network": title, "data": list(inputs), "output": list(outputs)}
    contents = in_functions({"networks": [network], "executors": [executor]})
    constants = constants_of(contents["networks"], {})
    document = Document(name=TextFile(name))
    document.proto = create_proto(contents, variable_batch_size=is_open, parameters=constants)
    document.parameters = parameter_entries(constants)
    if is_open:
        document.proto.network[0].batch_size = 1
    return document


def _different(network: Any) -> dict[str, nn.Variable]:
    """Return the outputs, each of which a function computes that computes no other."""
    found: dict[str, nn.Variable] = {}
    for name, variable in network.outputs.items():
        is_new = variable.parent is not None and variable not in found.values()
        found[name] = variable if is_new else F.identity(variable)
    return found


def write_other(document: Document, path: Path, batch_size: int | None, **settings: Any) -> None:
    """Write the network of the first executor, or the first network, in the format of another package.

    Args:
        document: what has the network and its parameters.
        path: the file.
        batch_size: number of samples; None: any number, where the network leaves it open.
        settings: of the format.

    Raises:
        ArgumentError: when there is no network, or the format cannot express it.
    """
    proto = document.proto
    if not proto.network:
        raise ArgumentError(f"convert: {document.name} must have a network, got none")
    executor = proto.executor[0] if proto.executor else None
    network = next(n for n in proto.network if executor is None or n.name == executor.network_name)
    with nn.parameter_scope("", {}), nn.auto_forward(False):
        put_parameters(document.parameters, document.name)
        plan = plan_network(network, document.name)
        is_open = batch_size is None and any(variable.shape[:1] == [-1] for variable in plan.inputs)
        built = build(plan, _SAMPLES if is_open else batch_size)
        outputs = built.outputs
        if executor is not None and executor.output_variable:
            outputs = {entry.variable_name: built.variables[entry.variable_name] for entry in executor.output_variable}
        _write(path, outputs, built.inputs, is_open, {"name": network.name, "parameters": built.parameters, **settings})


def translate(source: Path, path: Path, batch_size: int | None, dimensions: Mapping[str, int], **settings: Any) -> None:
    """Write a network of one format of other packages in one, without the form of NNabla's files between.

    Raises:
        ArgumentError: when one of the formats cannot express the network.
    """
    read = _reader(source.suffix.lower(), str(source))
    lengths = {"dimensions": dict(dimensions)} if dimensions else {}
    with nn.auto_forward(False):
        loaded = read(source, batch_size=batch_size or _SAMPLES, **lengths)
        is_open = batch_size is None and _has_samples(loaded, _SAMPLES)
        kept = _TEXTS if source.suffix.lower() == path.suffix.lower() else _TEXTS[:1]
        texts = {name: text for name in kept if (text := getattr(loaded, name, None))}
        _write(path, loaded.outputs, loaded.inputs, is_open, {"name": "network", **texts, **settings})


def _write(path: Path, outputs: Any, inputs: Any, is_open: bool, settings: dict[str, Any]) -> None:
    write = find_extension("file_formats", path.suffix.lower(), "write_network")
    try:
        write(path, dict(outputs), dict(inputs), dynamic_batch="batch" if is_open else False, **settings)
    except NNCoreError as error:
        hint = "\n  hint: -b 1 writes it for one sample" if is_open else ""
        raise ArgumentError(f"convert: {path.name}: {error}{hint}") from error
