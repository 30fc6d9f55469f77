"""From a graph of nn_core to nodes of ONNX; lengths that differ between several copies of it are computed by the model."""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError, FunctionSpec
from nn_core.function import Function
from nn_core.graph_rewriting import followed_settings, follows_shapes, functions_of
from nn_ext_onnx.exporting.dtypes import LeafTypes, input_kinds, key_of, made_as, read_as, real_of, spec_of
from nn_ext_onnx.exporting.host import python_function
from nn_ext_onnx.exporting.lengths import Lengths, UnknownLengthError
from nn_ext_onnx.exporting.registry import Call, NotExportableError
from nn_ext_onnx.exporting.topics import converters
from nn_ext_onnx.exporting.values import FLOAT, GraphWriter, Value
from nn_ext_onnx.plugin import KNOWN_OPERATORS

#: The number of entries after which the list of an error is cut.
_LISTED: Final = 40


@dataclass(slots=True)
class Draft:
    """A graph as nodes, with its inputs and outputs by name.

    Attributes:
        spans: For each function, by its text in messages, its first node and the one after its last.
    """

    graph: GraphWriter
    inputs: dict[str, Value]
    outputs: dict[str, Value]
    spans: list[tuple[str, int, int]]

    def function_at(self, node: int) -> str:
        """Return text of the function that has written a node."""
        return next((text for text, first, last in self.spans if first <= node < last), "the outputs")


class Sizes:
    """The shapes of everything in several copies of a graph, which differ in the lengths of some axes of their inputs.

    Args:
        copies: Outputs and inputs of each copy by name.
    """

    def __init__(self, copies: Sequence[tuple[Mapping[str, nn.Variable], Mapping[str, nn.Variable]]]) -> None:
        self._places: dict[Any, Any] = {}
        self._shapes: dict[Any, list[tuple[int, ...]]] = {}
        for outputs, inputs in copies:
            for name, variable in inputs.items():
                self._note(variable, name)
            for position, function in enumerate(_with_sources(outputs.values())):
                for place, output in enumerate(function.results):
                    self._note(output, (position, place))
        self._n_copies = len(copies)

    def _note(self, variable: nn.Variable, place: Any) -> None:
        if self._places.setdefault(key_of(variable), place) == place:
            self._shapes.setdefault(place, []).append(tuple(map(int, variable.shape)))

    def lengths(self, variable: Any, axis: int) -> tuple[int, ...] | None:
        """Return the length of an axis in each copy; None where they are not known to belong together."""
        shapes = self._shapes.get(self._places.get(key_of(variable)), [])
        if len(shapes) != self._n_copies or len({len(shape) for shape in shapes}) != 1:
            return None
        return tuple([shape[axis] for shape in shapes])

    def is_fixed(self, variable: Any, axis: int) -> bool:
        """Return whether an axis has the same length in all copies."""
        lengths = self.lengths(variable, axis)
        return lengths is None or len(set(lengths)) == 1

    def shape(self, variable: Any) -> tuple[int, ...]:
        """Return a shape, of whose lengths those that are not fixed remember the variable."""
        with nn.auto_forward(False):
            lengths = tuple(variable.shape)
        return tuple([int(length) if self.is_fixed(variable, axis) else length for axis, length in enumerate(lengths)])


def _with_sources(outputs: Iterable[nn.Variable]) -> list[Function]:
    """Return the functions before some outputs, and those of whose results only the shapes are read."""
    found: dict[Function, None] = {}
    variables = [output for output in outputs if output.parent is not None]
    while variables:
        new = [function for function in functions_of(variables) if function not in found]
        found.update(dict.fromkeys(new))
        variables = [source for function in new for source in function.node.setup.sources if source.parent is not None]
    return list(found)


def draft(
    outputs: Mapping[str, nn.Variable],
    inputs: Mapping[str, nn.Variable],
    parameters: Mapping[str, nn.Variable],
    opset: int,
    sizes: Sizes | None = None,
) -> Draft:
    """Convert the functions between `inputs` and `outputs`.

    Args:
        outputs: The results by name.
        inputs: What the model gets, by name.
        parameters: Names of leaves.
        opset: Version of the operator set.
        sizes: Which lengths the model computes; None: none.

    Raises:
        ArgumentError: lists every function that cannot be exported, with its place and the reason.
    """
    return _Drafting(outputs, inputs, parameters, opset, sizes).result()


