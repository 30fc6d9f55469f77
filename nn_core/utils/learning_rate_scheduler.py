"""Learning rates that change with the iteration.

Example:
    >>> scheduler = LinearWarmupScheduler(CosineScheduler(0.1, max_iter=1000), warmup_iter=10)
    >>> round(scheduler.get_learning_rate(4), 4)
    0.05
"""

# ruff: noqa: A002

import math
from collections.abc import Sequence

from nn_core.dispatch.attributes import module_attributes
from nn_core.errors import ArgumentError


class BaseLearningRateScheduler:
    """Base of learning-rate schedulers."""

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        raise NotImplementedError(f"{type(self).__name__}: a scheduler must define get_learning_rate(iter)")


class ExponentialScheduler(BaseLearningRateScheduler):
    """Multiply by a factor at the end of each interval: init_lr * gamma ** (iter // iter_interval).

    Args:
        init_lr: Learning rate at first.
        gamma: The factor.
        iter_interval: Number of iterations of an interval.
    """

    def __init__(self, init_lr: float, gamma: float, iter_interval: int = 1) -> None:
        self.init_lr = init_lr
        self.gamma = gamma
        self.iter_interval = _at_least_one("ExponentialScheduler", "iter_interval", iter_interval)

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        return self.init_lr * self.gamma ** (iter // self.iter_interval)


class StepScheduler(BaseLearningRateScheduler):
    """Multiply by a factor at given iterations.

    Args:
        init_lr: Learning rate at first.
        gamma: The factor.
        iter_steps: The iterations from which on the factor is applied once more.
    """

    def __init__(self, init_lr: float, gamma: float, iter_steps: Sequence[int]) -> None:
        self.init_lr = init_lr
        self.gamma = gamma
        self.iter_steps = iter_steps

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        return self.init_lr * self.gamma ** sum(iter >= step for step in self.iter_steps)


class PolynomialScheduler(BaseLearningRateScheduler):
    """Fall to zero by a power: init_lr * (1 - iter / max_iter) ** power, and 0 from `max_iter` on.

    Args:
        init_lr: Learning rate at first.
        max_iter: The iteration at which it reaches zero.
        power: The power; 1 gives a straight line.
    """

    def __init__(self, init_lr: float, max_iter: int, power: float) -> None:
        self.init_lr = init_lr
        self.max_iter = _at_least_one("PolynomialScheduler", "max_iter", max_iter)
        self.power = power

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        return self.init_lr * max(0.0, 1.0 - iter / self.max_iter) ** self.power


class CosineScheduler(BaseLearningRateScheduler):
    """Fall to zero along half a cosine: init_lr * (1 + cos(pi * iter / max_iter)) / 2.

    Args:
        init_lr: Learning rate at first.
        max_iter: The iteration at which it reaches zero; from there on it rises again.

    References:
        Loshchilov and Hutter (2017), SGDR: stochastic gradient descent with warm restarts, without the restarts.
    """

    def __init__(self, init_lr: float, max_iter: int) -> None:
        self.init_lr = init_lr
        self.max_iter = _at_least_one("CosineScheduler", "max_iter", max_iter)

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        return self.init_lr * (1.0 + math.cos(math.pi * iter / self.max_iter)) / 2.0


class LinearWarmupScheduler(BaseLearningRateScheduler):
    """Let the learning rate of another scheduler rise from near zero at first.

    Args:
        scheduler: The other scheduler.
        warmup_iter: In iteration i before this one, the learning rate is multiplied by (i + 1) / warmup_iter.
    """

    def __init__(self, scheduler: BaseLearningRateScheduler, warmup_iter: int) -> None:
        self.scheduler = scheduler
        self.warmup_iter = warmup_iter

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate of iteration `iter`, counted from 0."""
        learning_rate = self.scheduler.get_learning_rate(iter)
        return learning_rate * (iter + 1) / self.warmup_iter if iter < self.warmup_iter else learning_rate


def _at_least_one(scheduler: str, name: str, value: int) -> int:
    if value < 1:
        raise ArgumentError(f"{scheduler}: {name} must be at least 1, got {value}")
    return value


__getattr__, __dir__ = module_attributes(__name__, "schedulers")
