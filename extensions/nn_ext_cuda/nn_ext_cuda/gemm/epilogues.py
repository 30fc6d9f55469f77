"""Activations that become part of the product before them, in the steps of a plan; their gradients are in `slopes`.

Where somebody reads the result of the product, too, it is written beside the activation, which cublasLt does for GELU; its
epilogue for ReLU keeps a mask of bits in place of the values, so that a ReLU is fused only where nobody reads them.

The gradient of ReLU stays a launch of its own, which reads the result of ReLU. The epilogue of cublasLt reads that mask of
bits, which the product of the forward pass would have to write. A backward plan cannot tell whether it has done so in this
step: the first run of a plan, and runs with hooks or a profiler, call functions one by one, and they leave the same result
without a mask, beside that of an earlier step.
"""

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from nn_core.ext import Array, Step
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cuda.fusion.joinable import JoinableStep
from nn_ext_cuda.fusion.replaceable import ReplaceableStep
from nn_ext_cuda.fusion.residual import take_gradients, take_relu
from nn_ext_cuda.fusion.summing import SummingStep, give_sum, take_sum
from nn_ext_cuda.gemm.cublaslt import Epilogue, Fusion, LightStep, is_all_of, may_be_further, overlap
from nn_ext_cuda.gemm.slopes import take_slope
from nn_ext_cuda.launch.program import Step as Launches
from nn_ext_cuda.memory.arrays import UPLOADS, allocated

#: Whether NaN stays NaN in a product with ReLU, by what its algorithm was chosen for.
_KEEPS_NAN: dict[Hashable, bool] = {}
#: So many elements are looked at for that.
_N_TRIED: Final = 4096


def joined(steps: Sequence[Step]) -> list[Step]:
    """Return the steps, where products and normalizations, and what is computed of each element of their results, are one."""
    result: list[Any] = []
    for step in steps:
        name = step.name if isinstance(step, Launches) else ""
        fused = None
        if name in ("gelu_forward", "relu_forward") and result and isinstance(result[-1], LightStep):
            fused = _activated(result[-1], step)
        if fused is not None:
            result[-1] = fused
        elif not _is_taken(result, step, name):
            result.append(step)
    return [step.step if isinstance(step, ReplaceableStep) else step for step in result]


def _is_taken(result: list[Any], step: Any, name: str) -> bool:
    """Return whether steps before have taken over `step`, or it some of them."""
    if name == "gelu_backward":
        return take_slope(result, step)
    if name == "relu_forward":
        return take_relu(result, step)
    if name == "add2_forward":
        return give_sum(result, step)
    if isinstance(step, SummingStep):
        return not step.is_backward and take_sum(result, step)
    return isinstance(step, JoinableStep) and step.is_backward and take_gradients(result, step)


def _activated(product: LightStep, step: Any) -> LightStep | None:
    """Return a product with a bias, and the activation of its result."""
    source, target = step.arrays
    if product.is_fused or product.product.epilogue is not Epilogue.BIAS or not is_all_of(source, product.result):
        return None
    if str(target.dtype) != product.product.dtype or any(overlap(array, target) for array in product.operands):
        return None
    is_read = 0 not in step.ends
    return (_with_relu if step.name == "relu_forward" else _with_gelu)(product, target, is_read)


def _with_relu(product: LightStep, target: Array, is_read: bool) -> LightStep | None:
    fused = None if is_read else product.fused(Fusion(Epilogue.BIAS_THEN_RELU, target))
    return fused if fused is not None and _keeps_nan(fused, target) else None


def _with_gelu(product: LightStep, target: Array, is_read: bool) -> LightStep | None:
    if product.product.dtype == "float64":
        return None
    if not is_read:
        return product.fused(Fusion(Epilogue.BIAS_THEN_GELU, target))
    if not may_be_further(product.result, product.product.c.lead, target):
        return None
    return product.fused(Fusion(Epilogue.BIAS_AND_GELU, target, product.result))


def _keeps_nan(step: LightStep, target: Array) -> bool:
    """Return whether NaN stays NaN in the ReLU of a product, which nobody promises; tried once for each algorithm.

    A network whose weights have become NaN must not look like one that gives zeros.
    """
    if step.chosen_for not in _KEEPS_NAN:
        vector, result = (allocated(tuple(array.shape), str(array.dtype)) for array in (step.arrays[3], target))
        UPLOADS.start(vector, np.full(vector.shape, np.nan))
        step.try_on(vector, result)
        seen = np.asarray(cupy.asnumpy(result.reshape(-1)[:_N_TRIED]), np.float64)
        _KEEPS_NAN[step.chosen_for] = bool(np.isnan(seen).all())
    return _KEEPS_NAN[step.chosen_for]
