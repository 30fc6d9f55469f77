"""A network in integers, as data that the reference computes and that C is written of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nn_ext_c.integer.numbers import Scale
from nn_ext_c.program import Shape


@dataclass(frozen=True, slots=True)
class Tensor:
    """An array of int8 and what its integers stand for."""

    shape: Shape
    scale: Scale


@dataclass(frozen=True, slots=True)
class Node:
    """One computation; `reference.py` says what each kind is.

    Attributes:
        kind: "window", "sum", "product", "largest", "pool", "lookup", "softmax", "move", "join", "constant" or "recurrent".
        inputs: numbers of tensors.
        output: number of the tensor that it makes.
        data: its settings: integers, and arrays of them; "others" are the numbers of further tensors that it makes.
    """

    kind: str
    inputs: tuple[int, ...]
    output: int
    data: Mapping[str, Any]


@dataclass(slots=True)
class IntegerNetwork:
    """Tensors by number, the nodes in order, and what comes in and goes out, as float32."""

    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)

    def tensor(self, shape: Shape, scale: Scale) -> int:
        """Return a new tensor."""
        self.tensors.append(Tensor(tuple(shape), scale))
        return len(self.tensors) - 1

    def add(self, kind: str, inputs: tuple[int, ...], shape: Shape, scale: Scale, **data: Any) -> int:
        """Append a node; the number of its result."""
        output = self.tensor(shape, scale)
        self.nodes.append(Node(kind, inputs, output, data))
        return output
