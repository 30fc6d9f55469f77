"""Files of Caffe as messages: networks in text and in bytes, layers of both kinds, weights."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from nn_core.ext import FileFormatError, budget, one_line, open_to_read
from nn_ext_caffe.schema import message

Array = np.ndarray[Any, Any]

#: Names of layers whose older names are no words with underscores.
_KINDS: Final = {
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "LRN": "LRN",
    "MVN": "MVN",
    "RELU": "ReLU",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "TANH": "TanH",
}


@dataclass(slots=True)
class Layer:
    """One layer of a network.

    Attributes:
        name: the layer's.
        kind: such as "Convolution".
        bottoms: names of what it reads.
        tops: names of what it gives.
        message: its settings, a LayerParameter, or an older V1LayerParameter.
        blobs: its weights.
    """

    name: str
    kind: str
    bottoms: list[str]
    tops: list[str]
    message: Any
    blobs: list[Array] = field(default_factory=list)


def read_net(source: str | os.PathLike[str]) -> Any:
    """Return the NetParameter of a file: text if it is called .prototxt, else bytes.

    Raises:
        FileFormatError: when it is no network of Caffe, or is damaged.
    """
    path = Path(source)
    with open_to_read(path) as file:
        data = file.read()
    net = _parsed_text(data, path.name) if path.suffix.lower() in (".prototxt", ".pbtxt", ".txt") else _parsed(data, path.name)
    budget().require("nodes", len(net.layer) + len(net.layers), f"{path.name}: layers of the network")
    return net


def _parsed(data: bytes, file: str) -> Any:
    net = message("NetParameter")
    try:
        net.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise FileFormatError(f"{file}: the file must be a network of Caffe, got damaged bytes") from error
    if not (net.layer or net.layers):
        raise FileFormatError(f"{file}: the file must be a network of Caffe, got no layers")
    return net


def _parsed_text(data: bytes, file: str) -> Any:
    budget().require("text_bytes", len(data), f"{file}: the text")
    run = re.search(rb"[ \t\r\f\v]{%d,}" % (budget().blanks + 1), data)
    if run is not None:
        budget().require("blanks", run.end() - run.start(), f"{file}: blanks in a row")
    net = message("NetParameter")
    try:
        text_format.Merge(data.decode(), net)
    except (text_format.ParseError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise FileFormatError(f"{file}: the text must be a network of Caffe, got: {one_line(error)}") from error
    return net


def layers_of(net: Any, file: str, phase: str = "TEST") -> list[Layer]:
    """Return the layers that a network has in a phase, TEST or TRAIN.

    Raises:
        FileFormatError: when it has layers of the oldest kind, which are in others.
    """
    state = message("NetState", phase={"TRAIN": 0, "TEST": 1}[phase])
    found = []
    for entry in [*net.layers, *net.layer]:
        is_older = entry.DESCRIPTOR.name == "V1LayerParameter"
        if is_older and entry.HasField("layer"):
            raise FileFormatError(f"{file}: layers must be those of Caffe from 2014 on, got a layer inside of another")
        if _is_included(entry, state):
            kind = _modern(entry) if is_older else entry.type
            blobs = [array_of(blob, f"{file}: layer {entry.name!r}") for blob in entry.blobs]
            found.append(Layer(entry.name, kind, list(entry.bottom), list(entry.top), entry, blobs))
    return found


def _modern(layer: Any) -> str:
    """Return the kind of a layer of the older kind as newer ones name it."""
    number = layer.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_number[layer.type].name
    return _KINDS.get(number) or "".join(word.capitalize() for word in number.split("_"))


def _is_included(layer: Any, state: Any) -> bool:
    if layer.include:
        return any(_meets(rule, state) for rule in layer.include)
    return not any(_meets(rule, state) for rule in layer.exclude)


def _meets(rule: Any, state: Any) -> bool:
    if rule.HasField("phase") and rule.phase != state.phase:
        return False
    if rule.HasField("min_level") and state.level < rule.min_level:
        return False
    if rule.HasField("max_level") and state.level > rule.max_level:
        return False
    stages = set(state.stage)
    return stages >= set(rule.stage) and not stages & set(rule.not_stage)


def array_of(blob: Any, where: str) -> Array:
    """Return the numbers of a blob in its shape, in float32.

    Raises:
        FileFormatError: when there are more or fewer than the shape has.
    """
    chunks, dtype = (blob.data, "<f4") if blob.data else (blob.double_data, "<f8")
    data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    shape = shape_of(blob)
    size = np.dtype(dtype).itemsize
    if min(shape, default=0) < 0 or prod(shape) * size != len(data):
        raise FileFormatError(
            f"{where}: a blob must have the numbers of its shape {shape}, got {len(data)} bytes of {dtype[1:]}"
        )
    return np.frombuffer(data, dtype).reshape(shape).astype(np.float32)


def shape_of(blob: Any) -> tuple[int, ...]:
    """Return the shape of a blob, which older ones have as four lengths."""
    if blob.HasField("shape"):
        return tuple(blob.shape.dim)
    return (blob.num, blob.channels, blob.height, blob.width)


def with_weights(layers: Sequence[Layer], weights: Sequence[Layer], file: str) -> None:
    """Give layers the weights of those of the same name.

    Raises:
        FileFormatError: when two layers that have weights have one name.
    """
    by_name: dict[str, list[Array]] = {}
    for layer in weights:
        if layer.blobs and layer.name in by_name:
            raise FileFormatError(f"{file}: names of layers with weights must be unique, got {layer.name!r} twice")
        if layer.blobs:
            by_name[layer.name] = layer.blobs
    for layer in layers:
        layer.blobs = by_name.get(layer.name, layer.blobs)
