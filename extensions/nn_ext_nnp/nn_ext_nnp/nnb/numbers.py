"""Types of the numbers of variables in NNB files, and numbers in them."""

import re
from dataclasses import dataclass
from math import frexp
from typing import Any, Final

import numpy as np

from nn_core.ext import ArgumentError, FileFormatError
from nn_ext_nnp.wire import in_shape

Array = np.ndarray[Any, Any]

NAMES: Final = ("FLOAT32", "FIXED16", "FIXED8", "SIGN")
FLOAT32, FIXED16, FIXED8, SIGN = range(4)
_DTYPES: Final = {FLOAT32: np.dtype("<f4"), FIXED16: np.dtype("<i2"), FIXED8: np.dtype("<i1")}
_WRITTEN: Final = re.compile(r"(FLOAT32|FIXED16|FIXED8|SIGN)(?:_(\d{1,9}))?")
#: Four bits hold the number of binary digits after the point.
_MOST_DIGITS: Final = 15


@dataclass(frozen=True, slots=True)
class NumberType:
    """A type of numbers.

    Attributes:
        code: place in `NAMES`.
        fraction: binary digits after the point; None: as many as the values leave.
    """

    code: int = FLOAT32
    fraction: int | None = None

    @property
    def name(self) -> str:
        """Its name, with the digits: "FIXED16_8"."""
        return NAMES[self.code] if self.fraction is None else f"{NAMES[self.code]}_{self.fraction}"

    @property
    def n_bytes(self) -> int:
        """Bytes of a number."""
        return _DTYPES[self.code].itemsize if self.code in _DTYPES else 1


PLAIN: Final = NumberType()


def type_named(text: str, where: str) -> NumberType:
    """Return the type called FLOAT32, FIXED16, FIXED16_<digits after the point>, FIXED8, FIXED8_<digits> or SIGN.

    Raises:
        ArgumentError: when it is something else.
    """
    match = _WRITTEN.fullmatch(text)
    fixed = match is not None and match[1].startswith("FIXED")
    if match is None or (match[2] is not None and (not fixed or int(match[2]) > _MOST_DIGITS)):
        raise ArgumentError(
            f"{where} must be FLOAT32, SIGN, FIXED16 or FIXED8, the last two also as FIXED16_<digits after the point, to 15>, "
            f"got {text!r}"
        )
    return NumberType(NAMES.index(match[1]), None if match[2] is None else int(match[2]))


def encoded(values: Array, kind: NumberType, where: str) -> tuple[bytes, int]:
    """Values as bytes, and the number of binary digits after the point.

    Raises:
        ArgumentError: when the values are too large for the type, or no numbers.
    """
    if kind.code == FLOAT32:
        return values.astype("<f4").tobytes(), 0
    if not np.isfinite(values).all():
        raise ArgumentError(f"{where} must have finite values for {NAMES[kind.code]}, got others")
    if kind.code == SIGN:
        return np.packbits(values.ravel() > 0, bitorder="little").tobytes(), 0
    fraction = _fraction(values, kind) if kind.fraction is None else kind.fraction
    if fraction < 0:
        raise ArgumentError(f"{where} must have values that fit into {NAMES[kind.code]}, got {np.abs(values).max()}")
    dtype = _DTYPES[kind.code]
    limits = np.iinfo(dtype)
    scaled = np.rint(values.astype(np.float64) * 2.0**fraction)
    return np.clip(scaled, limits.min, limits.max).astype(dtype).tobytes(), fraction


def _fraction(values: Array, kind: NumberType) -> int:
    """Return the binary digits that remain after those of the largest magnitude and the sign."""
    top = float(np.abs(values).max(initial=0.0))
    whole = max(frexp(top)[1], 0) + 1
    return 8 * kind.n_bytes - whole


def decoded(data: bytes, shape: tuple[int, ...], code: int, fraction: int, where: str) -> Array:
    """Bytes as values of float32.

    Raises:
        FileFormatError: when there is no such type, the bytes are not those of the shape, or no array has the shape.
    """
    if code >= len(NAMES):
        raise FileFormatError(f"{where}: the type must be a code from 0 to {len(NAMES) - 1}, got {code}")
    count = 1
    for length in shape:
        count *= length
    needed = -(-count // 8) if code == SIGN else count * _DTYPES[code].itemsize
    if len(data) != needed + -needed % 4:
        raise FileFormatError(f"{where}: a parameter of the shape {shape} must have {needed} bytes, got {len(data)}")
    if code == SIGN:
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:count]
        return in_shape(np.where(bits, np.float32(1), np.float32(-1)), shape, where)
    stored = in_shape(np.frombuffer(data, _DTYPES[code], count), shape, where)
    values = np.asarray(stored.astype(np.float32))
    return values if code == FLOAT32 else values * np.float32(2.0**-fraction)
