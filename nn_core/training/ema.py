"""Moving averages of parameters, which often generalize better than the parameters of the last step."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.engine.graph.parameter_sources import ParameterSource, parameters_of, require_some
from nn_core.engine.runtime.holders import where_parameters_are
from nn_core.engine.runtime.schemas import checked_state
from nn_core.errors import ArgumentError
from nn_core.training.states import require_same_names, set_state_of, state_of
from nn_core.training.triggers import every


@fitted_methods()
class MovingAverage:
    """Exponential moving averages of parameters; as an extension of the trainer it is updated in each iteration.

    average = decay * average + (1 - decay) * parameter, in float32. In the first steps the decay is (1 + n) / (10 + n) after n
    updates when that is less, so that the initial values are soon forgotten. To keep it in checkpoints, extend the trainer
    by it, or name it in ``save_checkpoint``.

    Args:
        parameters: The parameters by name, a module that was called, or the name of a scope.
        decay: From 0 to 1.

    Raises:
        ArgumentError: when `parameters` are something else, or there are none; when `decay` is outside of this range.

    Example:
        >>> from nn_core.training import MovingAverage
        >>> w = nn.Variable.from_numpy_array(np.zeros(1))
        >>> average = MovingAverage({"w": w}, decay=0.9)
        >>> w.d = 1
        >>> average.update()
        >>> with average.applied():
        ...     inside = w.d.tolist()
        >>> inside, w.d.tolist()
        ([0.8181818127632141], [1.0])
    """

    phase: Final = "edit"
    every = every(1)

    @fitted
    def __init__(self, parameters: ParameterSource, decay: float = 0.999) -> None:
        found = parameters_of("MovingAverage", parameters, argument="parameters")
        require_some("MovingAverage", parameters, found)
        if not 0.0 <= decay <= 1.0:
            raise ArgumentError(f"MovingAverage: decay must be from 0 to 1, got {decay}")
        if not found:
            raise ArgumentError(f"MovingAverage: there must be parameters to average, got none{where_parameters_are()}")
        self._parameters = found
        self._decay = decay
        self._updates = 0
        self._averages = {name: np.array(variable.d, np.float32) for name, variable in found.items()}

    def __call__(self, trainer: object) -> None:
        self.update()

    def update(self) -> None:
        """Take in the present values."""
        self._updates += 1
        share = 1.0 - min(self._decay, (1 + self._updates) / (10 + self._updates))
        for name, variable in self._parameters.items():
            average = self._averages[name]
            average += np.float32(share) * (variable.data.get_data("r") - average)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the parameters have the averages inside a ``with`` block."""
        before = {name: np.array(values) for name, values in state_of(self._parameters).items()}
        set_state_of("MovingAverage", self._parameters, self._averages)
        try:
            yield
        finally:
            set_state_of("MovingAverage", self._parameters, before)

    def averages(self) -> dict[str, NdArray]:
        """Return copies of the averages by name."""
        return {name: NdArray.from_numpy_array(values.copy()) for name, values in self._averages.items()}

    def get_state(self) -> dict[str, Any]:
        """Return the averages and the number of updates."""
        return {"updates": self._updates, "averages": self._averages}

    @checked_state
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave.

        Raises:
            ArgumentError: when it has other parameters.
        """
        require_same_names("MovingAverage", self._averages, state["averages"])
        self._updates = state["updates"]
        self._averages = {name: np.array(values, np.float32) for name, values in state["averages"].items()}
