"""Data sources: samples by position, in an order that may be drawn anew for each epoch."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.errors import ArgumentError

#: One sample: a value for each variable.
Sample: TypeAlias = tuple[Any, ...]

#: Generators of orders.
Rng: TypeAlias = np.random.RandomState | np.random.Generator

DEFAULT_SEED: Final = 313


class DataSource:
    """Base class of data sources.

    A data source is a subclass that sets ``_size`` and ``_variables`` and defines ``_get_data(position)``. It may
    define ``reset()``, which starts an epoch, and has to call the one of this class there::

        class Squares(DataSource):
            def __init__(self, n, shuffle=False, rng=None):
                super().__init__(shuffle, rng)
                self._size, self._variables = n, ("x", "y")
                self.reset()

            def reset(self):
                self._indexes = self._rng.permutation(self._size) if self._shuffle else range(self._size)
                super().reset()

            def _get_data(self, position):
                x = self._indexes[position]
                return np.array([x]), np.array([x * x])

    Args:
        shuffle: Draw the order anew for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
    """

    def __init__(self, shuffle: bool = False, rng: Rng | None = None) -> None:
        self._shuffle = shuffle
        self._rng = np.random.RandomState(DEFAULT_SEED) if rng is None else rng
        self._size = 0
        self._variables: Sequence[str] = ()
        self._position = 0
        self._order: Sequence[int] | None = None
        self._original_order: Sequence[int] | None = None

    def _get_data(self, position: int) -> Sample:
        """The sample at `position` of the present order."""
        raise NotImplementedError(f"{type(self).__name__}: a data source must define _get_data(position)")

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
        """How many samples of this epoch were given."""
        return self._position

    @property
    def shuffle(self) -> bool:
        """Whether the order is drawn anew for each epoch."""
        return self._shuffle

    @property
    def order(self) -> Sequence[int] | None:
        """Which samples stand at the positions of this epoch; None when the source does not tell."""
        return self._order

    def next(self) -> Sample:
        """The next sample of this epoch."""
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


class OrderedDataSource(DataSource):
    """A data source that keeps its order in ``_order``; subclasses define ``_sample(index)``."""

    def __init__(self, size: int, variables: Sequence[str], shuffle: bool, rng: Rng | None) -> None:
        super().__init__(shuffle, rng)
        if size < 1:
            raise ArgumentError(f"{type(self).__name__}: there must be at least one sample, got {size}")
        self._size = size
        self._variables = variables

    def _sample(self, index: int) -> Sample:
        raise NotImplementedError(f"{type(self).__name__}: a data source must define _sample(index)")

    def _get_data(self, position: int) -> Sample:
        if self._order is None:
            self._draw()
        assert self._order is not None
        return self._sample(self._order[position])

    def reset(self) -> None:
        """Start an epoch."""
        self._draw()
        super().reset()

    def _draw(self) -> None:
        self._order = self._rng.permutation(self._size).tolist() if self._shuffle else range(self._size)
        if self._original_order is None:
            self._original_order = self._order


class SimpleDataSource(OrderedDataSource):
    """Samples from a function.

    Args:
        load_func: ``load_func(index)`` gives a sample, a tuple of values.
        num_examples: Number of samples.
        shuffle: Draw the order anew for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
    """

    def __init__(
        self,
        load_func: Callable[[int], Any],
        num_examples: int,
        shuffle: bool = False,
        rng: Rng | None = None,
    ) -> None:
        super().__init__(num_examples, (), shuffle, rng)
        self._load = load_func

    @property
    def variables(self) -> Sequence[str]:
        """Names of the values of a sample: x0, x1, ..."""
        if not self._variables:
            self._variables = tuple(f"x{number}" for number in range(len(self._sample(0))))
        return self._variables

    def _sample(self, index: int) -> Sample:
        sample = self._load(index)
        return sample if isinstance(sample, tuple) else tuple(sample) if isinstance(sample, list) else (sample,)


class ConcatDataSource(OrderedDataSource):
    """The samples of several sources, one after another.

    Args:
        data_source_list: The sources; they have the same variables.
        shuffle: Draw the order anew for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
    """

    def __init__(
        self,
        data_source_list: Sequence[DataSource],
        shuffle: bool = True,
        rng: Rng | None = None,
    ) -> None:
        if not data_source_list:
            raise ArgumentError("ConcatDataSource: there must be at least one source, got none")
        variables = [tuple(source.variables) for source in data_source_list]
        if len(set(variables)) > 1:
            raise ArgumentError(f"ConcatDataSource: the sources must have the same variables, got {variables}")
        self._sources = list(data_source_list)
        self._ends = list(accumulate(source.size for source in self._sources))
        super().__init__(self._ends[-1], variables[0], shuffle, rng)

    def _sample(self, index: int) -> Sample:
        number = bisect_right(self._ends, index)
        return self._sources[number]._get_data(index - (self._ends[number - 1] if number else 0))

    def reset(self) -> None:
        """Start an epoch, of all sources."""
        for source in self._sources:
            source.reset()
        super().reset()

    def close(self) -> None:
        """Close all sources."""
        for source in self._sources:
            source.close()


class SlicedDataSource(OrderedDataSource):
    """A part of a source.

    Args:
        data_source: The source.
        shuffle: Draw the order within the part anew for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
        slice_start: First position of the part. Default: 0.
        slice_end: Position after the part. Default: the size of the source.
    """

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

    def _sample(self, index: int) -> Sample:
        return self._source._get_data(self._start + index)


class DataSourceWithMemoryCache(OrderedDataSource):
    """A source whose samples are kept in memory once they were read.

    Args:
        data_source: The source.
        shuffle: Draw the order anew for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
    """

    def __init__(self, data_source: DataSource, shuffle: bool = False, rng: Rng | None = None) -> None:
        super().__init__(data_source.size, data_source.variables, shuffle, rng)
        self._source = data_source
        self._cache: dict[int, Sample] = {}

    def _sample(self, index: int) -> Sample:
        sample = self._cache.get(index)
        if sample is None:
            sample = self._cache[index] = self._source._get_data(index)
        return sample

    def close(self) -> None:
        """Give up the samples and close the source."""
        self._cache.clear()
        self._source.close()
