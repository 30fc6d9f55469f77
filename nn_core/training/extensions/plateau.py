"""Learning rates that fall when a reported value no longer gets better."""

import math
from collections.abc import Mapping
from typing import Any

from nn_core.engine.error_messages.refusal import checked_count, fitted, fitted_methods
from nn_core.engine.runtime.schemas import checked_state
from nn_core.errors import ArgumentError
from nn_core.logger import logger
from nn_core.solvers.base import Solver
from nn_core.training.extensions.averages import Averages
from nn_core.training.trainer import Trainer


@fitted_methods()
class ReduceOnPlateau(Averages):
    """Multiply the learning rate by a factor when the mean of a reported value has not become better for some epochs.

    Extend a trainer by it after what reports the value, such as an `Evaluator`, or give it to ``fit(schedule=...)``.
    Elsewhere, call ``update(value, solver)``. Checkpoints keep what it knows.

    Args:
        key: Name of the value, such as "validation/loss".
        factor: Between 0 and 1.
        patience: Number of values in a row without improvement after which the rate falls.
        mode: "min" or "max": which values are better.
        threshold: Relative change of the best value that counts as improvement.
        cooldown: Number of values after a reduction that do not count.
        min_lr: The rate does not fall below.
        solver: Name of the solver, when the updater has several.

    Raises:
        ArgumentError: when an argument is out of range; at the end of training, when nobody has reported `key`.

    Example:
        >>> from nn_core.training import ReduceOnPlateau
        >>> solver, plateau = S.Sgd(0.1), ReduceOnPlateau("loss", factor=0.5, patience=2)
        >>> for loss in (1.0, 0.9, 0.9, 0.95, 0.7):
        ...     plateau.update(loss, solver)
        >>> solver.learning_rate()
        0.05
    """

    phase = "read"

    @fitted
    def __init__(
        self,
        key: str,
        factor: float = 0.1,
        patience: int = 10,
        mode: str = "min",
        threshold: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
        solver: str = "main",
    ) -> None:
        if not 0 < factor < 1:
            raise ArgumentError(f"ReduceOnPlateau: factor must be between 0 and 1, got {factor!r}")
        if mode not in ("min", "max"):
            raise ArgumentError(f"ReduceOnPlateau: mode must be 'min' or 'max', got {mode!r}")
        for name, value in (("threshold", threshold), ("cooldown", cooldown), ("min_lr", min_lr)):
            if not value >= 0:
                raise ArgumentError(f"ReduceOnPlateau: {name} must be at least 0, got {value!r}")
        super().__init__((key,))
        self._key = key
        self._is_seen = False
        self._factor = factor
        self._patience = checked_count("ReduceOnPlateau: patience", patience)
        self._sign = 1.0 if mode == "min" else -1.0
        self._threshold = threshold
        self._cooldown = cooldown
        self._min_lr = min_lr
        self._solver = solver
        self._best = math.inf
        self._failures = 0
        self._pause = 0

    def __call__(self, trainer: Trainer) -> None:
        means = self.entry(trainer)
        if self._key in means:
            self._is_seen = True
            self.update(means[self._key], trainer.updater.solvers[self._solver])

    def update(self, value: float, solver: Solver) -> None:
        """Take in a value; NaN is no improvement."""
        needed = self._threshold * abs(self._best) if math.isfinite(self._best) else 0.0
        if self._sign * value < self._best - needed:
            self._best = self._sign * value
            self._failures = 0
        else:
            self._failures += 1
        if self._pause:
            self._pause -= 1
            self._failures = 0
        if self._failures >= self._patience:
            self._reduce(solver)

    def finish(self, trainer: Trainer) -> None:
        """Refuse a name that nobody has reported.

        Raises:
            ArgumentError: when there was no value.
        """
        if not self._is_seen:
            known = ", ".join(sorted(trainer.observation)) or "nothing"
            raise ArgumentError(f"ReduceOnPlateau: the key must be one that is reported ({known}), got {self._key!r}")

    def _reduce(self, solver: Solver) -> None:
        self._failures, self._pause = 0, self._cooldown
        rate = solver.learning_rate()
        reduced = max(rate * self._factor, self._min_lr)
        if reduced < rate:
            solver.set_learning_rate(reduced)
            logger.info("ReduceOnPlateau: the learning rate falls from %g to %g, since %s stays", rate, reduced, self._key)

    def get_state(self) -> dict[str, Any]:
        """Return the best value, and what is counted; the learning rate is the solver's."""
        own = {"best": self._best, "failures": self._failures, "pause": self._pause, "is_seen": self._is_seen}
        return {**super().get_state(), **own}

    @checked_state
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        super().set_state(state)
        self._best, self._failures = state["best"], state["failures"]
        self._pause, self._is_seen = state["pause"], state["is_seen"]
