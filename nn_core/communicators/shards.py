"""Training whose numbers do not depend on how many processes share the work."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from nn_core.communicators.buckets import Buckets
from nn_core.communicators.communicator import Communicator
from nn_core.communicators.packing import SUMS, flat_of, write_flat
from nn_core.communicators.reduction_tree import PartialSums, finished, terms_of_rank
from nn_core.communicators.sharded_gradients import GradientSums
from nn_core.communicators.sharded_states import StateShards
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.graph.parameter_sources import ParameterSource, parameters_of
from nn_core.engine.graph.seeds import FUNCTION_SEED
from nn_core.errors import ArgumentError
from nn_core.typing import Array
from nn_core.variable import Variable


class Shards:
    """The logical parts of each step: K of them whatever the number of ranks, which share them evenly.

    Each shard computes the gradients of its part of the batch. It draws random numbers from a seed of its own, made of
    `seed`, step and shard, and starts from the running statistics of the last step. Gradients and changes of running
    statistics are then averaged over the shards in a fixed order. So 1, 2, 4 and 8 ranks give the same bits for K = 8,
    and a checkpoint of one serves any other, where the kernels do not depend on the number of threads: set
    NN_CORE_DETERMINISTIC=1, or the same number of threads a rank. Random functions with a seed of their own count their
    runs instead, and are for programs that do not need this.

    Args:
        comm: The communicator, initialized.
        parameters: All parameters by name; those that need no gradient are taken for running statistics.
        count: The number of shards K, a multiple of the number of ranks; None: the number of ranks.
        seed: Of the random functions that have none of their own.
        loss: See `Buckets`.
        bucket_mb: See `Buckets`.
        state_shards: What `shard_states` has returned for the solvers, where it divides their gradients: each rank keeps the
            sums of its part, and those of a shard are sent during its pass if ``backward`` gets ``shards.callback``.

    Attributes:
        callback: For ``backward(communicator_callbacks=...)`` with `state_shards`; None without.

    Raises:
        ArgumentError: when the ranks cannot share the shards evenly.

    Example:
        for step in range(n_steps):
            for shard in shards.step(step):
                x.d, t.d = part(step, shard)
                loss.forward()
                loss.backward()
            solver.update()
    """

    def __init__(
        self,
        comm: Communicator,
        parameters: ParameterSource,
        count: int | None = None,
        *,
        seed: int = 0,
        loss: Variable | None = None,
        bucket_mb: float = 25,
        state_shards: Sequence[StateShards] = (),
    ) -> None:
        self.count = comm.size if count is None else count
        if self.count < 1 or self.count % comm.size:
            raise ArgumentError(
                f"Shards: count must be a multiple of the {comm.size} ranks, got {self.count}\n"
                f"  hint: start {_largest_divisor(self.count, comm.size)} processes, or as many as divide it"
            )
        if comm.wire_dtype is not None:
            raise ArgumentError(f"Shards: the communicator must have no wire_dtype, got {comm.wire_dtype!r}")
        self._comm = comm
        self._seed = seed
        parameters = parameters_of("Shards", parameters, argument="parameters")
        divided = [each for each in state_shards if each.with_gradients]
        self.callback = GradientSums(comm, divided, division=True) if divided else None
        trained = {} if divided else parameters
        self._buckets = Buckets(comm, trained, loss=loss, bucket_mb=bucket_mb, first_mb=bucket_mb)
        self._before: Array | None = None
        self._states = _running_statistics(parameters)

    def step(self, number: int) -> Iterator[int]:
        """Yield the shards of this rank, one after the other; the gradients are complete when the loop has ended.

        A loop that is left early leaves gradients of one shard.

        Args:
            number: Number of the step in the training.

        Yields:
            Number of the shard, for which the program computes gradients: forward, then backward.
        """
        self._before = flat_of(self._states, "float64")
        before = FUNCTION_SEED.get()
        try:
            yield from self._step(number, self._before) if self.callback is None else self._divided(number, self.callback)
        finally:
            FUNCTION_SEED.restore(*before)

    def shards_of_rank(self, rank: int) -> range:
        """Return the shards of a rank, in order: neighbours, or every n-th on n ranks where gradients are divided."""
        if self.callback is None:
            return terms_of_rank(rank, self._comm.size, self.count)
        return range(rank, self.count, self._comm.size)

    def _step(self, number: int, start: Array) -> Iterator[int]:
        gradients = [PartialSums() for _ in self._buckets.buckets]
        changes = PartialSums()
        written = [False] * len(self._buckets.written())
        for shard in self.shards_of_rank(self._comm.rank):
            self._buckets.zero()
            FUNCTION_SEED.set(seed_of(self._seed, number, shard))
            yield shard
            written = [a or b for a, b in zip(written, self._buckets.written(), strict=True)]
            for bucket, sums in zip(self._buckets.buckets, gradients, strict=True):
                sums.add(shard, bucket.gather().copy())
            changes.add(shard, self._take_change(start))
        written = self._comm.any_rank("step", written)
        self._buckets.spread([self._mean(sums) for sums in gradients], written)
        self._set_states(start + self._mean(changes))

    def _divided(self, number: int, sums: GradientSums) -> Iterator[int]:
        """Let the ranks have neighbouring shards at a time, whose gradients are added up before the next ones are computed."""
        start, changes = self._before, PartialSums()
        assert start is not None
        sums.begin_step()
        for shard in self.shards_of_rank(self._comm.rank):
            FUNCTION_SEED.set(seed_of(self._seed, number, shard))
            yield shard
            sums.end_pass()
            for place, change in enumerate(self._comm.gather_rows("step", self._take_change(start)[None])):
                changes.add(shard - self._comm.rank + place, change)
        sums.finish()
        total = finished(changes.parts, self.count)
        self._set_states(start + np.divide(total, self.count, out=total))

    def _take_change(self, start: Array) -> Array:
        """Return the change of the running statistics, which begin anew."""
        change: Array = flat_of(self._states, "float64") - start
        self._set_states(start)
        return change

    def _set_states(self, values: Array) -> None:
        write_flat(self._states, values, [state.dtype.name for state in self._states])

    def undo(self) -> None:
        """Give the running statistics the values from before the last step, which is to be repeated."""
        if self._before is not None:
            self._set_states(self._before)

    def _mean(self, sums: PartialSums) -> Array:
        total = self._comm.sum_flat("step", [part.total for part in sums.parts], self.count)
        return np.divide(total, self.count, out=total)


def seed_of(seed: int, step: int, shard: int) -> int:
    """Return the seed of one shard in one step."""
    return int(np.random.SeedSequence([seed, step, shard]).generate_state(1, np.uint64)[0] >> 8)


def _running_statistics(parameters: Mapping[str, Variable]) -> list[NdArray]:
    states = [v.data for v in parameters.values() if not v.need_grad and v.data.dtype.name in SUMS]
    return [state for state in states if SUMS[state.dtype.name].startswith("float")]


def _largest_divisor(count: int, size: int) -> int:
    return next((number for number in range(min(size, max(count, 1)), 0, -1) if count % number == 0), 1)
