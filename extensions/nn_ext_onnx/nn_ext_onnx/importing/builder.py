"""From the nodes of a model to a graph of nn_core."""

import functools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import FileFormatError, NNCoreError, budget
from nn_ext_onnx.importing.bodies import attributes_of, bound
from nn_ext_onnx.importing.external import StoredArray, stored_or_array
from nn_ext_onnx.importing.folding import Evaluator, computed, evaluate, require_small
from nn_ext_onnx.importing.host import (
    as_levels,
    as_rounded,
    gradient_on_host,
    kind_on_host,
    moved,
    moves_levels,
    needs_host,
    on_host,
)
from nn_ext_onnx.importing.levels import find_movement, find_product, origin_of
from nn_ext_onnx.importing.registry import FROM_NUMBERS, Converter, Node, find, find_sequence, number_type
from nn_ext_onnx.importing.values import (
    COMPUTED,
    Array,
    PresentNumbersError,
    UnknownNumbersError,
    UnsupportedError,
    Value,
    dtype_of,
    is_float,
    is_tensor,
    is_whole,
    type_proto,
)

#: Operators that draw numbers: never known.
RANDOM: Final = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
)
#: How deep bodies of functions and of control flow may nest.
MAX_DEPTH: Final = 64
#: A loop or a function of a file may stand for so many nodes for each node of the file, and those of the budget `written_out`.
_TIMES: Final = 200


def n_in_file(nodes: Sequence[onnx.NodeProto]) -> int:
    """Return how many nodes there are, with those of the bodies of If, Loop and Scan."""
    count = 0
    for node in nodes:
        bodies = [graph for entry in node.attribute for graph in (entry.g, *entry.graphs) if graph.node]
        count += 1 + sum(n_in_file(body.node) for body in bodies)
    return count


def require_written_out(n_nodes: int, n_file: int) -> None:
    """Refuse nodes that loops and functions write out, where they are far more than the file has: they take time.

    Raises:
        FileFormatError: when they are beyond the budget.
    """
    what = "load_onnx: nodes that loops and functions write out, beyond 200 for each node of the file,"
    budget().require("written_out", n_nodes - _TIMES * n_file, what)


class TooLargeError(Exception):
    """A model that has more nodes than the budget of readers, with loops and functions written out; how many so far."""


def n_written_out(nodes: Sequence[onnx.NodeProto], functions: Mapping[tuple[str, str], onnx.FunctionProto]) -> int:
    """Return how many nodes there are with the model's own functions written out, as far as these may nest.

    Functions that call each other twice make 2**depth nodes of a short file: they are counted before any is built.
    """
    known: dict[tuple[str, str, int], int] = {}

    def counted(nodes: Sequence[onnx.NodeProto], depth: int) -> int:
        return len(nodes) + sum(within(_domain(node), node.op_type, depth) for node in nodes)

    def within(domain: str, name: str, depth: int) -> int:
        own = functions.get((domain, name))
        if own is None or depth > MAX_DEPTH:
            return 0
        if (domain, name, depth) not in known:
            known[domain, name, depth] = counted(own.node, depth + 1)
        return known[domain, name, depth]

    return counted(nodes, 1)


class Scope(dict[str, Value]):
    """Values by name; those of the graph around are seen in subgraphs."""

    def __init__(self, outer: "Scope | None" = None) -> None:
        super().__init__()
        self.outer = outer

    def __missing__(self, name: str) -> Value:
        if self.outer is None:
            raise UnsupportedError(f"value {name!r} must be computed before it is read")
        return self.outer[name]


