"""Launches of the kernels that work along rows; see ``kernels/cuda/rows.cuh``."""

from collections.abc import Mapping, Sequence

import numpy as np

from nn_core.ext import Call, Shape
from nn_ext_cuda.code import Code, part
from nn_ext_cuda.dtypes import C_TYPES, ITEM_BYTES, real_dtype, real_type
from nn_ext_cuda.faults import TELL
from nn_ext_cuda.launch import Argument, Launch, Program
from nn_ext_cuda.layout import split_axes


def row_program(
    call: Call,
    file: str,
    function: str,
    shape: Shape,
    axis: int,
    places: Sequence[Argument],
    n_arrays: int,
    **defines: int,
) -> Program:
    """The program of one launch over the rows of an array of `shape` along `axis`."""
    outer, length, inner = split_axes(shape, axis)
    n_rows = outer * inner
    if n_rows * length == 0:
        return Program([], n_arrays)
    by_rows = inner == 1
    code = row_code(file, function, call.dtype, None, BY_ROWS=int(by_rows), **defines)
    lanes = lanes_of(length) if by_rows else 8
    block = (lanes, 256 // lanes) if by_rows else (32, lanes)
    rows_of_block = 256 // lanes
    shared_bytes = 256 * ITEM_BYTES[real_dtype(call.dtype)]
    arguments = (np.int64(n_rows), np.int64(length), np.int64(inner), *places)
    return Program([Launch(code, (-(-n_rows // rows_of_block),), block, arguments, shared_bytes)], n_arrays)


def row_code(file: str, function: str, dtype: str, types: Mapping[str, str] | None = None, **defines: int) -> Code:
    """A function of a file that includes rows.cuh; `types` are names of C types besides T."""
    header = "".join(f"#define {name} {value}\n" for name, value in defines.items())
    header += "".join(f"typedef {own} {name};\n" for name, own in {"T": C_TYPES[dtype], **(types or {})}.items())
    header += TELL * defines.get("TELLS", 0)
    return Code(function, f"{header}{part('rows.cuh')}{part(file)}", real_type(dtype))


def lanes_of(length: int) -> int:
    """Number of threads, of 256, that share a row of neighbouring elements: a power of two from 32 on."""
    lanes = 32
    while lanes < min(length, 256):
        lanes *= 2
    return lanes
