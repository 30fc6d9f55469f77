"""The functions of a graph in order, and which of them are its first and its last layers."""

from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.function import Function
from nn_core.graph_rewriting import functions_of
from nn_core.variable import Variable

#: The rank of a function that was not counted.
UNRANKED: Final = -1


class FunctionsRankRecorder:
    """Counts the functions of a graph: ``y.visit(recorder)``.

    Functions that only graphs for training have are left out, so that those for evaluation get the same ranks.

    Args:
        functions_only_for_training: Their names.

    Attributes:
        functions_ranks: The rank of each function, from 0.

    Example:
        >>> import nn_core.functions as F
        >>> recorder = FunctionsRankRecorder()
        >>> F.tanh(F.dropout(F.relu(Variable((2,))))).visit(recorder)
        >>> [(f.name, rank) for f, rank in recorder.functions_ranks.items()]
        [('ReLU', 0), ('Tanh', 1)]
    """

    def __init__(self, functions_only_for_training: Sequence[str] = ("ImageAugmentation", "Dropout")) -> None:
        self.functions_only_for_training = list(functions_only_for_training)
        self.functions_ranks: dict[Function, int] = {}

    def __call__(self, f: Function) -> None:
        if f.name not in self.functions_only_for_training:
            self.functions_ranks[f] = len(self.functions_ranks)


def has_parameters(f: Function) -> bool:
    """Return whether a function is a layer: it reads a leaf that is trained."""
    return any(is_parameter(variable) for variable in f.inputs)


def is_parameter(variable: Variable) -> bool:
    """Return whether a variable is a leaf that is trained."""
    return variable.parent is None and variable.need_grad


def first_layers(functions: Mapping[Function, int]) -> set[Function]:
    """Return the layers before which there is no other."""
    return {f for f in functions if has_parameters(f) and not any(v.need_grad and v.parent for v in f.inputs)}


def last_layers(functions: Mapping[Function, int]) -> set[Function]:
    """Return the layers after which there is no other."""
    before: set[Function] = set()
    last: set[Function] = set()
    # those that were not counted too: they may stand between two layers
    for f in reversed(functions_of([output for function in functions for output in function.results])):
        if has_parameters(f) and f not in before:
            last.add(f)
        if has_parameters(f) or f in before:
            before.update(v.parent for v in f.inputs if v.parent is not None)
    return last
