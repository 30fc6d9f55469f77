"""NPZ: NumPy's archive of arrays; attributes, order and checksums are a JSON text in an array of bytes."""

import json
import os
import zipfile
from collections.abc import Mapping
from typing import IO, Any, Final

import numpy as np

from nn_core.errors import ArgumentError, FileFormatError
from nn_core.files.budgets import budget
from nn_core.files.entries import Array, Entries, Entry, checksum, require_names, verify
from nn_core.files.npy import read_npy

_TABLE: Final = "__attributes__"
#: An archive without members is the end of its directory.
_EMPTY_BYTES: Final = 22


def write_npz(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
    """Write `entries`; HDF5's attributes of groups are left out."""
    if _TABLE in entries:
        raise ArgumentError(f"an array in an .npz file must not be called {_TABLE}, got one")
    arrays = {name: np.asarray(entry.values, order="C") for name, entry in entries.items()}
    table = [[name, entry.attributes, _checksum(name, entry)] for name, entry in entries.items()]
    text = np.frombuffer(json.dumps(table).encode(), np.uint8)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, values in {_TABLE: text, **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, np.lib.format.header_data_from_array_1_0(values))
                member.write(values.data)  # NumPy's own writer copies the elements to bytes first


def _checksum(name: str, entry: Entry) -> str:
    return checksum(name, Entry(entry.values, entry.attributes))


def read_npz(file: IO[bytes]) -> Entries:
    """Read all arrays; a file of another writer has no table, and is taken as it is."""
    arrays = read_arrays(file)
    text = arrays.pop(_TABLE, None)
    if text is None:
        return {name: Entry(values) for name, values in arrays.items()}
    return _with_table(arrays, json.loads(text.tobytes()))


def read_arrays(file: IO[bytes], words: bool = False) -> dict[str, Array]:
    """Read all arrays of numbers and, with `words`, of texts."""
    file_size = file.seek(0, os.SEEK_END)
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if not members and file_size > _EMPTY_BYTES:
            raise FileFormatError(f"the directory must list the {file_size} bytes of the file, got an empty one")
        if sum(member.compress_size for member in members) > file_size:
            raise FileFormatError(f"the members must be within the {file_size} bytes of the file, got more")
        arrays = {member.filename.removesuffix(".npy"): _array(archive, member, words) for member in members}
    if len(arrays) != len(members):
        raise FileFormatError(f"arrays must have names of their own, got {len(members)} with {len(arrays)} names")
    return arrays


def _with_table(arrays: Mapping[str, Array], table: Any) -> Entries:
    """Return the arrays in the order of the table, verified; rows of early versions have no checksum."""
    require_names(arrays, [row[0] for row in table])
    entries = {row[0]: Entry(arrays[row[0]], dict(row[1])) for row in table}
    if any(len(row) > 2 for row in table):
        verify(entries, {row[0]: row[2] for row in table})
    return entries


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, words: bool) -> Array:
    growth = -(-info.file_size // max(info.compress_size, 1))
    budget().require("expansion", growth, f"bytes of array {info.filename} for each that is stored")
    with archive.open(info) as member:
        values = read_npy(member, info.filename, info.file_size, words)
        if member.read(1):  # reading to the end also compares the CRC of the archive
            raise FileFormatError(f"array {info.filename} must be all that its member holds, got more bytes")
    return values
