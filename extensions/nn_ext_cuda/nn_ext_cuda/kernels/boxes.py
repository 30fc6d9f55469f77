"""Boxes that remove each other; see ``kernels/cuda/boxes.cu``."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.code import from_file
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.dtypes import C_TYPES, real, real_type, refuse_dtypes
from nn_ext_cuda.launch.program import Launch, Program
from nn_ext_cuda.memory.workspace import with_workspace

_THREADS: Final = 256


class NmsDetection2d:
    """The best boxes of each sample, for each label or for all of them together."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, and boxes without classes that are apart."""
        if call.args["nms_per_class"] and call.outputs[0].shape[-1] == 5:
            return Refusal("takes boxes of at least one class where classes are apart")
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        (x,) = call.inputs
        assert x is not None
        *outer, n, width = x.shape
        per_class = bool(call.args["nms_per_class"])
        n_blocks = math.prod(outer) * (width - 5 if per_class else 1)
        if n_blocks * n == 0:
            return Program([], 2)
        code = from_file("boxes.cu", "boxes_suppressed", real_type(call.dtype), T=C_TYPES[call.dtype])
        limits = [real(call.dtype, call.args[name]) for name in ("thresh", "nms")]
        arguments = (np.int64(n), np.int64(width), np.int64(width - 5 if per_class else 0), *limits, 0, 2, 1)
        return with_workspace(Program([Launch(code, (n_blocks,), (_THREADS,), arguments)], 3), 2, [n_blocks * n])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves, if there is one."""
        return None


BOXES: Final[Mapping[str, Kernel]] = {"NmsDetection2d": NmsDetection2d()}
