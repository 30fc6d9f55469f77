"""Gradient descent, plain and with momentum."""

from collections.abc import Sequence

from nn_core.solvers.base import Solver
from nn_core.typing import Array, Namespace


class Sgd(Solver, closed=True):
    """Stochastic gradient descent: ``w <- w - lr * g``.

    Args:
        lr: Learning rate.

    Notes:
        Hyper-parameters of an update kernel: lr, t.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Sgd(lr=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.2]
    """

    lr: float

    hyper_names = ("lr",)
    reads_t = False

    def __init__(self, lr: float = 0.001) -> None:
        super().__init__(lr)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` in place."""
        lr, _ = hyper
        w -= lr * g


class Momentum(Solver, closed=True):
    """Gradient descent with a velocity: ``m <- momentum * m + lr * g; w <- w - m``.

    Args:
        lr: Learning rate.
        momentum: Part of the velocity that is kept.

    Notes:
        Hyper-parameters of an update kernel: lr, momentum, t.

    References:
        Qian (1999), On the momentum term in gradient descent learning algorithms.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Momentum(lr=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.2]
    """

    lr: float
    momentum: float

    hyper_names = ("lr", "momentum")
    reads_t = False
    state_names = ("m",)

    def __init__(self, lr: float = 0.001, momentum: float = 0.9) -> None:
        super().__init__(lr, momentum)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and the velocity in place."""
        (m,) = states
        lr, momentum, _ = hyper
        m[...] = momentum * m + lr * g
        w -= m


class Nesterov(Solver, closed=True):
    """Nesterov's accelerated gradient: ``m' = momentum * m - lr * g; w <- w - momentum * m + (1 + momentum) * m'``.

    Args:
        lr: Learning rate.
        momentum: Part of the velocity that is kept.

    Notes:
        Hyper-parameters of an update kernel: lr, momentum, t.

    References:
        Nesterov (1983), A method of solving a convex programming problem with convergence rate O(1/k^2), in the form
        where the parameters are those of the look-ahead point.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Nesterov(lr=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [2.48]
    """

    lr: float
    momentum: float

    hyper_names = ("lr", "momentum")
    reads_t = False
    state_names = ("m",)

    def __init__(self, lr: float = 0.001, momentum: float = 0.9) -> None:
        super().__init__(lr, momentum)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and the velocity in place."""
        (m,) = states
        lr, momentum, _ = hyper
        new_m = momentum * m - lr * g
        w += (1 + momentum) * new_m - momentum * m
        m[...] = new_m


class SgdW(Solver, closed=True):
    """Momentum with decoupled weight decay: as Momentum, then ``w <- w - lr / lr0 * wd * w``.

    The decay follows the schedule ``lr / lr0`` of the learning rate, where ``lr0`` is the one given
    here or, if that is 0, the first other one, and uses the parameters from before the step.

    Args:
        lr: Learning rate.
        momentum: Part of the velocity that is kept.
        wd: Weight decay; ``weight_decay(rate)`` replaces it for the next update.

    Notes:
        Hyper-parameters of an update kernel: lr, momentum, wd, initial lr, t.

    References:
        Loshchilov and Hutter (2019), Decoupled weight decay regularization, algorithm 1.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.SgdW(lr=0.1, wd=0.01)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.16]
    """

    lr: float
    momentum: float
    wd: float

    hyper_names = ("lr", "momentum", "wd")
    reads_t = False
    state_names = ("m",)
    decay_name = "wd"
    keeps_initial_rate = True

    def __init__(self, lr: float = 0.001, momentum: float = 0.9, wd: float = 0.0001) -> None:
        super().__init__(lr, momentum, wd)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and the velocity in place."""
        (m,) = states
        lr, momentum, wd, initial_lr, _ = hyper
        m[...] = momentum * m + lr * g
        w -= m + (lr / initial_lr * wd) * w
