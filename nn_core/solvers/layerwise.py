"""Solvers that scale the step of each parameter by the ratio of its norm and the norm of its step."""

from collections.abc import Sequence

from nn_core.solvers.base import Solver
from nn_core.typing import Array, Namespace


class Lars(Solver, closed=True):
    """Momentum with a learning rate of its own for each parameter.

    ``rate = coefficient * |w| / (|g| + decay * |w|)``, ``v <- momentum * v + lr * rate * (g + decay * w)``,
    ``w <- w - v``. ``rate`` is 1 where ``|w| < eps``; a divisor below ``eps`` is raised by ``eps``.

    Args:
        lr: Learning rate.
        momentum: Part of the velocity that is kept.
        coefficient: Trust in the ratio of norms, c.
        eps: Below this a norm counts as zero.

    Notes:
        ``weight_decay(rate)`` sets the decay for the next update; it is 0 otherwise.
        Hyper-parameters of an update kernel: lr, momentum, coefficient, eps, weight decay, t.

    References:
        You, Gitman and Ginsburg (2017), Large batch training of convolutional networks, algorithm 1.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Lars(lr=10)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.96]
    """

    lr: float
    momentum: float
    coefficient: float
    eps: float

    hyper_names = ("lr", "momentum", "coefficient", "eps")
    reads_t = False
    state_names = ("v",)
    decay_name = "weight_decay"

    def __init__(self, lr: float = 0.001, momentum: float = 0.9, coefficient: float = 0.001, eps: float = 1e-06) -> None:
        super().__init__(lr, momentum, coefficient, eps)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and the velocity in place."""
        (v,) = states
        lr, momentum, coefficient, eps, decay, _ = hyper
        w_norm = norm_of(xp, w)
        divisor = norm_of(xp, g) + decay * w_norm
        divisor = divisor + eps if divisor < eps else divisor
        ratio = 1.0 if w_norm < eps else coefficient * w_norm / divisor
        v[...] = momentum * v + (lr * ratio) * (g + decay * w)
        w -= v


class Lamb(Solver, closed=True):
    """Adam whose step has, for each parameter, the length of the parameter.

    ``r = m / (sqrt(v) + eps) + decay * w``,
    ``w <- w - eta * clip(|w|, gamma_l, gamma_u) / |r| * r``.

    Args:
        eta: Learning rate.
        beta1: Part of the mean of gradients that is kept.
        beta2: Part of the mean of squares that is kept.
        gamma_l: Lower bound of the length of a parameter.
        gamma_u: Upper bound of the length of a parameter.
        eps: Keeps the divisor from zero.
        bias_correction: Divide the means by 1 - beta^t.

    Notes:
        ``weight_decay(rate)`` sets the decay for the next update; it is 0 otherwise.
        Hyper-parameters of an update kernel: eta, beta1, beta2, gamma_l, gamma_u, eps, bias_correction (0 or 1),
        weight decay, t. States: mean, var.

    References:
        You et al. (2020), Large batch optimization for deep learning: training BERT in 76 minutes, algorithm 2.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Lamb(eta=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.6]
    """

    eta: float
    beta1: float
    beta2: float
    gamma_l: float
    gamma_u: float
    eps: float
    bias_correction: bool

    hyper_names = ("eta", "beta1", "beta2", "gamma_l", "gamma_u", "eps", "bias_correction")
    state_names = ("mean", "var")
    decay_name = "weight_decay"

    def __init__(
        self,
        eta: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        gamma_l: float = 0.0,
        gamma_u: float = 10.0,
        eps: float = 1e-06,
        bias_correction: bool = False,
    ) -> None:
        super().__init__(eta, beta1, beta2, gamma_l, gamma_u, eps, bias_correction)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and both means in place."""
        m, v = states
        eta, beta1, beta2, gamma_l, gamma_u, eps, bias_correction, decay, t = hyper
        m[...] = beta1 * m + (1 - beta1) * g
        v[...] = beta2 * v + (1 - beta2) * g * g
        m_scale, v_scale = (1 - beta1**t, 1 - beta2**t) if bias_correction else (1.0, 1.0)
        r = (m / m_scale) / (xp.sqrt(v / v_scale) + eps) + decay * w
        r_norm = norm_of(xp, r)
        if r_norm != 0:  # NaN too: a parameter that stood still would not be noticed
            w -= (eta * min(max(norm_of(xp, w), gamma_l), gamma_u) / r_norm) * r


def norm_of(xp: Namespace, x: Array) -> float:
    """Return the Euclidean norm, accumulated in float64."""
    return float(xp.sqrt(xp.sum(xp.square(x), dtype=xp.float64)))
