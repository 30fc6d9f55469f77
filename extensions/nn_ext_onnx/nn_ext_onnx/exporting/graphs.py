"""From a graph of nn_core to nodes of ONNX, at fixed shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError, FunctionSpec, function_spec
from nn_core.function import Function
from nn_core.graph_rewriting import functions_of
from nn_ext_onnx.exporting.registry import Call, NotExportableError
from nn_ext_onnx.exporting.topics import converters
from nn_ext_onnx.exporting.values import FLOAT, INT, GraphWriter, Value
from nn_ext_onnx.plugin import KNOWN_OPERATORS

#: The number of entries after which the list of an error is cut.
_LISTED: Final = 40


@dataclass(slots=True)
class Draft:
    """A graph as nodes, with its inputs and outputs by name."""

    graph: GraphWriter
    inputs: dict[str, Value]
    outputs: dict[str, Value]


def draft(
    outputs: Mapping[str, nn.Variable],
    inputs: Mapping[str, nn.Variable],
    parameters: Mapping[str, nn.Variable],
    opset: int,
) -> Draft:
    """Convert the functions between `inputs` and `outputs`.

    Raises:
        ArgumentError: lists every function that cannot be exported, with its place and the reason.
    """
    return _Drafting(outputs, inputs, parameters, opset).result()


class _Drafting:
    def __init__(
        self,
        outputs: Mapping[str, nn.Variable],
        inputs: Mapping[str, nn.Variable],
        parameters: Mapping[str, nn.Variable],
        opset: int,
    ) -> None:
        self.graph = GraphWriter(opset)
        self.outputs, self.inputs = outputs, inputs
        self.names = {variable: name for name, variable in parameters.items()}
        self.problems: list[str] = []
        self.order = functions_of([output for output in outputs.values() if output.parent is not None])
        self.values: dict[Any, Value] = {}
        for name in (*inputs, *outputs):
            self.graph.fresh(name)
        index_leaves = _leaves_that_are_indices(self.order)
        for name, variable in inputs.items():
            dtype = _dtype_of(variable, variable in index_leaves)
            self.values[_key(variable)] = Value(self.graph, name, dtype)
        self.made_inputs = {name: self.values[_key(variable)] for name, variable in inputs.items()}

    def result(self) -> Draft:
        for position, function in enumerate(self.order):
            if any(_key(output) not in self.values for output in function.outputs):
                self._convert(position, function)
        if self.problems:
            shown = self.problems[:_LISTED]
            more = len(self.problems) - len(shown)
            lines = "\n  ".join([*shown, *([f"and {more} more"] if more else [])])
            raise ArgumentError(f"export: functions must be those that ONNX can express, got\n  {lines}")
        return Draft(self.graph, self.made_inputs, self._named_outputs())

    def _convert(self, position: int, function: Function) -> None:
        convert = converters().get(function.name)
        shapes = [variable.shape for variable in function.inputs]
        where = f"{function.name} (function {position} of {len(self.order)}, inputs {shapes})"
        if convert is None:
            self._refuse(function, f"{where}: there is no way to write it")
            return
        spec = _spec_of(function)
        unread = KNOWN_OPERATORS.refusal(spec, function.args, function.node.inputs)
        if unread is not None:
            self._refuse(function, f"{where}: {unread.reason}")
            return
        try:
            made = convert(self._call(function, *KNOWN_OPERATORS.narrowed(spec, function.args, function.node.inputs)))
        except NotExportableError as error:
            self._refuse(function, f"{where}: {error}")
            return
        results = [made] if isinstance(made, Value) else list(made)
        for output, value in zip(function.outputs, results, strict=True):
            self.values[_key(output)] = value

    def _refuse(self, function: Function, problem: str) -> None:
        """Note a problem and continue, so that all problems are found."""
        self.problems.append(problem)
        for output in function.outputs:
            self.values[_key(output)] = Value(self.graph, "", FLOAT)

    def _call(self, function: Function, spec: FunctionSpec, args: Mapping[str, Any], vertices: Sequence[Any]) -> Call:
        kinds = [entry.dtype for entry in spec.inputs]
        if spec.variadic:
            kinds = [kinds[0]] * len(vertices)
        values: list[Value | None] = []
        shapes = []
        for variable, kind in zip_longest(vertices, kinds):
            values.append(None if variable is None else self._converted(self._value(variable), kind))
            shapes.append(() if variable is None else tuple(variable.shape))
        settings = {name: tuple(v) if isinstance(v, list) else v for name, v in args.items()}
        made = [tuple(output.shape) for output in function.outputs]
        return Call(self.graph, function.name, values, shapes, settings, made)

    def _converted(self, value: Value, kind: str) -> Value:
        wanted = {"float": FLOAT, "parameter": FLOAT, "statistic": FLOAT, "index": INT}.get(kind)
        if wanted is None and value.dtype == np.dtype("float64"):
            wanted = FLOAT
        return value if wanted is None else value.cast(wanted)

    def _value(self, variable: Any) -> Value:
        key = _key(variable)
        found = self.values.get(key)
        if found is None:
            found = self.graph.constant(_array_of(variable), name=self._leaf_name(variable))
            self.values[key] = found
        return found

    def _leaf_name(self, variable: Any) -> str:
        return self.names.get(variable) or getattr(variable, "name", "") or "constant"

    def _named_outputs(self) -> dict[str, Value]:
        """Each output as a value of its name."""
        made = {}
        for name, variable in self.outputs.items():
            value = self._value(variable)
            node = self.graph.nodes
            for entry in reversed(node):
                if value.name in entry.output and not any(value.name == other.name for other in made.values()):
                    self._rename(value.name, name)
                    break
            else:
                copy = value.op("Identity")
                self._rename(copy.name, name)
            made[name] = Value(self.graph, name, value.dtype)
        return made

    def _rename(self, old: str, new: str) -> None:
        for node in self.graph.nodes:
            for names in (node.input, node.output):
                for position, name in enumerate(names):
                    if name == old:
                        names[position] = new
        for value in self.values.values():
            if value.name == old:
                value.name = new


def _key(variable: Any) -> Any:
    function = variable.parent
    return (None, variable) if function is None else (function, function.outputs.index(variable))


def _spec_of(function: Function) -> FunctionSpec:
    spec = function_spec(function.name)
    return function.node.spec if spec is None else spec


def _leaves_that_are_indices(order: Sequence[Function]) -> set[Any]:
    """Leaves that functions read as indices."""
    found = set()
    for function in order:
        spec = _spec_of(function)
        if not spec.variadic:
            for variable, entry in zip(function.node.inputs, spec.inputs, strict=False):
                if variable is not None and entry.dtype == "index":
                    found.add(variable)
    return found


def _dtype_of(variable: nn.Variable, is_index: bool) -> np.dtype[Any]:
    """Return the dtype of an input of the model: int64 for indices, integers and booleans as they are, else float32."""
    if is_index:
        return INT
    given = np.dtype(variable.data.dtype)
    return given if given.kind in "iub" else FLOAT


def _array_of(variable: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(variable.d)
    return array if array.dtype.kind in "iub" else array.astype(np.float32, copy=False)
