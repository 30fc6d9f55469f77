"""Files of models, written field by field: the numbers of large constants go from their arrays into the file."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from nn_core.ext import atomic_writer

#: Constants of a model by name, in the order of the file.
Constants: TypeAlias = Mapping[str, np.ndarray[Any, Any]]
#: A complete message, or one that lacks its numbers, which are in an array.
_Tensor: TypeAlias = tuple[TensorProto, np.ndarray[Any, Any] | None]
#: Beyond this, tensors go into a file of their own: protobuf holds at most 2 GiB.
_INLINE_LIMIT: Final = 2**31 - 2**20
#: Smaller constants are messages in memory.
_LARGE_TENSOR: Final = 1024
#: Of external tensors, so that they can be mapped.
_ALIGNMENT: Final = 4096
#: Bytes of an array that is not contiguous which are copied at once.
_PIECE: Final = 1 << 22
#: Keys of fields that have a length: the graph of a model, an initializer of a graph, the bytes of a tensor.
_GRAPH: Final = bytes([7 << 3 | 2])
_INITIALIZER: Final = bytes([5 << 3 | 2])
_RAW_DATA: Final = bytes([9 << 3 | 2])
#: Fields that come before these, in the order in which protobuf writes them.
_BEFORE_GRAPH: Final = ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string")
_BEFORE_INITIALIZER: Final = ("node", "name")


def is_small(constants: Constants) -> bool:
    """Return whether a model with these constants can be one message."""
    return sum(array.nbytes for array in constants.values()) < _INLINE_LIMIT


def add_constants(model: onnx.ModelProto, constants: Constants) -> onnx.ModelProto:
    """Put constants into a model; each is copied."""
    model.graph.initializer.extend(_message(name, array) for name, array in constants.items())
    return model


def check_model(model: onnx.ModelProto, constants: Constants) -> None:
    """Let ``onnx.checker`` see a model in which large constants are inputs.

    Raises:
        onnx.checker.ValidationError: when it is not one that ONNX allows.
    """
    large = {name: array for name, array in constants.items() if _is_large(array)}
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    add_constants(copy, {name: array for name, array in constants.items() if name not in large})
    for name, array in large.items():
        copy.graph.input.append(helper.make_tensor_value_info(name, _type(array), array.shape))
    onnx.checker.check_model(copy, full_check=True)


def write_model(
    path: str | os.PathLike[str], model: onnx.ModelProto, constants: Constants, external_data: bool | None = None
) -> None:
    """Write a model with its constants, large ones in a second file if it is too large for one or if asked to."""
    target = Path(path)
    if not is_small(constants) if external_data is None else external_data:
        tensors = _write_data(target.with_name(f"{target.name}.data"), constants)
    else:
        tensors = [_inline(name, array) for name, array in constants.items()]
    with atomic_writer(target) as file:
        _write_fields(file, model, tensors)


def _inline(name: str, array: np.ndarray[Any, Any]) -> _Tensor:
    return (_header(name, array), array) if _is_large(array) else (_message(name, array), None)


def _write_data(path: Path, constants: Constants) -> list[_Tensor]:
    """Write the numbers of large constants into a file of their own, and return the messages that say where they are."""
    tensors: list[_Tensor] = []
    position = 0
    with atomic_writer(path) as file:
        for name, array in constants.items():
            if not _is_large(array):
                tensors.append((_message(name, array), None))
                continue
            padding = -position % _ALIGNMENT
            file.write(bytes(padding))
            position += padding
            _write_numbers(file, array)
            tensor = _header(name, array)
            for key, value in (("location", path.name), ("offset", position), ("length", array.nbytes)):
                tensor.external_data.add(key=key, value=str(value))
            tensor.data_location = TensorProto.EXTERNAL
            tensors.append((tensor, None))
            position += array.nbytes
    return tensors


def _write_fields(file: IO[bytes], model: onnx.ModelProto, tensors: Sequence[_Tensor]) -> None:
    """Write a model with its initializers, which it does not have itself."""
    before, after = _parts(model, _BEFORE_GRAPH, "graph")
    first, last = _parts(model.graph, _BEFORE_INITIALIZER, "initializer")
    heads = [(_head(tensor.SerializeToString(), array), array) for tensor, array in tensors]
    n_bytes = sum(len(head) + (0 if array is None else array.nbytes) for head, array in heads)
    file.write(before + _GRAPH + _varint(len(first) + n_bytes + len(last)) + first)
    for head, array in heads:
        file.write(head)
        if array is not None:
            _write_numbers(file, array)
    file.write(last + after)


def _head(message: bytes, array: np.ndarray[Any, Any] | None) -> bytes:
    """Return a field of a graph with an initializer up to the numbers of its array."""
    if array is None:
        return _INITIALIZER + _varint(len(message)) + message
    message += _RAW_DATA + _varint(array.nbytes)
    return _INITIALIZER + _varint(len(message) + array.nbytes) + message


def _parts(message: Any, first: Sequence[str], left_out: str) -> tuple[bytes, bytes]:
    """Return the fields of a message that are among `first`, and the others but one."""
    before, after = type(message)(), type(message)()
    before.CopyFrom(message)
    after.CopyFrom(message)
    for field, _ in message.ListFields():
        if field.name not in first:
            before.ClearField(field.name)
        if field.name in (*first, left_out):
            after.ClearField(field.name)
    return before.SerializeToString(), after.SerializeToString()


def _is_large(array: np.ndarray[Any, Any]) -> bool:
    """Return whether the numbers of a constant are written from its array; types of fewer than 8 bits are packed."""
    return array.nbytes >= _LARGE_TENSOR and array.dtype.kind in "biuf"


def _type(array: np.ndarray[Any, Any]) -> int:
    return helper.np_dtype_to_tensor_dtype(array.dtype.newbyteorder("="))


def _header(name: str, array: np.ndarray[Any, Any]) -> TensorProto:
    return TensorProto(name=name, data_type=_type(array), dims=array.shape)


def _message(name: str, array: np.ndarray[Any, Any]) -> TensorProto:
    return numpy_helper.from_array(np.asarray(array, order="C"), name)


def _write_numbers(file: IO[bytes], array: np.ndarray[Any, Any]) -> None:
    for piece in _pieces(array):
        file.write(piece.reshape(-1).view(np.uint8).data)


def _pieces(array: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the elements of an array in order, as contiguous arrays; what has to be copied is copied a piece at a time."""
    dtype = array.dtype.newbyteorder("<")
    if array.nbytes <= _PIECE or (array.flags.c_contiguous and array.dtype == dtype):
        yield np.ascontiguousarray(array, dtype)
        return
    row = array.nbytes // len(array)
    if row > _PIECE:
        for part in array:
            yield from _pieces(part)
        return
    step = _PIECE // row
    for start in range(0, len(array), step):
        yield np.ascontiguousarray(array[start : start + step], dtype)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 128:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])
