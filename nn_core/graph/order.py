"""The order in which the nodes of a graph run; everybody who walks a graph uses it."""

from collections.abc import Iterable

from nn_core.errors import GraphError
from nn_core.graph.node import Cell, Node, Vertex


def require_no_circle(function: str, inputs: Iterable[Vertex | None], cells: Iterable[Cell]) -> None:
    """Refuse outputs that a function reads, or that its inputs depend on.

    Raises:
        GraphError: when the graph would be a circle.
    """
    written = {id(cell.data.synced) for cell in cells}
    given = [vertex for vertex in inputs if vertex is not None]
    for vertex in [*given, *[v for node in forward_order(given) for v in node.inputs if v is not None]]:
        if id(vertex.cell.data.synced) in written:
            raise GraphError(
                f"{function}: an output must not be what the function or its inputs are computed from, got a variable of "
                f"shape {vertex.shape}: the graph would be a circle"
            )


def forward_order(roots: Iterable[Vertex], done: set[Node] | None = None) -> list[Node]:
    """All nodes that `roots` depend on, each after the nodes that compute its inputs; those in `done` are left out.

    Depth first, inputs in their order, which keeps few values alive at a time. Iterative: depth costs no stack.
    """
    order: list[Node] = []
    done = set() if done is None else done
    for root in roots:
        if root.producer is None or root.producer in done:
            continue
        done.add(root.producer)
        stack = [(root.producer, iter(root.producer.inputs))]
        while stack:
            node, inputs = stack[-1]
            for vertex in inputs:
                producer = None if vertex is None else vertex.producer
                if producer is not None and producer not in done:
                    done.add(producer)
                    stack.append((producer, iter(producer.inputs)))
                    break
            else:
                order.append(node)
                stack.pop()
    return order
