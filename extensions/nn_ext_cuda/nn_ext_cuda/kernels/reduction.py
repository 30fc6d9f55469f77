"""Reductions over some axes: sums, means, products, norms and extrema."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.describe import backward_arrays, forward_arrays
from nn_ext_cuda.dtypes import real, real_type, refuse_dtypes
from nn_ext_cuda.launch import Argument, Program, flat
from nn_ext_cuda.operand import Operand
from nn_ext_cuda.pointwise import elementwise_code
from nn_ext_cuda.reduce import reduction

_LIMIT: Final = 2**31


class Reduction:
    """A reduction of x to y.

    Args:
        expression: What is reduced, in terms of x and the arguments.
        combine: How; a key of `reduce.COMBINE`.
        finish: What y is, in terms of the reduced value a, of `count`, the number of values, and of the arguments.
        gradient: dx in terms of dy, x, y, `count` and the arguments; None: the gradient rule serves.
    """

    def __init__(self, expression: str, combine: str, finish: str = "a", gradient: str | None = None) -> None:
        self._expression = expression
        self._combine = combine
        self._finish = finish
        self._gradient = gradient

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, indices of extrema, extrema of nothing and very large arrays."""
        (x,) = call.inputs
        assert x is not None
        if call.args.get("with_index") or call.args.get("only_index"):
            return Refusal("gives values, not indices")
        if x.size >= _LIMIT:
            return Refusal(f"takes arrays of less than {_LIMIT} elements, got {x.size}")
        if self._combine in ("maximum", "minimum") and x.size == 0:
            return Refusal("takes extrema of at least one element")
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch, or two where few results are made of many elements."""
        (x,), (y,) = call.inputs, call.outputs
        assert x is not None
        return reduction(
            f"{call.spec.api}_forward",
            call.dtype,
            self._expression,
            [Operand("x", 0, x.dtype, x.shape)],
            Operand("y", 1, y.dtype, y.shape),
            x.shape,
            _axes(call, x),
            len(forward_arrays(call)),
            numbers=_numbers(call, x),
            combine=self._combine,
            finish=self._finish,
        )

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """dy, repeated along the reduced axes, times what the expression says."""
        (x,), arrays = call.inputs, backward_arrays(call, wanted)
        if self._gradient is None or x is None:
            return None
        if x.size == 0:
            return Program([], len(arrays))
        kept = tuple(1 if axis in _axes(call, x) else length for axis, length in enumerate(x.shape))
        shapes = {"x": x.shape, "y": kept, "dy": kept}
        read = [
            Operand(name, place, desc.dtype, shapes[name])
            for place, (name, desc) in enumerate(zip(("x", "y", "dy"), arrays, strict=False))
            if desc is not None
        ]
        numbers = _numbers(call, x)
        written = [Operand("dx", 3, x.dtype, x.shape)]
        names = [name for name, _ in numbers]
        kernel = f"{call.spec.api}_backward"
        code, dims = elementwise_code(
            kernel, real_type(call.dtype), read, written, {"dx": self._gradient}, names, x.shape
        )
        places: list[Argument] = [operand.place for operand in (*read, *written)]
        values = [value for _, value in numbers]
        return Program([flat(code, x.size, [np.int64(x.size), *places, *values, *dims])], len(arrays))


def _axes(call: Call, x: ArrayDesc) -> tuple[int, ...]:
    axes = call.args.get("axes", tuple(range(len(x.shape))))
    assert isinstance(axes, tuple)
    return tuple(int(axis) for axis in axes)


def _numbers(call: Call, x: ArrayDesc) -> list[tuple[str, Argument]]:
    count = math.prod(x.shape[axis] for axis in _axes(call, x))
    numbers: list[tuple[str, Argument]] = [("count", real(call.dtype, count))]
    if "p" in call.args:
        numbers.append(("p", real(call.dtype, call.args["p"])))
    return numbers


_SUM: Final = Reduction("x", "sum", gradient="dy")
_MEAN: Final = Reduction("x", "sum", "a / count", "dy / count")

REDUCTION: Final[Mapping[str, Kernel]] = {
    "Sum": _SUM,
    "ReduceSum": _SUM,
    "Mean": _MEAN,
    "ReduceMean": _MEAN,
    "Prod": Reduction("x", "product"),
    "Max": Reduction("x", "maximum"),
    "Min": Reduction("x", "minimum"),
    "Norm": Reduction("pow(fabs(x), p)", "sum", "pow(a, 1 / p)"),
}
