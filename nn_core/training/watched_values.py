"""Triggers that watch a reported value: its best one, and when it no longer improves."""

import math
from typing import TYPE_CHECKING, Any

from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.runtime.schemas import checked_state
from nn_core.errors import ArgumentError
from nn_core.training.triggers import Trigger

if TYPE_CHECKING:
    from nn_core.training.trainer import Trainer


class Watched(Trigger):
    """A trigger that follows the best value of something reported; NaN is never best.

    Attributes:
        key: Name of the value.
        is_seen: Whether it was ever reported.
    """

    def __init__(self, function: str, key: str, mode: str, min_delta: float) -> None:
        if mode not in ("min", "max"):
            raise ArgumentError(f"{function}: mode must be 'min' or 'max', got {mode!r}")
        self._function = function
        self.key = key
        self._sign = 1.0 if mode == "min" else -1.0
        self._min_delta = min_delta
        self._best = math.inf
        self.is_seen = False
        self._known: set[str] = set()

    @property
    def best(self) -> float:
        """The best value so far; infinite before the first."""
        return self._sign * self._best

    def value(self, trainer: "Trainer") -> float | None:
        """Return the values reported in this iteration."""
        observation = trainer.observation
        if self.key not in observation:
            if not self.is_seen:
                self._known.update(observation)
            return None
        self.is_seen = True
        return observation[self.key]

    def judged(self, trainer: "Trainer") -> float:
        """Return the value reported in this iteration, so that smaller is better; NaN where there is none."""
        return self._sign * trainer.observation[self.key] if self.key in trainer.observation else math.nan

    def improves(self, value: float) -> bool:
        """Return whether `value` is the best so far, which it is from now on."""
        if not self._sign * value < self._best - self._min_delta:
            return False
        self._best = self._sign * value
        return True

    def finish(self, trainer: "Trainer") -> None:
        """Refuse a name that nobody has reported.

        Raises:
            ArgumentError: when nobody has.
        """
        if not self.is_seen:
            known = ", ".join(sorted(self._known)) or "nothing"
            raise ArgumentError(f"{self._function}: the key must be one that is reported ({known}), got {self.key!r}")

    def get_state(self) -> Any:
        return {"best": self._best, "is_seen": self.is_seen}

    @checked_state
    def set_state(self, state: Any) -> None:
        self._best, self.is_seen = state["best"], state["is_seen"]


class _Best(Watched):
    def __call__(self, trainer: "Trainer") -> bool:
        value = self.value(trainer)
        return value is not None and self.improves(value)


class _EarlyStop(Watched):
    def __init__(self, key: str, patience: int, mode: str, min_delta: float, check_finite: bool) -> None:
        super().__init__("early_stop", key, mode, min_delta)
        if patience < 1:
            raise ArgumentError(f"early_stop: patience must be at least 1, got {patience}")
        self._patience = patience
        self._check_finite = check_finite
        self._failures = 0
        self._reason = ""

    @property
    def reason(self) -> str:
        return self._reason

    def __call__(self, trainer: "Trainer") -> bool:
        value = self.value(trainer)
        if value is None:  # a run that had stopped stays so when it is resumed
            self._reason = f"{self.key} had not improved on {self.best:g} for {self._failures} times"
            return self._failures >= self._patience
        if self._check_finite and not math.isfinite(value):
            self._reason = f"{self.key} is {value}"
            self._failures = self._patience
            return True
        if self.improves(value):
            self._failures = 0
            return False
        self._failures += 1
        self._reason = f"{self.key} has not improved on {self.best:g} for {self._failures} times"
        return self._failures >= self._patience

    def get_state(self) -> Any:
        return {**super().get_state(), "failures": self._failures}

    @checked_state
    def set_state(self, state: Any) -> None:
        super().set_state(state)
        self._failures = state["failures"]


@fitted
def best(key: str, mode: str, min_delta: float = 0.0) -> Watched:
    """Fire when a reported value is better than all before.

    Args:
        key: Name of the value.
        mode: "min" or "max": which values are better.
        min_delta: By how much it must be better.

    Raises:
        ArgumentError: when `mode` is another one; at the end of training, when nobody has reported `key`.

    Example:
        >>> from nn_core.training import best, fit
        >>> x, t = np.eye(4), np.arange(4)
        >>> def save(trainer):
        ...     nn.save_parameters("best.h5")
        >>> save.every = best("loss", "min")
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), progress=False, extensions=[save])
        >>> nn.load_parameters("best.h5").loaded
        ('affine/W', 'affine/b')
    """
    return _Best("best", key, mode, min_delta)


@fitted
def early_stop(key: str, patience: int, mode: str, min_delta: float = 0.0, check_finite: bool = True) -> Trigger:
    """Fire when a reported value has not become better for `patience` reports in a row, or is not finite.

    Args:
        key: Name of the value.
        patience: Number of reports.
        mode: "min" or "max": which values are better.
        min_delta: By how much it must be better.
        check_finite: Fire at once when the value is NaN or infinite.

    Raises:
        ArgumentError: when an argument is another one; at the end of training, when nobody has reported `key`.

    Example:
        >>> from nn_core.training import Trainer, Updater, early_stop, every
        >>> from nn_core.data import data_iterator_simple
        >>> x = nn.Variable((2, 1))
        >>> loss = F.mean(PF.affine(x, 1) ** 2)
        >>> solver = S.Sgd(0.5)
        >>> solver.set_parameters(nn.get_parameters())
        >>> until = early_stop("loss", 3, "min", min_delta=0.01) | every(1000)
        >>> with data_iterator_simple(lambda i: np.ones(1), 4, 2) as data:
        ...     trainer = Trainer(Updater(data, [x], loss, solver), until, "early")
        ...     trainer.run()
        >>> trainer.iteration < 10
        True
    """
    return _EarlyStop(key, patience, mode, min_delta, check_finite)
