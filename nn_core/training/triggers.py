"""Triggers: when an extension runs, and when training ends.

A trigger is asked once after each iteration. Triggers of the program are functions of the trainer, or subclasses of
`Trigger`; they are combined by ``|`` and ``&``.
"""

import math
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.runtime.schemas import checked_state
from nn_core.errors import ArgumentError

if TYPE_CHECKING:
    from nn_core.training.trainer import Trainer

_UNITS: Final = ("iteration", "epoch", "second", "minute", "hour")
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600}


class Trigger:
    """Base class of triggers: a subclass defines ``__call__(trainer)``, and more if it has a state.

    Example:
        >>> from nn_core.training import Log, Trigger, fit
        >>> class PowersOfTwo(Trigger):
        ...     def __call__(self, trainer):
        ...         return trainer.iteration & (trainer.iteration - 1) == 0
        >>> log = Log("loss")
        >>> log.every = PowersOfTwo()
        >>> _ = fit(lambda x: PF.affine(x, 4), (np.eye(4), np.arange(4)), progress=False, extensions=[log])
        >>> [entry["iteration"] for entry in log.entries]
        [1, 2, 4, 8]
    """

    def __call__(self, trainer: "Trainer") -> bool:
        raise NotImplementedError(f"{type(self).__name__}: a trigger must define __call__(trainer)")

    @property
    def reason(self) -> str:
        """Why it has fired, for the message at the end of training."""
        return "the trigger has fired"

    @property
    def iterations(self) -> int | None:
        """After how many iterations it fires for the first time, if that is known beforehand."""
        return None

    @property
    def epochs(self) -> Fraction | None:
        """After how many epochs it fires for the first time, if that is known beforehand."""
        return None

    def soonest(self, trainer: "Trainer") -> int:
        """Return the first iteration that it may fire after, before which it need not be asked. 0: it is asked each time."""
        return 0

    def start(self, trainer: "Trainer") -> None:
        """Take note of the place at which training starts or is resumed."""

    def start_from_zero(self, trainer: "Trainer") -> None:
        """Take note of the place, for a trigger that says how long training lasts, interruptions included."""
        self.start(trainer)

    def finish(self, trainer: "Trainer") -> None:
        """Take note of the end of training."""

    def get_state(self) -> Any:
        """Return the state that a resumed run needs; None: nothing."""
        return None

    @checked_state
    def set_state(self, state: Any) -> None:
        """Continue from what `get_state` gave."""

    def __or__(self, other: "TriggerLike") -> "Trigger":
        return _Combination([self, as_trigger(other)], any, " or ")

    def __and__(self, other: "TriggerLike") -> "Trigger":
        return _Combination([self, as_trigger(other)], all, " and ")


#: A trigger, or a function of the trainer that serves as one.
TriggerLike: TypeAlias = Trigger | Callable[[Any], object]


def as_trigger(trigger: TriggerLike) -> Trigger:
    """`trigger` as an object of the class.

    Raises:
        ArgumentError: when it is neither a trigger nor a function.
    """
    if isinstance(trigger, Trigger):
        return trigger
    if not callable(trigger):
        raise ArgumentError(f"trigger: must be a trigger such as every(1, 'epoch') or a function, got {trigger!r}")
    return _Function(trigger)


class _Function(Trigger):
    def __init__(self, function: "Callable[[Trainer], object]") -> None:
        self._function = function

    def __call__(self, trainer: "Trainer") -> bool:
        return bool(self._function(trainer))


class _Combination(Trigger):
    """Several triggers; all are asked each time, since each counts what it was asked."""

    def __init__(self, parts: list[Trigger], rule: Callable[[Iterable[object]], bool], word: str) -> None:
        self._parts = parts
        self._rule = rule
        self._word = word
        self._fired: list[bool] = []

    def __call__(self, trainer: "Trainer") -> bool:
        self._fired = [part(trainer) for part in self._parts]
        return self._rule(self._fired)

    @property
    def reason(self) -> str:
        pairs = zip(self._parts, self._fired, strict=False)
        return " and ".join(part.reason for part, fired in pairs if fired) or super().reason

    @property
    def iterations(self) -> int | None:
        known = [part.iterations for part in self._parts]
        numbers = [number for number in known if number is not None]
        if self._rule is any:
            return min(numbers, default=None)
        return max(numbers) if len(numbers) == len(known) else None

    @property
    def epochs(self) -> Fraction | None:
        known = [part.epochs for part in self._parts]
        return min((number for number in known if number is not None), default=None) if self._rule is any else None

    def start(self, trainer: "Trainer") -> None:
        for part in self._parts:
            part.start(trainer)

    def soonest(self, trainer: "Trainer") -> int:
        return min(part.soonest(trainer) for part in self._parts)

    def start_from_zero(self, trainer: "Trainer") -> None:
        for part in self._parts:
            part.start_from_zero(trainer)

    def finish(self, trainer: "Trainer") -> None:
        for part in self._parts:
            part.finish(trainer)

    def get_state(self) -> Any:
        return [part.get_state() for part in self._parts]

    @checked_state
    def set_state(self, state: Any) -> None:
        for part, own in zip(self._parts, state, strict=True):
            part.set_state(own)


