"""Large files of models: the numbers of initializers stay in the file, and are read when they are needed."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from google.protobuf.message import DecodeError
from onnx import TensorProto

from nn_core.ext import open_to_read
from nn_ext_onnx.importing.external import IDENTITY, identity_of

#: Smaller files are read as they are.
_LARGE_FILE: Final = 1 << 26
#: Smaller tensors stay in the model.
_LARGE_TENSOR: Final = 1 << 20
_PAGE_BYTES: Final = 1 << 16
#: More than the fields of models and graphs with large tensors.
_MOST_FIELDS: Final = 1_000_000
#: Numbers of fields: of the graph in a model, of initializers in a graph, of their bytes.
_GRAPH: Final = 7
_INITIALIZER: Final = 5
_RAW_DATA: Final = 9
_BYTES: Final = 2
#: Bytes of a value after its key, by the kind of the field; other kinds have a length, or end after a byte below 128.
_WIDTHS: Final = {1: 8, 5: 4}


class _DamagedError(Exception):
    """Bytes that are no fields."""


def read_whole(path: Path) -> bytes:
    """Return the bytes of a file."""
    with open_to_read(path) as file:
        return file.read()


def read_without_numbers(path: Path) -> bytes:
    """Return the bytes of a model in which large initializers are external ones, in the file of the model itself.

    A small file, a link, and one whose fields are not as expected are returned as they are.
    """
    if not path.is_file() or path.is_symlink() or path.stat().st_size < _LARGE_FILE:
        return read_whole(path)
    try:
        with open_to_read(path) as file:
            return _without_numbers(_Pages(file), path.name)
    except (_DamagedError, DecodeError, IndexError, OSError, ValueError):
        return read_whole(path)


class _Pages:
    """The bytes of an open file, of which a page is in memory at a time.

    They are read rather than mapped: a process dies of a mapped file that another program makes shorter meanwhile.
    """

    def __init__(self, file: IO[bytes]) -> None:
        status = os.fstat(file.fileno())
        self.identity = identity_of(status)
        self._file, self._size = file, status.st_size
        self._start, self._page = 0, b""
        self._n_fields = 0

    def __len__(self) -> int:
        return self._size

    def count_field(self) -> None:
        """Give up where the library, which is in C++, reads the fields in less time."""
        self._n_fields += 1
        if self._n_fields > _MOST_FIELDS:
            raise _DamagedError

    def byte(self, at: int) -> int:
        """Return the byte at an offset; IndexError where the file has ended."""
        if not self._start <= at < self._start + len(self._page):
            self._start, self._page = at, self.part(at, min(at + _PAGE_BYTES, self._size))
        return self._page[at - self._start]

    def part(self, start: int, end: int) -> bytes:
        """Return the bytes between two offsets."""
        self._file.seek(start)
        found = self._file.read(end - start)
        if len(found) != end - start:
            raise _DamagedError
        return found


def _without_numbers(data: _Pages, location: str) -> bytes:
    parts: list[bytes] = []
    n_graphs = 0
    for number, kind, start, body, end in _fields(data, 0, len(data)):
        if (number, kind) == (_GRAPH, _BYTES):
            n_graphs += 1
            graph = b"".join(_graph(data, body, end, location))
            parts += [_key(_GRAPH), _varint(len(graph)), graph]
        else:
            parts.append(data.part(start, end))
    if n_graphs != 1:  # several are merged into one
        raise _DamagedError
    return b"".join(parts)


def _graph(data: _Pages, start: int, end: int, location: str) -> Iterator[bytes]:
    for number, kind, first, body, last in _fields(data, start, end):
        if (number, kind) == (_INITIALIZER, _BYTES) and last - body >= _LARGE_TENSOR:
            tensor = _tensor(data, body, last, location)
            yield from (_key(_INITIALIZER), _varint(len(tensor)), tensor)
        else:
            yield data.part(first, last)


def _tensor(data: _Pages, start: int, end: int, location: str) -> bytes:
    """Return a tensor whose bytes are external ones; as it is where they are small or in several parts."""
    fields = list(_fields(data, start, end))
    raw = [(body, last) for number, kind, _, body, last in fields if (number, kind) == (_RAW_DATA, _BYTES)]
    if len(raw) != 1 or raw[0][1] - raw[0][0] < _LARGE_TENSOR:
        return data.part(start, end)
    body, last = raw[0]
    tensor = TensorProto.FromString(b"".join(data.part(f[2], f[4]) for f in fields if f[0] != _RAW_DATA))
    if tensor.external_data or tensor.data_location == TensorProto.EXTERNAL:
        raise _DamagedError
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", body), ("length", last - body), (IDENTITY, data.identity)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor.SerializeToString()


def _fields(data: _Pages, start: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield number, kind, start, start of the value and end of each field.

    Raises:
        _DamagedError: when a field ends after the message, or is of an unknown kind.
    """
    while start < end:
        key, body = _number(data, start)
        number, kind = key >> 3, key & 7
        data.count_field()
        if not number:  # as in a part without data
            raise _DamagedError
        if kind == _BYTES:
            length, body = _number(data, body)
            last = body + length
        elif kind == 0:
            last = _number(data, body)[1]
        elif kind in _WIDTHS:
            last = body + _WIDTHS[kind]
        else:
            raise _DamagedError
        if last > end:
            raise _DamagedError
        yield number, kind, start, body, last
        start = last


def _number(data: _Pages, at: int) -> tuple[int, int]:
    """Return an integer of several bytes, and the place after it."""
    value = shift = 0
    while shift < 70:
        byte = data.byte(at)
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise _DamagedError


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 128:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _key(number: int) -> bytes:
    return _varint(number << 3 | _BYTES)
