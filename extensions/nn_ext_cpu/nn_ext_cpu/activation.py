"""Activation functions."""

import math
from collections.abc import Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cpu import _native
from nn_ext_cpu.describe import NUMBERS, backward_arrays, forward_arrays, refuse_dtypes
from nn_ext_cpu.pointwise import Pointwise


class Softmax:
    """Softmax or its logarithm along one axis.

    Args:
        log: Take the logarithm.
    """

    def __init__(self, *, log: bool) -> None:
        self._log = log

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, bfloat16 and float64."""
        return refuse_dtypes(call, NUMBERS)

    def layout(self, call: Call) -> str:
        """As stored along the second axis, which is the innermost one of channels-last memory."""
        return "any" if call.args["axis"] == 1 else "contiguous"

    def forward(self, call: Call) -> Runner:
        """Prepare the softmax."""
        return self._prepared(call, "", forward_arrays(call), [0, 1])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradient from y and dy."""
        return self._prepared(call, "_backward", backward_arrays(call, wanted), [1, 2, 3])

    def _prepared(self, call: Call, suffix: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int]) -> Runner:
        """Return the operation on lines in one piece, or on many lines next to each other."""
        (x,), axis = call.inputs, call.args["axis"]
        assert x is not None and isinstance(axis, int)
        neighbours = x.strides is None and math.prod(x.shape[axis + 1 :]) > 1
        operation = f"softmax_lanes{suffix}" if neighbours else f"softmax{suffix}"
        runner: Runner = _native.prepare(operation, arrays, places=list(places), axis=axis, log=self._log)
        return runner


def _slope_view(call: Call) -> dict[str, Shape]:
    """Return the slopes along the channel axis of x0."""
    x0, x1 = call.inputs
    assert x0 is not None
    assert x1 is not None
    axis = call.args["base_axis"]
    assert isinstance(axis, int)
    return {"x1": (x1.size, *(1,) * (len(x0.shape) - axis - 1)) if x1.size != 1 else ()}


def _leaky_relu_slope(call: Call) -> dict[str, str]:
    """Return the sign of x tells the slope, as that of y does unless alpha turns it over."""
    (seen,) = call.spec.needed(call.args)
    return {"x": f"dx = leaky_relu_grad dy {seen} ; alpha"}


ACTIVATION: Final[dict[str, Kernel]] = {
    "Softmax": Softmax(log=False),
    "LogSoftmax": Softmax(log=True),
    "Sigmoid": Pointwise("y = sigmoid x", {"x": "dx = sigmoid_grad dy y"}),
    "Swish": Pointwise("y = swish x", {"x": "dx = swish_grad dy x"}),
    "Tanh": Pointwise("y = tanh x", {"x": "dx = tanh_grad dy y"}),
    "ReLU": Pointwise("y = relu x", {"x": "dx = relu_grad dy y"}),
    "LeakyReLU": Pointwise("y = leaky_relu x ; alpha", _leaky_relu_slope),
    "ELU": Pointwise("y = elu x ; alpha", {"x": "dx = elu_grad dy x ; alpha"}),
    "SELU": Pointwise("y = selu x ; scale alpha", {"x": "dx = selu_grad dy x ; scale alpha"}),
    "PReLU": Pointwise(
        "y = prelu x0 x1", {"x0": "dx0 = prelu_grad dy x0 x1", "x1": "dx1 = prelu_slope_grad dy x0"}, views=_slope_view
    ),
    "GELU": Pointwise("y = gelu x", {"x": "dx = gelu_grad dy x"}),
    "Mish": Pointwise("y = mish x", {"x": "dx = mish_grad dy x"}),
    "ReLU6": Pointwise("y = relu6 x", {"x": "dx = relu6_grad dy y"}),
    "HardSigmoid": Pointwise("y = hard_sigmoid x", {"x": "dx = hard_sigmoid_grad dy x"}),
    "HardTanh": Pointwise("y = hard_tanh x", {"x": "dx = hard_tanh_grad dy x"}),
    "LogSigmoid": Pointwise("y = log_sigmoid x", {"x": "dx = log_sigmoid_grad dy x"}),
    "SoftPlus": Pointwise("y = softplus x ; beta", {"x": "dx = softplus_grad dy x ; beta"}),
    "SoftSign": Pointwise("y = softsign x", {"x": "dx = softsign_grad dy x"}),
    "Sinc": Pointwise(
        "zero = equal_scalar x ; 0\ndivisor = add x zero\ns = sin x\nquotient = div s divisor\ny = add quotient zero"
    ),
    "TanhShrink": Pointwise("y = tanh_shrink x", {"x": "dx = tanh_shrink_grad dy x"}),
}
