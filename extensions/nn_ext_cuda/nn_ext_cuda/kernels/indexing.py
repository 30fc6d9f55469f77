"""Elements and rows by number."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nn_core.ext import Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.code import from_file
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names
from nn_ext_cuda.codegen.dtypes import C_TYPES, real_dtype, real_type, refuse_dtypes
from nn_ext_cuda.codegen.located import located
from nn_ext_cuda.codegen.pointwise import Pointwise
from nn_ext_cuda.device.faults import beyond_length
from nn_ext_cuda.launch.program import THREADS, Launch, Program

#: Blocks between which the rows of all tables are divided.
_BLOCKS: Final = 528
_MAX_GRID: Final = 65535
#: The value that is read where no row has the number: NaN, or 0 in integers.
NOTHING: Final = """\
template <class V> __device__ void spoil(V& y) { y = V(); }
__device__ void spoil(half_t& y) { store(y, infinity() - infinity()); }
__device__ void spoil(bfloat_t& y) { store(y, infinity() - infinity()); }
__device__ void spoil(float& y) { y = infinity() - infinity(); }
__device__ void spoil(double& y) { y = infinity() - infinity(); }
"""


@dataclass(frozen=True, slots=True)
class Tables:
    """The table to pick from, as `groups` times `tables` tables of rows; each group has indices of its own."""

    x: int
    indices: int
    groups: int
    tables: int
    n_rows: int
    width: int
    n_indices: int


def _gather_tables(call: Call) -> Tables:
    x, indices = call.inputs
    axis, n_batch = call.args["axis"], call.args["batch_dims"]
    assert x is not None and indices is not None and isinstance(axis, int) and isinstance(n_batch, int)
    return Tables(
        x=0,
        indices=1,
        groups=math.prod(x.shape[:n_batch]),
        tables=math.prod(x.shape[n_batch:axis]),
        n_rows=x.shape[axis],
        width=math.prod(x.shape[axis + 1 :]),
        n_indices=math.prod(indices.shape[n_batch:]),
    )


def _embed_tables(call: Call) -> Tables:
    indices, w = call.inputs
    assert indices is not None and w is not None
    return Tables(1, 0, 1, 1, w.shape[0], math.prod(w.shape[1:]), indices.size)


class Gather:
    """Rows by number; the gradient adds the rows of dy up, in the order of the indices.

    Args:
        tables: How a call picks rows.
    """

    def __init__(self, tables: Callable[[Call], Tables]) -> None:
        self._tables = tables

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not known, very large arrays, and tables without rows."""
        if self._tables(call).n_rows == 0:
            return Refusal("takes tables of at least one row")
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        tables = self._tables(call)
        x, indices = (call.spec.inputs[place].name for place in (tables.x, tables.indices))
        y = call.spec.outputs[0].name
        numbers = {"tables": tables.tables, "rows": tables.n_rows, "width": tables.width, "count": tables.n_indices}
        statement = f"""const int64 given = {indices}[i0 / tables * count + i1], row = given < 0 ? given + rows : given;
    if (row >= 0 && row < rows) {y}[i] = {x}[(i0 * rows + row) * width + i2];
    else {{ spoil({y}[i]); tell(fault, fault_number, given); }}"""
        frame = (tables.groups * tables.tables, tables.n_indices, tables.width)
        fault = beyond_length(call.spec.api, indices, tables.n_rows)
        return located(call, f"{call.spec.api}_forward", frame, statement, numbers, functions=NOTHING, fault=fault)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch, and for half precision one that rounds the sums; None for arrays of other dtypes."""
        tables, arrays = self._tables(call), backward_arrays(call, wanted)
        table = call.inputs[tables.x]
        assert table is not None
        if table.dtype != call.dtype:
            return None
        if table.size == 0:
            return Program([], len(arrays))
        n_tables = tables.groups * tables.tables
        code = from_file("indexing.cu", "rows_summed", real_type(call.dtype), T=C_TYPES[call.dtype])
        rows_of_block = -(-tables.n_rows // max(_BLOCKS // n_tables, 1))
        is_wide = real_dtype(call.dtype) == call.dtype
        target = len(call.inputs) + 2 + tables.x if is_wide else len(arrays)
        sizes = (tables.n_indices, tables.width, tables.n_rows, rows_of_block, n_tables, tables.tables)
        arguments = (*map(np.int64, sizes), tables.indices, len(call.inputs) + 1, target)
        grid = (-(-tables.n_rows // rows_of_block), min(n_tables, _MAX_GRID))
        launches = [Launch(code, grid, (THREADS,), arguments)]
        if is_wide:
            return Program(launches, len(arrays))
        composition = Composition(call, arrays, backward_names(call), table.shape)
        composition.scratch("sums", table.shape)
        composition.compute(f"{call.spec.api}_backward_round", {f"d{call.spec.inputs[tables.x].name}": "sums"})
        rounding = composition.program()
        return Program([*launches, *rounding.launches], len(arrays), [(table.shape, real_dtype(call.dtype))])


#: The order of a sort: NaN comes last.
_BEFORE: Final = "__device__ bool is_before(R a, R b) { return a != a ? false : b != b ? true : a < b; }\n"


class SearchSorted:
    """The places where values belong in sorted rows, by bisection."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch, a thread for each value."""
        rows, values = call.inputs
        assert rows is not None and values is not None
        passes = "!is_before(value, given)" if call.args["right"] else "is_before(given, value)"
        statement = f"""const R value = R(load(values[i])); int64 low = 0, high = length;
    while (low < high) {{
      const int64 middle = (low + high) / 2;
      const R given = R(load(sorted_sequence[int64(i0) * length + middle]));
      if ({passes}) low = middle + 1; else high = middle;
    }}
    y[i] = low;"""
        frame, numbers = (math.prod(values.shape[:-1]), values.shape[-1]), {"length": rows.shape[-1]}
        return located(call, "searchsorted", frame, statement, numbers, functions=_BEFORE)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: places have no gradient."""
        return None


INDEXING: Final[Mapping[str, Kernel]] = {
    "Embed": Gather(_embed_tables),
    "Gather": Gather(_gather_tables),
    "SearchSorted": SearchSorted(),
    "BoolFill": Pointwise("mask != 0 ? value : data", {"data": "mask != 0 ? R(0) : dy"}),
}
