"""Samples kept in files: each file holds some of them, one array a variable.

The folder also has cache_index.csv, with the name and the number of samples of each file, and, beside files of NumPy,
cache_info.csv with the name of a variable in each line. A cache that was made from a table has a copy of it, original.csv,
and order.csv, whose lines hold the number of a sample and that of its row in the table. This layout is NNabla's, so that
caches can be shared. Caches of ours have cache_checksums.json besides, with which damage to any of the files is recognized.
No pickle.
"""

import csv
import io
import json
import os
import re
import shutil
import tempfile
import weakref
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final

import numpy as np

from nn_core.data.cache_files import FORMATS, CacheFormat, format_of, reading, variables_of
from nn_core.data.cache_names import as_csv as as_csv
from nn_core.data.cache_names import is_file_name, require_prefix
from nn_core.data.source import DataSource, OrderedDataSource, Sample
from nn_core.engine.error_messages.foreign_values import values_of
from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.errors import ArgumentError, FileFormatError, one_line
from nn_core.files import atomic_writer, open_to_read, read_file, remove_leftovers
from nn_core.files.atomic import open_locked, remove_if_unlocked
from nn_core.files.budgets import budget
from nn_core.random import Rng

#: Samples in one file.
SAMPLES_PER_FILE: Final = 100
#: Files whose samples are held in memory.
OPEN_FILES: Final = 32

_INDEX: Final = "cache_index.csv"
_INFO: Final = "cache_info.csv"
_CHECKSUMS: Final = "cache_checksums.json"
#: A copy of the table that the cache was made from, and which of its rows became which samples.
ORIGINAL: Final = "original.csv"
ORDER: Final = "order.csv"
#: The name that NNabla and this module give to a file with samples, from the first number to the second.
_RANGE: Final = re.compile(r"(?P<prefix>.*)_(?P<start>\d{8,15})_(?P<end>\d{8,15})\.(npy|h5)")
#: How folders of temporary caches are called, and the file that their owner keeps locked.
_OWN_PREFIX: Final = "nn_core_cache_"
_OWNER: Final = ".owner"


class DataSourceWithFileCacheError(ArgumentError):
    """A cache cannot be written."""


