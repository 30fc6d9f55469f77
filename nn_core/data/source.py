"""Data sources: samples by position, in an order that may be reshuffled for each epoch."""

import functools
import inspect
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.data.blocks import Blocks, arranged, fixed_blocks
from nn_core.engine.error_messages.refusal import checked_count, checked_flag, described, door, fitted_methods
from nn_core.engine.runtime.html import table
from nn_core.errors import ArgumentError
from nn_core.random import Rng, get_generator_state, set_generator_state

#: One sample: a value for each variable.
Sample: TypeAlias = tuple[Any, ...]

#: Several samples: an array for each variable.
Rows: TypeAlias = tuple["np.ndarray[Any, Any]", ...]

DEFAULT_SEED: Final = 313

_ZEROS: Final = np.zeros(4, np.uint64)
#: The state of a generator of the kind Philox from which nothing was drawn, but for its key.
_NEW_PHILOX: Final[Mapping[str, Any]] = {
    "bit_generator": "Philox",
    "buffer": _ZEROS,
    "buffer_pos": 4,
    "has_uint32": 0,
    "uinteger": 0,
}

#: The methods that read a single sample.
_READERS: Final = frozenset({"_sample", "_get_data", "next"})

#: The recorded state of a generator from which nothing is drawn.
_UNSHUFFLED: Final[Mapping[str, Any]] = {}


@fitted_methods("go_to", "next")
class DataSource:
    """Base class of data sources.

    A data source is a subclass that sets ``_size`` and ``_variables`` and defines ``_get_data(position)``. It may
    define ``reset()``, which starts an epoch, and has to call the one of this class there.

    Args:
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        NotImplementedError: by `next`, when a subclass does not define ``_get_data``.

    Example:
        >>> from nn_core.data import DataSource
        >>> class Squares(DataSource):
        ...     def __init__(self, n, shuffle=False, rng=None):
        ...         super().__init__(shuffle, rng)
        ...         self._size, self._variables = n, ("x", "y")
        ...         self.reset()
        ...
        ...     def reset(self):
        ...         self._indexes = self._rng.permutation(self._size) if self._shuffle else range(self._size)
        ...         super().reset()
        ...
        ...     def _get_data(self, position):
        ...         x = self._indexes[position]
        ...         return np.array([x]), np.array([x * x])
        >>> source = Squares(10)
        >>> _ = source.next(), source.next()
        >>> source.next()
        (array([2]), array([4]))
    """

    @door
    def __init__(self, shuffle: bool = False, rng: Rng | None = None) -> None:
        self._shuffle = checked_flag(f"{type(self).__name__}: shuffle", shuffle)
        self._rng = np.random.RandomState(DEFAULT_SEED) if rng is None else rng
        self._size = 0
        self._variables: Sequence[str] = ()
        self._position = 0
        self._order: Sequence[int] | None = None
        self._original_order: Sequence[int] | None = None

    def _get_data(self, position: int) -> Sample:
        """Return the sample at `position` of the present order."""
        raise NotImplementedError(f"{type(self).__name__}: a data source must define _get_data(position)")

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("samples", self.size), ("values", ", ".join(self.variables))]
        rows += [("shuffled", self.shuffle), ("given in this epoch", self.position)]
        rows += [("reads", type(inner).__name__) for inner in self.inner_sources]
        return table(("", "value"), rows, type(self).__name__)

    @property
    def variables(self) -> Sequence[str]:
        """Names of the values of a sample."""
        return self._variables

    @property
    def size(self) -> int:
        """Number of samples."""
        return self._size

    @property
    def position(self) -> int:
        """Number of samples of this epoch that were given."""
        return self._position

    @property
    def shuffle(self) -> bool:
        """Whether the samples are reshuffled for each epoch."""
        return self._shuffle

    @shuffle.setter
    def shuffle(self, shuffle: bool) -> None:
        self._shuffle = checked_flag(f"{type(self).__name__}: shuffle", shuffle)

    @property
    def order(self) -> Sequence[int] | None:
        """The indices of the samples in the order of this epoch; None when the source does not tell."""
        return self._order

    @property
    def rng(self) -> Rng:
        """The generator of the orders."""
        return self._rng

    @rng.setter
    def rng(self, rng: Rng) -> None:
        self._rng = rng

    @property
    def inner_sources(self) -> Sequence["DataSource"]:
        """The sources that this one reads from; an iterator keeps their orders with its own state."""
        return ()

    def go_to(self, position: int) -> None:
        """Let the sample at `position` of this epoch be the next one."""
        self._position = position

    def next(self) -> Sample:
        """Return the next sample of this epoch."""
        sample = self._get_data(self._position)
        self._position += 1
        return sample

    def reset(self) -> None:
        """Start an epoch."""
        self._position = 0

    def apply_order(self) -> None:
        """Return to the order of the first epoch."""
        self._order = self._original_order

    def close(self) -> None:
        """Give up what the source holds."""

    def __enter__(self) -> "DataSource":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@fitted_methods("rows_at")
