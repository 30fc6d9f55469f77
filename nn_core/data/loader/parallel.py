"""Read batches by several workers at once, and give them in order."""

import os
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from nn_core.data.loader.reading import Produced, dropped
from nn_core.data.loader.tasks import BatchError, BatchRange, SampleError, Task
from nn_core.data.loader.workers import Pool
from nn_core.data.source import DataSource
from nn_core.data.source_cursor import Course, Mark
from nn_core.errors import ShapeError

#: Makes the workers.
MakePool: TypeAlias = Callable[[], Pool]


class _Planned(NamedTuple):
    """A batch that is being read.

    Attributes:
        before: The place before it.
        number: Number of its task; None when there is nothing to read.
        is_batch: Whether there is a batch; if not, the data end here.
        after: The place after it.
        ended: The epochs that end in it.
    """

    before: Mark
    number: int | None
    is_batch: bool
    after: Mark
    ended: tuple[int, ...]


class ParallelReader:
    """Makes batches from any place on the course of a source, several ahead of the reader.

    The order of the samples is decided here, where nothing is read; workers are told positions. So batches are the same
    however many workers there are and whatever happens to them.

    Args:
        source: The source.
        batch_size: Number of samples in a batch.
        stop_exhausted: Leave out incomplete batches at the end of an epoch.
        make_pool: Makes the workers, when the first batch is read.
        n_ahead: Number of batches that are read at the same time.
    """

    def __init__(self, source: DataSource, batch_size: int, stop_exhausted: bool, make_pool: MakePool, n_ahead: int) -> None:
        self.course = Course(source)
        self._source = source
        self._batch_size = batch_size
        self._stop_exhausted = stop_exhausted
        self._make_pool = make_pool
        self._n_ahead = n_ahead
        self._pool: Pool | None = None
        self._pid = os.getpid()
        #: Whether the last call came to its end; if not, anything may be half done.
        self._is_consistent = True
        self._ahead: deque[_Planned] = deque()
        self._number = 0
        self._place: Mark | None = None
        self._epoch_mark: tuple[int, Mark] | None = None

    def read(self, mark: Mark) -> Produced:
        """Read the batch after `mark`; see `Reader.read`."""
        if not self._is_consistent or self._pid != os.getpid():
            self._start_anew()
        self._is_consistent = False
        produced = self._read(mark)
        self._is_consistent = True
        return produced

    def close(self) -> None:
        """End the workers."""
        pool, self._pool = self._pool, None
        self._ahead.clear()
        if pool is not None and self._pid == os.getpid():
            pool.close()

    def _read(self, mark: Mark) -> Produced:
        if self._pool is None:
            self._pool = self._make_pool()
        if not self._ahead or self._ahead[0].before is not mark:
            self._go_to(mark)
        self._plan_ahead(self._pool)
        planned = self._ahead.popleft()
        if planned.number is None:
            return Produced(None, planned.after, planned.ended)
        result = self._pool.wait(planned.number)
        if isinstance(result, (tuple, ShapeError, BatchError)):
            self._plan_ahead(self._pool)
            if not planned.is_batch:
                return Produced(None, planned.after, planned.ended)
            if not isinstance(result, tuple):
                return dropped(result, planned.after)
            return Produced(result, planned.after, planned.ended)
        if isinstance(result, SampleError):
            assert isinstance(result.__cause__, Exception)
            return Produced(None, mark.without(*result.place), (), result.__cause__)
        raise result

    def _start_anew(self) -> None:
        """Make other workers: a call was interrupted, or this is a forked child, whose parent continues with them."""
        if self._pid == os.getpid():
            self.close()
        self._pool, self._pid = None, os.getpid()
        self._ahead.clear()
        self._place = None
        self.course.forget_place()

    def _go_to(self, mark: Mark) -> None:
        """Give up what is being read, and plan from `mark`."""
        if self._pool is not None:
            self._pool.forget()
        self._ahead.clear()
        if self._place is not mark:
            self._place = None
            self.course.go_to(mark)
        self._place, self._epoch_mark = mark, None

    def _plan_ahead(self, pool: Pool) -> None:
        while len(self._ahead) < self._n_ahead:
            before, self._place = self._place, None
            assert before is not None
            task, ended, is_batch = self._plan()
            number = None
            if task is not None:
                number = self._number = self._number + 1
                pool.submit(number, task)
            self._place = self.course.mark()
            self._ahead.append(_Planned(before, number, is_batch, self._place, ended))

    def _plan(self) -> tuple[Task | None, tuple[int, ...], bool]:
        """Return the next task, the epochs that end in it, and whether it is a batch; if not, the data end."""
        source, course = self._source, self.course
        if self._stop_exhausted and source.size - source.position < self._batch_size:
            return None, (self._end_epoch(),), False
        begin = (course.epoch, source.position)
        parts: list[BatchRange] = []
        ended: list[int] = []
        missing = self._batch_size
        while missing:
            part = self._part(missing)
            parts.append(part)
            missing -= part.stop - part.first - len(part.skipped)
            if source.position >= source.size:
                if self._stop_exhausted:
                    break
                ended.append(self._end_epoch())
        if missing:  # samples were passed over, and too few are left for a batch; they are read for their errors
            ended.append(self._end_epoch())
        return Task(*begin, tuple(parts)), tuple(ended), not missing

    def _part(self, n_samples: int) -> BatchRange:
        """Up to `n_samples` of this epoch from the present position on, which moves."""
        source = self._source
        if self._epoch_mark is None:
            self._number += 1
            self._epoch_mark = (self._number, self.course.mark())
        first = stop = source.position
        skipped = []
        while n_samples and stop < source.size:
            if self.course.skips(stop):
                skipped.append(stop)
            else:
                n_samples -= 1
            stop += 1
        source.go_to(stop)
        return BatchRange(*self._epoch_mark, first, stop, tuple(skipped))

    def _end_epoch(self) -> int:
        epoch = self.course.epoch
        self.course.end_epoch()
        self._epoch_mark = None
        return epoch
