"""Learning rates over the iterations, as files of networks describe them."""

from dataclasses import dataclass
from math import cos, pi
from typing import Any

from nn_core.ext import FileFormatError


@dataclass(frozen=True, slots=True)
class Schedule:
    """The learning rate at each iteration; 0 is the first.

    Attributes:
        initial: the learning rate without a schedule.
        kind: "Polynomial", "Cosine", "Exponential" or "Step"; "" leaves it as it is.
        numbers: what the kind needs.
        warmup_iter: iterations in which the rate rises linearly; 0: none.
    """

    initial: float
    kind: str = ""
    numbers: tuple[float, ...] = ()
    warmup_iter: int = 0

    def get_learning_rate(self, iteration: int) -> float:
        """Return the learning rate at `iteration`."""
        if iteration < self.warmup_iter:
            return self.initial * (iteration + 1) / self.warmup_iter
        if self.kind == "Polynomial":
            max_iter, power = self.numbers
            return float(self.initial * max(1 - iteration / max_iter, 0.0) ** power)
        if self.kind == "Cosine":
            return self.initial * (cos(pi * min(iteration / self.numbers[0], 1.0)) + 1) / 2
        if self.kind == "Exponential":
            gamma, interval = self.numbers
            return float(self.initial * gamma ** (iteration // interval))
        if self.kind == "Step":
            gamma, *steps = self.numbers
            return float(self.initial * gamma ** sum(iteration >= step for step in steps))
        return self.initial


def schedule_of(solver: Any, learning_rate: float, file: str) -> Schedule:
    """Return the schedule of a Solver message.

    Raises:
        FileFormatError: when its kind is unknown.
    """
    warmup = int(solver.linear_warmup_scheduler_param.warmup_iter) if solver.lr_warmup_scheduler_type == "Linear" else 0
    kind = solver.lr_scheduler_type
    if not kind:
        decay, interval = solver.lr_decay or 1.0, solver.lr_decay_interval or 1
        return Schedule(learning_rate, "Exponential" if decay != 1 else "", (decay, interval), warmup)
    numbers: tuple[float, ...]
    if kind == "Polynomial":
        part = solver.polynomial_scheduler_param
        if part.power == 0:
            return Schedule(learning_rate, "", (), warmup)
        numbers = (part.max_iter, part.power)
    elif kind == "Cosine":
        numbers = (solver.cosine_scheduler_param.max_iter,)
    elif kind == "Exponential":
        part = solver.exponential_scheduler_param
        numbers = (part.gamma, part.iter_interval or 1)
    elif kind == "Step":
        part = solver.step_scheduler_param
        numbers = (part.gamma, *part.iter_steps)
    else:
        raise FileFormatError(f"{file}: lr_scheduler_type must be Polynomial, Cosine, Exponential or Step, got {kind!r}")
    return Schedule(learning_rate, kind, numbers, warmup)
