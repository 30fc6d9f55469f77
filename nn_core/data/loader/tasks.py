"""The tasks of workers: what to read, and the code that reads it."""

import copy
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from nn_core.data.source import DataSource, Sample
from nn_core.data.source_cursor import Course, Mark
from nn_core.engine.dispatch.supplied import plugin_of
from nn_core.engine.error_messages.foreign_values import values_of
from nn_core.engine.error_messages.refusal import described
from nn_core.engine.graph.failure import attach_note
from nn_core.errors import ArgumentError, ShapeError
from nn_core.typing import Shape

#: An array for each variable, with an axis of samples in front.
Batch: TypeAlias = tuple[np.ndarray[Any, Any], ...]
#: ``f(rng, *arrays)`` gives the changed arrays of a batch; `rng` is a ``numpy.random.Generator``.
BatchTransform: TypeAlias = Callable[..., Any]
#: The padding of values that are smaller than others of their batch: a number, or one for each of some variables.
Padding: TypeAlias = float | Mapping[str, float]
#: Makes arrays of the given shapes and dtypes.
Allocate: TypeAlias = Callable[[Sequence[tuple[Shape, np.dtype[Any]]]], list[np.ndarray[Any, Any]]]

#: In place of the number of a sample: the source does not tell it, or the worker makes a batch of samples.
UNKNOWN, BATCH = -1, -2
#: Set apart from the keys of `TransformedDataSource`, whose first word is drawn at random.
_BATCH_KEY: Final = 0x6E6E5F62617463


class Collation(NamedTuple):
    """How samples become a batch.

    Attributes:
        transform: Changes each batch; None: nothing does.
        padding: Fills values up to the largest shape of a batch; None: they must have one shape.
    """

    transform: BatchTransform | None = None
    padding: Padding | None = None


#: Samples become a batch as they are.
PLAIN: Final = Collation()


class BatchRange(NamedTuple):
    """Samples of one epoch.

    Attributes:
        key: Number of `mark`; a worker that knows the key needs no mark.
        mark: A place in the epoch.
        first: Position of the first sample.
        stop: Position after the last one.
        skipped: Positions in between that are left out.
    """

    key: int
    mark: Mark | None
    first: int
    stop: int
    skipped: tuple[int, ...] = ()

    def positions(self) -> Iterator[int]:
        """Positions of the samples to read."""
        return (position for position in range(self.first, self.stop) if position not in self.skipped)


class Task(NamedTuple):
    """A batch to be read.

    Attributes:
        epoch: The epoch in which it begins.
        position: The position at which it begins.
        parts: Its samples.
    """

    epoch: int
    position: int
    parts: tuple[BatchRange, ...]


class SampleError(Exception):
    """Reading a sample failed; the cause says why. Carries the place of the sample."""

    def __init__(self, epoch: int, position: int) -> None:
        super().__init__(epoch, position)
        self.place = (epoch, position)


class BatchError(Exception):
    """The transformation of a batch failed; the cause says why. Carries the place of the batch."""

    def __init__(self, epoch: int, position: int) -> None:
        super().__init__(epoch, position)
        self.place = (epoch, position)


class Watch(Protocol):
    """Is told what a worker is doing; see `nn_core.data.loader.sample_watch`."""

    def begin(self, epoch: int, position: int, sample: int) -> None:
        """Take note of a sample, or of the batch that is made of samples."""

    def end(self) -> None:
        """Take note that nothing is being done."""


class TaskReader:
    """Reads tasks from a source of its own, in any order.

    Args:
        source: The source; nobody else reads from it.
        collation: How samples become a batch.
        watch: Is told what is being read; None: nobody is.
    """

    #: Marks that are kept; tasks come in order, and a batch may end one epoch and begin another.
    N_MARKS: Final = 8

    def __init__(self, source: DataSource, collation: Collation, watch: Watch | None = None) -> None:
        self._source = source
        self._collation = collation
        self._watch = watch
        self._course = Course(source)
        self._marks: dict[int, Mark] = {}
        self._key: int | None = None

    def read(self, task: Task, allocate: Allocate | None = None) -> Batch:
        """Return the batch of a task.

        Args:
            task: The task.
            allocate: Makes the arrays of the batch; None: NumPy does.

        Raises:
            SampleError: when the source fails.
            ShapeError: when the samples do not fit together.
            BatchError: when the transformation of the batch fails.
        """
        watch = self._watch
        try:
            samples = [sample for part in task.parts for sample in self._samples(part)]
            if watch is not None:
                watch.begin(task.epoch, task.position, BATCH)
            return make_batch(self._source, samples, self._collation, task.epoch, task.position, allocate)
        finally:
            if watch is not None:
                watch.end()

    def _samples(self, part: BatchRange) -> Iterator[Sample]:
        if part.mark is not None:
            self._marks[part.key] = part.mark
            for old in [key for key in self._marks if key <= part.key - self.N_MARKS]:
                del self._marks[old]
        mark = self._marks[part.key]
        if self._key != part.key:
            self._key = None  # until the source is at the mark
            self._course.forget_place()
            self._course.go_to(mark)
            self._key = part.key
        source, watch = self._source, self._watch
        for position in part.positions():
            source.go_to(position)
            if watch is not None:
                order = source.order
                watch.begin(mark.epoch, position, UNKNOWN if order is None else int(order[position]))
            yield read_sample(source, mark.epoch)


def _owner(source: DataSource) -> str:
    """Return the plugin that a source, or one that it reads from, comes from; empty where there is none."""
    found = plugin_of(type(source)._get_data)
    return found or next(filter(None, map(_owner, source.inner_sources)), "")


