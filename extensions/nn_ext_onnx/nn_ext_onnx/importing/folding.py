"""Known numbers: nodes whose inputs are known are computed when the graph is built, by the ONNX package's own definitions."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from nn_ext_onnx.importing.values import Array, UnsupportedError

#: More elements than this are not computed when a graph is built.
LIMIT: Final = 1 << 27


def evaluate(
    node: onnx.NodeProto, arrays: Sequence[Array | None], opsets: Mapping[str, int], shapes: Sequence[Sequence[int] | None]
) -> list[Array]:
    """The outputs of one node.

    Raises:
        UnsupportedError: when the definition fails, or makes too much.
    """
    for shape in shapes:
        if shape is not None and prod(shape) > LIMIT:
            raise UnsupportedError(f"a constant of {prod(shape)} elements")
    _require_bounded(node, arrays)
    evaluator = Evaluator(node, opsets)
    return evaluator.run(arrays)


class Evaluator:
    """One node, ready to be computed on arrays again and again."""

    def __init__(self, node: onnx.NodeProto, opsets: Mapping[str, int]) -> None:
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
        self.evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=imports))

    def run(self, arrays: Sequence[Array | None]) -> list[Array]:
        """The outputs, as arrays.

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
        return [np.asarray(array) for array in made]


def _require_bounded(node: onnx.NodeProto, arrays: Sequence[Array | None]) -> None:
    """Refuse what makes more than `LIMIT` elements out of few."""
    size = 0
    if node.op_type == "ConstantOfShape" and arrays[0] is not None:
        size = _product(arrays[0])
    elif node.op_type == "Expand" and arrays[1] is not None and arrays[0] is not None:
        size = max(_product(arrays[1]), 1) * max(arrays[0].size, 1) if arrays[0].size > 1 else _product(arrays[1])
    elif node.op_type == "Tile" and arrays[1] is not None and arrays[0] is not None:
        size = _product(arrays[1]) * arrays[0].size
    elif node.op_type == "Range" and all(array is not None for array in arrays[:3]):
        start, limit, delta = (float(array.reshape(-1)[0]) for array in arrays[:3] if array is not None)
        size = int(abs((limit - start) / delta)) if delta and np.isfinite((limit - start) / delta) else LIMIT + 1
    elif node.op_type in ("OneHot", "Pad", "Resize", "Upsample", "EyeLike", "CenterCropPad", "MaxUnpool", "Col2Im"):
        size = sum(
            int(np.abs(array.astype(np.float64)).max(initial=0))
            for array in arrays[1:]
            if array is not None and array.dtype.kind in "iuf"
        )
    if size > LIMIT:
        raise UnsupportedError(f"a constant of about {size} elements")


def _product(lengths: Array) -> int:
    return prod(max(int(length), 0) for length in lengths.reshape(-1))
