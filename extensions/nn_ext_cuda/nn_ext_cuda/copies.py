"""Copies between views of arrays, as generated kernels.

A view is a NumPy array of the right shape and strides over memory that is never read: indexing it, turning it and
broadcasting it gives the shape, strides and offset of the elements that a function moves.
"""

import math
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from nn_core.ext import ArrayDesc
from nn_ext_cuda.code import Code, generated, length_parameters, unravelled
from nn_ext_cuda.dtypes import C_TYPES, ITEM_BYTES
from nn_ext_cuda.launch import Argument, Launch, Program, flat
from nn_ext_cuda.layout import length_arguments, merged, pitch

#: A stand-in for an array of a call: one byte an element, so that strides count elements.
View: TypeAlias = np.ndarray[Any, Any]
#: What items of a size are copied as.
_ITEMS: Final = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}


class Copies:
    """Collects copies between the arrays of a call.

    Args:
        arrays: Descriptions of all arrays of the call, None where absent; those present have items of one size.
    """

    def __init__(self, arrays: Sequence[ArrayDesc | None]) -> None:
        self._arrays = list(arrays)
        self._views: dict[int, View] = {}
        self._launches: list[Launch] = []

    def view(self, place: int) -> View:
        """The whole array at `place`."""
        if place not in self._views:
            desc = self._arrays[place]
            assert desc is not None
            self._views[place] = as_strided(np.empty(1, np.int8), desc.shape, pitch(desc.shape), writeable=False)
        return self._views[place]

    def fill(self, place: int, value: float = 0.0) -> None:
        """Set the array at `place`."""
        desc = self._arrays[place]
        assert desc is not None
        if desc.size:
            c_type = C_TYPES[desc.dtype]
            body = f"  {_LOOP} store(y[i], value);"
            code = generated("fill", ["const int64 n", f"{c_type}* y", "const R value"], body, "double")
            self._launches.append(flat(code, desc.size, [np.int64(desc.size), place, np.float64(value)]))

    def copy(self, source: int, read: View, target: int, written: View) -> None:
        """Copy what the view `read` shows of the array `source` to what `written` shows of `target`, with broadcasting."""
        read = np.broadcast_to(read, written.shape)
        if written.size == 0:
            return
        desc = self._arrays[target]
        assert desc is not None
        lengths, (from_strides, to_strides) = merged(written.shape, [read.strides, written.strides])
        code = copy_code(len(lengths), ITEM_BYTES[desc.dtype])
        arguments: list[Argument] = [np.int64(written.size), source, target]
        arguments += [np.int64(self._offset(source, read)), np.int64(self._offset(target, written))]
        arguments += length_arguments(lengths)
        arguments += [np.int64(stride) for stride in (*from_strides, *to_strides)]
        self._launches.append(flat(code, math.prod(written.shape), arguments))

    def program(self) -> Program:
        """All copies so far."""
        return Program(self._launches, len(self._arrays))

    def _offset(self, place: int, view: View) -> int:
        """The distance of the first element of `view` from that of the array."""
        return view.ctypes.data - self.view(place).ctypes.data


def copy_code(rank: int, item_bytes: int) -> Code:
    """The kernel that copies items over `rank` axes; strides may be negative or 0."""
    item = _ITEMS[item_bytes]
    parameters = ["const int64 n", f"const {item}* x", f"{item}* y", "const int64 x_start", "const int64 y_start"]
    parameters += length_parameters("n", rank)
    parameters += [f"const int64 {name}{axis}" for name in "xy" for axis in range(rank)]
    places = [" + ".join([f"{name}_start", *(f"i{axis} * {name}{axis}" for axis in range(rank))]) for name in "xy"]
    body = f"  {_LOOP} {{\n    {unravelled('i', 'n', rank)}\n    y[{places[1]}] = x[{places[0]}];\n  }}"
    return generated("copy", parameters, body, "float")


_LOOP: Final = "for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)"
