"""Sums, extrema and products of expressions over some axes, as generated kernels.

Threads of a block are laid out in two directions: along the elements that are kept and along those that are reduced.
Neighbouring threads take neighbouring memory: kept elements if the innermost axis is kept, reduced ones otherwise. Where
there are too few kept elements to fill a device, the reduced ones are split between blocks, which write partial results
that a second launch combines. No atomic operation: the same input gives the same bits.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from nn_core.ext import Shape
from nn_ext_cuda.code import Code, generated, in_real, length_parameters, unravelled
from nn_ext_cuda.dtypes import ITEM_BYTES, real_dtype, real_type
from nn_ext_cuda.launch import Argument, Launch
from nn_ext_cuda.layout import broadcast_strides, length_arguments, merged
from nn_ext_cuda.operand import Operand

#: The code that combines two values, and the value that it starts from.
COMBINE: Final[Mapping[str, tuple[str, str]]] = {
    "sum": ("a + b", "R(0)"),
    "product": ("a * b", "R(1)"),
    "maximum": ("larger(a, b)", "-R(infinity())"),
    "minimum": ("smaller(a, b)", "R(infinity())"),
}
#: Blocks that keep a large device busy, and reduced elements that are worth a block of their own.
ENOUGH_BLOCKS: Final = 528
WORTH_A_BLOCK: Final = 4096
MAX_GRID: Final = 65535
#: Merged lengths of a group of axes, and the strides of each array on them.
_Plan: TypeAlias = tuple[Sequence[int], Sequence[Sequence[int]]]


def reduction(
    kernel: str,
    dtype: str,
    expressions: Sequence[str],
    read: Sequence[Operand],
    targets: Sequence[Operand],
    frame: Shape,
    axes: Sequence[int],
    partial_place: int,
    *,
    numbers: Sequence[tuple[str, Argument]] = (),
    combine: str = "sum",
    finish: str = "a",
) -> tuple[list[Launch], list[tuple[Shape, str]]]:
    """The launches that reduce each of `expressions` over `axes` of `frame` and store ``finish`` (of the result a).

    What is read is read once for all of them.

    Args:
        kernel: Name of the kernel.
        dtype: Floating dtype of the call.
        expressions: In the names of what is read and of the numbers.
        read: Arrays that they name; each has the rank of `frame` and broadcasts to it.
        targets: The result of each, C-contiguous over the kept axes; all have one shape.
        frame: Lengths of all axes.
        axes: Those that are reduced.
        partial_place: The place of the first scratch array for partial results, if there are any.
        numbers: Further names of the expression, and their values.
        combine: A key of COMBINE.
        finish: An expression of a, and of `numbers`.

    Returns:
        The launches, and the shape and dtype of the scratch arrays that they need, one for each expression or none.
    """
    groups = [axis for axis in range(len(frame)) if axis not in axes], list(axes)
    n_kept, n_reduced = (_product(frame, group) for group in groups)
    if n_kept == 0:
        return [], []
    by_rows = _innermost(frame) in axes
    grid, block, splits = partition(n_kept, n_reduced, by_rows=by_rows)
    shape, wide = (splits, n_kept), real_dtype(dtype)
    partials = [Operand(f"part_{k}", partial_place + k, wide, shape) for k in range(len(expressions))]
    whole = splits == 1
    written, last = (targets, finish) if whole else (partials, "a")
    names, values = (list(parts) for parts in zip(*numbers, strict=True)) if numbers else ([], [])
    plans, real_name = _plans(read, frame, groups), real_type(dtype)
    code = reduction_code(kernel, real_name, expressions, read, written, names, plans, combine, last, by_rows)
    chunk = max(-(-n_reduced // splits), 1)
    arguments: list[Argument] = [np.uint32(n_kept), np.uint32(n_reduced), np.uint32(chunk)]
    arguments += [*_places(read, written), *values, *_walk_arguments(plans)]
    shared_bytes = block[0] * block[1] * ITEM_BYTES[real_dtype(dtype)]
    first = Launch(code, grid, block, tuple(arguments), shared_bytes)
    if whole:
        return [first], []
    plans = [((n_kept,), [(1,)] * len(partials)), ((splits,), [(n_kept,)] * len(partials))]
    summands = _names(partials)
    code = reduction_code(f"{kernel}_rest", real_name, summands, partials, targets, names, plans, combine, finish, False)
    grid, block, _ = partition(n_kept, 1, by_rows=False)
    arguments = [np.uint32(n_kept), np.uint32(splits), np.uint32(splits)]
    arguments += [*_places(partials, targets), *values, *_walk_arguments(plans)]
    rest = Launch(code, grid, block, tuple(arguments), shared_bytes)
    return [first, rest], [(shape, wide)] * len(partials)


def _places(*groups: Sequence[Operand]) -> list[Argument]:
    return [operand.place for group in groups for operand in group]


def _names(operands: Sequence[Operand]) -> list[str]:
    return [operand.name for operand in operands]


def _product(frame: Shape, axes: Sequence[int]) -> int:
    return math.prod(frame[axis] for axis in axes)


def _innermost(frame: Shape) -> int:
    """The last axis that has more than one place."""
    return max((axis for axis, length in enumerate(frame) if length > 1), default=0)


def _plans(read: Sequence[Operand], frame: Shape, groups: Sequence[Sequence[int]]) -> list[_Plan]:
    """How the arrays are walked along each group of axes."""
    strides = [broadcast_strides(operand.shape, frame) for operand in read]
    return [
        merged([frame[axis] for axis in group], [[stride[axis] for axis in group] for stride in strides]) for group in groups
    ]


def _walk_arguments(plans: Sequence[_Plan]) -> Iterator[Argument]:
    """The numbers of the plans, in the order of the parameters of the kernel."""
    for lengths, strides in plans:
        yield from length_arguments(lengths)
        yield from (np.uint32(stride) for own in strides for stride in own)


def partition(n_kept: int, n_reduced: int, *, by_rows: bool) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Grid, block, and between how many blocks the reduced elements are split.

    The second number of the grid is that of the splits; the block has its lanes of neighbouring memory first.
    """
    if by_rows:
        lanes = 32
        while lanes < min(n_reduced, 256):
            lanes *= 2
        block = (lanes, 256 // lanes)
        kept_of_block, reduced_of_block = block[1], lanes
    else:
        block = (32, 8)
        kept_of_block, reduced_of_block = block
    blocks = -(-n_kept // kept_of_block)
    wanted = min(ENOUGH_BLOCKS // blocks, n_reduced // max(WORTH_A_BLOCK, reduced_of_block))
    splits = max(1, min(wanted, MAX_GRID))
    return (blocks, splits), block, splits


def reduction_code(
    kernel: str,
    real_name: str,
    expressions: Sequence[str],
    read: Sequence[Operand],
    written: Sequence[Operand],
    numbers: Sequence[str],
    plans: Sequence[_Plan],
    combine: str,
    finish: str,
    by_rows: bool,
) -> Code:
    """The kernel; `plans` are the merged axes and strides of the kept and of the reduced elements."""
    combined, start = COMBINE[combine]
    parameters, walks, loads = _walks(read, written, numbers, plans)
    kept, reduced = ("y", "x") if by_rows else ("x", "y")
    sums, added = _accumulated(expressions, combined, start)
    stored = "\n".join(
        f"    {{ const R a = sums[{number}]; store(reduced_{number}[at], R({in_real(finish)})); }}"
        for number in range(len(written))
    )
    body = f"""\
  extern __shared__ R shared_[];
  const uint32 k = blockIdx.x * blockDim.{kept} + threadIdx.{kept};
  const uint32 lane = threadIdx.{reduced}, lanes = blockDim.{reduced};
  const uint32 end = min(n_reduced, (blockIdx.y + 1) * chunk);
  {sums}
  if (k < n_kept) {{
    {walks[0]}
    for (uint32 r = blockIdx.y * chunk + lane; r < end; r += lanes) {{
      {walks[1]}
      {loads}
      {added}
    }}
  }}
#pragma unroll
  for (int each = 0; each < {len(written)}; ++each) {{
    R& a = sums[each];
    if (each) __syncthreads();
{_joined(combined, by_rows)}
  }}
  if (lane == 0 && k < n_kept) {{
    const int64 at = blockIdx.y * int64(n_kept) + k;
{stored}
  }}"""
    return generated(kernel, parameters, body, real_name)


def _walks(
    read: Sequence[Operand], written: Sequence[Operand], numbers: Sequence[str], plans: Sequence[_Plan]
) -> tuple[list[str], list[str], str]:
    """The parameters, the statements that find a kept and a reduced element, and those that read it."""
    parameters = ["const uint32 n_kept", "const uint32 n_reduced", "const uint32 chunk"]
    parameters += [f"const {operand.c_type}* {operand.name}_" for operand in read]
    parameters += [f"{operand.c_type}* reduced_{number}" for number, operand in enumerate(written)]
    parameters += [f"const R {name}" for name in numbers]
    offsets: list[list[str]] = []
    walks: list[str] = []
    for letter, (lengths, _) in zip("kr", plans, strict=True):
        rank = len(lengths)
        parameters += length_parameters(f"{letter}n", rank)
        parameters += [f"const uint32 {operand.name}_{letter}{axis}" for operand in read for axis in range(rank)]
        walks.append(unravelled(letter, f"{letter}n", rank))
        offsets.append([" + ".join(f"{letter}{a} * {operand.name}_{letter}{a}" for a in range(rank)) for operand in read])
    loads = "\n      ".join(
        f"const R {operand.name} = R(load({operand.name}_[{' + '.join(filter(None, places)) or '0'}]));"
        for operand, *places in zip(read, *offsets, strict=True)
    )
    return parameters, walks, loads


def _accumulated(expressions: Sequence[str], combined: str, start: str) -> tuple[str, str]:
    """The declaration of one accumulator for each expression, and the statements that take in one element."""
    sums = f"R sums[{len(expressions)}] = {{{', '.join([start] * len(expressions))}}};"
    added = "\n      ".join(
        f"{{ R& a = sums[{number}]; const R b = R({in_real(expression)}); a = {combined}; }}"
        for number, expression in enumerate(expressions)
    )
    return sums, added


def _joined(combined: str, by_rows: bool) -> str:
    """Statements that combine the values `a` of all lanes of a row, for its first lane.

    Lanes that are neighbours are whole warps, which exchange values without memory.
    """
    if not by_rows:
        return f"""\
  R* own = shared_ + threadIdx.x * lanes;
  own[lane] = a;
  for (uint32 half = lanes / 2; half > 0; half /= 2) {{
    __syncthreads();
    if (lane < half) {{
      const R b = own[lane + half];
      a = {combined};
      own[lane] = a;
    }}
  }}"""
    return f"""\
  for (int by = 16; by > 0; by /= 2) {{
    const R b = __shfl_xor_sync(0xffffffffu, a, by);
    a = {combined};
  }}
  R* own = shared_ + threadIdx.y * (lanes / 32);
  if (lanes > 32) {{
    if (lane % 32 == 0) own[lane / 32] = a;
    __syncthreads();
    for (uint32 warp = 1; lane == 0 && warp < lanes / 32; ++warp) {{
      const R b = own[warp];
      a = {combined};
    }}
  }}"""
