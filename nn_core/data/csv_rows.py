"""The rows of a CSV file: its bytes, and where each row begins; cells are cut out when they are asked for."""

import csv
import os
import warnings
from array import array
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Iterator, Mapping
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final

import numpy as np

from nn_core.data.memory_map import Identity, identity_of
from nn_core.data.readers import FLOAT32_MAX
from nn_core.errors import FileFormatError, one_line
from nn_core.files.atomic import open_to_read

#: Bytes that are searched at a time: what is found out about them takes several times as much memory.
_CHUNK: Final = 1 << 24
_NEWLINE, _RETURN, _COMMA = b"\n\r,"


class CsvRows:
    """The rows of a CSV file that are not empty, the first of which names the columns.

    A file of numbers alone is an array in memory, others are in memory as they are. Another process reads the file again, and
    so does not get it through a pipe; threads share it.

    Args:
        path: The file, in UTF-8.

    Attributes:
        titles: The cells of the first row.
        values: The cells of the others in float32, where all of them hold numbers that it has; else None.

    Raises:
        MissingFileError: when there is no such file.
        FileFormatError: when it is empty or no table, or a row has another number of cells than the first.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = self._read()

    def _read(self) -> Identity:
        path = self._path
        with open_to_read(path) as file:
            identity = identity_of(path, os.fstat(file.fileno()))
            self._content = file.read()
        has_quotes = b'"' in self._content or self._content.count(b"\r") != self._content.count(b"\r\n")
        try:
            starts, numbers = (_quoted_records if has_quotes else _plain_lines)(self._content)
            if not has_quotes and np.max(starts[1::2] - starts[::2], initial=0) > csv.field_size_limit():
                has_quotes, (starts, numbers) = True, _quoted_records(self._content)
        except _TableError as error:
            raise FileFormatError(
                f"{path}: line {one_line(error)} must be part of a table in UTF-8, got: {one_line(error.__cause__)}"
            ) from error
        if not len(numbers):
            raise FileFormatError(f"{path}: the first line must name the columns, got an empty file")
        self._reads_quotes, self._starts, self._numbers = has_quotes, starts, numbers
        self.titles = self._cells(0)
        self._require_width(len(self.titles))
        self._length = len(numbers) - 1
        self.values = None if has_quotes else self._parsed()
        if self.values is not None:
            self._content, self._starts, self._numbers = b"", np.zeros(0, np.int64), range(0)
        return identity

    def __len__(self) -> int:
        return self._length

    def _parsed(self) -> Any:
        """Return the cells as numbers, which takes a tenth of the time of taking them one by one; None where some are none."""
        if not isinstance(self._numbers, range) or not self._length:  # there are empty lines between the rows
            return None
        values = np.empty((self._length, len(self.titles)), np.float32)
        starts = self._starts[2::2]
        first = 0
        while first < self._length:
            last = max(first + 1, int(np.searchsorted(starts, starts[first] + _CHUNK)))
            text = self._content[starts[first] : self._starts[2 * last + 1]].replace(b"\r", b"").replace(b"\n", b",")
            numbers = _numbers_in(text, values[first:last].size)
            if numbers is None:
                return None
            values[first:last] = numbers.reshape(-1, len(self.titles))
            first = last
        return values

    def row(self, index: int) -> tuple[int, list[str]]:
        """Return number of the line and cells of row `index`, from 0 after the titles."""
        return int(self._numbers[index + 1]), self._cells(index + 1)

    def _cells(self, number: int) -> list[str]:
        text = self._content[self._starts[2 * number] : self._starts[2 * number + 1]].decode()
        return next(csv.reader(StringIO(text, newline=""))) if self._reads_quotes else text.split(",")

    def _require_width(self, n_cells: int) -> None:
        """Compare the numbers of cells of all rows with that of the first."""
        for first, counts in self._counts():
            wrong = np.flatnonzero(counts != n_cells)
            if wrong.size:
                line, found = self._numbers[first + wrong[0]], counts[wrong[0]]
                raise FileFormatError(f"{self._path}: line {line} must have {n_cells} cells, got {found}")

    def _counts(self) -> Iterator[tuple[int, Any]]:
        """Yield the numbers of cells of the rows, from row `first` on."""
        if self._reads_quotes:
            for number in range(len(self._numbers)):
                yield number, np.array([len(self._cells(number))])
            return
        content = np.frombuffer(self._content, np.uint8)
        starts = self._starts[::2]
        first = 0
        while first < len(starts):
            last = max(first + 1, int(np.searchsorted(starts, starts[first] + _CHUNK)))
            begin, end = int(starts[first]), int(self._starts[2 * last - 1])
            commas = content[begin:end] == _COMMA
            yield first, np.add.reduceat(commas, starts[first:last] - begin, dtype=np.int32) + 1
            first = last

    def __getstate__(self) -> dict[str, Any]:
        """Return the file alone, which another process reads again."""
        return {"path": self._path, "identity": self._identity}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Read the file.

        Raises:
            FileFormatError: when it is another one by now.
        """
        self._path = state["path"]
        self._identity = self._read()
        if self._identity != state["identity"]:
            raise FileFormatError(f"{self._path}: the file must be the one that was opened, got another or a changed one")


