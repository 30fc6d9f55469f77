"""Training on several ranks: parts of each batch for every rank, and the same reported values on all of them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np

from nn_core.communicators import Communicator, Shards, share_parameters
from nn_core.errors import ArgumentError
from nn_core.training.reporting import Observation, observing, report
from nn_core.training.summary import Summary
from nn_core.typing import Array
from nn_core.variable import Variable

#: The largest number of axes of an array, NumPy's.
MOST_AXES: Final = 64


class Ranks:
    """The ranks of a communicator that train one model together.

    Extensions decide by reported values when to stop, to save or to change a learning rate. Ranks that decided differently
    would wait for each other forever, so what a step reports is brought together before anybody sees it.

    Args:
        comm: The communicator, initialized.
        n_parts: The number of parts that each batch is cut into; 0: each rank has batches of its own.
        accumulate: The number of batches in a step.

    Raises:
        ArgumentError: when the ranks cannot share the parts evenly.
    """

    def __init__(self, comm: Communicator, n_parts: int, accumulate: int) -> None:
        if n_parts < 0 or n_parts % comm.size:
            raise ArgumentError(
                f"Updater: shards must be a multiple of the {comm.size} ranks, or 0 where each rank has data of its own, "
                f"got {n_parts}"
            )
        self.comm = comm
        self.n_parts = n_parts
        self.are_alike = False
        self._accumulate = accumulate
        self._shards: Shards | None = None

    def make_alike(self, parameters: Mapping[str, Variable], loss: Variable | None) -> None:
        """Give the parameters of rank 0 to all ranks, before the first step."""
        share_parameters(self.comm, parameters)
        if self.n_parts:
            self._shards = Shards(self.comm, parameters, self.n_parts * self._accumulate, loss=loss)
        self.are_alike = True

    def step(self, number: int, next_batch: Callable[[], Sequence[Any]], run: Callable[[Sequence[Any]], None]) -> None:
        """Compute the mean gradient over the parts of the next batches, in an order that does not depend on the ranks.

        Args:
            number: The iteration.
            next_batch: Gives a batch, the same on every rank.
            run: Computes the gradients of a part of a batch.
        """
        shards = self._shards
        assert shards is not None
        batches = _Batches(next_batch, are_kept=getattr(self.comm.engine, "is_tolerant", False))
        attempts = count()

        def compute() -> Reports:
            if next(attempts):
                shards.undo()
            seen: list[Observation] = []
            for shard in shards.step(number):
                with observing() as observation:
                    run(self._part(batches.at(shard // self.n_parts), shard % self.n_parts))
                seen.append(observation)
            batches.at(self._accumulate - 1)  # the data of all ranks are at the same place after each step
            return self._gathered(seen, -(-shards.count // self.comm.size))

        _report(self.comm.repeated(compute))

    def _part(self, batch: Sequence[Any], number: int) -> Sequence[Any]:
        lengths = {len(values) for values in batch}
        if any(length % self.n_parts for length in lengths):
            found = ", ".join(map(str, sorted(lengths)))
            raise ArgumentError(
                f"Updater: the batch must be cut into {self.n_parts} parts of one size, got {found} samples\n"
                f"  hint: choose a batch size that is a multiple of {self.n_parts}, or another number of shards"
            )
        parts = [(values, len(values) // self.n_parts) for values in batch]
        return [values[number * size : (number + 1) * size] for values, size in parts]

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Report the means over the ranks of what is reported inside a ``with`` block."""
        with observing() as observation:
            yield
        _report(self._gathered([observation], 1))

    def _gathered(self, seen: Sequence[Observation], n_rows: int) -> "Reports":
        """Exchange the observations of all ranks.

        Args:
            seen: Those of this rank, in order.
            n_rows: The largest number of them on any rank.

        Raises:
            CommunicationError: when the ranks reported values of different names.
        """
        names = sorted({name for observation in seen for name in observation})
        table = np.zeros((n_rows, len(names), 2))
        for row, observation in zip(table, seen, strict=False):
            for cell, name in zip(row, names, strict=True):
                if name in observation:
                    cell[:] = observation[name], observation.weight(name)
        rows = self.comm.gather_rows("report", table.reshape(n_rows, -1), f"values {', '.join(names)}")
        return Reports(names, rows.reshape(-1, len(names), 2))


class _Batches:
    """The batches of a step, which takes them in order; where it may be repeated, copies of them are kept."""

    def __init__(self, next_batch: Callable[[], Sequence[Any]], *, are_kept: bool) -> None:
        self._next = next_batch
        self._are_kept = are_kept
        self._n_taken = 0
        self._batches: list[Sequence[Any]] = []

    def at(self, number: int) -> Sequence[Any]:
        """Batch `number`; where batches are not kept, the last one that was taken or one after it."""
        while self._n_taken <= number:
            self._n_taken += 1
            batch = self._next()
            self._batches = [*self._batches, [np.array(values) for values in batch]] if self._are_kept else [batch]
        return self._batches[number if self._are_kept else -1]


class Reports(NamedTuple):
    """Reported values of all parts, in the order of the parts, whoever has computed them.

    Attributes:
        names: Names of the values.
        table: Value and weight of each; (rows, names, 2). The weight is 0 where there is none.
    """

    names: Sequence[str]
    table: Array


def _report(reports: Reports) -> None:
    """Report the means."""
    for name, cells in zip(reports.names, reports.table.swapaxes(0, 1), strict=True):
        summary = Summary()
        for value, weight in cells:
            summary.add(value, weight)
        report({name: summary.mean}, weight=summary.weight)


def gather_arrays(comm: Communicator, call: str, arrays: Sequence[Array], count: int) -> list[list[Array]]:
    """The arrays of each rank that has some, in the order of the ranks, in float64; all have `count` or none.

    Args:
        comm: The communicator.
        call: Name for messages.
        arrays: Those of this rank.
        count: Number of arrays of a rank that has some.
    """
    shapes = np.full((1, count, 1 + MOST_AXES), -1, np.int64)
    for row, array in zip(shapes[0], arrays, strict=False):
        row[0], row[1 : 1 + array.ndim] = array.ndim, array.shape
    shapes = comm.gather_rows(call, shapes)
    places = [[tuple(row[1 : 1 + row[0]].tolist()) for row in rank if row[0] >= 0] for rank in shapes]
    sizes = [[math.prod(shape) for shape in rank] for rank in places]
    flat = np.zeros((1, max(map(sum, sizes))))
    if arrays:
        values = np.concatenate([np.ravel(array) for array in arrays])
        flat[0, : values.size] = values
    found = []
    for values, rank, lengths in zip(comm.gather_rows(call, flat), places, sizes, strict=True):
        parts = np.split(values[: sum(lengths)], np.cumsum(lengths)[:-1])
        if rank:
            found.append([part.reshape(shape) for part, shape in zip(parts, rank, strict=True)])
    return found
