"""NdArrays as flat arrays of one dtype, and back."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from nn_core.communicators.group import Circle
from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import HOST
from nn_core.errors import ArgumentError, DTypeError, ShapeError
from nn_core.typing import Array

#: dtypes that cross between processes, and those in which they are added up.
SUMS: Final = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
}
CODES: Final = {name: number for number, name in enumerate((*SUMS, "bool"), 1)}
NAMES: Final = {number: name for name, number in CODES.items()}


def listed(call: str, data: Any) -> list[NdArray]:
    """Return `data`, an NdArray or several, as a list.

    Raises:
        ArgumentError: when something else is among them.
    """
    arrays = [data] if isinstance(data, NdArray) else list(data)
    for array in arrays:
        if not isinstance(array, NdArray):
            hint = "\n  hint: pass variable.grad or variable.data" if hasattr(array, "grad") else ""
            raise ArgumentError(f"{call}: data must be NdArrays, got {type(array).__name__}{hint}")
    return arrays


def code_of(call: str, array: NdArray) -> int:
    """Return the number of an array's dtype; 0 when nothing was written to it.

    Raises:
        DTypeError: for a dtype that does not cross between processes.
    """
    if array.is_unwritten:
        return 0
    code = CODES.get(array.synced.dtype)
    if code is None:
        raise DTypeError(f"{call}: arrays must be of {', '.join(CODES)}, got {array.synced.dtype}")
    return code


def flat_of(arrays: Sequence[NdArray], dtype: str) -> Array:
    """Return the values of several arrays one after the other, in memory of their own."""
    flat = np.empty(sum(array.size for array in arrays), dtype_of(dtype))
    for array, part in parts_of(arrays, flat):
        part[...] = array.read(HOST, dtype)
    return flat


def memory_of(arrays: Sequence[NdArray], dtype: str) -> Array | None:
    """Return the memory of a single array that is added up in its own dtype, to be changed in place; else None."""
    if len(arrays) != 1 or SUMS[dtype] != dtype:
        return None
    raw = arrays[0].readwrite(HOST, dtype)
    return raw.reshape(-1) if raw.flags.c_contiguous else None


def write_flat(arrays: Sequence[NdArray], flat: Array, dtypes: Sequence[str]) -> None:
    """Write the values of several arrays, which `flat` holds one after the other, to the arrays."""
    for (array, part), dtype in zip(parts_of(arrays, flat), dtypes, strict=True):
        array.write(HOST, dtype)[...] = part


def copy_array(source: NdArray, target: NdArray) -> None:
    """Give `target` the values and the dtype of `source`, which has as many elements."""
    if source.shape == target.shape:
        target.copy_from(source)
    else:
        dtype = source.dtype.name
        write_flat([target], flat_of([source], dtype), [dtype])


@lru_cache(256)
def subject_of(sizes: tuple[int, ...], division: bool, inplace: bool, dst: int | None) -> str:
    """Return the properties of a reduction that all ranks must agree on, as a text."""
    return f"{_text_of_sizes(sizes)} {division} {inplace} {dst}"


def shapes_of(arrays: Sequence[NdArray]) -> str:
    """Return the numbers of elements, which tell lists of arrays apart."""
    return _text_of_sizes(tuple([array.size for array in arrays]))


def _text_of_sizes(sizes: tuple[int, ...]) -> str:
    return f"{len(sizes)} arrays, {sum(sizes)} elements, {hash(sizes) & 0xFFFF:04x}"


def parts_of(arrays: Sequence[NdArray], flat: Array) -> Iterator[tuple[NdArray, Array]]:
    """Each array with its part of `flat`, in its shape."""
    start = 0
    for array in arrays:
        yield array, flat[start : start + array.size].reshape(array.shape)
        start += array.size


def one_for_each(call: str, ndarray_list: Sequence[NdArray], ndarray: NdArray, circle: Circle) -> list[NdArray]:
    """Return the arrays of a list that has one for each rank of a group, all of the size of `ndarray`.

    Raises:
        ArgumentError: when the list has another length.
        ShapeError: when the sizes differ.
    """
    arrays = listed(call, ndarray_list)
    if not isinstance(ndarray, NdArray):
        listed(call, ndarray)
    if len(arrays) != circle.size:
        raise ArgumentError(
            f"{call}: ndarray_list must have one array for each of the {circle.size} ranks of group {circle.name!r}, "
            f"got {len(arrays)}"
        )
    sizes = [array.size for array in arrays]
    if sizes != [ndarray.size] * len(sizes):
        raise ShapeError(f"{call}: all arrays must have one size, got {ndarray.size} and a list of {sizes}")
    return arrays
