"""Known numbers: nodes whose inputs are known are computed when the graph is built.

The functions of nn_core compute them, as they would in the graph. Where these have no integers, or no way to build a node, the
definitions in the ONNX package do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

import nn_core as nn
from nn_core.ext import NNCoreError
from nn_ext_onnx.importing.registry import Node, number_type
from nn_ext_onnx.importing.values import Array, UnsupportedError, Value

#: More elements than this are not computed when a graph is built.
LIMIT: Final = 1 << 27


def evaluate(node: onnx.NodeProto, arrays: Sequence[Array | None], opsets: Mapping[str, int]) -> list[Array]:
    """Return the outputs of one node by the definitions of the ONNX package.

    Raises:
        UnsupportedError: when the definition fails.
    """
    return Evaluator(node, opsets)(arrays)


def computed(convert: Callable[[Node], Any], node: Node) -> list[Array] | None:
    """Return the outputs of a node by its converter and the kernels of nn_core; None where it cannot be built."""
    inputs = [value and Value(value.name, value.dtype, value.array) for value in node.inputs]
    copy = replace(node, inputs=inputs, dtypes=list(node.dtypes))
    try:
        with nn.auto_forward(True), nn.context_scope(nn.Context()), number_type(copy):
            made: Any = convert(copy)
            results = list(made) if isinstance(made, (list, tuple)) else [made]
            return [_numbers(result, dtype) for result, dtype in zip(results, copy.dtypes, strict=False)]
    except (
        UnsupportedError,
        NNCoreError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        AssertionError,
    ):
        return None


def _numbers(result: Any, dtype: np.dtype[Any] | None) -> Array:
    """Return the numbers of what a converter has made."""
    if isinstance(result, nn.Variable):
        array = np.array(result.d)
        return array if dtype is None else array.astype(dtype)
    return np.asarray(result.array if isinstance(result, Value) else result)


class Evaluator:
    """One node, ready to be computed on arrays again and again.

    Attributes:
        copy: the node, with other names of its inputs and outputs.
        opsets: version of each operator set by domain.
    """

    def __init__(self, node: onnx.NodeProto, opsets: Mapping[str, int]) -> None:
        self.opsets = dict(opsets)
        self.copy = onnx.NodeProto()
        self.copy.CopyFrom(node)
        for position, name in enumerate(node.input):
            self.copy.input[position] = f"i{position}" if name else ""
        for position, name in enumerate(node.output):
            self.copy.output[position] = f"o{position}" if name else ""
        outputs = [name for name in self.copy.output if name]
        graph = helper.make_graph(
            [self.copy],
            "node",
            [helper.make_value_info(name, onnx.TypeProto()) for name in self.copy.input if name],
            [helper.make_value_info(name, onnx.TypeProto()) for name in outputs],
        )
        imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        try:
            self.evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=imports))
        except (RuntimeError, NotImplementedError) as error:  # it has not every version of every operator
            raise UnsupportedError(f"whole or known numbers of {node.op_type}: {error}") from error

    def __call__(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Return the outputs, as arrays.

        Raises:
            UnsupportedError: when the definition fails.
        """
        feed = {
            f"i{position}": array for position, array in enumerate(arrays) if array is not None and self.copy.input[position]
        }
        try:
            with np.errstate(all="ignore"):
                made: Any = self.evaluator.run(None, feed)
        except MemoryError:
            raise
        except Exception as error:  # the definitions raise whatever NumPy raises
            raise UnsupportedError(f"known numbers of {self.copy.op_type}: {error}") from error
        if any(not isinstance(array, (np.ndarray, np.generic)) for array in made):
            raise UnsupportedError(f"known numbers of {self.copy.op_type}: not a tensor")
        return [array.astype(object) if array.dtype.kind == "U" else array for array in map(np.asarray, made)]


def require_small(node: onnx.NodeProto, arrays: Sequence[Array | None], shapes: Sequence[Sequence[int] | None]) -> None:
    """Refuse what makes more than `LIMIT` elements.

    Raises:
        UnsupportedError: when the inferred shapes have more, or the settings make more out of few.
    """
    for shape in shapes:
        if shape is not None and prod(shape) > LIMIT:
            raise UnsupportedError(f"a constant of {prod(shape)} elements")
    size_of, n_needed = _SIZES.get(node.op_type, (None, 0))
    given = arrays[:n_needed] if n_needed else [array for array in arrays[1:] if array is not None]
    if size_of is None or len(given) < n_needed or any(array is None for array in given):
        return
    size = size_of(*given)
    if size > LIMIT:
        raise UnsupportedError(f"a constant of about {size} elements")


def _expanded_size(array: Array, shape: Array) -> int:
    return max(_product(shape), 1) * max(array.size, 1) if array.size > 1 else _product(shape)


def _range_size(*numbers: Array) -> int:
    start, limit, delta = (float(array.reshape(-1)[0]) for array in numbers)
    return int(abs((limit - start) / delta)) if delta and np.isfinite((limit - start) / delta) else LIMIT + 1


def _largest_numbers(*settings: Array) -> int:
    """Return the sum of the largest number of each setting: lengths, widths or indices, which say how large a result is."""
    return sum(int(np.abs(array.astype(np.float64)).max(initial=0)) for array in settings if array.dtype.kind in "iuf")


def _product(lengths: Array) -> int:
    return prod(max(int(length), 0) for length in lengths.reshape(-1))


#: About how many elements an operator makes, and of how many of its first inputs; 0: of those after the first.
_SIZES: Final[Mapping[str, tuple[Callable[..., int], int]]] = {
    "ConstantOfShape": (_product, 1),
    "Expand": (_expanded_size, 2),
    "Tile": (lambda array, repeats: _product(repeats) * array.size, 2),
    "Range": (_range_size, 3),
    **dict.fromkeys(
        ("OneHot", "Pad", "Resize", "Upsample", "EyeLike", "CenterCropPad", "MaxUnpool", "Col2Im"), (_largest_numbers, 0)
    ),
}
