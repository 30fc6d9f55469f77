"""Samples kept in files: each file holds some of them, one array a variable, saved one after another.

The folder also has cache_index.csv, with the name and the number of samples of each file, and cache_info.csv, with the
name of a variable in each line. This layout is NNabla's, so that caches can be shared. Caches of ours have
cache_checksums.json besides, with which damage to any of the files is recognized. No pickle.
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
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from nn_core.data.source import DataSource, OrderedDataSource, Sample
from nn_core.errors import FileFormatError
from nn_core.files import atomic_writer, remove_leftovers
from nn_core.files.atomic import open_locked, remove_if_unlocked
from nn_core.files.npy import read_npy
from nn_core.random import Rng

#: Samples in one file.
SAMPLES_PER_FILE: Final = 100
#: Files whose samples are held in memory.
OPEN_FILES: Final = 32

_INDEX: Final = "cache_index.csv"
_INFO: Final = "cache_info.csv"
_CHECKSUMS: Final = "cache_checksums.json"
#: The name that NNabla and this module give to a file with samples, from the first number to the second.
_RANGE: Final = re.compile(r"(?P<prefix>.*)_(?P<start>\d{8,15})_(?P<end>\d{8,15})\.npy")
#: How folders of temporary caches are called, and the file that their owner keeps locked.
_OWN_PREFIX: Final = "nn_core_cache_"
_OWNER: Final = ".owner"


class DataSourceWithFileCacheError(Exception):
    """A cache cannot be written."""


class CacheDataSource(OrderedDataSource):
    """Samples of a cache.

    Args:
        cachedir: Folder of the cache.
        shuffle: Draw the order anew for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
        normalize: Divide arrays of 8-bit integers by 255.

    Raises:
        FileFormatError: when the folder is not a cache, its files contradict each other, or, at a sample, its file is damaged.
    """

    def __init__(
        self,
        cachedir: str | os.PathLike[str],
        shuffle: bool = False,
        rng: Rng | None = None,
        normalize: bool = False,
    ) -> None:
        self._folder = Path(cachedir)
        self._normalize = normalize
        names, counts = _read_index(self._folder)
        variables = _read_info(self._folder)
        self._checksums = _read_checksums(self._folder, variables, names, counts)
        self._names = names
        self._ends = list(accumulate(counts))
        self._counts = counts
        self._open: dict[int, list[np.ndarray[Any, Any]]] = {}
        super().__init__(self._ends[-1] if counts else 0, variables, shuffle, rng)

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
        try:
            content = path.read_bytes()
            if self._checksums and zlib.crc32(content) != self._checksums[number]:
                raise FileFormatError(f"{path}: the file must be as it was saved, got another checksum: it is damaged")
            return [self._normalized(array) for array in self._parse(content, self._counts[number])]
        except FileFormatError as error:
            raise FileFormatError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error.__cause__
        except (OSError, ValueError, TypeError, OverflowError, EOFError) as error:
            raise FileFormatError(f"{path}: a cache must hold an array for each variable, got: {error}") from error

    def _parse(self, content: bytes, count: int) -> list[np.ndarray[Any, Any]]:
        file = io.BytesIO(content)
        arrays = [read_npy(file, variable, len(content)) for variable in self._variables]
        if file.tell() != len(content):
            raise FileFormatError(f"there must be one array for each of {list(self._variables)}, got more")
        for variable, array in zip(self._variables, arrays, strict=True):
            if array.shape[:1] != (count,):
                raise FileFormatError(f"there must be {count} samples of {variable}, got {array.shape[:1]}")
        return arrays

    def _normalized(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array / np.float32(255) if self._normalize and array.dtype == np.uint8 else array

    def close(self) -> None:
        """Give up the samples in memory."""
        self._open.clear()


class DataSourceWithFileCache(OrderedDataSource):
    """A source whose samples are copied to files at first, and then read from there.

    Args:
        data_source: The source; it is read once, in its present order.
        cache_dir: Folder of the cache, which is used as it is if it is complete; None: a new one, removed by `close()`.
        cache_file_name_prefix: How the names of the files start.
        shuffle: Draw the order anew for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
    """

    def __init__(
        self,
        data_source: DataSource,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_file_name_prefix: str = "cache",
        shuffle: bool = False,
        rng: Rng | None = None,
    ) -> None:
        super().__init__(data_source.size, data_source.variables, shuffle, rng)
        self._own = _OwnFolder() if cache_dir is None else None
        folder = self._own.path if self._own is not None else Path(os.fspath(cache_dir or ""))
        try:
            if not (folder / _INDEX).exists():
                write_cache(data_source, folder, cache_file_name_prefix)
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
    data_source: DataSource, folder: Path, prefix: str = "cache", samples_per_file: int = SAMPLES_PER_FILE
) -> None:
    """Copy all samples of a source to a folder; the index is written last, so that a cache with one is complete.

    When anything fails, what was written is removed.
    """
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    written: list[Path] = []
    try:
        _write_files(data_source, folder, prefix, samples_per_file, written)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        if is_new:
            with suppress(OSError):  # somebody else put a file there
                folder.rmdir()
        raise


def _write_files(source: DataSource, folder: Path, prefix: str, samples_per_file: int, written: list[Path]) -> None:
    rows: list[tuple[str, int, int]] = []
    for start, samples in _portions(source, samples_per_file):
        name = f"{prefix}_{start:08d}_{start + len(samples) - 1:08d}.npy"
        content = io.BytesIO()
        for variable, values in zip(source.variables, zip(*samples, strict=True), strict=True):
            np.lib.format.write_array(content, _stacked(variable, values), allow_pickle=False)
        _write(folder / name, content.getvalue(), written)
        rows.append((name, len(samples), zlib.crc32(content.getvalue())))
    checksums = {"variables": list(source.variables), "files": rows}
    _write(folder / _CHECKSUMS, json.dumps(checksums).encode(), written)
    _write(folder / _INFO, _as_csv([[variable] for variable in source.variables]), written)
    _write(folder / _INDEX, _as_csv([row[:2] for row in rows]), written)


def _write(path: Path, content: bytes, written: list[Path]) -> None:
    written.append(path)
    with atomic_writer(path) as file:
        file.write(content)


def _portions(data_source: DataSource, length: int) -> Iterator[tuple[int, list[Sample]]]:
    for start in range(0, data_source.size, length):
        end = min(start + length, data_source.size)
        yield start, [data_source._get_data(position) for position in range(start, end)]


def _stacked(variable: str, values: Sequence[Any]) -> np.ndarray[Any, Any]:
    try:
        return np.stack([np.asarray(value) for value in values])
    except ValueError as error:
        shapes = sorted({np.shape(value) for value in values})
        raise DataSourceWithFileCacheError(
            f"the values of {variable} must have one shape to be kept in files, got {shapes}"
        ) from error


def _as_csv(rows: Sequence[Sequence[Any]]) -> bytes:
    return "".join(",".join(str(value) for value in row) + "\n" for row in rows).encode()


def _read_index(folder: Path) -> tuple[list[str], list[int]]:
    """Names and numbers of samples of the files, which have to be there and to follow each other."""
    path = folder / _INDEX
    names: list[str] = []
    counts: list[int] = []
    for line, row in _read_csv(path):
        if len(row) != 2 or not _is_count(row[1]) or Path(row[0]).name != row[0]:
            raise FileFormatError(f"{path}, line {line}: a line must hold a file name and a number, got {row}")
        names.append(row[0])
        counts.append(int(row[1]))
        _require_plausible(folder, names[-1], counts[-1])
    if not names:
        raise FileFormatError(f"{path}: there must be at least one sample, got 0")
    _require_ranges(folder, names, counts)
    return names, counts


def _is_count(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= 15 and int(text) > 0


def _require_plausible(folder: Path, name: str, count: int) -> None:
    """Refuse a number of samples that the file cannot hold, before anybody draws an order of so many."""
    try:
        n_bytes = (folder / name).stat().st_size
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{folder / name}: a cache must hold an array for each variable, got: {error}") from error
    if count > n_bytes:
        raise FileFormatError(f"{folder / name}: there must be {count} samples, got a file of {n_bytes} bytes")


def _require_ranges(folder: Path, names: Sequence[str], counts: Sequence[int]) -> None:
    """Refuse an index that lost lines: files say in their names which samples they hold."""
    ranges = [_RANGE.fullmatch(name) for name in names]
    position = 0
    for name, count, match in zip(names, counts, ranges, strict=True):
        if match is None:  # names of another writer
            return
        if (int(match["start"]), int(match["end"])) != (position, position + count - 1):
            raise FileFormatError(
                f"{folder / _INDEX}: {name} must hold samples {position} to {position + count - 1}, got another name"
            )
        position += count
    prefixes = {match["prefix"] for match in ranges if match is not None}
    for path in folder.iterdir():
        match = _RANGE.fullmatch(path.name)
        if match is not None and match["prefix"] in prefixes and path.name not in set(names):
            raise FileFormatError(f"{folder / _INDEX}: all files of the cache must be listed, got none for {path.name}")


def _read_checksums(folder: Path, variables: list[str], names: list[str], counts: list[int]) -> list[int]:
    """The checksum of each file; an empty list for a cache of another writer."""
    path = folder / _CHECKSUMS
    if not path.exists():
        return []
    try:
        saved = json.loads(path.read_bytes())
        saved_variables, files = saved["variables"], [tuple(row) for row in saved["files"]]
        checksums = [checksum for _, _, checksum in files]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileFormatError(f"{path}: the file must hold checksums of the cache, got: {error}") from error
    if saved_variables != variables:
        raise FileFormatError(f"{folder / _INFO}: the variables must be {saved_variables}, got {variables}")
    if [row[:2] for row in files] != list(zip(names, counts, strict=True)):
        raise FileFormatError(f"{folder / _INDEX}: the files must be the {len(files)} that were saved, got other lines")
    return checksums


def _read_info(folder: Path) -> list[str]:
    path = folder / _INFO
    variables = [row[0] for _, row in _read_csv(path)]
    if not variables:
        raise FileFormatError(f"{path}: there must be a variable in each line, got an empty file")
    return variables


def _read_csv(path: Path) -> list[tuple[int, list[str]]]:
    """The rows that are not empty, with the numbers of their lines."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            return [(reader.line_num, row) for row in reader if row]
    except OSError as error:
        raise FileFormatError(f"{path}: a cache must have this file, got: {error}") from error
    except (ValueError, csv.Error) as error:
        raise FileFormatError(f"{path}: the file must be a table in UTF-8, got: {error}") from error
