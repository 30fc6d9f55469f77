"""Quantizers that round element by element."""

from collections.abc import Mapping
from typing import Final

from nn_core.ext import Call, Kernel
from nn_ext_cpu.pointwise import Pointwise

#: 0 within (-1, 1) and for NaN, where binary functions have a slope, else 1.
_OUTSIDE: Final = "low = less_equal_scalar x ; -1\nhigh = greater_equal_scalar x ; 1\nout = add low high"


def _range(call: Call) -> tuple[float, float]:
    """Return the smallest and the largest number of FixedPointQuantize."""
    sign, n, delta = bool(call.args["sign"]), call.args["n"], call.args["delta"]
    assert isinstance(n, int) and isinstance(delta, (int, float))
    high = float((2 ** (n - sign) - 1) * delta)
    return (-high if sign else 0.0), high


def _fixed_point(call: Call) -> str:
    low, high = _range(call)
    return (
        f"steps = div_scalar x ; delta\nwhole = round steps\nvalue = mul_scalar whole ; delta\ny = clip value ; {low} {high}"
    )


def _fixed_point_gradient(call: Call) -> Mapping[str, str]:
    """Straight through, or only for values within the range."""
    if not call.args["ste_fine_grained"]:
        return {"x": "dx = copy dy"}
    low, high = _range(call)
    outside = f"below = less_scalar x ; {low}\nabove = greater_scalar x ; {high}\nout = add below above"
    return {"x": f"{outside}\ndx = mask_zero dy out"}


QUANTIZATION: Final[Mapping[str, Kernel]] = {
    "BinarySigmoid": Pointwise(
        "y = greater_scalar x ; 0", {"x": f"{_OUTSIDE}\nhalf = mul_scalar dy ; 0.5\ndx = mask_zero half out"}
    ),
    "BinaryTanh": Pointwise("one = greater_scalar x ; 0\ny = axpb one ; 2 -1", {"x": f"{_OUTSIDE}\ndx = mask_zero dy out"}),
    "FixedPointQuantize": Pointwise(_fixed_point, _fixed_point_gradient),
    "DequantizeLinear": Pointwise(
        "difference = sub x zero_point\ny = mul difference scale",
        {
            "x": "dx = mul dy scale",
            "scale": "difference = sub x zero_point\ndscale = mul dy difference",
            "zero_point": "dzero_point = neg_mul dy scale",
        },
    ),
}