class OrderedDataSource(DataSource):
    """A data source that keeps its order in ``_order``; subclasses define ``_sample(index)``.

    Attributes:
        before_draw: State of the generator before the present order was drawn; None while there is no order.
    """

    @door
    def __init__(self, size: int, variables: Sequence[str], shuffle: bool, rng: Rng | None) -> None:
        super().__init__(shuffle, rng)
        self._size = checked_count(f"{type(self).__name__}: the number of samples", size)
        self._variables = variables
        self.before_draw: Mapping[str, Any] | None = None

    def _sample(self, index: int) -> Sample:
        raise NotImplementedError(f"{type(self).__name__}: a data source must define _sample(index)")

    def _take_rows(self, indices: "np.ndarray[Any, Any]") -> Rows | None:
        """Return several samples as arrays with an axis of samples in front; None: each is read by itself."""
        return None

    @staticmethod
    def _rows_inside(source: DataSource, positions: "np.ndarray[Any, Any]") -> Rows | None:
        """Return the samples at positions of a source inside this one; None where each is to be read by itself."""
        return source.rows_at(positions) if isinstance(source, OrderedDataSource) else None

    def rows_at(self, positions: "np.ndarray[Any, Any]") -> Rows | None:
        """Return the samples at positions of the present order, as `_take_rows` does.

        None where each is to be read by itself, as those of a subclass that reads single samples in a way of its own.
        """
        # mypy takes classes for unhashable
        if not _takes_rows(type(self)) or _READERS & vars(self).keys():  # type: ignore[arg-type]
            return None
        if self._order is None:
            self._draw()
        assert self._order is not None
        return self._take_rows(_picked(self._order, positions))

    def blocks(self) -> Blocks | None:
        """Return samples by index that are read together; None: each is read by itself.

        A source around another one, which it reads by its own indices, has those of the other, if that one keeps its order.
        """
        inner = self.inner_sources
        return fixed_blocks(inner[0]) if len(inner) == 1 and inner[0].size == self._size else None

    def blocks_of_positions(self) -> Blocks | None:
        """`blocks` by the positions of the present order."""
        blocks = self.blocks()
        return blocks if blocks is None or self._order is None else blocks.at(np.asarray(self._order))

    def _get_data(self, position: int) -> Sample:
        if self._order is None:
            self._draw()
        assert self._order is not None
        return self._sample(self._order[position])

    def reset(self) -> None:
        """Start an epoch."""
        self._draw()
        super().reset()

    def draw_from(self, before: Mapping[str, Any] | None) -> None:
        """Draw the order that was drawn when the generator had the state `before`; None: forget the order."""
        if before is None:
            self._order = self.before_draw = None
            return
        if before:
            set_generator_state(self._rng, before)
        self._draw()
        self.before_draw = before

    def _draw(self) -> None:
        drawn = self._is_drawn()
        self.before_draw = get_generator_state(self._rng) if drawn else _UNSHUFFLED
        self._order = _compact(self._drawn()) if drawn else range(self._size)
        if self._original_order is None:
            self._original_order = self._order

    def _is_drawn(self) -> bool:
        return self._shuffle

    def _drawn(self) -> "np.ndarray[Any, Any]":
        return arranged(self._rng.permutation(self._size), self.blocks())


