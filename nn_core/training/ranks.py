"""Training on several ranks: parts of each batch for every rank, and the same reported values on all of them."""

import hashlib
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np

from nn_core.communicators import Communicator, GradientSums, Shards, StateShards, shard_states, share_parameters
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.errors import ArgumentError
from nn_core.logger import logger
from nn_core.solvers import Solver
from nn_core.training.checkpoint import FORMAT, RANDOM, Snapshot, from_bytes, to_bytes
from nn_core.training.reporting import Observation, observing, report
from nn_core.training.states import Stateful, as_text, pack
from nn_core.training.summary import Summary
from nn_core.typing import Array
from nn_core.variable import Variable

_HINT: Final = "\n  hint: give the iterators of all ranks the same rng, or shards=0 where each rank has data of its own"
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
        state_shards: The states of the solvers, where they are divided.

    Attributes:
        sums: The callback of backward passes that adds up gradients, where they are divided, too.

    Raises:
        ArgumentError: when the ranks cannot share the parts evenly.
    """

    def __init__(self, comm: Communicator, n_parts: int, accumulate: int, state_shards: Sequence[StateShards] = ()) -> None:
        if n_parts < 0 or n_parts % comm.size:
            raise ArgumentError(
                f"Updater: shards must be a multiple of the {comm.size} ranks, or 0 where each rank has data of its own, "
                f"got {n_parts}"
            )
        self.comm = comm
        self.n_parts = n_parts
        self.are_alike = False
        self.progress: Progress | None = None
        self._statistics = RunningStatistics(comm, {})
        self._accumulate = accumulate
        self._shards: Shards | None = None
        self._state_shards = state_shards
        divided = [shards for shards in state_shards if shards.with_gradients]
        self.sums = GradientSums(comm, divided, division=True) if divided else None

    def make_alike(self, parameters: Mapping[str, Variable], loss: Variable | None, data: Any) -> None:
        """Give the parameters of rank 0 to all ranks, before the first step.

        Raises:
            ArgumentError: when ranks that share batches read data of other lengths or in another order.
        """
        if self.n_parts:
            require_same_data(self.comm, data)
        share_parameters(self.comm, parameters)
        self._statistics = RunningStatistics(self.comm, parameters)
        if self.n_parts:
            count = self.n_parts * self._accumulate
            self._shards = Shards(self.comm, parameters, count, loss=loss, state_shards=self._state_shards)
            self.sums = self._shards.callback
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
            return self._gathered(seen, -(-shards.count // self.comm.size), are_dealt=shards.callback is not None)

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
    def reporting(self, progress: "Callable[[], Progress]") -> Iterator[None]:
        """Report means over the ranks of what is reported in a ``with`` block, and take over the progress of rank 0."""
        with observing() as observation:
            yield
        _report(self._gathered([observation], 1, progress()))

    def passes(self) -> Iterator[None]:
        """Yield for each batch of a step, where each rank has its own; divided gradients are sent by the pass of the last."""
        for number in range(1, self._accumulate + 1):
            with nullcontext() if number == self._accumulate else self.comm.no_sync():
                yield

    def average(self, gradients: Sequence[NdArray], number: int) -> None:
        """Replace gradients, and the running statistics that have changed, by their means over the ranks.

        Args:
            gradients: The gradients.
            number: The iteration.
        """
        alike = gradients if self.sums is None else ()
        self.comm.all_reduce([*alike, *self._statistics.changing(number)], division=True)

    def share_progress(self, own: "Progress") -> None:
        """Take over the progress of rank 0, from which all ranks count epochs."""
        self.progress = Progress(*self.comm.gather_rows("progress", np.array([own], np.float64))[0].tolist())

    def gathered_states(self, state: Any) -> list[Any]:
        """Return the states of all ranks in their order; every rank calls this."""
        content = to_bytes(Snapshot({"rank": state}, {}, {"format": FORMAT}))
        lengths = self.comm.gather_rows("save", np.array([len(content)])).ravel().tolist()
        row = np.zeros((1, max(lengths)), np.uint8)
        row[0, : len(content)] = np.frombuffer(content, np.uint8)
        rows = self.comm.gather_rows("save", row)
        return [from_bytes(found[:length].tobytes()).states["rank"] for found, length in zip(rows, lengths, strict=True)]

    def _gathered(
        self, seen: Sequence[Observation], n_rows: int, progress: "Progress | None" = None, *, are_dealt: bool = False
    ) -> "Reports":
        """Exchange the observations of all ranks.

        Args:
            seen: Those of this rank, in order.
            n_rows: The largest number of them on any rank.
            progress: That of this rank, where that of rank 0 is to be taken over.
            are_dealt: Whether neighbouring parts are those of neighbouring ranks.

        Raises:
            CommunicationError: when the ranks reported values of different names.
        """
        names = sorted({name for observation in seen for name in observation})
        table = np.zeros((n_rows, len(names), 2))
        for row, observation in zip(table, seen, strict=False):
            for cell, name in zip(row, names, strict=True):
                if name in observation:
                    cell[:] = observation[name], observation.weight(name)
        own = np.array([progress or ()] * n_rows, np.float64).reshape(n_rows, -1)
        rows = self.comm.gather_rows("report", np.hstack([own, table.reshape(n_rows, -1)]), f"values {', '.join(names)}")
        if progress is not None:
            self.progress = Progress(*rows[0, : len(progress)].tolist())
        rows = np.ascontiguousarray(rows[:, own.shape[1] :])
        if are_dealt:
            rows = rows.reshape(self.comm.size, n_rows, -1).swapaxes(0, 1)
        return Reports(names, rows.reshape(-1, len(names), 2))


class Progress(NamedTuple):
    """Progress of a rank with data of its own; all ranks count the epochs of rank 0, since their parts may differ in length.

    Attributes:
        epoch: Number of epochs that have ended.
        size: Samples of an epoch; 1 when the data have no epochs.
        position: Samples of the epoch that were given; -1 when the data have no epochs.
        a_step: Number of samples that an iteration takes; -1 when that is not known beforehand.
    """

    epoch: float
    size: float
    position: float
    a_step: float


class RunningStatistics:
    """Parameters that need no gradient, and which of them functions change: those of normalizations, and no frozen ones.

    Args:
        comm: The communicator.
        parameters: All parameters by name, the same on all ranks.
    """

    def __init__(self, comm: Communicator, parameters: Mapping[str, Variable]) -> None:
        self._comm = comm
        fixed = [v.data for v in parameters.values() if not v.need_grad and v.data.dtype.kind == "f"]
        self._fixed = [(array, _checksum(array)) for array in fixed]
        self._changing: list[NdArray] = []
        self._is_first = True

    def changing(self, number: int) -> list[NdArray]:
        """Those that are known to change; in the first call, and in iterations that are powers of two, all are looked at."""
        is_due = self._is_first or number & (number - 1) == 0
        self._is_first = False
        if self._fixed and is_due:
            flags = self._comm.any_rank("statistics", [_checksum(array) != before for array, before in self._fixed])
            self._changing += [array for (array, _), flag in zip(self._fixed, flags, strict=True) if flag]
            self._fixed = [item for item, flag in zip(self._fixed, flags, strict=True) if not flag]
        return self._changing


def _checksum(array: NdArray) -> int:
    return zlib.crc32(np.ascontiguousarray(array.get_data("r")).data)


def divided_states(comm: Communicator | None, solvers: Iterable[Solver], states: bool, gradients: bool) -> list[StateShards]:
    """Divide the states of solvers among several ranks, where that is wanted, and the gradients."""
    if comm is None or comm.size == 1 or not (states or gradients):
        return []
    return [shard_states(comm, solver, gradients=gradients) for solver in solvers]


def require_same_data(comm: Communicator, data: Any) -> None:
    """Compare lengths, batch sizes, and the states of generators of all ranks, which are to read the same batches.

    Raises:
        ArgumentError: on all ranks, when one of them differs.
    """
    arrays: dict[str, Array] = {}
    state = as_text(pack(data.get_state(), arrays, "data")) if isinstance(data, Stateful) else np.zeros(0, np.uint8)
    digest = hashlib.sha256(state.tobytes())
    for array in arrays.values():
        digest.update(np.ascontiguousarray(array).tobytes())
    sizes = [int(getattr(data, name, 0) or 0) for name in ("size", "batch_size")]
    numbers = np.array([[*sizes, *np.frombuffer(digest.digest()[:16], np.int64)]], np.int64)
    rows = comm.gather_rows("data", numbers).tolist()
    for index, what in ((0, "lengths"), (1, "batch sizes")):
        found = [row[index] for row in rows]
        if len(set(found)) > 1:
            raise ArgumentError(
                f"Updater: all ranks must read the same batches, got data of the {what} {found} by rank{_HINT}"
            )
    if len({tuple(row) for row in rows}) > 1:
        raise ArgumentError(
            f"Updater: all ranks must read the same batches, got data in other orders or at other positions{_HINT}"
        )


def of_rank(function: str, snapshot: Snapshot, comm: Communicator, own: Mapping[str, Any]) -> Snapshot:
    """Return a snapshot of a training in which each rank has data of its own, with the parts of this rank.

    Args:
        function: Start of messages.
        snapshot: What rank 0 has saved.
        comm: The communicator.
        own: The present parts of this rank, for snapshots of earlier versions, which hold those of rank 0 alone.

    Raises:
        ArgumentError: when it was saved by another number of ranks.
    """
    trainer = snapshot.states["trainer"]
    ranks = trainer.get("ranks")
    if ranks is None:
        if comm.rank == 0:
            logger.warning("%s: the data of rank 0 alone are continued, the other ranks begin theirs anew", function)
            return snapshot
        parts = own
    elif len(ranks) != comm.size:
        raise ArgumentError(
            f"{function}: there must be as many ranks as those with data of their own that were saved, {len(ranks)}, "
            f"got {comm.size}"
        )
    else:
        parts = ranks[comm.rank]
    random = {RANDOM: parts[RANDOM]} if RANDOM in parts else {}
    updater = {**trainer["updater"], **{name: part for name, part in parts.items() if name != RANDOM}}
    return replace(snapshot, states={**snapshot.states, "trainer": {**trainer, "updater": updater}, **random})


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
    """Return the arrays of each rank that has some, in the order of the ranks, in float64; all have `count` or none.

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
