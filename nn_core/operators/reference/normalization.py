"""Reference kernels of normalizations.

Most of them standardize x over some axes, (x - mean) / sqrt(variance + eps), and differ in which axes these are.
Statistics are taken in two passes, added up in float64, with the biased variance; over no elements they are zero. The mean
is subtracted first, so that the result is exactly beta where x is the mean.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from nn_core.operators.reference.activation import relu
from nn_core.operators.reference.precision import mean_of, sum_of, widen
from nn_core.operators.reference.registry import kernel
from nn_core.typing import Array, Namespace


@kernel("BatchNormalization", "SyncBatchNormalization")
def batch_normalization(
    xp: Namespace,
    x: Array,
    beta: Array | None,
    gamma: Array | None,
    mean: Array | None,
    variance: Array | None,
    *,
    axes: Sequence[int],
    decay_rate: float,
    eps: float,
    batch_stat: bool,
    **_: Any,
) -> tuple[Array | None, ...]:
    """Standardize over all axes but `axes`, move the running statistics (Ioffe and Szegedy, 2015)."""
    x = widen(xp, x)
    others = _other_axes(x, axes)
    count = prod(x.shape[axis] for axis in others)
    if not batch_stat:
        return _scaled(_standardized(xp, x, mean, variance, eps), beta, gamma), mean, variance, None, None
    batch_mean, batch_variance = _statistics(xp, x, others)
    y = _scaled(_standardized(xp, x, batch_mean, batch_variance, eps), beta, gamma)
    unbiased = batch_variance * (count / max(count - 1, 1))
    new_mean = _moved(mean, batch_mean, decay_rate) if count else None
    new_variance = _moved(variance, unbiased, decay_rate) if count else None
    return y, batch_mean, batch_variance, new_mean, new_variance


@kernel("FusedBatchNormalization")
def fused_batch_normalization(
    xp: Namespace,
    x: Array,
    beta: Array | None,
    gamma: Array | None,
    mean: Array | None,
    variance: Array | None,
    z: Array | None,
    *,
    nonlinearity: str,
    **args: Any,
) -> tuple[Array | None, ...]:
    """Return a batch normalization, plus z, then a ReLU."""
    y, *rest = batch_normalization(xp, x, beta, gamma, mean, variance, **args)
    y = y if z is None else y + z
    return (relu(xp, y), *rest)


def _statistics(xp: Namespace, x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Mean and biased variance over `axes`, which stay as axes of length 1."""
    count = max(prod(x.shape[axis] for axis in axes), 1)
    mean = mean_of(xp, x, axes, count)
    return mean, mean_of(xp, (x - mean) ** 2, axes, count)


def _standardized(xp: Namespace, x: Array, mean: Array, variance: Array, eps: float) -> Array:
    return (x - mean) / xp.sqrt(widen(xp, variance) + eps)


def _scaled(x: Array, beta: Array | None, gamma: Array | None) -> Array:
    x = x if gamma is None else x * gamma
    return x if beta is None else x + beta


def _moved(running: Array | None, batch: Array, decay_rate: float) -> Array | None:
    return None if running is None else decay_rate * running + (1 - decay_rate) * batch


