"""Batch normalization whose statistics cross processes."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Literal, Protocol, overload, runtime_checkable

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.graph.imperative import one_kind
from nn_core.engine.graph.precision import in_float32
from nn_core.engine.graph.python_function import PythonFunction
from nn_core.errors import ArgumentError
from nn_core.functions import normalization as operators
from nn_core.functions.arithmetic import mul2, sub2
from nn_core.functions.composite.axes import Axes, listed
from nn_core.functions.composite.statistics import accompanied, with_statistics
from nn_core.functions.operand import Operand
from nn_core.functions.reduction import sum as sum_operator
from nn_core.variable import Variable

__all__ = ["sync_batch_normalization"]


@runtime_checkable
class Communicator(Protocol):
    """The part of a communicator that is needed here."""

    @property
    def size(self) -> int:
        """Number of processes."""
        ...

    def all_reduce(self, data: Any, division: bool = False, inplace: bool = False, group: str = "world") -> None:
        """Add the arrays of all processes of a group up, or average them."""
        ...


@overload
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
    output_stat: Literal[False] = False,
    n_outputs: int | None = None,
) -> Operand: ...
@overload
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
) -> tuple[Operand, Operand, Operand]: ...
@one_kind
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
) -> Operand | tuple[Operand, ...]:
    """Batch normalization over the batches of all processes of a group.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input, shape (N_1, ..., C_i, ..., N_n) with axes C_i named by `axes`; batches may differ in size.
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
        An array of the shape of x; with `output_stat` a tuple of it, the mean and the variance.

    Raises:
        ArgumentError: when more than one process is to share statistics of NdArrays, which have no graph.

    Example:
        >>> x = nn.Variable((8, 3, 4, 4))
        >>> beta, gamma, mean, variance = (nn.Variable((1, 3, 1, 1)) for _ in range(4))
        >>> F.sync_batch_normalization(x, beta, gamma, mean, variance, comm=None).shape
        (8, 3, 4, 4)
    """
    kept = listed(axes)
    if comm is None or comm.size == 1 or not batch_stat:
        y = operators.sync_batch_normalization(
            x, beta, gamma, mean, variance, axes=kept, decay_rate=decay_rate, eps=eps, batch_stat=batch_stat
        )
        return with_statistics(y, x, kept) if output_stat else y
    if not isinstance(mean, Variable) or not isinstance(variance, Variable) or isinstance(x, NdArray):
        raise ArgumentError("sync_batch_normalization: inputs must be Variables for several processes, got an NdArray")
    others = [axis for axis in range(x.ndim) if axis not in {axis % x.ndim for axis in kept}]
    group_mean = GroupMean(comm, group, x, mean, decay_rate)(sum_operator(x, others, keep_dims=True))
    squares = _centred_squares(x, group_mean, others)
    group_variance = GroupMean(comm, group, x, variance, decay_rate, unbiased=True)(squares)
    y = operators.batch_normalization(x, beta, gamma, group_mean, group_variance, kept, eps=eps, batch_stat=False)
    return accompanied(y, (x, beta, gamma, group_mean, group_variance), itemgetter(3, 4)) if output_stat else y


@in_float32
def _centred_squares(x: Operand, mean: Operand, axes: Sequence[int]) -> Operand:
    """Return the sums of squared distances from the mean."""
    centred = sub2(x, mean)
    return sum_operator(mul2(centred, centred), axes, keep_dims=True)


class GroupMean(PythonFunction):
    """The mean over the elements of all processes, of which each gives the sum of its own; a running value follows.

    running = decay_rate * running + (1 - decay_rate) * mean, where the mean is multiplied by n / (n - 1) if unbiased

    Args:
        x: The array whose sum is given: its size says how many elements this process has in a pass.
    """

    def __init__(
        self,
        comm: Communicator,
        group: str,
        x: Any,
        running: Variable,
        decay_rate: float,
        *,
        unbiased: bool = False,
    ) -> None:
        super().__init__()
        self._comm = comm
        self._group = group
        self._x = x
        self._running = running
        self._decay_rate = decay_rate
        self._unbiased = unbiased
        #: elements of each channel in all processes
        self._count = 1.0

    def min_outputs(self) -> int:
        """One output."""
        return 1

    def setup_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Return the shape of the input."""
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Add sums and counts up over processes, then update the running value."""
        sums = inputs[0].d
        both = NdArray.from_numpy_array(np.append(sums.astype(np.float64), self._x.size / max(sums.size, 1)))
        self._comm.all_reduce([both], division=False, inplace=True, group=self._group)
        self._count = max(float(both.data[-1]), 1.0)
        mean = (both.data[:-1] / self._count).reshape(sums.shape)
        outputs[0].d = mean
        factor = self._count / max(self._count - 1, 1) if self._unbiased else 1.0
        running = self._running.d
        running *= self._decay_rate
        running += (1 - self._decay_rate) * factor * mean.astype(np.float32)

    def backward_impl(
        self, inputs: Sequence[Any], outputs: Sequence[Any], propagate_down: Sequence[bool], accum: Sequence[bool]
    ) -> None:
        """Every process gets the sum of the gradients of all, for each of its elements an equal part."""
        if propagate_down[0]:
            gradient = NdArray.from_numpy_array(outputs[0].g.astype(np.float64))
            self._comm.all_reduce([gradient], division=False, inplace=True, group=self._group)
            inputs[0].g = gradient.data / self._count + (inputs[0].g if accum[0] else 0)
