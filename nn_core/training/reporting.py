"""Reported values: code reports what is worth watching, and observers collect it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.runtime.context_values import Ambient
from nn_core.errors import ArgumentError, ShapeError
from nn_core.training.summary import Summary
from nn_core.variable import Variable


class Observation(Mapping[str, float]):
    """The values reported since it was cleared: the weighted mean of each name.

    Args:
        lazy: Read a Variable or NdArray that was reported once only when somebody asks for it, or calls `settle`, so that
            nothing waits for a device when nobody does. For owners that call `clear` before it is computed again.

    Example:
        >>> from nn_core.training import observing, report
        >>> with observing() as observation:
        ...     report({"loss": 0.5, "accuracy": nn.Variable.from_numpy_array(0.75)})
        >>> observation["loss"], observation["accuracy"]
        (0.5, 0.75)
    """

    __slots__ = ("_is_lazy", "_pending", "_summaries")

    @fitted
    def __init__(self, lazy: bool = False) -> None:
        self._is_lazy = lazy
        self._pending: dict[str, tuple[Any, float]] = {}
        self._summaries: dict[str, Summary] = {}

    def add(self, name: str, value: Any, weight: float = 1.0) -> None:
        """Take in a number, or an array or Variable of one element.

        Raises:
            ArgumentError: when a Variable or NdArray that waits to be read is reported again under its name.
        """
        pending = self._pending
        if self._is_lazy and name not in pending and name not in self._summaries:
            pending[name] = (value, weight)
            return
        if name in pending and pending[name][0] is value and isinstance(value, (Variable, NdArray)):
            raise ArgumentError(
                f"report: what is reported twice in an iteration must not overwrite itself, got the same "
                f"{type(value).__name__} for {name}\n  hint: report the number, such as float({name}.d)"
            )
        number = _number(name, value)
        if name not in self:
            self._summaries[name] = Summary()
        self._summary(name).add(number, weight)

    def clear(self) -> None:
        """Forget everything."""
        self._pending.clear()
        if self._summaries:
            self._summaries.clear()

    def settle(self) -> None:
        """Read the values that nobody has asked for, before something else is written to their memory."""
        for name in tuple(self._pending):
            self._summary(name)

    def weight(self, name: str) -> float:
        """Return the sum of the weights of a name."""
        return self._pending[name][1] if name in self._pending else self._summaries[name].weight

    def __getitem__(self, name: str) -> float:
        return self._summary(name).mean

    def __iter__(self) -> Iterator[str]:
        return iter({**self._pending, **self._summaries})

    def __len__(self) -> int:
        return len(self._pending) + len(self._summaries)

    def __contains__(self, name: object) -> bool:
        return name in self._pending or name in self._summaries

    def _summary(self, name: str) -> Summary:
        if name in self._pending:
            value, weight = self._pending.pop(name)
            self._summaries[name] = Summary()
            self._summaries[name].add(_number(name, value), weight)
        return self._summaries[name]


#: The present observation, and the scope in front of names.
_OBSERVER: Ambient[tuple[Observation | None, str]] = Ambient("observer", (None, ""))


def report(values: Mapping[str, Any], weight: float = 1.0) -> None:
    """Report values to the current observer, if there is one.

    Args:
        values: Numbers, or arrays or Variables of one element, by name. A Variable that is computed several times in an
            iteration of a trainer must be given as a number, since it may be read later.
        weight: How much they count in means: the number of samples of a batch.

    Raises:
        ArgumentError: when a name is not a string, or the same Variable is reported twice under it in an iteration.
        ShapeError: when an array has not one element; in a trainer, for those of Variables, when it is read.

    Example:
        >>> from nn_core.training import observing, report
        >>> with observing() as observation:
        ...     report({"loss": 0.5}, weight=3)
        ...     report({"loss": 0.9}, weight=1)
        >>> round(observation["loss"], 3)
        0.6
    """
    observation, scope = _OBSERVER.get()
    if observation is None:
        return
    for name, value in values.items():
        if not isinstance(name, str):
            raise ArgumentError(f"report: the names must be strings, got {name!r}")
        observation.add(scope + name, _number(name, value) if isinstance(value, np.ndarray) else value, weight)


def report_value(name: str, value: Any, weight: float) -> None:
    """Report one value, as `report` does, for code that runs too often for a dictionary."""
    observation, scope = _OBSERVER.get()
    if observation is not None:
        observation.add(scope + name, value, weight)


@fitted
@contextmanager
def report_scope(name: str) -> Iterator[None]:
    """Put ``name/`` in front of what is reported inside a ``with`` block.

    Example:
        >>> from nn_core.training import observing, report, report_scope
        >>> with observing() as observation, report_scope("validation"):
        ...     report({"loss": 0.5})
        >>> dict(observation)
        {'validation/loss': 0.5}
    """
    observation, scope = _OBSERVER.get()
    with _OBSERVER.scope((observation, f"{scope}{name}/")):
        yield


@contextmanager
def observing(observation: Observation | None = None) -> Iterator[Observation]:
    """Collect what is reported inside a ``with`` block.

    Example:
        >>> from nn_core.training import observing, report
        >>> with observing() as seen:
        ...     report({"loss": 1.0}, weight=30)
        ...     report({"loss": 2.0}, weight=10)
        >>> seen["loss"]
        1.25
    """
    observation = Observation() if observation is None else observation
    with _OBSERVER.scope((observation, _OBSERVER.get()[1])):
        yield observation


def reported(observation: Observation, name: str) -> float:
    """Return a value that was reported in the present scope."""
    return observation[_OBSERVER.get()[1] + name]


def report_again(seen: Observation) -> None:
    """Report to the current observer what another one has collected."""
    observation, _ = _OBSERVER.get()
    if observation is None:
        return
    for name in seen:
        observation.add(name, seen[name], seen.weight(name))


def _number(name: str, value: Any) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, Variable):
        value = value.data
    if isinstance(value, NdArray):
        value = value.get_data("r")
    values = np.asarray(value, np.float64)
    if values.size != 1:
        raise ShapeError(f"report: {name} must be one number, got an array of shape {values.shape}")
    return float(values.reshape(()))
