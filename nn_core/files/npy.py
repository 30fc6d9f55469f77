"""NumPy's format of one array, read without trust: a claim of more bytes than there are takes no memory."""

import re
import sys
from math import prod
from typing import IO, Any, Final

import numpy as np

from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import FileFormatError, quoted
from nn_core.files.entries import Array, is_number

#: The bytes that tell the length of the header, by version of the format.
_LENGTH_BYTES: Final = {1: 2, 2: 4, 3: 4}
#: As many as NumPy's own reader takes; an array of 64 axes needs less than 2,000.
_MAX_HEADER_BYTES: Final = 10_000
#: An item of the dictionary, as Python writes it.
_ITEM: Final = re.compile(
    r"""\s*(['"])(\w+)\1\s*:\s*('[^'\\]*'|"[^"\\]*"|\[[^\]]*\]|True|False|\([-\d\sL,]*\))\s*(?:,|(?=\}))"""
)
_KEYS: Final = {"descr", "fortran_order", "shape"}
_BOOLEANS: Final = {"False": False, "True": True}
_DTYPE: Final = re.compile(r"['\"]([<>=|]?[A-Za-z]+\d{0,4})['\"]")


def read_header(file: IO[bytes], name: str, words: bool = False) -> tuple[tuple[int, ...], bool, "np.dtype[Any]"]:
    """Return the shape, whether the order is Fortran's, and the dtype of the array that starts here, and move to its elements.

    NumPy's own reader gives the text to Python's parser, which no stranger's text should reach, and which raises a SystemError
    in CPython 3.11 when two threads parse.

    Raises:
        ValueError: when no array starts here.
        FileFormatError: when the header is damaged, or the elements are not numbers, nor, with `words`, texts.
    """
    major, _ = np.lib.format.read_magic(file)
    n_bytes = int.from_bytes(file.read(_LENGTH_BYTES.get(major, 0)), "little")
    header = file.read(min(n_bytes, _MAX_HEADER_BYTES))
    text = header.decode("latin1")
    try:
        items = _items(text if len(header) == n_bytes else "")
        shape, is_fortran = _shape(items["shape"]), _BOOLEANS[items["fortran_order"]]
    except (KeyError, ValueError) as error:
        raise FileFormatError(f"array {name} must have a header that NumPy writes, got {quoted(text)}") from error
    if min(shape, default=0) < 0:
        raise FileFormatError(f"array {name} must have lengths of at least 0, got the shape {shape}")
    return shape, is_fortran, _dtype(name, items["descr"], words)


def _items(text: str) -> dict[str, str]:
    """Return the items of a dictionary that Python wrote, as texts; none when there is anything else in the text."""
    text = text.strip()
    found, position = {}, 1
    while item := _ITEM.match(text, position):
        found[item[2]], position = item[3], item.end()
    return found if text[:1] == "{" and text[position:].strip() == "}" and found.keys() == _KEYS else {}


def _shape(text: str) -> tuple[int, ...]:
    lengths = text[1:-1].split(",")
    if text[0] != "(" or (len(lengths) == 1 and lengths[0].strip()):
        raise ValueError("no tuple")
    if not lengths[-1].strip():
        lengths.pop()
    return tuple(int(length.strip().removesuffix("L")) for length in lengths)  # Python 2 writes 3L


def _dtype(name: str, text: str, words: bool) -> "np.dtype[Any]":
    known = _DTYPE.fullmatch(text)
    try:
        dtype = np.dtype(known[1]) if known else None
    except TypeError:
        dtype = None
    if dtype is None or not (is_number(dtype) or (words and dtype.kind in "SU" and dtype.itemsize)):
        raise FileFormatError(f"array {name} must hold plain numbers, got {dtype or quoted(text[1:-1])}")
    return dtype


@fitted
def read_npy(file: IO[bytes], name: str, max_bytes: int, words: bool = False) -> Array:
    """Return the array that starts at the present position of `file`.

    Args:
        file: Open for reading.
        name: Of the array, for messages.
        max_bytes: How many bytes the elements can have at most.
        words: Take arrays of texts, too.

    Raises:
        ValueError: when no array starts here.
        FileFormatError: when the header is damaged, the elements are not numbers, or they are more than `max_bytes` hold.

    Example:
        >>> from io import BytesIO
        >>> from nn_core.ext import read_npy
        >>> file = BytesIO()
        >>> np.save(file, np.eye(2))
        >>> file.seek(0)
        0
        >>> read_npy(file, "weights", max_bytes=32).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    shape, is_fortran, dtype = read_header(file, name, words)
    n_bytes = dtype.itemsize * prod(shape)
    data = file.read(n_bytes) if 0 <= n_bytes <= max_bytes else b""
    if len(data) != n_bytes:
        raise FileFormatError(f"array {name} of shape {shape} must be stored in full, got too few bytes")
    if dtype.kind == "U" and np.any(np.frombuffer(data, dtype.str[0] + "u4") > sys.maxunicode):
        raise FileFormatError(f"array {name} must hold characters of Unicode, got numbers above {sys.maxunicode:#x}")
    return np.frombuffer(bytearray(data), dtype).reshape(shape, order="F" if is_fortran else "C")
