"""Attention that never holds the weights of all queries and keys."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import FLOAT, backward_arrays, forward_arrays, refuse_dtypes, refuse_empty, reshaped


class Attention:
    """y = softmax(scale q k^T + mask) v, block by block; the leading axes are heads.

    Args:
        operation: Name of the native operation.
        further: Arrays that the forward pass gets after its outputs.
        settings: Names of further settings.
    """

    def __init__(self, operation: str, further: Sequence[ArrayDesc] = (), settings: Sequence[str] = ()) -> None:
        self._operation = operation
        self._further = tuple(further)
        self._settings = tuple(settings)

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32 and bfloat16, and arrays without elements."""
        return refuse_empty(call) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the operation."""
        return self._prepared(self._operation, [*forward_arrays(call), *self._further], call)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradients that are wanted."""
        return self._prepared(f"{self._operation}_backward", backward_arrays(call, wanted), call)

    def _prepared(self, operation: str, arrays: Sequence[ArrayDesc | None], call: Call) -> Runner:
        """Return the operation on arrays with their leading axes as one; a mask keeps its axes, which may be broadcast."""
        q, k, _, mask = call.inputs
        assert q is not None and k is not None
        leading = len(q.shape) - 2
        views = [
            desc
            if desc is None or desc is mask or desc.dtype in _WORDS
            else reshaped(desc, (math.prod(desc.shape[:leading]), *desc.shape[leading:]))
            for desc in arrays
        ]  # the gradient of a mask is described by the very description of the mask
        settings = {"scale": call.args["scale"], "is_causal": call.args["is_causal"], **self._further_settings(call)}
        settings["scores"] = (*q.shape[:-1], k.shape[-2])
        runner: Runner = _native.prepare(operation, arrays, views=views, **settings)
        return runner

    def _further_settings(self, call: Call) -> dict[str, float]:
        return {name: float(call.args[name]) for name in self._settings}  # type: ignore[arg-type]  # numbers


class CachedAttention:
    """Attention to keys and values in caches, to which those of the new tokens are appended in place."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32 and bfloat16, caches of another one than float32, and arrays without elements."""
        for desc in call.inputs[3:5]:
            if desc is not None and desc.dtype != FLOAT:
                return Refusal(f"takes caches of float32, got {desc.dtype}")
        return refuse_empty(call) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the operation."""
        places = [0, 3, 4, -1, 1, 2, 5, 6]
        arrays = forward_arrays(call)
        views = [None if place < 0 else _of_heads(arrays[place]) for place in places]
        settings = {"scale": call.args["scale"], "is_causal": True}
        runner: Runner = _native.prepare("cached_attention", arrays, views=views, places=places, **settings)
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """There are no gradients."""
        return None


def _of_heads(desc: ArrayDesc | None) -> ArrayDesc | None:
    """Return the array with sequences and heads as one axis; lengths stay."""
    if desc is None or len(desc.shape) != 4:
        return desc
    return reshaped(desc, (desc.shape[0] * desc.shape[1], *desc.shape[2:]))


#: The dtypes of seeds and counters, which have no heads.
_WORDS: Final = ("int64", "uint64")

ATTENTION: Final[Mapping[str, Kernel]] = {
    "CachedAttention": CachedAttention(),
    "DropoutAttention": Attention("dropout_attention", [ArrayDesc((2,), "uint64")], ["p"]),
    "ScaledDotProductAttention": Attention("attention"),
}
