"""Functions of whole numbers: graphs of nn_core compute with floating-point numbers, so integers are computed on the host."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.function import PythonFunction
from nn_ext_onnx.importing.registry import Node
from nn_ext_onnx.importing.values import LEVELS, Array, Value

#: Results from arrays in the dtypes of the model, None where an input is left out.
Compute: TypeAlias = Callable[[Sequence[Array | None]], Sequence[Array]]


class HostFunction(PythonFunction):
    """A computation on arrays of the dtypes of the model; no gradient passes through it.

    Args:
        name: for messages and summaries.
        compute: the results.
        dtypes: of the inputs that are given, None for those that are left out.
        shapes: of the outputs.
        is_whole: whether the outputs are integers; else they are float32.
    """

    def __init__(
        self,
        name: str,
        compute: Compute,
        dtypes: Sequence[np.dtype[Any] | None],
        shapes: Sequence[tuple[int, ...]],
        is_whole: bool = True,
    ) -> None:
        super().__init__()
        self._name, self.compute, self.dtypes, self.shapes = name, compute, list(dtypes), list(shapes)
        self.output_dtype = "int64" if is_whole else "float32"

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self._name

    def min_outputs(self) -> int:
        """One for each shape."""
        return len(self.shapes)

    def setup_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """The shapes are known."""
        for output, shape in zip(outputs, self.shapes, strict=True):
            output.reset_shape(shape, True)

    def forward_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Compute in the dtypes of the model."""
        given = iter(inputs)
        arrays = [None if dtype is None else np.asarray(next(given).d).astype(dtype) for dtype in self.dtypes]
        for output, array in zip(outputs, self.compute(arrays), strict=True):
            output.d = np.asarray(array).astype(self.output_dtype)

    def backward_impl(self, inputs: Any, outputs: Any, propagate_down: Sequence[bool], accum: Sequence[bool]) -> None:
        """Whole numbers have no gradients."""
        for variable, is_wanted, is_added in zip(inputs, propagate_down, accum, strict=True):
            if is_wanted and not is_added:
                variable.g = 0


def on_host(
    name: str, compute: Compute, inputs: Sequence[Value | None], shapes: Sequence[tuple[int, ...]], is_whole: bool = True
) -> list[nn.Variable]:
    """The results of a computation on the host."""
    function = HostFunction(name, compute, [None if v is None else v.dtype for v in inputs], shapes, is_whole)
    made = function(*[value.variable for value in inputs if value is not None])
    return list(made) if isinstance(made, tuple) else [made]


def as_levels(y: nn.Variable, dtype: np.dtype[Any]) -> nn.Variable:
    """Numbers that `dtype` holds, in an array of it; others as they are, where it is none of levels."""
    if dtype.name not in LEVELS:
        return y
    one = nn.Variable.from_numpy_array(np.ones((1,) * y.ndim, np.float32))
    return F.quantize_integer(y, one, nn.Variable.from_numpy_array(np.zeros((1,) * y.ndim, dtype)))


def index_of(value: Value, shape: tuple[int, ...], compute: Callable[[Array], Array]) -> nn.Variable:
    """Indices that follow from those of the model: constants if these are known."""
    if value.is_known:
        return nn.Variable.from_numpy_array(np.asarray(compute(value.array), dtype=np.int64).reshape(shape))
    return on_host("Index", lambda arrays: [compute(np.asarray(arrays[0])).reshape(shape)], [value], [shape])[0]


#: Operators whose results are numbers that they get: floating-point numbers hold levels exactly.
_MOVING: Final = frozenset(
    {
        *("Clip", "Concat", "DepthToSpace", "GlobalMaxPool", "Max", "MaxPool", "Min", "Pad", "ReduceMax", "ReduceMin", "Relu"),
        *("Resize", "ScatterElements", "ScatterND", "SpaceToDepth", "Upsample", "Where"),
    }
)


def moves_levels(node: Node) -> bool:
    """Whether an operator gives only levels that it gets."""
    is_choice = node.attr("mode", "nearest") not in ("linear", "cubic") and node.attr("reduction", "none") == "none"
    if node.kind not in _MOVING or node.proto.domain or not is_choice:
        return False
    return bool(node.dtypes) and all(dtype is not None and dtype.name in LEVELS for dtype in node.dtypes)


def moved(convert: Callable[[Node], Any], node: Node) -> list[Any]:
    """The results of such an operator, by a converter that computes with floating-point numbers."""
    made = convert(node)
    results = made if isinstance(made, (list, tuple)) else [made]
    dtypes = [dtype for dtype in node.dtypes if dtype is not None]
    return [
        as_levels(result, dtype) if isinstance(result, nn.Variable) else result
        for result, dtype in zip(results, dtypes, strict=False)
    ]
