"""Bodies of functions, with the attributes of a call in the place of references."""

from collections.abc import Mapping
from typing import Any

import onnx


def attributes_of(body: onnx.FunctionProto, proto: onnx.NodeProto, schema: Any) -> dict[str, onnx.AttributeProto]:
    """Return the attributes of a node with the defaults of its function and of its schema."""
    given = {attribute.name: attribute for attribute in proto.attribute}
    for default in body.attribute_proto:
        given.setdefault(default.name, default)
    for name, entry in () if schema is None else schema.attributes.items():
        if entry.default_value.type:
            given.setdefault(name, entry.default_value)
    return given


def bound(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto], absent: set[str]) -> onnx.NodeProto:
    """Return a node of a function's body with the attributes of the call in the place of references."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    for position, name in enumerate(made.input):
        if name in absent:
            made.input[position] = ""
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in given:
                copy = made.attribute.add()
                copy.CopyFrom(given[attribute.ref_attr_name])
                copy.name = attribute.name
        else:
            copy = made.attribute.add()
            copy.CopyFrom(attribute)
            _bind_graphs(copy, given)
    return made


def _bind_graphs(attribute: onnx.AttributeProto, given: Mapping[str, onnx.AttributeProto]) -> None:
    for graph in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
        nodes = [bound(node, given, set()) for node in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
