"""Reference kernels of losses and measures of error; half precision is computed in float32."""

from typing import Final

from nn_core.errors import ArgumentError
from nn_core.operators.reference.activation import log_softmax, softplus
from nn_core.operators.reference.precision import sum_of, widen
from nn_core.operators.reference.registry import kernel
from nn_core.typing import Array, Namespace

#: The smallest argument of a logarithm: the smallest normal number of float32.
SMALLEST: Final = 2.0**-126


def _log(xp: Namespace, x: Array) -> Array:
    return xp.log(xp.maximum(x, SMALLEST))


@kernel("SigmoidCrossEntropy")
def sigmoid_cross_entropy(xp: Namespace, x: Array, target: Array) -> Array:
    """With softplus(-x) = softplus(x) - x: -t log s(x) - (1 - t) log s(-x) = softplus(x) - t x."""
    x, target = widen(xp, x), widen(xp, target)
    return xp.maximum(x, 0) - target * x + softplus(xp, -xp.abs(x))


@kernel("BinaryCrossEntropy")
def binary_cross_entropy(xp: Namespace, x: Array, target: Array) -> Array:
    x, target = widen(xp, x), widen(xp, target)
    return -(target * _log(xp, x) + (1 - target) * _log(xp, 1 - x))


def _require_classes(xp: Namespace, function: str, x: Array, target: Array, axis: int) -> None:
    """Refuse labels beyond the last class; negative ones are ignored labels."""
    n_classes = x.shape[axis]
    if target.size and (largest := int(xp.max(target))) >= n_classes:
        raise ArgumentError(f"{function}: target must be below {n_classes}, the number of classes, got {largest}")


def _of_label(xp: Namespace, x: Array, target: Array, axis: int) -> Array:
    """Return the element of `x` that each label names; 0 for negative labels."""
    if not x.shape[axis]:
        return xp.zeros_like(target, dtype=x.dtype)
    chosen = xp.take_along_axis(x, xp.maximum(target, 0), axis=axis)
    return xp.where(target >= 0, chosen, 0)


@kernel("SoftmaxCrossEntropy")
def softmax_cross_entropy(xp: Namespace, x: Array, target: Array, axis: int) -> Array:
    _require_classes(xp, "softmax_cross_entropy", x, target, axis)
    return -_of_label(xp, log_softmax(xp, x, axis), target, axis)


@kernel("CategoricalCrossEntropy")
def categorical_cross_entropy(xp: Namespace, x: Array, target: Array, axis: int) -> Array:
    _require_classes(xp, "categorical_cross_entropy", x, target, axis)
    return -_of_label(xp, _log(xp, widen(xp, x)), target, axis)


@kernel("ClassMask")
def class_mask(xp: Namespace, target: Array, n_classes: int, axis: int) -> Array:
    classes = xp.arange(n_classes, dtype=target.dtype)
    return target == classes.reshape((n_classes,) + (1,) * (target.ndim - axis - 1))


@kernel("SquaredError")
def squared_error(xp: Namespace, x0: Array, x1: Array) -> Array:
    difference = widen(xp, x0) - widen(xp, x1)
    return difference * difference


@kernel("AbsoluteError")
def absolute_error(xp: Namespace, x0: Array, x1: Array) -> Array:
    return xp.abs(widen(xp, x0) - widen(xp, x1))


@kernel("HuberLoss")
def huber_loss(xp: Namespace, x0: Array, x1: Array, delta: float) -> Array:
    distance = absolute_error(xp, x0, x1)
    return xp.where(distance < delta, distance * distance, delta * (2 * distance - delta))


@kernel("EpsilonInsensitiveLoss")
def epsilon_insensitive_loss(xp: Namespace, x0: Array, x1: Array, epsilon: float) -> Array:
    return xp.maximum(absolute_error(xp, x0, x1) - epsilon, 0)


@kernel("KLMultinomial")
def kl_multinomial(xp: Namespace, p: Array, q: Array, base_axis: int) -> Array:
    p, q = widen(xp, p), widen(xp, q)
    terms = p * (_log(xp, p) - _log(xp, q))
    return sum_of(xp, terms, range(base_axis, p.ndim)).reshape((*p.shape[:base_axis], 1))


@kernel("TopNError")
def top_n_error(xp: Namespace, x: Array, target: Array, axis: int, n: int) -> Array:
    _require_classes(xp, "top_n_error", x, target, axis)
    rank = xp.sum(x >= _of_label(xp, x, target, axis), axis=axis, keepdims=True)
    return (rank > n) & (target >= 0)


@kernel("BinaryError")
def binary_error(xp: Namespace, x: Array, target: Array) -> Array:
    return (x >= 0.5) != (target >= 0.5)


@kernel("ConfusionMatrix")
def confusion_matrix(xp: Namespace, x: Array, target: Array, axis: int) -> Array:
    _require_classes(xp, "confusion_matrix", x, target, axis)
    n_classes = x.shape[axis]
    if not n_classes or not target.size:
        return xp.zeros((n_classes, n_classes), dtype=xp.int64)
    labels, predictions = target.reshape(-1), xp.argmax(x, axis=axis).reshape(-1)
    counted = labels >= 0
    cells = labels[counted] * n_classes + predictions[counted]
    counts = xp.zeros(n_classes * n_classes, dtype=xp.int64)
    xp.add.at(counts, cells, 1)
    return counts.reshape((n_classes, n_classes))
