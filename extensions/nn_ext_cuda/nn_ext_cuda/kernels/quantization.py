"""Rounding of values to few levels; gradients pass straight through, within the range of the levels or everywhere."""

from collections.abc import Mapping
from typing import Final

from nn_core.ext import Call, Kernel
from nn_ext_cuda.pointwise import Pointwise


def _range(args: Mapping[str, object]) -> Mapping[str, float]:
    """The lowest and the highest level of fixed-point numbers."""
    n, delta, sign = args["n"], args["delta"], args["sign"]
    assert isinstance(n, int) and isinstance(delta, (int, float))
    high = float((2 ** (n - bool(sign)) - 1) * delta)
    return {"low": -high if sign else 0.0, "high": high}


def _straight_through(call: Call) -> dict[str, str]:
    """The identity, with `ste_fine_grained` within the range."""
    return {"x": "x < low || x > high ? R(0) : dy" if call.args["ste_fine_grained"] else "dy"}


#: To the nearest integer, halves away from zero, in the steps of the reference.
_ROUNDED: Final = "(x < 0 ? R(-1) : R(1)) * floor(fabs(x / delta) + 0.5)"

QUANTIZATION: Final[dict[str, Kernel]] = {
    "BinarySigmoid": Pointwise("x > 0 ? R(1) : R(0)", {"x": "x <= -1 || x >= 1 ? R(0) : R(0.5) * dy"}),
    "BinaryTanh": Pointwise("x > 0 ? R(1) : R(-1)", {"x": "x <= -1 || x >= 1 ? R(0) : dy"}),
    "FixedPointQuantize": Pointwise(
        f"smaller(larger({_ROUNDED} * delta, low), high)", _straight_through, settings=_range
    ),
}
