"""Metrics by name, areas under curves, and functions of a program as metrics."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.engine.error_messages.refusal import described, fitted, fitted_methods
from nn_core.errors import ArgumentError, ShapeError
from nn_core.training.metrics import Accuracy, Array, Confusion, Metric, RegressionErrors
from nn_core.variable import Variable

#: The name of a metric, such as "auc", or a function of all predictions and targets that returns a number.
MetricLike: TypeAlias = str | Callable[[Array, Array], float]


@fitted_methods("take")
class FunctionMetric(Metric):
    """A function of all predictions and all targets.

    Args:
        y: Predictions. Shape (N, ...).
        t: Targets. Shape (N, ...).
        function: ``function(y, t)`` of arrays, which returns a number.

    Example:
        >>> from nn_core.training import FunctionMetric
        >>> y, t = nn.Variable.from_numpy_array([[1.0], [2.0]]), nn.Variable.from_numpy_array([[1.5], [4.0]])
        >>> largest = FunctionMetric(y, t, lambda y, t: np.abs(y - t).max())
        >>> largest.update()
        >>> largest.results()
        {'': 2.0}
    """

    @fitted
    def __init__(self, y: Variable, t: Variable, function: Callable[[Array, Array], float]) -> None:
        self._function = function
        super().__init__(y, t)

    def reset(self) -> None:
        self._taken: list[tuple[Array, Array]] = []

    def take(self, y: Array, t: Array) -> None:
        self._taken.append((np.array(y), np.array(t)))

    def results(self) -> dict[str, float]:
        if not self._taken:
            return {"": math.nan}
        y, t = (np.concatenate(parts) for parts in zip(*self._taken, strict=True))
        return {"": float(self._function(y, t))}


class AreaUnderCurve(FunctionMetric):
    """Area under the curve of true and false positives (ROC AUC): how often a sample of a class scores above one of another.

    Of two classes it is that of the second one; of more, the mean over the classes, each against all others by the
    probabilities of the softmax. Equal scores count half. A class that does not occur, or occurs alone, is left out of the
    mean.

    Args:
        y: Scores. Shape (N, C).
        t: Labels from 0 to C - 1. Shape (N,) or (N, 1).

    Raises:
        ShapeError: by `results`, when the shapes are other ones.

    References:
        Hanley and McNeil (1982), The meaning and use of the area under a receiver operating characteristic curve.

    Example:
        >>> from nn_core.training import AreaUnderCurve
        >>> y = nn.Variable.from_numpy_array([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]])
        >>> area = AreaUnderCurve(y, nn.Variable.from_numpy_array([[0], [0], [1], [1]]))
        >>> area.update()
        >>> area.results()
        {'': 0.75}
    """

    @fitted
    def __init__(self, y: Variable, t: Variable) -> None:
        super().__init__(y, t, _area)


class _Part(Metric):
    """One of the values of another metric."""

    def __init__(self, whole: Metric, key: str) -> None:
        self._whole, self._key = whole, key
        super().__init__(*whole.variables)

    def reset(self) -> None:
        self._whole.reset()

    def take(self, y: Array, t: Array) -> None:
        self._whole.take(y, t)

    def results(self) -> dict[str, float]:
        return {"": self._whole.results()[self._key]}


#: Metrics by task and name.
_NAMED: Final[Mapping[str, Mapping[str, Callable[[Variable, Variable], Metric]]]] = {
    "classification": {
        "accuracy": Accuracy,
        "auc": AreaUnderCurve,
        **{key: lambda y, t, key=key: _Part(Confusion(y, t), f"/{key}") for key in ("precision", "recall", "f1")},  # type: ignore[misc]
    },
    "regression": {key: lambda y, t, key=key: _Part(RegressionErrors(y, t), f"/{key}") for key in ("mae", "rmse", "r2")},  # type: ignore[misc]
}
_TOP: Final = re.compile(r"top_?(\d+)")


def checked_metrics(task: str, given: Sequence[MetricLike] | Mapping[str, MetricLike]) -> dict[str, MetricLike]:
    """Return metrics by the names under which they are reported.

    Raises:
        ArgumentError: when one is neither a name of the task nor a function, or two have one name.
    """
    if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)):
        raise ArgumentError(f"fit: metrics must be a list of names and functions, or some by name, got {described(given)}")
    pairs = list(given.items()) if isinstance(given, Mapping) else [(_name_of(metric), metric) for metric in given]
    names = [name for name, _ in pairs]
    for name, metric in pairs:
        if not callable(metric) and not _is_name(task, metric):
            known = ", ".join([*_NAMED[task], *(["top5"] if task == "classification" else [])])
            raise ArgumentError(f"fit: metrics must be functions or names for {task} ({known}), got {described(metric)}")
        if names.count(name) > 1:
            raise ArgumentError(f"fit: metrics must have different names, got {name!r} twice\n  hint: metrics={{'mine': ...}}")
    return dict(pairs)


def _is_name(task: str, metric: object) -> bool:
    """Return whether `metric` is the name of a metric of a task."""
    is_top = isinstance(metric, str) and task == "classification" and _TOP.fullmatch(metric)
    return bool(is_top) or (isinstance(metric, str) and metric in _NAMED[task])


def metric_of(task: str, given: MetricLike, y: Variable, t: Variable) -> Metric:
    """Return a metric of predictions and targets, by its name or from a function."""
    if not isinstance(given, str):
        return FunctionMetric(y, t, given)
    top = _TOP.fullmatch(given)
    return Accuracy(y, t, int(top.group(1))) if top else _NAMED[task][given](y, t)


def _name_of(metric: Any) -> str:
    return metric if isinstance(metric, str) else str(getattr(metric, "__name__", type(metric).__name__))


def _area(y: Array, t: Array) -> float:
    if y.ndim != 2 or t.size != len(y) or y.shape[1] < 2:
        raise ShapeError(f"AreaUnderCurve: y must have the shape (N, C) and t N labels, got {y.shape} and {t.shape}")
    labels = t.reshape(-1)
    if y.shape[1] == 2:
        return _area_of_one(y[:, 1].astype(np.float64) - y[:, 0], labels == 1)
    powers = np.exp(y.astype(np.float64) - y.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    areas = [_area_of_one(probabilities[:, label], labels == label) for label in range(y.shape[1])]
    known = [area for area in areas if not math.isnan(area)]
    return float(np.mean(known)) if known else math.nan


def _area_of_one(scores: Array, is_positive: Array) -> float:
    """Return the area by the ranks of the positive samples; equal scores share their mean rank."""
    n_positive = int(is_positive.sum())
    n_negative = len(scores) - n_positive
    if not n_positive or not n_negative or np.isnan(scores).any():
        return math.nan
    _, group, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[group]
    return float((ranks[is_positive].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))
