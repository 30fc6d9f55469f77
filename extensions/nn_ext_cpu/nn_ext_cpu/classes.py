"""Scores of classes beside labels."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtypes


class ClassOperation:
    """A native operation on scores and labels around an axis.

    Args:
        forward: Name of the operation.
        backward: Name of that of the gradient of the scores, if there is one.
        settings: Names of the arguments that the operation takes beside the axis.
    """

    def __init__(self, forward: str, backward: str | None = None, settings: Sequence[str] = ()) -> None:
        self._forward = forward
        self._backward = backward
        self._settings = settings

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, and labels of other dtypes than int64."""
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the operation."""
        runner: Runner = _native.prepare(self._forward, forward_arrays(call), **self._settings_of(call))
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradient; None where there is none."""
        if self._backward is None:
            return None
        arrays = backward_arrays(call, wanted)
        runner: Runner = _native.prepare(self._backward, arrays, places=[0, 1, 3, 4], **self._settings_of(call))
        return runner

    def _settings_of(self, call: Call) -> dict[str, Any]:
        return {"label": call.spec.api, **{name: call.args[name] for name in ("axis", *self._settings)}}


CLASSES: Final[Mapping[str, Kernel]] = {
    "CategoricalCrossEntropy": ClassOperation("class_log", "class_log_backward"),
    "TopNError": ClassOperation("class_rank", settings=["n"]),
    "ClassMask": ClassOperation("class_mask"),
    "ConfusionMatrix": ClassOperation("class_confusion"),
}
