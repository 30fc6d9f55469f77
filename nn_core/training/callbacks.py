"""Functions that `fit` calls after each epoch."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError
from nn_core.training.extensions import Log
from nn_core.training.trainer import Trainer

#: ``callback(epoch, values)``: the number of epochs so far, and the means of the last one. True ends training.
Callback: TypeAlias = Callable[[int, Mapping[str, float]], object]


class Callbacks:
    """An extension that calls functions with what a log has written.

    Args:
        log: A log that is an extension of the trainer before this one.
        functions: The functions.

    Raises:
        ArgumentError: when they are something else than functions.
    """

    def __init__(self, log: Log, functions: Sequence[Callback]) -> None:
        if callable(functions) or not all(callable(function) for function in functions):
            raise ArgumentError(f"fit: callbacks must be a list of functions of epoch and values, got {described(functions)}")
        self._log = log
        self._functions = list(functions)

    def __call__(self, trainer: Trainer) -> None:
        values = dict(self._log.entries[-1])
        for function in self._functions:
            if function(trainer.epoch, values) is True:
                trainer.stop("a callback ended training")
