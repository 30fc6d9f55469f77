"""Affine and batched matrix products, by cuBLAS."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES, refuse_dtypes
from nn_ext_cuda.codegen.layout import aligned
from nn_ext_cuda.gemm.blas import Matrix
from nn_ext_cuda.gemm.cublaslt import Epilogue, LightProduct
from nn_ext_cuda.gemm.precision import is_tf32_allowed
from nn_ext_cuda.gemm.product import Product
from nn_ext_cuda.launch.program import Chain
from nn_ext_cuda.memory.workspace import with_workspace


class Affine:
    """y = x weight + bias."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Return a product with the bias beside it; where that cannot be had, the repeated bias and a product."""
        sizes = self._sizes(call)
        _, columns, inner = sizes
        operands = Matrix(0, inner), Matrix(1, columns), Matrix(3, columns)
        with_bias = call.inputs[2] is not None
        tf32 = is_tf32_allowed()
        product = Product(*operands, sizes, call.dtype, tf32=tf32, accumulate=with_bias)
        if not with_bias:
            return product
        composition = self._composition(call, forward_arrays(call), forward_names(call))
        composition.compute("affine_bias", {"y": "bias"})
        apart = Chain([composition.program(), product])
        return LightProduct(*operands, sizes, call.dtype, Epilogue.BIAS, 2, apart, tf32)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """dx = dy weight^T, dweight = x^T dy, dbias the sum of the rows of dy, taken beside dweight if that can be had."""
        rows, columns, inner = self._sizes(call)
        x, weight, dy = Matrix(0, inner, transposed=True), Matrix(1, columns, transposed=True), Matrix(4, columns)
        tf32 = is_tf32_allowed()
        runners: list[Runner] = []
        if wanted[0]:
            runners.append(Product(dy, weight, Matrix(5, inner), (rows, inner, columns), call.dtype, tf32=tf32))
        dweight, sizes = Matrix(6, columns), (inner, columns, rows)
        apart: list[Runner] = []
        if wanted[1]:
            apart.append(Product(x, dy, dweight, sizes, call.dtype, tf32=tf32))
        if wanted[2]:
            composition = self._composition(call, backward_arrays(call, wanted), backward_names(call))
            composition.reduce("affine_backward_bias", "dbias", "dy")
            apart.append(composition.program())
        if wanted[1] and wanted[2]:
            epilogue = Epilogue.SUM_OF_ROWS
            apart = [LightProduct(x, dy, dweight, sizes, call.dtype, epilogue, 7, Chain(apart), tf32)]
        return Chain([*runners, *apart])

    @staticmethod
    def _sizes(call: Call) -> tuple[int, int, int]:
        """(rows of x, columns of weight, what both share)."""
        x, weight = call.inputs[:2]
        assert x is not None and weight is not None
        base_axis = call.args["base_axis"]
        assert isinstance(base_axis, int)
        return math.prod(x.shape[:base_axis]), math.prod(weight.shape[1:]), weight.shape[0]

    def _composition(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        rows, columns, _ = self._sizes(call)
        shapes = dict.fromkeys(("bias", "dbias"), (1, columns))
        return Composition(call, arrays, names, (rows, columns), shapes)


@dataclass(frozen=True, slots=True)
class Stack:
    """An array of matrices in a product of stacks: its place, its shape, and how it is read."""

    place: int
    shape: Shape
    transposed: bool = False

    @property
    def batch(self) -> Shape:
        """The axes in front of those of a matrix."""
        return self.shape[:-2]

    def turned(self) -> "Stack":
        """Return the stack of the transposed matrices."""
        return Stack(self.place, self.shape, not self.transposed)

    def sizes(self) -> tuple[int, int]:
        """Rows and columns of a matrix."""
        rows, columns = self.shape[-2:]
        return (columns, rows) if self.transposed else (rows, columns)

    def matrix(self, batch: Shape) -> Matrix:
        """Return the matrices for a product over `batch`, to which the own batch axes are broadcast."""
        size, count = math.prod(self.shape[-2:]), math.prod(batch)
        if math.prod(self.batch) == 1:
            step: int | tuple[int, ...] = 0
        elif math.prod(self.batch) == count:
            step = size
        else:
            own = aligned(self.batch, len(batch))
            numbers: Any = np.arange(math.prod(own)).reshape(own)
            step = tuple(int(number) * size for number in np.broadcast_to(numbers, batch).ravel())
        return Matrix(self.place, self.shape[-1], step, transposed=self.transposed)


class BatchMatmul:
    """Products of stacked matrices; each gradient is such a product too, summed where a matrix was used repeatedly."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, no elements, and very large arrays."""
        if any(desc is not None and desc.size == 0 for desc in call.inputs):
            return Refusal("takes matrices with at least one element")
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One call for the whole batch."""
        a, b, y = self._stacks(call, (0, 1, 2))
        return self._product(call, a, b, y)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """da = dy b^T and db = a^T dy."""
        a, b, dy = self._stacks(call, (0, 1, 3))
        runners: list[Runner] = []
        n_bytes: list[int] = []
        n_arrays = len(backward_arrays(call, wanted))
        for place, (array, left, right) in enumerate(((a, dy, b.turned()), (b, a.turned(), dy)), start=4):
            if not wanted[place - 4]:
                continue
            first, second = (right.turned(), left.turned()) if array.transposed else (left, right)
            if math.prod(array.batch) == math.prod(dy.batch):
                runners.append(self._product(call, first, second, Stack(place, array.shape)))
                continue
            parts = Stack(n_arrays + len(n_bytes), (*dy.batch, *array.shape[-2:]))
            n_bytes.append(math.prod(parts.shape) * ITEM_BYTES[call.dtype])
            runners += [self._product(call, first, second, parts), _summed(call, parts, place, array.shape)]
        return with_workspace(Chain(runners), n_arrays, n_bytes) if n_bytes else Chain(runners)

    @staticmethod
    def _stacks(call: Call, places: tuple[int, int, int]) -> tuple[Stack, Stack, Stack]:
        """Return a, b and y. Where all products share b, the batch is more rows of a and y."""
        a, b = (desc.shape for desc in call.inputs if desc is not None)
        y = call.outputs[0].shape
        transposed = bool(call.args["transpose_a"]), bool(call.args["transpose_b"])
        if math.prod(b[:-2]) == 1 and math.prod(a[:-2]) == math.prod(y[:-2]) and not transposed[0]:
            a, b, y = ((math.prod(a[:-1]), a[-1]), b[-2:], (math.prod(y[:-1]), y[-1]))
        return Stack(places[0], a, transposed[0]), Stack(places[1], b, transposed[1]), Stack(places[2], y)

    @staticmethod
    def _product(call: Call, a: Stack, b: Stack, y: Stack) -> Product:
        batch = y.batch
        sizes = (*y.sizes(), a.sizes()[1])
        matrices = a.matrix(batch), b.matrix(batch), y.matrix(batch)
        return Product(*matrices, sizes, call.dtype, math.prod(batch), is_tf32_allowed())


def _summed(call: Call, parts: Stack, place: int, shape: Shape) -> Runner:
    """Return the sum of `parts` over the batch axes that an array of `shape` repeats."""
    descs: list[ArrayDesc | None] = [None] * (parts.place + 1)
    descs[place], descs[parts.place] = ArrayDesc(shape, call.dtype), ArrayDesc(parts.shape, call.dtype)
    names = [f"array_{k}" for k in range(parts.place)] + ["parts"]
    names[place] = "total"
    composition = Composition(call, descs, names, parts.shape, {"total": shape})
    composition.reduce("batch_matmul_sum", "total", "parts")
    return composition.program()


LINEAR: Final[Mapping[str, Kernel]] = {"Affine": Affine(), "BatchMatmul": BatchMatmul()}
