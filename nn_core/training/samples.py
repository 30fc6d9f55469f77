"""The data of `fit`: one or several arrays of inputs, and one or several of targets."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nn_core.data.iterators import data_iterator
from nn_core.data.source import DataSource
from nn_core.errors import ArgumentError
from nn_core.typing import Array

T = TypeVar("T")
#: Names of a third array of a batch, by which samples weigh.
_WEIGHTS = frozenset({"w", "weight", "weights", "sample_weight"})


class Samples(NamedTuple):
    """Arrays with an axis of samples in front."""

    inputs: tuple[Array, ...]
    targets: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.inputs[0])

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All arrays, those of the inputs first."""
        return (*self.inputs, *self.targets)


def parts(given: Any) -> tuple[Any, ...]:
    """Return the arrays of inputs or targets: those of a tuple of arrays, else the one that was given."""
    several = isinstance(given, tuple) and given and all(hasattr(part, "__array__") and np.ndim(part) for part in given)
    return given if several else (given,)


def packed(values: Sequence[T]) -> Any:
    """Return one value as it is, several as a tuple."""
    return values[0] if len(values) == 1 else tuple(values)


def lengths_of(arrays: Iterable[Array]) -> set[int]:
    """Return the numbers of samples of arrays, 0 for an array without axes."""
    return {len(array) if array.ndim else 0 for array in arrays}


@contextmanager
def batches_of(function: str, name: str, source: DataSource, batch_size: int, seed: int) -> Iterator[Any]:
    """Iterate over the batches of a data source inside of a ``with`` block.

    Raises:
        ArgumentError: when its samples are not inputs, targets and maybe weights.
    """
    names = tuple(source.variables or ())
    if len(names) not in (2, 3) or (len(names) == 3 and names[2] not in _WEIGHTS):
        raise ArgumentError(
            f"{function}: samples of {name} must be inputs, targets and maybe weights, got the variables {', '.join(names)}\n"
            "  hint: columns x__0, x__1 of a table are one variable x; np.loadtxt or pandas make arrays of a table with others"
        )
    rng = np.random.RandomState(seed)
    with data_iterator(source, min(batch_size, source.size), rng, with_memory_cache=False) as batches:
        yield batches
