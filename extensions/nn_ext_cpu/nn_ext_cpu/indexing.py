"""Rows of a table by number."""

from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtypes
from nn_ext_cpu.pointwise import Pointwise


class Embed:
    """Rows of w; the gradient adds the rows of dy up."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse tables of other dtypes than float32, and empty ones."""
        w = call.inputs[1]
        if w is not None and w.shape[0] == 0:
            return Refusal("takes tables of at least one row")
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the look-up."""
        runner: Runner = _native.prepare("embed", forward_arrays(call))
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the sum of rows."""
        runner: Runner = _native.prepare("embed_backward", backward_arrays(call, wanted), places=[0, 3, 5])
        return runner


INDEXING: Final[Mapping[str, Kernel]] = {
    "Embed": Embed(),
    "BoolFill": Pointwise("filling = fill ; value\ny = select mask filling data", {"data": "ddata = mask_zero dy mask"}),
}