@functools.cache
def _takes_rows(source: type) -> bool:
    """Return whether no class below the one that reads several samples at once reads single ones in another way."""

    def depth(name: str) -> int:
        return next(depth for depth, kind in enumerate(source.__mro__) if name in vars(kind))

    return depth("_take_rows") <= min(map(depth, _READERS))


def _picked(order: Sequence[int], positions: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    if isinstance(order, range):
        return order.start + order.step * positions
    if isinstance(order, array):
        return np.frombuffer(order, np.int64)[positions]
    return np.array([order[position] for position in positions])


def _compact(order: "np.ndarray[Any, Any]") -> Sequence[int]:
    """Return an order whose elements are plain numbers, in a quarter of the memory of a list of them."""
    return array("q", np.ascontiguousarray(order, np.int64).tobytes())


class SimpleDataSource(OrderedDataSource):
    """Samples from a function.

    Args:
        load_func: ``load_func(index)`` gives a sample, a tuple of values.
        num_examples: Number of samples.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        ArgumentError: when `load_func` is no function, or there is no sample.

    Example:
        >>> source = SimpleDataSource(lambda i: (np.full(3, i), i), 10)
        >>> source.size, source.variables
        (10, ('x0', 'x1'))
        >>> source.next()
        (array([0, 0, 0]), 0)
    """

    @door
    def __init__(
        self,
        load_func: Callable[[int], Any],
        num_examples: int,
        shuffle: bool = False,
        rng: Rng | None = None,
    ) -> None:
        if not callable(load_func):
            raise ArgumentError(f"SimpleDataSource: load_func must be a function of an index, got {described(load_func)}")
        super().__init__(num_examples, (), shuffle, rng)
        self._load = load_func

    @property
    def variables(self) -> Sequence[str]:
        """Names of the values of a sample: x0, x1, ..."""
        if not self._variables:
            before = get_generator_state(self._rng)  # asking for names must not change what is drawn afterwards
            self._variables = tuple(f"x{number}" for number in range(len(self._sample(0))))
            set_generator_state(self._rng, before)
        return self._variables

    def _sample(self, index: int) -> Sample:
        sample = self._load(index)
        return sample if isinstance(sample, tuple) else tuple(sample) if isinstance(sample, list) else (sample,)


@fitted_methods()
class SlicedDataSource(OrderedDataSource):
    """A part of a source.

    Args:
        data_source: The source.
        shuffle: Reshuffle the part for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
        slice_start: First position of the part. Default: 0.
        slice_end: Position after the part. Default: the size of the source.

    Raises:
        ArgumentError: when the part is empty, or goes beyond the source.

    Example:
        >>> from nn_core.data import SimpleDataSource
        >>> part = SlicedDataSource(SimpleDataSource(lambda i: i, 10), slice_start=8)
        >>> part.size, part.next(), part.next()
        (2, (8,), (9,))
    """

    @door
    def __init__(
        self,
        data_source: DataSource,
        shuffle: bool = False,
        rng: Rng | None = None,
        slice_start: int | None = None,
        slice_end: int | None = None,
    ) -> None:
        start = 0 if slice_start is None else slice_start
        end = data_source.size if slice_end is None else slice_end
        if not 0 <= start < end <= data_source.size:
            raise ArgumentError(
                f"SlicedDataSource: slice_start and slice_end must lie in order within {data_source.size} samples, "
                f"got {start} and {end}"
            )
        super().__init__(end - start, data_source.variables, shuffle, rng)
        self._source = data_source
        self._start = start

    def blocks(self) -> Blocks | None:
        """Those of the part."""
        blocks = fixed_blocks(self._source)
        return None if blocks is None else blocks.at(slice(self._start, self._start + self._size))

    @property
    def inner_sources(self) -> Sequence[DataSource]:
        """The source."""
        return (self._source,)

    def _sample(self, index: int) -> Sample:
        return self._source._get_data(self._start + index)

    def _take_rows(self, indices: "np.ndarray[Any, Any]") -> Rows | None:
        return self._rows_inside(self._source, self._start + indices)


@fitted_methods()
class DataSourceWithMemoryCache(OrderedDataSource):
    """A source whose samples are kept in memory once they were read.

    Args:
        data_source: The source.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Example:
        >>> from nn_core.data import SimpleDataSource
        >>> reads = []
        >>> source = DataSourceWithMemoryCache(SimpleDataSource(lambda i: reads.append(i) or i, 2))
        >>> for epoch in range(3):
        ...     source.reset()
        ...     samples = [source.next(), source.next()]
        >>> samples, reads
        ([(0,), (1,)], [0, 0, 1])
    """

    @door
    def __init__(self, data_source: DataSource, shuffle: bool = False, rng: Rng | None = None) -> None:
        super().__init__(data_source.size, data_source.variables, shuffle, rng)
        self._source = data_source
        self._cache: dict[int, Sample] = {}

    @property
    def inner_sources(self) -> Sequence[DataSource]:
        """The source."""
        return (self._source,)

    def _sample(self, index: int) -> Sample:
        sample = self._cache.get(index)
        if sample is None:
            sample = self._cache[index] = self._source._get_data(index)
        return sample

    def _take_rows(self, indices: "np.ndarray[Any, Any]") -> Rows | None:
        return self._rows_inside(self._source, indices)  # they are in memory: there is nothing to keep

    def close(self) -> None:
        """Give up the samples and close the source."""
        self._cache.clear()
        self._source.close()


@fitted_methods()
class TransformedDataSource(OrderedDataSource):
    """The samples of a source, each changed by a function that may draw random numbers: augmentation.

    The generator that the function gets depends on the epoch and the sample alone. So what it draws stays the same when
    training is resumed in the middle of an epoch, and whichever thread calls it.

    Args:
        data_source: The source.
        transform: ``transform(rng, *sample)`` gives the changed sample, a tuple; `rng` is a ``numpy.random.Generator``.
        variables: Names of the values of the changed sample; None: those of the source.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders and of what the transformation draws; None: one with a fixed seed.

    Example:
        >>> from nn_core.data import SimpleDataSource
        >>> source = SimpleDataSource(lambda i: (np.arange(3.0), i), 10)
        >>> flipped = TransformedDataSource(source, lambda rng, x, y: (x[::-1] if rng.random() < 0.5 else x, y))
        >>> flipped.reset()
        >>> sorted(flipped.next()[0].tolist())
        [0.0, 1.0, 2.0]
    """

    @door
    def __init__(
        self,
        data_source: DataSource,
        transform: Callable[..., Sample],
        variables: Sequence[str] | None = None,
        shuffle: bool = False,
        rng: Rng | None = None,
    ) -> None:
        super().__init__(data_source.size, data_source.variables if variables is None else variables, shuffle, rng)
        _require_takes(transform, data_source.variables)
        self._source = data_source
        self._transform = transform
        self._key = 0
        self._generator: np.random.Generator | None = None

    @property
    def inner_sources(self) -> Sequence[DataSource]:
        """The source."""
        return (self._source,)

    def reset(self) -> None:
        """Start an epoch, with other numbers."""
        self._key = int.from_bytes(self._rng.bytes(8), "little")
        super().reset()

    def _sample(self, index: int) -> Sample:
        values = self._source._get_data(index)
        sample = self._transform(self._generator_of(index), *values)
        return sample if isinstance(sample, tuple) else (sample,)

    def _generator_of(self, index: int) -> np.random.Generator:
        """Return the generator of a sample: always the same object, whose state takes a seventh of the time of a new one."""
        generator = self._generator
        if generator is None:
            generator = self._generator = np.random.Generator(np.random.Philox(0))
        key = np.array([self._key, index], np.uint64)
        generator.bit_generator.state = {**_NEW_PHILOX, "state": {"counter": _ZEROS, "key": key}}
        return generator

    def close(self) -> None:
        """Close the source."""
        self._source.close()


def _require_takes(transform: Callable[..., Sample], variables: Sequence[str]) -> None:
    """Refuse a function that cannot be called with a generator and the values of a sample."""
    try:
        inspect.signature(transform).bind(None, *variables)
    except ValueError:  # a function of C without a signature
        return
    except TypeError as error:
        wanted = ", ".join(("rng", *variables))
        got = f"{described(transform)} ({error})"
        raise ArgumentError(f"TransformedDataSource: transform must be a function ({wanted}), got {got}") from error
