"""Losses."""

from typing import Final

from nn_core.ext import Kernel
from nn_ext_cuda.pointwise import Pointwise

LOSS: Final[dict[str, Kernel]] = {
    "SigmoidCrossEntropy": Pointwise(
        "larger(x, R(0)) - target * x + log1p(exp(-fabs(x)))",
        {"x": "dy * (sigmoid(x) - target)", "target": "-dy * x"},
    ),
    "BinaryCrossEntropy": Pointwise(
        "-(target * log_of(x) + (1 - target) * log_of(1 - x))",
        {"x": "dy * (x - target) / divisor(x * (1 - x))", "target": "-dy * (log(divisor(x)) - log(divisor(1 - x)))"},
    ),
    "SquaredError": Pointwise("square(x0 - x1)", {"x0": "dy * 2 * (x0 - x1)", "x1": "-dy * 2 * (x0 - x1)"}),
    "AbsoluteError": Pointwise("fabs(x0 - x1)", {"x0": "x0 > x1 ? dy : -dy", "x1": "x0 > x1 ? -dy : dy"}),
    "HuberLoss": Pointwise(
        "fabs(x0 - x1) < delta ? square(x0 - x1) : delta * (2 * fabs(x0 - x1) - delta)",
        {
            "x0": "dy * 2 * smaller(larger(x0 - x1, -delta), delta)",
            "x1": "-dy * 2 * smaller(larger(x0 - x1, -delta), delta)",
        },
    ),
    "EpsilonInsensitiveLoss": Pointwise(
        "larger(fabs(x0 - x1) - epsilon, R(0))",
        {
            "x0": "x0 - x1 > epsilon ? dy : x0 - x1 < -epsilon ? -dy : R(0)",
            "x1": "x0 - x1 > epsilon ? -dy : x0 - x1 < -epsilon ? dy : R(0)",
        },
    ),
    "BinaryError": Pointwise("(x >= 0.5) != (target >= 0.5)"),
}
