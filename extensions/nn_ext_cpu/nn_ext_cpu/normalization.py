"""Batch normalization, plain and fused with a sum and a ReLU."""

from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import NUMBERS, backward_arrays, forward_arrays, refuse_dtypes


class BatchNormalization:
    """Normalization over all axes but one.

    Args:
        fused: The function has the input z and a ReLU.
    """

    def __init__(self, *, fused: bool) -> None:
        self._fused = fused

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse other dtypes than `NUMBERS`, statistics of several axes, and nonlinearities other than ReLU."""
        axes = call.args["axes"]
        assert isinstance(axes, tuple)
        if len(axes) != 1:
            return Refusal(f"keeps statistics of one axis, got axes {axes}")
        if self._fused and call.args["nonlinearity"] != "relu":
            return Refusal(f"takes the nonlinearity relu, got {call.args['nonlinearity']}")
        return refuse_dtypes(call, NUMBERS)

    def layout(self, call: Call) -> str:
        """As stored where the channel axis is the second: channels-last is the faster one."""
        return "channels_last" if call.args["axes"] == (1,) else "contiguous"

    def forward(self, call: Call) -> Runner:
        """Prepare statistics, normalization and what follows it."""
        places = list(range(9)) if self._fused else [0, 1, 2, 3, 4, -1, 5, 6, 7]
        return self._prepared(call, "batch_normalization", forward_arrays(call), places)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradients; None for those of running statistics."""
        if wanted[3] or wanted[4]:
            return None
        plain = [0, 1, 2, 3, 4, -1, 5, 6, 7, 8, 9, 10, 11, 12, 13, -1]
        places = list(range(16)) if self._fused else plain
        return self._prepared(call, "batch_normalization_backward", backward_arrays(call, wanted), places)

    def _prepared(self, call: Call, operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int]) -> Runner:
        axes = call.args["axes"]
        assert isinstance(axes, tuple)
        runner: Runner = _native.prepare(
            operation,
            arrays,
            places=places,
            axis=axes[0],
            batch_stat=call.args["batch_stat"],
            decay_rate=float(call.args["decay_rate"]),  # type: ignore[arg-type]  # a number by the specification
            eps=float(call.args["eps"]),  # type: ignore[arg-type]  # a number by the specification
            relu=self._fused,
        )
        return runner


NORMALIZATION: Final[Mapping[str, Kernel]] = {
    "BatchNormalization": BatchNormalization(fused=False),
    "FusedBatchNormalization": BatchNormalization(fused=True),
}
