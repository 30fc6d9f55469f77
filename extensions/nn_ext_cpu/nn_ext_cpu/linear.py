"""Affine and batched matrix products."""

from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtypes


class Affine:
    """y = x weight + bias, with the bias in the same pass; the gradients are one operation too."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, and weights without rows."""
        weight = call.inputs[1]
        if weight is not None and weight.shape[0] == 0:
            return Refusal("takes weights with at least one row")
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the product."""
        runner: Runner = _native.prepare("affine", forward_arrays(call))
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the products and the sum of the wanted gradients."""
        arrays = backward_arrays(call, wanted)
        n_inputs = len(call.inputs)
        if n_inputs == 2:  # no bias given: its places stay empty
            arrays = [*arrays[:2], None, *arrays[2:], None]
        runner: Runner = _native.prepare("affine_backward", arrays)
        return runner


LINEAR: Final[Mapping[str, Kernel]] = {"Affine": Affine()} if _native.has_onednn() else {}
