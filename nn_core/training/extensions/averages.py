"""Means of reported values over the time between two calls of an extension."""

from collections.abc import Mapping
from typing import Any

from nn_core.engine.error_messages.refusal import described, fitted_methods
from nn_core.engine.runtime.schemas import checked_state
from nn_core.errors import ArgumentError
from nn_core.training.summary import Summaries
from nn_core.training.trainer import Trainer


@fitted_methods("observe")
class Averages:
    """Base of extensions that take in each iteration what was reported, and use the means when their trigger fires.

    Args:
        keys: Names of the values; none: all.

    Raises:
        ArgumentError: when one is not a string.
    """

    def __init__(self, keys: tuple[str, ...] = ()) -> None:
        for key in keys:
            if not isinstance(key, str):
                raise ArgumentError(f"{type(self).__name__}: keys must be names of values, got {described(key)}")
        self.keys = keys
        self._summaries = Summaries()

    def observe(self, trainer: Trainer) -> None:
        """Take in what was reported in this iteration."""
        observation = trainer.observation
        for name in self.keys or list(observation):
            if name in observation:
                self._summaries.add(name, observation[name], observation.weight(name))

    def entry(self, trainer: Trainer) -> dict[str, Any]:
        """Return the means since the last call, with the place in training."""
        means = self._summaries.means()
        self._summaries.clear()
        return {
            "iteration": trainer.iteration,
            "epoch": trainer.epoch,
            "elapsed_time": round(trainer.elapsed_time, 3),
            **means,
        }

    def get_state(self) -> dict[str, Any]:
        """Return the open means."""
        return {"summaries": self._summaries.get_state()}

    @checked_state
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        self._summaries.set_state(state["summaries"])
