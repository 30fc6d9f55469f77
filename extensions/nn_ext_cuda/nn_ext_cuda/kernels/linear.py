"""Affine and batched matrix products, by cuBLAS."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.compose import Composition, refuse_sizes
from nn_ext_cuda.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.dtypes import refuse_dtypes
from nn_ext_cuda.launch import Chain
from nn_ext_cuda.precision import is_tf32_allowed
from nn_ext_cuda.product import Product


class Affine:
    """y = x weight + bias: y begins as the bias, and the product is added to it."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """The repeated bias, then a product."""
        rows, columns, inner = self._sizes(call)
        product = _product(call, (0, 1, 3), (rows, columns, inner), accumulate=call.inputs[2] is not None)
        if call.inputs[2] is None:
            return product
        composition = self._composition(call, forward_arrays(call), forward_names(call))
        composition.compute("affine_bias", {"y": "bias"})
        return Chain([composition.program(), product])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """dx = dy weight^T, dweight = x^T dy, dbias the sum of the rows of dy."""
        rows, columns, inner = self._sizes(call)
        runners: list[Runner] = []
        if wanted[0]:
            runners.append(_product(call, (4, 1, 5), (rows, inner, columns), transposed=(False, True)))
        if wanted[1]:
            runners.append(_product(call, (0, 4, 6), (inner, columns, rows), transposed=(True, False)))
        if wanted[2]:
            composition = self._composition(call, backward_arrays(call, wanted), backward_names(call))
            composition.reduce("affine_backward_bias", "dbias", "dy")
            runners.append(composition.program())
        return Chain(runners)

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


class BatchMatmul:
    """Products of stacked matrices; each gradient is such a product too."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and batches that are broadcast along some axes only."""
        a, b = (desc.shape[:-2] for desc in call.inputs if desc is not None)
        if a != b and math.prod(a) != 1 and math.prod(b) != 1:
            return Refusal(f"takes equal batch axes, or a single matrix, got {a} and {b}")
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One call for the whole batch."""
        transposed = bool(call.args["transpose_a"]), bool(call.args["transpose_b"])
        return self._stacked(call, (0, 1, 2), self._shapes(call), transposed)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """da = dy b^T and db = a^T dy; None where a shared matrix would need a sum over the batch."""
        a, b, y = self._shapes(call)
        count = math.prod(y[:-2])
        if (wanted[0] and math.prod(a[:-2]) != count) or (wanted[1] and math.prod(b[:-2]) != count):
            return None
        transpose_a, transpose_b = bool(call.args["transpose_a"]), bool(call.args["transpose_b"])
        runners = []
        if wanted[0] and transpose_a:
            runners.append(self._stacked(call, (1, 3, 4), (b, y, a), (transpose_b, True)))
        elif wanted[0]:
            runners.append(self._stacked(call, (3, 1, 4), (y, b, a), (False, not transpose_b)))
        if wanted[1] and transpose_b:
            runners.append(self._stacked(call, (3, 0, 5), (y, a, b), (True, transpose_a)))
        elif wanted[1]:
            runners.append(self._stacked(call, (0, 3, 5), (a, y, b), (not transpose_a, False)))
        return Chain(runners)

    @staticmethod
    def _shapes(call: Call) -> tuple[Shape, Shape, Shape]:
        a, b = (desc.shape for desc in call.inputs if desc is not None)
        return a, b, call.outputs[0].shape

    @staticmethod
    def _stacked(
        call: Call, places: tuple[int, int, int], shapes: tuple[Shape, Shape, Shape], transposed: tuple[bool, bool]
    ) -> Product:
        first, second, result = shapes
        count = math.prod(result[:-2])
        strides = [0 if math.prod(shape[:-2]) == 1 else math.prod(shape[-2:]) for shape in (first, second)]
        sizes = (result[-2], result[-1], first[-2] if transposed[0] else first[-1])
        batch = (count, strides[0], strides[1], math.prod(result[-2:]))
        return _product(call, places, sizes, transposed=transposed, batch=batch)


def _product(
    call: Call,
    places: tuple[int, int, int],
    sizes: tuple[int, int, int],
    *,
    transposed: tuple[bool, bool] = (False, False),
    batch: tuple[int, int, int, int] = (1, 0, 0, 0),
    accumulate: bool = False,
) -> Product:
    return Product(places, sizes, transposed, batch, call.dtype, is_tf32_allowed(), accumulate)


LINEAR: Final[Mapping[str, Kernel]] = {"Affine": Affine(), "BatchMatmul": BatchMatmul()}
