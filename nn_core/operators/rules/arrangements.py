"""Operators whose results are their input arranged in another way, so that passes may show one in the memory of the other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.operators.spec.model import ArgValue
from nn_core.typing import Array

#: Shows an array in another one.
View: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The results of a function, which have the elements of its input.

    Attributes:
        parts: Show each result in the input.
        whole: Shows the input in the only result; None where there are several.
    """

    parts: Sequence[View]
    whole: View | None = None


def _transposed(args: Mapping[str, Any], n_results: int) -> Arrangement:
    axes = tuple(args["axes"])
    back = tuple(int(axis) for axis in np.argsort(axes))
    return Arrangement([lambda array: array.transpose(axes)], lambda array: array.transpose(back))


def _split(args: Mapping[str, Any], n_results: int) -> Arrangement:
    before = (slice(None),) * int(args["axis"])
    return Arrangement([_entry((*before, number)) for number in range(n_results)])


def _entry(index: tuple[Any, ...]) -> View:
    return lambda array: array[index]


#: By the name of the operator: from its arguments and the number of its results to their arrangement.
ARRANGEMENTS: Final[Mapping[str, Callable[[Mapping[str, ArgValue], int], Arrangement]]] = {
    "Transpose": _transposed,
    "Split": _split,
}
