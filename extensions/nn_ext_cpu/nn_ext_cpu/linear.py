"""Affine and batched matrix products."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.choice import FirstOf
from nn_ext_cpu.contraction import BroadcastMatmul
from nn_ext_cpu.describe import NUMBERS, backward_arrays, forward_arrays, refuse_dtypes


class Affine:
    """y = x weight + bias, with the bias in the same pass; the gradients are one operation too."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, bfloat16 and float64, and weights without rows."""
        weight = call.inputs[1]
        if weight is not None and weight.shape[0] == 0:
            return Refusal("takes weights with at least one row")
        return refuse_dtypes(call, NUMBERS)

    def forward(self, call: Call) -> Runner:
        """Prepare the product."""
        runner: Runner = _native.prepare("affine", forward_arrays(call))
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the products and the sum of the wanted gradients."""
        runner: Runner = _native.prepare("affine_backward", backward_arrays(call, wanted))
        return runner


class BatchMatmul:
    """Products of stacked matrices; each gradient is such a product too."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, bfloat16 and float64, and batches that are broadcast along some axes only."""
        a, b = (desc.shape[:-2] for desc in call.inputs if desc is not None)
        if a != b and math.prod(a) != 1 and math.prod(b) != 1:
            return Refusal(f"takes equal batch axes, or a single matrix, got {a} and {b}")
        return refuse_dtypes(call, NUMBERS)

    def forward(self, call: Call) -> Runner:
        """Prepare y = a b."""
        settings = bool(call.args["transpose_a"]), bool(call.args["transpose_b"])
        return _product(forward_arrays(call), [0, 1, 2], *settings)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare da = dy b^T and db = a^T dy; those of a shared matrix are sums over the batch."""
        arrays = backward_arrays(call, wanted)
        a, b, y = (math.prod(desc.shape[:-2]) for desc in forward_arrays(call) if desc is not None)
        if any(want and count != y for want, count in zip(wanted, (a, b), strict=True)):
            return _SHARED.backward(call, wanted) if _SHARED.refuse(call) is None else None
        transpose_a, transpose_b = bool(call.args["transpose_a"]), bool(call.args["transpose_b"])
        products: list[_native.Op] = []
        if wanted[0]:
            da = ([3, 1, 4], False, not transpose_b) if not transpose_a else ([1, 3, 4], transpose_b, True)
            products.append(_product(arrays, *da))
        if wanted[1]:
            db = ([0, 3, 5], not transpose_a, False) if not transpose_b else ([3, 0, 5], True, transpose_a)
            products.append(_product(arrays, *db))
        return products[0] if len(products) == 1 else _native.chain(products)


def _product(arrays: Sequence[ArrayDesc | None], places: Sequence[int], transpose_a: bool, transpose_b: bool) -> _native.Op:
    views = []
    for place in places:
        desc = arrays[place]
        assert desc is not None
        views.append(ArrayDesc((math.prod(desc.shape[:-2]), *desc.shape[-2:]), desc.dtype))
    settings = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    return _native.prepare("batch_matmul", arrays, views=views, places=places, **settings)


#: For matrices that are shared by some of the products.
_SHARED: Final = BroadcastMatmul()

LINEAR: Final[Mapping[str, Kernel]] = {"Affine": Affine(), "BatchMatmul": FirstOf(BatchMatmul(), _SHARED)}
