"""Determinants, inverses and factors of small matrices; see ``kernels/cuda/factors.cu``."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.code import Code, part
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES, real_dtype, real_type, refuse_dtypes
from nn_ext_cuda.device.faults import TELL, arguments_of
from nn_ext_cuda.launch.program import Argument, Launch, Program

#: Shared memory that a block gets on every device, without what it needs besides.
_SHARED_BYTES: Final = 47 * 1024
_THREADS: Final = 256


class Factored:
    """A function of each of a stack of square matrices; gradients are those of the rules, made of inverses and products.

    Args:
        function: Name of the CUDA function.
        numbers: Arguments of the call, or truth values, that it takes.
        fault: What must hold of a matrix, and what was got instead; without it every matrix has a result.
    """

    def __init__(self, function: str, numbers: Sequence[str | bool] = (), fault: tuple[str, str] | None = None) -> None:
        self._function = function
        self._numbers = numbers
        self._fault = fault

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, matrices that are too large for a block, and those without elements."""
        n = _x(call).shape[-1]
        if _bytes(n, call.dtype) > _SHARED_BYTES or n == 0:
            most = max(size for size in range(1, 200) if _bytes(size, call.dtype) <= _SHARED_BYTES)
            return Refusal(f"takes matrices of 1 to {most} rows in {call.dtype}, got {n}")
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch, a block for each matrix."""
        x = _x(call)
        n, count = x.shape[-1], math.prod(x.shape[:-2])
        if count == 0:
            return Program([], 2)
        header = f"typedef {C_TYPES[call.dtype]} T;\n{TELL}"
        code = Code(self._function, header + part("factors.cu"), real_type(call.dtype))
        given = [call.args[number] if isinstance(number, str) else number for number in self._numbers]
        arguments: list[Argument] = [np.int64(n), *[np.int64(bool(number)) for number in given], 0, 1]
        if self._fault is not None:
            condition, found = self._fault
            arguments += arguments_of(f"{call.spec.api}: x must {condition}, got {found} in shape {x.shape}")
        return Program([Launch(code, (count,), (_THREADS,), tuple(arguments), _bytes(n, call.dtype))], 2)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


def _bytes(n: int, dtype: str) -> int:
    """Shared memory for a matrix with a gap after each row, for a column, and for the rows that changed places."""
    return (n * (n + 1) + n) * ITEM_BYTES[real_dtype(dtype)] + 4 * n


def _x(call: Call) -> ArrayDesc:
    (x,) = call.inputs
    assert x is not None
    return x


FACTORS: Final[Mapping[str, Kernel]] = {
    "BatchCholesky": Factored("batch_cholesky", ["upper"], ("be positive definite", "another matrix")),
    "BatchDet": Factored("batch_determinant", [False]),
    "BatchInv": Factored("batch_inverse", [], ("hold invertible matrices", "a singular one")),
    "BatchLogdet": Factored("batch_determinant", [True]),
}
