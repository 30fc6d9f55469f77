"""Shapes and gradients of losses and measures of error."""

from typing import Any, Final

from nn_core.errors import ShapeError
from nn_core.operators.rules.broadcasting import unbroadcast
from nn_core.operators.rules.choosing import chosen
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape

#: The divisor of a gradient in place of 0: the smallest number that is not 0 in half precision.
SMALLEST: Final = 2.0**-24


def _divisor(F: Any, x: Any) -> Any:
    return x + F.equal_scalar(x, val=0) * SMALLEST


def _of_difference(F: Any, g: GradientCall, dx: Any) -> tuple[Any, Any]:
    """Return the gradients of a function of x0 - x1, from that of the difference."""
    return (
        unbroadcast(F, dx, g.x0.shape) if g.wants("x0") else None,
        unbroadcast(F, -dx, g.x1.shape) if g.wants("x1") else None,
    )


@gradient("SquaredError")
def squared_error(F: Any, g: GradientCall) -> tuple[Any, Any]:
    return _of_difference(F, g, g.grad * ((g.x0 - g.x1) * 2))


@gradient("AbsoluteError")
def absolute_error(F: Any, g: GradientCall) -> tuple[Any, Any]:
    return _of_difference(F, g, g.grad * (F.greater(g.x0, g.x1) * 2 - 1))


@gradient("HuberLoss")
def huber_loss(F: Any, g: GradientCall) -> tuple[Any, Any]:
    limited = F.minimum_scalar(F.maximum_scalar(g.x0 - g.x1, val=-g.delta), val=g.delta)
    return _of_difference(F, g, g.grad * (limited * 2))


@gradient("EpsilonInsensitiveLoss")
def epsilon_insensitive_loss(F: Any, g: GradientCall) -> tuple[Any, Any]:
    difference = g.x0 - g.x1
    above, below = F.greater_scalar(difference, val=g.epsilon), F.less_scalar(difference, val=-g.epsilon)
    return _of_difference(F, g, chosen(F, above + below, g.grad * (above - below)))


@gradient("SigmoidCrossEntropy")
def sigmoid_cross_entropy(F: Any, g: GradientCall) -> tuple[Any, Any]:
    return (
        unbroadcast(F, g.grad * (F.sigmoid(g.x) - g.target), g.x.shape) if g.wants("x") else None,
        unbroadcast(F, -g.grad * g.x, g.target.shape) if g.wants("target") else None,
    )


@gradient("BinaryCrossEntropy")
def binary_cross_entropy(F: Any, g: GradientCall) -> tuple[Any, Any]:
    dx = dtarget = None
    if g.wants("x"):
        # over one divisor, (x - target) / (x (1 - x)), the second gradient would be a difference of large numbers
        slope = (1 - g.target) / _divisor(F, 1 - g.x) - g.target / _divisor(F, g.x)
        dx = unbroadcast(F, g.grad * slope, g.x.shape)
    if g.wants("target"):
        log_odds = F.log(_divisor(F, g.x)) - F.log(_divisor(F, 1 - g.x))
        dtarget = unbroadcast(F, -g.grad * log_odds, g.target.shape)
    return dx, dtarget


def _check_labels(x: Shape, target: Shape, axis: int) -> Shape:
    """Return the shape that `target` must have, once it has it."""
    expected = (*x[:axis], 1, *x[axis + 1 :])
    if target != expected:
        raise ShapeError(f"target must have the shape of x with length 1 on axis {axis}, {expected}, got {target}")
    return expected


@shape_rule("SoftmaxCrossEntropy", "CategoricalCrossEntropy")
def class_loss(x: Shape, target: Shape, axis: int) -> tuple[Shape, ...]:
    return (_check_labels(x, target, axis),)


@shape_rule("TopNError")
def top_n_error(x: Shape, target: Shape, axis: int, n: int) -> tuple[Shape, ...]:
    return (_check_labels(x, target, axis),)


@shape_rule("ConfusionMatrix")
def confusion_matrix(x: Shape, target: Shape, axis: int) -> tuple[Shape, ...]:
    _check_labels(x, target, axis)
    return ((x[axis], x[axis]),)


@shape_rule("ClassMask")
def class_mask(target: Shape, n_classes: int, axis: int) -> tuple[Shape, ...]:
    if target[axis] != 1:
        raise ShapeError(f"target must have length 1 on axis {axis}, got {target}")
    return ((*target[:axis], n_classes, *target[axis + 1 :]),)


@gradient("SoftmaxCrossEntropy")
def softmax_cross_entropy(F: Any, g: GradientCall) -> tuple[Any, None]:
    """Softmax minus mask; 0 where the label is ignored, where the sum of the mask is 0."""
    mask = F.class_mask(g.target, n_classes=g.x.shape[g.axis], axis=g.axis)
    labelled = F.broadcast(F.sum(mask, axes=(g.axis,), keep_dims=True), shape=tuple(g.x.shape))
    return chosen(F, labelled, g.grad * (F.softmax(g.x, axis=g.axis) - mask)), None


@gradient("CategoricalCrossEntropy")
def categorical_cross_entropy(F: Any, g: GradientCall) -> tuple[Any, None]:
    mask = F.class_mask(g.target, n_classes=g.x.shape[g.axis], axis=g.axis)
    dx = -g.grad / _divisor(F, g.x)
    return chosen(F, mask, dx), None


@shape_rule("KLMultinomial")
def kl_multinomial_shape(p: Shape, q: Shape, base_axis: int) -> tuple[Shape, ...]:
    if p != q:
        raise ShapeError(f"p and q must have the same shape, got {p} and {q}")
    return ((*p[:base_axis], 1),)


@gradient("KLMultinomial")
def kl_multinomial(F: Any, g: GradientCall) -> tuple[Any, Any]:
    samples = tuple(g.p.shape[: g.base_axis])
    dy = F.reshape(g.grad, shape=samples + (1,) * (g.p.ndim - g.base_axis))
    p, q = _divisor(F, g.p), _divisor(F, g.q)
    return (
        dy * (F.log(p) - F.log(q) + 1) if g.wants("p") else None,
        -dy * g.p / q if g.wants("q") else None,
    )
