"""Samples that come one after another: generators, streams, and anything else that can be iterated over."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from nn_core.data.blocks import Blocks
from nn_core.data.source import OrderedDataSource, Sample
from nn_core.engine.error_messages.refusal import checked_count, described, fitted, fitted_methods
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.random import Rng

#: Makes the samples of an epoch anew each time; with an argument ``start``, those from that position on.
MakeSamples: TypeAlias = Callable[..., Iterable[Any]]


@fitted_methods()
class IterableDataSource(OrderedDataSource):
    """Samples of something that is iterated over, the same in each epoch.

    Samples are read forwards. To go back, or into the middle of an epoch where training is resumed, the iterable is made
    again, and what comes before is passed over: by the iterable itself when `make` has an argument ``start``, else by
    reading it. Worker processes read the whole iterable each, so a source that reads by index is better for them.

    Args:
        make: A function that gives the samples, such as a generator function, or an object that can be iterated over again and
            again. A sample is a tuple of values, or one value. A function with an argument ``start`` is told at which
            sample to begin.
        size: Number of samples; where there are more, or no end, these are the first ones. None: they are counted when the
            source is made, by reading them once.
        variables: Names of the values of a sample; None: x0, x1, ...
        shuffle: Mix a window of samples after another, for each epoch anew.
        rng: Generator of the orders; None: one with a fixed seed.
        window: Number of samples that are in memory and mixed by `shuffle`.

    Raises:
        ArgumentError: when `make` is neither a function nor can be iterated over again, or there is no sample.
        FileFormatError: at a sample, when the iterable has ended before `size`.

    Example:
        >>> from nn_core.data import IterableDataSource
        >>> def squares(start=0):
        ...     for number in range(start, 100):
        ...         yield number, number**2
        >>> source = IterableDataSource(squares, size=50, shuffle=True, window=10)
        >>> source.size, source.variables
        (50, ('x0', 'x1'))
    """

    @fitted
    def __init__(
        self,
        make: MakeSamples | Iterable[Any],
        size: int | None = None,
        variables: Sequence[str] | None = None,
        shuffle: bool = False,
        rng: Rng | None = None,
        window: int = 1000,
    ) -> None:
        self._make = make
        self._window = checked_count("IterableDataSource: window", window)
        self._starts_anywhere = callable(make) and "start" in inspect.signature(make).parameters
        self._samples: Iterator[Any] = iter(())
        self._next = -1
        self._block: tuple[int, list[Sample]] = (-1, [])
        first = next(iter(self._begin(0)), None)
        if first is None:
            raise ArgumentError("IterableDataSource: there must be at least one sample, got none")
        count = sum(1 for _ in self._begin(0)) if size is None else size
        names = tuple(f"x{number}" for number in range(len(_as_sample(first)))) if variables is None else tuple(variables)
        super().__init__(count, names, shuffle, rng)

    def blocks(self) -> Blocks:
        """Return windows of samples, one after another."""
        return Blocks(np.arange(self._size) // self._window, 1, in_order=True)

    def _begin(self, position: int) -> Iterator[Any]:
        """Return the samples from a position on."""
        make = self._make
        if not callable(make):
            samples = iter(make)
            if samples is make:
                raise ArgumentError(
                    f"IterableDataSource: make must give its samples again for each epoch, got {described(make)}\n"
                    "  hint: give the generator function itself, or a function that makes the iterator"
                )
        elif self._starts_anywhere:
            return iter(make(start=position))
        else:
            samples = iter(make())
        return islice(samples, position, None)

    def _sample(self, index: int) -> Sample:
        if not self._shuffle:
            return self._read(index)
        number = index // self._window
        if self._block[0] != number:
            first = number * self._window
            self._block = (-1, [])  # before the next one is read: no more are ever in memory
            stop = min(first + self._window, self._size)
            self._block = (number, [self._read(position) for position in range(first, stop)])
        return self._block[1][index - number * self._window]

    def _read(self, position: int) -> Sample:
        if position < self._next or self._next < 0:
            self._samples, self._next = self._begin(position), position
        try:
            while self._next <= position:
                sample = next(self._samples)
                self._next += 1
        except StopIteration as error:
            found, self._next = self._next, -1
            raise FileFormatError(f"IterableDataSource: there must be {self._size} samples, got {found}") from error
        except BaseException:
            self._next = -1  # a generator that has raised goes on no more
            raise
        return _as_sample(sample)

    def __getstate__(self) -> dict[str, Any]:
        """Without the iterator, which another thread or process makes for itself."""
        return {**self.__dict__, "_samples": iter(()), "_next": -1, "_block": (-1, [])}

    def close(self) -> None:
        """Give up the iterator."""
        self._samples, self._next, self._block = iter(()), -1, (-1, [])


def _as_sample(value: Any) -> Sample:
    return value if isinstance(value, tuple) else tuple(value) if isinstance(value, list) else (value,)
