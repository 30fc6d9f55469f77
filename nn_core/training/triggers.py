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


def _fraction(function: str, value: float) -> Fraction:
    try:
        fraction = Fraction(str(value))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{function}: the period must be a number, got {value!r}") from error
    if fraction <= 0:
        raise ArgumentError(f"{function}: the period must be greater than 0, got {value!r}")
    return fraction
