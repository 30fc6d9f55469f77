"""Launches of the kernels that work along rows; see ``kernels/cuda/rows.cuh``."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import Call, Refusal, Shape
from nn_ext_cuda.codegen.code import Code, part
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES, real_dtype, real_type
from nn_ext_cuda.codegen.layout import split_axes
from nn_ext_cuda.device.faults import TELL
from nn_ext_cuda.launch.program import Argument, Launch, Program

#: Blocks of a launch; with rows of one element that is 2^34 of them.
MAX_BLOCKS: Final = 2**31 - 1


def row_program(
    call: Call,
    file: str,
    function: str,
    shape: Shape,
    axis: int,
    places: Sequence[Argument],
    n_arrays: int,
    types: Mapping[str, str] | None = None,
    **defines: int,
) -> Program:
    """Return the program of one launch over the rows of an array of `shape` along `axis`; see `row_code` for `types`."""
    outer, length, inner = split_axes(shape, axis)
    n_rows = outer * inner
    if n_rows * length == 0:
        return Program([], n_arrays)
    by_rows = inner == 1
    code = row_code(file, function, call.dtype, types, BY_ROWS=int(by_rows), **defines)
    lanes = lanes_of(length) if by_rows else 8
    block = (lanes, 256 // lanes) if by_rows else (32, lanes)
    shared_bytes = 256 * ITEM_BYTES[real_dtype(call.dtype)]
    arguments = (np.int64(n_rows), np.int64(length), np.int64(inner), *places)
    return Program([Launch(code, (_n_blocks(shape, axis),), block, arguments, shared_bytes)], n_arrays)


def refuse_rows(shape: Shape, axis: int) -> Refusal | None:
    """Refuse more rows than one launch of `row_program` has blocks for."""
    if _n_blocks(shape, axis) <= MAX_BLOCKS:
        return None
    outer, length, inner = split_axes(shape, axis)
    return Refusal(f"takes up to {MAX_BLOCKS * _rows_of_block(length, inner)} rows of {length} elements, got {outer * inner}")


def _n_blocks(shape: Shape, axis: int) -> int:
    outer, length, inner = split_axes(shape, axis)
    return -(-outer * inner // _rows_of_block(length, inner))


def _rows_of_block(length: int, inner: int) -> int:
    return 256 // lanes_of(length) if inner == 1 else 32


def row_code(file: str, function: str, dtype: str, types: Mapping[str, str] | None = None, **defines: int) -> Code:
    """Return a function of a file that includes rows.cuh; `types` are names of C types besides T."""
    header = "".join(f"#define {name} {value}\n" for name, value in defines.items())
    header += "".join(f"typedef {own} {name};\n" for name, own in {"T": C_TYPES[dtype], **(types or {})}.items())
    header += TELL * defines.get("TELLS", 0)
    return Code(function, f"{header}{part('rows.cuh')}{part(file)}", real_type(dtype))


def lanes_of(length: int) -> int:
    """Return number of threads, of 256, that share a row of neighbouring elements: a power of two from 32 on."""
    lanes = 32
    while lanes < min(length, 256):
        lanes *= 2
    return lanes
