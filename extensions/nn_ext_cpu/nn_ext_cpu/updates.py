"""Updates of all parameters of a solver in one native call; see ``nn_core.solvers.update``."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Array, ArrayDesc, Refusal, Step
from nn_ext_cpu import _native
from nn_ext_cpu.describe import FLOAT


class NativeUpdate:
    """A rule of a solver, or a change of gradients, as a native operation.

    Args:
        operation: Name of the native operation.
        rule: Name of the solver, for the operations ``update`` and ``layerwise``.
    """

    def __init__(self, operation: str, rule: str | None = None) -> None:
        self._operation = operation
        self._settings: dict[str, Any] = {} if rule is None else {"rule": rule}

    def prepare(self, sizes: Sequence[int], dtype: str) -> "NativeUpdate | Refusal":
        """Take parameters of float32, and for most rules of float64; the operation is prepared when it is bound."""
        taken = (FLOAT,) if self._operation == "layerwise" else (FLOAT, "float64")
        return self if dtype in taken else Refusal(f"computes in {' or '.join(taken)}, got {dtype}")

    def bind(self, params: Sequence[Array], grads: Sequence[Array], states: Sequence[Sequence[Array]], hyper: Array) -> Step:
        """Return a step that updates these arrays; `hyper` is read each time."""
        arrays = [hyper]
        for members in zip(params, grads, *states, strict=True):
            arrays += members
        descs = [ArrayDesc(array.shape, array.dtype.name) for array in arrays]
        return _native.prepare(self._operation, descs, **self._settings).bind(*arrays)


UPDATES: Final[Mapping[str, NativeUpdate]] = {
    **{name: NativeUpdate("update", name) for name in _native.updates()},
    **{name: NativeUpdate("layerwise", name) for name in ("Lars", "Lamb")},
    "WeightDecay": NativeUpdate("weight_decay"),
    "ScaleGrad": NativeUpdate("scale_grad"),
    "ClipGradByNorm": NativeUpdate("clip_grad"),
}
