"""Solvers that divide the gradient by a mean of its past squares."""

from collections.abc import Sequence

from nn_core.solvers.base import Solver
from nn_core.typing import Array, Namespace


class Adagrad(Solver, closed=True):
    """Divide by the root of the sum of all squares.

    ``v <- v + g**2``, ``w <- w - lr * g / (sqrt(v) + eps)``.

    Args:
        lr: Learning rate.
        eps: Keeps the divisor from zero.

    Notes:
        Hyper-parameters of an update kernel: lr, eps, t.

    References:
        Duchi, Hazan and Singer (2011), Adaptive subgradient methods for online learning and stochastic optimization.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Adagrad(lr=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.9]
    """

    lr: float
    eps: float

    hyper_names = ("lr", "eps")
    reads_t = False
    state_names = ("v",)

    def __init__(self, lr: float = 0.01, eps: float = 1e-08) -> None:
        super().__init__(lr, eps)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and the sum of squares in place."""
        (v,) = states
        lr, eps, _ = hyper
        v += g * g
        w -= lr * g / (xp.sqrt(v) + eps)


class Adadelta(Solver, closed=True):
    """Scale by the ratio of the root mean squares of past steps and past gradients.

    ``v <- decay * v + (1 - decay) * g**2``, ``d = g * sqrt(s + eps) / sqrt(v + eps)``,
    ``s <- decay * s + (1 - decay) * d**2``, ``w <- w - lr * d``.

    Args:
        lr: Learning rate; 1 is the method of the paper.
        decay: Part of the means that is kept.
        eps: Lets the first steps differ from zero.

    Notes:
        Hyper-parameters of an update kernel: lr, decay, eps, t. States: e_sqr_delta (s), e_sqr_grad (v).

    References:
        Zeiler (2012), ADADELTA: an adaptive learning rate method.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Adadelta()
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.996]
    """

    lr: float
    decay: float
    eps: float

    hyper_names = ("lr", "decay", "eps")
    reads_t = False
    state_names = ("e_sqr_delta", "e_sqr_grad")

    def __init__(self, lr: float = 1.0, decay: float = 0.95, eps: float = 1e-06) -> None:
        super().__init__(lr, decay, eps)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and both means in place."""
        s, v = states
        lr, decay, eps, _ = hyper
        v[...] = decay * v + (1 - decay) * g * g
        delta = g * xp.sqrt(s + eps) / xp.sqrt(v + eps)
        s[...] = decay * s + (1 - decay) * delta * delta
        w -= lr * delta


class RMSprop(Solver, closed=True):
    """Divide by the root of a moving mean of squares.

    ``v <- decay * v + (1 - decay) * g**2``, ``w <- w - lr * g / (sqrt(v) + eps)``.

    Args:
        lr: Learning rate.
        decay: Part of the mean that is kept.
        eps: Keeps the divisor from zero.

    Notes:
        Hyper-parameters of an update kernel: lr, decay, eps, t.

    References:
        Tieleman and Hinton (2012), Neural networks for machine learning, lecture 6.5.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.RMSprop(lr=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.684]
    """

    lr: float
    decay: float
    eps: float

    hyper_names = ("lr", "decay", "eps")
    reads_t = False
    state_names = ("v",)

    def __init__(self, lr: float = 0.001, decay: float = 0.9, eps: float = 1e-08) -> None:
        super().__init__(lr, decay, eps)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and the mean in place."""
        (v,) = states
        lr, decay, eps, _ = hyper
        v[...] = decay * v + (1 - decay) * g * g
        w -= lr * g / (xp.sqrt(v) + eps)


class RMSpropGraves(Solver, closed=True):
    """RMSprop by the variance of the gradient instead of its mean square, with momentum.

    ``n <- decay * n + (1 - decay) * g**2``, ``a <- decay * a + (1 - decay) * g``,
    ``d <- momentum * d - lr * g / sqrt(n - a**2 + eps)``, ``w <- w + d``.

    Args:
        lr: Learning rate.
        decay: Part of the means that is kept.
        momentum: Part of the last step that is kept.
        eps: Keeps the divisor from zero.

    Notes:
        Hyper-parameters of an update kernel: lr, decay, momentum, eps, t. States: n, g (a), d.

    References:
        Graves (2013), Generating sequences with recurrent neural networks, equations 38 to 45.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.RMSpropGraves(lr=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.541]
    """

    lr: float
    decay: float
    momentum: float
    eps: float

    hyper_names = ("lr", "decay", "momentum", "eps")
    reads_t = False
    state_names = ("n", "g", "d")

    def __init__(self, lr: float = 0.0001, decay: float = 0.95, momentum: float = 0.9, eps: float = 0.0001) -> None:
        super().__init__(lr, decay, momentum, eps)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w`, both means and the last step in place."""
        n, a, d = states
        lr, decay, momentum, eps, _ = hyper
        n[...] = decay * n + (1 - decay) * g * g
        a[...] = decay * a + (1 - decay) * g
        d[...] = momentum * d - lr * g / xp.sqrt(n - a * a + eps)
        w += d
