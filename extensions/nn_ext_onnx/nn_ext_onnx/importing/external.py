"""Tensors that are kept in files beside the model: those of attributes are read into it, initializers when they are needed.

Files are read, never mapped: a process dies of a mapped file that another program makes shorter meanwhile.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from nn_core.ext import FileFormatError, one_line, open_to_read, path_below
from nn_ext_onnx.importing.values import Array, UnsupportedError

#: Types that NumPy has, with the bytes that files have.
_STORED: Final = frozenset(
    getattr(TensorProto, name)
    for name in (
        "FLOAT16", "FLOAT", "DOUBLE", "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"
    )
)  # fmt: skip

_ALIGNMENT_BYTES: Final = 64
#: Key of external data that tells which file, in which state, a place of a large model refers to.
IDENTITY: Final = "nn_core_identity"


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array that stays in its file until it is needed.

    Attributes:
        path: The file.
        offset: Where it starts there.
        dtype: Its dtype in the file.
        shape: Its shape.
        identity: The state of the file in which the place was checked.
    """

    path: Path
    offset: int
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    identity: str

    def read(self) -> Array:
        """Return the numbers, in memory of their own where graphs take them without a copy.

        Raises:
            FileFormatError: when the file is no longer as it was.
        """
        n_bytes = prod(self.shape) * self.dtype.itemsize
        memory = np.empty(n_bytes + _ALIGNMENT_BYTES, np.uint8)
        start = -memory.__array_interface__["data"][0] % _ALIGNMENT_BYTES
        array: Array = memory[start : start + n_bytes].view(self.dtype).reshape(self.shape)
        block = memory[start : start + n_bytes].data
        try:
            with open_to_read(self.path) as file:
                if identity_of(os.fstat(file.fileno())) != self.identity:
                    raise FileFormatError(f"{self.path}: the file must not change while it is read, got another state")
                file.seek(self.offset)
                n_read = 0
                while n_read < len(block) and (n_more := file.readinto(block[n_read:])):  # type: ignore[attr-defined]
                    n_read += n_more
        except OSError as error:
            raise FileFormatError(f"{self.path}: the file must be readable, got: {error}") from error
        if n_read < len(block):
            raise FileFormatError(f"{self.path}: there must be {len(block)} bytes at {self.offset}, got {n_read}")
        return array


def identity_of(status: os.stat_result) -> str:
    """Return what tells a file in one state from another file, and from the same one after a change."""
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def read_external(model: onnx.ModelProto, base: Path | None) -> None:
    """Read the tensors of attributes from the files beside the model into it, and check the places of initializers.

    Raises:
        FileFormatError: when a file is missing, too short, or outside of the folder of the model.
    """
    graphs = list(_graphs(model))
    for tensor in (tensor for graph in graphs for tensor in graph.initializer if is_external(tensor)):
        _place(tensor, base)
    for tensor in (tensor for part in (*graphs, *model.functions) for tensor in _of_attributes(part.node)):
        if is_external(tensor):
            tensor.raw_data = _content(tensor, base)
            tensor.ClearField("data_location")
            del tensor.external_data[:]


def without_external(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model for the checker, which would look for the files of initializers."""
    if not any(is_external(tensor) for graph in _graphs(model) for tensor in graph.initializer):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in (tensor for graph in _graphs(copy) for tensor in graph.initializer if is_external(tensor)):
        tensor.ClearField("data_location")
        del tensor.external_data[:]
        del tensor.dims[:]
        tensor.dims.append(0)
    return copy


def is_external(tensor: TensorProto) -> bool:
    """Return whether the numbers of a tensor are in another file."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def to_array(tensor: TensorProto, base: Path | None) -> Array:
    """Return the numbers of a tensor.

    Raises:
        FileFormatError: when its file is missing, too short, or outside of the folder of the model.
        UnsupportedError: when they do not fit its type and shape.
    """
    found = stored_or_array(tensor, base)
    return found.read() if isinstance(found, StoredArray) else found


def stored_or_array(tensor: TensorProto, base: Path | None) -> Array | StoredArray:
    """Return the numbers of a tensor, or where in a file they are; raises what `to_array` does."""
    try:
        if not is_external(tensor):
            return np.asarray(numpy_helper.to_array(tensor))
        if tensor.data_type not in _STORED:
            copy = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
            copy.raw_data = _content(tensor, base)
            return np.asarray(numpy_helper.to_array(copy))
        return _stored(tensor, base)
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise UnsupportedError(f"tensor {tensor.name!r}: {error}") from error


def _graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the graph of the model, and those of bodies."""
    waiting = [model.graph, *_bodies(node for function in model.functions for node in function.node)]
    while waiting:
        graph = waiting.pop()
        yield graph
        waiting += _bodies(graph.node)


def _bodies(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    for attribute in (attribute for node in nodes for attribute in node.attribute):
        yield from (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs)


def _of_attributes(nodes: Iterable[onnx.NodeProto]) -> Iterator[TensorProto]:
    for attribute in (attribute for node in nodes for attribute in node.attribute):
        yield from (*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors)


def _stored(tensor: TensorProto, base: Path | None) -> Array | StoredArray:
    path, offset, length = _place(tensor, base)
    dtype, shape = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)), tuple(tensor.dims)
    if length != prod(shape) * dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError(f"{length} bytes for the shape {shape} of {dtype}")
    if not length:
        return np.zeros(shape, dtype)
    found = {entry.key: entry.value for entry in tensor.external_data}.get(IDENTITY)
    identity = identity_of(path.stat()) if found is None else found
    return StoredArray(path, offset, dtype.newbyteorder("<"), shape, identity)


def _content(tensor: TensorProto, base: Path | None) -> bytes:
    path, offset, length = _place(tensor, base)
    try:
        with open_to_read(path) as file:
            file.seek(offset)
            return file.read(length)
    except OSError as error:
        raise FileFormatError(f"load: external data of tensor {tensor.name!r} must be readable, got: {error}") from error


def _place(tensor: TensorProto, base: Path | None) -> tuple[Path, int, int]:
    """Return the file of a tensor, and where it starts and how many bytes it has there."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if base is None:
        raise FileFormatError(f"load: tensor {tensor.name!r} is in the file {location!r}: load the model by its path")
    path = _file_beside(base, location)
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise FileFormatError(
            f"load: external data of tensor {tensor.name!r} must be readable, got: {one_line(error)}"
        ) from error
    if offset < 0 or offset > size or length > size - offset:
        raise FileFormatError(f"load: tensor {tensor.name!r} must be inside of {location!r}, a file of {size} bytes")
    return path, offset, size - offset if length < 0 else length


def _file_beside(base: Path, location: str) -> Path:
    """Return the path of a file with external data.

    Raises:
        FileFormatError: when it is outside of the folder of the model, or there is no file.
    """
    try:
        path = path_below(base, location)
    except FileFormatError as error:
        raise FileFormatError(f"load: external data must be in the folder of the model: {error}") from None
    if path.is_symlink() or not path.is_file():
        kind = "a link" if path.is_symlink() else "something else" if path.exists() else "nothing"
        raise FileFormatError(f"load: external data must be in a file, got {kind} at {location!r}")
    return path
