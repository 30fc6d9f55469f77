"""Normalizations as users call them: scale and shift may be None, and the statistics can be had too."""

from collections.abc import Sequence
from typing import Any, Literal, overload

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import checked_flag, door
from nn_core.engine.graph.imperative import as_one_kind
from nn_core.functions import normalization as operators
from nn_core.functions.composite.axes import Axes, listed
from nn_core.functions.composite.statistics import accompanied, statistics_of_groups, with_statistics
from nn_core.functions.operand import Operand
from nn_core.variable import Variable

__all__ = [
    "batch_normalization",
    "fused_batch_normalization",
    "group_normalization",
    "instance_normalization",
    "layer_normalization",
    "mean_subtraction",
    "tensor_normalization",
]


@overload
def batch_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    mean: Operand | None,
    variance: Operand | None,
    axes: Axes = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-5,
    batch_stat: bool = True,
    output_stat: Literal[False] = False,
    n_outputs: int | None = None,
) -> Operand: ...
@overload
def batch_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    mean: Operand | None,
    variance: Operand | None,
    axes: Axes = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-5,
    batch_stat: bool = True,
    output_stat: bool = False,
    n_outputs: int | None = None,
) -> tuple[Operand, Operand, Operand]: ...
@door
def batch_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    mean: Operand | None,
    variance: Operand | None,
    axes: Axes = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-5,
    batch_stat: bool = True,
    output_stat: bool = False,
    n_outputs: int | None = None,
) -> Operand | tuple[Operand, ...]:
    """Standardize each channel over the batch, then scale and shift it.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input, shape (N_1, ..., C_i, ..., N_n) with axes C_i named by `axes`.
        beta: Shift, shape (1, ..., C_i, ..., 1); None: none.
        gamma: Scale, shape (1, ..., C_i, ..., 1); None: 1.
        mean: Running mean, rewritten when `batch_stat`; may be None then.
        variance: Running variance, rewritten when `batch_stat`; may be None then.
        axes: Axes that are kept; statistics are taken over all others.
        decay_rate: How much of the running statistics a step keeps.
        eps: Added to the variance.
        batch_stat: Standardize by the statistics of this batch (training), not by the running ones.
        output_stat: Return mean and variance (biased) of this batch too; goes with `batch_stat`.
        n_outputs: see `nn_core.functions`.

    Returns:
        An array of the shape of x; with `output_stat` a tuple of it, the mean and the variance.

    References:
        Ioffe and Szegedy (2015), Batch normalization, algorithms 1 and 2.

    Example:
        >>> x = nn.Variable((8, 3, 4, 4))
        >>> beta, gamma, mean, variance = (nn.Variable((1, 3, 1, 1)) for _ in range(4))
        >>> F.batch_normalization(x, beta, gamma, mean, variance).shape
        (8, 3, 4, 4)
    """
    with_output = checked_flag("batch_normalization: output_stat", output_stat)
    axes = listed(axes)
    no_scale, no_bias = gamma is None, beta is None
    y = operators.batch_normalization(x, beta, gamma, mean, variance, axes, decay_rate, eps, batch_stat, no_scale, no_bias)
    return with_statistics(y, x, axes) if with_output else y


@overload
def fused_batch_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    mean: Operand | None,
    variance: Operand | None,
    z: Operand | None = None,
    axes: Axes = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-5,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
    output_stat: Literal[False] = False,
    n_outputs: int | None = None,
) -> Operand: ...
@overload
def fused_batch_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    mean: Operand | None,
    variance: Operand | None,
    z: Operand | None = None,
    axes: Axes = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-5,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
    output_stat: bool = False,
    n_outputs: int | None = None,
) -> tuple[Operand, Operand, Operand]: ...
@door
def fused_batch_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    mean: Operand | None,
    variance: Operand | None,
    z: Operand | None = None,
    axes: Axes = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-5,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
    output_stat: bool = False,
    n_outputs: int | None = None,
) -> Operand | tuple[Operand, ...]:
    """Batch normalization, an optional addition, and a ReLU in one function.

    y = max(gamma (x - mean) / sqrt(variance + eps) + beta + z, 0)

    Args:
        x: Input, shape (N_1, ..., C_i, ..., N_n) with axes C_i named by `axes`.
        beta: Shift, shape (1, ..., C_i, ..., 1); None: none.
        gamma: Scale, shape (1, ..., C_i, ..., 1); None: 1.
        mean: Running mean, rewritten when `batch_stat`; may be None then.
        variance: Running variance, rewritten when `batch_stat`; may be None then.
        z: Added before the nonlinearity, shape of x.
        axes: Axes that are kept; statistics are taken over all others.
        decay_rate: How much of the running statistics a step keeps.
        eps: Added to the variance.
        batch_stat: Standardize by the statistics of this batch (training), not by the running ones.
        nonlinearity: "relu".
        output_stat: Return mean and variance (biased) of this batch too.
        n_outputs: see `nn_core.functions`.

    Returns:
        An array of the shape of x; with `output_stat` a tuple of it, the mean and the variance.

    Example:
        >>> x = nn.Variable((8, 3, 4, 4))
        >>> beta, gamma, mean, variance = (nn.Variable((1, 3, 1, 1)) for _ in range(4))
        >>> F.fused_batch_normalization(x, beta, gamma, mean, variance, z=x).shape
        (8, 3, 4, 4)
    """
    with_output = checked_flag("fused_batch_normalization: output_stat", output_stat)
    axes = listed(axes)
    beta, mean = (_filled(x, axes, 0.0) if each is None else each for each in (beta, mean))
    gamma, variance = (_filled(x, axes, 1.0) if each is None else each for each in (gamma, variance))
    y = operators.fused_batch_normalization(x, beta, gamma, mean, variance, z, axes, decay_rate, eps, batch_stat, nonlinearity)
    return with_statistics(y, x, axes) if with_output else y


