"""Parts of a source: for training and validation, or for validation in turns."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nn_core.data.blocks import Blocks, fixed_blocks
from nn_core.data.source import DataSource, OrderedDataSource, Rows, Sample
from nn_core.engine.error_messages.refusal import door, fitted, fitted_methods
from nn_core.errors import ArgumentError
from nn_core.random import Rng


@fitted_methods()
class ChosenDataSource(OrderedDataSource):
    """Some samples of a source.

    Args:
        data_source: The source.
        positions: Which samples of its present order, in this order.
        shuffle: Reshuffle them for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        ArgumentError: when there is no position, or one that the source does not have.

    Example:
        >>> from nn_core.data import SimpleDataSource
        >>> source = ChosenDataSource(SimpleDataSource(lambda i: i * i, 10), [3, 0])
        >>> source.size, source.next(), source.next()
        (2, (9,), (0,))
    """

    @door
    def __init__(
        self, data_source: DataSource, positions: Sequence[int], shuffle: bool = False, rng: Rng | None = None
    ) -> None:
        chosen = [int(position) for position in positions]
        if not chosen or min(chosen) < 0 or max(chosen) >= data_source.size:
            raise ArgumentError(
                f"ChosenDataSource: positions must be some of {data_source.size}, got {len(chosen)} "
                + (f"from {min(chosen)} to {max(chosen)}" if chosen else "")
            )
        super().__init__(len(chosen), data_source.variables, shuffle, rng)
        self._source = data_source
        self._positions = np.array(chosen, np.int64)

    def _sample(self, index: int) -> Sample:
        return self._source._get_data(int(self._positions[index]))

    def _take_rows(self, indices: "np.ndarray[Any, Any]") -> Rows | None:
        return self._rows_inside(self._source, self._positions[indices])

    def blocks(self) -> Blocks | None:
        """Those of the chosen samples."""
        blocks = fixed_blocks(self._source)
        return None if blocks is None else blocks.at(self._positions)

    @property
    def inner_sources(self) -> Sequence[DataSource]:
        """The source."""
        return (self._source,)


@fitted
def split(source: DataSource, *fractions: float, seed: int | None = 0) -> list[ChosenDataSource]:
    """Divide the samples of a source.

    Args:
        source: The source.
        *fractions: The share of each part but the last, which gets what is left.
        seed: Of the order in which samples are dealt out; None: they stay in their order.

    Returns:
        The parts, which have each sample once. They read `source`, which is not to be read by others.

    Raises:
        ArgumentError: when the fractions are not positive or leave nothing, or a part would be empty.

    Example:
        >>> from nn_core.data import SimpleDataSource
        >>> train, valid = split(SimpleDataSource(lambda i: (i,), 10), 0.8)
        >>> train.size, valid.size
        (8, 2)
    """
    are_numbers = bool(fractions) and all(isinstance(share, (int, float)) for share in fractions)
    if not are_numbers or min(fractions) <= 0 or sum(fractions) >= 1:
        raise ArgumentError(f"split: fractions must be positive and leave something for the last part, got {fractions}")
    order = _dealt(source.size, seed)
    ends = [0, *[round(source.size * share) for share in np.cumsum(fractions)], source.size]
    if any(end <= start for start, end in pairwise(ends)):
        raise ArgumentError(f"split: each part must have a sample of {source.size}, got the fractions {fractions}")
    return [ChosenDataSource(source, order[start:end]) for start, end in pairwise(ends)]


@fitted
def folds(source: DataSource, n: int, seed: int | None = 0) -> list[tuple[ChosenDataSource, ChosenDataSource]]:
    """Divide the samples of a source for cross-validation.

    Args:
        source: The source.
        n: Number of folds.
        seed: Of the order in which samples are dealt out; None: they stay in their order.

    Returns:
        For each fold the samples to train with, and those to validate with; each sample validates in one fold. All read
        `source`, which is not to be read by others.

    Raises:
        ArgumentError: when there are less than two folds, or less samples than folds.

    Example:
        >>> from nn_core.data import SimpleDataSource
        >>> [(train.size, valid.size) for train, valid in folds(SimpleDataSource(lambda i: (i,), 10), 4)]
        [(7, 3), (7, 3), (8, 2), (8, 2)]
    """
    if not 2 <= n <= source.size:
        raise ArgumentError(f"folds: n must be from 2 to the {source.size} samples of the source, got {n}")
    order = _dealt(source.size, seed)
    starts = [number * (source.size // n) + min(number, source.size % n) for number in range(n + 1)]
    return [
        (ChosenDataSource(source, order[:start] + order[end:]), ChosenDataSource(source, order[start:end]))
        for start, end in pairwise(starts)
    ]


def _dealt(size: int, seed: int | None) -> list[int]:
    return list(range(size)) if seed is None else np.random.default_rng(seed).permutation(size).tolist()
