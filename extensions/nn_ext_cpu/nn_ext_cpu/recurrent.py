"""Recurrent networks over sequences."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtypes

#: The key of a run: seed and counter.
_KEY: Final = ArrayDesc((2,), "uint64")


class Recurrent:
    """All layers, directions and steps in one operation, forward and backward.

    Args:
        cell: The native cell; for an Elman network its nonlinearity is the suffix of the name.
        has_memory: The network has a state c besides h.
    """

    def __init__(self, cell: str, *, has_memory: bool = False) -> None:
        self._cell = cell
        self._has_memory = has_memory

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, and sequences or states without elements."""
        for name, desc in zip(("x", "h"), call.inputs[:2], strict=True):
            if desc is not None and desc.size == 0:
                return Refusal(f"takes {name} of at least one element, got shape {desc.shape}")
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare all steps."""
        arrays = [*forward_arrays(call), _KEY]
        places = list(range(12)) if self._has_memory else [0, 1, -1, 2, 3, 4, 5, 6, -1, 7, 8, 9]
        return self._prepared(call, "recurrent", arrays, places)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the backward pass through time."""
        arrays = backward_arrays(call, wanted)
        if self._has_memory:  # x h c weight_l0 weight bias | y h_n c_n trace mask | dy dh_n dc_n | gradients
            places = [*range(6), *range(9, 20)]
        else:  # x h weight_l0 weight bias | y h_n trace mask | dy dh_n | gradients
            places = [0, 1, -1, 2, 3, 4, 7, 8, 9, 10, -1, 11, 12, -1, 13, 14, 15]
        return self._prepared(call, "recurrent_backward", arrays, places)

    def _prepared(self, call: Call, operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int]) -> Runner:
        args: Mapping[str, Any] = call.args
        runner: Runner = _native.prepare(
            operation,
            arrays,
            places=list(places),
            cell=f"{self._cell}_{args['nonlinearity']}" if "nonlinearity" in args else self._cell,
            num_layers=args["num_layers"],
            bidirectional=args["bidirectional"],
            dropout=float(args["dropout"]) if args["training"] else 0.0,
        )
        return runner


RECURRENT: Final[dict[str, Kernel]] = {
    "RNN": Recurrent("rnn"),
    "LSTM": Recurrent("lstm", has_memory=True),
    "GRU": Recurrent("gru"),
}
