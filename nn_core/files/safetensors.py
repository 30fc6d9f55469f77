"""Safetensors: 8 bytes of length, a JSON header, then the arrays one after another."""

import json
from collections.abc import Mapping
from math import prod
from typing import IO, Any, Final

import numpy as np

from nn_core.errors import FileFormatError
from nn_core.files.entries import Array, Entries, Entry, checksum, require_names, verify

_DTYPES: Final = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
}
#: Longer headers are refused: a real one has about 100 bytes for each array.
_HEADER_LIMIT_BYTES: Final = 100_000_000

_METADATA: Final = "__metadata__"
#: Two keys that only files of ours have, so that damage to one of them does not make a file pass for another writer's.
_WRITER: Final = ("writer", "nn_core")
_CHECKSUMS: Final = "checksums"


def write_safetensors(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
    """Write `entries`; HDF5's attributes of groups are left out."""
    codes = {name: code for code, name in _DTYPES.items()}
    metadata = {
        _WRITER[0]: _WRITER[1],
        "attributes": json.dumps([[name, entry.attributes] for name, entry in entries.items()]),
        _CHECKSUMS: json.dumps(
            {name: checksum(name, Entry(entry.values, entry.attributes)) for name, entry in entries.items()}
        ),
    }
    header: dict[str, Any] = {_METADATA: metadata}
    end = 0
    for name, entry in entries.items():
        start, end = end, end + entry.values.nbytes
        code = codes[entry.values.dtype.name]
        header[name] = {"dtype": code, "shape": list(entry.values.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for entry in entries.values():
        file.write(np.ascontiguousarray(entry.values).astype(entry.values.dtype.newbyteorder("<"), copy=False).data)


def read_safetensors(file: IO[bytes]) -> Entries:
    """Read all arrays; a file of another writer has no checksums, and is taken as it is."""
    header = _header(file)
    metadata = header.pop(_METADATA, {})
    body = file.read()
    arrays = {name: _array(name, entry, body) for name, entry in header.items()}
    _require_adjoining([entry["data_offsets"] for entry in header.values()], len(body))
    if "attributes" not in metadata:
        if _is_ours(metadata):
            raise FileFormatError("the header must hold the attributes of the arrays, got none: the file is damaged")
        return {name: Entry(values) for name, values in arrays.items()}
    table = json.loads(metadata["attributes"])
    require_names(arrays, [name for name, _ in table])
    entries = {name: Entry(arrays[name], dict(attributes)) for name, attributes in table}
    if _is_ours(metadata):
        if metadata.get(_WRITER[0]) != _WRITER[1] or _CHECKSUMS not in metadata:
            raise FileFormatError("the header must hold the checksums of the arrays, got none: the file is damaged")
        verify(entries, json.loads(metadata[_CHECKSUMS]))
    return entries


def _header(file: IO[bytes]) -> dict[str, Any]:
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= _HEADER_LIMIT_BYTES:
        raise FileFormatError(f"the header must have from 2 to {_HEADER_LIMIT_BYTES} bytes, got {length}")
    header = json.loads(file.read(length), object_pairs_hook=_without_duplicates)
    if not isinstance(header, dict):
        raise FileFormatError(f"the header must name arrays, got {type(header).__name__}")
    return header


def _is_ours(metadata: Mapping[str, Any]) -> bool:
    return metadata.get(_WRITER[0]) == _WRITER[1] or _CHECKSUMS in metadata


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FileFormatError("arrays must have names of their own, got one name twice")
    return found


def _array(name: str, entry: Any, body: bytes) -> Array:
    if entry["dtype"] not in _DTYPES:
        raise FileFormatError(f"array {name} must have one of the dtypes {', '.join(_DTYPES)}, got {entry['dtype']}")
    dtype = np.dtype(_DTYPES[entry["dtype"]]).newbyteorder("<")
    shape = tuple(entry["shape"])
    start, end = entry["data_offsets"]
    n_bytes = dtype.itemsize * prod(shape)
    if min((0, *shape)) < 0 or not 0 <= start <= end <= len(body) or end - start != n_bytes:
        raise FileFormatError(f"array {name} of shape {shape} must be within the file, got bytes {start} to {end}")
    return np.frombuffer(body, dtype, offset=start, count=n_bytes // dtype.itemsize).reshape(shape)


def _require_adjoining(offsets: list[tuple[int, int]], n_bytes: int) -> None:
    """Refuse arrays that share bytes: a small file could ask for any amount of memory."""
    position = 0
    for start, end in sorted(map(tuple, offsets)):
        if start != position:
            raise FileFormatError(f"the arrays must follow each other, got byte {start} where {position} was expected")
        position = end
    if position != n_bytes:
        raise FileFormatError(f"the arrays must fill the file, got {position} of {n_bytes} bytes")