@fitted_methods()
class CacheDataSource(OrderedDataSource):
    """Samples of a cache.

    Args:
        cachedir: Folder of the cache.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
        normalize: Divide arrays of 8-bit integers by 255.

    Raises:
        FileFormatError: when the folder is not a cache, its files contradict each other, or, at a sample, its file is damaged.

    Example:
        >>> from nn_core.data import DataSourceWithFileCache
        >>> from nn_core.data import SimpleDataSource
        >>> DataSourceWithFileCache(SimpleDataSource(lambda i: (np.full(3, i),), 10), cache_dir="cached").close()
        >>> source = CacheDataSource("cached")
        >>> source.size, source.next()
        (10, (array([0, 0, 0]),))
    """

    @fitted
    def __init__(
        self,
        cachedir: str | os.PathLike[str],
        shuffle: bool = False,
        rng: Rng | None = None,
        normalize: bool = False,
    ) -> None:
        self._folder = Path(cachedir)
        self._normalize = normalize
        self._names, self._counts = _read_index(self._folder / _INDEX)
        self._format = FORMATS[_extension_of(self._names)]
        variables = _read_variables(self._folder, self._names[0], self._format)
        self._checksums = _read_checksums(self._folder, variables, self._names, self._counts)
        self._ends = list(accumulate(self._counts))
        self._open: dict[int, list[np.ndarray[Any, Any]]] = {}
        #: files of others that were read once; in HDF5 the first time takes long
        self._tried: set[int] = set()
        super().__init__(self._ends[-1], variables, shuffle, rng)

    def initialize_cache_info(self, info_filename: str | os.PathLike[str]) -> None:
        """Take the names of the variables from another file than the one of the folder."""
        self._variables = _read_info(Path(info_filename))
        self._checksums = []
        self._forget()

    def initialize_cache_files_with_index(self, index_filename: str | os.PathLike[str]) -> None:
        """Take the files, which are in the folder of the cache, from another index than the one there."""
        self._names, self._counts = _read_index(Path(index_filename), self._folder)
        self._format = FORMATS[_extension_of(self._names)]
        self._checksums = []
        self._forget()

    def initialize_cache_files(self, filename: str | os.PathLike[str]) -> None:
        """Add the samples of a file of the same format, in the folder of the cache, after the others.

        Raises:
            ArgumentError: when the file is in another folder, or listed already.
        """
        path = Path(filename)
        if path.name in self._names or (path.name != str(path) and path.parent.resolve() != self._folder.resolve()):
            raise ArgumentError(f"initialize_cache_files: filename must be another file of {self._folder}, got {filename}")
        with reading(self._folder / path.name):
            content = read_file(self._folder / path.name)
            counts = {len(array) for array in self._format.unpack(content, self._variables, False)}
        if len(counts) != 1 or 0 in counts:
            raise FileFormatError(f"{path}: there must be as many samples of each variable, got {sorted(counts)}")
        self._names.append(path.name)
        self._counts.append(counts.pop())
        if self._checksums:
            self._checksums.append(zlib.crc32(content))
        self._forget()

    def _forget(self) -> None:
        """Start over with other files or variables."""
        self._open.clear()
        self._tried.clear()
        self._ends = list(accumulate(self._counts))
        self._size = self._ends[-1]
        self._order = self._original_order = self.before_draw = None
        self._position = 0

    @property
    def original_rows(self) -> list[list[str]] | None:
        """The table that the cache was made from, its header first, then a row for each sample; None if it is not there."""
        path = self._folder / ORIGINAL
        if not path.exists():
            return None
        header, *rows = [row for _, row in _read_csv(path)] or [[]]
        order = list(range(len(rows)))
        if (self._folder / ORDER).exists():
            order = _read_order(self._folder / ORDER, len(rows))
        if len(rows) != self._size:
            raise FileFormatError(f"{path}: there must be a row for each of {self._size} samples, got {len(rows)}")
        return [header, *[rows[number] for number in order]]

    def _sample(self, index: int) -> Sample:
        number = bisect_right(self._ends, index)
        row = index - (self._ends[number - 1] if number else 0)
        return tuple(array[row] for array in self._arrays(number))

    def _arrays(self, number: int) -> list[np.ndarray[Any, Any]]:
        # Single operations on a dictionary, because several threads may read.
        arrays = self._open.pop(number, None)
        if arrays is None:
            arrays = self._read(number)
        self._open[number] = arrays
        for oldest in list(self._open)[:-OPEN_FILES]:
            self._open.pop(oldest, None)
        return arrays

    def _read(self, number: int) -> list[np.ndarray[Any, Any]]:
        path = self._folder / self._names[number]
        with reading(path):
            content = read_file(path)
            is_known = bool(self._checksums)
            if is_known and zlib.crc32(content) != self._checksums[number]:
                raise FileFormatError(f"{path}: the file must be as it was saved, got another checksum: it is damaged")
            arrays = self._format.unpack(content, self._variables, is_known or number in self._tried)
            self._tried.add(number)
            for variable, array in zip(self._variables, arrays, strict=True):
                if array.shape[:1] != (self._counts[number],):
                    raise FileFormatError(f"there must be {self._counts[number]} samples of {variable}, got {array.shape[:1]}")
        return [self._normalized(array) for array in arrays]

    def _normalized(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array / np.float32(255) if self._normalize and array.dtype == np.uint8 else array

    def close(self) -> None:
        """Give up the samples in memory."""
        self._open.clear()


@fitted_methods()
class DataSourceWithFileCache(OrderedDataSource):
    """A source whose samples are copied to files at first, and then read from there.

    Args:
        data_source: The source; it is read once, in its present order.
        cache_dir: Folder of the cache, which is used as it is if it is complete; None: a new one, removed by `close()`.
        cache_file_name_prefix: How the names of the files start.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
        cache_file_format: ".npy" for files of NumPy, ".h5" for HDF5.

    Raises:
        ArgumentError: when `cache_file_format` is another one.
        DataSourceWithFileCacheError: when the values of a variable have different shapes or are not numbers.

    Example:
        >>> from nn_core.data import SimpleDataSource
        >>> with DataSourceWithFileCache(SimpleDataSource(lambda i: (np.full(3, i),), 10)) as source:
        ...     source.next()
        (array([0, 0, 0]),)
    """

    @fitted
    def __init__(
        self,
        data_source: DataSource,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_file_name_prefix: str = "cache",
        shuffle: bool = False,
        rng: Rng | None = None,
        cache_file_format: str = ".npy",
    ) -> None:
        format_of(cache_file_format)
        super().__init__(data_source.size, data_source.variables, shuffle, rng)
        self._own = _OwnFolder() if cache_dir is None else None
        folder = self._own.path if self._own is not None else Path(os.fspath(cache_dir or ""))
        try:
            if not (folder / _INDEX).exists():
                write_cache(data_source, folder, cache_file_name_prefix, extension=cache_file_format)
            self._cache = CacheDataSource(folder)
        except BaseException:
            self._remove_own()
            raise
        if self._cache.size != self._size:
            raise DataSourceWithFileCacheError(
                f"{folder}: the cache must have the {self._size} samples of the source, got {self._cache.size}"
            )

    def _sample(self, index: int) -> Sample:
        return self._cache._sample(index)

    def close(self) -> None:
        """Close the cache; remove its folder if it is not one that was given."""
        self._cache.close()
        self._remove_own()

    def _remove_own(self) -> None:
        if self._own is not None:
            self._own.remove()


class _OwnFolder:
    """A temporary folder, removed on request, with its owner, or, after the owner was killed, by the next of its kind.

    Attributes:
        path: The folder.
    """

    def __init__(self) -> None:
        for left in Path(tempfile.gettempdir()).glob(f"{_OWN_PREFIX}*/{_OWNER}"):
            _remove_abandoned(left)
        self.path = Path(tempfile.mkdtemp(prefix=_OWN_PREFIX))
        lock = open_locked(self.path / _OWNER)
        self._finalizer = weakref.finalize(self, _remove_with_lock, self.path, lock, os.getpid())

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        self._finalizer()


def _remove_with_lock(folder: Path, lock: IO[bytes], owner: int) -> None:
    if os.getpid() == owner:  # a forked child ends as well, while its parent reads on
        shutil.rmtree(folder, ignore_errors=True)
    lock.close()


def _remove_abandoned(lock: Path) -> None:
    with suppress(OSError):  # of another user, or removed by another process
        if remove_if_unlocked(lock):
            shutil.rmtree(lock.parent, ignore_errors=True)


def write_cache(
    data_source: DataSource,
    folder: Path,
    prefix: str = "cache",
    samples_per_file: int = SAMPLES_PER_FILE,
    extension: str = ".npy",
    extras: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Copy all samples of a source to a folder; the index is written last, so that a cache with one is complete.

    When anything fails, what was written is removed.

    Args:
        data_source: The source.
        folder: The folder.
        prefix: How the names of the files start.
        samples_per_file: Number of samples in each.
        extension: The format of the files.
        extras: Contents of further files by name.
    """
    require_prefix(folder, prefix)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    written: list[Path] = []
    try:
        for name, content in extras.items():
            _write(folder / name, content, written)
        _write_files(data_source, folder, prefix, samples_per_file, extension, written)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        if is_new:
            with suppress(OSError):  # somebody else put a file there
                folder.rmdir()
        raise


def _write_files(
    source: DataSource, folder: Path, prefix: str, samples_per_file: int, extension: str, written: list[Path]
) -> None:
    rows: list[tuple[str, int, int]] = []
    kind = format_of(extension)
    for start, samples in _portions(source, samples_per_file):
        name = f"{prefix}_{start:08d}_{start + len(samples) - 1:08d}{extension}"
        columns = zip(source.variables, zip(*samples, strict=True), strict=True)
        content = kind.pack({variable: _stacked(source, variable, values) for variable, values in columns})
        _write(folder / name, content, written)
        rows.append((name, len(samples), zlib.crc32(content)))
    checksums = {"variables": list(source.variables), "files": rows}
    _write(folder / _CHECKSUMS, json.dumps(checksums).encode(), written)
    if not kind.tells_variables:
        _write(folder / _INFO, as_csv([[variable] for variable in source.variables]), written)
    _write(folder / _INDEX, as_csv([row[:2] for row in rows]), written)


def _write(path: Path, content: bytes, written: list[Path]) -> None:
    written.append(path)
    with atomic_writer(path) as file:
        file.write(content)


def _portions(data_source: DataSource, length: int) -> Iterator[tuple[int, list[Sample]]]:
    for start in range(0, data_source.size, length):
        end = min(start + length, data_source.size)
        yield start, [data_source._get_data(position) for position in range(start, end)]


def _file_of(source: DataSource) -> str:
    """Return the path of the file that a source reads, with ": ", for a message; empty where there is none."""
    path = getattr(source, "_path", None)
    if isinstance(path, Path):
        return f"{path}: "
    return next(filter(None, map(_file_of, source.inner_sources)), "")


def _stacked(source: DataSource, variable: str, values: Sequence[Any]) -> np.ndarray[Any, Any]:
    try:
        return np.stack([values_of(value) for value in values])
    except ValueError as error:
        shapes = sorted({np.shape(value) for value in values})
        raise DataSourceWithFileCacheError(
            f"{_file_of(source)}the values of {variable} must have one shape to be kept in files, got {shapes}"
        ) from error


def _read_index(path: Path, folder: Path | None = None) -> tuple[list[str], list[int]]:
    """Names and numbers of samples of the files in `folder`, that of the index by default; they follow each other."""
    folder = path.parent if folder is None else folder
    names: list[str] = []
    counts: list[int] = []
    for line, row in _read_csv(path):
        if len(row) != 2 or not _is_count(row[1]) or not is_file_name(row[0], folder):
            raise FileFormatError(f"{path}, line {line}: a line must hold a file name and a number, got {row}")
        names.append(row[0])
        counts.append(int(row[1]))
        _require_plausible(folder, names[-1], counts[-1])
    if not names:
        raise FileFormatError(f"{path}: there must be at least one sample, got 0")
    _require_ranges(path, folder, names, counts)
    return names, counts


def _extension_of(names: Sequence[str]) -> str:
    """Return the extension that stands for the format; files with an unknown one are NumPy's."""
    return ".h5" if Path(names[0]).suffix == ".h5" else ".npy"


def _read_variables(folder: Path, first_file: str, kind: CacheFormat) -> list[str]:
    """Names of the variables: from cache_info.csv, else in the order in which they were saved, else from the first file."""
    if (folder / _INFO).exists() or not kind.tells_variables:
        return _read_info(folder / _INFO)
    if (folder / _CHECKSUMS).exists():
        return list(_read_saved(folder / _CHECKSUMS)[0])
    with reading(folder / first_file):
        return variables_of(read_file(folder / first_file))


def _is_count(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= 15 and int(text) > 0


def _require_plausible(folder: Path, name: str, count: int) -> None:
    """Refuse a number of samples that the file cannot hold, before anybody draws an order of so many."""
    try:
        n_bytes = (folder / name).stat().st_size
    except (OSError, ValueError) as error:
        raise FileFormatError(
            f"{folder / name}: a cache must hold an array for each variable, got: {one_line(error)}"
        ) from error
    if n_bytes and name.endswith(".h5"):
        budget().require("expansion", -(-count // n_bytes), f"{folder / name}: samples for each byte of the file")
    elif count > n_bytes:
        raise FileFormatError(f"{folder / name}: there must be {count} samples, got a file of {n_bytes} bytes")


def _require_ranges(index: Path, folder: Path, names: Sequence[str], counts: Sequence[int]) -> None:
    """Refuse an index that lost lines: files say in their names which samples they hold."""
    ranges = [_RANGE.fullmatch(name) for name in names]
    position = 0
    for name, count, match in zip(names, counts, ranges, strict=True):
        if match is None:  # names of another writer
            return
        if (int(match["start"]), int(match["end"])) != (position, position + count - 1):
            raise FileFormatError(f"{index}: {name} must hold samples {position} to {position + count - 1}, got another name")
        position += count
    prefixes = {match["prefix"] for match in ranges if match is not None}
    for path in folder.iterdir():
        match = _RANGE.fullmatch(path.name)
        if match is not None and match["prefix"] in prefixes and path.name not in set(names):
            raise FileFormatError(f"{index}: all files of the cache must be listed, got none for {path.name}")


def _read_checksums(folder: Path, variables: list[str], names: list[str], counts: list[int]) -> list[int]:
    """Return the checksum of each file; an empty list for a cache of another writer."""
    path = folder / _CHECKSUMS
    if not path.exists():
        return []
    saved_variables, files = _read_saved(path)
    if saved_variables != variables:
        raise FileFormatError(f"{folder / _INFO}: the variables must be {saved_variables}, got {variables}")
    if [row[:2] for row in files] != list(zip(names, counts, strict=True)):
        raise FileFormatError(f"{folder / _INDEX}: the files must be the {len(files)} that were saved, got other lines")
    return [checksum for _, _, checksum in files]


def _read_saved(path: Path) -> tuple[list[str], list[tuple[str, int, int]]]:
    """Return the variables and, of each file, name, number of samples and checksum, as they were saved."""
    try:
        saved = json.loads(read_file(path))
        return list(saved["variables"]), [(name, count, checksum) for name, count, checksum in saved["files"]]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileFormatError(f"{path}: the file must hold checksums of the cache, got: {one_line(error)}") from error


def _read_order(path: Path, count: int) -> list[int]:
    """Return the row of the table for each sample."""
    order: dict[int, int] = {}
    for line, row in _read_csv(path):
        if len(row) != 2 or not all(cell.isdecimal() and cell.isascii() and len(cell) <= 15 for cell in row):
            raise FileFormatError(f"{path}, line {line}: a line must hold two numbers, got {row}")
        order[int(row[0])] = int(row[1])
    if sorted(order) != list(range(count)) or sorted(order.values()) != list(range(count)):
        raise FileFormatError(f"{path}: each of {count} rows must have one place, got {len(order)} places")
    return [order[sample] for sample in range(count)]


def _read_info(path: Path) -> list[str]:
    variables = [row[0] for _, row in _read_csv(path)]
    if not variables:
        raise FileFormatError(f"{path}: there must be a variable in each line, got an empty file")
    return variables


def _read_csv(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows that are not empty, with the numbers of their lines."""
    try:
        with io.TextIOWrapper(open_to_read(path), encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            return [(reader.line_num, row) for row in reader if row]
    except OSError as error:
        raise FileFormatError(f"{path}: a cache must have this file, got: {error}") from error
    except (ValueError, csv.Error) as error:
        raise FileFormatError(f"{path}: the file must be a table in UTF-8, got: {one_line(error)}") from error
