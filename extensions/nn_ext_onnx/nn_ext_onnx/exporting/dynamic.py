"""Models for any batch size: the same graph at three sizes, and what differs between them written as a formula.

Converters know nothing of it. Where two drafts differ, they differ in shapes and numbers among their constants; each of
them must be a * batch + b (a number may be a / batch, too), which the third draft confirms.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError, NNCoreError
from nn_core.graph_rewriting import copy_graph
from nn_ext_onnx.exporting.graphs import Draft, draft
from nn_ext_onnx.exporting.values import FLOAT, GraphWriter, Value

#: Relative error of numbers that were rounded to float32 and combined.
_ROUNDING = 1e-6
_HINT = "hint: dynamic_batch=False exports it for the sizes that it has"


def with_dynamic_batch(
    made: Draft,
    outputs: Mapping[str, nn.Variable],
    inputs: Mapping[str, nn.Variable],
    parameters: Mapping[str, nn.Variable],
) -> dict[str, bool]:
    """Let the first axis of the inputs have any length.

    The batch is the length of the first axis of the first input; inputs whose first axis has this length share it.

    Returns:
        For each input and output by name, whether its first axis is the batch.

    Raises:
        ArgumentError: when the graph does not work with other lengths, or depends on them in another way.
    """
    batch, batched = _batch_of(inputs)
    others = [batch + 1, 2 * batch + 3]
    drafts = []
    shapes: list[dict[str, tuple[int, ...]]] = []
    for size in others:
        replaced = {v: _resized(v, size) if batched[name] else v for name, v in inputs.items()}
        copies = _copied(outputs, replaced, batch, size)
        drafts.append(draft(copies, {name: replaced[v] for name, v in inputs.items()}, parameters, made.graph.opset))
        shapes.append({name: copy.shape for name, copy in copies.items()})
    _require_equal_nodes(made, drafts)
    _Formulas(made, drafts, [batch, *others], next(name for name, is_batched in batched.items() if is_batched)).apply()
    for name, variable in outputs.items():
        batched[name] = _is_batched(name, variable.shape, shapes, [batch, *others])
    return batched


def _batch_of(inputs: Mapping[str, nn.Variable]) -> tuple[int, dict[str, bool]]:
    first = next((v for v in inputs.values() if v.ndim), None)
    if first is None:
        raise ArgumentError("export: an input must have an axis for the batch, got none")
    return first.shape[0], {name: bool(v.ndim) and v.shape[0] == first.shape[0] for name, v in inputs.items()}


def _resized(variable: nn.Variable, size: int) -> nn.Variable:
    shape = (size, *variable.shape[1:])
    if np.dtype(variable.data.dtype).kind in "iub":
        return nn.Variable.from_numpy_array(np.zeros(shape, dtype=variable.data.dtype))
    return nn.Variable(shape)


def _copied(
    outputs: Mapping[str, nn.Variable], replaced: Mapping[nn.Variable, nn.Variable], batch: int, size: int
) -> dict[str, nn.Variable]:
    def rewrite(function: Any, inputs: list[nn.Variable]) -> Any:
        """Shapes that were given as numbers and begin with the batch begin with the new one; lengths follow by themselves."""
        if function.node.setup.sources:
            return None
        shape = function.args.get("shape") if function.name in ("Reshape", "Broadcast") else None
        if not shape or shape[0] != batch or inputs[0].shape == function.inputs[0].shape:
            return None
        return function.applied_to(*inputs, shape=(size, *shape[1:]))

    try:
        with nn.auto_forward(False):
            copies = copy_graph(list(outputs.values()), replaced, rewrite)
    except NNCoreError as error:
        raise ArgumentError(
            f"export: the graph must work for any batch, got for {size} in place of {batch}: {error}\n  {_HINT}"
        ) from error
    return dict(zip(outputs, copies, strict=True))


def _require_equal_nodes(made: Draft, drafts: list[Draft]) -> None:
    for other in drafts:
        nodes, others = made.graph.nodes, other.graph.nodes
        different = [a.op_type for a, b in zip(nodes, others, strict=False) if a != b]
        if different or len(nodes) != len(others):
            what = f"another {different[0]}" if different else f"{len(others)} nodes in place of {len(nodes)}"
            raise ArgumentError(f"export: the nodes must be the same for any batch, got {what}\n  {_HINT}")


def _is_batched(name: str, shape: tuple[int, ...], others: list[dict[str, tuple[int, ...]]], sizes: list[int]) -> bool:
    """Whether the first axis of an output is the batch; any other that changed is refused."""
    found = [shape, *(other[name] for other in others)]
    if all(other == shape for other in found):
        return False
    if all(other[0] == size and other[1:] == shape[1:] for other, size in zip(found, sizes, strict=True)):
        return True
    raise ArgumentError(f"export: output {name!r} must have the batch as its first axis only, got shapes {found}\n  {_HINT}")


class _Formulas:
    """Puts formulas in the place of constants that change with the batch."""

    def __init__(self, made: Draft, drafts: list[Draft], sizes: list[int], source: str) -> None:
        self.graph, self.drafts, self.sizes, self.source = made.graph, drafts, sizes, made.inputs[source]
        self.header = GraphWriter(made.graph.opset)
        self.size: Value | None = None

    def apply(self) -> None:
        """Rewrite the constants and put the nodes that compute them in front."""
        read = {name for node in self.graph.nodes for name in node.input}
        for name in list(self.graph.constants):
            values = [self.graph.constants[name], *(other.graph.constants.get(name) for other in self.drafts)]
            if name not in read or all(_same(value, values[0]) for value in values):
                continue
            if _are_numbers(values):
                self._write(name, self._number(name, values))
            else:
                self._replace(name, *self._formula(name, values))
        self.graph.nodes[:0] = self.header.nodes
        self.graph.constants.update(self.header.constants)

    def _formula(self, name: str, values: list[Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """`slope` and `offset` of a constant that is slope * batch + offset at all three sizes."""
        first, second, third = values
        fits = all(v is not None and v.dtype == np.int64 and v.shape == first.shape for v in values)
        if fits:
            steps = self.sizes[1] - self.sizes[0]
            slope = (second - first) // steps
            offset = first - slope * self.sizes[0]
            if (third == slope * self.sizes[2] + offset).all() and (second == slope * self.sizes[1] + offset).all():
                return slope, offset
        raise self._refusal(name, "lengths of axes")

    def _number(self, name: str, values: list[Any]) -> Value:
        """A factor, a divisor or a term that follows the batch."""
        sizes = np.array(self.sizes, np.float64)
        numbers = np.array(values, np.float64)
        batch = self._batch().squeeze(0).cast(FLOAT)
        if _is_one(numbers / sizes):
            return batch * _snapped((numbers / sizes).mean())
        if _is_one(numbers * sizes):
            return self.header.constant(_snapped((numbers * sizes).mean())) / batch
        slope = (numbers[2] - numbers[0]) / (sizes[2] - sizes[0])
        offset = numbers[0] - slope * sizes[0]
        scale = np.abs(slope * sizes).max() + abs(offset)
        if np.abs(slope * sizes + offset - numbers).max() <= _ROUNDING * scale:
            return batch * _snapped(slope) + _snapped(offset)
        raise self._refusal(name, "lengths of axes, or numbers that are a * batch + b or a / batch")

    def _refusal(self, name: str, wanted: str) -> ArgumentError:
        reader = next(node.op_type for node in self.graph.nodes if name in node.input)
        return ArgumentError(
            f"export: what depends on the batch must be {wanted}, got a constant of a node {reader}\n  {_HINT}"
        )

    def _replace(self, name: str, slope: np.ndarray[Any, Any], offset: np.ndarray[Any, Any]) -> None:
        changing = np.flatnonzero(slope)
        values = self.graph.constants[name]
        is_reshape = all(node.op_type == "Reshape" for node in self.graph.nodes if name in node.input)
        others = np.delete(values, changing) if values.ndim else values
        if is_reshape and len(changing) == 1 and (others > 0).all():
            self.graph.constants[name] = np.where(slope != 0, -1, values)
            return
        formula = self._batch() * self.header.constant(slope) + self.header.constant(offset)
        self._write(name, formula if values.ndim else formula.squeeze(0))

    def _write(self, name: str, formula: Value) -> None:
        """Let a formula give what was a constant."""
        del self.graph.constants[name]
        for node in self.header.nodes:
            if formula.name in node.output:
                node.output[list(node.output).index(formula.name)] = name

    def _batch(self) -> Value:
        """The batch as a vector of one element."""
        if self.size is None:
            for taken in (*self.graph.constants, *(name for node in self.graph.nodes for name in node.output)):
                self.header.fresh(taken)
            source = Value(self.header, self.source.name, self.source.dtype)
            lengths = source.op("Shape", dtype=np.dtype(np.int64))
            self.size = lengths.slice(0, 0, 1)
        return self.size


def _are_numbers(values: list[Any]) -> bool:
    return all(value is not None and value.dtype == FLOAT and value.ndim == 0 for value in values)


def _is_one(numbers: np.ndarray[Any, Any]) -> bool:
    """Whether rounding explains the differences of some numbers."""
    return bool(np.ptp(numbers) <= _ROUNDING * np.abs(numbers).max())


def _snapped(number: float) -> float:
    """A whole number for one that is so near that rounding to float32 explains the difference."""
    whole = round(number)
    return float(whole) if abs(number - whole) <= _ROUNDING * abs(whole) else float(number)


def _same(a: Any, b: Any) -> bool:
    return a is b or (a is not None and b is not None and a.shape == b.shape and np.array_equal(a, b))
