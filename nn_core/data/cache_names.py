"""Names in the tables of a cache: of its files and its variables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError
from nn_core.files.paths import why_not_below

#: Characters for which a cell of a table is quoted, and those that the name of a file in the index cannot have.
_QUOTED: Final = frozenset(',"\r\n')
_PARTED: Final = frozenset("/\\") | _QUOTED


def require_prefix(folder: Path, prefix: str) -> None:
    """Refuse a prefix by which files would be elsewhere, or could not be listed in the index."""
    if not isinstance(prefix, str):
        raise ArgumentError(f"cache: the prefix must be a string, got {described(prefix)}")
    problem = why_not_below(folder, f"{prefix}_{0:08d}_{0:08d}.npy")
    if problem or not _PARTED.isdisjoint(prefix):
        raise ArgumentError(f"cache: the prefix must be the beginning of a file's name, got {problem or repr(prefix)}")


def is_file_name(name: str, folder: Path) -> bool:
    """Tell whether an index may have a name of a file in the folder of a cache."""
    return Path(name).name == name and not why_not_below(folder, f"./{name}")


def as_csv(rows: Sequence[Sequence[Any]]) -> bytes:
    """Return rows of plain values as the contents of a CSV file."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in rows).encode()


def _cell(value: Any) -> str:
    text = str(value)  # `csv.writer` does not quote a carriage return if lines end with a line feed
    return text if _QUOTED.isdisjoint(text) else '"{}"'.format(text.replace('"', '""'))
