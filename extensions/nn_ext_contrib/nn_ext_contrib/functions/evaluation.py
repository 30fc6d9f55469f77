"""Measures of how good predictions are; none has a gradient."""

from nn_core.ext import ArgumentError, F, ShapeError, Variable
from nn_ext_contrib.functions.checks import require_same_shape


def classification_summary(
    y: Variable, t: Variable, label_num: int | None = None, beta: float = 1.0, ignore_label: int = -1
) -> tuple[Variable, Variable, Variable, Variable]:
    """Count for each class how well it is predicted.

    precision = tp / (tp + fp), recall = tp / (tp + fn), score = (1 + beta^2) p r / (beta^2 p + r)

    Args:
        y: Scores. Shape (N, K, ...).
        t: True classes. Shape (N, ...).
        label_num: Number of classes in the results; None: K.
        beta: Weight of recall in the score.
        ignore_label: True class of elements that do not count.

    Returns:
        Precision, recall, score and the number of elements of the class, each of shape (label_num); NaN for 0 / 0.

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> y, t = nn.NdArray.from_numpy_array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), nn.NdArray.from_numpy_array([0, 1, 1])
        >>> [part.data.tolist() for part in classification_summary(y, t)][:2]
        [[0.5, 1.0], [1.0, 0.5]]
    """
    if y.ndim < 2 or t.shape != (y.shape[0], *y.shape[2:]):
        raise ShapeError(f"classification_summary: t must have the shape of y without classes, got {t.shape} and {y.shape}")
    n_classes = y.shape[1] if label_num is None else label_num
    predicted = F.reshape(F.max(y, axis=1, only_index=True), (-1, 1))
    true = F.reshape(t, (-1, 1))
    counts = F.not_equal_scalar(true, float(ignore_label))
    classes = F.reshape(F.arange(0, n_classes), (1, n_classes))
    is_predicted, is_true = F.equal(predicted, classes) * counts, F.equal(true, classes) * counts
    hits = F.sum(is_predicted * is_true, axis=0)
    support = F.sum(is_true, axis=0)
    precision, recall = hits / F.sum(is_predicted, axis=0), hits / support
    score = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    return precision, recall, score, support


def r2_score(pred: Variable, true: Variable, multioutput: str = "uniform_average") -> Variable:
    """Say which share of the variance is explained: 1 - sum (pred - true)^2 / sum (true - mean true)^2.

    Args:
        pred: Predictions. Shape (N, ...).
        true: True values. The same shape.
        multioutput: "uniform_average" averages over the outputs, "raw_values" gives one number for each.

    Returns:
        A number, or the shape of a sample; 0 where the true values do not vary.

    Raises:
        ShapeError: when the shapes differ.
        ArgumentError: when `multioutput` is neither.

    Example:
        >>> pred, true = nn.NdArray.from_numpy_array([1.0, 2.0, 2.0]), nn.NdArray.from_numpy_array([1.0, 2.0, 3.0])
        >>> r2_score(pred, true).data.item()
        0.5
    """
    if multioutput not in ("uniform_average", "raw_values"):
        raise ArgumentError(f"r2_score: multioutput must be 'uniform_average' or 'raw_values', got {multioutput!r}")
    require_same_shape("r2_score", pred=pred, true=true)
    error = F.sum((pred - true) ** 2, axis=0)
    variance = F.sum((true - F.mean(true, axis=0, keepdims=True)) ** 2, axis=0)
    varies = F.greater_scalar(variance, 0.0)
    score = varies * (1 - error / (variance + (1 - varies)))
    return F.mean(score) if multioutput == "uniform_average" else score
