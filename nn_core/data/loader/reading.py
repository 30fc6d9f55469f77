"""Read the batches of a source: one after another, or ahead of the reader in a thread."""

import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from nn_core.data.loader.tasks import PLAIN, Batch, BatchError, Collation, SampleError, make_batch, read_sample, transformed
from nn_core.data.source import DataSource, OrderedDataSource, Sample
from nn_core.data.source_cursor import Course, Mark
from nn_core.errors import ShapeError


class Produced(NamedTuple):
    """The outcome of reading a batch.

    Attributes:
        batch: The batch; None at the end of the data, or when reading failed.
        mark: The place after it.
        ended: The epochs that ended in it.
        error: Why there is no batch.
        is_dropped: Whether a whole batch is passed over for it, not a sample.
    """

    batch: Batch | None
    mark: Mark
    ended: tuple[int, ...] = ()
    error: Exception | None = None
    is_dropped: bool = False


def dropped(failure: Exception, mark: Mark) -> Produced:
    """Pass over a batch whose samples do not fit together, or whose transformation fails."""
    error = failure.__cause__ if isinstance(failure, BatchError) else failure
    assert isinstance(error, Exception)
    return Produced(None, mark, (), error, True)


class Reader:
    """Makes batches from any place on the course of a source.

    Args:
        source: The source.
        batch_size: Number of samples in a batch.
        stop_exhausted: Leave out incomplete batches at the end of an epoch.
        collation: How samples become a batch.
    """

    def __init__(self, source: DataSource, batch_size: int, stop_exhausted: bool, collation: Collation = PLAIN) -> None:
        self.course = Course(source)
        self._source = source
        self._batch_size = batch_size
        self._stop_exhausted = stop_exhausted
        self._collation = collation
        self._at: Mark | None = None

    def read(self, mark: Mark) -> Produced:
        """Read the batch after `mark`.

        A sample that raises an exception is passed over from then on: the returned error carries a note that names it, and
        the returned mark is `mark` without it. Any other exception, such as KeyboardInterrupt, leaves everything to be
        read again.
        """
        if self._at is not mark:
            self.course.go_to(mark)
        self._at = None  # until the batch is complete, the source is at no known place
        try:
            batch, ended = self._batch()
        except SampleError as failure:
            error = failure.__cause__
            assert isinstance(error, Exception)
            return Produced(None, mark.without(*failure.place), (), error)
        except ShapeError as error:
            return dropped(error, self.course.mark())
        except BatchError as failure:
            return dropped(failure, self.course.mark())
        self._at = self.course.mark()
        return Produced(batch, self._at, ended)

    def forget_place(self) -> None:
        """Return to the mark before the next batch, wherever the source is."""
        self._at = None
        self.course.forget_place()

    def _batch(self) -> tuple[Batch | None, tuple[int, ...]]:
        source, course = self._source, self.course
        if self._stop_exhausted and source.size - source.position < self._batch_size:
            ended = course.epoch
            course.end_epoch()
            return None, (ended,)
        begin = (course.epoch, source.position)
        rows = self._rows()
        if rows is not None:
            arrays, ended_epochs = rows
            return transformed(arrays, self._collation, *begin), tuple(ended_epochs)
        samples: list[Sample] = []
        ended_epochs = []
        while len(samples) < self._batch_size:
            if course.skips(source.position):
                source.go_to(source.position + 1)
            else:
                samples.append(read_sample(source, course.epoch))
            if source.position >= source.size:
                if self._stop_exhausted:
                    break
                ended_epochs.append(course.epoch)
                course.end_epoch()
        if len(samples) < self._batch_size:  # samples were passed over, and too few are left for a batch
            ended_epochs.append(course.epoch)
            course.end_epoch()
            return None, tuple(ended_epochs)
        return make_batch(source, samples, self._collation, *begin), tuple(ended_epochs)

    def _rows(self) -> tuple[Batch, list[int]] | None:
        """Return a batch of samples that are read together, and the epochs that end in it; None: each is read by itself."""
        source, course = self._source, self.course
        if course.has_skips or not isinstance(source, OrderedDataSource):
            return None
        parts: list[Batch] = []
        ended: list[int] = []
        n_left = self._batch_size
        while n_left:
            start, stop = source.position, min(source.position + n_left, source.size)
            part = source.rows_at(np.arange(start, stop))
            if part is None:
                return None
            parts.append(part)
            source.go_to(stop)
            n_left -= stop - start
            if stop == source.size and not self._stop_exhausted:
                ended.append(course.epoch)
                course.end_epoch()
        whole = parts[0] if len(parts) == 1 else tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        return whole, ended


class Prefetcher:
    """A thread that reads batches when it is asked to. It ends when this object is dropped, and never delays the exit.

    Args:
        reader: The reader of samples.
    """

    def __init__(self, reader: Reader) -> None:
        requests: SimpleQueue[tuple[Mark, Future[Produced]] | None] = SimpleQueue()
        self.pid = os.getpid()
        self._requests = requests
        # A daemon, because a source that never returns must not keep the process from ending.
        self._thread = threading.Thread(target=_serve, args=(reader.read, requests), name="nn_core.data", daemon=True)
        self._thread.start()
        self._stop = weakref.finalize(self, requests.put, None)
        self._stop.atexit = False

    def request(self, mark: Mark) -> "Future[Produced]":
        """Start to read the batch after `mark`."""
        future: Future[Produced] = Future()
        self._requests.put((mark, future))
        return future

    def close(self) -> None:
        """Wait for the batch that is being read, and end the thread."""
        self._stop()
        if self.pid == os.getpid():
            self._thread.join()


def _serve(read: Callable[[Mark], Produced], requests: "SimpleQueue[tuple[Mark, Future[Produced]] | None]") -> None:
    while (request := requests.get()) is not None:
        mark, future = request
        try:
            future.set_result(read(mark))
        except BaseException as error:  # whatever it is, it belongs to the thread that waits for the batch
            future.set_exception(error)
        del request, mark, future  # an idle thread keeps no batch alive
