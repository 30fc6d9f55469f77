"""Functions of the topic loss.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.loss import (
    ABSOLUTE_ERROR,
    BINARY_CROSS_ENTROPY,
    BINARY_ERROR,
    CATEGORICAL_CROSS_ENTROPY,
    CLASS_MASK,
    CONFUSION_MATRIX,
    EPSILON_INSENSITIVE_LOSS,
    HUBER_LOSS,
    KL_MULTINOMIAL,
    SIGMOID_CROSS_ENTROPY,
    SOFTMAX_CROSS_ENTROPY,
    SPECS,
    SQUARED_ERROR,
    TOP_N_ERROR,
)


def sigmoid_cross_entropy(x=None, target=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Compare scores with binary labels: the cross entropy of the sigmoid of the scores.

    y = -(target log s(x) + (1 - target) log(1 - s(x))), s the sigmoid

    Args:
        x: Scores, before the sigmoid. Shape any.
        target: Labels 0 and 1; probabilities between them are taken too. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Loss of every element; take its mean to train. Shape common shape of the inputs.

    Notes:
        The inputs broadcast against each other. Computed from the scores without forming the sigmoid, so large scores
        neither overflow nor lose digits.

    Example:
        F.sigmoid_cross_entropy(nn.Variable((8, 10)), nn.Variable((8, 10))).shape  # (8, 10)

    Spec: function_spec.yaml, entry SigmoidCrossEntropy
    """
    if surplus or unknown:
        refuse(SIGMOID_CROSS_ENTROPY, surplus, unknown)
    return apply(SIGMOID_CROSS_ENTROPY, (x, target), {}, outputs)


