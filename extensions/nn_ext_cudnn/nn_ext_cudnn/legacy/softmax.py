"""Softmax and its logarithm along any axis."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Call, Kernel, Refusal, Runner
from nn_ext_cuda.kernels import KERNELS as CUDA_KERNELS
from nn_ext_cudnn.legacy import api
from nn_ext_cudnn.legacy.descriptors import Descriptor, tensor
from nn_ext_cudnn.legacy.recipe import At, LibraryCall, Recipe, number
from nn_ext_cudnn.legacy.refusal import refuse_arrays, refuse_failures


class Softmax:
    """Softmax over channels, which may be any axis: (axes before it, the axis, axes after it, 1).

    Args:
        algorithm: The function, in the form that cannot overflow.
    """

    def __init__(self, algorithm: api.Softmax) -> None:
        self._algorithm = algorithm

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what is empty, what 32 bits cannot index, other dtypes than floating ones, and what cuDNN refuses."""
        return refuse_arrays(call) or api.refuse_part("ops") or refuse_failures(lambda: self.forward(call))

    def forward(self, call: Call) -> Runner:
        """One call."""
        x = self._descriptor(call)
        one, zero = number(call.dtype, 1), number(call.dtype, 0)
        return self._recipe(call, api.ops().cudnnSoftmaxForward, [one, x, At(0), zero, x, At(1)], None)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One call, from y and dy."""
        y = self._descriptor(call)
        one, zero = number(call.dtype, 1), number(call.dtype, 0)
        arguments = [one, y, At(1), y, At(2), zero, y, At(3)]
        return self._recipe(call, api.ops().cudnnSoftmaxBackward, arguments, wanted)

    def _recipe(self, call: Call, function: Any, arguments: Sequence[Any], wanted: Sequence[bool] | None) -> Runner:
        kernel = CUDA_KERNELS[call.spec.name]
        return Recipe(
            call.spec.api,
            [LibraryCall(function, [self._algorithm, api.SOFTMAX_OVER_CHANNELS, *arguments])],
            2 if wanted is None else 4,
            otherwise=lambda: kernel.forward(call) if wanted is None else kernel.backward(call, wanted),
        )

    @staticmethod
    def _descriptor(call: Call) -> Descriptor:
        (x,) = call.inputs
        axis = call.args["axis"]
        assert x is not None
        assert isinstance(axis, int)
        dims = (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]), 1)
        return tensor(call.dtype, dims)


SOFTMAX: Final[Mapping[str, Kernel]] = {
    "Softmax": Softmax(api.Softmax.ACCURATE),
    "LogSoftmax": Softmax(api.Softmax.LOG),
}
