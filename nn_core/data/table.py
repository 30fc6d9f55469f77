"""Samples from tables in CSV files, as the Neural Network Console writes them."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from nn_core.data.csv_rows import CsvRows
from nn_core.data.readers import float32, known_extensions, normalized, reader_of
from nn_core.data.source import OrderedDataSource, Sample
from nn_core.engine.error_messages.refusal import described, fitted
from nn_core.errors import ArgumentError, FileFormatError, one_line
from nn_core.random import Rng

_COLUMN: Final = re.compile(r"(?P<variable>[^_:]+(?:_(?!_\d)[^_:]*)*)(?:__(?P<element>\d+))?(?::.*)?$")


class CsvDataSource(OrderedDataSource):
    """Samples from a CSV file.

    The first line names the columns: ``x`` for a variable, or ``x__0, x__1, ...`` for the elements of one; what follows
    a colon is a label. A cell holds a number, or the path of a file, relative to the CSV file: .npy, .csv, .wav of shape
    (samples, channels), or an image of shape (C, H, W).

    Args:
        filename: Path of the CSV file.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
        normalize: Divide arrays of 8-bit integers by 255, and those of 16 bits without a sign by 65535.

    Raises:
        MissingFileError: when there is no such file.
        FileFormatError: when the table is empty, a line has another number of cells than the first, or, at a sample, a cell
            is neither a number nor the path of an array.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("points.csv").write_text("x__0:width,x__1:height,y\\n1,2,0\\n3,4,1\\n")
        >>> source = CsvDataSource("points.csv")
        >>> source.size, list(source.variables)
        (2, ['x', 'y'])
        >>> source.next()
        (array([1., 2.], dtype=float32), array([0.], dtype=float32))
    """

    @fitted
    def __init__(
        self,
        filename: str | os.PathLike[str],
        shuffle: bool = False,
        rng: Rng | None = None,
        normalize: bool = False,
    ) -> None:
        if not isinstance(filename, (str, os.PathLike)):
            raise ArgumentError(f"CsvDataSource: the file must be given by its path, got {described(filename)}")
        self._path = Path(filename)
        self._normalize = normalize
        self._rows = CsvRows(self._path)
        self._titles = self._rows.titles
        self._columns = self._parse(self._titles)
        if not len(self._rows):
            raise FileFormatError(f"{filename}: there must be at least one sample, got 0")
        self._parts = [_part([position for position, _ in columns]) for columns in self._columns.values()]
        super().__init__(len(self._rows), tuple(self._columns), shuffle, rng)

    def _parse(self, header: list[str]) -> Mapping[str, list[tuple[int, bool]]]:
        """Return the columns of each variable, and whether each is an element of it."""
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
        values = self._rows.values
        if values is not None:
            row_of_numbers = values[index]
            return tuple([row_of_numbers[part] for part in self._parts])
        line, row = self._rows.row(index)
        sample: list[Any] = []
        for columns in self._columns.values():
            if columns[0][1]:
                values = [self._number(line, position, row[position]) for position, _ in columns]
                sample.append(np.array(values, np.float32))
            else:
                sample.append(self._cell(line, columns[0][0], row[columns[0][0]]))
        return tuple(sample)

    def _place(self, line: int, position: int) -> str:
        return f"{self._path}, line {line}, column {self._titles[position].strip()!r}"

    def _number(self, line: int, position: int, text: str) -> float:
        try:
            return float32(text)
        except ValueError as error:
            raise FileFormatError(
                f"{self._place(line, position)}: a cell of an element must hold a number, got {text!r}"
            ) from error

    def _cell(self, line: int, position: int, text: str) -> np.ndarray[Any, Any]:
        with suppress(ValueError):
            return np.array([float32(text)], np.float32)
        path = self._path.parent / text.strip()
        reader = reader_of(path.suffix.lower())
        if reader is None:
            raise FileFormatError(
                f"{self._place(line, position)}: a cell must hold a number or the path of one of "
                f"{', '.join(known_extensions())}, got {text!r}"
            )
        try:
            values = reader(path)
        except (OSError, ValueError, TypeError, OverflowError, EOFError) as error:
            raise FileFormatError(
                f"{self._place(line, position)}: {path}: the file must hold an array, got: {one_line(error)}"
            ) from error
        return normalized(values) if self._normalize else values


def _part(positions: list[int]) -> slice | list[int]:
    """Return the cells of a variable, as an index of a row."""
    first, stop = positions[0], positions[-1] + 1
    return slice(first, stop) if positions == list(range(first, stop)) else positions
