"""Stochastic weight averaging: the mean of the parameters along the last part of training."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from nn_core.communicators import Communicator
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import described, fitted, fitted_methods
from nn_core.engine.runtime.holders import where_parameters_are
from nn_core.engine.runtime.schemas import checked_state
from nn_core.errors import ArgumentError
from nn_core.training.states import require_same_names, set_state_of, state_of
from nn_core.training.triggers import every
from nn_core.variable import Variable

Array = np.ndarray[Any, Any]


@fitted_methods()
class WeightAverage:
    """Means of parameters with equal weights (SWA); as an extension of the trainer it takes in one point each epoch.

    Training with a large or cyclic learning rate moves around a flat minimum; the mean of its points is inside. Start it
    when the loss no longer falls much. The running statistics of normalizations do not belong to the mean: compute them by
    `renew_statistics` while it is applied. To keep it in checkpoints, extend the trainer by it, or name it in
    ``save_checkpoint``.

    Args:
        parameters: The parameters by name.
        start: Epochs, as the trainer counts them, after which the first point is taken.

    Attributes:
        count: Number of points.

    Raises:
        ArgumentError: when `parameters` are not Variables by name, or there are none; when `start` is negative.

    References:
        Izmailov and others (2018), Averaging weights leads to wider optima and better generalization.

    Example:
        >>> from nn_core.training import WeightAverage
        >>> w = nn.Variable.from_numpy_array(np.zeros(1))
        >>> average = WeightAverage({"w": w})
        >>> for value in (1, 2, 6):
        ...     w.d = value
        ...     average.update()
        >>> with average.applied():
        ...     inside = w.d.tolist()
        >>> inside, w.d.tolist()
        ([3.0], [6.0])
    """

    phase: Final = "edit"
    every = every(1, "epoch")

    @fitted
    def __init__(self, parameters: Mapping[str, Variable], start: int = 0) -> None:
        if not isinstance(parameters, Mapping):
            raise ArgumentError(f"WeightAverage: parameters must be Variables by name, got {described(parameters)}")
        if not parameters:
            raise ArgumentError(f"WeightAverage: there must be parameters to average, got none{where_parameters_are()}")
        if start < 0:
            raise ArgumentError(f"WeightAverage: start must be at least 0, got {start}")
        self.count = 0
        self._parameters = dict(parameters)
        self._start = start
        self._means = {name: np.zeros(variable.shape, np.float64) for name, variable in parameters.items()}

    def __call__(self, trainer: Any) -> None:
        if trainer.epoch > self._start:
            self.update()

    def update(self) -> None:
        """Take in the present values."""
        self.count += 1
        for name, variable in self._parameters.items():
            mean = self._means[name]
            mean += (variable.data.get_data("r") - mean) / self.count

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the parameters have the means inside a ``with`` block.

        Raises:
            ArgumentError: when no point was taken in.
        """
        if not self.count:
            raise ArgumentError("WeightAverage: there must be a point to average, got none")
        before = {name: np.array(values) for name, values in state_of(self._parameters).items()}
        set_state_of("WeightAverage", self._parameters, {name: mean.astype(np.float32) for name, mean in self._means.items()})
        try:
            yield
        finally:
            set_state_of("WeightAverage", self._parameters, before)

    def averages(self) -> dict[str, NdArray]:
        """Return copies of the means by name, in float32."""
        return {name: NdArray.from_numpy_array(mean.astype(np.float32)) for name, mean in self._means.items()}

    def get_state(self) -> dict[str, Any]:
        """Return the means and the number of points."""
        return {"count": self.count, "means": self._means}

    @checked_state
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave.

        Raises:
            ArgumentError: when it has other parameters.
        """
        require_same_names("WeightAverage", self._means, state["means"])
        self.count = state["count"]
        self._means = {name: np.array(values, np.float64) for name, values in state["means"].items()}


@fitted
def renew_statistics(
    output: Variable,
    inputs: Sequence[Variable],
    batches: Iterator[Sequence[Any]] | Sequence[Sequence[Any]],
    parameters: Mapping[str, Variable],
    comm: Communicator | None = None,
) -> int:
    """Compute the running statistics of normalizations anew: the means over some batches, each with the same weight.

    Args:
        output: A Variable of the graph for training, whose normalizations use the statistics of the batch.
        inputs: The Variables that a batch is written to.
        batches: The batches.
        parameters: The parameters by name; those that need no gradient and that a pass changes are the statistics.
        comm: Average over the batches of all ranks, which call this with as many batches each.

    Returns:
        The number of statistics.

    Raises:
        ArgumentError: when there is no batch.

    Example:
        >>> from nn_core.training import renew_statistics
        >>> x = nn.Variable((4, 2))
        >>> y = PF.batch_normalization(x)
        >>> parameters = nn.get_parameters(grad_only=False)
        >>> renew_statistics(y, [x], [[np.full((4, 2), 1.0)], [np.full((4, 2), 2.0)]], parameters)
        2
        >>> parameters["bn/mean"].d.ravel().tolist()
        [1.5, 1.5]
    """
    statistics = _Statistics(output, [v.data for v in parameters.values() if not v.need_grad and v.data.dtype.kind == "f"])
    for batch in batches:
        for variable, values in zip(inputs, batch, strict=True):
            variable.d = values
        statistics.take()
    if not statistics.count:
        raise ArgumentError("renew_statistics: there must be a batch, got none")
    changed = statistics.write()
    if comm is not None:
        comm.all_reduce(changed, division=True)
    return len(changed)


class _Statistics:
    """Statistics of batches that passes mix into what is in some arrays.

    A pass keeps a share of what is there: after one that has begun with 1 there is this share more than after one with 0.

    Args:
        output: A Variable that depends on the batch.
        arrays: The arrays; some of them are changed by no pass.
    """

    def __init__(self, output: Variable, arrays: Sequence[NdArray]) -> None:
        self.count = 0
        self._output = output
        self._arrays = arrays
        self._before = [np.array(array.get_data("r"), np.float64) for array in arrays]
        self._sums = [np.zeros(array.shape) for array in arrays]
        self._shares: list[Array] = []

    def take(self) -> None:
        """Take in the present batch."""
        found = self._after_pass(0.0)
        if not self.count:
            self._shares = [one - zero for one, zero in zip(self._after_pass(1.0), found, strict=True)]
        self._sums = [total + values for total, values in zip(self._sums, found, strict=True)]
        self.count += 1

    def write(self) -> list[NdArray]:
        """Write the means to the arrays that passes change, which are returned, and to the others what they had."""
        changed = []
        for array, before, total, share in zip(self._arrays, self._before, self._sums, self._shares, strict=True):
            is_changed = bool(np.all((share >= 0.0) & (share < 1.0)))
            values = total / (self.count * (1.0 - share)) if is_changed else before
            array.copy_from(NdArray.from_numpy_array(values.astype(array.dtype)))
            changed += [array] if is_changed else []
        return changed

    def _after_pass(self, value: float) -> list[Array]:
        """Return the values after a forward pass that has begun with `value` in all of them."""
        for array in self._arrays:
            array.fill(value)
        self._output.forward(clear_buffer=True)
        return [np.array(array.get_data("r"), np.float64) for array in self._arrays]
