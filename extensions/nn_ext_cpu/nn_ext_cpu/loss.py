"""Losses."""

from collections.abc import Sequence
from typing import Final

from nn_core.ext import Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import NUMBERS, backward_arrays, forward_arrays, refuse_dtypes
from nn_ext_cpu.pointwise import Pointwise


class SoftmaxCrossEntropy:
    """The cross entropy of a softmax with class labels, softmax included."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse scores of other dtypes than float32, bfloat16 and float64."""
        return refuse_dtypes(call, NUMBERS)

    def forward(self, call: Call) -> Runner:
        """Prepare the loss."""
        runner: Runner = _native.prepare("softmax_cross_entropy", forward_arrays(call), axis=call.args["axis"])
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradient of the scores."""
        arrays = backward_arrays(call, wanted)
        runner: Runner = _native.prepare("softmax_cross_entropy_backward", arrays, places=[0, 1, 3, 4], axis=call.args["axis"])
        return runner


LOSS: Final[dict[str, Kernel]] = {
    "SoftmaxCrossEntropy": SoftmaxCrossEntropy(),
    "SquaredError": Pointwise(
        "y = squared_error x0 x1",
        {"x0": "dx0 = squared_error_grad dy x0 x1 ; 2", "x1": "dx1 = squared_error_grad dy x0 x1 ; -2"},
    ),
    "AbsoluteError": Pointwise(
        "y = absolute_error x0 x1",
        {"x0": "dx0 = absolute_error_grad dy x0 x1 ; 1", "x1": "dx1 = absolute_error_grad dy x0 x1 ; -1"},
    ),
    "HuberLoss": Pointwise(
        "y = huber_loss x0 x1 ; delta",
        {"x0": "dx0 = huber_loss_grad dy x0 x1 ; delta 1", "x1": "dx1 = huber_loss_grad dy x0 x1 ; delta -1"},
    ),
    "BinaryCrossEntropy": Pointwise(
        "y = binary_cross_entropy x target",
        {"x": "dx = binary_cross_entropy_grad dy x target", "target": "dtarget = log_odds dy x"},
    ),
    "EpsilonInsensitiveLoss": Pointwise(
        "y = epsilon_insensitive x0 x1 ; epsilon",
        {
            "x0": "dx0 = epsilon_insensitive_grad dy x0 x1 ; epsilon 1",
            "x1": "dx1 = epsilon_insensitive_grad dy x0 x1 ; epsilon -1",
        },
    ),
    "BinaryError": Pointwise("output = binary_error x target"),
    "SigmoidCrossEntropy": Pointwise(
        "y = sigmoid_cross_entropy x target",
        {"x": "dx = sigmoid_cross_entropy_grad dy x target", "target": "dtarget = neg_mul dy x"},
    ),
}
