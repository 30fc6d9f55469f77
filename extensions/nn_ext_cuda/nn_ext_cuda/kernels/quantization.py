"""Rounding of values to few levels, and what belongs to it: ranges that follow the data, and pruning.

Gradients pass straight through, within the range of the levels or everywhere.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.code import generated
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.describe import forward_arrays, forward_names
from nn_ext_cuda.codegen.dtypes import C_TYPES, real_dtype, real_type, refuse_dtypes
from nn_ext_cuda.codegen.ordering import Ordering
from nn_ext_cuda.codegen.pointwise import Pointwise
from nn_ext_cuda.launch.program import flat


def _range(args: Mapping[str, object]) -> Mapping[str, float]:
    """Return the lowest and the highest level of fixed-point numbers."""
    n, delta, sign = args["n"], args["delta"], args["sign"]
    assert isinstance(n, int) and isinstance(delta, (int, float))
    high = float((2 ** (n - bool(sign)) - 1) * delta)
    return {"low": -high if sign else 0.0, "high": high}


def _powers(args: Mapping[str, object]) -> Mapping[str, float]:
    """Return the lowest and the highest power of two, what is rounded to more than that, and from where on gradients are 0."""
    n, m, sign = args["n"], args["m"], bool(args["sign"])
    assert isinstance(n, int) and isinstance(m, int)
    low, high = 2.0 ** (m - (2 ** (n - sign - bool(args["with_zero"])) - 1)), 2.0**m
    edge = high * 2**0.5
    return {"least": low, "most": high, "below": low * _BELOW, "low": -edge if sign else 0.0, "high": edge}


def _straight_through(call: Call) -> dict[str, str]:
    """Return the identity, with `ste_fine_grained` within the range."""
    return {"x": "x < low || x > high ? R(0) : dy" if call.args["ste_fine_grained"] else "dy"}


def _nearest(value: str) -> str:
    """`value` rounded to the nearest integer, halves away from zero, in the steps of the reference."""
    return f"(({value}) < 0 ? R(-1) : R(1)) * floor(fabs({value}) + 0.5)"


def _within(value: str, low: str, high: str) -> str:
    return f"smaller(larger({value}, {low}), {high})"


#: The smallest normal number.
TINY: Final = "(sizeof(R) == 8 ? R(2.2250738585072014e-308) : R(1.1754943508222875e-38))"
#: The logarithm is rounded, where 0 counts as the smallest normal number. NaN has no exponent, and stays.
_MAGNITUDE: Final = "(sign != 0 ? fabs(x) : larger(x, R(0)))"
_EXPONENT: Final = f"int(smaller(floor(log2(larger({_MAGNITUDE}, {TINY})) + 0.5), R(128)))"
_NEAR: Final = f"ldexp(R(1), {_EXPONENT})"
#: The largest number of float64 below the square root of 1/2, which is rounded to that of float32; twice it.
_BELOW: Final = 0.7071067811865475
_UP, _DOWN = f"{_MAGNITUDE} > {_NEAR} * R({2 * _BELOW!r})", f"{_MAGNITUDE} <= {_NEAR} * R({_BELOW!r})"
#: Rounding of the logarithm may reach the threshold: then it is a neighbour.
_POWER: Final = _within(f"({_DOWN} ? {_NEAR} / 2 : {_UP} ? {_NEAR} * 2 : {_NEAR})", "least", "most")
_LEVEL: Final = f"(with_zero != 0 && {_MAGNITUDE} <= below ? R(0) : {_POWER})"


class Rescaled:
    """Rounding to levels over ranges that other arrays give; gradients are those of the rules."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and arrays that are very large or empty."""
        if _x(call).size == 0:
            return Refusal("takes arrays with at least one element")
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None

    @staticmethod
    def _composition(call: Call, numbers: Mapping[str, float] | None = None) -> Composition:
        names = forward_names(call)
        arrays = forward_arrays(call)
        shapes = {name: desc.shape for name, desc in zip(names, arrays, strict=True) if desc is not None}
        return Composition(call, arrays, names, _x(call).shape, shapes, numbers)


