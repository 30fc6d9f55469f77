"""Losses. As all losses of nn_core they are not reduced: `F.mean` and `F.sum` do that."""

import math

from nn_core.ext import ArgumentError, F, ShapeError, Variable
from nn_ext_contrib.functions.checks import require_ndim, require_same_shape


def bernoulli_nll(x: Variable, y: Variable) -> Variable:
    """Take the negative log-likelihood of Bernoulli variables whose chances are sigmoid(y).

    softplus(y) - x y, which is `F.sigmoid_cross_entropy` with the arguments exchanged and a gradient for both.

    Args:
        x: Observed values, 0 to 1. Any shape.
        y: Logits. The same shape.

    Returns:
        The same shape. Chainer adds them up: `F.sum`.

    Raises:
        ShapeError: when the shapes differ.

    Example:
        >>> x, y = (nn.NdArray.from_numpy_array([value]) for value in (1.0, 0.0))
        >>> round(bernoulli_nll(x, y).data.item(), 4)
        0.6931
    """
    require_same_shape("bernoulli_nll", x=x, y=y)
    return F.softplus(y) - x * y


def gaussian_nll(x: Variable, mean: Variable, ln_var: Variable) -> Variable:
    """Take the negative log-likelihood of Gaussian variables: (ln_var + log 2 pi + (x - mean)^2 exp(-ln_var)) / 2.

    Args:
        x: Observed values. Any shape.
        mean: Means. The same shape.
        ln_var: Logarithms of the variances. The same shape.

    Returns:
        The same shape. Chainer adds them up: `F.sum`.

    Raises:
        ShapeError: when the shapes differ.

    Example:
        >>> x, zero = (nn.NdArray.from_numpy_array([value]) for value in (1.0, 0.0))
        >>> round(gaussian_nll(x, zero, zero).data.item(), 4)
        1.4189
    """
    require_same_shape("gaussian_nll", x=x, mean=mean, ln_var=ln_var)
    return 0.5 * (ln_var + math.log(2 * math.pi) + (x - mean) ** 2 * F.exp(-ln_var))


def gaussian_kl_divergence(mean: Variable, ln_var: Variable) -> Variable:
    """Take the Kullback-Leibler divergence of Gaussian variables from standard ones: (mean^2 + exp(ln_var) - ln_var - 1) / 2.

    Args:
        mean: As in `gaussian_nll`, whose shapes and errors this function has.
        ln_var: Likewise.

    Returns:
        The same shape.

    Example:
        >>> gaussian_kl_divergence(*[nn.NdArray.from_numpy_array([value]) for value in (2.0, 0.0)]).data.tolist()
        [2.0]
    """
    require_same_shape("gaussian_kl_divergence", mean=mean, ln_var=ln_var)
    return 0.5 * (mean**2 + F.exp(ln_var) - ln_var - 1)


def contrastive(x0: Variable, x1: Variable, y: Variable, margin: float = 1.0) -> Variable:
    """Pull similar pairs together and push others apart, as far as a margin.

    (y d^2 + (1 - y) max(margin - d, 0)^2) / 2 with the distance d = |x0 - x1|.

    Args:
        x0: Features. Shape (N, K).
        x1: Features of the partners. Shape (N, K).
        y: 1 for a similar pair, 0 for another. Shape (N).
        margin: Distance beyond which a dissimilar pair costs nothing; above 0.

    Returns:
        Shape (N). Chainer averages: `F.mean`. The gradient is 0 where d = 0.

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when the margin is not above 0.

    Example:
        >>> x0, x1 = (nn.NdArray.from_numpy_array([[value]]) for value in (0.0, 0.5))
        >>> contrastive(x0, x1, nn.NdArray.from_numpy_array([0.0])).data.tolist()
        [0.125]

    References:
        Hadsell et al. (2006), Dimensionality reduction by learning an invariant mapping.
    """
    _require_margin("contrastive", margin)
    require_ndim("contrastive", "x0", x0, 2, "(N, K)")
    require_same_shape("contrastive", x0=x0, x1=x1)
    if y.shape != x0.shape[:1]:
        raise ShapeError(f"contrastive: y must have shape {x0.shape[:1]}, got {y.shape}")
    square = F.sum((x0 - x1) ** 2, axis=1)
    is_apart = F.greater_scalar(square, 0.0)
    distance = F.pow_scalar(square + (1 - is_apart), 0.5) * is_apart
    return 0.5 * (y * square + (1 - y) * F.relu(margin - distance) ** 2)


