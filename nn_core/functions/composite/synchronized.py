"""Batch normalization whose statistics cross processes."""

from collections.abc import Sequence
from math import prod
from typing import Any, Protocol

from nn_core.array import NdArray
from nn_core.errors import ArgumentError
from nn_core.functions import normalization as operators
from nn_core.functions.arithmetic import mul2, sub2
from nn_core.functions.composite.axes import Axes, listed
from nn_core.functions.composite.statistics import statistics_over_others
from nn_core.functions.operand import Operand
from nn_core.functions.reduction import mean as mean_operator
from nn_core.graph.python_function import PythonFunction
from nn_core.variable import Variable

__all__ = ["sync_batch_normalization"]


class Communicator(Protocol):
    """What is needed of a communicator."""

    @property
    def size(self) -> int:
        """Number of processes."""
        ...

    def all_reduce(self, data: Any, division: bool = False, inplace: bool = False, group: str = "world") -> None:
        """Add the arrays of all processes of a group up, or average them."""
        ...


def sync_batch_normalization(
    x: Operand,
    beta: Operand,
    gamma: Operand,
    mean: Operand,
    variance: Operand,
    comm: Communicator | None,
    group: str = "world",
    axes: Axes = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-5,
    batch_stat: bool = True,
    output_stat: bool = False,
    n_outputs: int | None = None,
) -> Operand | list[Operand]:
    """Batch normalization over the batches of all processes of a group.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input, shape (N_1, ..., C_i, ..., N_n) with axes C_i named by `axes`; the same shape in every process.
        beta: Shift, shape (1, ..., C_i, ..., 1).
        gamma: Scale, shape (1, ..., C_i, ..., 1).
        mean: Running mean, rewritten when `batch_stat`.
        variance: Running variance, rewritten when `batch_stat`.
        comm: Communicator of the processes; None: this process alone.
        group: Processes that share statistics.
        axes: Axes that are kept; statistics are taken over all others.
        decay_rate: How much of the running statistics a step keeps.
        eps: Added to the variance.
        batch_stat: Standardize by the statistics of these batches (training), not by the running ones.
        output_stat: Return mean and variance (biased) of these batches too.
        n_outputs: see `nn_core.functions`.

    Returns:
        An array of the shape of x; with `output_stat` a list of it, the mean and the variance.

    Raises:
        ArgumentError: when more than one process is to share statistics of NdArrays, which have no graph.
    """
    kept = listed(axes)
    if comm is None or comm.size == 1 or not batch_stat:
        y = operators.sync_batch_normalization(
            x, beta, gamma, mean, variance, axes=kept, decay_rate=decay_rate, eps=eps, batch_stat=batch_stat
        )
        return [y, *statistics_over_others(x, kept)] if output_stat else y
    if not isinstance(mean, Variable) or not isinstance(variance, Variable) or isinstance(x, NdArray):
        raise ArgumentError("sync_batch_normalization: inputs must be Variables for several processes, got an NdArray")
    others = [axis for axis in range(x.ndim) if axis not in {axis % x.ndim for axis in kept}]
    count = comm.size * prod(x.shape[axis] for axis in others)
    group_mean = GroupMean(comm, group, mean, decay_rate)(mean_operator(x, others, keep_dims=True))
    centred = sub2(x, group_mean)
    unbiased = count / (count - 1) if count > 1 else 0.0
    group_variance = GroupMean(comm, group, variance, decay_rate, unbiased)(
        mean_operator(mul2(centred, centred), others, keep_dims=True)
    )
    y = operators.batch_normalization(x, beta, gamma, group_mean, group_variance, kept, eps=eps, batch_stat=False)
    return [y, group_mean, group_variance] if output_stat else y


class GroupMean(PythonFunction):
    """The mean of an array over processes, which is also taken into a running value.

    running = decay_rate * running + (1 - decay_rate) * factor * mean
    """

    def __init__(
        self, comm: Communicator, group: str, running: Variable, decay_rate: float, factor: float = 1.0
    ) -> None:
        super().__init__()
        self._comm = comm
        self._group = group
        self._running = running
        self._decay_rate = decay_rate
        self._factor = factor

    def min_outputs(self) -> int:
        """One output."""
        return 1

    def setup_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """The output has the shape of the input."""
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Average over processes, then update the running value."""
        outputs[0].d = inputs[0].d
        self._comm.all_reduce([outputs[0].data], division=True, inplace=True, group=self._group)
        running = self._running.d
        running *= self._decay_rate
        running += (1 - self._decay_rate) * self._factor * outputs[0].d

    def backward_impl(
        self, inputs: Sequence[Any], outputs: Sequence[Any], propagate_down: Sequence[bool], accum: Sequence[bool]
    ) -> None:
        """Every process gets the mean of the gradients of all."""
        if propagate_down[0]:
            gradient = NdArray.from_numpy_array(outputs[0].g)
            self._comm.all_reduce([gradient], division=True, inplace=True, group=self._group)
            inputs[0].g = gradient.data + (inputs[0].g if accum[0] else 0)
