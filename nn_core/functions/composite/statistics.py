"""Mean and variance as parts of a graph."""

from collections.abc import Callable, Sequence
from typing import Any

from nn_core.engine.graph.companions import note_companions
from nn_core.engine.graph.imperative import as_one_kind
from nn_core.engine.graph.lazy_subgraph import follows_shapes
from nn_core.engine.graph.precision import in_float32
from nn_core.functions.arithmetic import mul2, sub2
from nn_core.functions.operand import Operand
from nn_core.functions.reduction import mean as mean_operator
from nn_core.functions.shape import reshape
from nn_core.variable import Variable


@in_float32
def statistics_over_others(x: Operand, kept: Sequence[int]) -> tuple[Operand, ...]:
    """Mean and biased variance of x over all axes but `kept`, which are kept with length 1."""
    axes = [axis for axis in range(x.ndim) if axis not in {axis % x.ndim for axis in kept}]
    mean = mean_operator(x, axes, keep_dims=True)
    centred = sub2(x, mean)
    return (mean, mean_operator(mul2(centred, centred), axes, keep_dims=True))


def with_statistics(y: Operand, x: Operand, kept: Sequence[int]) -> tuple[Operand, ...]:
    """Return `y`, which was computed from x, then the mean and the biased variance of x, which are of the kind of `y`."""
    (x, _) = as_one_kind("normalization", x, y)
    return accompanied(y, (x,), lambda inputs: statistics_over_others(inputs[0], kept))


def accompanied(y: Operand, inputs: Sequence[Any], make: Callable[[Sequence[Any]], Any]) -> tuple[Operand, ...]:
    """Return `y`, then what `make` returns for the inputs of its function, which programs see among the outputs of that."""
    made = make(inputs)
    if isinstance(y, Variable):
        note_companions(y, made, make)
    return (y, *made)


@follows_shapes
def statistics_of_groups(x: Operand, num_groups: int, channel_axis: int, batch_axes: Sequence[int]) -> tuple[Operand, ...]:
    """Mean and biased variance of each group of channels, whose axis is cut into groups and members of a group."""
    channel_axis %= x.ndim
    shape = x.shape
    cut = (*shape[:channel_axis], num_groups, shape[channel_axis] // num_groups, *shape[channel_axis + 1 :])
    batch = [axis % x.ndim for axis in batch_axes]
    kept = [axis + 1 if axis > channel_axis else axis for axis in batch]
    return statistics_over_others(reshape(x, cut, inplace=False), (*kept, channel_axis))