def _require_values(source: DataSource, sample: Any) -> None:
    if not isinstance(sample, (tuple, list, np.ndarray)) or not len(sample):
        owner = _owner(source)
        where = f"of plugin {owner!r} " if owner else ""
        raise ArgumentError(f"{type(source).__name__}: a sample {where}must be a tuple of its values, got {described(sample)}")


def read_sample(source: DataSource, epoch: int) -> Sample:
    """Return the sample at the position of `source`.

    Raises:
        SampleError: when the source raises an exception, which is the cause, with a note that names the sample.
    """
    position = source.position
    try:
        sample = source.next()
        _require_values(source, sample)
        return sample
    except Exception as error:
        if isinstance(error, StopIteration):  # would read as the end of the data
            error = RuntimeError("a data source must not raise StopIteration for a sample")
        order = source.order
        number = f"sample {order[position]}" if order is not None else "the sample"
        attach_note(error, f"nn_core: in DataIterator, reading {number} at position {position} of epoch {epoch}")
        raise SampleError(epoch, position) from error


def make_batch(
    source: DataSource,
    samples: Sequence[Sample],
    collation: Collation,
    epoch: int,
    position: int,
    allocate: Allocate | None = None,
) -> Batch:
    """Return samples as arrays, filled up and changed as `collation` says.

    The generator that the transformation gets depends on the place of the batch alone.

    Raises:
        ShapeError: when the values of a variable have different shapes, and are not filled up.
        BatchError: when the transformation raises an exception, which is the cause, with a note that names the batch.
    """
    # All samples of an epoch's end may be passed over: no columns then.
    columns = [_column(source, number, column, collation.padding) for number, column in enumerate(zip(*samples, strict=True))]
    if collation.transform is None:
        return _stacked(columns, allocate)
    arrays = transformed(_stacked(columns, None), collation, epoch, position)
    if allocate is None:
        return arrays
    targets = allocate([(array.shape, array.dtype) for array in arrays])
    for target, array in zip(targets, arrays, strict=True):
        target[...] = array
    return tuple(targets)


def transformed(arrays: Batch, collation: Collation, epoch: int, position: int) -> Batch:
    """Return a batch as the transformation of `collation` changes it.

    Raises:
        BatchError: when it raises an exception, which is the cause, with a note that names the batch.
    """
    transform = collation.transform
    if transform is None:
        return arrays
    rng = np.random.Generator(np.random.Philox(key=np.array([_BATCH_KEY, (epoch << 32) + position], np.uint64)))
    try:
        changed = transform(rng, *arrays)
        return tuple([values_of(array) for array in (changed if isinstance(changed, (tuple, list)) else (changed,))])
    except Exception as error:
        if isinstance(error, StopIteration):  # would read as the end of the data
            error = RuntimeError("a transformation must not raise StopIteration")
        attach_note(error, f"nn_core: in DataIterator, transforming the batch at position {position} of epoch {epoch}")
        raise BatchError(epoch, position) from error


def seed_global_generators(task: Task) -> None:
    """Let what careless code draws from the generators of the process depend on the place of the batch alone."""
    seed = zlib.crc32(f"{task.epoch}/{task.position}".encode())
    np.random.seed(seed)  # the generator that such code uses
    random.seed(seed)


def own_copy(source: DataSource) -> DataSource:
    """Return a copy of a source with orders and generators of its own, over the same samples, for another thread."""
    return _copied(source, {})


def _copied(value: Any, known: dict[int, Any]) -> Any:
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, DataSource):
        twin = known[id(value)] = copy.copy(value)
        for name, member in list(vars(twin).items()):  # not of `value`: open files are left out of copies
            setattr(twin, name, _copied(member, known))
        return twin
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return known.setdefault(id(value), copy.deepcopy(value))
    if isinstance(value, (list, tuple)) and any(isinstance(member, DataSource) for member in value):
        return type(value)([_copied(member, known) for member in value])
    return value


def _column(source: DataSource, number: int, values: Sequence[Any], padding: Padding | None) -> list[np.ndarray[Any, Any]]:
    arrays = [values_of(value) for value in values]
    shapes = {array.shape for array in arrays}
    if len(shapes) == 1:
        return arrays
    given = ", ".join(str(shape) for shape in sorted(shapes))
    name = source.variables[number]
    filling = padding.get(name) if isinstance(padding, Mapping) else padding
    if filling is None:
        raise ShapeError(f"DataIterator: the values of {name} must have one shape in a batch, got {given}")
    if len({len(shape) for shape in shapes}) > 1:
        raise ShapeError(f"DataIterator: the values of {name} must have as many axes to be filled up, got {given}")
    return [_filled(array, tuple(map(max, *shapes)), filling) for array in arrays]


def _filled(array: np.ndarray[Any, Any], shape: tuple[int, ...], filling: float) -> np.ndarray[Any, Any]:
    whole = np.full(shape, filling, array.dtype)
    whole[tuple(map(slice, array.shape))] = array
    return whole


def _stacked(columns: Sequence[list[np.ndarray[Any, Any]]], allocate: Allocate | None) -> Batch:
    if allocate is None:
        return tuple(np.stack(column) for column in columns)
    wanted = [((len(column), *column[0].shape), np.result_type(*{array.dtype for array in column})) for column in columns]
    targets = allocate(wanted)
    for column, target in zip(columns, targets, strict=True):
        np.stack(column, out=target)
    return tuple(targets)
