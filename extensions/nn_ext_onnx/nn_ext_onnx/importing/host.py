"""Functions of whole numbers: graphs of nn_core compute with floating-point numbers, so integers are computed on the host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import ArgumentError
from nn_core.function import PythonFunction
from nn_ext_onnx.importing.registry import WHOLE, WHOLE_RESULTS, Node
from nn_ext_onnx.importing.values import LEVELS, NARROW, Array, Value, is_float, is_whole

#: Results from arrays in the dtypes of the model, None where an input is left out. Exporters write the classes that are known
#: to them: `Evaluator` and `FlatPlaces`.
Compute: TypeAlias = Callable[[Sequence[Array | None]], Sequence[Array]]


@dataclass(slots=True)
class FlatPlaces:
    """Places in an array as one index each: the sum of `offset` and of `strides` times indices along some of its axes.

    Attributes:
        lengths: of the axes that are indexed, for indices that count from the end.
        strides: numbers of elements from one place of these axes to the next.
        offset: what the other axes add, broadcast to the indices.
        is_summed: whether the last axis of the indices has one index for each axis, else there is one axis.
    """

    lengths: Array
    strides: Array
    offset: Array
    is_summed: bool

    def __call__(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Return the places, in one axis."""
        indices = np.asarray(arrays[0], dtype=np.int64)
        places = np.where(indices < 0, indices + self.lengths, indices) * self.strides
        return [((places.sum(axis=-1) if self.is_summed else places) + self.offset).reshape(-1)]


