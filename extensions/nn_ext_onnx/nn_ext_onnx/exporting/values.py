"""The ONNX graph that is being written, and its values, which combine like arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from nn_core.graph_rewriting import follows_shapes
from nn_ext_onnx.exporting.lengths import Lengths

FLOAT: Final = np.dtype("float32")
DOUBLE: Final = np.dtype("float64")
INT: Final = np.dtype("int64")
BOOL: Final = np.dtype("bool")


class NotExportableError(Exception):
    """A call that ONNX, or the chosen operator set, cannot express; the text says why."""


class Value:
    """A value of the graph: a name and a dtype. Arithmetic with values and numbers adds nodes.

    Attributes:
        source: the same numbers in a narrower dtype, where it was cast from these.
    """

    __slots__ = ("dtype", "graph", "name", "source")

    def __init__(self, graph: GraphWriter, name: str, dtype: np.dtype[Any], source: Value | None = None) -> None:
        self.graph, self.name, self.dtype, self.source = graph, name, dtype, source

    def op(self, kind: str, *others: Any, dtype: np.dtype[Any] | None = None, **attributes: Any) -> Value:
        """Return the only output of a node whose first input is this value."""
        return self.graph.op(kind, self, *others, dtype=dtype, **attributes)

    def cast(self, dtype: np.dtype[Any]) -> Value:
        """Return this value in another dtype."""
        if dtype == self.dtype:
            return self
        if self.source is not None and self.source.dtype == dtype:
            return self.source
        return self.graph.cast(self, dtype)

    def real(self) -> Value:
        """Return this value in the floating-point type that the present function computes in."""
        return self.cast(self.graph.real)

    def compare(self, kind: str, other: Any) -> Value:
        """Return a comparison: booleans."""
        return self.op(kind, other, dtype=BOOL)

    def reshape(self, shape: Sequence[int]) -> Value:
        """Return the same elements in another shape."""
        return self.op("Reshape", tuple(shape))

    def transpose(self, axes: Sequence[int]) -> Value:
        """Return the axes in another order."""
        return self if list(axes) == sorted(axes) else self.op("Transpose", perm=list(axes))

    def reduce(self, kind: str, axes: Sequence[int], keep: bool = True) -> Value:
        """Return a reduction over `axes`; none: as it is."""
        if not axes:
            return self
        if kind == "ReduceSum" or self.graph.opset >= 18:
            return self.op(kind, tuple(axes), keepdims=int(keep))
        return self.op(kind, axes=list(axes), keepdims=int(keep))

    def slice(self, axis: int, start: int, stop: int, step: int = 1) -> Value:
        """Elements from `start` to `stop` along one axis."""
        return self.op("Slice", (start,), (stop,), (axis,), (step,))

    def take(self, indices: Any, axis: int) -> Value:
        """Elements at fixed places along one axis."""
        return self.op("Gather", np.asarray(indices, dtype=np.int64), axis=axis)

    def unsqueeze(self, *axes: int) -> Value:
        """Return new axes of length 1."""
        return self.op("Unsqueeze", axes)

    def squeeze(self, *axes: int) -> Value:
        """Axes of length 1 removed."""
        return self.op("Squeeze", axes)

    def clip(self, low: float | None, high: float | None) -> Value:
        """Values held between two numbers."""
        return self.op("Clip", low, high)

    def __add__(self, other: Any) -> Value:
        return self.op("Add", other)

    def __sub__(self, other: Any) -> Value:
        return self.op("Sub", other)

    def __mul__(self, other: Any) -> Value:
        return self.op("Mul", other)

    def __truediv__(self, other: Any) -> Value:
        return self.op("Div", other)

    def __pow__(self, other: Any) -> Value:
        return self.op("Pow", other)

    def __neg__(self) -> Value:
        return self.op("Neg")

    def __radd__(self, other: Any) -> Value:
        return self.graph.constant(other, self.dtype) + self

    def __rsub__(self, other: Any) -> Value:
        return self.graph.constant(other, self.dtype) - self

    def __rmul__(self, other: Any) -> Value:
        return self * other

    def __rtruediv__(self, other: Any) -> Value:
        return self.graph.constant(other, self.dtype) / self

    def __rpow__(self, other: Any) -> Value:
        return self.graph.constant(other, self.dtype) ** self


class GraphWriter:
    """Nodes and constants of a graph that grows.

    Args:
        opset: version of the operator set.

    Attributes:
        lengths: writes numbers that follow from shapes.
        domains: versions of the operator sets of nodes that are not ONNX's own.
        real: the floating-point type that the present function computes in: float32 or float64.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.real = FLOAT
        self.lengths = Lengths(self, lambda variable: None, lambda variable, axis: True)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.domains: dict[str, int] = {}
        self._numbers: dict[tuple[str, str], Value] = {}
        #: constants that are made of others, and what these are made of
        self._derived: dict[str, str] = {}
        self._casts: dict[tuple[str, np.dtype[Any]], Value] = {}
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._node_counts: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        """Return a name that nothing has: `stem`, or with a number."""
        while True:
            count = self._counts.get(stem, 0)
            self._counts[stem] = count + 1
            name = f"{stem}_{count}" if count else stem
            if name not in self._taken:
                self._taken.add(name)
                return name

    def constant(self, values: Any, dtype: np.dtype[Any] | None = None, name: str = "constant") -> Value:
        """Return a constant array; equal numbers are written once.

        A number that follows from shapes is computed by the model.

        Args:
            values: the numbers.
            dtype: of the constant; by default floating-point numbers are of type `real`, others as they are.
            name: what its name begins with.
        """
        if follows_shapes(values):
            return self.lengths.scalar(values, self.real if dtype is None else dtype)
        array = np.asarray(values, dtype=dtype)
        if dtype is None and array.dtype.kind == "f":
            array = array.astype(self.real, copy=False)
        key = (repr(array.item()), array.dtype.str) if array.ndim == 0 else None
        if key is not None and key in self._numbers:
            return self._numbers[key]
        made = Value(self, self.fresh(name), array.dtype)
        self.constants[made.name] = array
        if key is not None:
            self._numbers[key] = made
        return made

    def derived(self, source: Value, array: np.ndarray[Any, Any]) -> Value:
        """Return a constant that is made of another one; it gets the name of that if nothing else reads it."""
        made = self.constant(array, array.dtype, source.name)
        if made.name not in self._derived:
            self._derived[made.name] = self._derived.get(source.name, source.name)
        return made

    def cast(self, value: Value, dtype: np.dtype[Any]) -> Value:
        """Return a value in another dtype; constants are written in it."""
        key = value.name, dtype
        if key not in self._casts:
            array = self.constants.get(value.name)
            if array is not None:
                made = self.derived(value, array.astype(dtype))
            else:
                made = self.op("Cast", value, dtype=dtype, to=helper.np_dtype_to_tensor_dtype(dtype))
            made.source = value if np.can_cast(value.dtype, dtype, "safe") else None
            self._casts[key] = made
        return self._casts[key]

    def need_opset(self, opset: int, what: str) -> None:
        """Refuse when the operator set is older.

        Raises:
            NotExportableError: says which one is needed.
        """
        if self.opset < opset:
            raise NotExportableError(f"{what} needs opset {opset} or newer, got {self.opset}")

    def op(self, kind: str, *inputs: Any, dtype: np.dtype[Any] | None = None, **attributes: Any) -> Value:
        """Return the output of a new node with one output.

        Args:
            kind: the operator.
            inputs: Values, None for those left out, numbers, and integers or arrays that become constants.
            dtype: of the output; that of the first input if not given.
            attributes: of the node; those that are None are left out.
        """
        return self.ops(kind, *inputs, dtypes=[dtype], **attributes)[0]

    def ops(self, kind: str, *inputs: Any, dtypes: Sequence[np.dtype[Any] | None], **attributes: Any) -> list[Value]:
        """Return the outputs of a new node, one for each of `dtypes`; see `op`."""
        if kind == "Reshape" and isinstance(inputs[1], (tuple, list)):
            inputs, attributes = (inputs[0], self.lengths.target(inputs[1])), attributes | self._zeros_allowed(inputs[1])
        computed = inputs[1:] if kind == "Where" else inputs
        first = next((value.dtype for value in computed if isinstance(value, Value)), self.real)
        values = [self._as_value(value, first) for value in inputs]
        folded = self._folded(kind, values, attributes)
        if folded is not None:
            return [folded]
        while values and values[-1] is None:
            values.pop()
        outputs = [Value(self, self.fresh(f"{kind}_out"), first if dtype is None else dtype) for dtype in dtypes]
        self._add(kind, values, outputs, attributes)
        return outputs

    def _zeros_allowed(self, shape: Sequence[Any]) -> dict[str, int]:
        """Return the setting of a reshape to `shape` by which 0 means no elements, and not the length of the input."""
        if not any(isinstance(length, int) and length == 0 for length in shape):
            return {}
        self.need_opset(14, "an axis of length 0")
        return {"allowzero": 1}

    def add(self, node: onnx.NodeProto, names: Mapping[str, str]) -> None:
        """Add a copy of a node with other names of its inputs and outputs."""
        made = onnx.NodeProto()
        made.CopyFrom(node)
        made.input[:] = [name and names[name] for name in node.input]
        made.output[:] = [name and names[name] for name in node.output]
        self.nodes.append(made)

    def _add(self, kind: str, inputs: Sequence[Value | None], outputs: Sequence[Value], attributes: Mapping[str, Any]) -> None:
        names = ["" if value is None else value.name for value in inputs]
        given = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(kind, names, [output.name for output in outputs], **given))

    def _as_value(self, value: Any, dtype: np.dtype[Any]) -> Value | None:
        if value is None or isinstance(value, Value):
            return value
        if isinstance(value, (tuple, list)) and any(map(follows_shapes, value)):
            return self.lengths.vector(value)
        if isinstance(value, (tuple, list)) and all(isinstance(v, (int, np.integer)) for v in value):
            return self.constant(np.asarray(value, dtype=np.int64))
        if isinstance(value, (bool, int, float)):
            return self.constant(value, dtype)
        return self.constant(value)

    def _folded(self, kind: str, values: Sequence[Value | None], attributes: dict[str, Any]) -> Value | None:
        """Weights in another shape or order are written so."""
        source = values[0] if values else None
        if kind not in ("Reshape", "Transpose") or source is None or source.name not in self.constants:
            return None
        array = self.constants[source.name]
        if kind == "Transpose":
            array = np.transpose(array, attributes["perm"])
        else:
            shape = values[1]
            assert shape is not None
            if shape.name not in self.constants:  # it follows from the shapes of inputs
                return None
            array = np.reshape(array, self.constants.pop(shape.name))
        return self.derived(source, array)

    def name_nodes(self, first: int, scope: str) -> None:
        """Give the nodes from number `first` on names: the scope of their function, and the operator."""
        for node in self.nodes[first:]:
            stem = f"{scope}/{node.op_type}" if scope else node.op_type
            count = self._node_counts[stem] = self._node_counts.get(stem, -1) + 1
            node.name = f"{stem}_{count}" if count else stem

    def settle_names(self) -> None:
        """Give constants in another shape or dtype the name of what they are made of, where nothing reads that."""
        read = {name for node in self.nodes for name in node.input}
        made_of: dict[str, list[str]] = {}
        for name, source in self._derived.items():
            if name in read and source not in read:
                made_of.setdefault(source, []).append(name)
        new = {names[0]: source for source, names in made_of.items() if len(names) == 1}
        for node in self.nodes:
            for position, name in enumerate(node.input):
                node.input[position] = new.get(name, name)
        for name, source in new.items():
            self.constants[source] = self.constants.pop(name)

    def read_constants(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the constants that nodes read."""
        read = {name for node in self.nodes for name in node.input}
        return {name: array for name, array in self.constants.items() if name in read}
