"""Metrics over a whole data set, from the predictions of its batches."""

import math
from typing import Any

import numpy as np

from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.errors import ArgumentError, ShapeError
from nn_core.variable import Variable

Array = np.ndarray[Any, Any]


@fitted_methods("take")
class Metric:
    """Base class: a subclass defines ``reset()``, ``take(y, t)`` and ``results()``.

    Args:
        y: Predictions. Shape (N, C) of scores of classes, or as the class says.
        t: Truth. Shape (N, 1) of labels, or as the class says.

    Example:
        >>> from nn_core.training import Metric
        >>> class LargestError(Metric):
        ...     def reset(self):
        ...         self.largest = 0.0
        ...     def take(self, y, t):
        ...         self.largest = max(self.largest, float(np.abs(y - t).max()))
        ...     def results(self):
        ...         return {"": self.largest}
        >>> y, t = nn.Variable.from_numpy_array([[1.0], [2.0]]), nn.Variable.from_numpy_array([[1.5], [4.0]])
        >>> error = LargestError(y, t)
        >>> error.update()
        >>> error.results()
        {'': 2.0}
    """

    @fitted
    def __init__(self, y: Variable, t: Variable) -> None:
        self.variables = (y, t)
        self.reset()

    def reset(self) -> None:
        """Forget what was taken in."""
        raise NotImplementedError

    def take(self, y: Array, t: Array) -> None:
        """Take in a batch."""
        raise NotImplementedError

    def results(self) -> dict[str, float]:
        """Return the values, by what is put after the name of the metric; "" for a single one."""
        raise NotImplementedError

    def update(self) -> None:
        """Take in the values that the Variables have now."""
        y, t = self.variables
        self.take(y.d, t.d)


@fitted_methods("take")
class Accuracy(Metric):
    """Share of samples whose label is among the `top` classes of the highest scores.

    Equal scores count for the class with the smaller number.

    Args:
        y: Scores. Shape (N, C).
        t: Labels from 0 to C - 1. Shape (N,) or (N, 1).
        top: Number of classes that count.

    Raises:
        ArgumentError: when `top` is less than 1; by `update`, when a label is not from 0 to C - 1.
        ShapeError: by `update`, when the shapes are other ones.

    Example:
        >>> from nn_core.training import Accuracy
        >>> y = nn.Variable.from_numpy_array([[0.1, 0.9], [0.8, 0.2]])
        >>> accuracy = Accuracy(y, nn.Variable.from_numpy_array([[1], [1]]))
        >>> accuracy.update()
        >>> accuracy.results()
        {'': 0.5}
    """

    @fitted
    def __init__(self, y: Variable, t: Variable, top: int = 1) -> None:
        if top < 1:
            raise ArgumentError(f"Accuracy: top must be at least 1, got {top}")
        self._top = top
        super().__init__(y, t)

    def reset(self) -> None:
        self._right = self._count = 0

    def take(self, y: Array, t: Array) -> None:
        labels = _labels("Accuracy", y, t)
        score = np.take_along_axis(y, labels[:, None], axis=1)
        before = np.arange(y.shape[1]) < labels[:, None]
        rank = (y > score).sum(axis=1) + ((y == score) & before).sum(axis=1)
        # A score that is NaN is not among the highest.
        self._right += int(((rank < self._top) & ~np.isnan(score[:, 0])).sum())
        self._count += len(labels)

    def results(self) -> dict[str, float]:
        return {"": self._right / self._count if self._count else math.nan}


@fitted_methods("take")
class Confusion(Metric):
    """Counts of samples by their label and the class of the highest score; precision, recall and F1, mean over classes.

    A class that nobody predicted has precision 0, one that does not occur is left out of the means.

    Attributes:
        counts: Shape (classes, classes); rows are labels, columns predictions.

    Raises:
        ArgumentError: by `update`, when a label is not from 0 to C - 1.
        ShapeError: by `update`, when `y` does not have the shape (N, C), or `t` not N labels.

    Example:
        >>> from nn_core.training import Confusion
        >>> y = nn.Variable.from_numpy_array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])
        >>> confusion = Confusion(y, nn.Variable.from_numpy_array([[1], [1], [0]]))
        >>> confusion.update()
        >>> confusion.counts.tolist()
        [[0, 1], [1, 1]]
    """

    def reset(self) -> None:
        classes = self.variables[0].shape[1]
        self.counts = np.zeros((classes, classes), np.int64)

    def take(self, y: Array, t: Array) -> None:
        np.add.at(self.counts, (_labels("Confusion", y, t), y.argmax(axis=1)), 1)

    def results(self) -> dict[str, float]:
        right = np.diag(self.counts).astype(np.float64)
        predicted, actual = self.counts.sum(axis=0), self.counts.sum(axis=1)
        occurs = actual > 0
        if not occurs.any():
            return dict.fromkeys(("/precision", "/recall", "/f1"), math.nan)
        precision = right / np.maximum(predicted, 1)
        recall = right / np.maximum(actual, 1)
        f1 = 2 * right / np.maximum(predicted + actual, 1)
        values = {"/precision": precision, "/recall": recall, "/f1": f1}
        return {name: float(value[occurs].mean()) for name, value in values.items()}


@fitted_methods("take")
class RegressionErrors(Metric):
    """Mean absolute error, root of the mean squared error, and R2; `y` and `t` have one shape.

    Raises:
        ShapeError: by `update`, when the shapes differ.

    Example:
        >>> from nn_core.training import RegressionErrors
        >>> y, t = nn.Variable.from_numpy_array([[1.0], [2.0]]), nn.Variable.from_numpy_array([[1.0], [4.0]])
        >>> errors = RegressionErrors(y, t)
        >>> errors.update()
        >>> {name: round(value, 3) for name, value in errors.results().items()}
        {'/mae': 1.0, '/rmse': 1.414, '/r2': 0.111}
    """

    def reset(self) -> None:
        self._count = 0
        self._absolute = self._squared = self._mean = self._spread = 0.0

    def take(self, y: Array, t: Array) -> None:
        if y.shape != t.shape:
            raise ShapeError(f"RegressionErrors: y and t must have one shape, got {y.shape} and {t.shape}")
        truth = t.astype(np.float64).ravel()
        error = y.astype(np.float64).ravel() - truth
        self._absolute += float(np.abs(error).sum())
        self._squared += float((error * error).sum())
        if not truth.size:
            return
        count = self._count + truth.size
        difference = float(truth.mean()) - self._mean
        self._spread += float(((truth - truth.mean()) ** 2).sum()) + difference**2 * self._count * truth.size / count
        self._mean += difference * truth.size / count
        self._count = count

    def results(self) -> dict[str, float]:
        if not self._count:
            return dict.fromkeys(("/mae", "/rmse", "/r2"), math.nan)
        r2 = 1.0 - self._squared / self._spread if self._spread else math.nan
        return {"/mae": self._absolute / self._count, "/rmse": math.sqrt(self._squared / self._count), "/r2": r2}


def _labels(metric: str, y: Array, t: Array) -> Array:
    if y.ndim != 2 or t.size != len(y):
        raise ShapeError(f"{metric}: y must have the shape (N, C) and t N labels, got {y.shape} and {t.shape}")
    labels = t.reshape(-1).astype(np.int64)
    if labels.size and not (labels.min() >= 0 and labels.max() < y.shape[1]):
        raise ArgumentError(f"{metric}: labels must be from 0 to {y.shape[1] - 1}, got {labels.min()} to {labels.max()}")
    return labels
