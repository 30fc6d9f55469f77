"""Attention that never holds the weights of all queries and keys."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtypes, refuse_empty, reshaped


class ScaledDotProductAttention:
    """y = softmax(scale q k^T + mask) v, block by block; the leading axes are heads."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32 and bfloat16, and arrays without elements."""
        return refuse_empty(call) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the operation."""
        return _prepared("attention", forward_arrays(call), call)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradients of q, k and v; that of a mask needs all weights, and is left to the gradient rule."""
        if any(wanted[3:]):
            return None
        return _prepared("attention_backward", backward_arrays(call, wanted), call)


def _prepared(operation: str, arrays: Sequence[ArrayDesc | None], call: Call) -> Runner:
    """The operation on arrays with their leading axes as one; a mask keeps its axes, which may be broadcast."""
    q, k, _, mask = call.inputs
    assert q is not None and k is not None
    leading = len(q.shape) - 2
    views = [
        desc if desc is None or desc is mask else reshaped(desc, (math.prod(desc.shape[:leading]), *desc.shape[leading:]))
        for desc in arrays
    ]
    settings = {"scale": call.args["scale"], "is_causal": call.args["is_causal"], "scores": (*q.shape[:-1], k.shape[-2])}
    runner: Runner = _native.prepare(operation, arrays, views=views, **settings)
    return runner


ATTENTION: Final[Mapping[str, Kernel]] = {"ScaledDotProductAttention": ScaledDotProductAttention()}
