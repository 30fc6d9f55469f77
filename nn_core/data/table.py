"""Samples from tables in CSV files, as the Neural Network Console writes them."""

import csv
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from nn_core.data.source import OrderedDataSource, Rng, Sample
from nn_core.errors import FileFormatError

_COLUMN: Final = re.compile(r"(?P<variable>[^_:]+(?:_(?!_\d)[^_:]*)*)(?:__(?P<element>\d+))?(?::.*)?$")


class CsvDataSource(OrderedDataSource):
    """Samples from a CSV file.

    The first line names the columns: ``x`` for a variable, or ``x__0, x__1, ...`` for the elements of one; what follows
    a colon is a label. A cell holds a number, or the path of a file, relative to the CSV file: .npy or .csv.

    Args:
        filename: Path of the CSV file.
        shuffle: Draw the order anew for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
        normalize: Divide arrays of 8-bit integers by 255.

    Raises:
        FileFormatError: when the table is empty, or a line has another number of cells than the first.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        shuffle: bool = False,
        rng: Rng | None = None,
        normalize: bool = False,
    ) -> None:
        self._path = Path(filename)
        self._normalize = normalize
        with self._path.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
        if not lines:
            raise FileFormatError(f"{filename}: the first line must name the columns, got an empty file")
        self._columns = self._parse(lines[0])
        self._rows = lines[1:]
        for number, row in enumerate(self._rows):
            if len(row) != len(lines[0]):
                raise FileFormatError(f"{filename}: line {number + 2} must have {len(lines[0])} cells, got {len(row)}")
        super().__init__(len(self._rows), tuple(self._columns), shuffle, rng)

    def _parse(self, header: list[str]) -> Mapping[str, list[tuple[int, bool]]]:
        """The columns of each variable, and whether each is an element of it."""
        columns: dict[str, list[tuple[int, bool]]] = {}
        for position, title in enumerate(header):
            match = _COLUMN.match(title.strip().lstrip("# "))
            if match is None:
                raise FileFormatError(f"{self._path}: a column must be called x or x__0, got {title!r}")
            columns.setdefault(match["variable"], []).append((position, match["element"] is not None))
        for variable, found in columns.items():
            if len(found) > 1 and not all(is_element for _, is_element in found):
                raise FileFormatError(f"{self._path}: variable {variable} must have one column, got {len(found)}")
        return columns

    def _sample(self, index: int) -> Sample:
        row = self._rows[index]
        sample: list[Any] = []
        for columns in self._columns.values():
            if columns[0][1]:
                values = [self._number(row[position]) for position, _ in columns]
                sample.append(np.array(values, np.float32))
            else:
                sample.append(self._cell(row[columns[0][0]]))
        return tuple(sample)

    def _number(self, text: str) -> float:
        try:
            return float(text)
        except ValueError as error:
            raise FileFormatError(f"{self._path}: a cell of an element must hold a number, got {text!r}") from error

    def _cell(self, text: str) -> np.ndarray[Any, Any]:
        try:
            return np.array([float(text)], np.float32)
        except ValueError:
            pass
        path = self._path.parent / text.strip()
        reader = _READERS.get(path.suffix.lower())
        if reader is None:
            raise FileFormatError(
                f"{self._path}: a cell must hold a number or the path of one of {', '.join(_READERS)}, got {text!r}"
            )
        try:
            values = reader(path)
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{path}: the file must hold an array, got: {error}") from error
        return values / np.float32(255) if self._normalize and values.dtype == np.uint8 else values


def _read_npy(path: Path) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = np.load(path, allow_pickle=False)
    return values


def _read_csv(path: Path) -> np.ndarray[Any, Any]:
    return np.loadtxt(path, np.float32, delimiter=",", ndmin=2)


_READERS: Final[Mapping[str, Callable[[Path], np.ndarray[Any, Any]]]] = {".npy": _read_npy, ".csv": _read_csv}
