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
from nn_ext_cuda.codegen.code import Code, generated, length_parameters, unravelled
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES
from nn_ext_cuda.codegen.layout import length_arguments, merged, pitch
from nn_ext_cuda.launch.program import Argument, Launch, Program, flat

#: A stand-in for an array of a call: one byte an element, so that strides count elements.
View: TypeAlias = np.ndarray[Any, Any]
#: The C types as which items of a size are copied.
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
        """Return the whole array at `place`."""
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
        turned = turned_axes(lengths, from_strides, to_strides)
        if turned is not None:
            offsets = self._offset(source, read), self._offset(target, written)
            strides = from_strides, to_strides
            self._launches.append(tiled(ITEM_BYTES[desc.dtype], (source, target), offsets, lengths, strides, turned))
            return
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
        """Return the distance of the first element of `view` from that of the array."""
        return view.ctypes.data - self.view(place).ctypes.data


def copy_code(rank: int, item_bytes: int) -> Code:
    """Return the kernel that copies items over `rank` axes; strides may be negative or 0."""
    item = _ITEMS[item_bytes]
    parameters = ["const int64 n", f"const {item}* x", f"{item}* y", "const int64 x_start", "const int64 y_start"]
    parameters += length_parameters("n", rank)
    parameters += [f"const int64 {name}{axis}" for name in "xy" for axis in range(rank)]
    places = [" + ".join([f"{name}_start", *(f"i{axis} * {name}{axis}" for axis in range(rank))]) for name in "xy"]
    body = f"  {_LOOP} {{\n    {unravelled('i', 'n', rank)}\n    y[{places[1]}] = x[{places[0]}];\n  }}"
    return generated("copy", parameters, body, "float")


def turned_axes(lengths: Sequence[int], read: Sequence[int], written: Sequence[int]) -> tuple[int, int] | None:
    """Return the axis along which elements are neighbours where they are written, and that where they are read.

    None where these are the same, or so short that tiles would be empty for the most part.
    """
    if len(lengths) < 2 or written[-1] != 1 or 1 not in read[:-1]:
        return None
    axes = len(lengths) - 1, read.index(1)
    return axes if min(lengths[axis] for axis in axes) >= _TILE // 4 else None


def tiled(
    item_bytes: int,
    places: tuple[int, int],
    starts: tuple[int, int],
    lengths: Sequence[int],
    strides: tuple[Sequence[int], Sequence[int]],
    axes: tuple[int, int],
) -> Launch:
    """Return a copy by square tiles in shared memory, so that neighbouring threads both read and write neighbouring
    elements.
    """
    others = [axis for axis in range(len(lengths)) if axis not in axes]
    rest = [lengths[axis] for axis in others]
    tiles = [-(-lengths[axis] // _TILE) for axis in axes]
    arguments: list[Argument] = [*places, *map(np.int64, starts)]
    arguments += [np.uint32(number) for pair in zip((lengths[axis] for axis in axes), tiles, strict=True) for number in pair]
    arguments += [np.int64(own[axis]) for axis in axes for own in strides]
    arguments += length_arguments(rest)
    arguments += [np.int64(own[axis]) for own in strides for axis in others]
    code = tiled_code(len(rest), item_bytes)
    return Launch(code, (math.prod(tiles) * math.prod(rest),), (_TILE, _TILE // 4), tuple(arguments))


def tiled_code(rank: int, item_bytes: int) -> Code:
    """Return the kernel for `rank` axes beside the two of the tiles: a is that along which is written, b that of reading."""
    item = _ITEMS[item_bytes]
    parameters = [f"const {item}* x", f"{item}* y", "const int64 x_start", "const int64 y_start"]
    parameters += [f"const uint32 {name}" for name in ("a_length", "a_tiles", "b_length", "b_tiles")]
    parameters += [f"const int64 {name}" for name in ("x_a", "y_a", "x_b", "y_b")]
    parameters += length_parameters("n", rank)
    parameters += [f"const int64 {name}{axis}" for name in "xy" for axis in range(rank)]
    starts = [" + ".join([f"{name}_start", *(f"r{axis} * {name}{axis}" for axis in range(rank))]) for name in "xy"]
    body = f"""\
  __shared__ {item} tile[{_TILE}][{_TILE + 1}];
  const uint32 a_first = blockIdx.x % a_tiles * {_TILE}, b_first = blockIdx.x / a_tiles % b_tiles * {_TILE};
  const uint32 r = blockIdx.x / a_tiles / b_tiles;
  {unravelled("r", "n", rank)}
  const {item}* from = x + ({starts[0]});
  {item}* to = y + ({starts[1]});
  for (uint32 k = threadIdx.y; k < {_TILE}; k += blockDim.y) {{
    const uint32 a = a_first + k, b = b_first + threadIdx.x;
    if (a < a_length && b < b_length) tile[k][threadIdx.x] = from[a * x_a + b * x_b];
  }}
  __syncthreads();
  for (uint32 k = threadIdx.y; k < {_TILE}; k += blockDim.y) {{
    const uint32 a = a_first + threadIdx.x, b = b_first + k;
    if (a < a_length && b < b_length) to[a * y_a + b * y_b] = tile[threadIdx.x][k];
  }}"""
    return generated("copy_tiles", parameters, body, "float")


#: Side of a tile.
_TILE: Final = 32
_LOOP: Final = "for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)"