class _Clock(Trigger):
    """A trigger that fires when a measure of progress reaches the next of its points: a function of the progress alone."""

    def __init__(self, function: str, unit: str) -> None:
        if unit not in _UNITS:
            raise ArgumentError(f"{function}: unit must be one of {', '.join(_UNITS)}, got {unit!r}")
        self._unit = unit
        self._size = 1
        self._next: float = 0.0

    def start(self, trainer: "Trainer") -> None:
        self._size = trainer.epoch_size
        self._next = self._after(self._now(trainer))

    def start_from_zero(self, trainer: "Trainer") -> None:
        self._size = trainer.epoch_size
        self._next = self._after(0)

    def __call__(self, trainer: "Trainer") -> bool:
        now = trainer.iteration if self._unit == "iteration" else self._now(trainer)
        if now < self._next:
            return False
        self._next = self._after(now)
        return True

    def soonest(self, trainer: "Trainer") -> int:
        if self._next == math.inf:
            return sys.maxsize
        if self._unit == "iteration":
            return int(self._next)
        a_step = trainer.updater.samples_of_a_step if self._unit == "epoch" else None
        if a_step is None:
            return 0
        return trainer.iteration + int(-(-(self._next - trainer.samples) // a_step))

    def _now(self, trainer: "Trainer") -> float:
        """Progress in whole iterations or samples, which are exact, or in seconds."""
        if self._unit == "iteration":
            return trainer.iteration
        return trainer.samples if self._unit == "epoch" else trainer.elapsed_time

    def _in_steps(self, point: Fraction) -> Fraction:
        """`point` of the unit in what `_now` counts."""
        return point * (self._size if self._unit == "epoch" else _SECONDS.get(self._unit, 1))

    def _after(self, now: float) -> float:
        """Return the first point after `now`; infinity if there is none."""
        raise NotImplementedError


class _Every(_Clock):
    def __init__(self, period: float, unit: str) -> None:
        super().__init__("every", unit)
        self._period = _fraction("every", period)
        self._words = f"{period} {unit}{'' if period == 1 else 's'}"

    @property
    def reason(self) -> str:
        return f"{self._words} have passed"

    @property
    def iterations(self) -> int | None:
        return math.ceil(self._period) if self._unit == "iteration" else None

    @property
    def epochs(self) -> Fraction | None:
        return self._period if self._unit == "epoch" else None

    def _after(self, now: float) -> float:
        period = self._in_steps(self._period)
        point = (math.floor(Fraction(now) / period) + 1) * period
        return float(point) if self._unit in _SECONDS else math.ceil(point)


class _At(_Clock):
    def __init__(self, points: Iterable[float], unit: str) -> None:
        super().__init__("at", unit)
        self._points = sorted(_fraction("at", point) for point in points)

    @property
    def iterations(self) -> int | None:
        return math.ceil(self._points[0]) if self._unit == "iteration" and self._points else None

    def _after(self, now: float) -> float:
        points = [self._in_steps(point) for point in self._points]
        index = bisect_right(points, Fraction(now))
        if index == len(points):
            return math.inf
        return float(points[index]) if self._unit in _SECONDS else math.ceil(points[index])


class _Once(Trigger):
    def __init__(self) -> None:
        self._has_fired = False

    def __call__(self, trainer: "Trainer") -> bool:
        fires, self._has_fired = not self._has_fired, True
        return fires

    def get_state(self) -> Any:
        return self._has_fired

    @checked_state
    def set_state(self, state: Any) -> None:
        self._has_fired = bool(state)


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
def every(period: float, unit: str = "iteration") -> Trigger:
    """Fire each time when `period` units more have passed; exact for fractions of epochs, too.

    Args:
        period: A number greater than 0.
        unit: "iteration", "epoch", "second", "minute" or "hour"; time counts on over resumed runs.

    Raises:
        ArgumentError: when an argument is another one.

    Example:
        >>> from nn_core.training import Log, every, fit
        >>> x, t, log = np.eye(4), np.arange(4), Log("loss")
        >>> log.every = every(3, "epoch")
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=9, progress=False, extensions=[log])
        >>> [entry["epoch"] for entry in log.entries]
        [3, 6, 9]
    """
    return _Every(period, unit)


@fitted
def at(*points: float, unit: str = "iteration") -> Trigger:
    """Fire when these points are reached, counted from the start of training.

    Args:
        *points: Numbers greater than 0.
        unit: "iteration", "epoch", "second", "minute" or "hour".

    Raises:
        ArgumentError: when an argument is another one.

    Example:
        >>> from nn_core.training import Log, at, fit
        >>> x, t, log = np.eye(4), np.arange(4), Log("loss")
        >>> log.every = at(1, 5, unit="epoch")
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=9, progress=False, extensions=[log])
        >>> [entry["epoch"] for entry in log.entries]
        [1, 5]
    """
    return _At(points, unit)


@fitted
def once() -> Trigger:
    """Fire after the first iteration, and not again when training is resumed.

    Example:
        >>> from nn_core.training import fit, once
        >>> x, t = np.eye(4), np.arange(4)
        >>> def hello(trainer):
        ...     print("iteration", trainer.iteration)
        >>> hello.every = once()
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), progress=False, extensions=[hello])
        iteration 1
    """
    return _Once()


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


def _fraction(function: str, value: float) -> Fraction:
    try:
        fraction = Fraction(str(value))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{function}: the period must be a number, got {value!r}") from error
    if fraction <= 0:
        raise ArgumentError(f"{function}: the period must be greater than 0, got {value!r}")
    return fraction
