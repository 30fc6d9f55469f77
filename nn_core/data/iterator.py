"""Iterators over batches of samples."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, TypeAlias

from nn_core.data.file_cache import DataSourceWithFileCache
from nn_core.data.loader.parallel import ParallelReader
from nn_core.data.loader.reading import Prefetcher, Produced, Reader
from nn_core.data.loader.tasks import Batch, BatchTransform, Collation, Padding
from nn_core.data.loader.workers import Pool, ProcessPool, ThreadPool
from nn_core.data.source import (
    DataSource,
    SlicedDataSource,
)
from nn_core.data.source_cursor import Mark
from nn_core.engine.error_messages.refusal import checked_count, described, door, fitted_methods
from nn_core.engine.error_messages.whole import takes_whole_numbers
from nn_core.engine.runtime.html import table
from nn_core.engine.runtime.schemas import checked_state_without
from nn_core.errors import ArgumentError
from nn_core.logger import logger
from nn_core.random import Rng

#: Called with the number of an epoch.
Callback: TypeAlias = Callable[[int], object]

_POOLS: Final[Mapping[str, Callable[[DataSource, Collation, int, float | None], Pool]]] = {
    "thread": ThreadPool,
    "process": ProcessPool,
}


@fitted_methods("next")
class DataIterator:
    """Batches of the samples of a source, for ever or to the end of an epoch.

    The samples of an epoch that are left over at its end fill a batch together with the first ones of the next epoch,
    unless `stop_exhausted` is set.

    Args:
        data_source: The source.
        batch_size: Number of samples in a batch.
        rng: Generator for slices of this iterator.
        use_thread: Make the next batch in the background while the present one is used.
        epoch_begin_callbacks: Called with the number of an epoch when it begins, except for the first.
        epoch_end_callbacks: Called with the number of an epoch when it ends.
        stop_exhausted: Raise StopIteration at the end of an epoch, leaving out an incomplete batch; the next call
            starts another epoch.
        workers: Number of workers that read batches at the same time; 0: none, see `use_thread`. The batches are the same
            and in the same order, if what the source draws while it reads a sample depends on the sample alone
            (`TransformedDataSource`).
        worker_type: "thread", for sources that read files or compute outside of Python, or "process", for others. Processes
            get a pickled copy of the source.
        transform: ``transform(rng, *arrays)`` gives the changed arrays of a batch, a tuple; `rng` depends on the place of the
            batch alone. It runs where the batch is read.
        skip_errors: Pass over samples that cannot be read, log each, and count them in `skipped`, in place of raising what
            the source raised. An epoch in which none can be read raises the last error. What is wrong with
            a batch, whose samples do not fit together or whose transformation fails, is raised in any case.
        padding: Fills values with fewer elements on an axis up to the largest shape of the batch: a number, or numbers by the
            names of variables. None: the values of a variable must have one shape.
        timeout: Seconds that workers may take for a sample, or for making a batch of samples. What takes longer is given up,
            as something that cannot be read; another worker takes the place. None: any time.

    Attributes:
        skipped: Number of samples that were passed over by `skip_errors`.

    Example:
        >>> import numpy as np
        >>> from nn_core.data import data_iterator_simple
        >>> iterator = data_iterator_simple(lambda i: (np.array([i]), i * i), num_examples=4, batch_size=2)
        >>> x, y = iterator.next()
        >>> x.shape, y.tolist()
        ((2, 1), [0, 1])
        >>> iterator.close()
    """

    @door
    def __init__(
        self,
        data_source: DataSource,
        batch_size: int,
        rng: Rng | None = None,
        use_thread: bool = True,
        epoch_begin_callbacks: Sequence[Callback] = (),
        epoch_end_callbacks: Sequence[Callback] = (),
        stop_exhausted: bool = False,
        workers: int = 0,
        worker_type: str = "thread",
        transform: BatchTransform | None = None,
        skip_errors: bool = False,
        padding: Padding | None = None,
        timeout: float | None = None,
    ) -> None:
        batch_size = checked_count("DataIterator: batch_size", batch_size)
        if workers < 0 or worker_type not in _POOLS:
            raise ArgumentError(
                f"DataIterator: workers must be at least 0 and worker_type one of {', '.join(_POOLS)}, "
                f"got {workers} and {worker_type!r}"
            )
        if timeout is not None and not (workers and timeout > 0):
            raise ArgumentError(
                f"DataIterator: timeout must be positive, together with workers, got {timeout} and {workers} workers"
            )
        self._source = data_source
        self._batch_size = batch_size
        self._rng = rng
        self._use_thread = use_thread and not workers
        self._stop_exhausted = stop_exhausted
        self._options: dict[str, Any] = {
            "workers": workers,
            "worker_type": worker_type,
            "transform": transform,
            "skip_errors": skip_errors,
            "padding": padding,
            "timeout": timeout,
        }
        self._skip_errors = skip_errors
        self.skipped = 0
        self._begin_callbacks = list(epoch_begin_callbacks)
        self._end_callbacks = list(epoch_end_callbacks)
        self._closed = False
        self._reader: Reader | ParallelReader
        collation = Collation(transform, padding)
        if workers:
            make_pool = partial(_POOLS[worker_type], data_source, collation, workers, timeout)
            # One batch in the hands of each worker, and another one that waits for it.
            self._reader = ParallelReader(data_source, batch_size, stop_exhausted, make_pool, 2 * workers)
        else:
            self._reader = Reader(data_source, batch_size, stop_exhausted, collation)
        #: the place after the last batch that was given; the reader may be ahead of it
        self._mark = self._reader.course.mark()
        self._prefetcher: Prefetcher | None = None
        self._ahead: tuple[Mark, Future[Produced]] | None = None
        self._announced: tuple[int, int] | None = None
        self._calls: deque[tuple[Callback, int]] = deque()

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("samples", self.size), ("values", ", ".join(self.variables))]
        rows += [("batch size", self.batch_size), ("epoch", self.epoch), ("given in this epoch", self.position)]
        return table(("", "value"), rows, f"{type(self).__name__} of {type(self._source).__name__}")

    @property
    def size(self) -> int:
        """Number of samples of an epoch."""
        return self._source.size

    @property
    def batch_size(self) -> int:
        """Number of samples in a batch."""
        return self._batch_size

    @property
    def variables(self) -> Sequence[str]:
        """Names of the arrays of a batch."""
        return self._source.variables

    @property
    def epoch(self) -> int:
        """Number of epochs that have ended."""
        return self._mark.epoch

    @property
    def position(self) -> int:
        """Number of samples of this epoch that were given."""
        return self._mark.position

    def next(self) -> Batch:
        """Return the next batch.

        Raises:
            StopIteration: at the end of an epoch, with `stop_exhausted`.
            ArgumentError: when the iterator was closed.
            ShapeError: when the samples of the batch have different shapes; the batch is passed over then.
            Exception: what the source raised for a sample, with a note that names it. It is raised once: the sample is
                passed over then, and the next call gives the others. So is a batch whose transformation fails.
        """
        self._require_open("a batch must be taken")
        produced = self._read()
        while produced.error is not None:
            self._pass_over(produced)
            produced = self._read()
        self._announce(produced)
        if self._use_thread:
            self._request(produced.mark)
        # Last, because an interrupt before it leaves the batch to be given by the next call.
        self._mark = produced.mark
        if produced.batch is None:
            raise StopIteration
        return produced.batch

    def get_state(self) -> dict[str, Any]:
        """Return the position as plain values: states of generators at the start of the epoch and now, number of samples.

        What a thread has read ahead does not count.
        """
        return {"size": self.size, **self._mark.as_state()}

    @door
    @checked_state_without("drawn")  # of each source a state or None, whatever it is at present
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on after the batch after which `get_state` was called; no sample is read again.

        Sources whose order is drawn by ``reset()`` from the generator that they were made with, as all of nn_core are,
        draw the order of the epoch again.

        Args:
            state: The result of `get_state`, for an iterator over the same data.

        Raises:
            ArgumentError: when the data have another size, or generators of another kind. Nothing is changed then.
        """
        self._require_open("the state must be set")
        if not isinstance(state, Mapping) or "size" not in state:
            raise ArgumentError(f"DataIterator.set_state: state must be what get_state() returned, got {described(state)}")
        if state["size"] != self.size:
            raise ArgumentError(f"DataIterator.set_state: the data must have {state['size']} samples, got {self.size}")
        self._mark = self._reader.course.mark_of(state)
        self._announced = None
        self._calls.clear()

    def register_epoch_begin_callback(self, callback: Callback) -> None:
        """Call `callback(epoch)` when an epoch begins."""
        self._begin_callbacks.append(callback)

    def register_epoch_end_callback(self, callback: Callback) -> None:
        """Call `callback(epoch)` when an epoch ends."""
        self._end_callbacks.append(callback)

    @door
    @takes_whole_numbers
    def slice(
        self,
        rng: Rng | None,
        num_of_slices: int | None = None,
        slice_pos: int | None = None,
        slice_start: int | None = None,
        slice_end: int | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        use_cache: bool = False,
        drop_last: bool = False,
    ) -> "DataIterator":
        """Return an iterator over a part of the samples: one of several processes takes each part.

        Args:
            rng: Generator of the orders within the part; None: that of this iterator.
            num_of_slices: Number of parts of equal size.
            slice_pos: Number of the part, from 0.
            slice_start: First sample of the part, in place of `num_of_slices`.
            slice_end: Sample after the part.
            cache_dir: Folder for the samples of the part, with `use_cache`.
            use_cache: Keep the samples in files.
            drop_last: Leave out samples that do not go evenly into the parts; if not, neighbouring parts overlap.

        Raises:
            ArgumentError: when neither `num_of_slices` and `slice_pos` nor the ends are given, or they do not fit.
        """
        start, end = _slice_ends(self.size, num_of_slices, slice_pos, slice_start, slice_end, drop_last)
        generator = self._rng if rng is None else rng
        source: DataSource = SlicedDataSource(self._source, self._source.shuffle, generator, start, end)
        if use_cache:
            source = DataSourceWithFileCache(source, cache_dir, shuffle=self._source.shuffle, rng=generator)
        return DataIterator(
            source,
            self._batch_size,
            generator,
            self._use_thread,
            stop_exhausted=self._stop_exhausted,
            **self._options,
        )

    def close(self) -> None:
        """Stop working in the background, and close the source."""
        if self._closed:
            return
        self._closed = True
        self._ahead = None
        if self._prefetcher is not None:
            self._prefetcher.close()
        if isinstance(self._reader, ParallelReader):
            self._reader.close()
        self._source.close()

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        return self.next()

    def __enter__(self) -> "DataIterator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> Produced:
        return self._read_ahead() if self._use_thread else self._reader.read(self._mark)

    def _pass_over(self, produced: Produced) -> None:
        """Go on after a sample that cannot be read; raise why, unless such samples are to be skipped."""
        assert produced.error is not None
        self._mark = produced.mark
        if not self._skip_errors or produced.is_dropped or len(produced.mark.skipped) >= self.size:
            raise produced.error
        self.skipped += 1
        notes = " ".join(getattr(produced.error, "__notes__", ())[:1])
        logger.warning("DataIterator: a sample was skipped: %s (%s)", produced.error, notes)

    def _read_ahead(self) -> Produced:
        """Return the batch after the mark, which the thread has read or is reading."""
        if self._prefetcher is None or self._prefetcher.pid != os.getpid():
            # A forked child has no such thread; a new one returns to the mark, whatever the parent's was doing.
            assert isinstance(self._reader, Reader)
            if self._prefetcher is not None:
                self._reader.forget_place()
            self._prefetcher = Prefetcher(self._reader)
            self._ahead = None
        if self._ahead is None or self._ahead[0] is not self._mark:
            self._request(self._mark)
        assert self._ahead is not None
        future = self._ahead[1]
        try:
            return future.result()
        except BaseException:
            if future.done():  # the thread failed, as by SystemExit: it reads from the mark again
                self._ahead = None
            raise

    def _request(self, mark: Mark) -> None:
        assert self._prefetcher is not None
        self._ahead = (mark, self._prefetcher.request(mark))

    def _announce(self, produced: Produced) -> None:
        """Call the callbacks of the epochs that ended, each once even when one raises and the batch is taken again."""
        if not produced.ended:
            return
        place = (produced.mark.epoch, produced.mark.position)
        if place != self._announced:
            self._announced = place
            for epoch in produced.ended:
                self._calls.extend((callback, epoch) for callback in self._end_callbacks)
                self._calls.extend((callback, epoch + 1) for callback in self._begin_callbacks)
        while self._calls:
            callback, epoch = self._calls.popleft()
            callback(epoch)

    def _require_open(self, what: str) -> None:
        if self._closed:
            raise ArgumentError(f"DataIterator: {what} before close(), got one after it")


def _slice_ends(
    size: int,
    num_of_slices: int | None,
    slice_pos: int | None,
    slice_start: int | None,
    slice_end: int | None,
    drop_last: bool,
) -> tuple[int, int]:
    if num_of_slices is not None and slice_pos is not None:
        if not 0 <= slice_pos < num_of_slices <= size:
            raise ArgumentError(
                f"slice: slice_pos must be one of num_of_slices parts of {size} samples, got {slice_pos} of {num_of_slices}"
            )
        length = size // num_of_slices if drop_last else -(-size // num_of_slices)
        start = min(slice_pos * length, size - length)
        return start, start + length
    if slice_start is None or slice_end is None:
        raise ArgumentError(
            "slice: num_of_slices and slice_pos, or slice_start and slice_end must be given, "
            f"got {num_of_slices}, {slice_pos}, {slice_start}, {slice_end}"
        )
    return slice_start, slice_end
