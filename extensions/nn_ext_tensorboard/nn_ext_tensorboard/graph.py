"""The graph of a variable in TensorBoard's format."""

from typing import Any


def graph_definition(leaf: Any) -> Any:
    """Return the graph that ends in a variable: a node for each function, parameter and input, with its shape.

    Args:
        leaf: A Variable.

    Returns:
        A GraphDef of TensorBoard.
    """
    from tensorboardX.proto.graph_pb2 import GraphDef
    from tensorboardX.proto.versions_pb2 import VersionDef

    return GraphDef(node=_Nodes(leaf).found, versions=VersionDef(producer=22))


def graph_event(leaf: Any) -> Any:
    """Return the graph that ends in a variable, as an entry of a log."""
    from tensorboardX.proto.event_pb2 import Event

    return Event(graph_def=graph_definition(leaf).SerializeToString())


class _Nodes:
    """The nodes of a graph, in the order in which they run."""

    def __init__(self, leaf: Any) -> None:
        self.found: list[Any] = []
        #: names of variables by what they hold; variables that share it are one node
        self._names: dict[Any, str] = {}
        self._counts: dict[str, int] = {}
        leaf.visit(self._add)

    def _add(self, function: Any) -> None:
        inputs = [self._name_of(variable) for variable in function.inputs]
        name = self._free(function.name)
        outputs = function.results
        self.found.append(_node(name, function.name, inputs, outputs[0].shape, function.info.args))
        for number, variable in enumerate(outputs):
            self._names[variable] = f"{name}:{number}" if number else name

    def _name_of(self, variable: Any) -> str:
        if variable not in self._names:
            kind = "Parameter" if variable.need_grad else "Input"
            name = self._names[variable] = self._free(f"{kind.lower()}s/{variable.name or kind}")
            self.found.append(_node(name, kind, [], variable.shape, {}))
        return self._names[variable]

    def _free(self, name: str) -> str:
        number = self._counts.get(name, 0)
        self._counts[name] = number + 1
        return f"{name}_{number}" if number else name


def _node(name: str, operation: str, inputs: list[str], shape: tuple[int, ...], args: Any) -> Any:
    from tensorboardX.proto.attr_value_pb2 import AttrValue
    from tensorboardX.proto.node_def_pb2 import NodeDef
    from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto

    dimensions = [TensorShapeProto.Dim(size=length) for length in shape]
    shapes = AttrValue(list=AttrValue.ListValue(shape=[TensorShapeProto(dim=dimensions)]))
    attributes = {"_output_shapes": shapes}
    attributes.update({key: AttrValue(s=repr(value).encode()) for key, value in dict(args).items()})
    return NodeDef(name=name, op=operation, input=inputs, attr=attributes)
