"""Named arrays as files hold them, and the checksums that are stored with them."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final, TypeAlias

import numpy as np

from nn_core.engine.error_messages.refusal import fitted_constructor
from nn_core.errors import FileFormatError
from nn_core.files.memory_file import crc32

Array: TypeAlias = np.ndarray[Any, Any]
PathOrFile: TypeAlias = str | os.PathLike[str] | IO[bytes]


@fitted_constructor
@dataclass(slots=True)
class Entry:
    """One array of a file and the plain values stored with it.

    `group` belongs to the HDF5 group that holds the array, and has no place in the other formats.

    Attributes:
        values: The array.
        attributes: Strings, numbers and booleans by name.
        is_own: Whether nobody else has the array, which is in C order and in the byte order of the machine.

    Example:
        >>> from nn_core.files import Entry
        >>> Entry(np.zeros((2, 3)), {"need_grad": True}).values.shape
        (2, 3)
    """

    values: Array
    attributes: dict[str, Any] = field(default_factory=dict)
    group: dict[str, Any] = field(default_factory=dict)
    is_own: bool = False


#: Arrays by '/'-separated name, in the order in which they are to be listed.
Entries: TypeAlias = dict[str, Entry]

#: Kinds of dtypes that files may hold: booleans, integers, floating-point numbers.
NUMBERS: Final = "biuf"
_MAX_ITEM_BYTES: Final = 8


def checksum(name: str, entry: Entry) -> str:
    """Eight hexadecimal digits (CRC-32) of the name, dtype, shape, attributes and elements of an entry."""
    values = np.ascontiguousarray(entry.values)
    values = values.astype(values.dtype.newbyteorder("<"), copy=False)
    attributes = [[[key, _plain(value)] for key, value in sorted(part.items())] for part in (entry.attributes, entry.group)]
    head = json.dumps([name, values.dtype.name, list(entry.values.shape), attributes])
    return f"{crc32(values.data, crc32(head.encode())):08x}"


def _plain(value: Any) -> Any:
    """`value` as it is read again: HDF5 gives NumPy's scalars for Python's numbers, and 1 for True in some versions."""
    if isinstance(value, str):
        return value
    number = np.asarray(value).item()
    return float(number) if isinstance(number, float) else int(number)


def verify(entries: Mapping[str, Entry], checksums: Mapping[str, Any]) -> None:
    """Compare what was read with the checksums of the file.

    Raises:
        FileFormatError: when an array is missing, is not one of those that were saved, or has changed.
    """
    require_names(entries, checksums)
    for name, entry in entries.items():
        if checksum(name, entry) != checksums[name]:
            raise FileFormatError(f"array {name} must be as it was saved, got another checksum: the file is damaged")


def require_names(found: Iterable[str], saved: Iterable[str]) -> None:
    """Refuse a file that lost, gained or renamed arrays after it was saved."""
    found, saved = set(found), set(saved)
    changes = [*(f"no {name}" for name in sorted(saved - found)), *(f"also {name}" for name in sorted(found - saved))]
    if changes:
        listed = ", ".join(changes[:8]) + (f" and {len(changes) - 8} more differences" if len(changes) > 8 else "")
        raise FileFormatError(f"the file must hold the arrays that were saved, got {listed}")


def is_number(dtype: np.dtype[Any]) -> bool:
    """Tell whether files may hold such an array; the long doubles of C have as many bits as the machine likes."""
    return dtype.kind in NUMBERS and dtype.itemsize <= _MAX_ITEM_BYTES


def require_numbers(what: str, dtype: np.dtype[Any]) -> None:
    """Refuse an array of anything but booleans, integers and floating-point numbers."""
    if not is_number(dtype):
        raise FileFormatError(f"{what} must hold plain numbers, got {dtype}")
