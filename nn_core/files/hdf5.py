"""HDF5 as NNabla lays it out: groups by '/', datasets with the attributes as HDF5 attributes.

Each dataset of ours has its checksum as an attribute, and the root group the list of names. Plain files are read without the
library, see `nn_core.files.hdf5_plain`. The library reads files by path or from an ``io.BytesIO``, and writes to memory: calls
back into Python code, as it makes for other file objects, turn a Ctrl-C into an error of its own.

A trailer after the last byte of HDF5 has a checksum of the whole file, because the library may loop for ever or crash on
damaged structures. Programs that open the file for writing remove the trailer; then the checksums of the arrays remain.
"""

import io
import json
import os
import struct
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import numpy as np

from nn_core.engine.arrays.synced import ALIGNMENT_BYTES, host_empty
from nn_core.errors import FileFormatError
from nn_core.files.budgets import budget
from nn_core.files.entries import (
    NUMBERS,
    Array,
    Entries,
    Entry,
    checksum,
    require_names,
    require_numbers,
    verify,
)
from nn_core.files.hdf5_plain import PlainFile, UnfamiliarError
from nn_core.files.memory_file import MemoryFile, contents_of, crc32
from nn_core.files.probe_subprocess import try_reading

_CHECKSUM: Final = "nn_core_checksum"
#: Attributes of the root group with the list of names, in pieces: HDF5 bounds an attribute by 64 KB.
_NAMES: Final = "nn_core_names"
_PIECE_BYTES: Final = 32_768

#: The end of a trailer: length and checksum of its table, and the mark.
_MARK: Final = b"\x89nn_core"
_TABLE_START: Final = b'{"size": '
_END_BYTES: Final = 8 + 4 + len(_MARK)
_PORTION_BYTES: Final = 1 << 20
_COPYING_THREADS: Final = 4
#: Name, offset and number of bytes of arrays that have some.
Extents: TypeAlias = list[tuple[str, int, int]]
#: The values of a dataset, its attributes, and those of its group.
Found: TypeAlias = tuple[Array, Mapping[str, Any], Mapping[str, Any]]