def triplet(anchor: Variable, positive: Variable, negative: Variable, margin: float = 0.2) -> Variable:
    """Ask of an anchor to be nearer to one example than to another: max(|a - p|^2 - |a - n|^2 + margin, 0).

    Args:
        anchor: Features a. Shape (N, K).
        positive: Features p of examples that are like the anchors. Shape (N, K).
        negative: Features n of examples that are not. Shape (N, K).
        margin: By how much nearer; above 0.

    Returns:
        Shape (N). Chainer averages: `F.mean`.

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when the margin is not above 0.

    Example:
        >>> a, p, n = (nn.NdArray.from_numpy_array([[value]]) for value in (0.0, 1.0, 2.0))
        >>> triplet(a, n, p, margin=0.5).data.tolist()
        [3.5]

    References:
        Schroff et al. (2015), FaceNet, equation 2.
    """
    _require_margin("triplet", margin)
    require_ndim("triplet", "anchor", anchor, 2, "(N, K)")
    require_same_shape("triplet", anchor=anchor, positive=positive, negative=negative)
    near, far = F.sum((anchor - positive) ** 2, axis=1), F.sum((anchor - negative) ** 2, axis=1)
    return F.relu(near - far + margin)


def hinge(x: Variable, t: Variable, norm: str = "L1") -> Variable:
    """Ask of the score of the true class to be above 1, and of all others to be below -1: max(0, 1 - s x)^p, s = 1 or -1.

    Args:
        x: Scores. Shape (N, K).
        t: True classes. Shape (N).
        norm: "L1" for p = 1, "L2" for p = 2.

    Returns:
        Shape (N, K). Chainer adds up and divides by N: `F.sum(y) / N`.

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when the norm is neither.

    Example:
        >>> hinge(nn.NdArray.from_numpy_array([[0.5, 0.0]]), nn.NdArray.from_numpy_array([0])).data.tolist()
        [[0.5, 1.0]]
    """
    if norm not in ("L1", "L2"):
        raise ArgumentError(f"hinge: norm must be 'L1' or 'L2', got {norm!r}")
    require_ndim("hinge", "x", x, 2, "(N, K)")
    if t.shape != x.shape[:1]:
        raise ShapeError(f"hinge: t must have shape {x.shape[:1]}, one class for each row of x, got {t.shape}")
    sign = 2 * F.one_hot(F.reshape(t, (*t.shape, 1)), (x.shape[1],)) - 1
    loss = F.relu(1 - sign * x)
    return loss if norm == "L1" else loss**2


def cross_covariance(y: Variable, z: Variable) -> Variable:
    """Take the covariances between two groups of features: C = (y - mean y)^T (z - mean z) / N.

    Args:
        y: Features. Shape (N, M).
        z: Features. Shape (N, P).

    Returns:
        Shape (M, P). Chainer's loss is half of the sum of the squares: `0.5 * F.sum(C**2)`.

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> y = nn.NdArray.from_numpy_array([[1.0], [-1.0]])
        >>> cross_covariance(y, y).data.tolist()
        [[1.0]]

    References:
        Cheung et al. (2015), Discovering hidden factors of variation in deep networks, equation 3.
    """
    require_ndim("cross_covariance", "y", y, 2, "(N, M)")
    require_ndim("cross_covariance", "z", z, 2, "(N, P)")
    if y.shape[0] != z.shape[0]:
        raise ShapeError(f"cross_covariance: y and z must have as many rows, got {y.shape[0]} and {z.shape[0]}")
    centred = [part - F.mean(part, axis=0, keepdims=True) for part in (y, z)]
    return F.dot(F.transpose(centred[0], (1, 0)), centred[1]) / y.shape[0]


def _require_margin(function: str, margin: float) -> None:
    if not margin > 0:
        raise ArgumentError(f"{function}: margin must be above 0, got {margin}")