class _Drafting:
    def __init__(
        self,
        outputs: Mapping[str, nn.Variable],
        inputs: Mapping[str, nn.Variable],
        parameters: Mapping[str, nn.Variable],
        opset: int,
        sizes: Sizes | None,
    ) -> None:
        self.graph = GraphWriter(opset)
        self.sizes = sizes
        if sizes is not None:
            self.graph.lengths = Lengths(self.graph, self._found, sizes.is_fixed)
        self.spans: list[tuple[str, int, int]] = []
        #: functions whose conversion has begun: their results have no values as yet
        self.open: set[Function] = set()
        self.outputs, self.inputs = outputs, inputs
        self.names = {variable: name for name, variable in parameters.items()}
        self.problems: list[str] = []
        self.order = functions_of([output for output in outputs.values() if output.parent is not None])
        self.values: dict[Any, Value] = {}
        for name in (*inputs, *outputs):
            self.graph.fresh(name)
        self.leaf_types = LeafTypes(self.order, outputs.values())
        for name, variable in inputs.items():
            self.values[key_of(variable)] = Value(self.graph, name, self.leaf_types(variable))
        self.made_inputs = {name: self.values[key_of(variable)] for name, variable in inputs.items()}

    def result(self) -> Draft:
        for position, function in enumerate(self.order):
            if any(key_of(output) not in self.values for output in function.results):
                self._convert(position, function)
        if self.problems:
            shown = self.problems[:_LISTED]
            more = len(self.problems) - len(shown)
            lines = "\n  ".join([*shown, *([f"and {more} more"] if more else [])])
            raise ArgumentError(f"export: functions must be those that ONNX can express, got\n  {lines}")
        outputs = self._named_outputs()
        self.graph.settle_names()
        return Draft(self.graph, self.made_inputs, outputs, self.spans)

    def _convert(self, position: int, function: Function) -> None:
        self.open.add(function)
        shapes = [tuple(variable.shape) for variable in function.inputs]
        where = f"{function.name} (function {position} of {len(self.order)}, inputs {shapes})"
        first = len(self.graph.nodes)
        self.graph.real = real_of(function)
        try:
            results = self._written(function)
        except (NotExportableError, UnknownLengthError) as error:
            self._refuse(function, f"{where}: {error}")
            return
        self.spans.append((where, first, len(self.graph.nodes)))
        self.graph.name_nodes(first, self._scope_of(function))
        for output, value in zip(function.results, results, strict=True):
            self.values[key_of(output)] = value

    def _scope_of(self, function: Function) -> str:
        """Return the scope of the parameters of a function, which their names have in common; empty where there is none."""
        names = [self.names[variable].split("/") for variable in function.inputs if variable in self.names]
        return posixpath.commonpath(["/".join(parts[:-1]) for parts in names if len(parts) > 1] or [""])

    def _written(self, function: Function) -> list[Value]:
        """Return the results of a function in the dtypes in which it computes them."""
        if function.node.python is not None:
            return python_function(self.graph, function.node.python, [self._value(variable) for variable in function.inputs])
        convert = converters().get(function.name)
        if convert is None:
            raise NotExportableError("there is no way to write it")
        spec = spec_of(function)
        unread = KNOWN_OPERATORS.refusal(spec, function.args, function.node.inputs)
        if unread is not None:
            raise NotExportableError(unread.reason)
        call = self._call(function, *KNOWN_OPERATORS.narrowed(spec, function.args, function.node.inputs))
        made = convert(call)
        results = [made] if isinstance(made, Value) else list(made)
        made_kinds = [entry.dtype for entry in function.node.setup.output_entries[: len(results)]]
        taken = _taken_as_given(spec, call)
        return [value.cast(made_as(kind, taken, self.graph.real)) for value, kind in zip(results, made_kinds, strict=True)]

    def _refuse(self, function: Function, problem: str) -> None:
        """Note a problem and continue, so that all problems are found."""
        self.problems.append(problem)
        for output in function.results:
            self.values[key_of(output)] = Value(self.graph, "", FLOAT)

    def _call(self, function: Function, spec: FunctionSpec, args: Mapping[str, Any], vertices: Sequence[Any]) -> Call:
        values: list[Value | None] = []
        shapes = []
        dtypes = [None if variable is None else self._value(variable).dtype for variable in vertices]
        for variable, kind in zip(vertices, input_kinds(spec, dtypes), strict=True):
            values.append(None if variable is None else self._read(variable, kind, spec))
            shapes.append(() if variable is None else self._shape(variable))
        settings = {name: tuple(v) if isinstance(v, list) else v for name, v in args.items()}
        if self.sizes is not None:
            self._let_follow(settings, followed_settings(function))
        made = [self._output_shape(function, output, settings) for output in function.results]
        return Call(self.graph, function.name, values, shapes, settings, made)

    def _shape(self, variable: Any) -> tuple[int, ...]:
        return tuple(map(int, variable.shape)) if self.sizes is None else self.sizes.shape(variable)

    def _let_follow(self, settings: dict[str, Any], given: Mapping[str, Any]) -> None:
        """Put numbers that follow from lengths that are not fixed in the places of what they are here."""
        for name, wanted in given.items():
            present = settings.get(name)
            if isinstance(wanted, tuple) and isinstance(present, tuple) and len(wanted) == len(present):
                settings[name] = tuple([self._following(a, b) for a, b in zip(present, wanted, strict=True)])
            elif not isinstance(wanted, tuple):
                settings[name] = self._following(present, wanted)

    def _following(self, present: Any, wanted: Any) -> Any:
        return self.graph.lengths.simplified(wanted) if follows_shapes(wanted) and wanted == present else present

    def _output_shape(self, function: Function, output: Any, settings: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the shape of a result, with lengths of a setting or an input where those are the same in all copies."""
        shape = self._shape(output)
        if not any(map(follows_shapes, shape)):
            return shape
        wanted = settings.get("shape")
        given = wanted if isinstance(wanted, tuple) and len(wanted) == len(shape) else (None,) * len(shape)
        lengths = list(shape)
        for axis, (length, other) in enumerate(zip(shape, given, strict=True)):
            if follows_shapes(length):
                lengths[axis] = other if follows_shapes(other) else self._same(function, output, axis)
        return tuple(lengths)

    def _same(self, function: Function, output: Any, axis: int) -> int:
        """Return the length of an axis of an input that an axis of a result has in all copies; else its own."""
        assert self.sizes is not None
        wanted = self.sizes.lengths(output, axis)
        for variable in function.inputs:
            axes = sorted(range(variable.ndim), key=lambda place: place != axis)
            for place in axes:
                if not self.sizes.is_fixed(variable, place) and self.sizes.lengths(variable, place) == wanted:
                    return self._shape(variable)[place]
        return self._shape(output)[axis]

    def _found(self, variable: Any) -> Value | None:
        """Return the value of a variable; functions of whose results only the shapes are read are converted now."""
        if key_of(variable) not in self.values and variable.parent is not None and variable.parent not in self.open:
            self._convert_before(variable)
        return self.values.get(key_of(variable))

    def _convert_before(self, variable: Any) -> None:
        for function in functions_of([variable]):
            if any(key_of(output) not in self.values for output in function.results):
                self._convert(len(self.order), function)

    def _read(self, variable: Any, kind: str, spec: FunctionSpec) -> Value:
        """Return an input in the dtype in which a function reads it."""
        value = self._value(variable)
        needs_gradient = spec.differentiable and bool(variable.need_grad)
        return value.cast(read_as(kind, value.dtype, self.graph.real, needs_gradient))

    def _value(self, variable: Any) -> Value:
        key = key_of(variable)
        found = self.values.get(key)
        if found is None:
            found = self.graph.constant(np.asarray(variable.d), self.leaf_types(variable), self._leaf_name(variable))
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


def _taken_as_given(spec: FunctionSpec, call: Call) -> list[Any]:
    """Return the dtypes of the inputs that a function takes as they are, None for the others."""
    dtypes = [value and value.dtype for value in call.inputs]
    return [dtype if kind == "same" else None for dtype, kind in zip(dtypes, input_kinds(spec, dtypes), strict=True)]
