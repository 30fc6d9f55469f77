"""Files that hold named arrays: HDF5, NPZ and safetensors, written atomically and checked when read. No pickle.

This module knows arrays only. What they mean (parameters, states of a solver) is decided by its callers.
"""

import json
import os
import secrets
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import numpy as np

from nn_core.errors import ArgumentError, DTypeError, FileFormatError

Array: TypeAlias = np.ndarray[Any, Any]
PathOrFile: TypeAlias = str | os.PathLike[str] | IO[bytes]


@dataclass(slots=True)
class Entry:
    """One array of a file and the plain values stored with it.

    `group` belongs to the HDF5 group that holds the array, and has no place in the other formats.
    """

    values: Array
    attributes: dict[str, Any] = field(default_factory=dict)
    group: dict[str, Any] = field(default_factory=dict)


#: Kinds of dtypes that files may hold: booleans, integers, floating-point numbers.
_NUMBERS: Final = "biuf"

#: Arrays by '/'-separated name, in the order in which they are to be listed.
Entries: TypeAlias = dict[str, Entry]


@contextmanager
def atomic_writer(target: PathOrFile) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `target` only when the block ends well.

    The bytes go to a new file in the same folder, which is synced and renamed; when the block raises, `target` is as it
    was. An open file is handed out as it is.
    """
    if not isinstance(target, (str, os.PathLike)):
        yield target
        return
    path = Path(target)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def extension_of(function: str, target: PathOrFile, extension: str | None) -> str:
    """The extension that says the format: `extension` if it is given, else that of the path."""
    if extension is None:
        if not isinstance(target, (str, os.PathLike)):
            raise ArgumentError(f"{function}: extension must be given together with an open file, got none")
        extension = Path(target).suffix
    extension = extension.lower()
    if extension not in FORMATS:
        raise ArgumentError(f"{function}: the extension must be one of {', '.join(FORMATS)}, got {extension!r}")
    return extension


def write_entries(target: PathOrFile, entries: Mapping[str, Entry], extension: str) -> None:
    """Write `entries` to `target` in the format of `extension`, atomically."""
    for name, entry in entries.items():
        if entry.values.dtype.kind not in _NUMBERS:
            raise DTypeError(f"array {name} must hold plain numbers, got {entry.values.dtype}")
    with atomic_writer(target) as file:
        FORMATS[extension].write(file, entries)


def read_entries(source: PathOrFile, extension: str) -> Entries:
    """Read all entries of `source`; a damaged or foreign file gives a FileFormatError that names it."""
    if isinstance(source, (str, os.PathLike)):
        with Path(source).open("rb") as file:
            return _read(file, extension, os.fspath(source))
    return _read(source, extension, getattr(source, "name", "the file"))


def _read(file: IO[bytes], extension: str, name: str) -> Entries:
    try:
        return FORMATS[extension].read(file)
    except FileFormatError as error:
        raise FileFormatError(f"{name}: {error}") from error.__cause__
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile) as error:
        raise FileFormatError(f"{name}: the file must be whole and in the format {extension}, got: {error}") from error


# -- HDF5: groups by '/', datasets with the attributes as HDF5 attributes ----------------------------------------------


def _write_hdf5(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
    import h5py  # opened only by programs that save or load

    with h5py.File(file, "w") as store:
        for name, entry in entries.items():
            dataset = store.create_dataset(name, data=entry.values)
            dataset.attrs.update(entry.attributes)
            dataset.parent.attrs.update(entry.group)


def _read_hdf5(file: IO[bytes]) -> Entries:
    import h5py  # opened only by programs that save or load

    entries: Entries = {}

    def collect(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset):
            return
        if item.dtype.kind not in _NUMBERS or item.is_virtual or item.external:
            raise FileFormatError(f"dataset {name} must hold plain numbers, got {item.dtype}")
        attributes = {key: _scalar(name, key, value) for key, value in item.attrs.items()}
        group = {key: _scalar(name, key, value) for key, value in item.parent.attrs.items()}
        entries[name] = Entry(np.asarray(item[()]), attributes, group)

    with h5py.File(file, "r") as store:
        store.visititems(collect)
    return entries


def _scalar(name: str, key: str, value: Any) -> Any:
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in _NUMBERS:
        raise FileFormatError(f"attribute {key} of {name} must be one number, got {value!r}")
    return array.reshape(()).item()


# -- NPZ: NumPy's own archive; the attributes and the order are a JSON text in an array of bytes -----------------------

_ATTRIBUTES_MEMBER: Final = "__attributes__"


def _write_npz(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
    attributes = json.dumps([[name, entry.attributes] for name, entry in entries.items()])
    arrays = {name: np.asarray(entry.values, order="C") for name, entry in entries.items()}
    if _ATTRIBUTES_MEMBER in arrays:
        raise ArgumentError(f"an array in an .npz file must not be called {_ATTRIBUTES_MEMBER}, got one")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, values in {_ATTRIBUTES_MEMBER: np.frombuffer(attributes.encode(), np.uint8), **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)


def _read_npz(file: IO[bytes]) -> Entries:
    with zipfile.ZipFile(file) as archive:
        arrays = {info.filename.removesuffix(".npy"): _member(archive, info) for info in archive.infolist()}
    listed = arrays.pop(_ATTRIBUTES_MEMBER, None)
    if listed is None:
        return {name: Entry(values) for name, values in arrays.items()}
    table = json.loads(listed.tobytes())
    return {name: Entry(arrays[name], dict(attributes)) for name, attributes in table}


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read_header(member)
        n_bytes = _size_of(shape, dtype)
        if dtype.kind not in _NUMBERS:
            raise FileFormatError(f"array {info.filename} must hold plain numbers, got {dtype}")
        if n_bytes > info.file_size:
            raise FileFormatError(f"array {info.filename} of shape {shape} must lie within the file, got too few bytes")
        values = np.frombuffer(bytearray(member.read(n_bytes)), dtype)
    return values.reshape(shape, order="F" if is_fortran else "C")


def _size_of(shape: Sequence[int], dtype: np.dtype[Any]) -> int:
    return dtype.itemsize * prod(shape)


# -- safetensors: 8 bytes of length, a JSON header, then the arrays one after another ----------------------------------

_SAFETENSORS_DTYPES: Final = {
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


def _write_safetensors(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
    codes = {name: code for code, name in _SAFETENSORS_DTYPES.items()}
    metadata = {"attributes": json.dumps([[name, entry.attributes] for name, entry in entries.items()])}
    header: dict[str, Any] = {"__metadata__": metadata}
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


def _read_safetensors(file: IO[bytes]) -> Entries:
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= _HEADER_LIMIT_BYTES:
        raise FileFormatError(f"the header must have from 2 to {_HEADER_LIMIT_BYTES} bytes, got {length}")
    header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise FileFormatError(f"the header must name arrays, got {type(header).__name__}")
    body = file.read()
    metadata = header.pop("__metadata__", {})
    arrays = {name: _tensor(name, entry, body) for name, entry in header.items()}
    table = json.loads(metadata["attributes"]) if "attributes" in metadata else [[name, {}] for name in arrays]
    return {name: Entry(arrays[name], dict(attributes)) for name, attributes in table}


def _tensor(name: str, entry: Any, body: bytes) -> Array:
    if entry["dtype"] not in _SAFETENSORS_DTYPES:
        raise FileFormatError(
            f"array {name} must have one of the dtypes {', '.join(_SAFETENSORS_DTYPES)}, got {entry['dtype']}"
        )
    dtype = np.dtype(_SAFETENSORS_DTYPES[entry["dtype"]]).newbyteorder("<")
    shape = tuple(entry["shape"])
    start, end = entry["data_offsets"]
    n_bytes = _size_of(shape, dtype)
    if min((0, *shape)) < 0 or not 0 <= start <= end <= len(body) or end - start != n_bytes:
        raise FileFormatError(f"array {name} of shape {shape} must lie within the file, got bytes {start} to {end}")
    return np.frombuffer(body, dtype, offset=start, count=n_bytes // dtype.itemsize).reshape(shape).copy()


@dataclass(frozen=True, slots=True)
class Format:
    """How one format is written and read."""

    write: Callable[[IO[bytes], Mapping[str, Entry]], None]
    read: Callable[[IO[bytes]], Entries]


FORMATS: Final[Mapping[str, Format]] = {
    ".h5": Format(_write_hdf5, _read_hdf5),
    ".npz": Format(_write_npz, _read_npz),
    ".safetensors": Format(_write_safetensors, _read_safetensors),
}


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power failure, where the system can sync folders."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        return
    finally:
        os.close(handle)
