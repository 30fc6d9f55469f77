"""Read the batches of a source: one after another, or ahead of the reader in a thread."""

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nn_core.data.course import Course, Mark
from nn_core.data.source import DataSource, Sample
from nn_core.errors import ShapeError
from nn_core.graph.failure import attach_note

#: An array for each variable, with an axis of samples in front.
Batch: TypeAlias = tuple[np.ndarray[Any, Any], ...]


class Produced(NamedTuple):
    """The outcome of reading a batch.

    Attributes:
        batch: The batch; None at the end of the data, or when reading failed.
        mark: The place after it.
        ended: The epochs that ended in it.
        error: Why there is no batch.
    """

    batch: Batch | None
    mark: Mark
    ended: tuple[int, ...] = ()
    error: Exception | None = None


class _SampleError(Exception):
    """Reading a sample failed; carries the place to go on from."""

    def __init__(self, epoch: int, position: int) -> None:
        super().__init__()
        self.place = (epoch, position)


class Reader:
    """Makes batches from any place on the course of a source.

    Args:
        source: The source.
        batch_size: Number of samples in a batch.
        stop_exhausted: Leave out incomplete batches at the end of an epoch.
    """

    def __init__(self, source: DataSource, batch_size: int, stop_exhausted: bool) -> None:
        self.course = Course(source)
        self._source = source
        self._batch_size = batch_size
        self._stop_exhausted = stop_exhausted
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
        except _SampleError as failure:
            error = failure.__cause__
            assert isinstance(error, Exception)
            epoch, position = failure.place
            order = self._source.order
            sample = f"sample {order[position]}" if order is not None else "the sample"
            attach_note(error, f"nn_core: in DataIterator, reading {sample} at position {position} of epoch {epoch}")
            return Produced(None, mark.without(epoch, position), (), error)
        except ShapeError as error:
            return Produced(None, self.course.mark(), (), error)  # the samples do not fit together: drop the batch
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
        samples: list[Sample] = []
        ended_epochs: list[int] = []
        while len(samples) < self._batch_size:
            if course.is_skipped():
                source.go_to(source.position + 1)
            else:
                samples.append(self._sample())
            if source.position >= source.size:
                if self._stop_exhausted:
                    break
                ended_epochs.append(course.epoch)
                course.end_epoch()
        if len(samples) < self._batch_size:  # samples were passed over, and too few are left for a batch
            ended_epochs.append(course.epoch)
            course.end_epoch()
            return None, tuple(ended_epochs)
        return _stacked(source, samples), tuple(ended_epochs)

    def _sample(self) -> Sample:
        epoch, position = self.course.epoch, self._source.position
        try:
            return self._source.next()
        except Exception as error:
            if isinstance(error, StopIteration):  # would read as the end of the data
                error = RuntimeError("a data source must not raise StopIteration for a sample")
            raise _SampleError(epoch, position) from error


class Prefetcher:
    """A thread that reads batches when it is asked to. It ends when this object is dropped, and never delays the exit.

    Args:
        reader: What reads.
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


def _serve(
    read: Callable[[Mark], Produced], requests: "SimpleQueue[tuple[Mark, Future[Produced]] | None]"
) -> None:
    while (request := requests.get()) is not None:
        mark, future = request
        try:
            future.set_result(read(mark))
        except BaseException as error:  # whatever it is, it belongs to the thread that waits for the batch
            future.set_exception(error)
        del request, mark, future  # an idle thread keeps no batch alive


def _stacked(source: DataSource, samples: Sequence[Sample]) -> Batch:
    batch = []
    for number, column in enumerate(zip(*samples, strict=True)):
        arrays = [np.asarray(value) for value in column]
        if any(array.shape != arrays[0].shape for array in arrays):
            shapes = ", ".join(str(shape) for shape in sorted({array.shape for array in arrays}))
            name = source.variables[number]
            raise ShapeError(f"DataIterator: the values of {name} must have one shape in a batch, got {shapes}")
        batch.append(np.stack(arrays))
    return tuple(batch)
