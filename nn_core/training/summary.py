"""Means and deviations of values that come one by one, with weights."""

import math
from collections.abc import Mapping

from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.engine.runtime.schemas import checked_state


@fitted_methods("add")
class Summary:
    """Weighted mean and standard deviation of a series, in float64 and in one pass.

    Reference: D. H. D. West (1979), Updating mean and variance estimates, Communications of the ACM 22(9).

    Example:
        >>> summary = Summary()
        >>> for value in (1e8, 1e8 + 1, 1e8 + 2):
        ...     summary.add(value)
        >>> round(summary.std, 6)
        0.816497
    """

    __slots__ = ("_squares", "mean", "weight")

    @fitted
    def __init__(self) -> None:
        self.weight = 0.0
        self.mean = math.nan
        self._squares = 0.0

    @property
    def std(self) -> float:
        """Standard deviation of the population; NaN of nothing."""
        return math.sqrt(self._squares / self.weight) if self.weight else math.nan

    def add(self, value: float, weight: float = 1.0) -> None:
        """Take in a value that counts `weight` times."""
        if weight <= 0.0:
            return
        if not self.weight:
            self.weight, self.mean = weight, float(value)
            return
        self.weight += weight
        difference = value - self.mean
        self.mean += difference * weight / self.weight
        self._squares += weight * difference * (value - self.mean)

    def merge(self, other: "Summary") -> None:
        """Take in everything that `other` has, such as that of another process."""
        if not other.weight:
            return
        if not self.weight:
            self.weight, self.mean, self._squares = other.weight, other.mean, other._squares
            return
        weight = self.weight + other.weight
        difference = other.mean - self.mean
        self._squares += other._squares + difference**2 * self.weight * other.weight / weight
        self.mean += difference * other.weight / weight
        self.weight = weight

    def get_state(self) -> list[float]:
        """Three numbers."""
        return [self.weight, self.mean, self._squares]

    @checked_state
    def set_state(self, state: list[float]) -> None:
        """Continue from what `get_state` gave."""
        self.weight, self.mean, self._squares = state


class Summaries:
    """A summary for each name."""

    def __init__(self) -> None:
        self._summaries: dict[str, Summary] = {}

    def add(self, name: str, value: float, weight: float = 1.0) -> None:
        """Take in a value of the series `name`."""
        summary = self._summaries.get(name)
        if summary is None:
            summary = self._summaries[name] = Summary()
        summary.add(value, weight)

    def means(self) -> dict[str, float]:
        """Return the mean of each series."""
        return {name: summary.mean for name, summary in self._summaries.items()}

    def clear(self) -> None:
        """Forget all series."""
        self._summaries.clear()

    def get_state(self) -> dict[str, list[float]]:
        """Return the state of each summary."""
        return {name: summary.get_state() for name, summary in self._summaries.items()}

    @checked_state
    def set_state(self, state: Mapping[str, list[float]]) -> None:
        """Continue from what `get_state` gave."""
        self.clear()
        for name, numbers in state.items():
            summary = self._summaries[name] = Summary()
            summary.set_state(numbers)