class MinMaxQuantize(Rescaled):
    """Evenly spaced levels of a range that is moved so that 0 is a level."""

    def forward(self, call: Call) -> Runner:
        """With `x_min_max` two reductions; a launch each for the ends of the range, its levels, and the elements."""
        args, of_range = call.args, _shape_of_range(call)
        composition = self._composition(call)
        for name in ("lowest", "highest", "start", "end", "step"):
            composition.scratch(name, of_range)
        ends = ("qr_min", "qr_max")
        if args["x_min_max"]:
            composition.reduce("min_max_quantize_min", "lowest", "x", combine="minimum")
            composition.reduce("min_max_quantize_max", "highest", "x", combine="maximum")
            ends = ("lowest", "highest")
            if args["ema"]:
                ends = ("decay * qr_min + (1 - decay) * lowest", "decay * qr_max + (1 - decay) * highest")
        low, high = ends
        composition.compute("min_max_quantize_range", {"start": low, "end": f"larger({high}, {low} + eps)"})
        composition.compute("min_max_quantize_kept", {"qr_min": "start", "qr_max": "end"})
        composition.compute("min_max_quantize_step", {"step": "(end - start) / (ql_max - ql_min)"})
        zero_point = _within(_nearest("ql_min - start / step"), "ql_min", "ql_max")
        levels = {"lowest": f"(ql_min - {zero_point}) * step", "highest": f"(ql_max - {zero_point}) * step"}
        composition.compute("min_max_quantize_levels", levels)
        composition.compute("min_max_quantize_ends", {"range_min": "lowest", "range_max": "highest"})
        steps = _nearest(f"({_within('x', 'lowest', 'highest')} - lowest) / step")
        composition.compute("min_max_quantize", {"y": f"{steps} * step + lowest"})
        return composition.program()


class QuantizeLinear(Rescaled):
    """Levels of 8 bits; the zero point is rounded and saturated too."""

    def forward(self, call: Call) -> Runner:
        """Return a launch for the zero point, and one for the elements."""
        args = call.args
        low, high = (-128, 127) if args["dtype"] == 1 else (0, 255)
        composition = self._composition(call, {"low": low + bool(args["narrow_range"]), "high": high})
        composition.scratch("zero", _present(call.inputs[2]).shape)
        even = args["round_mode"] == "HALF_TO_EVEN"
        zero, steps = (f"rint({value})" if even else _nearest(value) for value in ("zero_point", "x / scale"))
        composition.compute("quantize_linear_zero", {"zero": _within(zero, "low", "high")})
        composition.compute("quantize_linear_kept", {"zero_point": "zero"})
        composition.compute("quantize_linear", {"y": _within(f"{steps} + zero", "low", "high")})
        return composition.program()


class Prune:
    """Zeros in the place of the elements of the smallest magnitude; the gradient is the identity."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and arrays that are very large or empty."""
        if _x(call).size == 0:
            return Refusal("takes arrays with at least one element")
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Return the launches of a sort of the magnitudes, and one that compares with one of them."""
        n, rate = _x(call).size, call.args["rate"]
        assert isinstance(rate, (int, float))
        ordering = Ordering(2, call.dtype)
        magnitudes = ordering.take_keys(0, n, n, 1, absolute=True)
        keys, _ = ordering.sort(magnitudes, n, n, real_dtype(call.dtype))
        kind = C_TYPES[call.dtype]
        parameters = ["const int64 n", f"const {kind}* x", "const R* keys", "const int64 place", f"{kind}* y"]
        code = generated("prune", parameters, _PRUNE, real_type(call.dtype))
        place = -1 if rate == 1 else int((n - 1) * rate)
        ordering.launches.append(flat(code, n, [np.int64(n), 0, keys, np.int64(place), 1]))
        return ordering.runner()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return a copy."""
        return _IDENTITY.backward(call, wanted)


_IDENTITY: Final = Pointwise("x", {"x": "dy"})
#: Without a place everything is pruned. NaN is sorted last and is larger than nothing, so it stays.
_PRUNE: Final = """\
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x) {
    const R value = R(load(x[i]));
    store(y[i], place < 0 || fabs(value) < keys[place] ? R(0) : value);
  }"""


def _x(call: Call) -> ArrayDesc:
    return _present(call.inputs[0])


def _shape_of_range(call: Call) -> Shape:
    return _present(call.inputs[1]).shape


def _present(desc: ArrayDesc | None) -> ArrayDesc:
    assert desc is not None
    return desc


QUANTIZATION: Final[dict[str, Kernel]] = {
    "BinarySigmoid": Pointwise("x > 0 ? R(1) : R(0)", {"x": "x <= -1 || x >= 1 ? R(0) : R(0.5) * dy"}),
    "BinaryTanh": Pointwise("x > 0 ? R(1) : R(-1)", {"x": "x <= -1 || x >= 1 ? R(0) : dy"}),
    "FixedPointQuantize": Pointwise(
        _within(f"{_nearest('x / delta')} * delta", "low", "high"), _straight_through, settings=_range
    ),
    "Pow2Quantize": Pointwise(f"x != x ? x : sign != 0 && x < 0 ? -{_LEVEL} : {_LEVEL}", _straight_through, settings=_powers),
    "DequantizeLinear": Pointwise(
        "(x - zero_point) * scale",
        {"x": "dy * scale", "scale": "dy * (x - zero_point)", "zero_point": "-dy * scale"},
    ),
    "MinMaxQuantize": MinMaxQuantize(),
    "QuantizeLinear": QuantizeLinear(),
    "Prune": Prune(),
}
