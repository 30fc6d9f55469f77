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

from nn_core.engine.dispatch.attributes import module_attributes
from nn_core.engine.error_messages.refusal import described, door, fitted_methods
from nn_core.errors import ArgumentError
from nn_core.logger import logger

N = TypeVar("N", int, float)


@fitted_methods()
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
        """Return the learning rate of iteration `iter`, counted from 0."""
        raise NotImplementedError(f"{type(self).__name__}: a scheduler must define get_learning_rate(iter)")


@fitted_methods()
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
        """Return the learning rate of iteration `iter`, counted from 0."""
        return self.init_lr * self.gamma ** (iter // self.iter_interval)


@fitted_methods()
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
        """Return the learning rate of iteration `iter`, counted from 0."""
        return self.init_lr * self.gamma ** sum(iter >= step for step in self.iter_steps)


@fitted_methods()
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
        """Return the learning rate of iteration `iter`, counted from 0."""
        return self.init_lr * max(0.0, 1.0 - iter / self.max_iter) ** self.power


@fitted_methods()
class CosineScheduler(BaseLearningRateScheduler):
    """Fall to zero along half a cosine: init_lr * (1 + cos(pi * iter / max_iter)) / 2.

    Args:
        init_lr: Learning rate at first.
        max_iter: The iteration at which it reaches zero; from there on it rises again, of which one warning is logged.

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
        self._has_warned = False

    def get_learning_rate(self, iter: int) -> float:
        """Return the learning rate of iteration `iter`, counted from 0."""
        if iter > self.max_iter and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "CosineScheduler: iter must be at most max_iter (%s) for a rate that falls, got %s, where it rises again\n"
                "  hint: end training at max_iter; CosineRestartsScheduler starts again at the full rate",
                self.max_iter, iter,
            )  # fmt: skip
        return _along_cosine(self.init_lr, 0.0, iter / self.max_iter)


@fitted_methods()
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
        """Return the learning rate of iteration `iter`, counted from 0."""
        learning_rate = self.scheduler.get_learning_rate(iter)
        return learning_rate * (iter + 1) / self.warmup_iter if iter < self.warmup_iter else learning_rate


@fitted_methods()
class OneCycleScheduler(BaseLearningRateScheduler):
    """Rise to a large learning rate and fall far below the first one, along half a cosine each; then stay there.

    Args:
        max_lr: The largest learning rate.
        max_iter: The iteration of the smallest one.
        warmup: Share of `max_iter` in which it rises.
        div_factor: It starts at max_lr / div_factor.
        final_div_factor: It ends at max_lr / (div_factor * final_div_factor).

    Raises:
        ArgumentError: when `max_lr` is negative, `max_iter` or a factor is less than 1, or `warmup` is not from 0 to 1.

    Example:
        >>> from nn_core.utils.learning_rate_scheduler import OneCycleScheduler
        >>> scheduler = OneCycleScheduler(1.0, max_iter=100, warmup=0.25, div_factor=10)
        >>> [round(scheduler.get_learning_rate(i), 3) for i in (0, 25, 62, 100, 200)]
        [0.1, 1.0, 0.51, 0.0, 0.0]

    References:
        Smith and Topin (2018), Super-convergence: very fast training of neural networks using large learning rates.
    """

    @door
    def __init__(
        self, max_lr: float, max_iter: int, warmup: float = 0.3, div_factor: float = 25.0, final_div_factor: float = 1e4
    ) -> None:
        self.max_lr = _number("OneCycleScheduler", "max_lr", max_lr, least=0)
        self.max_iter = _number("OneCycleScheduler", "max_iter", max_iter, least=1)
        self.div_factor = _number("OneCycleScheduler", "div_factor", div_factor, least=1)
        self.final_div_factor = _number("OneCycleScheduler", "final_div_factor", final_div_factor, least=1)
        if not 0 <= warmup <= 1:
            raise ArgumentError(f"OneCycleScheduler: warmup must be a number from 0 to 1, got {described(warmup)}")
        self.warmup = warmup

    def get_learning_rate(self, iter: int) -> float:
        """Return the learning rate of iteration `iter`, counted from 0."""
        first, top = self.max_lr / self.div_factor, self.warmup * self.max_iter
        if iter < top:
            return _along_cosine(first, self.max_lr, iter / top)
        length = self.max_iter - top
        return _along_cosine(self.max_lr, first / self.final_div_factor, min((iter - top) / length, 1) if length else 1)


@fitted_methods()
class CyclicScheduler(BaseLearningRateScheduler):
    """Go up and down between two learning rates, along straight lines.

    Args:
        base_lr: The smallest learning rate, that of the first iteration.
        max_lr: The largest one.
        half_cycle: Iterations of the way up, and of the way down.

    Raises:
        ArgumentError: when a rate is negative, `max_lr` is less than `base_lr`, or `half_cycle` is less than 1.

    Example:
        >>> from nn_core.utils.learning_rate_scheduler import CyclicScheduler
        >>> scheduler = CyclicScheduler(0.1, 0.5, half_cycle=4)
        >>> [round(scheduler.get_learning_rate(i), 2) for i in (0, 2, 4, 6, 8)]
        [0.1, 0.3, 0.5, 0.3, 0.1]

    References:
        Smith (2017), Cyclical learning rates for training neural networks.
    """

    @door
    def __init__(self, base_lr: float, max_lr: float, half_cycle: int) -> None:
        self.base_lr = _number("CyclicScheduler", "base_lr", base_lr, least=0)
        self.max_lr = _number("CyclicScheduler", "max_lr", max_lr, least=base_lr)
        self.half_cycle = _number("CyclicScheduler", "half_cycle", half_cycle, least=1)

    def get_learning_rate(self, iter: int) -> float:
        """Return the learning rate of iteration `iter`, counted from 0."""
        height = 1 - abs(iter / self.half_cycle % 2 - 1)
        return self.base_lr + (self.max_lr - self.base_lr) * height


@fitted_methods()
class CosineRestartsScheduler(BaseLearningRateScheduler):
    """Fall along half a cosine, and start again; each cycle may be longer than the one before.

    Args:
        init_lr: Learning rate at the beginning of each cycle.
        cycle: Iterations of the first cycle.
        growth: By how much each cycle is longer.
        min_lr: The learning rate that the ends of cycles come near.

    Raises:
        ArgumentError: when `init_lr` is less than `min_lr`, a rate is negative, or `cycle` or `growth` is less than 1.

    Example:
        >>> from nn_core.utils.learning_rate_scheduler import CosineRestartsScheduler
        >>> scheduler = CosineRestartsScheduler(1.0, cycle=4, growth=2)
        >>> [round(scheduler.get_learning_rate(i), 2) for i in (0, 2, 4, 8, 12)]
        [1.0, 0.5, 1.0, 0.5, 1.0]

    References:
        Loshchilov and Hutter (2017), SGDR: stochastic gradient descent with warm restarts.
    """

    @door
    def __init__(self, init_lr: float, cycle: int, growth: float = 1.0, min_lr: float = 0.0) -> None:
        self.min_lr = _number("CosineRestartsScheduler", "min_lr", min_lr, least=0)
        self.init_lr = _number("CosineRestartsScheduler", "init_lr", init_lr, least=min_lr)
        self.cycle = _number("CosineRestartsScheduler", "cycle", cycle, least=1)
        self.growth = _number("CosineRestartsScheduler", "growth", growth, least=1)

    def get_learning_rate(self, iter: int) -> float:
        """Return the learning rate of iteration `iter`, counted from 0."""
        start, length = 0.0, float(self.cycle)
        while iter >= start + length and self.growth > 1:
            start, length = start + length, length * self.growth
        return _along_cosine(self.init_lr, self.min_lr, (iter - start) % length / length)


def _along_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1.0 + math.cos(math.pi * share)) / 2.0


def _number(scheduler: str, name: str, value: N, least: float = -math.inf) -> N:
    is_number = hasattr(value, "__float__") and not isinstance(value, str) and not getattr(value, "shape", ())
    if not is_number or not value >= least:
        bound = "" if least == -math.inf else f" of at least {least}"
        raise ArgumentError(f"{scheduler}: {name} must be a number{bound}, got {described(value)}")
    return value


__getattr__, __dir__ = module_attributes(__name__, "schedulers")
