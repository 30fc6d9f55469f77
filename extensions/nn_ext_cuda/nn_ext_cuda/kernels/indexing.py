"""Rows of a table by number."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import Call, Kernel, Refusal, Runner
from nn_ext_cuda.code import from_file
from nn_ext_cuda.compose import Composition
from nn_ext_cuda.describe import backward_arrays, backward_names, forward_arrays
from nn_ext_cuda.dtypes import C_TYPES, real_dtype, real_type, refuse_dtypes
from nn_ext_cuda.launch import THREADS, Launch, Program, flat

#: Blocks between which the rows of a table are divided.
_BLOCKS: Final = 528


class Embed:
    """Rows of w; the gradient adds the rows of dy up, in the order of the indices."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and empty tables."""
        w = call.inputs[1]
        if w is not None and w.shape[0] == 0:
            return Refusal("takes tables of at least one row")
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        n, width, n_rows = self._sizes(call)
        code = from_file("indexing.cu", "embed", real_type(call.dtype), T=C_TYPES[call.dtype])
        arguments = [np.int64(n), np.int64(width), np.int64(n_rows), 0, 1, 2]
        return Program([flat(code, n * width, arguments)] if n * width else [], len(forward_arrays(call)))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch, and for half precision one that rounds the sums."""
        n, width, n_rows = self._sizes(call)
        arrays = backward_arrays(call, wanted)
        if n_rows * width == 0:
            return Program([], len(arrays))
        code = from_file("indexing.cu", "embed_backward", real_type(call.dtype), T=C_TYPES[call.dtype])
        rows_of_block = -(-n_rows // _BLOCKS)
        is_wide = real_dtype(call.dtype) == call.dtype
        target = 5 if is_wide else len(arrays)
        arguments = (np.int64(n), np.int64(width), np.int64(n_rows), np.int64(rows_of_block), 0, 3, target)
        launches = [Launch(code, (-(-n_rows // rows_of_block),), (THREADS,), arguments)]
        if is_wide:
            return Program(launches, len(arrays))
        w = call.inputs[1]
        assert w is not None
        composition = Composition(call, arrays, backward_names(call), w.shape)
        composition.scratch("sums", w.shape)
        composition.compute("embed_backward_round", {"dw": "sums"})
        rounding = composition.program()
        return Program([*launches, *rounding.launches], len(arrays), [(w.shape, real_dtype(call.dtype))])

    @staticmethod
    def _sizes(call: Call) -> tuple[int, int, int]:
        """(number of indices, elements of a row, rows of the table)."""
        indices, w = call.inputs
        assert indices is not None and w is not None
        return indices.size, math.prod(w.shape[1:]), w.shape[0]


INDEXING: Final[Mapping[str, Kernel]] = {"Embed": Embed()}
