"""Normalizations over rows of neighbouring elements: where a frame has such rows, and the launches over them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nn_core.ext import Call, Shape
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES, real, real_dtype
from nn_ext_cuda.codegen.rows import lanes_of, row_code
from nn_ext_cuda.launch.program import THREADS, Launch, Program

#: Elements of a row that a thread holds in registers at most.
_KEPT: Final = 8
#: Blocks that go through all rows, a few for each multiprocessor.
_BLOCKS: Final = 528
#: Rows so long, if they are so few, are divided between blocks instead.
_LONG: Final = 16384
_FEW: Final = 132


@dataclass(frozen=True, slots=True)
class Frame:
    """The layout of the arrays of a call: lengths of the axes, those of statistics, those of beta and gamma."""

    whole: Shape
    statistics: Shape
    parameters: Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of neighbouring elements that are normalized; see ``kernels/cuda/normalization.cu``."""

    n_rows: int
    length: int
    period: int
    stride: int
    run: int

    @property
    def kept(self) -> int:
        """Elements of a row that a thread holds; 0: more than it can."""
        keep = -(-self.length // lanes_of(self.length))
        return keep if keep <= _KEPT else 0

    @property
    def is_by_element(self) -> bool:
        """Whether there is a parameter for each element of a row, and threads hold their elements."""
        return self.period == 1 and self.run == 1 and self.stride == self.length and self.kept > 0

    @property
    def n_parts(self) -> int:
        """Rows of threads that go through all rows."""
        rows_of_block = THREADS // lanes_of(self.length)
        return min(-(-self.n_rows // rows_of_block), _BLOCKS) * rows_of_block


def rows_of(frame: Frame) -> Rows | None:
    """Return the rows that statistics are taken over, or None where these are not contiguous, or are few and long."""
    whole, statistics = frame.whole, frame.statistics
    n_kept = next((axis for axis, n in enumerate(statistics) if n == 1 and whole[axis] != 1), len(whole))
    if any(n != 1 for n in statistics[n_kept:]) or len(set(frame.parameters.values())) > 1:
        return None
    first, last = n_kept, n_kept
    for shape in frame.parameters.values():
        first, last = _varying(shape, n_kept)
        if (len(shape), shape[first:last]) != (len(whole), whole[first:last]):
            return None
    n_rows, length = math.prod(whole[:n_kept]), math.prod(whole[n_kept:])
    if n_rows * length == 0 or (length > _LONG and n_rows < _FEW):
        return None
    period = math.prod(whole[first:n_kept])
    return Rows(n_rows, length, period, math.prod(whole[n_kept:last]), math.prod(whole[last:]))


def _varying(shape: Shape, n_kept: int) -> tuple[int, int]:
    """Return the axes around `n_kept` from the first to the last one along which parameters vary."""
    varying = [axis for axis, n in enumerate(shape) if n != 1]
    return min([n_kept, *varying]), max([n_kept, *(axis + 1 for axis in varying)])


def row_gradients(call: Call, rows: Rows, places: Sequence[int | None], **defines: int) -> Launch:
    """Return the launch for gradients of rows with a parameter for each element; None stands for an array that is not
    given.
    """
    lanes = lanes_of(rows.length)
    code = row_code("normalization.cu", "normalize_rows_gradients", call.dtype, None, BY_ROWS=1, KEEP=rows.kept, **defines)
    pointers = [np.uint64(0) if place is None else place for place in places]
    arguments = (np.int64(rows.n_rows), np.int64(rows.length), real(call.dtype, call.args["eps"]), *pointers)
    rows_of_block = THREADS // lanes
    shared_bytes = THREADS * ITEM_BYTES[real_dtype(call.dtype)]
    return Launch(code, (rows.n_parts // rows_of_block,), (lanes, rows_of_block), arguments, shared_bytes)


def row_normalization(
    call: Call, rows: Rows, function: str, places: Sequence[int | None], n_arrays: int, **defines: int
) -> Program:
    """One launch over rows; None stands for an array that is not given."""
    lanes = lanes_of(rows.length)
    code = row_code("normalization.cu", function, call.dtype, None, BY_ROWS=1, KEEP=rows.kept, **defines)
    sizes = (rows.n_rows, rows.length, rows.period, rows.stride, rows.run)
    pointers = [np.uint64(0) if place is None else place for place in places]
    arguments = (*map(np.int64, sizes), real(call.dtype, call.args["eps"]), *pointers)
    shared_bytes = THREADS * ITEM_BYTES[real_dtype(call.dtype)]
    rows_of_block = THREADS // lanes
    grid = (-(-rows.n_rows // rows_of_block),)
    return Program([Launch(code, grid, (lanes, rows_of_block), arguments, shared_bytes)], n_arrays)
