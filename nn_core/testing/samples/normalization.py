"""Samples of normalizations."""

import math

from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.drawing import Draw, normal, uniform, values
from nn_core.testing.samples.registry import Settings, convention, error, sample

convention("the vectors of the power iteration count as constants", "SpectralNorm", second=True)

_POSITIVE = {"low": 0.5, "high": 1.5}


def _statistics(*shape: int) -> tuple[Draw, Draw, Draw, Draw]:
    """beta, gamma, mean and variance."""
    return normal(*shape), uniform(*shape, **_POSITIVE), normal(*shape, scale=0.5), uniform(*shape, **_POSITIVE)


for _name in ("BatchNormalization", "FusedBatchNormalization", "SyncBatchNormalization"):
    sample(_name, "matrix", normal(6, 3), *_statistics(1, 3))
    sample(_name, "image", normal(3, 4, 5, 2), *_statistics(1, 4, 1, 1))
    sample(_name, "large_image", normal(2, 17, 7, 9), *_statistics(1, 17, 1, 1))
    sample(_name, "large", normal(4, 65, 14, 15), *_statistics(1, 65, 1, 1), smooth=False)
    sample(_name, "large_matrix", normal(515, 67), *_statistics(1, 67), smooth=False)
    sample(_name, "one_channel", normal(3, 1, 4, 2), *_statistics(1, 1, 1, 1))
    sample(_name, "last_axis", normal(3, 2, 2, 4), *_statistics(1, 1, 1, 4), axes=(3,))
    sample(_name, "two_axes", normal(5, 2, 3), *_statistics(1, 2, 3), axes=(1, 2))
    sample(_name, "settings", normal(6, 3), *_statistics(1, 3), decay_rate=0.7, eps=1e-3)
    sample(_name, "running", normal(6, 3, 2), *_statistics(1, 3, 1), batch_stat=False)
    error(_name, "axes", ArgumentError, "axes must name at least one axis", normal(4, 3), *_statistics(1, 3), axes=())
    error(_name, "parameters", ShapeError, "must have shape", normal(4, 3), *_statistics(1, 2))
    error(_name, "decay", ArgumentError, "decay_rate must be at most 1", normal(4, 3), *_statistics(1, 3), decay_rate=2.0)
    error(_name, "eps", ArgumentError, "eps must be at least 0", normal(4, 3), *_statistics(1, 3), eps=-1.0)
sample("BatchNormalization", "only_x", normal(6, 3), no_scale=True, no_bias=True)
sample("BatchNormalization", "no_beta", normal(6, 3), None, *_statistics(1, 3)[1:], no_bias=True)
_beta, _gamma, _mean, _variance = _statistics(1, 3)
sample("BatchNormalization", "no_gamma", normal(6, 3), _beta, None, _mean, _variance, no_scale=True)
sample("BatchNormalization", "no_running", normal(6, 3), _beta, _gamma)
sample("BatchNormalization", "running_bare", normal(6, 3), None, None, _mean, _variance, batch_stat=False)
sample("BatchNormalization", "empty", normal(0, 3), *_statistics(1, 3), batch_stat=False)
error("BatchNormalization", "running", ArgumentError, "mean and variance must be given", normal(4, 3), batch_stat=False)
sample("FusedBatchNormalization", "sum", normal(3, 4, 5), *_statistics(1, 4, 1), normal(3, 4, 5), nonlinearity="relu")
sample("FusedBatchNormalization", "image_sum", normal(2, 3, 4, 4), *_statistics(1, 3, 1, 1), normal(2, 3, 4, 4))
error(
    "FusedBatchNormalization",
    "z",
    ShapeError,
    "z must have the shape of x",
    normal(4, 3),
    *_statistics(1, 3),
    normal(4, 2),
)
error(
    "FusedBatchNormalization", "nonlinearity", ArgumentError, "nonlinearity must be one of",
    normal(4, 3), *_statistics(1, 3), nonlinearity="tanh",
)  # fmt: skip
sample("SyncBatchNormalization", "group", normal(6, 3), *_statistics(1, 3), group="world")
error(
    "SyncBatchNormalization",
    "group",
    ArgumentError,
    "group must be one of",
    normal(4, 3),
    *_statistics(1, 3),
    group="a",
)

_SHARED: Settings = {"eps": 1e-3}
sample("LayerNormalization", "matrix", normal(4, 6), normal(1, 6), uniform(1, 6, **_POSITIVE))
sample("LayerNormalization", "axes", normal(3, 4, 5), normal(1, 4, 5), uniform(1, 4, 5, **_POSITIVE))
sample("LayerNormalization", "sequence", normal(3, 4, 5), normal(1, 1, 5), uniform(1, 1, 5, **_POSITIVE), batch_axis=(0, 1))
sample("LayerNormalization", "only_x", normal(4, 6), no_scale=True, no_bias=True, **_SHARED)
sample("LayerNormalization", "long", normal(3, 259), normal(1, 259), uniform(1, 259, **_POSITIVE))
sample("LayerNormalization", "large", normal(130, 515), normal(1, 515), uniform(1, 515, **_POSITIVE), smooth=False)
sample("LayerNormalization", "empty", normal(0, 6), normal(1, 6), uniform(1, 6, **_POSITIVE))
error("LayerNormalization", "shape", ShapeError, "beta must have shape", normal(4, 6), normal(1, 5))
error("LayerNormalization", "switch", ArgumentError, "must be None when", normal(4, 6), normal(1, 6), no_bias=True)

