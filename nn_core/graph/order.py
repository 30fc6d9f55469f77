"""The order in which the nodes of a graph run; everybody who walks a graph uses it."""

from collections.abc import Iterable

from nn_core.graph.node import Node, Vertex


def forward_order(roots: Iterable[Vertex]) -> list[Node]:
    """All nodes that `roots` depend on, each after the nodes that compute its inputs.

    Depth first, inputs in their order, which keeps few values alive at a time. Iterative: depth costs no stack.
    """
    order: list[Node] = []
    done: set[Node] = set()
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