@overload
def layer_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    batch_axis: Axes = 0,
    eps: float = 1e-5,
    output_stat: Literal[False] = False,
) -> Operand: ...
@overload
def layer_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    batch_axis: Axes = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> tuple[Operand, Operand, Operand]: ...
@door
def layer_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    batch_axis: Axes = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> Operand | tuple[Operand, ...]:
    """Standardize each sample over all its elements, then scale and shift each element.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input, shape (N, D_1, ..., D_n) with N for the axes named by `batch_axis`.
        beta: Shift, shape (1, D_1, ..., D_n); None: none.
        gamma: Scale, shape (1, D_1, ..., D_n); None: 1.
        batch_axis: Axis or axes that are kept; statistics are taken over all others.
        eps: Added to the variance.
        output_stat: Return mean and variance too, shape (N, 1, ..., 1).

    Returns:
        An array of the shape of x; with `output_stat` a tuple of it, the mean and the variance.

    References:
        Ba, Kiros and Hinton (2016), Layer normalization, section 3.

    Example:
        >>> print(F.layer_normalization(nn.NdArray.from_numpy_array([[1.0, 2.0, 3.0]]), None, None).numpy().round(3))
        [[-1.225  0.     1.225]]
    """
    with_output = checked_flag("layer_normalization: output_stat", output_stat)
    axes = listed(batch_axis)
    y = operators.layer_normalization(x, beta, gamma, axes, eps, gamma is None, beta is None)
    return with_statistics(y, x, axes) if with_output else y


@overload
def instance_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    channel_axis: int = 1,
    batch_axis: Axes = 0,
    eps: float = 1e-5,
    output_stat: Literal[False] = False,
) -> Operand: ...
@overload
def instance_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    channel_axis: int = 1,
    batch_axis: Axes = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> tuple[Operand, Operand, Operand]: ...
@door
def instance_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    channel_axis: int = 1,
    batch_axis: Axes = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> Operand | tuple[Operand, ...]:
    """Standardize each channel of each sample, then scale and shift each channel.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input, shape (N, C, D_1, ..., D_n) with N for the axes named by `batch_axis`, C for `channel_axis`.
        beta: Shift, shape (1, C, 1, ..., 1); None: none.
        gamma: Scale, shape (1, C, 1, ..., 1); None: 1.
        channel_axis: Axis of the channels.
        batch_axis: Axis or axes of the samples.
        eps: Added to the variance.
        output_stat: Return mean and variance too, shape (N, C, 1, ..., 1).

    Returns:
        An array of the shape of x; with `output_stat` a tuple of it, the mean and the variance.

    References:
        Ulyanov, Vedaldi and Lempitsky (2016), Instance normalization, section 2.

    Example:
        >>> F.instance_normalization(nn.NdArray.from_numpy_array([[[1.0, 3.0], [0.0, 4.0]]]), None, None).numpy().round(3).tolist()
        [[[-1.0, 1.0], [-1.0, 1.0]]]
    """
    with_output = checked_flag("instance_normalization: output_stat", output_stat)
    axes = listed(batch_axis)
    y = operators.instance_normalization(x, beta, gamma, channel_axis, axes, eps, gamma is None, beta is None)
    return with_statistics(y, x, (*axes, channel_axis)) if with_output else y


@overload
def group_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    num_groups: int,
    channel_axis: int = 1,
    batch_axis: Axes = 0,
    eps: float = 1e-5,
    output_stat: Literal[False] = False,
) -> Operand: ...
@overload
def group_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    num_groups: int,
    channel_axis: int = 1,
    batch_axis: Axes = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> tuple[Operand, Operand, Operand]: ...
