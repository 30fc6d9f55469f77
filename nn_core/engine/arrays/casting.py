"""dtypes by name, and the conversion of numbers from one to another on the host."""

import functools
from typing import Any, Final

import numpy as np

from nn_core.errors import ArgumentError, DTypeError
from nn_core.typing import Array

#: dtypes of whole numbers to which the processor converts too large numbers without saying so.
NARROW: Final = frozenset({"int8", "int16", "uint8", "uint16", "uint32", "uint64"})


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype called `name`; bfloat16 comes with the package ml_dtypes.

    Raises:
        DTypeError: for bfloat16, when ml_dtypes is not installed.

    Example:
        >>> from nn_core.ext import dtype_of
        >>> dtype_of("bfloat16").itemsize
        2
    """
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError as error:
            raise DTypeError("dtype bfloat16 needs the package ml_dtypes; run: pip install ml_dtypes") from error
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


@functools.lru_cache(maxsize=64)
def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a NumPy dtype, which NumPy puts together anew each time."""
    return dtype.name


def cast(source: Array, target: Array, exact: bool = False) -> None:
    """Write `source` over `target` in the dtype of `target`, both arrays of the host; `exact`: see `SyncedArray.read`.

    Raises:
        ArgumentError: when numbers that are not finite, or too large, would have to become whole numbers, and with `exact`
            fractions.
    """
    if target.dtype.kind not in "iu" or np.can_cast(source.dtype, target.dtype):
        with np.errstate(over="ignore"):  # infinite where the dtype does not go as far
            np.copyto(target, source, casting="unsafe")
        return
    if not _write_whole(source, target):
        least, most = _ends(source)
        raise ArgumentError(
            f"numbers read as {target.dtype.name}, as indices and labels are, must be finite and within its range, got "
            f"values from {least} to {most}"
        )
    if exact and source.dtype.kind in "fV":
        is_whole = np.trunc(source) == source  # compares four times faster than integers with floating-point numbers
        if not is_whole.all():
            raise not_whole(target.dtype.name, source[~is_whole][0])


def not_whole(dtype: str, value: Any) -> ArgumentError:
    """Return the refusal of a number that is not whole."""
    return ArgumentError(f"numbers read as {dtype}, as indices and labels are, must be whole numbers, got {value}")


def _write_whole(source: Array, target: Array) -> bool:
    """Write `source` over `target`, an array of integers; return False if a number is not finite or out of its range."""
    # the processor reports this itself for floating-point sources, except where the target is narrow
    if source.size and (source.dtype.kind != "f" or target.dtype.name in NARROW):
        bounds = np.iinfo(target.dtype)
        least, most = _ends(source)
        if not (least > bounds.min - 1 and most < bounds.max + 1):
            return False
    try:
        with np.errstate(invalid="raise"):
            np.copyto(target, source, casting="unsafe")
    except FloatingPointError:
        return False
    return True


def _ends(source: Array) -> tuple[Any, Any]:
    """Return the least and the largest number; both are NaN where one is."""
    with np.errstate(invalid="ignore"):  # bfloat16 tells of NaN
        least, most = source.min(), source.max()
    # numbers of bfloat16 cannot be compared with large integers
    return (float(least), float(most)) if source.dtype.kind == "V" else (least, most)


def in_dtype(value: float, dtype: str) -> complex:
    """Return `value` as `cast` gives it in `dtype`."""
    number = np.empty((), dtype_of(dtype))
    cast(np.asarray(value, "float64"), number)
    result: complex = number.item()
    return result


def is_held(value: float, dtype: str) -> bool:
    """Return whether a dtype has the number itself, and no other one close by."""
    try:
        return in_dtype(value, dtype) == value
    except ArgumentError:
        return False


def misses(value: float, dtype: str) -> bool:
    """Return whether a dtype of whole numbers or truths does not have a number."""
    return dtype_of(dtype).kind in "iub" and not is_held(value, dtype)
