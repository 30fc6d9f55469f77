"""The files of a cache: some samples in each, one array a variable, in the format of NumPy or in HDF5."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from nn_core.errors import ArgumentError, FileFormatError, one_line
from nn_core.files.atomic import read_file
from nn_core.files.entries import Entry
from nn_core.files.formats import write_entries
from nn_core.files.hdf5 import read_hdf5, read_plainly
from nn_core.files.npy import read_npy

Array = np.ndarray[Any, Any]


class CacheFormat(NamedTuple):
    """How a file of a cache is written and read.

    Attributes:
        pack: Makes the contents of a file from arrays by variable.
        unpack: ``unpack(content, variables, is_known)`` gives the arrays of `variables`; `is_known` when the contents are
            known to be as they were written.
        tells_variables: Whether a file has the names of its arrays; if not, cache_info.csv has them.
    """

    pack: Callable[[Mapping[str, Array]], bytes]
    unpack: Callable[[bytes, Sequence[str], bool], list[Array]]
    tells_variables: bool


def _pack_npy(arrays: Mapping[str, Array]) -> bytes:
    content = io.BytesIO()
    for array in arrays.values():
        np.lib.format.write_array(content, array, allow_pickle=False)
    return content.getvalue()


def _unpack_npy(content: bytes, variables: Sequence[str], _is_known: bool) -> list[Array]:
    file = io.BytesIO(content)
    arrays = [read_npy(file, variable, len(content)) for variable in variables]
    if file.tell() != len(content):
        raise FileFormatError(f"there must be one array for each of {list(variables)}, got more")
    return arrays


def _pack_hdf5(arrays: Mapping[str, Array]) -> bytes:
    content = io.BytesIO()
    write_entries(content, {name: Entry(array) for name, array in arrays.items()}, ".h5")
    return content.getvalue()


def _unpack_hdf5(content: bytes, variables: Sequence[str], is_known: bool) -> list[Array]:
    found = _hdf5_arrays(content, is_known)
    missing = [variable for variable in variables if variable not in found]
    if missing or len(found) != len(variables):
        raise FileFormatError(f"there must be one array for each of {list(variables)}, got {sorted(found)}")
    return [found[variable] for variable in variables]


def _hdf5_arrays(content: bytes, is_known: bool) -> dict[str, Array]:
    entries = read_plainly(content) if is_known else read_hdf5(io.BytesIO(content))
    return {name: entry.values for name, entry in entries.items()}


#: The formats by the extensions of their files.
FORMATS: Final[Mapping[str, CacheFormat]] = {
    ".npy": CacheFormat(_pack_npy, _unpack_npy, tells_variables=False),
    ".h5": CacheFormat(_pack_hdf5, _unpack_hdf5, tells_variables=True),
}


def format_of(extension: str) -> CacheFormat:
    """Return the format of files with an extension.

    Raises:
        ArgumentError: when there is none.
    """
    if extension not in FORMATS:
        raise ArgumentError(f"a cache: the format of its files must be one of {', '.join(FORMATS)}, got {extension!r}")
    return FORMATS[extension]


def variables_of(content: bytes) -> list[str]:
    """Return the names of the datasets of a file in HDF5, in alphabetical order."""
    return sorted(_hdf5_arrays(content, is_known=False))


def read_cache_file(path: Path, variables: Sequence[str]) -> dict[str, Array]:
    """Return the arrays of a file by variable; its extension tells the format.

    Raises:
        FileFormatError: when the file is missing, damaged, or has other arrays.
    """
    with reading(path):
        arrays = format_of(path.suffix).unpack(read_file(path), variables, False)
    return dict(zip(variables, arrays, strict=True))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Tell of everything that is wrong with a file by one exception, which names the file."""
    try:
        yield
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error.__cause__
    except (OSError, ValueError, TypeError, ArithmeticError, LookupError, EOFError, RuntimeError) as error:  # h5py has all
        raise FileFormatError(f"{path}: a cache must hold an array for each variable, got: {one_line(error)}") from error
