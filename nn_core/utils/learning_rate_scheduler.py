"""Learning rates that change with the iteration.

Example:
    >>> scheduler = LinearWarmupScheduler(CosineScheduler(0.1, max_iter=1000), warmup_iter=10)
    >>> round(scheduler.get_learning_rate(4), 4)
    0.05
"""

# ruff: noqa: A002

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from nn_core.dispatch.attributes import module_attributes
from nn_core.errors import ArgumentError
from nn_core.messages.refusal import described, door

N = TypeVar("N", int, float)


class BaseLearningRateScheduler:
    """Base of learning-rate schedulers.

    Example:
        >>> from nn_core.utils.learning_rate_scheduler import BaseLearningRateScheduler
        >>> class InverseRoot(BaseLearningRateScheduler):
        ...     def get_learning_rate(self, iter):
        ...         return 0.1 / (iter + 1) ** 0.5
        >>> solver = S.Sgd()
        >>> solver.set_learning_rate(InverseRoot().get_learning_rate(99))
        >>> round(solver.learning_rate(), 3)
        0.01
    """

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        raise NotImplementedError(f"{type(self).__name__}: a scheduler must define get_learning_rate(iter)")


class ExponentialScheduler(BaseLearningRateScheduler):
    """Multiply by a factor at the end of each interval: init_lr * gamma ** (iter // iter_interval).

    Args:
        init_lr: Learning rate at first.
        gamma: The factor.
        iter_interval: Number of iterations of an interval.

    Raises:
        ArgumentError: when `init_lr` is negative, or `iter_interval` is less than 1.

    Example:
        >>> from nn_core.utils.learning_rate_scheduler import ExponentialScheduler
        >>> scheduler = ExponentialScheduler(0.8, gamma=0.5, iter_interval=10)
        >>> [scheduler.get_learning_rate(i) for i in (0, 9, 10, 20)]
        [0.8, 0.8, 0.4, 0.2]
    """

    @door
    def __init__(self, init_lr: float, gamma: float, iter_interval: int = 1) -> None:
        self.init_lr = _number("ExponentialScheduler", "init_lr", init_lr, least=0)
        self.gamma = _number("ExponentialScheduler", "gamma", gamma)
        self.iter_interval = _number("ExponentialScheduler", "iter_interval", iter_interval, least=1)

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        return self.init_lr * self.gamma ** (iter // self.iter_interval)


class StepScheduler(BaseLearningRateScheduler):
    """Multiply by a factor at given iterations.

    Args:
        init_lr: Learning rate at first.
        gamma: The factor.
        iter_steps: The iterations from which on the factor is applied once more.

    Raises:
        ArgumentError: when `init_lr` is negative, or `iter_steps` is not a list of numbers.

    Example:
        >>> from nn_core.utils.learning_rate_scheduler import StepScheduler
        >>> scheduler = StepScheduler(1.0, gamma=0.1, iter_steps=[30, 60])
        >>> [round(scheduler.get_learning_rate(i), 2) for i in (0, 30, 60)]
        [1.0, 0.1, 0.01]
    """

    @door
    def __init__(self, init_lr: float, gamma: float, iter_steps: Sequence[int]) -> None:
        self.init_lr = _number("StepScheduler", "init_lr", init_lr, least=0)
        self.gamma = _number("StepScheduler", "gamma", gamma)
        if not isinstance(iter_steps, (Sequence, np.ndarray)):
            raise ArgumentError(f"StepScheduler: iter_steps must be a list of iterations, got {described(iter_steps)}")
        self.iter_steps = [_number("StepScheduler", "each of iter_steps", step) for step in iter_steps]

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        return self.init_lr * self.gamma ** sum(iter >= step for step in self.iter_steps)


class PolynomialScheduler(BaseLearningRateScheduler):
    """Fall to zero by a power: init_lr * (1 - iter / max_iter) ** power, and 0 from `max_iter` on.

    Args:
        init_lr: Learning rate at first.
        max_iter: The iteration at which it reaches zero.
        power: The power; 1 gives a straight line.

    Raises:
        ArgumentError: when `init_lr` is negative, or `max_iter` is less than 1.

    Example:
        >>> from nn_core.utils.learning_rate_scheduler import PolynomialScheduler
        >>> scheduler = PolynomialScheduler(0.1, max_iter=100, power=1)
        >>> [round(scheduler.get_learning_rate(i), 3) for i in (0, 50, 200)]
        [0.1, 0.05, 0.0]
    """

    @door
    def __init__(self, init_lr: float, max_iter: int, power: float) -> None:
        self.init_lr = _number("PolynomialScheduler", "init_lr", init_lr, least=0)
        self.max_iter = _number("PolynomialScheduler", "max_iter", max_iter, least=1)
        self.power = _number("PolynomialScheduler", "power", power)

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        return self.init_lr * max(0.0, 1.0 - iter / self.max_iter) ** self.power


class CosineScheduler(BaseLearningRateScheduler):
    """Fall to zero along half a cosine: init_lr * (1 + cos(pi * iter / max_iter)) / 2.

    Args:
        init_lr: Learning rate at first.
        max_iter: The iteration at which it reaches zero; from there on it rises again.

    Raises:
        ArgumentError: when `init_lr` is negative, or `max_iter` is less than 1.

    Example:
        >>> from nn_core.utils.learning_rate_scheduler import CosineScheduler
        >>> scheduler = CosineScheduler(0.1, max_iter=100)
        >>> [round(scheduler.get_learning_rate(i), 3) for i in (0, 50, 100)]
        [0.1, 0.05, 0.0]

    References:
        Loshchilov and Hutter (2017), SGDR: stochastic gradient descent with warm restarts, without the restarts.
    """

    @door
    def __init__(self, init_lr: float, max_iter: int) -> None:
        self.init_lr = _number("CosineScheduler", "init_lr", init_lr, least=0)
        self.max_iter = _number("CosineScheduler", "max_iter", max_iter, least=1)

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        return self.init_lr * (1.0 + math.cos(math.pi * iter / self.max_iter)) / 2.0


class LinearWarmupScheduler(BaseLearningRateScheduler):
    """Let the learning rate of another scheduler rise from near zero at first.

    Args:
        scheduler: The other scheduler.
        warmup_iter: In iteration i before this one, the learning rate is multiplied by (i + 1) / warmup_iter.

    Raises:
        ArgumentError: when `scheduler` is none, or `warmup_iter` is negative.

    Example:
        >>> from nn_core.utils.learning_rate_scheduler import CosineScheduler, LinearWarmupScheduler
        >>> scheduler = LinearWarmupScheduler(CosineScheduler(0.1, max_iter=1000), warmup_iter=10)
        >>> [round(scheduler.get_learning_rate(i), 3) for i in (0, 4, 9, 500)]
        [0.01, 0.05, 0.1, 0.05]
    """

    @door
    def __init__(self, scheduler: BaseLearningRateScheduler, warmup_iter: int) -> None:
        if not hasattr(scheduler, "get_learning_rate"):
            raise ArgumentError(f"LinearWarmupScheduler: scheduler must be a scheduler, got {described(scheduler)}")
        self.scheduler = scheduler
        self.warmup_iter = _number("LinearWarmupScheduler", "warmup_iter", warmup_iter, least=0)

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        learning_rate = self.scheduler.get_learning_rate(iter)
        return learning_rate * (iter + 1) / self.warmup_iter if iter < self.warmup_iter else learning_rate


def _number(scheduler: str, name: str, value: N, least: float = -math.inf) -> N:
    is_number = hasattr(value, "__float__") and not isinstance(value, str) and not getattr(value, "shape", ())
    if not is_number or not value >= least:
        bound = "" if least == -math.inf else f" of at least {least}"
        raise ArgumentError(f"{scheduler}: {name} must be a number{bound}, got {described(value)}")
    return value


__getattr__, __dir__ = module_attributes(__name__, "schedulers")
