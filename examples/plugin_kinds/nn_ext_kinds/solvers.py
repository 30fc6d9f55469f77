"""A solver with a multi-tensor kernel, and a learning-rate scheduler."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_core.ext import Array, Namespace, Step
from nn_core.solver import Solver
from nn_core.utils.learning_rate_scheduler import BaseLearningRateScheduler


class SignSgd(Solver):
    """w -= lr sign(g)."""

    hyper_names = ("lr",)

    def __init__(self, lr: float = 0.01) -> None:
        super().__init__(lr)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change one parameter in place."""
        w -= hyper[0] * xp.sign(g)


class SignSgdKernel:
    """All parameters at once; see `nn_core.solvers.update.UpdateKernel`."""

    def prepare(self, sizes: Sequence[int], dtype: str) -> "SignSgdKernel":
        """Every size and dtype is fine."""
        return self

    def bind(self, params: Sequence[Array], grads: Sequence[Array], states: Any, hyper: Array) -> Step:
        """Return a function that changes these arrays each time it is called."""

        def run() -> None:
            for w, g in zip(params, grads, strict=True):
                np.subtract(w, float(hyper[0]) * np.sign(g), out=w)

        return run


SIGN_SGD = SignSgdKernel()


class TriangleScheduler(BaseLearningRateScheduler):
    """Up to `peak` and down again, every 2 `half` iterations."""

    def __init__(self, peak: float, half: int) -> None:
        self.peak, self.half = peak, half

    def get_learning_rate(self, iter: int) -> float:  # noqa: A002  # the name of the interface
        """Return the learning rate of iteration `iter`."""
        position = iter % (2 * self.half)
        return self.peak * min(position, 2 * self.half - position) / self.half
