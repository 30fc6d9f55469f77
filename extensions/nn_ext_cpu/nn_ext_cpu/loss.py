"""Losses."""

from typing import Final

from nn_core.ext import Kernel
from nn_ext_cpu.pointwise import Pointwise

LOSS: Final[dict[str, Kernel]] = {
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
    "SigmoidCrossEntropy": Pointwise(
        "y = sigmoid_cross_entropy x target", {"x": "dx = sigmoid_cross_entropy_grad dy x target"}
    ),
}