class Builder:
    """Builds the functions of one model.

    Args:
        opsets: version of each operator set by domain.
        functions: the model's own functions by domain and name.
        base: the folder of files with tensors.
        given: inputs whose numbers are at hand.
        n_file: number of nodes in the file.
        is_present: whether the graph is computed as it is built, for these numbers, so that shapes may follow from them.

    Attributes:
        used: inputs from whose numbers something of the graph follows.
    """

    def __init__(
        self,
        opsets: Mapping[str, int],
        functions: Mapping[tuple[str, str], onnx.FunctionProto],
        base: Path | None = None,
        given: Collection[str] = (),
        is_present: bool = False,
        n_file: int = 0,
    ) -> None:
        self.opsets = dict(opsets)
        self.functions = functions
        self.base = base
        self.given = frozenset(given)
        self.is_present = is_present
        self.used: set[str] = set()
        self.problems: dict[str, None] = {}
        self.uses: dict[str, int] = {}
        self.n_nodes = 0
        self.n_file = n_file
        self._most = min(budget().nodes, budget().written_out + _TIMES * n_file)
        self.depth = 0

    # -- graphs --------------------------------------------------------------------------------------------------------

    def run(self, nodes: Sequence[onnx.NodeProto], scope: Scope) -> None:
        """Build the nodes one after the other; problems are collected."""
        for proto in nodes:
            self.n_nodes += 1
            if self.n_nodes > self._most:
                raise TooLargeError(self.n_nodes)
            inputs = [scope[name] if name else None for name in proto.input]
            if any(value is not None and value.dtype == _FAILED for value in inputs):
                made: list[Value | None] = [Value(name, _FAILED, np.zeros(())) for name in proto.output]
            else:
                made = self._node(proto, inputs, scope)
            for name, value in zip(proto.output, made, strict=False):
                if name and value is not None:
                    scope[name] = value

    def initializers(self, graph: onnx.GraphProto, scope: Scope) -> None:
        """Put the constants of a graph into a scope; floating-point ones may be trained."""
        for tensor in graph.initializer:
            found = stored_or_array(tensor, self.base)
            trained = is_float(found.dtype) and len(found.shape) > 0
            place = {"stored": found} if isinstance(found, StoredArray) else {"array": found}
            scope[tensor.name] = Value(tensor.name, found.dtype, is_parameter=trained, **place)
        if graph.sparse_initializer:
            raise UnsupportedError("sparse initializers")

    def subgraph(self, graph: onnx.GraphProto, inputs: Sequence[Value | None], scope: Scope) -> list[Value]:
        """Return the outputs of a graph inside of a node."""
        inner = Scope(scope)
        for entry, value in zip(graph.input, inputs, strict=False):
            if value is not None:
                inner[entry.name] = value
        self._enter()
        try:
            self.initializers(graph, inner)
            self.run(graph.node, inner)
        finally:
            self.depth -= 1
        return [inner[entry.name] for entry in graph.output]

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.depth -= 1
            raise UnsupportedError(f"bodies nested deeper than {MAX_DEPTH}")

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _node(self, proto: onnx.NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value | None]:
        try:
            return self._converted(proto, inputs, scope)
        except (TooLargeError, FileFormatError):  # no problem of this node, but of the file
            raise
        except UnsupportedError as error:
            self._note(proto, str(error))
        except NNCoreError as error:
            self._note(proto, str(error).splitlines()[0])
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError) as error:
            # converters trust that a node is called as its schema says; damaged files are not
            self._note(proto, f"a wrong call: {type(error).__name__}: {error}")
        return [Value(name, _FAILED, np.zeros(())) for name in proto.output]

    def _note(self, proto: onnx.NodeProto, text: str) -> None:
        version = self.opsets.get(_domain(proto), 0)
        named = f" {proto.name!r}" if proto.name else ""
        domain = f"{proto.domain}." if proto.domain else ""
        self.problems[f"{domain}{proto.op_type} (operator set {version}), node{named}: {text}"] = None

    def _converted(self, proto: onnx.NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value | None]:
        domain = _domain(proto)
        own = self.functions.get((domain, proto.op_type))
        if own is not None:
            return self._function(own, proto, inputs)
        node = Node(proto, inputs, self.opsets.get(domain, 0), self)
        schema = self._schema(domain, proto.op_type, node.opset)
        of_sequences = find_sequence(node)
        if of_sequences is not None:
            return list(of_sequences(node, scope))
        self._infer(node, schema)
        if proto.op_type in CONTROL_FLOW and domain == "":
            return list(CONTROL_FLOW[proto.op_type](node, scope))
        if self._is_foldable(node):
            return self._folded(node)
        convert = self._converter(node)
        if convert is None and needs_host(node):
            return self._on_host(node)
        if convert is None:
            return self._expanded(node, schema)
        with number_type(node):
            made: Any = convert(node)
        return self._checked(node, list(made) if isinstance(made, (list, tuple)) else [made])

    def _schema(self, domain: str, kind: str, version: int) -> Any:
        """Return the definition of an operator, None for those of others that have a converter."""
        try:
            return onnx.defs.get_schema(kind, version, domain)
        except onnx.defs.SchemaError as error:
            if find(domain, kind, version) is not None:
                return None
            raise UnsupportedError("there is no such operator") from error

    def _infer(self, node: Node, schema: Any) -> None:
        """Element types and shapes of the outputs, as far as the schema tells them."""
        found = {} if schema is None or schema.deprecated else self._inferred(node, schema)
        for name in node.proto.output:
            tensor = found[name].tensor_type if name in found else None
            node.dtypes.append(_dtype_of(tensor))
            node.shapes.append(_shape_of(tensor))

    def _inferred(self, node: Node, schema: Any) -> dict[str, Any]:
        """Return the types of the outputs by name."""
        given = {name: value for name, value in zip(node.proto.input, node.inputs, strict=False) if value is not None}
        types = {name: type_proto(value) for name, value in given.items()}
        data = {name: numpy_helper.from_array(value.array, name) for name, value in given.items() if _may_be_setting(value)}
        imports = [helper.make_opsetid(name, version) for name, version in self.opsets.items()]
        if not _is_inferable(node):
            return {}
        try:
            found: dict[str, Any] = shape_inference.infer_node_outputs(
                schema, node.proto, types, data, {}, opset_imports=imports
            )
        except (shape_inference.InferenceError, onnx.checker.ValidationError) as error:
            raise UnsupportedError(f"a wrong call: {str(error).splitlines()[0]}") from error
        except (RuntimeError, TypeError, ValueError):
            return {}
        return found

    def _is_foldable(self, node: Node) -> bool:
        if node.kind in RANDOM or (node.kind == "Dropout" and len(node.inputs) > 2):
            return False
        if node.kind in ("QuantizeLinear", "DequantizeLinear"):  # scales are no weights
            return all(value is None or value.is_known or value.is_parameter for value in node.inputs)
        return all(value is None or value.is_known for value in node.inputs)

    def _folded(self, node: Node) -> list[Value | None]:
        made = self.evaluate(node)
        sources = _sources(node.inputs)
        names = [name for name in node.proto.output if name]
        values = dict(
            zip(names, (Value(n, a.dtype, a, sources=sources) for n, a in zip(names, made, strict=True)), strict=True)
        )
        if node.kind == "DequantizeLinear":
            values[names[0]].origin = origin_of(node)
        return [values.get(name) for name in node.proto.output]

    def evaluate(self, node: Node) -> list[Array]:
        """Return the outputs of a node whose inputs are known."""
        own = FROM_NUMBERS.get((_domain(node.proto), node.kind))
        if own is not None:
            return list(own(node))
        arrays = [None if value is None else value.array for value in node.inputs]
        require_small(node.proto, arrays, node.shapes)
        convert = self._converter(node)
        made = None if convert is None else computed(convert, node)
        return evaluate(node.proto, arrays, self.opsets) if made is None else made

    def _converter(self, node: Node) -> "Converter | None":
        """Return the converter of a node; None where whole numbers need the host, or there is none."""
        convert = find_product(node) or find(_domain(node.proto), node.kind, node.opset)
        convert = find_movement(node, convert) or convert
        if convert is not None and moves_levels(node):
            return functools.partial(moved, convert)
        return None if needs_host(node) else convert

    def _on_host(self, node: Node) -> list[Value | None]:
        shapes = [shape for shape in node.shapes if shape is not None]
        dtypes = [dtype for dtype in node.dtypes if dtype is not None]
        if len(shapes) != len(node.proto.output) or len(dtypes) != len(shapes) or not all(node.proto.output):
            return self._at_present(node)
        kinds = {kind_on_host(dtype) for dtype in dtypes}
        if node.kind in RANDOM or len(kinds) > 1:
            raise UnsupportedError(f"numbers of type {', '.join(map(str, dtypes))}")
        self._require_computed(node)
        evaluator = Evaluator(node.proto, self.opsets)
        made = on_host(node.kind, evaluator, node.inputs, shapes, kinds.pop(), dtypes, gradient_on_host(node, dtypes))
        return self._checked(node, list(map(as_levels, made, dtypes)))

    def _at_present(self, node: Node) -> list[Value | None]:
        """Results whose shapes follow from the numbers of the inputs: computed for the present ones."""
        if self.is_present:
            return self._folded(node)
        _demand_settings(node)
        if _sources(node.inputs) <= self.given:
            raise PresentNumbersError
        wanted = ", ".join(f"{name!r}: ..." for name in sorted(_sources(node.inputs)))
        raise UnsupportedError(
            "a result whose shape depends on what the model gets, and so a graph for one set of numbers, "
            f"load(..., values={{{wanted}}}), or nn_ext_onnx.backend.prepare, which builds one for each"
        )

    def _require_computed(self, node: Node) -> None:
        for value in node.inputs:
            if value is not None and value.dtype.name not in COMPUTED:
                raise UnsupportedError(f"numbers of type {value.dtype}")

    def _checked(self, node: Node, made: list[Any]) -> list[Value | None]:
        """Results as values, held against what the schema infers."""
        sources, values = _sources(node.inputs), []
        for position, result in enumerate(made[: len(node.proto.output)]):
            name = node.proto.output[position]
            if result is None or not name:
                values.append(None)
                continue
            dtype, shape = node.dtypes[position], node.shapes[position]
            value = self._as_value(name, result, dtype, sources, node)
            if value.dtype.name not in COMPUTED and not value.is_known:
                raise UnsupportedError(f"numbers of type {value.dtype}")
            if shape is not None and value.shape != shape:
                raise UnsupportedError(f"a result of shape {value.shape} where the definition has {shape}")
            values.append(value)
        missing = [name for name in node.proto.output[len(made) :] if name]
        if missing:
            raise UnsupportedError(f"output {missing[0]!r}")
        return values

    def _as_value(self, name: str, result: Any, dtype: Any, sources: frozenset[str], node: Node) -> Value:
        if isinstance(result, Value):
            return result
        if isinstance(result, nn.Variable):
            found = dtype if dtype is not None else _first_dtype(node)
            made = as_rounded(node, result, found)
            value = self.computed(name, found, made, sources, self._lazy(node, name))
            value.origin = node.origin
            return value
        array = np.asarray(result)
        return Value(name, array.dtype, array, sources=sources)

    def computed(
        self,
        name: str,
        dtype: np.dtype[Any],
        variable: nn.Variable,
        sources: frozenset[str],
        compute: Callable[[], Array] | None = None,
    ) -> Value:
        """Return a value that a variable stands for, with its numbers if it has some at present."""
        if self.is_present and compute is None and sources <= self.given:
            compute = functools.partial(self._numbers, variable, dtype, sources)
        return Value(name, dtype, variable=variable, sources=sources, compute=compute)

    def _numbers(self, variable: nn.Variable, dtype: np.dtype[Any], sources: frozenset[str]) -> Array:
        self.used |= sources
        return np.array(variable.d).astype(dtype)

    def _lazy(self, node: Node, name: str) -> Any:
        """Return a function that computes a result from parameters and known numbers, if it depends on no input."""
        if node.kind in RANDOM or _sources(node.inputs):
            return None
        position = [output for output in node.proto.output if output].index(name)
        return lambda: self.evaluate(node)[position]

    def parameter(self, node: Node, index: int, change: Any, axes: Sequence[int]) -> nn.Variable:
        """Return an input with its axes in another order; a weight that nothing else reads is kept so, and costs nothing
        later.
        """
        value = node[index]
        if value.is_parameter and self.uses.get(value.name) == 1 and not value.has_variable and self.depth == 0:
            return value.changed(np.ascontiguousarray(change(value.array)))
        return F.transpose(value.variable, axes)

    # -- bodies --------------------------------------------------------------------------------------------------------

    def _expanded(self, node: Node, schema: Any) -> list[Value | None]:
        """Return an operator without a converter: by the functions that its schema is made of."""
        types = [type_proto(v) if v is not None else onnx.TypeProto() for v in node.inputs]
        body = None
        if schema.has_context_dependent_function:
            text = schema.get_context_dependent_function(
                node.proto.SerializeToString(), [entry.SerializeToString() for entry in types]
            )
            body = onnx.FunctionProto.FromString(text) if text else None
        elif schema.has_function:
            body = schema.function_body
        if body is None:
            raise UnsupportedError("there is no way to build it")
        made = self._function(body, node.proto, node.inputs, schema)
        return self._checked(node, made)

    def _function(
        self, body: onnx.FunctionProto, proto: onnx.NodeProto, inputs: Sequence[Value | None], schema: Any = None
    ) -> list[Value | None]:
        """Return the outputs of a function for the inputs and attributes of a node."""
        given = attributes_of(body, proto, schema)
        inner = Scope()
        for name, value in zip(body.input, inputs, strict=False):
            if value is not None:
                inner[name] = value
        absent = {name for name in body.input if name not in inner}
        outside, self.opsets = self.opsets, {**self.opsets, **{_normal(o.domain): o.version for o in body.opset_import}}
        self._enter()
        try:
            self.run([bound(node, given, absent) for node in body.node], inner)
        finally:
            self.depth -= 1
            self.opsets = outside
        return [inner.get(name) for name in body.output]