sample("InstanceNormalization", "image", normal(2, 3, 4, 5), normal(1, 3, 1, 1), uniform(1, 3, 1, 1, **_POSITIVE))
sample("InstanceNormalization", "each", normal(2, 3, 5), normal(2, 3, 1), uniform(2, 3, 1, **_POSITIVE))
sample("InstanceNormalization", "last", normal(2, 5, 3), normal(1, 1, 3), uniform(1, 1, 3, **_POSITIVE), channel_axis=2)
sample("InstanceNormalization", "only_x", normal(2, 3, 5), batch_axis=(0,), no_scale=True, no_bias=True, **_SHARED)
sample("InstanceNormalization", "empty", normal(0, 3, 5), normal(1, 3, 1), uniform(1, 3, 1, **_POSITIVE))
error("InstanceNormalization", "shape", ShapeError, "beta must have shape", normal(2, 3, 5), normal(1, 2, 1))

sample(
    "GroupNormalization",
    "image",
    normal(2, 4, 3, 2),
    normal(1, 4, 1, 1),
    uniform(1, 4, 1, 1, **_POSITIVE),
    num_groups=2,
)
sample("GroupNormalization", "one_group", normal(2, 4, 3), normal(1, 4, 1), uniform(1, 4, 1, **_POSITIVE))
sample("GroupNormalization", "last", normal(2, 3, 4), normal(1, 1, 4), None, num_groups=2, channel_axis=-1, no_scale=True)
sample(
    "GroupNormalization",
    "only_x",
    normal(2, 4, 3),
    num_groups=4,
    batch_axis=(0,),
    no_scale=True,
    no_bias=True,
    **_SHARED,
)
sample("GroupNormalization", "empty", normal(0, 4, 3), normal(1, 4, 1), uniform(1, 4, 1, **_POSITIVE), num_groups=2)
error("GroupNormalization", "groups", ShapeError, "the channels of x must be a multiple", normal(2, 4, 3), num_groups=3)
error("GroupNormalization", "none", ArgumentError, "num_groups must be at least 1", normal(2, 4, 3), num_groups=0)

sample("TensorNormalization", "matrix", normal(5, 3), normal(1, 3), uniform(1, 3, **_POSITIVE))
sample("TensorNormalization", "axes", normal(2, 3, 4), normal(2, 1, 4), uniform(2, 1, 4, **_POSITIVE), axes=(0, 2))
sample("TensorNormalization", "only_x", normal(5, 3), no_scale=True, no_bias=True, **_SHARED)
sample("TensorNormalization", "empty", normal(0, 3, 4), axes=(0, 1))
error("TensorNormalization", "shape", ShapeError, "beta must have shape", normal(5, 3), normal(1, 2))

sample("WeightStandardization", "filters", normal(4, 3, 2, 2))
sample("WeightStandardization", "last", normal(5, 3), channel_axis=-1, eps=1e-3)
sample("WeightStandardization", "empty", normal(0, 3))

sample("NormNormalization", "all", normal(3, 4))
sample("NormNormalization", "axis", normal(3, 4), axes=(1,), eps=1e-3)
sample("NormNormalization", "p", uniform(3, 4, low=0.3, high=2), p=3.0, axes=(0,))
sample("NormNormalization", "empty", normal(0, 4), axes=(1,))
error("NormNormalization", "p", ArgumentError, "p must be at least 1", normal(3), p=0.5)
error("NormNormalization", "infinite", ArgumentError, "p must be finite", normal(3), p=math.inf)

sample("WeightNormalization", "filters", normal(4, 3, 2), uniform(4, **_POSITIVE))
sample("WeightNormalization", "last", normal(4, 3), uniform(3, **_POSITIVE), dim=-1, eps=1e-3)
sample("WeightNormalization", "empty", normal(0, 3), uniform(0))
error("WeightNormalization", "g", ShapeError, "g must have one value for each place on axis dim", normal(4, 3), uniform(3))

sample("SpectralNorm", "filters", normal(4, 3, 2), normal(4))
sample("SpectralNorm", "iterations", normal(4, 3), normal(4), itr=5, output_u=True)
sample("SpectralNorm", "last", normal(4, 3), normal(3), dim=1, eps=1e-6)
sample("SpectralNorm", "test", normal(4, 3), normal(4), test=True)
error("SpectralNorm", "u", ShapeError, "u must have one value for each place on axis dim", normal(4, 3), normal(3))
error("SpectralNorm", "itr", ArgumentError, "itr must be at least 1", normal(4, 3), normal(4), itr=0)

sample("MeanSubtraction", "matrix", normal(5, 3), normal(3), values([2]))
sample("MeanSubtraction", "image", normal(4, 2, 3), normal(2, 3), values([0]))
sample("MeanSubtraction", "axes", normal(2, 4, 3), normal(3), values([2]), base_axis=2)
sample("MeanSubtraction", "fixed", normal(5, 3), normal(3), values([2]), update_running_mean=False)
error(
    "MeanSubtraction",
    "rmean",
    ShapeError,
    "rmean must have the axes of x from base_axis on",
    normal(5, 3),
    normal(2),
    values([0]),
)
error("MeanSubtraction", "t", ShapeError, "t must have shape", normal(5, 3), normal(3), values([0, 0]))
