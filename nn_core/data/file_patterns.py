"""Files by patterns: one, several, a folder, or names with ``*`` and ``{000..127}``."""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from nn_core.errors import MissingFileError

#: A path, a folder, a pattern, or several of them.
Files: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_RANGE: Final = re.compile(r"(\d+)\.\.(\d+)")


def files_of(function: str, files: Files, extensions: tuple[str, ...]) -> list[Path]:
    """Return the files that are meant, in the order given; those of a folder or a pattern are sorted.

    Args:
        function: Start of messages.
        files: A path; a folder, below which all files with one of the extensions are meant, except for those whose names
            begin with ``_`` or ``.``; a pattern with ``*``, ``?``, ``[...]``, ``**``, or ``{00..63}`` and ``{a,b}`` as
            WebDataset has them; or several of them.
        extensions: The extensions, with their dots.

    Raises:
        MissingFileError: when one of them means no file.
    """
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    found = [
        path for item in given for name in _with_braces(os.fspath(item)) for path in _matching(function, name, extensions)
    ]
    if not found:
        raise MissingFileError(f"{function}: there must be at least one file, got none", "")
    return found


def _with_braces(name: str) -> Iterator[str]:
    match = _BRACES.search(name)
    if match is None or Path(name).exists():
        yield name
        return
    for choice in _choices(match[1]):
        yield from _with_braces(name[: match.start()] + choice + name[match.end() :])


def _choices(text: str) -> Iterable[str]:
    """Return the names that braces stand for, one after the other: the first file that does not exist ends them."""
    numbers = _RANGE.fullmatch(text)
    if numbers is None:
        return text.split(",")
    first, last = numbers[1], numbers[2]
    return (str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))


def _matching(function: str, name: str, extensions: tuple[str, ...]) -> list[Path]:
    path = Path(name)
    if path.is_dir():
        below = (file for file in path.rglob("*") if file.suffix.lower() in extensions and file.is_file())
        found = sorted(file for file in below if not file.name.startswith(("_", ".")))
    elif path.exists() or not glob.has_magic(name):
        found = [path]
    else:
        found = sorted(map(Path, glob.glob(name, recursive=True)))  # noqa: PTH207  # Path.glob needs a folder to start from
    if not found or not found[0].exists():
        raise MissingFileError(f"{function}: files must exist, got none for {name!r}", name)
    return found