def _numbers_in(text: bytes, count: int) -> Any:
    """As many numbers as are in a text with commas between them, where float32 has them; None where there are others."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # of NumPy, about what is no number
            numbers = np.fromstring(text, np.float64, sep=",")
    except (DeprecationWarning, ValueError):
        return None
    is_fit = numbers.size == count and not np.any(np.abs(numbers) > FLOAT32_MAX, where=np.isfinite(numbers))
    return numbers if is_fit else None


class _TableError(Exception):
    """The number of the line that is no part of a table; the cause says why."""


def _plain_lines(content: bytes) -> tuple[Any, Any]:
    """Begin and end of each line that is not empty, in turn, and the numbers of these lines."""
    _require_utf8(content)
    data = np.frombuffer(content, np.uint8)
    n_lines = content.count(b"\n") + (not content.endswith(b"\n"))
    places = np.zeros((n_lines, 2), np.int64)
    begin, end = places.T
    found = 0
    for start in range(0, len(content), _CHUNK):
        newlines = np.flatnonzero(data[start : start + _CHUNK] == _NEWLINE)
        end[found : found + len(newlines)] = newlines + start
        found += len(newlines)
    end[found:] = len(content)
    begin[1:] = end[:-1] + 1
    begin[:1] = len(BOM_UTF8) if content.startswith(BOM_UTF8) else 0
    if b"\r" in content:
        end -= (end > begin) & (data[np.maximum(end - 1, 0)] == _RETURN)
    is_full = end > begin
    if is_full.all():
        return places.ravel(), range(1, n_lines + 1)
    return places[is_full].ravel(), np.flatnonzero(is_full) + 1


def _require_utf8(content: bytes) -> None:
    if content.isascii():
        return
    decoder = getincrementaldecoder("utf-8")()
    for start in range(0, len(content), _CHUNK):
        try:
            decoder.decode(content[start : start + _CHUNK], final=start + _CHUNK >= len(content))
        except UnicodeDecodeError as error:
            raise _TableError(content.count(b"\n", 0, start + error.start) + 1) from error


def _quoted_records(content: bytes) -> tuple[Any, Any]:
    """`_plain_lines` of a file with quotes, in which a row may have several lines."""
    place = len(BOM_UTF8) if content.startswith(BOM_UTF8) else 0

    def lines() -> Iterator[str]:
        nonlocal place
        for line in TextIOWrapper(BytesIO(content), "utf-8-sig", newline=""):
            place += len(line.encode())
            yield line

    reader = csv.reader(lines())
    places, numbers, begin = array("q"), array("q"), place
    try:
        for row in reader:
            if row:
                places.extend((begin, place))
                numbers.append(reader.line_num)
            begin = place
    except (ValueError, csv.Error) as error:
        raise _TableError(reader.line_num + 1) from error
    return np.array(places, np.int64), numbers