def _other_axes(x: Array, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(axis for axis in range(x.ndim) if axis not in axes)


def _normalized(
    xp: Namespace, x: Array, beta: Array | None, gamma: Array | None, axes: tuple[int, ...], eps: float
) -> tuple[Array, ...]:
    x = widen(xp, x)
    mean, variance = _statistics(xp, x, axes)
    return _scaled(_standardized(xp, x, mean, variance, eps), beta, gamma), mean, variance


@kernel("LayerNormalization")
def layer_normalization(
    xp: Namespace, x: Array, beta: Array | None, gamma: Array | None, *, batch_axis: Sequence[int], eps: float, **_: Any
) -> tuple[Array, ...]:
    """Standardize over all axes but the batch (Ba, Kiros and Hinton, 2016, section 3)."""
    return _normalized(xp, x, beta, gamma, _other_axes(x, batch_axis), eps)


@kernel("InstanceNormalization")
def instance_normalization(
    xp: Namespace,
    x: Array,
    beta: Array | None,
    gamma: Array | None,
    *,
    channel_axis: int,
    batch_axis: Sequence[int],
    eps: float,
    **_: Any,
) -> tuple[Array, ...]:
    """Standardize each channel of each sample (Ulyanov, Vedaldi and Lempitsky, 2016)."""
    return _normalized(xp, x, beta, gamma, _other_axes(x, (*batch_axis, channel_axis)), eps)


@kernel("TensorNormalization")
def tensor_normalization(
    xp: Namespace, x: Array, beta: Array | None, gamma: Array | None, *, axes: Sequence[int], eps: float, **_: Any
) -> tuple[Array, ...]:
    """Standardize over all axes but `axes`."""
    return _normalized(xp, x, beta, gamma, _other_axes(x, axes), eps)


@kernel("GroupNormalization")
def group_normalization(
    xp: Namespace,
    x: Array,
    beta: Array | None,
    gamma: Array | None,
    *,
    num_groups: int,
    channel_axis: int,
    batch_axis: Sequence[int],
    eps: float,
    **_: Any,
) -> tuple[Array, ...]:
    """Split the channels into groups and standardize each group of each sample (Wu and He, 2018, section 3.1)."""
    before, after = x.shape[:channel_axis], x.shape[channel_axis + 1 :]
    groups = xp.reshape(x, (*before, num_groups, x.shape[channel_axis] // num_groups, *after))
    kept = [axis + (axis > channel_axis) for axis in batch_axis]
    y, mean, variance = _normalized(xp, groups, None, None, _other_axes(groups, (*kept, channel_axis)), eps)
    return _scaled(xp.reshape(y, x.shape), beta, gamma), mean, variance


@kernel("WeightStandardization")
def weight_standardization(xp: Namespace, w: Array, *, channel_axis: int, eps: float) -> tuple[Array, ...]:
    """Standardize the weights of each output channel (Qiao et al., 2019, eq. 2 to 4)."""
    return _normalized(xp, w, None, None, _other_axes(w, (channel_axis,)), eps)


@kernel("NormNormalization")
def norm_normalization(xp: Namespace, x: Array, *, p: float, axes: Sequence[int], eps: float) -> Array:
    """Divide by the p-norm over `axes`."""
    x = widen(xp, x)
    length = (sum_of(xp, xp.abs(x) ** p, axes, keepdims=True) + eps) ** (1 / p)
    return x / length.astype(x.dtype)


@kernel("WeightNormalization")
def weight_normalization(xp: Namespace, w: Array, g: Array, *, dim: int, eps: float) -> Array:
    """Give the slices of w along `dim` the lengths g (Salimans and Kingma, 2016, eq. 2)."""
    w = widen(xp, w)
    lengths = xp.sqrt(sum_of(xp, w * w, _other_axes(w, (dim,)), keepdims=True) + eps).astype(w.dtype)
    return w * (xp.reshape(g, lengths.shape) / lengths)


@kernel("SpectralNorm")
def spectral_norm(
    xp: Namespace, w: Array, u: Array, *, dim: int, itr: int, eps: float, test: bool, output_u: bool
) -> tuple[Array | None, ...]:
    """Divide by the largest singular value, approached by power iteration (Miyato et al., 2018, algorithm 1)."""
    before, w, left = u.copy(), widen(xp, w), xp.reshape(widen(xp, u), (-1,))
    matrix = xp.reshape(xp.moveaxis(w, dim, 0), (w.shape[dim], prod(w.shape[:dim]) * prod(w.shape[dim + 1 :])))
    for _ in range(itr):
        right = _unit(xp, xp.matmul(left, matrix), eps)
        left = _unit(xp, xp.matmul(matrix, right), eps)
    largest = sum_of(xp, left * xp.matmul(matrix, right)).astype(w.dtype)
    left = xp.reshape(left, u.shape)
    return w / largest, left, right, before, None if test else left


def _unit(xp: Namespace, vector: Array, eps: float) -> Array:
    return vector / xp.sqrt(sum_of(xp, vector * vector) + eps).astype(vector.dtype)


@kernel("MeanSubtraction")
def mean_subtraction(
    xp: Namespace, x: Array, rmean: Array, t: Array, *, base_axis: int, update_running_mean: bool
) -> tuple[Array | None, ...]:
    """Subtract the mean of all samples seen so far, batches weighing alike."""
    count = prod(x.shape[:base_axis])
    if not (update_running_mean and count):
        return x - rmean, xp.zeros(t.shape, dtype=rmean.dtype), None, None
    wide = widen(xp, x)
    rate = 1 / (t + 1)
    batch_mean = (sum_of(xp, wide, range(base_axis)) / count).astype(wide.dtype)
    mean = rmean + (batch_mean - rmean) * rate
    return wide - mean, rate, mean, t + 1
