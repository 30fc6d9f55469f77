"""Normalization layers."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal, SupportsIndex, overload

import nn_core.functions as F
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.errors import ArgumentError
from nn_core.functions.operand import Operand
from nn_core.parametric_functions.initial import ONES, ZEROS, shape_for_parameters, trained
from nn_core.parametric_functions.scope import Initializer, get_parameter_or_create, layer
from nn_core.typing import Shape
from nn_core.variable import Variable

_BATCH_PARAMETERS = [
    ("beta", "Added to the result.", "1 except for the axes of `axes`", True),
    ("gamma", "Factor on the normalized input.", "as beta", True),
    ("mean", "Moving mean of the batches.", "as beta", False),
    ("var", "Moving variance of the batches.", "as beta", False),
]
_LAYER_PARAMETERS = [
    ("beta", "Added to the result.", "1 along the axes of the statistics' batches", True),
    ("gamma", "Factor on the normalized input.", "as beta", True),
]
_CHANNEL_PARAMETERS = [
    ("beta", "Added to the result.", "1 except for the channel axis", True),
    ("gamma", "Factor on the normalized input.", "as beta", True),
]


@overload
def batch_normalization(
    inp: Operand,
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    output_stat: Literal[False] = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Operand: ...
@overload
def batch_normalization(
    inp: Operand,
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> tuple[Operand, Operand, Operand]: ...
@layer("bn", _BATCH_PARAMETERS)
def batch_normalization(
    inp: Operand,
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Any:
    """Normalize each channel over the batch, then scale and shift it.

    Args:
        inp: Input of any shape.
        axes: The axes that keep statistics of their own, most often that of the channels.
        decay_rate: Part of the moving mean and variance that is kept at each step.
        batch_stat: Use the statistics of the batch, and let the moving ones follow; if not, use the moving ones.
        output_stat: Also return mean and variance of the batch; `batch_stat` must be set.

    Returns:
        The shape of `inp`; with `output_stat` a tuple of it, mean and variance.

    References:
        Ioffe and Szegedy (2015), Batch normalization.

    Example:
        >>> x = nn.Variable((8, 3, 16, 16))
        >>> trained = PF.batch_normalization(x, name="bn")
        >>> tested = PF.batch_normalization(x, batch_stat=False, name="bn")  # the same parameters
        >>> tested.shape
        (8, 3, 16, 16)
    """
    shape = _kept_axes("batch_normalization", inp, axes)
    beta, gamma = _shift_and_scale(shape, fix_parameters, param_init, no_scale, no_bias, ("mean", "var"))
    mean, var = _moving(shape, param_init)
    return _results(F.batch_normalization(inp, beta, gamma, mean, var, axes, decay_rate, eps, batch_stat, output_stat))


@overload
def fused_batch_normalization(
    inp: Operand,
    z: Operand | None = None,
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
    output_stat: Literal[False] = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Operand: ...
@overload
def fused_batch_normalization(
    inp: Operand,
    z: Operand | None = None,
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> tuple[Operand, Operand, Operand]: ...
@layer("bn", _BATCH_PARAMETERS)
def fused_batch_normalization(
    inp: Operand,
    z: Operand | None = None,
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Any:
    """Batch normalization, then an addition and a nonlinearity in one function.

    Args:
        inp: Input of any shape.
        z: Added before the nonlinearity. Shape of `inp`.
        axes: The axes that keep statistics of their own, most often that of the channels.
        decay_rate: Part of the moving mean and variance that is kept at each step.
        batch_stat: Use the statistics of the batch, and let the moving ones follow; if not, use the moving ones.
        nonlinearity: Name of the nonlinearity: "relu".
        output_stat: Also return mean and variance of the batch; `batch_stat` must be set.

    Returns:
        The shape of `inp`; with `output_stat` a tuple of it, mean and variance.

    Example:
        >>> x = nn.Variable((8, 3, 16, 16))
        >>> PF.fused_batch_normalization(x, z=x).shape
        (8, 3, 16, 16)
    """
    shape = _kept_axes("fused_batch_normalization", inp, axes)
    beta, gamma = _shift_and_scale(shape, fix_parameters, param_init, no_scale, no_bias, ("mean", "var"))
    mean, var = _moving(shape, param_init)
    return _results(
        F.fused_batch_normalization(
            inp, beta, gamma, mean, var, z, axes, decay_rate, eps, batch_stat, nonlinearity, output_stat
        )
    )


@overload
def sync_batch_normalization(
    inp: Operand,
    comm: Any,
    group: str = "world",
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    output_stat: Literal[False] = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Operand: ...
@overload
def sync_batch_normalization(
    inp: Operand,
    comm: Any,
    group: str = "world",
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> tuple[Operand, Operand, Operand]: ...
@layer("bn", _BATCH_PARAMETERS)
def sync_batch_normalization(
    inp: Operand,
    comm: Any,
    group: str = "world",
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Any:
    """Batch normalization over the batches of all processes of a communicator.

    Args:
        inp: Input of any shape.
        comm: Communicator of the processes.
        group: Name of the group of processes.
        axes: The axes that keep statistics of their own, most often that of the channels.
        decay_rate: Part of the moving mean and variance that is kept at each step.
        batch_stat: Use the statistics of the batch, and let the moving ones follow; if not, use the moving ones.
        output_stat: Also return mean and variance of the batch; `batch_stat` must be set.

    Returns:
        The shape of `inp`; with `output_stat` a tuple of it, mean and variance.

    Example:
        >>> PF.sync_batch_normalization(nn.Variable((8, 3, 16, 16)), comm=None).shape
        (8, 3, 16, 16)
    """
    shape = _kept_axes("sync_batch_normalization", inp, axes)
    beta, gamma = _shift_and_scale(shape, fix_parameters, param_init, no_scale, no_bias, ("mean", "var"))
    mean, var = _moving(shape, param_init)
    return _results(
        F.sync_batch_normalization(inp, beta, gamma, mean, var, comm, group, axes, decay_rate, eps, batch_stat, output_stat)
    )


@layer(
    "mean_subtraction",
    [("mean", "Moving mean.", "that of one sample", False), ("t", "Number of batches seen.", "(1)", False)],
)
def mean_subtraction(
    inp: Operand,
    base_axis: int = 1,
    update_running_mean: bool = True,
    fix_parameters: bool = False,
    name: str | None = None,
) -> Operand:
    """Subtract the moving mean of the samples.

    Args:
        inp: Input of any shape.
        update_running_mean: Let the mean follow the batches.
        fix_parameters: Has no effect; there is nothing to train.

    Returns:
        The shape of `inp`.

    Example:
        >>> PF.mean_subtraction(nn.Variable((8, 3, 16, 16))).shape
        (8, 3, 16, 16)
    """
    mean = get_parameter_or_create("mean", shape_for_parameters(inp)[base_axis:], ZEROS, False)
    t = get_parameter_or_create("t", (1,), ZEROS, False)
    return F.mean_subtraction(inp, mean, t, base_axis, update_running_mean)


@overload
def layer_normalization(
    inp: Operand,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: Literal[False] = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Operand: ...
@overload
def layer_normalization(
    inp: Operand,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> tuple[Operand, Operand, Operand]: ...
@layer("layer_normalization", _LAYER_PARAMETERS)
def layer_normalization(
    inp: Operand,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Any:
    """Normalize each sample over all its elements, then scale and shift each element.

    Args:
        inp: Input of any shape.
        batch_axis: The axes that count samples.

    Returns:
        The shape of `inp`; with `output_stat` a tuple of it, mean and variance.

    References:
        Ba, Kiros and Hinton (2016), Layer normalization.

    Example:
        >>> PF.layer_normalization(nn.Variable((8, 20))).shape
        (8, 20)
    """
    shape = list(shape_for_parameters(inp))
    for axis in checked_axes("layer_normalization", "batch_axis", inp, batch_axis):
        shape[axis] = 1
    beta, gamma = _shift_and_scale(tuple(shape), fix_parameters, param_init, no_scale, no_bias)
    return _results(F.layer_normalization(inp, beta, gamma, batch_axis, eps, output_stat))


@overload
def instance_normalization(
    inp: Operand,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: Literal[False] = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Operand: ...
@overload
def instance_normalization(
    inp: Operand,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> tuple[Operand, Operand, Operand]: ...
@layer("instance_normalization", _CHANNEL_PARAMETERS)
def instance_normalization(
    inp: Operand,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Any:
    """Normalize each channel of each sample, then scale and shift it.

    Args:
        inp: Input of any shape.
        channel_axis: Axis of the channels.
        batch_axis: The axes that count samples.

    Returns:
        The shape of `inp`; with `output_stat` a tuple of it, mean and variance.

    References:
        Ulyanov, Vedaldi and Lempitsky (2016), Instance normalization.

    Example:
        >>> PF.instance_normalization(nn.Variable((8, 3, 16, 16))).shape
        (8, 3, 16, 16)
    """
    shape = _kept_axes("instance_normalization", inp, channel_axis)
    beta, gamma = _shift_and_scale(shape, fix_parameters, param_init, no_scale, no_bias)
    return _results(F.instance_normalization(inp, beta, gamma, channel_axis, batch_axis, eps, output_stat))


@overload
def group_normalization(
    inp: Operand,
    num_groups: int,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: Literal[False] = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Operand: ...
@overload
def group_normalization(
    inp: Operand,
    num_groups: int,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> tuple[Operand, Operand, Operand]: ...
@layer("group_normalization", _CHANNEL_PARAMETERS)
def group_normalization(
    inp: Operand,
    num_groups: int,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    no_scale: bool = False,
    no_bias: bool = False,
    name: str | None = None,
) -> Any:
    """Normalize groups of channels of each sample, then scale and shift each channel.

    Args:
        inp: Input of any shape.
        num_groups: Number of groups; it divides the number of channels.
        channel_axis: Axis of the channels.
        batch_axis: The axes that count samples.

    Returns:
        The shape of `inp`; with `output_stat` a tuple of it, mean and variance.

    References:
        Wu and He (2018), Group normalization.

    Example:
        >>> PF.group_normalization(nn.Variable((8, 6, 16, 16)), num_groups=3).shape
        (8, 6, 16, 16)
    """
    shape = _kept_axes("group_normalization", inp, channel_axis)
    beta, gamma = _shift_and_scale(shape, fix_parameters, param_init, no_scale, no_bias)
    return _results(F.group_normalization(inp, beta, gamma, num_groups, channel_axis, batch_axis, eps, output_stat))


def _results(results: Any) -> Any:
    """One result, or a tuple of them."""
    return results if isinstance(results, Variable | NdArray) else tuple(results)


def _shift_and_scale(
    shape: Shape,
    fix_parameters: bool,
    param_init: Mapping[str, Initializer] | None,
    no_scale: bool,
    no_bias: bool,
    further: Sequence[str] = (),
) -> tuple[Variable | None, Variable | None]:
    """Beta and gamma; None where they are not used."""
    given = param_init or {}
    known = ("beta", "gamma", *further)
    for name in given:
        if name not in known:
            raise ArgumentError(f"param_init: the names must be among {', '.join(known)}, got {name!r}")
    beta_init = given.get("beta", ZEROS)
    gamma_init = given.get("gamma", ONES)
    beta = None if no_bias else trained("beta", shape, beta_init, fix_parameters)
    gamma = None if no_scale else trained("gamma", shape, gamma_init, fix_parameters)
    return beta, gamma


def _moving(shape: Shape, param_init: Mapping[str, Initializer] | None) -> tuple[Variable, Variable]:
    given = param_init or {}
    mean = get_parameter_or_create("mean", shape, given.get("mean", ZEROS), False)
    var = get_parameter_or_create("var", shape, given.get("var", ONES), False)
    return mean, var


def _kept_axes(function: str, inp: Operand, axes: int | Sequence[int]) -> Shape:
    """Return the shape of `inp` with 1 for all axes but `axes`."""
    lengths = shape_for_parameters(inp)
    shape = [1] * len(lengths)
    for axis in checked_axes(function, "axes", inp, axes):
        shape[axis] = lengths[axis]
    return tuple(shape)


def checked_axes(function: str, name: str, inp: Operand, axes: int | Sequence[int]) -> tuple[int, ...]:
    """`axes` as non-negative numbers; refuses what is not an axis of `inp`."""
    ndim = inp.ndim
    checked = []
    for axis in axes if isinstance(axes, Sequence) else (axes,):
        if not isinstance(axis, SupportsIndex) or not -ndim <= operator.index(axis) < ndim:
            raise ArgumentError(f"{function}: {name} must be axes of an array of shape {inp.shape}, got {axes}")
        checked.append(operator.index(axis) % ndim)
    return tuple(checked)
