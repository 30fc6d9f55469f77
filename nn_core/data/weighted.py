"""Samples that are drawn with weights, for classes of different sizes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_core.data.source import DataSource, OrderedDataSource, Rows, Sample
from nn_core.engine.error_messages.refusal import described, door
from nn_core.errors import ArgumentError
from nn_core.random import Rng


class WeightedDataSource(OrderedDataSource):
    """Samples of a source, drawn anew for each epoch with replacement: how often one comes is in proportion to its weight.

    Args:
        data_source: The source, which must keep its order.
        weights: A number of at least 0 for each of its samples.
        size: Number of samples of an epoch. Default: the size of the source.
        rng: Generator of the draws; None: one with a fixed seed.

    Raises:
        ArgumentError: when there is not one weight for each sample, a weight is negative or not finite, all are 0, or the
            source is shuffled.

    Example:
        >>> from nn_core.data import ArrayDataSource
        >>> t = np.array([0, 0, 0, 0, 0, 0, 0, 1])  # one sample in eight is of class 1
        >>> source = WeightedDataSource(ArrayDataSource({"t": t}), 1 / np.bincount(t)[t], size=1000)
        >>> drawn = [int(source.next()[0]) for _ in range(1000)]
        >>> bool(450 < sum(drawn) < 550)
        True
    """

    @door
    def __init__(
        self,
        data_source: DataSource,
        weights: "Sequence[float] | np.ndarray[Any, Any]",
        size: int | None = None,
        rng: Rng | None = None,
    ) -> None:
        if not isinstance(data_source, DataSource):
            raise ArgumentError(f"WeightedDataSource: data_source must be a data source, got {described(data_source)}")
        if data_source.shuffle:
            raise ArgumentError("WeightedDataSource: data_source must keep its order, got one that is shuffled")
        super().__init__(data_source.size if size is None else size, data_source.variables, True, rng)
        self._source = data_source
        self._chances = _chances(weights, data_source.size)

    def _is_drawn(self) -> bool:
        return True

    def _drawn(self) -> "np.ndarray[Any, Any]":
        return self._rng.choice(len(self._chances), self._size, p=self._chances)

    def _sample(self, index: int) -> Sample:
        return self._source._get_data(index)

    def _take_rows(self, indices: "np.ndarray[Any, Any]") -> Rows | None:
        return self._rows_inside(self._source, indices)

    @property
    def inner_sources(self) -> Sequence[DataSource]:
        """The source."""
        return (self._source,)


def _chances(weights: Any, size: int) -> "np.ndarray[Any, Any]":
    try:
        found = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"WeightedDataSource: weights must be numbers, got {described(weights)}") from None
    if found.shape != (size,):
        raise ArgumentError(f"WeightedDataSource: weights must have shape ({size},), one for each sample, got {found.shape}")
    wrong = found[~(np.isfinite(found) & (found >= 0))]
    if wrong.size:
        raise ArgumentError(f"WeightedDataSource: weights must be finite and at least 0, got {wrong[0]:g}")
    if not found.any():
        raise ArgumentError("WeightedDataSource: a weight must be above 0, got zeros alone")
    found = found / found.max()  # else the sum of large ones is no number
    return np.asarray(found / found.sum())
