"""Learning rates and batch sizes by trial: short runs that leave everything as it was."""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.runtime.machine import memory_limit, physical_memory
from nn_core.errors import ArgumentError
from nn_core.logger import logger
from nn_core.training.checkpoint import restore_snapshot, take_snapshot
from nn_core.training.reporting import observing
from nn_core.training.updater import Updater

try:
    import resource
except ImportError:  # Windows, where memory is known by its errors alone
    resource = None  # type: ignore[assignment]

#: How much of each new loss counts in the smoothed one.
_SHARE = 0.1
#: A loss that is so many times the best one is one of a rate that is too large.
_DIVERGES = 4.0
_MB = 1 << 20


@dataclass(frozen=True)
class LearningRates:
    """Losses by learning rate.

    Attributes:
        rates: The rates, growing.
        losses: The smoothed loss before the update with each rate.
        diverged_at: The rate at which the loss was not finite or four times the best; None: it never was.

    Example:
        >>> from nn_core.training import LearningRates
        >>> LearningRates((1e-3, 1e-2, 0.1, 1.0), (2.0, 1.9, 1.0, 3.0), None).suggestion
        0.1
    """

    rates: tuple[float, ...]
    losses: tuple[float, ...]
    diverged_at: float | None

    @property
    def suggestion(self) -> float:
        """The rate at which the loss falls fastest, before its minimum: a first rate for training.

        The slope is that of means over a tenth of the rates, since batches differ from each other.

        Raises:
            ArgumentError: when the loss has not fallen.
        """
        stop = int(np.argmin(self.losses)) + 1
        if stop < 3:
            raise ArgumentError(
                "find_learning_rate: the loss must fall for some rates, got the smallest loss at the first\n"
                "  hint: begin with a smaller rate, low=1e-9"
            )
        width = min(max(1, len(self.rates) // 10), stop - 2)
        means = np.convolve(self.losses[:stop], np.full(width, 1.0 / width), "valid")
        return self.rates[int(np.argmin(np.gradient(means))) + width // 2]


@fitted
def find_learning_rate(updater: Updater, low: float = 1e-7, high: float = 10.0, iterations: int = 100) -> LearningRates:
    """Train with growing learning rates until the loss diverges, then return to where training was.

    Rates grow by the same factor each iteration; losses are smoothed, and each is reported by `updater` as "loss". Parameters,
    solvers, data, random numbers and the number of iterations are then what they were before.

    Args:
        updater: Runs the iterations; all of its solvers get the rates. With several ranks, all of them call this.
        low: The first rate.
        high: The last rate.
        iterations: Number of rates.

    Returns:
        The losses by rate, with a `suggestion`.

    Raises:
        ArgumentError: when the rates or their number do not fit, no "loss" is reported, or states are divided among ranks.

    Example:
        >>> from nn_core.training import Updater, find_learning_rate
        >>> from nn_core.data import data_iterator_simple
        >>> x, solver = nn.Variable((4, 2)), S.Sgd()
        >>> loss = F.mean((PF.affine(x, 1) - 3) ** 2)
        >>> solver.set_parameters(nn.get_parameters())
        >>> with data_iterator_simple(lambda i: np.eye(2)[i % 2], 8, 4) as data:
        ...     found = find_learning_rate(Updater(data, [x], loss, solver), low=1e-3)
        >>> 1e-3 < found.suggestion < 2.0, solver.learning_rate()
        (True, 0.001)
    """
    if not 0.0 < low < high < math.inf or iterations < 3:
        raise ArgumentError(
            "find_learning_rate: low must be positive and below high, with at least 3 iterations, "
            f"got {low}, {high} and {iterations}"
        )
    if updater.state_shards:
        raise ArgumentError("find_learning_rate: states must not be divided among ranks, got an updater with sharded_states")
    updater.make_alike()
    before = take_snapshot(updater=updater).copy()
    try:
        found = _tried(updater, [low * (high / low) ** (number / (iterations - 1)) for number in range(iterations)])
    finally:
        restore_snapshot("find_learning_rate", before, updater=updater)
    updater.share_progress()
    return found


def _tried(updater: Updater, wanted: list[float]) -> LearningRates:
    rates: list[float] = []
    losses: list[float] = []
    smooth = 0.0
    for number, rate in enumerate(wanted, 1):
        for solver in updater.solvers.values():
            solver.set_learning_rate(rate)
        with observing() as observation:
            updater.update()
            if "loss" not in observation:
                known = ", ".join(observation) or "nothing"
                raise ArgumentError(f"find_learning_rate: updater must report loss, got {known}")
            loss = observation["loss"]
        smooth = (1.0 - _SHARE) * smooth + _SHARE * loss
        value = smooth / (1.0 - (1.0 - _SHARE) ** number)
        if not math.isfinite(value) or (losses and value > _DIVERGES * min(losses) > 0.0):
            return LearningRates(tuple(rates), tuple(losses), rate)
        rates.append(rate)
        losses.append(value)
    return LearningRates(tuple(rates), tuple(losses), None)


@dataclass(frozen=True)
class BatchSizes:
    """Time and memory by batch size.

    Attributes:
        sizes: The sizes that fit, each twice the one before.
        samples_per_second: The throughput of each.
        peak_mb: The largest resident memory of the process after steps of each size, in MiB; 0 where it is not known.
        why_no_more: Why there is no larger size.

    Example:
        >>> from nn_core.training import BatchSizes
        >>> found = BatchSizes((8, 16, 32), (100.0, 190.0, 195.0), (50.0, 60.0, 80.0), "at_most is 32")
        >>> found.largest, found.fastest
        (32, 16)
    """

    sizes: tuple[int, ...]
    samples_per_second: tuple[float, ...]
    peak_mb: tuple[float, ...]
    why_no_more: str

    @property
    def largest(self) -> int:
        """The largest size that fits."""
        return self.sizes[-1]

    @property
    def fastest(self) -> int:
        """The smallest size with at least 95 % of the best throughput."""
        limit = 0.95 * max(self.samples_per_second)
        return next(size for size, speed in zip(self.sizes, self.samples_per_second, strict=True) if speed >= limit)


@fitted
def find_batch_size(
    make: Callable[[int], Callable[[], object]], start: int = 1, at_most: int = 65536, memory_mb: float | None = None
) -> BatchSizes:
    """Double the batch size until the memory is used up, and time a step of each size.

    A size is not tried when the growth of the memory so far says that it will not fit: systems end processes that take too
    much.

    Args:
        make: ``make(size)`` builds what a step needs, and returns a function that runs one.
        start: The first size.
        at_most: The largest size to try.
        memory_mb: Resident memory that the process may take, in MiB. None: 80 % of what the machine has or its container
            leaves.

    Returns:
        The sizes that fit.

    Raises:
        ArgumentError: when the sizes do not fit together.
        MemoryError: when the first size does not fit.

    Example:
        >>> from nn_core.training import find_batch_size
        >>> def make(size):
        ...     x = nn.Variable((size, 64))
        ...     loss = F.mean(PF.affine(x, 32, name="layer"))
        ...     def step():
        ...         loss.forward(clear_no_need_grad=True)
        ...         loss.backward(clear_buffer=True)
        ...     return step
        >>> found = find_batch_size(make, start=8, at_most=64)
        >>> found.sizes, found.why_no_more
        ((8, 16, 32, 64), 'at_most is 64')
    """
    if not 1 <= start <= at_most:
        raise ArgumentError(f"find_batch_size: start must be from 1 to at_most, got {start} and {at_most}")
    limit = _usable_mb() if memory_mb is None else memory_mb
    sizes: list[int] = []
    speeds: list[float] = []
    peaks = [_peak_mb()]
    reason, size = "", start
    while not reason:
        try:
            speeds.append(size / _seconds(make(size)))
        except MemoryError as error:
            if not sizes:
                raise
            reason = f"{size} does not fit: {error}"
            break
        sizes.append(size)
        peaks.append(_peak_mb())
        size *= 2
        reason = _why_no_more(size, at_most, peaks, limit)
    logger.info("find_batch_size: the largest size that fits is %d, since %s", sizes[-1], reason)
    return BatchSizes(tuple(sizes), tuple(speeds), tuple(peaks[1:]), reason)


def _why_no_more(size: int, at_most: int, peaks: list[float], limit: float) -> str:
    if size > at_most:
        return f"at_most is {at_most}"
    expected = peaks[-1] + 2.0 * (peaks[-1] - peaks[-2])  # twice the size adds twice what this one has added
    return f"{size} would take about {expected:.0f} MiB of {limit:.0f}" if expected > limit else ""


def _seconds(step: Callable[[], object]) -> float:
    """Return the least time of a step, the first one left out."""
    step()
    found: list[float] = []
    end = time.perf_counter() + 0.2
    while len(found) < 3 or (time.perf_counter() < end and len(found) < 20):
        begin = time.perf_counter()
        step()
        found.append(time.perf_counter() - begin)
    return max(min(found), 1e-9)


def _peak_mb() -> float:
    """Return the largest resident memory of this process so far."""
    if resource is None:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / _MB if sys.platform == "darwin" else peak / 1024


def _usable_mb() -> float:
    known = [limit for limit in (memory_limit(), physical_memory()) if limit is not None]
    return 0.8 * min(known) / _MB if known else math.inf
