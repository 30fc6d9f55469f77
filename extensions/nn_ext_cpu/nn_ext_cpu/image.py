"""Images sampled at points between their pixels."""

from collections.abc import Sequence
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtypes, refuse_empty


class Warp:
    """Images at points of a grid, or displaced by a flow.

    Args:
        flow: The points are displacements in pixels.
    """

    def __init__(self, *, flow: bool) -> None:
        self._flow = flow

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32 and bfloat16, and arrays without elements."""
        return refuse_empty(call) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the sampling."""
        return self._prepared(call, "warp", forward_arrays(call), [0, 1, 2])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradients of images and points; None for points of which only the nearest pixel counts."""
        if wanted[1] and call.args.get("mode") == "nearest":
            return None
        return self._prepared(call, "warp_backward", backward_arrays(call, wanted), [0, 1, 3, 4, 5])

    def _prepared(self, call: Call, operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int]) -> Runner:
        settings: dict[str, Any] = {
            "channel_last": bool(call.args.get("channel_last", False)),
            "nearest": call.args.get("mode") == "nearest",
            "padding": call.args.get("padding_mode", "repeat"),
            "align_corners": bool(call.args.get("align_corners", False)),
            "flow": self._flow,
        }
        there = [place if arrays[place] is not None else -1 for place in places]
        runner: Runner = _native.prepare(operation, arrays, places=there, **settings)
        return runner


IMAGE: Final[dict[str, Kernel]] = {"WarpByGrid": Warp(flow=False), "WarpByFlow": Warp(flow=True)}
