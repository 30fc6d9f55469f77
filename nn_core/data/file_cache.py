"""Samples kept in files: each file holds some of them, one array a variable, saved one after another.

Beside the files lie cache_index.csv, with the name and the number of samples of each file, and cache_info.csv, with the
name of a variable in each line. The layout is NNabla's, so that caches can be shared. No pickle.
"""

import csv
import os
import shutil
import tempfile
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np

from nn_core.data.source import DataSource, OrderedDataSource, Rng, Sample
from nn_core.errors import FileFormatError
from nn_core.files import atomic_writer

#: Samples in one file.
SAMPLES_PER_FILE: Final = 100
#: Files whose samples are held in memory.
OPEN_FILES: Final = 32

_INDEX: Final = "cache_index.csv"
_INFO: Final = "cache_info.csv"


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
        FileFormatError: when the folder is not a cache.
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
        self._names = names
        self._ends = list(accumulate(counts))
        self._counts = counts
        self._open: OrderedDict[int, list[np.ndarray[Any, Any]]] = OrderedDict()
        super().__init__(self._ends[-1] if counts else 0, _read_info(self._folder), shuffle, rng)

    def _sample(self, index: int) -> Sample:
        number = bisect_right(self._ends, index)
        row = index - (self._ends[number - 1] if number else 0)
        return tuple(array[row] for array in self._arrays(number))

    def _arrays(self, number: int) -> list[np.ndarray[Any, Any]]:
        arrays = self._open.get(number)
        if arrays is None:
            arrays = self._open[number] = self._read(number)
            if len(self._open) > OPEN_FILES:
                self._open.popitem(last=False)
        else:
            self._open.move_to_end(number)
        return arrays

    def _read(self, number: int) -> list[np.ndarray[Any, Any]]:
        path = self._folder / self._names[number]
        arrays: list[np.ndarray[Any, Any]] = []
        try:
            with path.open("rb") as file:
                for _ in self._variables:
                    array = np.lib.format.read_array(file, allow_pickle=False)
                    if self._normalize and array.dtype == np.uint8:
                        array = array / np.float32(255)
                    arrays.append(array)
        except (OSError, ValueError, EOFError) as error:
            raise FileFormatError(f"{path}: a cache must hold an array for each variable, got: {error}") from error
        for array in arrays:
            if len(array) != self._counts[number]:
                raise FileFormatError(f"{path}: there must be {self._counts[number]} samples, got {len(array)}")
        return arrays

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
        self._own_folder = tempfile.mkdtemp() if cache_dir is None else None
        folder = Path(self._own_folder or os.fspath(cache_dir or ""))
        if not (folder / _INDEX).exists():
            write_cache(data_source, folder, cache_file_name_prefix)
        self._cache = CacheDataSource(folder)
        if self._cache.size != self._size:
            raise DataSourceWithFileCacheError(
                f"{folder}: the cache must have the {self._size} samples of the source, got {self._cache.size}"
            )

    def _sample(self, index: int) -> Sample:
        return self._cache._sample(index)

    def close(self) -> None:
        """Close the cache; remove its folder if it is not one that was given."""
        self._cache.close()
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)


def write_cache(
    data_source: DataSource, folder: Path, prefix: str = "cache", samples_per_file: int = SAMPLES_PER_FILE
) -> None:
    """Copy all samples of a source to a folder; the index is written last, so that a cache with one is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    index: list[tuple[str, int]] = []
    for start, samples in _portions(data_source, samples_per_file):
        name = f"{prefix}_{start:08d}_{start + len(samples) - 1:08d}.npy"
        with atomic_writer(folder / name) as file:
            for variable, values in zip(data_source.variables, zip(*samples, strict=True), strict=True):
                np.lib.format.write_array(file, _stacked(variable, values), allow_pickle=False)
        index.append((name, len(samples)))
    _write_csv(folder / _INFO, [[variable] for variable in data_source.variables])
    _write_csv(folder / _INDEX, index)


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


def _write_csv(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    text = "".join(",".join(str(value) for value in row) + "\n" for row in rows)
    with atomic_writer(path) as file:
        file.write(text.encode())


def _read_index(folder: Path) -> tuple[list[str], list[int]]:
    names: list[str] = []
    counts: list[int] = []
    for row in _read_csv(folder / _INDEX):
        if len(row) != 2 or not row[1].isdecimal() or Path(row[0]).name != row[0]:
            raise FileFormatError(f"{folder / _INDEX}: a line must hold a file name and a number, got {row}")
        names.append(row[0])
        counts.append(int(row[1]))
    return names, counts


def _read_info(folder: Path) -> list[str]:
    return [row[0] for row in _read_csv(folder / _INFO)]


def _read_csv(path: Path) -> list[list[str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [row for row in csv.reader(file) if row]
    except OSError as error:
        raise FileFormatError(f"{path}: a cache must have this file, got: {error}") from error
