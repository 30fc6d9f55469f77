"""Reductions over some axes: sums, means, products, norms and extrema; running sums and products."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.code import Code, part
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.describe import backward_arrays, forward_arrays
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES, real_type, refuse_dtypes
from nn_ext_cuda.codegen.layout import split_axes
from nn_ext_cuda.kernels.extrema import Extremum
from nn_ext_cuda.launch.program import MAX_BLOCKS, THREADS, Launch, Program, flat


class Reduction:
    """A reduction of x to y.

    Args:
        expression: The values to reduce, in terms of x and the arguments.
        combine: How; a key of `reduce_code.COMBINE`.
        finish: The value of y, in terms of the reduced value a, of `count`, the number of values, and of the arguments.
        gradient: dx in terms of dy, x, y, `count` and the arguments; None: the gradient rule serves.
        first_axis: Where a function has no argument `axes`, the first of the axes that are reduced.
    """

    def __init__(
        self, expression: str, combine: str, finish: str = "a", gradient: str | None = None, first_axis: int = 0
    ) -> None:
        self._expression = expression
        self._combine = combine
        self._finish = finish
        self._gradient = gradient
        self._first_axis = first_axis

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes([*call.inputs, *call.outputs]) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch, or two where few results are made of many elements."""
        composition = self._composition(call, forward_arrays(call), ["x", "y"])
        composition.reduce(f"{call.spec.api}_forward", "y", self._expression, combine=self._combine, finish=self._finish)
        return composition.program()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the gradient of y, repeated along the reduced axes."""
        if self._gradient is None:
            return None
        composition = self._composition(call, backward_arrays(call, wanted), ["x", "y", "dy", "dx"])
        composition.compute(f"{call.spec.api}_backward", {"dx": self._gradient})
        return composition.program()

    def _composition(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        (x,) = call.inputs
        assert x is not None
        axes = call.args.get("axes", tuple(range(self._first_axis, len(x.shape))))
        assert isinstance(axes, tuple)
        kept = tuple(1 if axis in axes else length for axis, length in enumerate(x.shape))
        count, order = math.prod(x.shape[int(axis)] for axis in axes), _order(x)
        whole, kept = (tuple(shape[axis] for axis in order) for shape in (x.shape, kept))
        return Composition(call, arrays, names, whole, {"y": kept, "dy": kept}, {"count": count})


def _order(x: ArrayDesc) -> list[int]:
    """Return the axes in the order in which they are in memory, the outermost first."""
    axes = list(range(len(x.shape)))
    is_channels_last = x.strides is not None and x.strides[1] == ITEM_BYTES[x.dtype]
    return [0, *axes[2:], 1] if is_channels_last else axes


class Scan:
    """Running sums or products along an axis; the gradient of sums runs the other way.

    Args:
        product: Multiply.
    """

    def __init__(self, *, product: bool) -> None:
        self._product = product

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in."""
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch: a block a row where rows are contiguous, else a thread a row."""
        return self._program(call, (0, 1), 2, reverse=bool(call.args["reverse"]))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the same in the other direction; None for products."""
        return None if self._product else self._program(call, (2, 3), 4, reverse=not call.args["reverse"])

    def _program(self, call: Call, places: tuple[int, int], n_arrays: int, *, reverse: bool) -> Runner:
        axis = call.args["axis"]
        assert isinstance(axis, int)
        outer, length, inner = split_axes(call.outputs[0].shape, axis)
        n_rows = outer * inner
        if n_rows * length == 0:
            return Program([], n_arrays)
        along = inner == 1 and length > _SHORT
        exclusive = bool(call.args["exclusive"])
        defines = {"PRODUCT": self._product, "EXCLUSIVE": exclusive, "REVERSE": reverse}
        header = "".join(f"#define {name} {int(value)}\n" for name, value in defines.items())
        text = f"{header}typedef {C_TYPES[call.dtype]} T;\n{part('scan.cu')}"
        code = Code("scan_along" if along else "scan_across", text, real_type(call.dtype))
        arguments = [np.int64(n_rows), np.int64(length), np.int64(inner), *places]
        if along:
            return Program([Launch(code, (min(n_rows, MAX_BLOCKS),), (THREADS,), tuple(arguments))], n_arrays)
        return Program([flat(code, n_rows, arguments)], n_arrays)


#: Rows of so many elements are run through by one thread each.
_SHORT: Final = 16

_SUM: Final = Reduction("x", "sum", gradient="dy")
_MEAN: Final = Reduction("x", "sum", "a / count", "dy / count")

#: 0 where the norm is, if p is above 1.
_NORM_SLOPE: Final = "(x < 0 ? -dy : dy) * pow(fabs(x) / (y == 0 ? R(1) : y), p - 1)"

REDUCTION: Final[Mapping[str, Kernel]] = {
    "Sum": _SUM,
    "ReduceSum": _SUM,
    "Mean": _MEAN,
    "ReduceMean": _MEAN,
    "Prod": Reduction("x", "product"),
    "Max": Extremum(Reduction("x", "maximum"), largest=True),
    "Min": Extremum(Reduction("x", "minimum"), largest=False),
    "CumSum": Scan(product=False),
    "CumProd": Scan(product=True),
    "Norm": Reduction("pow(fabs(x), p)", "sum", "pow(a, 1 / p)", _NORM_SLOPE),
}

#: Pooling over all spatial axes.
GLOBAL_AVERAGE: Final = Reduction("x", "sum", "a / count", "dy / count", first_axis=2)
