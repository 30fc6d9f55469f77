"""Solvers that look at a parameter as a matrix: Adafactor, and Muon."""

from collections.abc import Sequence
from math import prod
from typing import Final

from nn_core.solvers.adam import move_means
from nn_core.solvers.base import Solver
from nn_core.solvers.layerwise import norm_of
from nn_core.typing import Array, Namespace, Shape

#: Coefficients of the quintic polynomial of Muon (Jordan et al., 2024), which brings singular values close to 1.
_QUINTIC: Final = (3.4445, -4.7750, 2.0315)
_N_ITERATIONS: Final = 5
#: Muon's steps have the root mean square of Adam's, which is about this (Liu et al., 2025, section 2.2).
_USUAL_RMS: Final = 0.2


def as_matrix(shape: Shape) -> tuple[int, int] | None:
    """Return the first axis of a shape and the product of the others; None for fewer than two axes."""
    return (shape[0], prod(shape[1:])) if len(shape) > 1 else None


class Adafactor(Solver, closed=True):
    """Adam without a mean of gradients, whose mean of squares is kept as one number a row and one a column.

    ``rate = min(lr, 1 / sqrt(t)) * max(eps2, rms(w))``, ``b = 1 - t**-decay_exponent``,
    ``row <- b * row + (1 - b) * mean(g**2 + eps1)`` over each row, ``column`` over each column,
    ``u = g / sqrt(row * column / mean(row))``, ``w <- w - rate * u / max(1, rms(u) / clip)``, with the root mean square rms.

    A parameter with more than two axes is a matrix of its first axis and all others; one with fewer axes keeps the mean of
    squares whole.

    Args:
        lr: The largest relative step size; the steps are relative to the size of the parameter.
        decay_exponent: How fast the mean of squares slows down.
        clip: Largest root mean square of a step before it is multiplied by the rate.
        eps1: Added to squares of gradients.
        eps2: Smallest size that a parameter counts with.

    Notes:
        ``weight_decay(rate)`` sets the decay for the next update, ``w <- w - lr * decay * w``; it is 0 otherwise.
        Hyper-parameters of an update kernel: lr, decay_exponent, clip, eps1, eps2, weight decay, t. States: row, column.

    References:
        Shazeer and Stern (2018), Adafactor: adaptive learning rates with sublinear memory cost, algorithms 4 to 6.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Adafactor(lr=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.6]
    """

    lr: float
    decay_exponent: float
    clip: float
    eps1: float
    eps2: float

    hyper_names = ("lr", "decay_exponent", "clip", "eps1", "eps2")
    state_names = ("row", "column")
    state_kinds = ("rows or whole", "columns or number")
    decay_name = "weight_decay"

    def __init__(
        self, lr: float = 0.01, decay_exponent: float = 0.8, clip: float = 1.0, eps1: float = 1e-30, eps2: float = 0.001
    ) -> None:
        super().__init__(lr, decay_exponent, clip, eps1, eps2)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and the means of squares in place."""
        row, column = states
        lr, exponent, clip, eps1, eps2, decay, t = hyper
        if not w.size:
            return
        kept = 1 - t**-exponent
        square = xp.square(g) + eps1
        matrix = as_matrix(w.shape)
        if matrix is None:
            row[...] = kept * row + (1 - kept) * square
            u = g / xp.sqrt(row)
        else:
            square = xp.reshape(square, matrix)
            row[...] = kept * row + (1 - kept) * xp.mean(square, axis=1)
            column[...] = kept * column + (1 - kept) * xp.mean(square, axis=0)
            variance = xp.expand_dims(row / xp.mean(row), 1) * xp.expand_dims(column, 0)
            u = g / xp.sqrt(xp.reshape(variance, w.shape))
        excess = norm_of(xp, u) / (w.size**0.5 * clip)
        rate = min(lr, t**-0.5) * max(eps2, norm_of(xp, w) / w.size**0.5)
        w -= lr * decay * w + (rate if excess <= 1 else rate / excess) * u  # excess: NaN must show


class Muon(Solver, closed=True):
    """Momentum whose step is made orthogonal: all singular values of the step of a matrix are close to 1.

    For a matrix: ``m <- momentum * m + (1 - momentum) * g``, ``u = momentum * m + (1 - momentum) * g``,
    ``w <- w - lr * (0.2 * sqrt(max(rows, columns)) * O(u) + decay * w)``, where O takes five Newton-Schulz iterations to the
    closest orthogonal matrix. A parameter with more than two axes is a matrix of its first axis and all others. Parameters
    with fewer axes, such as biases, are updated by Adam with decay; steps of both have about the same size, so that one
    learning rate fits both.

    Args:
        lr: Learning rate, as one would choose it for Adam.
        momentum: Part of the mean of gradients that is kept, for matrices.
        beta1: Part of the mean of gradients that is kept, for others.
        beta2: Part of the mean of squares that is kept, for others.
        eps: Keeps the divisor from zero, for others.

    Notes:
        The paper keeps embeddings and the last layer with Adam, too: give those to another solver. ``weight_decay(rate)`` sets
        the decay for the next update; it is 0 otherwise. Hyper-parameters of an update kernel: lr, momentum, beta1, beta2,
        eps, weight decay, t. States: mean, and var, which is one number for matrices.

    References:
        Jordan et al. (2024), Muon: an optimizer for hidden layers in neural networks; Liu et al. (2025), Muon is scalable for
        LLM training, equation 4.

    Example:
        >>> x = nn.Variable.from_numpy_array([[4.0]], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Muon(lr=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(2))
        [[3.99]]
    """

    lr: float
    momentum: float
    beta1: float
    beta2: float
    eps: float

    hyper_names = ("lr", "momentum", "beta1", "beta2", "eps")
    state_names = ("mean", "var")
    state_kinds = ("whole", "number or whole")
    decay_name = "weight_decay"

    def __init__(
        self, lr: float = 0.001, momentum: float = 0.95, beta1: float = 0.9, beta2: float = 0.95, eps: float = 1e-08
    ) -> None:
        super().__init__(lr, momentum, beta1, beta2, eps)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and the means in place."""
        m, v = states
        lr, momentum, beta1, beta2, eps, decay, t = hyper
        matrix = as_matrix(w.shape)
        if matrix is None:
            move_means(m, v, g, beta1, beta2)
            u = m / (1 - beta1**t) / (xp.sqrt(v / (1 - beta2**t)) + eps)
        else:
            m[...] = momentum * m + (1 - momentum) * g
            looked_ahead = xp.reshape(momentum * m + (1 - momentum) * g, matrix)
            u = xp.reshape(_USUAL_RMS * max(matrix) ** 0.5 * orthogonal(xp, looked_ahead), w.shape)
        w -= lr * (u + decay * w)


def orthogonal(xp: Namespace, matrix: Array) -> Array:
    """Return about the closest orthogonal matrix, by five Newton-Schulz iterations; zero for zero."""
    a, b, c = _QUINTIC
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = xp.permute_dims(matrix, (1, 0)) if is_tall else matrix
    x = x / (norm_of(xp, x) + 1e-7)
    for _ in range(_N_ITERATIONS):
        square = xp.matmul(x, xp.permute_dims(x, (1, 0)))
        x = a * x + xp.matmul(b * square + c * xp.matmul(square, square), x)
    return xp.permute_dims(x, (1, 0)) if is_tall else x