def binary_cross_entropy(x=None, target=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Compare probabilities with binary labels: the cross entropy.

    y = -(target log x + (1 - target) log(1 - x))

    Args:
        x: Probabilities in [0, 1]. Shape any.
        target: Labels 0 and 1, or probabilities. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Loss of every element; take its mean to train. Shape common shape of the inputs.

    Notes:
        The inputs broadcast against each other. Logarithms are taken of 2^-126 at least, which bounds the loss of a
        certain and wrong prediction by 87.4; the gradient divides by 2^-24 where it would divide by 0. Prefer
        sigmoid_cross_entropy, which has neither limit.

    Example:
        F.binary_cross_entropy(nn.Variable((8, 10)), nn.Variable((8, 10))).shape  # (8, 10)

    Spec: function_spec.yaml, entry BinaryCrossEntropy
    """
    if surplus or unknown:
        refuse(BINARY_CROSS_ENTROPY, surplus, unknown)
    return apply(BINARY_CROSS_ENTROPY, (x, target), {}, outputs)


def softmax_cross_entropy(x=None, target=None, axis=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Compare scores with class labels: the cross entropy of the softmax of the scores.

    y = log(sum over j of exp(x_j)) - x_target

    Args:
        x: Scores, before the softmax. Shape (N_1, ..., C, ..., N_k).
        target: Labels: numbers of classes from 0 to C - 1. Shape (N_1, ..., 1, ..., N_k).
        axis: Axis of the classes; default: the last.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Loss of every label; take its mean to train. Shape (N_1, ..., 1, ..., N_k).

    Notes:
        A negative label is ignored: its loss and its gradient are 0. A label of C or more raises ArgumentError. Half
        precision is computed in float32.

    Example:
        F.softmax_cross_entropy(nn.Variable((8, 10)), nn.Variable((8, 1))).shape  # (8, 1)

    Spec: function_spec.yaml, entry SoftmaxCrossEntropy
    """
    if surplus or unknown:
        refuse(SOFTMAX_CROSS_ENTROPY, surplus, unknown)
    return apply(SOFTMAX_CROSS_ENTROPY, (x, target), {"axis": axis}, outputs)


def categorical_cross_entropy(x=None, target=None, axis=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Compare probabilities with class labels: the cross entropy.

    y = -log x_target

    Args:
        x: Probabilities of the classes in [0, 1]. Shape (N_1, ..., C, ..., N_k).
        target: Labels: numbers of classes from 0 to C - 1. Shape (N_1, ..., 1, ..., N_k).
        axis: Axis of the classes; default: the last.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Loss of every label; take its mean to train. Shape (N_1, ..., 1, ..., N_k).

    Notes:
        A negative label is ignored: its loss and its gradient are 0. A label of C or more raises ArgumentError. The
        logarithm is taken of 2^-126 at least; the gradient divides by 2^-24 where it would divide by 0. Prefer
        softmax_cross_entropy, which has neither limit.

    Example:
        F.categorical_cross_entropy(nn.Variable((8, 10)), nn.Variable((8, 1))).shape  # (8, 1)

    Spec: function_spec.yaml, entry CategoricalCrossEntropy
    """
    if surplus or unknown:
        refuse(CATEGORICAL_CROSS_ENTROPY, surplus, unknown)
    return apply(CATEGORICAL_CROSS_ENTROPY, (x, target), {"axis": axis}, outputs)


def class_mask(target=None, n_classes=None, axis=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Mark the class of each label along an axis.

    y_c = [c = target]

    Args:
        target: Labels: numbers of classes; others mark nothing. Shape (N_1, ..., 1, ..., N_k).
        n_classes: Number of classes C.
        axis: Axis of the classes; the target has length 1 there.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 1 at the place of the label, 0 elsewhere. Shape (N_1, ..., C, ..., N_k).

    Notes:
        What the gradients of the class losses are made of; like one_hot, with the classes on any axis and negative
        labels allowed.

    Example:
        F.class_mask(nn.Variable((8, 1)), 10, 1).shape  # (8, 10)

    Spec: function_spec.yaml, entry ClassMask
    """
    if surplus or unknown:
        refuse(CLASS_MASK, surplus, unknown)
    return apply(CLASS_MASK, (target,), {"n_classes": n_classes, "axis": axis}, outputs)


def squared_error(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the squared difference of two arrays, with broadcasting.

    y = (x0 - x1)^2

    Args:
        x0: Prediction. Shape any.
        x1: Target. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Loss of every element; take its mean to train. Shape common shape of the inputs.

    Example:
        F.squared_error(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [2.25, 20.2]

    Spec: function_spec.yaml, entry SquaredError
    """
    if surplus or unknown:
        refuse(SQUARED_ERROR, surplus, unknown)
    return apply(SQUARED_ERROR, (x0, x1), {}, outputs)


def absolute_error(x0=None, x1=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the absolute difference of two arrays, with broadcasting.

    y = |x0 - x1|

    Args:
        x0: Prediction. Shape any.
        x1: Target. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Loss of every element; take its mean to train. Shape common shape of the inputs.

    Notes:
        Where both are equal the gradient of x0 is -1 and that of x1 is 1.

    Example:
        F.absolute_error(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [1.5, 4.5]

    Spec: function_spec.yaml, entry AbsoluteError
    """
    if surplus or unknown:
        refuse(ABSOLUTE_ERROR, surplus, unknown)
    return apply(ABSOLUTE_ERROR, (x0, x1), {}, outputs)


def huber_loss(x0=None, x1=None, delta=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the squared difference of two arrays, continued by straight lines where it is large.

    y = d^2 (|d| < delta), delta (2 |d| - delta) (otherwise), with d = x0 - x1

    Args:
        x0: Prediction. Shape any.
        x1: Target. Shape any.
        delta: Difference at which the lines begin.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Loss of every element; take its mean to train. Shape common shape of the inputs.

    Notes:
        The inputs broadcast against each other. Twice the loss of the paper, so that it equals squared_error near 0.

    Example:
        F.huber_loss(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [2, 8]

    References:
        P. J. Huber (1964), Robust estimation of a location parameter.

    Spec: function_spec.yaml, entry HuberLoss
    """
    if surplus or unknown:
        refuse(HUBER_LOSS, surplus, unknown)
    return apply(HUBER_LOSS, (x0, x1), {"delta": delta}, outputs)


def epsilon_insensitive_loss(x0=None, x1=None, epsilon=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the absolute difference of two arrays as far as it goes beyond a margin.

    y = max(0, |x0 - x1| - epsilon)

    Args:
        x0: Prediction. Shape any.
        x1: Target. Shape any.
        epsilon: Margin within which the loss is 0.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Loss of every element; take its mean to train. Shape common shape of the inputs.

    Notes:
        The inputs broadcast against each other. The gradient is 0 at the margin itself.

    Example:
        F.epsilon_insensitive_loss(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]), epsilon=1)  # [0.5, 3.5]

    References:
        V. Vapnik (1995), The nature of statistical learning theory.

    Spec: function_spec.yaml, entry EpsilonInsensitiveLoss
    """
    if surplus or unknown:
        refuse(EPSILON_INSENSITIVE_LOSS, surplus, unknown)
    return apply(EPSILON_INSENSITIVE_LOSS, (x0, x1), {"epsilon": epsilon}, outputs)


def kl_multinomial(p=None, q=None, base_axis=1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the Kullback-Leibler divergence of two multinomial distributions.

    D = sum over i of p_i log(p_i / q_i)

    Args:
        p: Probabilities of the source distribution. Shape (N_1, ..., N_k, D_1, ..., D_m).
        q: Probabilities of the target distribution. Shape (N_1, ..., N_k, D_1, ..., D_m).
        base_axis: First axis of the probabilities; those before it are sample axes.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        D: Divergence of each sample. Shape (N_1, ..., N_k, 1).

    Notes:
        Logarithms are taken of 2^-126 at least, so that 0 log 0 is 0; the gradient uses 2^-24 in the place of a 0. Half
        precision is computed in float32.

    Example:
        F.kl_multinomial(nn.Variable((8, 10)), nn.Variable((8, 10))).shape  # (8, 1)

    References:
        S. Kullback, R. A. Leibler (1951), On information and sufficiency.

    Spec: function_spec.yaml, entry KLMultinomial
    """
    if surplus or unknown:
        refuse(KL_MULTINOMIAL, surplus, unknown)
    return apply(KL_MULTINOMIAL, (p, q), {"base_axis": base_axis}, outputs)


def top_n_error(x=None, target=None, axis=None, n=1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Mark the labels whose class is not among the n highest scores.

    output = [number of classes j with x_j >= x_target > n]

    Args:
        x: Scores or probabilities. Shape (N_1, ..., C, ..., N_k).
        target: Labels: numbers of classes from 0 to C - 1. Shape (N_1, ..., 1, ..., N_k).
        axis: Axis of the classes; default: the last.
        n: Number of guesses.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        output: 1 for a mistake, 0 for a hit; the mean is the error rate. Shape (N_1, ..., 1, ..., N_k).

    Notes:
        Classes with the score of the label count against it. A negative label is ignored: its error is 0. A label of C
        or more raises ArgumentError.

    Example:
        F.top_n_error(nn.Variable((8, 10)), nn.Variable((8, 1))).shape  # (8, 1)

    Spec: function_spec.yaml, entry TopNError
    """
    if surplus or unknown:
        refuse(TOP_N_ERROR, surplus, unknown)
    return apply(TOP_N_ERROR, (x, target), {"axis": axis, "n": n}, outputs)


def binary_error(x=None, target=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Mark the probabilities that fall on the other side of 1/2 than their label.

    output = [(x >= 1/2) != (target >= 1/2)]

    Args:
        x: Probabilities. Shape any.
        target: Labels 0 and 1. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        output: 1 for a mistake, 0 for a hit; the mean is the error rate. Shape common shape of the inputs.

    Notes:
        The inputs broadcast against each other.

    Example:
        F.binary_error(nn.Variable((8, 1)), nn.Variable((8, 1))).shape  # (8, 1)

    Spec: function_spec.yaml, entry BinaryError
    """
    if surplus or unknown:
        refuse(BINARY_ERROR, surplus, unknown)
    return apply(BINARY_ERROR, (x, target), {}, outputs)


def confusion_matrix(x=None, target=None, axis=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Count how often each class is predicted for each label.

    output_ij = number of samples with label i whose highest score is that of class j

    Args:
        x: Scores or probabilities. Shape (N_1, ..., C, ..., N_k).
        target: Labels: numbers of classes from 0 to C - 1. Shape (N_1, ..., 1, ..., N_k).
        axis: Axis of the classes; default: the last.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        output: Counts: labels in rows, predictions in columns. Shape (C, C).

    Notes:
        Of equal scores the first class counts. A negative label is not counted. A label of C or more raises
        ArgumentError.

    Example:
        F.confusion_matrix(nn.Variable((8, 10)), nn.Variable((8, 1))).shape  # (10, 10)

    Spec: function_spec.yaml, entry ConfusionMatrix
    """
    if surplus or unknown:
        refuse(CONFUSION_MATRIX, surplus, unknown)
    return apply(CONFUSION_MATRIX, (x, target), {"axis": axis}, outputs)


show_signatures(globals(), SPECS)
