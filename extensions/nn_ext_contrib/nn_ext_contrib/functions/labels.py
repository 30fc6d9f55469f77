"""Losses, measures and look-ups in which some labels do not count."""

from nn_core.ext import F, ShapeError, Variable
from nn_ext_contrib.functions.checks import require_ndim, require_same_shape


def embed_id(x: Variable, w: Variable, ignore_label: int | None = None) -> Variable:
    """Take rows of a matrix, and zeros where an index is `ignore_label`, which gives no gradient either.

    Args:
        x: Indices, in [0, V) or `ignore_label`. Any shape.
        w: Rows. Shape (V, ...).
        ignore_label: The index whose row is zero; None: there is none.

    Returns:
        The shape of x, then that of a row.

    Example:
        >>> x, w = nn.NdArray.from_numpy_array([1, -1]), nn.NdArray.from_numpy_array([[1.0, 2.0], [3.0, 4.0]])
        >>> embed_id(x, w, ignore_label=-1).data.tolist()
        [[3.0, 4.0], [0.0, 0.0]]
    """
    if ignore_label is None:
        return F.embed(x, w)
    counts = F.not_equal_scalar(x, float(ignore_label))
    rows = F.embed(x * counts, w)
    counts = F.broadcast(F.reshape(counts, x.shape + (1,) * (w.ndim - 1)), rows.shape)
    return F.where(counts, rows, counts)  # counts is 0 where it is not 1


def accuracy(y: Variable, t: Variable, ignore_label: int | None = None) -> Variable:
    """Count the share of elements whose largest score is that of the true class.

    Args:
        y: Scores. Shape (N, K, ...).
        t: True classes. Shape (N, ...).
        ignore_label: True class of elements that do not count; None: all count.

    Returns:
        A number, without gradient; 0 when no element counts.

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> y, t = nn.NdArray.from_numpy_array([[0.1, 0.7], [8.0, 1.0], [-8.0, 1.0]]), nn.NdArray.from_numpy_array([1, 0, 0])
        >>> round(accuracy(y, t).data.item(), 4), accuracy(y, t, ignore_label=0).data.item()
        (0.6667, 1.0)
    """
    _require_labels("accuracy", y, t)
    hits = F.equal(F.max(y, axis=1, only_index=True), t)
    return F.mean(hits) if ignore_label is None else _mean_of_counted(hits, F.not_equal_scalar(t, float(ignore_label)))


def binary_accuracy(y: Variable, t: Variable) -> Variable:
    """Count the share of elements whose score has the sign of the label: scores from 0 on mean 1.

    Args:
        y: Scores. Any shape.
        t: Labels 0 and 1, or -1 for elements that do not count. The same shape.

    Returns:
        A number, without gradient; 0 when no element counts.

    Raises:
        ShapeError: when the shapes differ.

    Example:
        >>> y, t = nn.NdArray.from_numpy_array([0.0, -2.0, 3.0, 4.0]), nn.NdArray.from_numpy_array([1, 0, 0, -1])
        >>> round(binary_accuracy(y, t).data.item(), 4)
        0.6667
    """
    require_same_shape("binary_accuracy", y=y, t=t)
    return _mean_of_counted(F.equal(F.greater_equal_scalar(y, 0.0), t), F.not_equal_scalar(t, -1.0))


def masked_sigmoid_cross_entropy(x: Variable, t: Variable) -> Variable:
    """Take the cross-entropy of logits, 0 where a label is -1: log(1 + exp(x)) - t x.

    Args:
        x: Logits. Any shape.
        t: Labels 0 and 1, or -1 for elements that do not count; they get no gradient. The same shape.

    Returns:
        The same shape. Chainer adds it up and divides by the number of elements that count.

    Raises:
        ShapeError: when the shapes differ.

    Example:
        >>> x, t = nn.NdArray.from_numpy_array([0.0, 5.0]), nn.NdArray.from_numpy_array([1, -1])
        >>> [round(loss, 4) for loss in masked_sigmoid_cross_entropy(x, t).data.tolist()]
        [0.6931, 0.0]
    """
    require_same_shape("masked_sigmoid_cross_entropy", x=x, t=t)
    loss = F.sigmoid_cross_entropy(x, t)
    counts = F.not_equal_scalar(t, -1.0)
    return F.where(counts, loss, counts)  # counts is 0 where it is not 1


def weighted_softmax_cross_entropy(
    x: Variable, t: Variable, class_weight: Variable | None = None, ignore_label: int = -1
) -> Variable:
    """Take the cross-entropy of scores, weighted by class: -w_t log softmax(x)_t.

    Args:
        x: Scores. Shape (N, K, ...).
        t: True classes. Shape (N, ...).
        class_weight: Weight of each class. Shape (K). None: equal ones.
        ignore_label: True class of elements that do not count: their loss is 0, and they get no gradient.

    Returns:
        The shape of t. Chainer adds it up and divides by the number of elements that count.

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> x, t = nn.NdArray.from_numpy_array([[0.0, 0.0], [3.0, 1.0]]), nn.NdArray.from_numpy_array([1, -1])
        >>> weight = nn.NdArray.from_numpy_array([1.0, 2.0])
        >>> [round(loss, 4) for loss in weighted_softmax_cross_entropy(x, t, weight).data.tolist()]
        [1.3863, 0.0]
    """
    _require_labels("weighted_softmax_cross_entropy", x, t)
    counts = F.not_equal_scalar(t, float(ignore_label))
    label = t * counts
    loss = F.reshape(F.softmax_cross_entropy(x, F.reshape(label, (t.shape[0], 1, *t.shape[1:])), axis=1), t.shape)
    if class_weight is not None:
        require_ndim("weighted_softmax_cross_entropy", "class_weight", class_weight, 1, f"({x.shape[1]})")
        if class_weight.shape != x.shape[1:2]:
            got = f"({x.shape[1]},), got {class_weight.shape}"
            raise ShapeError(f"weighted_softmax_cross_entropy: class_weight must have shape {got}")
        loss = loss * F.reshape(F.embed(label, F.reshape(class_weight, (-1, 1))), t.shape)
    return F.where(counts, loss, counts)


def _mean_of_counted(hits: Variable, counts: Variable) -> Variable:
    return F.sum(hits * counts) / F.maximum_scalar(F.sum(counts), 1.0)


def _require_labels(function: str, y: Variable, t: Variable) -> None:
    if y.ndim < 2 or t.shape != (y.shape[0], *y.shape[2:]):
        raise ShapeError(f"{function}: t must have the shape of the scores without classes, got {t.shape} and {y.shape}")
