"""Samples in Parquet files, a few groups of rows at a time."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.data.blocks import Blocks
from nn_core.data.file_patterns import Files, files_of
from nn_core.data.images import read_stored_image
from nn_core.data.sound import read_sound
from nn_core.data.source import OrderedDataSource, Sample
from nn_core.engine.error_messages.refusal import checked_count, fitted, fitted_methods
from nn_core.errors import ArgumentError, FileFormatError, one_line
from nn_core.files.atomic import require_regular
from nn_core.random import Rng

#: Makes an array of the bytes of a cell.
Decoder: TypeAlias = Callable[[bytes], Any]

#: The decoders that have names.
DECODERS: Final[Mapping[str, Decoder]] = {
    "image": lambda content: read_stored_image(BytesIO(content)),
    "sound": lambda content: read_sound(BytesIO(content)),
}
#: Files that are open at the same time.
_MOST_OPEN: Final = 16


@fitted_methods()
class ParquetDataSource(OrderedDataSource):
    """Rows of Parquet files, of which a few groups of rows are in memory at a time. Needs the package pyarrow.

    Args:
        path: The file; or a folder, a pattern such as ``"train/*.parquet"``, or several of them, whose files have the same
            columns.
        variables: Names of columns; None: all.
        shuffle: Reshuffle for each epoch: first the order of the groups of rows, then that within each `window` of them, so
            that a group is read once an epoch.
        rng: Generator of the orders; None: one with a fixed seed.
        window: How many groups are in memory, and mixed by `shuffle`. A process that reads for others has as many of its own.
        decode: For columns of bytes, or of records with the field ``bytes`` as Hugging Face has them, "image" (arrays of shape
            (C, H, W)), "sound" (of shape (samples, channels)), or a function of the bytes.

    Columns of numbers give numbers, lists give arrays; lists of different lengths need ``DataIterator(padding=0)``. Integers
    and lists must not be null; a null floating-point number is NaN.

    Raises:
        MissingFileError: when there is no file.
        FileFormatError: when a file cannot be read or lacks a column, or, at a sample, its group is damaged.
        ArgumentError: when `window` is less than 1, or `decode` names a column or decoder that there is not.
        ImportError: when pyarrow is not installed.

    Example:
        >>> import pyarrow, pyarrow.parquet
        >>> for number in range(2):
        ...     table = pyarrow.table({"x": [[1.0, 2.0], [3.0, 4.0]], "y": [0, number]})
        ...     pyarrow.parquet.write_table(table, f"part-{number}.parquet")
        >>> source = ParquetDataSource("part-*.parquet", shuffle=True, window=2)
        >>> source.size, source.variables
        (4, ('x', 'y'))
    """

    @fitted
    def __init__(
        self,
        path: Files,
        variables: Sequence[str] | None = None,
        shuffle: bool = False,
        rng: Rng | None = None,
        window: int = 1,
        decode: Mapping[str, str | Decoder] | None = None,
    ) -> None:
        self._window = checked_count("ParquetDataSource: window", window)
        self._paths = files_of("ParquetDataSource", path, (".parquet",))
        self._open: OrderedDict[int, Any] = OrderedDict()
        self._held: OrderedDict[int, list[Any]] = OrderedDict()
        names = None if variables is None else tuple(variables)
        #: the file and the number within it of each group
        self._groups: list[tuple[int, int]] = []
        sizes: list[int] = []
        for number in range(len(self._paths)):
            names, rows = self._described(number, names)
            self._groups += [(number, group) for group in range(len(rows))]
            sizes += rows
        assert names is not None
        self._ends = list(accumulate(sizes))
        self._decode = _decoders(decode or {}, names)
        super().__init__(self._ends[-1] if sizes else 0, names, shuffle, rng)

    def _described(self, number: int, names: tuple[str, ...] | None) -> tuple[tuple[str, ...], list[int]]:
        """Return the wanted columns, and the rows of each group of a file."""
        path = self._paths[number]
        try:
            file = self._file(number)
            known = file.schema_arrow.names
            rows = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{path}: the file must be a Parquet file, got: {one_line(error)}") from error
        wanted = tuple(known) if names is None else names
        if not set(wanted) <= set(known):
            raise FileFormatError(f"{path}: the file must have the columns {list(wanted)}, got {known}")
        return wanted, rows

    def blocks(self) -> Blocks:
        """Return the groups of rows."""
        return Blocks(np.repeat(np.arange(len(self._ends)), np.diff(self._ends, prepend=0)), self._window)

    def _file(self, number: int) -> Any:
        file = self._open.get(number)
        if file is None:
            try:
                parquet = import_module("pyarrow.parquet")
            except ImportError as error:
                raise ImportError(
                    f"Parquet files: pyarrow must be installed, got: {error}\n  hint: pip install 'nn-core[parquet]'"
                ) from error
            require_regular(self._paths[number])
            file = self._open[number] = parquet.ParquetFile(self._paths[number])
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)[1].close()
        return file

    def _sample(self, index: int) -> Sample:
        number = bisect_right(self._ends, index)
        group = self._held.get(number)
        if group is None:
            while len(self._held) >= self._window:  # before the next one is read: no more are ever in memory
                self._held.popitem(last=False)
            group = self._held[number] = self._read(number)
        row = index - (self._ends[number - 1] if number else 0)
        if not self._decode:
            return tuple([column[row] for column in group])
        return tuple([self._value(number, row, name, column) for name, column in zip(self._variables, group, strict=True)])

    def _value(self, number: int, row: int, name: str, column: Any) -> Any:
        decode = self._decode.get(name)
        if decode is None:
            return column[row]
        content = column[row].as_py()
        content = content.get("bytes") if isinstance(content, dict) else content
        try:
            if content is None:
                raise ValueError("nothing")
            return decode(content)
        except (OSError, ValueError, TypeError, EOFError) as error:
            path, group = self._place(number)
            raise FileFormatError(
                f"{path}, group {group}, row {row}, column {name}: must be decoded, got: {one_line(error)}"
            ) from error

    def _read(self, number: int) -> list[Any]:
        path, group = self._place(number)
        try:
            table = self._file(self._groups[number][0]).read_row_group(group, columns=list(self._variables))
            columns = [(name, table.column(name)) for name in self._variables]
            return [column if name in self._decode else _as_array(name, column) for name, column in columns]
        except (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:  # pyarrow has all
            raise FileFormatError(f"{path}, group {group}: the rows must be readable, got: {one_line(error)}") from error

    def _place(self, number: int) -> tuple[Path, int]:
        file, group = self._groups[number]
        return self._paths[file], group

    def __getstate__(self) -> dict[str, Any]:
        """Without open files, which another process opens for itself, and what was read."""
        return {**self.__dict__, "_open": OrderedDict(), "_held": OrderedDict()}

    def close(self) -> None:
        """Close the files; reading opens them again."""
        self._held.clear()
        while self._open:
            self._open.popitem()[1].close()


def _decoders(decode: Mapping[str, str | Decoder], names: Sequence[str]) -> dict[str, Decoder]:
    unknown = sorted(set(decode) - set(names))
    if unknown:
        raise ArgumentError(f"ParquetDataSource: decode must be of the columns {list(names)}, got {unknown}")
    found: dict[str, Decoder] = {}
    for name, how in decode.items():
        if isinstance(how, str) and how not in DECODERS:
            raise ArgumentError(f"ParquetDataSource: decode must be a function or one of {', '.join(DECODERS)}, got {how!r}")
        found[name] = partial(_decoded_by_name, how) if isinstance(how, str) else how
    return found


def _decoded_by_name(name: str, content: bytes) -> Any:
    """Return a function that pickles, which those of the table do not."""
    return DECODERS[name](content)


def _as_array(name: str, column: Any) -> Any:
    """Return a column of numbers, or of lists of numbers: an array, or a list of arrays where they differ in length."""
    _require_values(name, column)
    if not hasattr(column.type, "value_type"):
        return np.asarray(column.to_numpy())
    return _lists(name, column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))


def _require_values(name: str, column: Any) -> None:
    """Refuse nulls, except where they read as NaN."""
    kind = str(column.type)
    if column.null_count and not kind.startswith(("float", "double", "halffloat")):
        raise ValueError(f"{column.null_count} null in the column {name} of {kind}")


def _lists(name: str, lists: Any) -> Any:
    count = len(lists)
    flat = lists.flatten()
    _require_values(name, flat)
    if hasattr(lists.type, "list_size"):
        ends = np.arange(1, count + 1) * lists.type.list_size
    else:
        offsets = lists.offsets.to_numpy()
        ends = offsets[1:] - offsets[0]
    lengths = np.diff(ends, prepend=0)
    values = _lists(name, flat) if hasattr(flat.type, "value_type") else flat.to_numpy(zero_copy_only=False)
    if count and isinstance(values, np.ndarray) and (lengths == lengths[0]).all():
        return values.reshape(count, int(lengths[0]), *values.shape[1:])
    return [values[end - length : end] for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]
