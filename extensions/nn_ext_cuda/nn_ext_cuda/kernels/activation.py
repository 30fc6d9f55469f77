"""Activation functions."""

from collections.abc import Sequence
from typing import Final

from nn_core.ext import Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.dtypes import refuse_dtypes
from nn_ext_cuda.codegen.pointwise import Pointwise
from nn_ext_cuda.codegen.rows import refuse_rows, row_program


class Softmax:
    """Softmax or its logarithm along one axis.

    Args:
        log: Take the logarithm.
    """

    def __init__(self, *, log: bool) -> None:
        self._log = log

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and more rows than there can be blocks."""
        axis = call.args["axis"]
        assert isinstance(axis, int)
        return refuse_dtypes(call) or refuse_rows(call.outputs[0].shape, axis)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        return self._program(call, "softmax", [0, 1], 2)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch, from y and dy."""
        return self._program(call, "softmax_backward", [1, 2, 3], 4)

    def _program(self, call: Call, function: str, places: Sequence[int], n_arrays: int) -> Runner:
        axis = call.args["axis"]
        assert isinstance(axis, int)
        shape = call.outputs[0].shape
        return row_program(call, "softmax.cu", function, shape, axis, places, n_arrays, LOG=int(self._log))


def _slope_per_channel(call: Call) -> Sequence[Shape]:
    """Return the slopes of PReLU run along the axis of the channels, or there is one for all."""
    x, slope = (desc.shape for desc in call.inputs if desc is not None)
    axis = call.args["base_axis"]
    assert isinstance(axis, int)
    length = slope[0] if slope else 1
    return x, (1,) * axis + (length,) + (1,) * (len(x) - axis - 1) if x else ()


def _leaky_relu_slope(call: Call) -> dict[str, str]:
    """Return the sign of x tells the slope, as that of y does unless alpha turns it over."""
    (seen,) = call.spec.needed(call.args)
    return {"x": f"{seen} > 0 ? dy : alpha * dy"}


ACTIVATION: Final[dict[str, Kernel]] = {
    "Sigmoid": Pointwise("sigmoid(x)", {"x": "dy * y * (1 - y)"}),
    "Swish": Pointwise("x * sigmoid(x)", {"x": "dy * swish_slope(x)"}),
    "Tanh": Pointwise("tanh(x)", {"x": "dy * (1 - y * y)"}),
    "ReLU": Pointwise("rectified(x)", {"x": "y > 0 ? dy : R(0)"}),
    "LeakyReLU": Pointwise("x > 0 ? x : alpha * x", _leaky_relu_slope),
    "Softmax": Softmax(log=False),
    "LogSoftmax": Softmax(log=True),
    "ELU": Pointwise("elu(x, alpha)", {"x": "dy * elu_slope(x, alpha)"}),
    "SELU": Pointwise("scale * elu(x, alpha)", {"x": "dy * scale * (x > 0 ? R(1) : alpha * exp(smaller(x, R(0))))"}),
    "PReLU": Pointwise(
        "x0 >= 0 ? x0 : x1 * x0",
        {"x0": "x0 >= 0 ? dy : x1 * dy", "x1": "x0 >= 0 ? R(0) : x0 * dy"},
        align=_slope_per_channel,
    ),
    "GELU": Pointwise("gelu(x)", {"x": "dy * gelu_slope(x)"}),
    "Mish": Pointwise("mish(x)", {"x": "dy * mish_slope(x)"}),
    "ReLU6": Pointwise("smaller(rectified(x), R(6))", {"x": "y > 0 && y < 6 ? dy : R(0)"}),
    "HardSigmoid": Pointwise("smaller(larger(0.2 * x + 0.5, R(0)), R(1))", {"x": "fabs(x) <= 2.5 ? 0.2 * dy : R(0)"}),
    "HardTanh": Pointwise("smaller(larger(x, R(-1)), R(1))", {"x": "fabs(x) <= 1 ? dy : R(0)"}),
    "LogSigmoid": Pointwise("-softplus(-x)", {"x": "dy * sigmoid(-x)"}),
    "SoftPlus": Pointwise("softplus(beta * x) / beta", {"x": "dy * sigmoid(beta * x)"}),
    "SoftSign": Pointwise("x / (1 + fabs(x))", {"x": "dy / square(1 + fabs(x))"}),
    "TanhShrink": Pointwise("x - tanh(x)", {"x": "dy * square(tanh(x))"}),
    "Sinc": Pointwise("sinc(x)", {"x": "dy * sinc_slope(x)"}),
}
