"""RAdam and NAdam: Adam with a rectified step size, and with a step in which the gradient is looked ahead."""

import math
from collections.abc import Sequence

from nn_core.solvers.adam import move_means, rectification
from nn_core.solvers.base import Solver
from nn_core.typing import Array, Namespace


class RAdam(Solver, closed=True):
    """Adam whose step size is rectified for the few gradients that the mean of squares knows at first.

    ``m <- beta1 * m + (1 - beta1) * g``, ``v <- beta2 * v + (1 - beta2) * g**2``,
    ``w <- w - alpha * r * m / (1 - beta1**t) / (sqrt(v / (1 - beta2**t)) + eps)`` with
    ``r = sqrt((p - 4) (p - 2) p0 / ((p0 - 4) (p0 - 2) p))``, ``p0 = 2 / (1 - beta2) - 1`` and
    ``p = p0 - 2 t beta2**t / (1 - beta2**t)``. While ``p`` is at most 4, ``w <- w - alpha * m / (1 - beta1**t)``.

    Args:
        alpha: Step size.
        beta1: Part of the mean of gradients that is kept.
        beta2: Part of the mean of squares that is kept.
        eps: Keeps the divisor from zero.

    Notes:
        It takes the place of a warm-up of Adam. Hyper-parameters of an update kernel: alpha, beta1, beta2, eps, t. States:
        mean (m), var (v).

    References:
        Liu et al. (2020), On the variance of the adaptive learning rate and beyond, algorithm 2.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.RAdam(alpha=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.2]
    """

    alpha: float
    beta1: float
    beta2: float
    eps: float

    hyper_names = ("alpha", "beta1", "beta2", "eps")
    state_names = ("mean", "var")

    def __init__(self, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08) -> None:
        super().__init__(alpha, beta1, beta2, eps)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and both means in place."""
        m, v = states
        alpha, beta1, beta2, eps, t = hyper
        move_means(m, v, g, beta1, beta2)
        rate = alpha / (1 - beta1**t)
        factor = rectification(beta2, t)
        w -= rate * m if factor is None else rate * factor * m / (xp.sqrt(v) / math.sqrt(1 - beta2**t) + eps)


class NAdam(Solver, closed=True):
    """Adam with Nesterov's momentum: the step has the mean as the next gradient will move it.

    ``m <- beta1 * m + (1 - beta1) * g``, ``v <- beta2 * v + (1 - beta2) * g**2``,
    ``a = beta1 * m / (1 - beta1**(t + 1)) + (1 - beta1) * g / (1 - beta1**t)``,
    ``w <- w - alpha * a / (sqrt(v / (1 - beta2**t)) + eps)``.

    Args:
        alpha: Step size.
        beta1: Part of the mean of gradients that is kept.
        beta2: Part of the mean of squares that is kept.
        eps: Keeps the divisor from zero.

    Notes:
        `beta1` is the same at all steps, the simplest of the paper's schedules. Hyper-parameters of an update kernel: alpha,
        beta1, beta2, eps, t. States: mean (m), var (v).

    References:
        Dozat (2016), Incorporating Nesterov momentum into Adam, algorithm 8.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.NAdam(alpha=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.853]
    """

    alpha: float
    beta1: float
    beta2: float
    eps: float

    hyper_names = ("alpha", "beta1", "beta2", "eps")
    state_names = ("mean", "var")

    def __init__(self, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08) -> None:
        super().__init__(alpha, beta1, beta2, eps)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and both means in place."""
        m, v = states
        alpha, beta1, beta2, eps, t = hyper
        move_means(m, v, g, beta1, beta2)
        ahead = beta1 / (1 - beta1 ** (t + 1)) * m + (1 - beta1) / (1 - beta1**t) * g
        w -= alpha * ahead / (xp.sqrt(v) / math.sqrt(1 - beta2**t) + eps)