def write_hdf5(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
    """Write `entries` to an empty file."""
    import h5py  # opened only by programs that save or load

    # In memory, because the library crashes the process when it writes to a disk that is full.
    try:
        with h5py.File("parameters", "w", driver="core", backing_store=False, block_size=_PORTION_BYTES) as store:
            places = _fill(store, entries)
            store.flush()
            image = store.id.get_file_image()
    except OSError as error:  # no file is written to here
        raise MemoryError(str(error)) from error
    file.write(image)
    file.write(_trailer(memoryview(image), places))


def _fill(store: Any, entries: Mapping[str, Entry]) -> Extents:
    """Write all arrays; where the bytes of each are."""
    for name, entry in entries.items():
        dataset = store.create_dataset(name, data=entry.values)
        dataset.attrs.update(entry.attributes)
        dataset.parent.attrs.update(entry.group)
    for name in entries:
        # after all attributes of groups, which several arrays share
        dataset = store[name]
        dataset.attrs[_CHECKSUM] = checksum(name, _entry(name, entries[name].values, dataset.attrs, dataset.parent.attrs))
    names = np.frombuffer(json.dumps(list(entries)).encode(), np.uint8)
    for number, start in enumerate(range(0, len(names), _PIECE_BYTES)):
        store.attrs[f"{_NAMES}_{number}"] = names[start : start + _PIECE_BYTES]
    found = [(name, store[name].id.get_offset(), store[name].nbytes) for name in entries]
    return [(name, offset, n_bytes) for name, offset, n_bytes in found if offset is not None]


def read_hdf5(file: IO[bytes]) -> Entries:
    """Read all datasets; a file of another writer that takes the library has no checksums, and is read on trial first."""
    path = _path_of(file)
    contents, is_mapped = contents_of(file)
    is_whole = isinstance(file, MemoryFile) and file.is_verified
    is_verified = is_whole or _verify_whole(contents)
    plain = _read_plain(contents, is_mapped)
    if plain is not None:
        return _checked(*plain, is_verified, is_own=is_mapped)  # copies
    if is_whole:
        is_verified = _verify_whole(contents)  # only files of ours are read without a trial
    source = path or bytes(contents)
    if not is_verified:
        try_reading(source, len(contents))
    return read_plainly(source, is_verified)


def _read_plain(contents: memoryview, is_mapped: bool) -> tuple[Mapping[str, Found], Mapping[str, Any]] | None:
    """Return the datasets of a plain file and the attributes of its root group; None when it takes the library to read it."""
    try:
        plain = PlainFile(contents)
        items = list(plain.datasets())
    except (UnfamiliarError, struct.error, ValueError, IndexError):
        return None
    views = [dataset.values for _, dataset, _ in items]
    if sum(view.nbytes for view in views) > len(contents):
        return None
    arrays = _copies(views) if is_mapped else views  # one array must not keep the whole file
    found = {
        name: (values, dataset.attributes, group.attributes)
        for values, (name, dataset, group) in zip(arrays, items, strict=True)
    }
    return found, plain.attributes


def _copies(views: Sequence[Array]) -> list[Array]:
    """Return copies of arrays, in one block of memory: new memory takes most of the time, less in large pages and several
    threads.
    """
    *starts, size = accumulate((-(-view.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for view in views), initial=0)
    block = host_empty((size,), "uint8")
    made = []
    for view, start in zip(views, starts, strict=True):
        made.append(block[start : start + view.nbytes].view(view.dtype).reshape(view.shape))
    if size < _PORTION_BYTES:  # starting a thread would take longer
        deque(map(np.copyto, made, views), maxlen=0)
    else:
        with ThreadPoolExecutor(_COPYING_THREADS) as pool:
            deque(pool.map(np.copyto, made, views), maxlen=0)
    return made


def read_plainly(source: str | bytes, is_verified: bool = False) -> Entries:
    """Read all datasets of a file, given by its path, or of its contents, without looking at a trailer.

    Args:
        source: a path, or contents.
        is_verified: whether the file was compared with its trailer, and arrays need not be compared with their checksums.
    """
    import h5py  # opened only by programs that save or load

    if isinstance(source, str):
        with h5py.File(source, "r", locking=False) as store:
            return _read(store, Path(source).stat().st_size, None, is_verified)
    with h5py.File(io.BytesIO(source), "r") as store:
        return _read(store, len(source), source, is_verified)


def _trailer(image: memoryview, places: Extents) -> bytes:
    """Return the trailer of a file: a table in JSON, its length, its checksum, and a mark."""
    arrays = [[name, offset, n_bytes, crc32(image[offset : offset + n_bytes])] for name, offset, n_bytes in places]
    table = json.dumps({"size": len(image), "checksum": crc32(image), "arrays": arrays}).encode()
    return table + len(table).to_bytes(8, "little") + crc32(table).to_bytes(4, "little") + _MARK


def _verify_whole(contents: memoryview) -> bool:
    """Compare a file that has a trailer with it; whether there is a trailer.

    Raises:
        FileFormatError: when anything has changed; names the array if it is in one.
    """
    size = len(contents)
    end = bytes(contents[-_END_BYTES:])
    if len(end) < _END_BYTES or not end.endswith(_MARK):
        if _has_cut_trailer(contents):
            raise FileFormatError("the table of checksums must be complete, got a part of it: the file is damaged")
        return False
    length = min(int.from_bytes(end[:8], "little"), size - _END_BYTES)
    text = bytes(contents[size - _END_BYTES - length : size - _END_BYTES])
    if crc32(text) != int.from_bytes(end[8:12], "little"):
        raise FileFormatError("the table of checksums must be as it was saved, got another: the file is damaged")
    table = json.loads(text)
    if table["size"] != size - _END_BYTES - length:
        raise FileFormatError(f"the file must have {table['size']} bytes and a table, got {size}: it is damaged")
    if crc32(contents[: table["size"]]) != table["checksum"]:
        _blame(contents, table["arrays"])
    return True


def _has_cut_trailer(contents: memoryview) -> bool:
    """Return whether a trailer starts where the first header of HDF5, in the version that is written here, puts its end."""
    head = bytes(contents[:48])
    if len(head) < 48 or not head.startswith(b"\x89HDF\r\n\x1a\n\0"):
        return False
    end = min(int.from_bytes(head[40:48], "little"), len(contents))
    return bytes(contents[end : end + len(_TABLE_START)]) == _TABLE_START


def _blame(contents: memoryview, arrays: list[Any]) -> None:
    damaged = [name for name, start, n_bytes, saved in arrays if crc32(contents[start : start + n_bytes]) != saved]
    if damaged:
        raise FileFormatError(f"array {damaged[0]} must be as it was saved, got another checksum: the file is damaged")
    raise FileFormatError("the structure must be as it was saved, got another checksum: the file is damaged")


def _read(store: Any, file_bytes: int, contents: bytes | None, is_verified: bool) -> Entries:
    found: dict[str, Found] = {}
    stored_bytes = 0
    for name, dataset in _datasets(store):
        stored_bytes += dataset.id.get_storage_size()
        if stored_bytes > file_bytes:
            raise FileFormatError(f"dataset {name} must be within the {file_bytes} bytes of the file, got more")
        found[name] = _values(name, dataset, contents), dataset.attrs, dataset.parent.attrs
    return _checked(found, store.attrs, is_verified)


def _checked(found: Mapping[str, Found], root: Mapping[str, Any], is_verified: bool, *, is_own: bool = False) -> Entries:
    """Return the entries of a file, compared with the checksums that ours have; `root` has the attributes of the root
    group.
    """
    entries = {name: _entry(name, *parts, is_own=is_own) for name, parts in found.items()}
    checksums = {name: str(own[_CHECKSUM]) for name, (_, own, _) in found.items() if _CHECKSUM in own}
    pieces = {key: value for key, value in root.items() if key.startswith(_NAMES)}
    if pieces or checksums:
        if not pieces:
            raise FileFormatError("the file must hold the names of its arrays, got none: the file is damaged")
        text = b"".join(np.asarray(pieces[f"{_NAMES}_{number}"]).tobytes() for number in range(len(pieces)))
        require_names(entries, json.loads(text))
        if not is_verified:
            verify(entries, checksums)
    return entries


def _datasets(store: Any) -> Iterator[tuple[str, Any]]:
    """Yield the datasets by name, in the order of names; refuses links, circles and groups of enormous depth."""
    import h5py  # opened only by programs that save or load

    seen = set()
    waiting: list[tuple[str, Any]] = [("", store)]
    while waiting:
        name, item = waiting.pop()
        address = h5py.h5o.get_info(item.id).addr
        if address in seen:
            raise FileFormatError(f"{name} must be the only name of its contents, got another name for them")
        seen.add(address)
        if isinstance(item, h5py.Dataset):
            yield name, item
            continue
        budget().require("depth", name.count("/") + 1, "groups inside each other")
        waiting += [(f"{name}/{key}" if name else key, _member(name, item, key)) for key in sorted(item, reverse=True)]


def dataset_named(store: Any, name: str) -> Any:
    """Return a dataset of a file, whose numbers are in it: no link is followed, since it could lead to any other file.

    Raises:
        KeyError: when there is none.
        FileFormatError: when it is a link, a group, or has no numbers of its own.
    """
    item, path = store, ""
    for key in name.strip("/").split("/"):
        if key not in item:
            raise KeyError(f"no dataset {name}")
        item, path = _member(path, item, key), f"{path}/{key}"
    if not hasattr(item, "shape"):
        raise FileFormatError(f"{name} must be a dataset, got a group")
    if item.is_virtual or item.external:
        raise FileFormatError(f"dataset {name} must hold plain numbers, got data of other files")
    require_stored(name, item)
    return item


def _member(name: str, group: Any, key: str) -> Any:
    import h5py  # opened only by programs that save or load

    link = group.get(key, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise FileFormatError(f"{name}/{key} must be stored in the file, got a link")
    member = group[key]
    if not isinstance(member, (h5py.Dataset, h5py.Group)):
        raise FileFormatError(f"{name}/{key} must be a group or a dataset, got {type(member).__name__}")
    return member


def require_stored(name: str, dataset: Any) -> bool:
    """Refuse a dataset that takes more memory than what is stored of it can make, and tell whether it is compressed."""
    stored = dataset.id.get_storage_size()
    is_encoded = dataset.id.get_create_plist().get_nfilters() > 0
    if is_encoded and stored:
        budget().require("expansion", -(-dataset.nbytes // stored), f"bytes of dataset {name} for each that is stored")
    elif dataset.nbytes > stored:
        raise FileFormatError(f"dataset {name} of shape {dataset.shape} must be stored in full, got {stored} bytes")
    return is_encoded


def _values(name: str, dataset: Any, contents: bytes | None) -> Array:
    if dataset.is_virtual or dataset.external:
        raise FileFormatError(f"dataset {name} must hold plain numbers, got data of other files")
    require_numbers(f"dataset {name}", dataset.dtype)
    if dataset.shape is None:
        raise FileFormatError(f"dataset {name} must hold plain numbers, got none")
    is_encoded = require_stored(name, dataset)
    if contents is None or is_encoded or dataset.size == 0 or not _is_stored_plainly(dataset):
        return np.asarray(dataset[()])
    return np.frombuffer(contents, dataset.dtype, dataset.size, dataset.id.get_offset()).reshape(dataset.shape)


def _is_stored_plainly(dataset: Any) -> bool:
    """Return whether the bytes of an array follow each other in the file as they do in memory, in NumPy's layout of its
    type.
    """
    import h5py  # opened only by programs that save or load

    if dataset.id.get_offset() is None:  # it is in pieces, or part of the structure
        return False
    return bool(dataset.id.get_type().equal(h5py.h5t.py_create(dataset.dtype, logical=True)))


def _entry(name: str, values: Array, own: Mapping[str, Any], group: Mapping[str, Any], *, is_own: bool = False) -> Entry:
    return Entry(values, _attributes(name, own), _attributes(name, group), is_own)


def _attributes(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _scalar(name, key, value) for key, value in found.items() if not key.startswith((_CHECKSUM, _NAMES))}


def _scalar(name: str, key: str, value: Any) -> Any:
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in NUMBERS:
        raise FileFormatError(f"attribute {key} of {name} must be one number, got {value!r}")
    return array.reshape(()).item()


def _path_of(file: IO[bytes]) -> str | None:
    """Return the path of a file that is at its start, where the system knows it under that path."""
    name = getattr(file, "name", None)
    try:
        if not isinstance(name, str) or file.tell() or not os.path.samestat(os.fstat(file.fileno()), Path(name).stat()):
            return None
    except (OSError, ValueError):
        return None
    return name
