"""Line search for the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5 and 3.6)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

Vector: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

#: The loss must fall by at least this part of what the slope promises,
_SUFFICIENT: Final = 1e-4
#: and the slope to this part of what it was.
_FLAT: Final = 0.9
_MOST_EVALUATIONS: Final = 25


@dataclass(frozen=True)
class Point:
    """Parameters as one vector, with the loss and its gradient there."""

    w: Vector
    loss: float
    grad: Vector

    @property
    def is_finite(self) -> bool:
        """Whether the loss and all elements of the gradient are finite."""
        return math.isfinite(self.loss) and bool(np.isfinite(self.grad).all())


@dataclass(frozen=True)
class _Trial:
    length: float
    point: Point
    slope: float


def search(evaluate: Callable[[Vector], Point], start: Point, direction: Vector, length: float) -> Point:
    """Return a point along `direction` that meets the strong Wolfe conditions.

    Args:
        evaluate: Gives the loss and its gradient at a point.
        start: Where the line begins.
        direction: One in which the loss falls.
        length: The first length to try, in units of the direction.

    Returns:
        The point; the best one tried, at worst `start`, where the conditions were not met within 25 evaluations.
    """
    return _Search(evaluate, start, direction).run(length)


class _Search:
    def __init__(self, evaluate: Callable[[Vector], Point], start: Point, direction: Vector) -> None:
        self._evaluate = evaluate
        self._direction = direction
        self._start = _Trial(0.0, start, float(start.grad @ direction))
        self._n_left = _MOST_EVALUATIONS

    def run(self, length: float) -> Point:
        previous = self._start
        while self._n_left:
            trial = self._try(length)
            if not trial.point.is_finite:
                length = (previous.length + trial.length) / 2
                continue
            if not self._falls(trial) or (previous.length and trial.point.loss >= previous.point.loss):
                return self._zoom(previous, trial).point
            if self._is_flat(trial):
                return trial.point
            if trial.slope >= 0:
                return self._zoom(trial, previous).point
            previous, length = trial, 2 * length
        return previous.point

    def _zoom(self, low: _Trial, high: _Trial) -> _Trial:
        """Narrow an interval whose end `low` is the best so far, and into which the loss falls from there."""
        while self._n_left and abs(high.length - low.length) * np.abs(self._direction).max() > 1e-12:
            trial = self._try(_between(low, high))
            if not trial.point.is_finite or not self._falls(trial) or trial.point.loss >= low.point.loss:
                high = trial
                continue
            if self._is_flat(trial):
                return trial
            if trial.slope * (high.length - low.length) >= 0:
                high = low
            low = trial
        return low

    def _try(self, length: float) -> _Trial:
        self._n_left -= 1
        point = self._evaluate(self._start.point.w + length * self._direction)
        return _Trial(length, point, float(point.grad @ self._direction))

    def _falls(self, trial: _Trial) -> bool:
        return trial.point.loss <= self._start.point.loss + _SUFFICIENT * trial.length * self._start.slope

    def _is_flat(self, trial: _Trial) -> bool:
        return abs(trial.slope) <= -_FLAT * self._start.slope


def _between(low: _Trial, high: _Trial) -> float:
    """Return the minimum of the cubic through two trials, kept off the ends of the interval; else its middle."""
    middle = (low.length + high.length) / 2
    width = high.length - low.length
    if not high.point.is_finite:
        return middle
    d = low.slope + high.slope - 3 * (low.point.loss - high.point.loss) / -width
    square = d * d - low.slope * high.slope
    if square < 0:
        return middle
    root = math.copysign(math.sqrt(square), width)
    divisor = high.slope - low.slope + 2 * root
    if not divisor:
        return middle
    found = high.length - width * (high.slope + root - d) / divisor
    ends = sorted((low.length + 0.1 * width, high.length - 0.1 * width))
    return min(max(found, ends[0]), ends[1]) if math.isfinite(found) else middle
