"""Values that a call has returned beside the results of its function.

A normalization that is asked for its statistics returns functions of its input for them, so that gradients follow from
these too. Programs see them among the outputs of the normalization, in the order in which the call has returned them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import ReferenceType, WeakKeyDictionary, ref

from nn_core.engine.graph.node import Node, Value

#: Makes such values from the inputs of the function that they accompany.
Make = Callable[[Sequence[Any]], Sequence[Value]]


#: Results beyond the visible ones that programs may ask for: by a setting of the call, or by
#: variables for them in `Function.forward`.
ON_DEMAND: Final = {
    "BatchNormalization": ("batch_mean", "batch_variance"),
    "FusedBatchNormalization": ("batch_mean", "batch_variance"),
    "SyncBatchNormalization": ("batch_mean", "batch_variance"),
    "LayerNormalization": ("mean", "variance"),
    "InstanceNormalization": ("mean", "variance"),
    "GroupNormalization": ("mean", "variance"),
    "TensorNormalization": ("mean", "variance"),
    "WeightStandardization": ("mean", "variance"),
    "SpectralNorm": ("before",),
}


class Companions:
    """Values beside the results of a function, which are made again where nobody holds them any more."""

    __slots__ = ("_made", "make")

    def __init__(self, make: Make, made: Sequence[Value] = ()) -> None:
        self.make = make
        self._made: list[ReferenceType[Value]] = [ref(value) for value in made]

    def values(self, inputs: Sequence[Any]) -> list[Value]:
        """Return the values for a function with these inputs; those that are made again have not been computed."""
        held = [value for value in [reference() for reference in self._made] if value is not None]
        if held and len(held) == len(self._made):
            return held
        made = list(self.make(inputs))
        kept = [reference() for reference in self._made] or [None] * len(made)
        values = [again if value is None else value for value, again in zip(kept, made, strict=True)]
        self._made = [ref(value) for value in values]
        return values


_NOTED: Final[WeakKeyDictionary[Node, Companions]] = WeakKeyDictionary()


def note_companions(result: Value, made: Sequence[Value], make: Make) -> None:
    """Note that the call which has given `result` has returned `made` too, and how to make these again."""
    if result.producer is not None:
        _NOTED[result.producer] = Companions(make, made)


def companions_of(node: Node) -> list[Value]:
    """Return what the call of a function has returned beside its results."""
    if node.args.get("output_u") and node.storages:
        names = [entry.name for entry in node.spec.outputs]
        return [node.value(names.index(name)) for name in ON_DEMAND[node.spec.name]]
    noted = _NOTED.get(node)
    return [] if noted is None else noted.values(node.inputs)


def copy_companions(node: Node, copy: Node) -> None:
    """Let the copy of a function have companions where the original has some."""
    noted = _NOTED.get(node)
    if noted is not None:
        _NOTED[copy] = Companions(noted.make)
