"""Activations that become part of the product before them, in the steps of a plan.

The product writes both its own result and the activation, so nobody who reads either of them notices. GELU is the one that
cublasLt has such an epilogue for; that of ReLU keeps a mask of bits in place of the values.
"""

from collections.abc import Sequence
from typing import Any

from nn_core.ext import Step
from nn_ext_cuda.launch import Step as Launches
from nn_ext_cuda.light import LightStep


def joined(steps: Sequence[Step]) -> list[Step]:
    """The steps, where a product with a bias and the GELU of its result are one."""
    result: list[Step] = []
    for step in steps:
        fused = _with_gelu(result[-1], step) if result else None
        if fused is None:
            result.append(step)
        else:
            result[-1] = fused
    return result


def _with_gelu(product: Any, step: Any) -> LightStep | None:
    """The product with the activation that `step` computes of its result; None for any other step."""
    if not isinstance(product, LightStep) or not isinstance(step, Launches) or step.name != "gelu_forward":
        return None
    source, target = step.arrays
    if source is None or target is None or int(source.data.ptr) != int(product.result.data.ptr):
        return None
    return product.with_gelu(target) if source.size == product.result.size else None
