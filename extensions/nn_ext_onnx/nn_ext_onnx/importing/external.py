"""Tensors that are kept in files beside the model."""

from pathlib import Path
from typing import Any

import onnx

from nn_core.ext import FileFormatError


def read_external(model: onnx.ModelProto, base: Path | None) -> None:
    """Read tensors from the files beside the model into it.

    Raises:
        FileFormatError: when a file is missing, too short, or outside of the folder of the model.
    """
    for tensor in _tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            _read(tensor, base)


def _tensors(model: onnx.ModelProto) -> Any:
    yield from model.graph.initializer
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t


def _read(tensor: onnx.TensorProto, base: Path | None) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if base is None:
        raise FileFormatError(f"load: tensor {tensor.name!r} is in the file {location!r}: load the model by its path")
    path = base / location
    if not location or not path.resolve().is_relative_to(base.resolve()) or path.is_symlink():
        raise FileFormatError(f"load: external data must be in the folder of the model, got {location!r}")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        with path.open("rb") as file:
            size = path.stat().st_size
            if offset < 0 or offset > size or length > size - offset:
                raise FileFormatError(f"load: tensor {tensor.name!r} must be inside of {location!r}, a file of {size} bytes")
            file.seek(offset)
            tensor.raw_data = file.read(size - offset if length < 0 else length)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"load: external data of tensor {tensor.name!r} must be readable, got: {error}") from error
    tensor.ClearField("data_location")
    del tensor.external_data[:]