class HostFunction(PythonFunction):
    """A computation on arrays of the dtypes of the model; no gradient passes through it.

    Args:
        name: for messages and summaries.
        compute: the results.
        dtypes: of the inputs that are given, None for those that are left out.
        shapes: of the outputs.
        kind: the dtype of all outputs: int64, float32 or float64.
        results: the dtypes of the outputs in the model; `kind` if not given.
        gradient: "zero"; "passed" from the output to the only input; or "refused", where there is one that is not computed.
    """

    def __init__(
        self,
        name: str,
        compute: Compute,
        dtypes: Sequence[np.dtype[Any] | None],
        shapes: Sequence[tuple[int, ...]],
        kind: str = "int64",
        results: Sequence[np.dtype[Any]] | None = None,
        gradient: str = "zero",
    ) -> None:
        super().__init__()
        self.gradient = gradient
        self._name, self.compute, self.dtypes, self.shapes = name, compute, list(dtypes), list(shapes)
        self.output_dtype = kind
        self.results = [np.dtype(kind)] * len(shapes) if results is None else list(results)

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self._name

    def min_outputs(self) -> int:
        """One for each shape."""
        return len(self.shapes)

    def setup_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Do nothing: the shapes are known."""
        for output, shape in zip(outputs, self.shapes, strict=True):
            output.reset_shape(shape, True)

    def forward_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Compute in the dtypes of the model."""
        given = iter(inputs)
        arrays = [None if dtype is None else np.asarray(next(given).d).astype(dtype) for dtype in self.dtypes]
        for output, array in zip(outputs, self.compute(arrays), strict=True):
            output.d = np.asarray(array).astype(self.output_dtype)

    def expressed(self, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """Return the outputs by functions of nn_core, for whole numbers that float32 holds."""
        from nn_ext_onnx.importing.expressed import expressed  # it reads this module

        return expressed(self, inputs)

    def backward_impl(self, inputs: Any, outputs: Any, propagate_down: Sequence[bool], accum: Sequence[bool]) -> None:
        """Give zeros, as whole numbers have no gradients, or the gradient of the output.

        Raises:
            ArgumentError: when the function has a gradient that is not computed.
        """
        if self.gradient == "refused" and any(propagate_down):
            raise ArgumentError(
                f"backward: functions must have a gradient, got {self.name} of ONNX, which is computed on the host"
            )
        for variable, is_wanted, is_added in zip(inputs, propagate_down, accum, strict=True):
            if not is_wanted:
                continue
            if self.gradient == "passed":
                variable.g = variable.g + outputs[0].g if is_added else outputs[0].g
            elif not is_added:
                variable.g = 0


def on_host(
    name: str,
    compute: Compute,
    inputs: Sequence[Value | None],
    shapes: Sequence[tuple[int, ...]],
    kind: str = "int64",
    results: Sequence[np.dtype[Any]] | None = None,
    gradient: str = "zero",
) -> list[nn.Variable]:
    """Return the results of a computation on the host; see `HostFunction`."""
    dtypes = [None if value is None else value.dtype for value in inputs]
    function = HostFunction(name, compute, dtypes, shapes, kind, results, gradient)
    made = function(*[value.variable for value in inputs if value is not None])
    return list(made) if isinstance(made, tuple) else [made]


def as_levels(y: nn.Variable, dtype: np.dtype[Any]) -> nn.Variable:
    """Return numbers that `dtype` holds, in an array of it; others as they are, where it is none of levels."""
    if dtype.name not in LEVELS:
        return y
    one = nn.Variable.from_numpy_array(np.ones((1,) * y.ndim, np.float32))
    return F.quantize_integer(y, one, nn.Variable.from_numpy_array(np.zeros((1,) * y.ndim, dtype)))


def places_of(value: Value, size: int, flat: FlatPlaces) -> nn.Variable:
    """Return so many places that follow from indices of the model: constants if these are known."""
    if value.is_known:
        return nn.Variable.from_numpy_array(flat([value.array])[0])
    return on_host("Index", flat, [value], [(size,)])[0]


@dataclass(slots=True)
class Rounded:
    """Numbers of a type of fewer digits than that of the graph.

    Attributes:
        dtype: the type.
    """

    dtype: np.dtype[Any]

    def __call__(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Return the nearest numbers of the type."""
        with np.errstate(over="ignore"):
            return [np.asarray(arrays[0]).astype(self.dtype)]


#: Operators whose results are numbers that they get.
_PASSING: Final = frozenset(
    {
        *("Compress", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "MaxPool"),
        *("Relu", "Reshape", "ReverseSequence", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    }
)


def as_rounded(node: Node, y: nn.Variable, dtype: np.dtype[Any]) -> nn.Variable:
    """Return results of bfloat16 rounded to it, after each function that computes others than it gets; others as they are.

    The gradient passes as if nothing was rounded.
    """
    if dtype.name != "bfloat16" or (node.kind in _PASSING and node.proto.domain == ""):
        return y
    given = Value("y", np.dtype(np.float32), variable=y)
    return on_host("Cast", Rounded(dtype), [given], [y.shape], "float32", gradient="passed")[0]


#: Operators whose results are numbers that they get: floating-point numbers hold levels exactly.
_MOVING: Final = frozenset(
    {
        *("Clip", "Concat", "DepthToSpace", "GlobalMaxPool", "Max", "MaxPool", "Min", "Pad", "ReduceMax", "ReduceMin", "Relu"),
        *("Resize", "ScatterElements", "ScatterND", "SpaceToDepth", "Upsample", "Where"),
    }
)


def moves_levels(node: Node) -> bool:
    """Return whether an operator gives only levels that it gets."""
    is_choice = node.attr("mode", "nearest") not in ("linear", "cubic") and node.attr("reduction", "none") == "none"
    if node.kind not in _MOVING or node.proto.domain or not is_choice:
        return False
    return bool(node.dtypes) and all(dtype is not None and dtype.name in LEVELS for dtype in node.dtypes)


def moved(convert: Callable[[Node], Any], node: Node) -> list[Any]:
    """Return the results of such an operator, by a converter that computes with floating-point numbers."""
    made = convert(node)
    results = made if isinstance(made, (list, tuple)) else [made]
    dtypes = [dtype for dtype in node.dtypes if dtype is not None]
    return [
        as_levels(result, dtype) if isinstance(result, nn.Variable) else result
        for result, dtype in zip(results, dtypes, strict=False)
    ]


#: Operators without a converter that the definitions in the ONNX package compute, whatever the types; no gradient passes.
_DEFINED: Final = frozenset(
    {
        *(("", name) for name in ("BitCast", "TfIdfVectorizer")),
        *(("ai.onnx.preview.training", name) for name in ("Adagrad", "Adam", "Momentum")),
    }
)


def is_choosing(node: Node) -> bool:
    """Return whether a node keeps the largest, the smallest or the product of elements that share an index or a box."""
    if node.kind == "RoiAlign":
        return node.attr("mode", "avg") == "max"
    return node.kind in ("ScatterElements", "ScatterND") and node.attr("reduction", "none") in ("max", "min", "mul")


def gradient_on_host(node: Node, dtypes: Sequence[np.dtype[Any]]) -> str:
    """Return the gradient of a node that is computed on the host; see `HostFunction`."""
    return "refused" if is_choosing(node) and is_float(dtypes[0]) else "zero"


def needs_host(node: Node) -> bool:
    """Return whether a node is computed by its definition: it has integers, or makes numbers of few bits, and its converter
    knows floating-point numbers only; or there is no function for it.
    """
    key = ("" if node.proto.domain == "ai.onnx" else node.proto.domain, node.kind)
    return key in _DEFINED or (key[0] == "" and is_choosing(node)) or _is_of_integers(node, key)


def _is_of_integers(node: Node, key: tuple[str, str]) -> bool:
    """Return whether a node has integers, or makes numbers of few bits, and its converter does not know these."""
    dtypes = [dtype for dtype in node.dtypes if dtype is not None]
    given = [value.dtype for value in node.inputs if value is not None]
    if key in WHOLE:
        return False
    if any(dtype.name in NARROW for dtype in dtypes):
        return True
    if key in WHOLE_RESULTS and not any(map(is_whole, given[:1])):
        return False
    return any(map(is_whole, dtypes)) or _is_lost(given, dtypes)


def _is_lost(given: Sequence[np.dtype[Any]], dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Return whether floating-point numbers are not exact for what is given: integers that are compared, or of type uint64."""
    is_comparison = bool(dtypes) and all(dtype.kind == "b" for dtype in dtypes)
    return np.dtype(np.uint64) in given or (is_comparison and any(map(is_whole, given)))


def kind_on_host(dtype: np.dtype[Any]) -> str:
    """Return the dtype of the arrays in which the host gives numbers of a type of the model; uint64 is held by its bits."""
    return "int64" if is_whole(dtype) else "float64" if dtype == np.float64 else "float32"
