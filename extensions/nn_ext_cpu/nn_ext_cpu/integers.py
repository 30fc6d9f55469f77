"""Products of levels with exact sums, and levels of numbers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.axes import base_axis_of
from nn_ext_cpu.convolution import image
from nn_ext_cpu.describe import forward_arrays, refuse_rank

_BYTES: Final = ("int8", "uint8")
_LEVELS: Final = (*_BYTES, "int16", "uint16")


def _refuse_levels(call: Call, names: Sequence[str], taken: Sequence[str] = _BYTES) -> Refusal | None:
    """Refuse inputs, of those with these names, of other dtypes than levels that the loops take."""
    for entry, desc in zip(call.spec.inputs, call.inputs, strict=True):
        if entry.name in names and desc is not None and desc.dtype not in taken:
            return Refusal(f"takes {entry.name} of {' or '.join(taken)}, got {desc.dtype}")
    return refuse_rank(call)


def _is_along(desc: ArrayDesc | None, axis: int) -> bool:
    """Return whether an array has one element, or those of one axis."""
    return desc is None or desc.size == desc.shape[axis] or desc.size == 1


def _refuse_requantization(call: Call, operand: str) -> Refusal | None:
    """Refuse scales of other dtypes than float32, and a zero point that is no level of the first operand."""
    inputs = dict(zip((entry.name for entry in call.spec.inputs), call.inputs, strict=True))
    first, scale, zero_point = (inputs[name] for name in (operand, "scale", "zero_point"))
    assert first is not None and scale is not None and zero_point is not None
    if scale.dtype != "float32":
        return Refusal(f"takes a scale of float32, got {scale.dtype}")
    if zero_point.dtype != first.dtype:
        return Refusal(f"takes a zero_point of the dtype of {operand}, {first.dtype}, got {zero_point.dtype}")
    return None


class MatmulInteger:
    """Matrices of int8 or uint8; a matrix that does not change is kept in the form of the loops.

    Args:
        to_levels: Whether the sums are quantized.
    """

    def __init__(self, *, to_levels: bool) -> None:
        self._to_levels = to_levels

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse levels of 16 bits, batches that are broadcast along some axes only, and zero points of some matrices."""
        a, b, *_, a_zero, b_zero, _ = call.inputs
        assert a is not None and b is not None
        leading = [desc.shape[:-2] for desc in (a, b)]
        if leading[0] != leading[1] and not any(math.prod(shape) == 1 for shape in leading):
            return Refusal(f"takes equal batch axes, or a single matrix, got {leading[0]} and {leading[1]}")
        if not (_is_along(a_zero, -2) and _is_along(b_zero, -1)):
            return Refusal("takes zero points that all matrices of a batch share")
        refusal = _refuse_levels(call, ("a", "b")) or _refuse_levels(call, ("a_zero_point", "b_zero_point"), _LEVELS)
        return refusal or (_refuse_requantization(call, "a") if self._to_levels else None)

    def forward(self, call: Call) -> Runner:
        """Prepare the products."""
        arrays = forward_arrays(call)
        views = [desc and ArrayDesc((desc.size,), desc.dtype) for desc in arrays]
        for place in (0, 1, len(arrays) - 1):
            desc = arrays[place]
            views[place] = desc and ArrayDesc(_stacked(desc.shape), desc.dtype)
        operation = "matmul_levels" if self._to_levels else "matmul_integers"
        runner: Runner = _native.prepare(operation, arrays, views=views)
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return nothing: integers have no gradient."""
        return None


def _stacked(shape: Sequence[int]) -> tuple[int, ...]:
    return (math.prod(shape[:-2]), *shape[-2:])


class ConvInteger:
    """Images of int8 or uint8 in one to three spatial dimensions.

    Args:
        to_levels: Whether the sums are quantized.
    """

    def __init__(self, *, to_levels: bool) -> None:
        self._to_levels = to_levels

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse levels of 16 bits, other numbers of dimensions, and a zero point that is no level of the image."""
        x, *_, x_zero, _, _ = call.inputs
        assert x is not None
        n_spatial = len(x.shape) - base_axis_of(call) - 1
        if not 1 <= n_spatial <= 3:
            return Refusal(f"takes one to three spatial dimensions, got {n_spatial}")
        if x_zero is not None and x_zero.dtype != x.dtype:
            return Refusal(f"takes an x_zero_point of the dtype of x, {x.dtype}, got {x_zero.dtype}")
        refusal = _refuse_levels(call, ("x", "weight")) or _refuse_levels(call, ("weight_zero_point",), _LEVELS)
        return refusal or (_refuse_requantization(call, "x") if self._to_levels else None)

    def forward(self, call: Call) -> Runner:
        """Prepare the convolution."""
        arrays = forward_arrays(call)
        views = [desc and ArrayDesc((desc.size,), desc.dtype) for desc in arrays]
        views[1] = arrays[1]
        for place in (0, len(arrays) - 1):
            desc = arrays[place]
            assert desc is not None
            views[place] = image(desc, base_axis_of(call))
        settings: dict[str, Any] = {name: call.args[name] for name in ("stride", "dilation", "pad", "group")}
        operation = "conv_levels" if self._to_levels else "conv_integers"
        runner: Runner = _native.prepare(operation, arrays, views=views, **settings)
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return nothing: integers have no gradient."""
        return None


class QuantizeInteger:
    """Levels of numbers, by scales and zero points of one element or of one axis."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse numbers of other dtypes than float32, no elements, and scales that differ along several axes."""
        x, scale, zero_point = call.inputs
        assert x is not None and scale is not None and zero_point is not None
        if (x.dtype, scale.dtype) != ("float32", "float32"):
            return Refusal(f"computes in float32, got {x.dtype} and {scale.dtype}")
        if x.size == 0 or len(_axes(call)) > 1:
            return Refusal("takes arrays with elements, and scales of one element or of one axis")
        return _refuse_levels(call, ("zero_point",), _LEVELS)

    def forward(self, call: Call) -> Runner:
        """Prepare the rounding."""
        arrays, axes = forward_arrays(call), _axes(call)
        views = [desc and ArrayDesc(desc.shape or (1,), desc.dtype) for desc in arrays]
        runner: Runner = _native.prepare("quantize_integers", arrays, views=views, axis=axes[0] if axes else 0)
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return nothing: levels have no gradient."""
        return None


def _axes(call: Call) -> list[int]:
    """Return the axes along which the scale or the zero point differ."""
    shapes = [desc.shape for desc in call.inputs[1:3] if desc is not None]
    return [axis for axis in range(len(shapes[0])) if any(shape[axis] != 1 for shape in shapes)]


INTEGERS: Final[Mapping[str, Kernel]] = {
    "ConvInteger": ConvInteger(to_levels=False),
    "MatMulInteger": MatmulInteger(to_levels=False),
    "QLinearConv": ConvInteger(to_levels=True),
    "QLinearMatMul": MatmulInteger(to_levels=True),
    "QuantizeInteger": QuantizeInteger(),
}
