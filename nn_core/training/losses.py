"""Losses that are made of functions: one value for each sample, of which ``F.mean`` is minimized."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_core import functions as F
from nn_core.engine.error_messages.refusal import described, fitted
from nn_core.errors import ArgumentError, ShapeError
from nn_core.function import PythonFunction
from nn_core.typing import Array
from nn_core.variable import Variable

#: Keeps square roots and quotients from zero.
_EPS = 1e-12


@fitted
def cross_entropy(
    x: Variable, t: Variable, label_smoothing: float = 0.0, class_weight: Sequence[float] | None = None
) -> Variable:
    """Return the cross entropy of the softmax of scores, with smoothed labels and weights of classes.

    ``-sum_k w_k q_k log softmax(x)_k / mean(w_t)`` with ``q_k = label_smoothing / K``, and ``1 - label_smoothing`` more for
    the label. The mean over samples is the mean weighted by the classes.

    Args:
        x: Scores. Shape (N, K).
        t: Labels. Shape (N, 1) or (N,).
        label_smoothing: Share of all classes in the target, from 0 to 1.
        class_weight: A weight for each class, in their order; None: 1.

    Returns:
        Shape (N, 1).

    Raises:
        ShapeError: when `x` or `t` has another shape.
        ArgumentError: when `label_smoothing` is out of range, or `class_weight` has not K weights of at least 0.

    Example:
        >>> from nn_core.training import cross_entropy
        >>> x, t = nn.Variable.from_numpy_array([[2.0, 0.0, 0.0]]), nn.Variable.from_numpy_array([[0]])
        >>> loss = F.mean(cross_entropy(x, t, label_smoothing=0.1))
        >>> loss.forward()
        >>> print(loss.d.round(3))
        0.373

    References:
        Szegedy et al. (2016), Rethinking the Inception architecture for computer vision, section 7.
    """
    labels = _labels("cross_entropy", x, t)
    n_classes = x.shape[1]
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"cross_entropy: label_smoothing must be from 0 to 1, got {label_smoothing!r}")
    if class_weight is None and not label_smoothing:
        return F.softmax_cross_entropy(x, labels)
    weights = np.ones(n_classes, np.float32) if class_weight is None else _weights("cross_entropy", class_weight, n_classes)
    w = Variable.from_numpy_array(weights)
    smooth = label_smoothing / n_classes
    of_label = F.reshape(F.embed(labels, w), labels.shape)
    loss = (1 - label_smoothing) * (of_label * F.softmax_cross_entropy(x, labels))
    if smooth:
        spread = F.reshape(w, (1, n_classes)) * F.log_softmax(x, axis=1)
        loss = loss - smooth * F.sum(spread, axis=1, keepdims=True)
    return loss if class_weight is None else loss / F.mean(of_label)


@fitted
def focal_loss(x: Variable, t: Variable, gamma: float = 2.0, class_weight: Sequence[float] | None = None) -> Variable:
    """Return the focal loss, a cross entropy in which samples that are sure and right hardly count.

    ``-w_t (1 - p)**gamma log(p)`` with the probability p of the label.

    Args:
        x: Scores. Shape (N, K).
        t: Labels. Shape (N, 1) or (N,).
        gamma: How little sure samples count, at least 0; 0 gives the cross entropy.
        class_weight: A weight for each class, in their order; None: 1.

    Returns:
        Shape (N, 1).

    Raises:
        ShapeError: when `x` or `t` has another shape.
        ArgumentError: when `gamma` is negative, or `class_weight` has not K weights of at least 0.

    Example:
        >>> from nn_core.training import focal_loss
        >>> x, t = nn.Variable.from_numpy_array([[2.0, 0.0]]), nn.Variable.from_numpy_array([[0]])
        >>> loss = focal_loss(x, t)
        >>> loss.forward()
        >>> print(loss.d.round(4))
        [[0.0018]]

    References:
        Lin et al. (2017), Focal loss for dense object detection, equation 5.
    """
    labels = _labels("focal_loss", x, t)
    if not gamma >= 0:
        raise ArgumentError(f"focal_loss: gamma must be at least 0, got {gamma!r}")
    entropy = F.softmax_cross_entropy(x, labels)
    unsure = F.maximum_scalar(1 - F.exp(-entropy), 1e-7)  # powers below 1 have no slope at 0
    loss = unsure**gamma * entropy if gamma else entropy
    if class_weight is None:
        return loss
    weights = Variable.from_numpy_array(_weights("focal_loss", class_weight, x.shape[1]))
    return F.reshape(F.embed(labels, weights), labels.shape) * loss


@fitted
def triplet_loss(anchor: Variable, positive: Variable, negative: Variable, margin: float = 1.0) -> Variable:
    """Return the triplet loss of embeddings: ``max(0, |a - p| - |a - n| + margin)`` with Euclidean distances.

    Args:
        anchor: Embeddings. Shape (N, D).
        positive: Embeddings of samples that belong to the anchors. Shape (N, D).
        negative: Embeddings of samples that do not. Shape (N, D).
        margin: By how much the distance to these is to be larger.

    Returns:
        Shape (N, 1).

    Raises:
        ShapeError: when the shapes differ, or have not two axes.

    Example:
        >>> from nn_core.training import triplet_loss
        >>> a, p, n = (nn.Variable.from_numpy_array([[v, 0.0]]) for v in (0.0, 1.0, 1.5))
        >>> loss = triplet_loss(a, p, n)
        >>> loss.forward()
        >>> print(loss.d)
        [[0.5]]

    References:
        Schroff et al. (2015), FaceNet, equation 3, with distances instead of their squares.
    """
    _require_embeddings("triplet_loss", anchor=anchor, positive=positive, negative=negative)
    return F.relu(_distance(anchor, positive) - _distance(anchor, negative) + margin)


@fitted
def cosine_embedding_loss(a: Variable, b: Variable, t: Variable, margin: float = 0.0) -> Variable:
    """Return the loss of pairs of embeddings by their cosine.

    ``1 - cos`` where t is 1, ``max(0, cos - margin)`` where it is -1.

    Args:
        a: Embeddings. Shape (N, D).
        b: Embeddings. Shape (N, D).
        t: 1 for pairs that belong together, -1 or 0 for others. Shape (N, 1) or (N,).
        margin: Largest cosine of others that costs nothing, from -1 to 1.

    Returns:
        Shape (N, 1).

    Raises:
        ShapeError: when shapes differ.
        ArgumentError: when `margin` is out of range.

    Example:
        >>> from nn_core.training import cosine_embedding_loss
        >>> a, b = nn.Variable.from_numpy_array([[1.0, 0.0]] * 2), nn.Variable.from_numpy_array([[3.0, 4.0]] * 2)
        >>> loss = cosine_embedding_loss(a, b, nn.Variable.from_numpy_array([1, -1]))
        >>> loss.forward()
        >>> print(loss.d.round(2).ravel())
        [0.4 0.6]

    References:
        Hadsell et al. (2006), Dimensionality reduction by learning an invariant mapping, with the cosine as similarity.
    """
    _require_embeddings("cosine_embedding_loss", a=a, b=b)
    if not -1 <= margin <= 1:
        raise ArgumentError(f"cosine_embedding_loss: margin must be from -1 to 1, got {margin!r}")
    signs = _column("cosine_embedding_loss", t, len_of=a)
    norms = (F.sum(a * a, axis=1, keepdims=True) + _EPS) * (F.sum(b * b, axis=1, keepdims=True) + _EPS)
    cosine = F.sum(a * b, axis=1, keepdims=True) / norms**0.5
    return F.where(F.greater_scalar(signs, 0), 1 - cosine, F.relu(cosine - margin))


@fitted
def ctc_loss(
    x: Variable, t: Variable, x_lengths: Variable | None = None, t_lengths: Variable | None = None, blank: int = 0
) -> Variable:
    """Return the loss of connectionist temporal classification: -log of the probability of all alignments of the labels.

    It is computed on the host in float64, and its gradient has no gradient.

    Args:
        x: Scores of the classes at each step, of which the softmax is taken. Shape (N, T, K).
        t: Labels, padded. Shape (N, L).
        x_lengths: Number of steps of each sample. Shape (N,). None: T.
        t_lengths: Number of labels of each sample. Shape (N,). None: L.
        blank: The class that stands for no label.

    Returns:
        Shape (N, 1).

    Raises:
        ShapeError: when shapes do not fit each other.
        ArgumentError: when `blank` is no class; when it runs, for lengths or labels out of range, a blank among the labels,
            and a sample with fewer steps than its labels need, which has no alignment.

    Example:
        >>> from nn_core.training import ctc_loss
        >>> x = nn.Variable.from_numpy_array(np.zeros((1, 2, 3)))
        >>> loss = ctc_loss(x, nn.Variable.from_numpy_array([[2]]))
        >>> loss.forward()  # 2 2, 2 blank, blank 2: three of nine
        >>> print(loss.d.round(3))
        [[1.099]]

    References:
        Graves et al. (2006), Connectionist temporal classification, equations 5 to 16.
    """
    if x.ndim != 3 or t.ndim != 2 or t.shape[0] != x.shape[0]:
        raise ShapeError(f"ctc_loss: x and t must have the shapes (N, T, K) and (N, L), got {x.shape} and {t.shape}")
    if not 0 <= blank < x.shape[2]:
        raise ArgumentError(f"ctc_loss: blank must be one of {x.shape[2]} classes from 0, got {blank!r}")
    lengths = []
    for name, given, longest in (("x_lengths", x_lengths, x.shape[1]), ("t_lengths", t_lengths, t.shape[1])):
        found = Variable.from_numpy_array(np.full(x.shape[0], longest)) if given is None else given
        if found.shape != (x.shape[0],):
            raise ShapeError(f"ctc_loss: {name} must have the shape ({x.shape[0]},), got {found.shape}")
        lengths.append(found)
    loss: Variable = _Ctc(blank)(F.log_softmax(x, axis=2), t, *lengths)
    return loss


class _Ctc(PythonFunction):
    """Forward and backward variables of log probabilities (N, T, K), labels (N, L) and both lengths (N,)."""

    name = "CTC"

    def __init__(self, blank: int) -> None:
        super().__init__()
        self._blank = blank

    @property
    def args(self) -> dict[str, int]:
        """The settings."""
        return {"blank": self._blank}

    def setup_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Set the shape of the loss."""
        outputs[0].reset_shape((inputs[0].shape[0], 1), True)

    def forward_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Compute the loss."""
        outputs[0].d = -self._alignments(inputs)[0][:, None]

    def backward_impl(
        self, inputs: Sequence[Any], outputs: Sequence[Any], propagate_down: Sequence[bool], accum: Sequence[bool]
    ) -> None:
        """Compute the gradient: minus the probability of each class at each step, given the labels."""
        if propagate_down[0]:
            dx = -self._alignments(inputs)[1] * outputs[0].g[:, :, None]
            inputs[0].g = dx + (inputs[0].g if accum[0] else 0)

    def _alignments(self, inputs: Sequence[Any]) -> tuple[Array, Array]:
        log_p, labels, n_steps, n_labels = (np.asarray(variable.d) for variable in inputs)
        labels, n_steps, n_labels = labels.astype(int), n_steps.astype(int), n_labels.astype(int)
        posterior = np.zeros(log_p.shape)
        likelihood = np.zeros(len(log_p))
        for sample, length in enumerate(n_steps):
            own = labels[sample, : max(n_labels[sample], 0)]
            self._require_alignment(sample, own, length, n_labels[sample], log_p.shape, labels.shape)
            found = _aligned(log_p[sample, :length].astype(np.float64), own, self._blank)
            likelihood[sample], posterior[sample, :length] = found
        return likelihood, posterior

    def _require_alignment(
        self, sample: int, labels: Array, n_steps: int, n_labels: int, x_shape: Sequence[int], t_shape: Sequence[int]
    ) -> None:
        if not 0 <= n_labels <= t_shape[1] or not 0 < n_steps <= x_shape[1]:
            raise ArgumentError(
                f"ctc_loss: lengths must be from 1 to {x_shape[1]} steps and from 0 to {t_shape[1]} labels, got {n_steps} and "
                f"{n_labels} in sample {sample}"
            )
        wrong = [label for label in labels.tolist() if not 0 <= label < x_shape[2] or label == self._blank]
        if wrong:
            raise ArgumentError(
                f"ctc_loss: labels must be from 0 to {x_shape[2] - 1} and not the blank {self._blank}, got {wrong[0]} in "
                f"sample {sample}"
            )
        needed = len(labels) + int(np.count_nonzero(labels[1:] == labels[:-1]))
        if n_steps < needed:
            raise ArgumentError(
                f"ctc_loss: there must be a step for each label, and one between equal ones, got {n_steps} steps for "
                f"{needed} in sample {sample}"
            )


def _aligned(log_p: Array, labels: Array, blank: int) -> tuple[float, Array]:
    """Return the log likelihood of labels, and the probability of each class at each step given them."""
    states = np.full(2 * len(labels) + 1, blank)
    states[1::2] = labels
    emitted = log_p[:, states]
    may_skip = np.zeros(len(states), bool)
    may_skip[2:] = (states[2:] != blank) & (states[2:] != states[:-2])
    forward = _passed(emitted, may_skip)
    # backwards, a state is left for the one after the next where that may be skipped to
    backward = _passed(emitted[::-1, ::-1], np.roll(may_skip, -2)[::-1])[::-1, ::-1]
    likelihood = np.logaddexp.reduce(forward[-1, -2:])
    posterior = np.zeros(log_p.shape)
    with np.errstate(invalid="ignore"):
        shares = np.exp(forward + backward - emitted - likelihood)
    for state, column in zip(states.tolist(), np.nan_to_num(shares).T, strict=True):
        posterior[:, state] += column
    return float(likelihood), posterior


def _passed(emitted: Array, may_skip: Array) -> Array:
    """Return the log probability of all beginnings that end at each step in each state."""
    found = np.full(emitted.shape, -np.inf)
    found[0, :2] = emitted[0, :2]
    for step in range(1, len(emitted)):
        before = found[step - 1]
        total = before.copy()
        total[1:] = np.logaddexp(total[1:], before[:-1])
        total[2:] = np.where(may_skip[2:], np.logaddexp(total[2:], before[:-2]), total[2:])
        found[step] = total + emitted[step]
    return found


def _distance(a: Variable, b: Variable) -> Variable:
    difference = a - b
    return (F.sum(difference * difference, axis=1, keepdims=True) + _EPS) ** 0.5


def _labels(function: str, x: Variable, t: Variable) -> Variable:
    if x.ndim != 2:
        raise ShapeError(f"{function}: x must have the shape (N, K), got {x.shape}")
    return _column(function, t, len_of=x)


def _column(function: str, t: Variable, *, len_of: Variable) -> Variable:
    n_samples = len_of.shape[0]
    if t.shape not in ((n_samples, 1), (n_samples,)):
        raise ShapeError(f"{function}: t must have the shape ({n_samples}, 1), got {t.shape}")
    return t if t.ndim == 2 else F.reshape(t, (n_samples, 1))


def _weights(function: str, weights: Any, n_classes: int) -> Array:
    try:
        found = np.asarray(weights, np.float32)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{function}: class_weight must be numbers, got {described(weights)}") from error
    if found.shape != (n_classes,) or not (found >= 0).all():
        raise ArgumentError(f"{function}: class_weight must have {n_classes} weights of at least 0, got {described(weights)}")
    return found


def _require_embeddings(function: str, **given: Variable) -> None:
    shapes = {variable.shape for variable in given.values()}
    if len(shapes) > 1 or len(next(iter(shapes))) != 2:
        shown = ", ".join(f"{name} {variable.shape}" for name, variable in given.items())
        raise ShapeError(f"{function}: embeddings must have one shape (N, D), got {shown}")
