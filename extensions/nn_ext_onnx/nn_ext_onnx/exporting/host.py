"""Functions that are computed on the host: what an imported model computes with integers, as its own nodes again."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter

from nn_ext_onnx.exporting.registry import NotExportableError
from nn_ext_onnx.exporting.trees import leaves
from nn_ext_onnx.exporting.values import INT, GraphWriter, Value
from nn_ext_onnx.importing.folding import Evaluator
from nn_ext_onnx.importing.host import FlatPlaces, HostFunction, Rounded
from nn_ext_onnx.importing.indexing import CacheRows
from nn_ext_onnx.importing.pooling import WindowIndex
from nn_ext_onnx.importing.trees import Trees

#: Names of the domain of ONNX's own operators.
_ONNX: Final = ("", "ai.onnx")


def python_function(graph: GraphWriter, function: Any, inputs: Sequence[Value]) -> list[Value]:
    """Return the results of a function that is written in Python.

    Args:
        graph: what nodes are added to.
        function: the function.
        inputs: those that are given.

    Raises:
        NotExportableError: when it is none that the importer has made: a name says nothing about what it computes.
    """
    write = _WRITERS.get(type(function.compute)) if isinstance(function, HostFunction) else None
    if write is None:
        raise NotExportableError("a function in Python cannot be written")
    given = iter(inputs)
    values = [None if dtype is None else next(given).cast(dtype) for dtype in function.dtypes]
    kind = np.dtype(function.output_dtype)
    return [value.cast(kind) for value in write(graph, function, values)]


def _node(graph: GraphWriter, function: HostFunction, inputs: Sequence[Value | None]) -> list[Value]:
    """Add a node of the model, in the version that the operator set of the graph has."""
    evaluator: Evaluator = function.compute  # type: ignore[assignment]
    node = evaluator.copy
    names = {f"i{place}": value.name for place, value in enumerate(inputs) if value is not None}
    part = onnx.GraphProto(node=[node])
    if node.domain in _ONNX:
        part = _in_opset(node, evaluator.opsets.get("", 1), graph.opset, inputs, function.results)
    else:
        graph.domains[node.domain] = evaluator.opsets[node.domain]
    for tensor in part.initializer:
        names[tensor.name] = graph.constant(
            numpy_helper.to_array(tensor), helper.tensor_dtype_to_np_dtype(tensor.data_type)
        ).name
    for one in part.node:
        for name in one.output:
            names[name] = graph.fresh(f"{one.op_type}_out")
        graph.add(one, names)
    results = [name for name in node.output if name]
    return [Value(graph, names[name], dtype) for name, dtype in zip(results, function.results, strict=True)]


def _in_opset(
    node: onnx.NodeProto, old: int, new: int, inputs: Sequence[Value | None], results: Sequence[np.dtype[Any]]
) -> onnx.GraphProto:
    """Return a node of one operator set as nodes of another."""
    try:
        schemas = [onnx.defs.get_schema(node.op_type, opset, "") for opset in (old, new)]
        if schemas[0].since_version == schemas[1].since_version:
            return onnx.GraphProto(node=[node])
        dtypes = {f"i{place}": value.dtype for place, value in enumerate(inputs) if value is not None}
        ports = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), None) for name, dtype in dtypes.items()
        ]
        made = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), None)
            for name, dtype in zip([name for name in node.output if name], results, strict=True)
        ]
        model = helper.make_model(helper.make_graph([node], "node", ports, made), opset_imports=[helper.make_opsetid("", old)])
        return version_converter.convert_version(model, new).graph
    except (onnx.defs.SchemaError, RuntimeError, version_converter.ConvertError) as error:
        raise NotExportableError(f"it is a node of operator set {old}, which {new} does not have") from error


def _places(graph: GraphWriter, function: HostFunction, inputs: Sequence[Value | None]) -> list[Value]:
    flat: FlatPlaces = function.compute  # type: ignore[assignment]
    indices = inputs[0]
    assert indices is not None
    indices = indices.cast(INT)
    lengths, strides, offset = (graph.constant(array, INT) for array in (flat.lengths, flat.strides, flat.offset))
    places = graph.op("Where", indices.compare("Less", 0), indices + lengths, indices) * strides
    total = (places.reduce("ReduceSum", [flat.offset.ndim], False) if flat.is_summed else places) + offset
    return [total.reshape((-1,))]


def _rounded(graph: GraphWriter, function: HostFunction, inputs: Sequence[Value | None]) -> list[Value]:
    rounded: Rounded = function.compute  # type: ignore[assignment]
    assert inputs[0] is not None
    return [inputs[0].cast(rounded.dtype)]


def _leaves(graph: GraphWriter, function: HostFunction, inputs: Sequence[Value | None]) -> list[Value]:
    trees: Trees = function.compute  # type: ignore[assignment]
    assert inputs[0] is not None
    return [leaves(graph, trees, inputs[0])]


def _window_index(graph: GraphWriter, function: HostFunction, inputs: Sequence[Value | None]) -> list[Value]:
    """Write the index of an element as that of the first element of its window, and the distance from it."""
    index: WindowIndex = function.compute  # type: ignore[assignment]
    assert inputs[0] is not None
    shape = function.shapes[0]
    first = index([np.zeros(shape, np.int64)])[0]
    corner = first.reshape(-1)[0]
    n_taps = prod(index.pooling.kernel)
    distances = [index([np.broadcast_to(np.int64(tap), shape)])[0].reshape(-1)[0] - corner for tap in range(n_taps)]
    table = graph.constant(np.array(distances, np.int64))
    return [table.op("Gather", inputs[0].cast(INT), axis=0) + graph.constant(first)]


def _cache_rows(graph: GraphWriter, function: HostFunction, inputs: Sequence[Value | None]) -> list[Value]:
    """Write where rows come from: those at a distance from the first that is written, counted in a circle, are new."""
    rows: CacheRows = function.compute  # type: ignore[assignment]
    assert inputs[0] is not None
    places = np.arange(rows.length)[None]
    starts = inputs[0].cast(INT).reshape((-1, 1))
    distances = (graph.constant(places, INT) - starts).op("Mod", rows.length)
    is_new = distances.compare("Less", rows.count)
    return [graph.op("Where", is_new, distances + rows.length, graph.constant(places, INT))]


_WRITERS: Final[dict[type, Callable[[GraphWriter, HostFunction, Sequence[Value | None]], list[Value]]]] = {
    Evaluator: _node,
    CacheRows: _cache_rows,
    FlatPlaces: _places,
    Rounded: _rounded,
    Trees: _leaves,
    WindowIndex: _window_index,
}
