"""Safetensors: 8 bytes of length, a JSON header, then the arrays one after another."""

import json
from collections.abc import Mapping
from math import prod
from typing import IO, Any, Final

import numpy as np

from nn_core.errors import FileFormatError, quoted
from nn_core.files.budgets import budget
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
#: Floating dtypes that NumPy lacks are read as float32, which holds all of their numbers.
_WIDENED: Final = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1}
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
    if length < 2:
        raise FileFormatError(f"the header must have at least 2 bytes, got {length}")
    budget().require("text_bytes", length, "the header")
    header = json.loads(file.read(length), object_pairs_hook=_without_duplicates, parse_int=_integer)
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


def _integer(digits: str) -> int:
    budget().require("digits", len(digits.lstrip("-")), "digits of an integer")
    return int(digits)


def _array(name: str, entry: Any, body: bytes) -> Array:
    code = entry["dtype"]
    if code not in _DTYPES and code not in _WIDENED:
        known = ", ".join((*_DTYPES, *_WIDENED))
        raise FileFormatError(f"array {quoted(name)} must have one of the dtypes {known}, got {quoted(code)}")
    dtype = np.dtype(_DTYPES.get(code, f"uint{8 * _WIDENED.get(code, 1)}")).newbyteorder("<")
    shape = tuple(entry["shape"])
    start, end = entry["data_offsets"]
    n_bytes = dtype.itemsize * prod(shape)
    if min((0, *shape)) < 0 or not 0 <= start <= end <= len(body) or end - start != n_bytes:
        where = f"{quoted(name)} of shape {quoted(shape)}"
        raise FileFormatError(f"array {where} must be within the file, got bytes {start} to {end}")
    found = np.frombuffer(body, dtype, offset=start, count=n_bytes // dtype.itemsize).reshape(shape)
    return widened(found, code) if code in _WIDENED else found


def widened(bits: Array, code: str) -> Array:
    """Return the numbers of a floating dtype that NumPy lacks, from their bits, as float32."""
    if code == "BF16":  # the upper half of float32
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if code == "F8_E5M2":  # the upper half of float16
        return (bits.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    return _e4m3()[bits]


def _e4m3() -> Array:
    """Return the numbers of F8_E4M3 by their bits, float32 of shape (256,).

    Reference: P. Micikevicius and others (2022), FP8 formats for deep learning, arXiv:2209.05433, table 1.
    """
    bits = np.arange(256)
    exponent, fraction = (bits >> 3) & 15, (bits & 7) / 8
    magnitude = np.where(exponent == 0, fraction * 2.0**-6, (1 + fraction) * 2.0 ** (exponent - 7))
    magnitude[(bits & 127) == 127] = np.nan  # without infinities
    return np.where(bits < 128, magnitude, -magnitude).astype(np.float32)


def _require_adjoining(offsets: list[tuple[int, int]], n_bytes: int) -> None:
    """Refuse arrays that share bytes: a small file could ask for any amount of memory."""
    position = 0
    for start, end in sorted(map(tuple, offsets)):
        if start != position:
            raise FileFormatError(f"the arrays must follow each other, got byte {start} where {position} was expected")
        position = end
    if position != n_bytes:
        raise FileFormatError(f"the arrays must fill the file, got {position} of {n_bytes} bytes")
