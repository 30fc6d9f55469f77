"""Values that files hold: arrays, tables of numbers, images, sounds. The extension of a file says which."""

from collections.abc import Callable, Mapping
from io import BytesIO
from math import isfinite
from os import PathLike
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.data.images import IMAGE_EXTENSIONS, read_stored_image
from nn_core.data.plugin_sources import offered_cell, offered_cells
from nn_core.data.sound import read_sound
from nn_core.files import open_to_read
from nn_core.files.entries import PathOrFile
from nn_core.files.npy import read_npy

Array: TypeAlias = np.ndarray[Any, Any]
#: A path, or a file open for reading.

#: The largest number of float32.
FLOAT32_MAX: Final = float(np.finfo(np.float32).max)
#: The divisors that scale arrays of integers to the range from 0 to 1.
_TOPS: Final = {"uint8": np.float32(255), "uint16": np.float32(65535)}


def float32(text: str) -> float:
    """Return the number in `text`.

    Raises:
        ValueError: when it is none, or one that float32 would make infinite.
    """
    number = float(text)
    if isfinite(number) and abs(number) > FLOAT32_MAX:
        raise ValueError(f"a number must be at most {FLOAT32_MAX}, got {text}")
    return number


def normalized(values: Array) -> Array:
    """Integers of 8 or 16 bits without a sign, mapped to 0 to 1 in float32; other arrays as they are."""
    top = _TOPS.get(values.dtype.name)
    return values if top is None else values / top


def contents_of(place: PathOrFile) -> bytes:
    """All bytes of a file, or what is left of one that is open."""
    if not isinstance(place, (str, PathLike)):
        return place.read()
    with open_to_read(place) as file:
        return file.read()


def read_array(place: PathOrFile) -> Array:
    """Return the array of a file in NumPy's format."""
    content = contents_of(place)
    return read_npy(BytesIO(content), str(getattr(place, "name", place)), len(content))


def read_table(place: PathOrFile) -> Array:
    """Return the numbers of a CSV file without a header, in float32; a row for each line."""
    text = contents_of(place).decode("utf-8-sig")
    lines = [line for line in text.splitlines() if line.partition("#")[0].strip()]
    if not lines:
        raise ValueError("an empty file")
    values = np.loadtxt(lines, np.float64, delimiter=",", ndmin=2)
    if np.any(np.abs(values) > FLOAT32_MAX, where=np.isfinite(values)):
        raise ValueError(f"a number above {FLOAT32_MAX}")
    return values.astype(np.float32)


#: The readers of files, by extension.
READERS: Final[Mapping[str, Callable[[PathOrFile], Array]]] = {
    ".npy": read_array,
    ".csv": read_table,
    ".wav": read_sound,
    **dict.fromkeys(IMAGE_EXTENSIONS, read_stored_image),
}


def reader_of(extension: str) -> Callable[[Any], Array] | None:
    """Return the reader of files with an extension, from here or from a plugin; None if there is none."""
    return READERS.get(extension) or offered_cell(extension)


def known_extensions() -> list[str]:
    """Return the extensions of the files that can be read."""
    return [*READERS, *offered_cells()]