def _may_be_setting(value: Value) -> bool:
    """Return whether a value is known and small, as the numbers are that say how large a result is."""
    return value.is_known and value.array.size <= 64 and value.dtype.kind in "iufb"


def _is_inferable(node: Node) -> bool:
    """Return whether types follow from those of the inputs: loops may carry other kinds of values than they get, and files
    give numbers with an axis to Range.
    """
    if node.kind == "Einsum" and not re.fullmatch(r"[A-Za-z,.>\s-]*", node.attr("equation", "")):
        raise UnsupportedError("an equation of other signs than letters")  # of which the inference finds no end
    is_loose = node.kind == "Range" and any(value is not None and value.ndim for value in node.inputs)
    return not is_loose and all(map(is_tensor, node.inputs))


_FAILED: Final = np.dtype("V1")
#: Filled by ``control``: operators with graphs inside.
CONTROL_FLOW: dict[str, Any] = {}


def _domain(proto: onnx.NodeProto) -> str:
    return _normal(proto.domain)


def _normal(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _sources(inputs: Sequence[Value | None]) -> frozenset[str]:
    return frozenset().union(*(value.sources for value in inputs if value is not None))


def _demand_settings(node: Node) -> None:
    """Ask for the numbers of inputs that may say how large the outputs are."""
    for value in node.inputs[1:]:
        if value is not None and not value.is_known and value.ndim <= 1 and is_whole(value.dtype):
            raise UnknownNumbersError(value)


def _first_dtype(node: Node) -> np.dtype[Any]:
    return next((value.dtype for value in node.inputs if value is not None), np.dtype(np.float32))


def _dtype_of(tensor: Any) -> np.dtype[Any] | None:
    return None if tensor is None or not tensor.elem_type else dtype_of(tensor.elem_type)


def _shape_of(tensor: Any) -> tuple[int, ...] | None:
    if tensor is None or not tensor.HasField("shape"):
        return None
    lengths = [axis.dim_value if axis.HasField("dim_value") else None for axis in tensor.shape.dim]
    return None if any(length is None for length in lengths) else tuple(int(v) for v in lengths if v is not None)
