"""Losses and metrics of the tasks of `fit`, and its data as arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core import functions as F
from nn_core.engine.error_messages.foreign_values import ENCODING_OF_COLUMNS, is_of_columns, values_of
from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError, ShapeError
from nn_core.training.extensions.evaluator import Output
from nn_core.training.fit_data import matched, require_labels, require_no_rows, require_no_softmax, require_scores
from nn_core.training.metrics import Accuracy, Array, Confusion, RegressionErrors
from nn_core.training.named_metrics import MetricLike, checked_metrics, metric_of
from nn_core.training.samples import Samples, lengths_of, packed, parts
from nn_core.variable import Variable

#: Inputs and targets, with an axis of samples in front of both; or batches of them.
Arrays: TypeAlias = Any
#: ``loss(y, t)`` of predictions and targets, each a Variable or a tuple of several.
Loss: TypeAlias = Callable[[Any, Any], Variable]
#: One Variable or several.
Variables: TypeAlias = Variable | tuple[Variable, ...]
_TASKS: Final = ("classification", "regression")
_SEVERAL_INPUTS: Final = "((a, b), t) gives a network two arrays; a tuple of arrays stands for several, a list for one"
_NAMES_OF_CLASSES: Final = "names, t = np.unique(t, return_inverse=True) counts the classes"
#: Functions by the names that losses have elsewhere.
_LOSSES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("mse", "mean_squared_error", "l2"), "squared_error"),
    **dict.fromkeys(("mae", "mean_absolute_error", "l1"), "absolute_error"),
    **dict.fromkeys(("huber", "huber_loss", "smooth_l1"), "huber_loss"),
    **dict.fromkeys(("cross_entropy", "sparse_categorical_crossentropy"), "softmax_cross_entropy"),
    **dict.fromkeys(("bce", "binary_crossentropy", "binary_cross_entropy"), "sigmoid_cross_entropy"),
}


class Objective:
    """The loss of a task, and what is reported beside it.

    Args:
        task: "classification" or "regression".
        loss: ``loss(y, t)`` instead of that of the task; values of several elements are averaged.
        class_weight: A weight for each class, in their order.
        metrics: Names and functions instead of the metrics of the task.
    """

    def __init__(
        self,
        task: str,
        loss: Loss | None = None,
        class_weight: Sequence[float] | None = None,
        metrics: Sequence[MetricLike] | Mapping[str, MetricLike] | None = None,
    ) -> None:
        if task not in _TASKS:
            raise ArgumentError(f"fit: task must be one of {', '.join(_TASKS)}, got {task!r}")
        if loss is not None and not callable(loss):
            hint = f"\n  hint: loss=F.{_LOSSES[loss.lower()]}" if isinstance(loss, str) and loss.lower() in _LOSSES else ""
            raise ArgumentError(f"fit: loss must be a function of predictions and targets, got {described(loss)}{hint}")
        if class_weight is not None and (task != "classification" or loss is not None):
            raise ArgumentError("fit: class_weight must go with the loss of classification, got another loss or task")
        self.task = task
        self._loss = loss
        self._weights = None if class_weight is None else checked_weights("class_weight", class_weight)
        self._metrics = None if metrics is None else checked_metrics(task, metrics)
        #: The largest label so far; -1 where targets need not be labels, or are not known yet.
        self._largest = -1

    def loss(self, y: Variables, t: Variables, w: Variable | None = None) -> Variable:
        """Return the loss of predictions, of one element; `w` has a weight for each sample."""
        return self._loss_of(y, self._checked(y, t), w)

    def _loss_of(self, y: Variables, t: Variables, w: Variable | None = None) -> Variable:
        """Return the loss for targets that were checked."""
        if self._loss is not None:
            return _mean(self._loss(y, t), w)
        if isinstance(y, tuple) or isinstance(t, tuple):
            given = f"{_number(y)} outputs and {_number(t)} arrays of targets"
            raise ArgumentError(
                f"fit: loss must be given where a network has several outputs or targets, got none for {given}\n"
                "  hint: loss=lambda y, t: F.mean(F.softmax_cross_entropy(y[0], t[0])) + F.mean(F.squared_error(y[1], t[1]))"
            )
        if self.task == "regression":
            if y.shape != t.shape:
                raise ShapeError(f"fit: predictions must have the shape of the targets, got {y.shape} and {t.shape}")
            return _mean(F.squared_error(y, t), w)
        entropy = F.softmax_cross_entropy(y, t)
        if self._weights is None:
            return _mean(entropy, w)
        if len(self._weights) != y.shape[1]:
            raise ArgumentError(f"fit: class_weight must have one for each of {y.shape[1]} classes, got {len(self._weights)}")
        weights = F.embed(t, Variable.from_numpy_array(self._weights))
        return F.sum(weights * _weighted(entropy, w)) / F.sum(weights)

    def outputs(self, y: Variables, t: Variables) -> dict[str, Output]:
        """Return the loss and the metrics of predictions."""
        t = self._checked(y, t)
        outputs: dict[str, Output] = {"loss": self._loss_of(y, t)}
        if isinstance(y, tuple) or isinstance(t, tuple):
            if self._metrics is not None:
                raise ArgumentError("fit: metrics must be None where a network has several outputs or targets, got some")
            return outputs
        if self._metrics is not None:
            return {**outputs, **{name: metric_of(self.task, metric, y, t) for name, metric in self._metrics.items()}}
        if self.task == "classification":
            return {**outputs, "accuracy": Accuracy(y, t), "mean": Confusion(y, t)}
        return {**outputs, "error": RegressionErrors(y, t)}

    def _checked(self, y: Any, t: Any) -> Any:
        """Return targets in the shape that predictions want, which must be those of the task."""
        if isinstance(y, tuple) or isinstance(t, tuple):
            pairs = isinstance(y, tuple) and isinstance(t, tuple) and len(y) == len(t)
            return tuple(matched(*pair) for pair in zip(y, t, strict=True)) if pairs else t
        if self.task == "regression":
            return matched(y, t)
        require_scores(y, self._largest)
        if self._wants_labels:
            require_no_rows(y, t)
        if self._loss is None:
            require_no_softmax(y)
        return t

    @property
    def _wants_labels(self) -> bool:
        """Whether something of ours reads the targets, and not only functions of the caller."""
        return self.task == "classification" and (self._loss is None or self._metrics is None)

    def data(self, function: str, name: str, data: Arrays) -> Samples:
        """Return inputs and targets as arrays; labels get the axis that losses want."""
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise ArgumentError(
                f"{function}: {name} must be a pair of arrays, inputs and targets, got {described(data)}\n"
                f"  hint: {function}(network, (x, t)) has both in parentheses"
            )
        x, t = (
            tuple(_one_array(function, name, part, array) for array in parts(given))
            for part, given in zip(("inputs", "targets"), data, strict=True)
        )
        _require_one_length(function, x, t)
        if self._wants_labels and len(t) == 1:
            self._largest = max(self._largest, require_labels(function, name, t[0]))
        return Samples(x, tuple(self.targets(array) for array in t))

    def targets(self, t: Array) -> Array:
        """Return targets with the axis that losses want."""
        return t.reshape(len(t), 1) if self.task == "classification" and t.ndim == 1 else t


def _one_array(function: str, name: str, part: str, given: Any) -> Array:
    """Return the inputs or targets of data as an array; refuses several arrays of different shapes."""
    try:
        array = values_of(given)
    except (ValueError, TypeError, RuntimeError):  # of different shapes, or none
        array = np.empty(0, object)
    if array.dtype.kind not in "fiubV":  # V: bfloat16
        raise ArgumentError(
            f"{function}: {part} of {name} must be one array of numbers, got {described(given)}\n"
            f"  hint: {_hint_for(part, given, array)}"
        )
    return array


def _hint_for(part: str, given: Any, array: Array) -> str:
    if part == "targets" and array.size and all(isinstance(member, str) for member in array.flat):
        return _NAMES_OF_CLASSES
    return ENCODING_OF_COLUMNS if is_of_columns(given) else _SEVERAL_INPUTS


def _require_one_length(function: str, x: Sequence[Array], t: Sequence[Array]) -> None:
    lengths = lengths_of((*x, *t))
    if len(lengths) != 1 or not all(lengths):
        shapes = " and ".join(str(packed([array.shape for array in arrays])) for arrays in (x, t))
        raise ArgumentError(f"{function}: there must be as many targets as inputs, at least one, got {shapes}")


def _number(values: Variables) -> int:
    return len(values) if isinstance(values, tuple) else 1


def checked_weights(name: str, given: Any) -> Array:
    """Return weights as an array of one axis.

    Raises:
        ArgumentError: when they are something else than numbers of at least 0, one of them above.
    """
    try:
        weights = np.asarray(given, np.float32)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"fit: {name} must be a list of numbers, got {described(given)}") from error
    if weights.ndim != 1 or not np.all(np.isfinite(weights)) or np.any(weights < 0) or not np.any(weights > 0):
        raise ArgumentError(f"fit: {name} must be numbers of at least 0, one above it, got {described(given)}")
    return weights


def sample_weights(given: Any, n_samples: int) -> Array:
    """Return weights of samples divided by their mean, so that rates mean what they do without weights.

    Raises:
        ArgumentError: as `checked_weights`, and when there is not one for each sample.
    """
    weights = checked_weights("sample_weight", given)
    if len(weights) != n_samples:
        raise ArgumentError(f"fit: sample_weight must have one for each of {n_samples} samples, got {len(weights)}")
    return (weights / weights.mean(dtype=np.float64)).astype(np.float32)


def _mean(values: Variable, w: Variable | None) -> Variable:
    return F.mean(_weighted(values, w))


def _weighted(values: Variable, w: Variable | None) -> Variable:
    if w is None:
        return values
    if not values.ndim or values.shape[0] != w.shape[0]:
        raise ShapeError(f"fit: a loss with sample_weight must have one value for each sample, got shape {values.shape}")
    return values * F.reshape(w, (w.shape[0], *(1,) * (values.ndim - 1)))
