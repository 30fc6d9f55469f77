"""NumPy's format of one array, read without trust: a claim of more bytes than there are takes no memory."""

from math import prod
from typing import IO, Any

import numpy as np

from nn_core.errors import FileFormatError, one_line
from nn_core.files.entries import Array, require_numbers


def read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, "np.dtype[Any]"]:
    """Return the shape, whether the order is Fortran's, and the dtype of the array that starts here, and move to its numbers.

    Raises:
        ValueError: when no array starts here.
        FileFormatError: when the header is damaged, or the elements are not numbers.
    """
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, is_fortran, dtype = read(file)
    except Exception as error:  # headers are parsed as Python, whose parsers raise whatever comes up: a SyntaxError, a Warning
        raise FileFormatError(f"array {name} must have a header that NumPy writes, got: {one_line(error)}") from error
    if min(shape, default=0) < 0:
        raise FileFormatError(f"array {name} must have lengths of at least 0, got the shape {shape}")
    require_numbers(f"array {name}", dtype)
    return shape, is_fortran, dtype


def read_npy(file: IO[bytes], name: str, max_bytes: int) -> Array:
    """Return the array that starts at the present position of `file`.

    Args:
        file: Open for reading.
        name: Of the array, for messages.
        max_bytes: How many bytes the elements can have at most.

    Raises:
        ValueError: when no array starts here.
        FileFormatError: when the header is damaged, the elements are not numbers, or they are more than `max_bytes` hold.
    """
    shape, is_fortran, dtype = read_header(file, name)
    n_bytes = dtype.itemsize * prod(shape)
    data = file.read(n_bytes) if 0 <= n_bytes <= max_bytes else b""
    if len(data) != n_bytes:
        raise FileFormatError(f"array {name} of shape {shape} must be stored in full, got too few bytes")
    return np.frombuffer(bytearray(data), dtype).reshape(shape, order="F" if is_fortran else "C")
