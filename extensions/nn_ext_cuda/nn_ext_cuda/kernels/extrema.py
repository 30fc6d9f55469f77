"""Largest and smallest elements over some axes, and where they are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.code import generated, length_parameters, unravelled
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.dtypes import C_TYPES, real_type, refuse_dtypes
from nn_ext_cuda.codegen.layout import length_arguments, merged, pitch
from nn_ext_cuda.codegen.rows import lanes_of
from nn_ext_cuda.launch.program import THREADS, Argument, Launch, Program

#: An element and its number among those that are compared. NaN goes before numbers, and the first before its equals.
_FUNCTIONS: Final = """\
struct Best { R value; int64 place; };
__device__ bool same(R a, R b) { return a == b || (a != a && b != b); }
__device__ bool goes_before(Best a, Best b, bool largest) {
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan != b_is_nan) return a_is_nan;
  if (a_is_nan || a.value == b.value) return a.place < b.place;
  return largest ? a.value > b.value : a.value < b.value;
}
"""


@dataclass(frozen=True)
class _Search:
    """The first of the extremal values of a row, and what becomes of it.

    Attributes:
        value: The value of the element at PLACE.
        largest: Whether the largest value is wanted.
        parameters: The arrays after x; {T} is the dtype.
        finish: The statements after the value is found, for each lane of the row.
    """

    value: str
    largest: bool
    parameters: Sequence[str]
    finish: str


#: The first lane of a row stores the value and its place, or one of them.
_FORWARD: Final = """\
  if (lane == 0 && row < n_rows) {
    if (y) store(y[row], best.value);
    if (index) index[row] = best.place;
  }"""
#: The gradient goes to the first element that is equal to the result, or NaN as it is, as in the gradient rule, not to the
#: extremum of x: they differ where x was replaced after the forward pass.
_GRADIENT: Final = _Search(
    value="R(same(R(load(x[PLACE])), R(load(y[k]))))",
    largest=True,
    parameters=("const {T}* y", "const {T}* dy", "{T}* dx"),
    finish="""\
  for (int64 r = lane; r < count && row < n_rows; r += lanes) {
    STEP
    store(dx[PLACE], r == best.place && best.value == R(1) ? R(load(dy[row])) : R(0));
  }""",
)


class Extremum:
    """The first of the largest, or smallest, elements over some axes, by a block for one or several rows.

    Args:
        values: The kernel for values alone.
        largest: Whether the largest ones are wanted.
    """

    def __init__(self, values: Kernel, *, largest: bool) -> None:
        self._values = values
        self._search = _Search("R(load(x[PLACE]))", largest, ("{T}* y", "int64* index"), _FORWARD)

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        # without results: places alone stand where values are declared
        return refuse_sizes(call.inputs) or refuse_dtypes(replace(call, outputs=()))

    def forward(self, call: Call) -> Runner:
        """One launch, or two for values where few of them are made of many elements."""
        only_index, with_index = call.args["only_index"], call.args["with_index"]
        if not (only_index or with_index):
            return self._values.forward(call)
        null = np.uint64(0)
        y, index = (null, 1) if only_index else (1, 2)
        return _program(call, self._search, [y, index], 1 + len(call.outputs))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch; None for places, which have no gradient."""
        if call.args["only_index"]:
            return None
        n = len(call.outputs)
        return _program(call, _GRADIENT, [1, 1 + n, 1 + 2 * n], 2 + 2 * n)


def _program(call: Call, search: _Search, places: Sequence[Argument], n_arrays: int) -> Runner:
    """Return the launch of a search; `places` are those of its parameters among the arrays."""
    (x,), axes = call.inputs, call.args["axes"]
    assert x is not None and isinstance(axes, tuple)
    if x.size == 0:
        return Program([], n_arrays)
    kept, reduced = (_walk(x, [axis for axis in range(len(x.shape)) if (axis in axes) == chosen]) for chosen in (0, 1))
    n_rows, count = math.prod(kept[0]), math.prod(reduced[0])
    by_rows = not reduced[0] or reduced[1][-1] == 1
    lanes = lanes_of(count) if by_rows else 8
    block = (lanes, THREADS // lanes) if by_rows else (THREADS // lanes, lanes)
    c_type = C_TYPES[call.dtype]
    names = ["const int64 n_rows", "const int64 count", f"const {c_type}* x"]
    names += [parameter.replace("{T}", c_type) for parameter in search.parameters]
    arguments: list[Argument] = [np.int64(n_rows), np.int64(count), 0, *places]
    for letter, (lengths, strides) in (("k", kept), ("r", reduced)):
        names += length_parameters(f"{letter}_length", len(lengths))
        names += [f"const int64 {letter}_stride{axis}" for axis in range(len(lengths))]
        arguments += [*length_arguments(lengths), *map(np.int64, strides)]
    body = _body(search, len(kept[0]), len(reduced[0]), lanes=lanes, by_rows=by_rows)
    code = generated(f"{call.spec.api}_located", names, body, real_type(call.dtype), _FUNCTIONS)
    grid = (-(-n_rows // (THREADS // lanes)),)
    return Program([Launch(code, grid, block, tuple(arguments))], n_arrays)


def _body(search: _Search, kept: int, reduced: int, *, lanes: int, by_rows: bool) -> str:
    """Return the statements: each lane of a row goes through some of its elements, then halves of the lanes are compared."""
    lane, row = ("x", "y") if by_rows else ("y", "x")
    largest, sign = ("true", "-") if search.largest else ("false", "")
    place = " + ".join(["start", *(f"r{axis} * r_stride{axis}" for axis in range(reduced))])
    start = " + ".join([f"k{axis} * k_stride{axis}" for axis in range(kept)]) or "0"
    step = unravelled("r", "r_length", reduced)
    return f"""\
  __shared__ Best found[{THREADS}];
  const uint32 lane = threadIdx.{lane}, lanes = {lanes};
  const int64 row = blockIdx.x * int64(blockDim.{row}) + threadIdx.{row}, k = row < n_rows ? row : 0;
  {unravelled("k", "k_length", kept)}
  const int64 start = {start};
  Best best = {{{sign}R(infinity()), int64(1) << 62}};
  for (int64 r = lane; r < count; r += lanes) {{
    {step}
    const Best other = {{{search.value.replace("PLACE", place)}, r}};
    if (goes_before(other, best, {largest})) best = other;
  }}
  Best* const own = found + threadIdx.{row} * lanes;
  own[lane] = best;
  for (uint32 half = lanes / 2; half > 0; half /= 2) {{
    __syncthreads();
    if (lane < half && goes_before(own[lane + half], own[lane], {largest})) own[lane] = own[lane + half];
  }}
  __syncthreads();
  best = own[0];
{search.finish.replace("STEP", step).replace("PLACE", place)}"""


def _walk(x: ArrayDesc, axes: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """Lengths and strides of some axes, neighbours joined."""
    strides = pitch(x.shape)
    lengths, (steps,) = merged([x.shape[axis] for axis in axes], [[strides[axis] for axis in axes]])
    return lengths, steps
