"""Sums, extrema, products and moments of expressions over some axes, as generated kernels.

Threads of a block are laid out in two directions: along the elements that are kept and along those that are reduced.
Neighbouring threads take neighbouring memory: kept elements if the innermost axis is kept, reduced ones otherwise; each
reads 16 bytes at a time where the length of that axis and the addresses allow it. Where there are too few kept elements to
fill a device, the reduced ones are split between blocks, which write partial results that a second launch combines. No
atomic operation: the same input gives the same bits.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nn_core.ext import Shape
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES, real_dtype, real_type
from nn_ext_cuda.codegen.layout import broadcast_strides, length_arguments, merged
from nn_ext_cuda.codegen.operand import Operand, uses
from nn_ext_cuda.codegen.reduce_code import Plan, Reduction, n_merged, reduction_code
from nn_ext_cuda.launch.program import THREADS, Argument, Launch

#: Blocks that keep a large device busy, and turns of a thread that are worth a block of their own.
ENOUGH_BLOCKS: Final = 528
WORTH_A_BLOCK: Final = 8
MAX_GRID: Final = 65535
#: Bytes of shared memory in which the threads of a block combine their results.
_MOST_SHARED: Final = 32768


def reduction(
    wanted: Reduction, dtype: str, frame: Shape, axes: Sequence[int], partial_place: int
) -> tuple[list[Launch], list[tuple[Shape, str]]]:
    """Return the launches that reduce over `axes` of `frame`. What is read is read once for all results.

    Args:
        wanted: The arrays and expressions.
        dtype: Floating dtype of the call.
        frame: Lengths of all axes.
        axes: Those that are reduced.
        partial_place: The place of the first scratch array for partial results, if there are any.

    Returns:
        The launches, and the shape and dtype of the scratch arrays that they need.
    """
    groups = [axis for axis in range(len(frame)) if axis not in axes], list(axes)
    n_kept, n_reduced = (_product(frame, group) for group in groups)
    if n_kept == 0:
        return [], []
    by_rows, wide = _innermost(frame) in axes, real_dtype(dtype)
    plans = _plans(wanted.walked, frame, groups)
    pack = _pack_of(wanted, frame, plans[by_rows], ITEM_BYTES[wide])
    grid, block, splits = partition(n_kept, n_reduced, by_rows=by_rows, pack=pack)
    shape = (splits, n_kept)
    if splits == 1:
        return [_launch(wanted, dtype, (n_kept, n_reduced), plans, (grid, block), by_rows=by_rows, pack=pack)], []
    partials = [Operand(f"part_{k}", partial_place + k, wide, shape) for k in range(len(wanted.states))]
    own = replace(wanted, results=list(zip(partials, wanted.states, strict=True)), kept=())
    first = _launch(own, dtype, (n_kept, n_reduced), plans, (grid, block), by_rows=by_rows, pack=pack)
    rest = replace(wanted, kernel=f"{wanted.kernel}_rest", read=partials, stored=())
    plans = [((n_kept,), [(1,)] * len(partials)), ((splits,), [(n_kept,)] * len(partials))]
    second = _launch(rest, dtype, shape[::-1], plans, _partition_of_rest(n_kept, splits), merges=True)
    return [first, second], [(shape, wide)] * len(partials)


def _launch(
    wanted: Reduction,
    dtype: str,
    counts: tuple[int, int],
    plans: Sequence[Plan],
    form: tuple[tuple[int, int], tuple[int, int]],
    *,
    by_rows: bool = False,
    pack: int = 1,
    merges: bool = False,
) -> Launch:
    """Return the launch of a grid and blocks; `counts` are the numbers of kept and of reduced elements."""
    grid, block = form
    n_kept, n_reduced = counts
    text = " ".join([*wanted.summands.values(), *(value for _, value in (*wanted.stored, *wanted.results))])
    numbers = [(name, value) for name, value in wanted.numbers if uses(text, name)]
    wanted = replace(wanted, numbers=numbers)
    code = reduction_code(wanted, real_type(dtype), plans, by_rows=by_rows, pack=pack, merges=merges)
    chunk = -(-max(-(-n_reduced // grid[1]), 1) // pack) * pack
    arguments: list[Argument] = [np.uint32(n_kept), np.uint32(n_reduced), np.uint32(chunk)]
    arguments += [operand.place for operand in (*wanted.walked, *wanted.kept, *(target for target, _ in wanted.results))]
    arguments += [*(value for _, value in numbers), *_walk_arguments(plans)]
    columns = 1 if by_rows else pack
    shared_bytes = THREADS * columns * n_merged(wanted) * ITEM_BYTES[real_dtype(dtype)]
    return Launch(code, grid, block, tuple(arguments), shared_bytes)


def _product(frame: Shape, axes: Sequence[int]) -> int:
    return math.prod(frame[axis] for axis in axes)


def _innermost(frame: Shape) -> int:
    """Return the last axis that has more than one place."""
    return max((axis for axis, length in enumerate(frame) if length > 1), default=0)


def _plans(read: Sequence[Operand], frame: Shape, groups: Sequence[Sequence[int]]) -> list[Plan]:
    """Return how the arrays are walked along each group of axes."""
    strides = [broadcast_strides(operand.shape, frame) for operand in read]
    return [
        merged([frame[axis] for axis in group], [[stride[axis] for axis in group] for stride in strides]) for group in groups
    ]


def _pack_of(wanted: Reduction, frame: Shape, plan: Plan, real_bytes: int) -> int:
    """Return number of neighbouring elements that a thread takes at once: 16 bytes of the widest array of the frame's
    shape.
    """
    (lengths, _), whole = plan, [operand for operand in wanted.walked if operand.shape == tuple(frame)]
    if not lengths or not whole:
        return 1
    pack = 16 // max(ITEM_BYTES[operand.dtype] for operand in whole)
    while pack > 1 and (lengths[-1] % pack or pack * n_merged(wanted) * THREADS * real_bytes > _MOST_SHARED):
        pack //= 2
    return pack


def _walk_arguments(plans: Sequence[Plan]) -> Iterator[Argument]:
    """Yield the numbers of the plans, in the order of the parameters of the kernel."""
    for lengths, strides in plans:
        yield from length_arguments(lengths)
        yield from (np.uint32(stride) for own in strides for stride in own)


def _power_of_two(least: int, low: int, high: int) -> int:
    """Return the smallest power of 2 from `low` to `high` that is at least `least`, or `high`."""
    found = low
    while found < min(least, high):
        found *= 2
    return found


def partition(n_kept: int, n_reduced: int, *, by_rows: bool, pack: int = 1) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Grid, block, and between how many blocks the reduced elements are split.

    The second number of the grid is that of the splits; the block has its lanes of neighbouring memory first. A thread takes
    `pack` elements at a time.
    """
    if by_rows:
        lanes = _power_of_two(-(-n_reduced // pack), 32, THREADS)
        block = (lanes, THREADS // lanes)
        kept_of_block, reduced_of_turn = block[1], lanes * pack
    else:
        across = _power_of_two(-(-n_kept // pack), 1, 32)
        block = (across, THREADS // across)
        kept_of_block, reduced_of_turn = across * pack, block[1]
    blocks = -(-n_kept // kept_of_block)
    wanted = min(ENOUGH_BLOCKS // blocks, n_reduced // (WORTH_A_BLOCK * reduced_of_turn))
    splits = max(1, min(wanted, MAX_GRID))
    return (blocks, splits), block, splits


def _partition_of_rest(n_kept: int, splits: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Grid and block of the launch that combines partial results: little memory, so that few turns count most."""
    lanes = _power_of_two(splits, 1, 64)
    across = THREADS // lanes
    return (-(-n_kept // across), 1), (across, lanes)