@door
def group_normalization(
    x: Operand,
    beta: Operand | None,
    gamma: Operand | None,
    num_groups: int,
    channel_axis: int = 1,
    batch_axis: Axes = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> Operand | tuple[Operand, ...]:
    """Standardize each group of channels of each sample, then scale and shift each channel.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input, shape (N, C, D_1, ..., D_n) with N for the axes named by `batch_axis`, C for `channel_axis`.
        beta: Shift, shape (1, C, 1, ..., 1); None: none.
        gamma: Scale, shape (1, C, 1, ..., 1); None: 1.
        num_groups: Number G of groups; divides C.
        channel_axis: Axis of the channels.
        batch_axis: Axis or axes of the samples.
        eps: Added to the variance.
        output_stat: Return mean and variance too, shape (N, G, 1, 1, ..., 1), one axis more than x.

    Returns:
        An array of the shape of x; with `output_stat` a tuple of it, the mean and the variance.

    References:
        Wu and He (2018), Group normalization, section 3.1.

    Example:
        >>> F.group_normalization(nn.Variable((8, 6, 4, 4)), None, None, num_groups=3).shape
        (8, 6, 4, 4)
    """
    axes = listed(batch_axis)
    y = operators.group_normalization(x, beta, gamma, num_groups, channel_axis, axes, eps, gamma is None, beta is None)
    if not output_stat:
        return y
    (x, _) = as_one_kind("group_normalization", x, y)
    return accompanied(y, (x,), lambda inputs: statistics_of_groups(inputs[0], num_groups, channel_axis, axes))


@overload
def tensor_normalization(
    x: Operand,
    axes: Axes,
    beta: Operand | None = None,
    gamma: Operand | None = None,
    eps: float = 1e-5,
    output_stat: Literal[False] = False,
) -> Operand: ...
@overload
def tensor_normalization(
    x: Operand,
    axes: Axes,
    beta: Operand | None = None,
    gamma: Operand | None = None,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> tuple[Operand, Operand, Operand]: ...
@door
def tensor_normalization(
    x: Operand,
    axes: Axes,
    beta: Operand | None = None,
    gamma: Operand | None = None,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> Operand | tuple[Operand, ...]:
    """Standardize over all axes but some, then scale and shift.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input, shape (N_1, ..., C_i, ..., N_n) with axes C_i named by `axes`.
        axes: Axis or axes that are kept; statistics are taken over all others.
        beta: Shift, shape (1, ..., C_i, ..., 1); None: none.
        gamma: Scale, shape (1, ..., C_i, ..., 1); None: 1.
        eps: Added to the variance.
        output_stat: Return mean and variance too, shape (1, ..., C_i, ..., 1).

    Returns:
        An array of the shape of x; with `output_stat` a tuple of it, the mean and the variance.

    Example:
        >>> F.tensor_normalization(nn.NdArray.from_numpy_array([[1.0, 2.0], [3.0, 6.0]]), axes=1).numpy().round(3).tolist()
        [[-1.0, -1.0], [1.0, 1.0]]
    """
    with_output = checked_flag("tensor_normalization: output_stat", output_stat)
    axes = listed(axes)
    y = operators.tensor_normalization(x, beta, gamma, axes, eps, gamma is None, beta is None)
    return with_statistics(y, x, axes) if with_output else y


@door
def mean_subtraction(x: Operand, mean: Operand, t: Operand, base_axis: int = 1, update_running_mean: bool = True) -> Operand:
    """Subtract the mean of all samples seen so far.

    Args:
        x: Input, shape (N_1, ..., N_k, D_1, ..., D_m).
        mean: Running mean, shape (D_1, ..., D_m), rewritten if `update_running_mean`.
        t: Number of batches seen, shape (1,), rewritten if `update_running_mean`.
        base_axis: First axis that belongs to a sample; the axes before it are the batch.
        update_running_mean: Take this batch into the running mean.

    Returns:
        An array of the shape of x.

    Example:
        >>> mean, t = nn.Variable((3,)), nn.Variable((1,))
        >>> F.mean_subtraction(nn.Variable((8, 3)), mean, t).shape
        (8, 3)
    """
    return operators.mean_subtraction(x, mean, t, base_axis, update_running_mean)


def _filled(x: Any, axes: Sequence[int], value: float) -> Any:
    """Return a constant of the shape of statistics of `x`, of its kind."""
    kept = {axis % x.ndim for axis in axes}
    constant = NdArray([n if axis in kept else 1 for axis, n in enumerate(x.shape)])
    constant.fill(value)
    if isinstance(x, NdArray):
        return constant
    variable = Variable(constant.shape)
    variable.data = constant
    return variable
