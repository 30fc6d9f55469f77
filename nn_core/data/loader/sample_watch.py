"""The sample that a worker is reading, and since when: what hangs and what kills a worker is told by name."""

import time
from collections.abc import Iterable, MutableSequence
from typing import Final, NamedTuple

from nn_core.data.loader.tasks import BATCH, UNKNOWN, BatchError, SampleError

#: Numbers that a watch takes, as float64, which processes can share.
N_CELLS: Final = 4


class Moment(NamedTuple):
    """A moment in the work of a worker.

    Attributes:
        epoch: The epoch.
        position: Position in the epoch of the sample, or of the first one of a batch.
        sample: Number of the sample; `UNKNOWN` or `BATCH`.
        start: Time of ``time.monotonic()`` at which it has begun.
    """

    epoch: int
    position: int
    sample: int
    start: float

    def __str__(self) -> str:
        what = {UNKNOWN: "the sample", BATCH: "the batch"}.get(self.sample, f"sample {self.sample}")
        return f"{what} at position {self.position} of epoch {self.epoch}"


class SampleWatch:
    """The work of a worker, written there and read by whoever waits for it.

    Args:
        cells: `N_CELLS` numbers, all zero; None: those of this process.
    """

    def __init__(self, cells: MutableSequence[float] | None = None) -> None:
        self._cells = [0.0] * N_CELLS if cells is None else cells

    def begin(self, epoch: int, position: int, sample: int) -> None:
        """Say what is being done."""
        cells = self._cells
        cells[3] = 0.0  # until all of it is written
        cells[0], cells[1], cells[2] = epoch, position, sample
        cells[3] = time.monotonic()

    def end(self) -> None:
        """Say that nothing is being done."""
        self._cells[3] = 0.0

    def moment(self) -> Moment | None:
        """Return what is being done; None: nothing."""
        epoch, position, sample, start = self._cells
        return Moment(int(epoch), int(position), int(sample), start) if start and self._cells[3] == start else None

    def overdue(self, timeout_s: float) -> Moment | None:
        """Return what is being done for longer than `timeout_s` seconds."""
        moment = self.moment()
        return moment if moment is not None and time.monotonic() - moment.start > timeout_s else None


def hanging(moment: Moment, timeout_s: float) -> BaseException:
    """Return what stands for a batch whose worker takes too long."""
    return _of_sample(moment, TimeoutError(f"DataIterator: a sample must be read within {timeout_s:g} s, got {moment}"))


def deadly(moments: Iterable[Moment | None], exit_code: int | None, advice: str) -> BaseException:
    """Return what stands for a batch whose workers have died.

    Args:
        moments: What each of them was doing, as far as it is known.
        exit_code: The exit code of the last one.
        advice: The end of the message.
    """
    found = list(moments)
    known = [moment for moment in found if moment is not None]
    last = f", the last while it read {known[-1]}" if known else ""
    error = RuntimeError(
        f"DataIterator: a worker process must live until it has read a batch, got {len(found)} that died "
        f"(exit code {exit_code}){last}\n  hint: {advice}"
    )
    places = {moment and moment[:3] for moment in found}
    return _of_sample(known[-1], error) if len(places) == 1 and known else error


def _of_sample(moment: Moment, error: Exception) -> BaseException:
    """Return the error as that of a sample or of a batch, which is passed over from then on."""
    failure = (BatchError if moment.sample == BATCH else SampleError)(moment.epoch, moment.position)
    failure.__cause__ = error
    return failure
