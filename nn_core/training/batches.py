"""Batches for `fit` from iterables, and data from them as arrays."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from nn_core.data.array_sources import ArrayDataSource
from nn_core.data.iterator import DataIterator
from nn_core.data.source import DataSource
from nn_core.engine.error_messages.foreign_values import values_of
from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError
from nn_core.training.samples import batches_of, packed, parts

Batch = Sequence[Any]
#: Samples that are read at a time where all of a source are wanted.
_GATHERED = 256
#: Bytes of a batch up to which a thread that takes rows of arrays costs more than it saves.
_SMALL_BATCH: Final = 2**20


class IterableBatches:
    """Batches of an iterable, one pass after the other, for an `Updater`; it has epochs, and no state.

    Args:
        source: Batches, each a tuple of inputs, targets, and weights if there are some. A list, or another object that can be
            iterated over again; a function that returns an iterator; or an iterator or generator, for one epoch.

    Raises:
        ArgumentError: when there are no batches; by `next`, when an iterator has come to its end.
    """

    #: Epochs are the unit: their number of samples is not known.
    size = 1
    position = 0

    def __init__(self, source: Iterable[Batch] | Callable[[], Iterable[Batch]]) -> None:
        self.epoch = 0
        self._source = source
        self._is_spent = False
        self._batches = self._begin()
        self._following: Batch | None = next(self._batches, None)
        if self._following is None:
            raise ArgumentError(f"fit: train must have batches, got none from {described(source)}")

    @property
    def first(self) -> Batch:
        """The batch that `next` will return."""
        if self._following is None:
            raise ArgumentError(
                f"fit: an iterator must have batches for all epochs, got its end after epoch {self.epoch}\n"
                "  hint: a list, or a function that returns the iterator, can be gone over again"
            )
        return self._following

    def next(self) -> Batch:
        """Return the next batch as a list of arrays; after the last one of a pass another epoch begins."""
        batch: Batch = flat(self.first)
        self._following = next(self._batches, None)
        if self._following is None:
            self.epoch += 1
            if not self._is_spent:
                self._batches = self._begin()
                self._following = next(self._batches, None)
        return batch

    def _begin(self) -> Iterator[Batch]:
        source = self._source() if callable(self._source) else self._source
        self._is_spent = not callable(self._source) and iter(source) is source
        return iter(source)


def batches_of_arrays(arrays: Sequence[np.ndarray[Any, Any]], batch_size: int, seed: int) -> DataIterator:
    """Return an iterator over the rows of arrays, shuffled in each epoch."""
    columns = {f"x{number}": array for number, array in enumerate(arrays)}
    n_bytes = sum(array.nbytes for array in arrays) // len(arrays[0]) * batch_size
    source = ArrayDataSource(columns, True, np.random.RandomState(seed))
    return DataIterator(source, batch_size, use_thread=n_bytes > _SMALL_BATCH)


def is_batches(data: Any) -> bool:
    """Return whether data are batches rather than a pair of arrays."""
    is_pair = isinstance(data, (tuple, list)) and len(data) == 2 and not any(isinstance(part, tuple) for part in data)
    if is_pair or isinstance(data, (tuple, dict, str)) or hasattr(data, "__array__"):
        return False
    return hasattr(data, "next") or callable(data) or isinstance(data, Iterable)


def gathered(function: str, name: str, data: Any) -> Any:
    """Return the batches of one pass as arrays; arrays as they are.

    Raises:
        ArgumentError: when there are no batches.
    """
    if isinstance(data, DataSource):
        with batches_of(function, name, data, _GATHERED, 0) as batches:
            return gathered(function, name, batches)
    if not is_batches(data):
        return data
    batches = list(_of_one_epoch(data))
    if not batches:
        raise ArgumentError(f"{function}: {name} must have batches, got none")
    counts = [len(parts(part)) for part in batches[0]]
    arrays = [np.concatenate([values_of(one) for one in column]) for column in zip(*map(flat, batches), strict=True)]
    columns = iter(arrays)
    return tuple(packed([next(columns) for _ in range(count)]) for count in counts)


def flat(batch: Any) -> Any:
    """Return a batch whose inputs or targets are several arrays as a list of all arrays; others as they are."""
    if not isinstance(batch, (tuple, list)):
        return batch
    return [array for part in batch for array in parts(part)]


def _of_one_epoch(data: Any) -> Iterator[Batch]:
    if not hasattr(data, "next"):
        yield from data() if callable(data) else data
        return
    yield from epoch_of(data)


def epoch_of(data: Any) -> Iterator[Batch]:
    """Yield the batches of one epoch of a data iterator, the last one cut at its end."""
    left = data.size
    while left > 0:
        batch = data.next()
        rows = min(left, len(batch[0]))
        yield [values[:rows] for values in batch]
        left -= rows
