"""Shape and gradient rules of normalizations.

For ``nn.grad`` the gradient rules compute the statistics anew from x, so that they can be differentiated again;
``backward()`` reads those of the forward pass, as fused backward kernels do.
"""

from collections.abc import Sequence
from math import isfinite, prod
from typing import Any, TypeAlias

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.broadcasting import unbroadcast
from nn_core.operators.rules.choosing import chosen
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape

#: Mean and variance; the biased one.
Statistics: TypeAlias = tuple[Any, ...]


def batch_normalization_shape(
    x: Shape,
    beta: Shape | None,
    gamma: Shape | None,
    mean: Shape | None,
    variance: Shape | None,
    *,
    axes: Sequence[int],
    batch_stat: bool,
    no_scale: bool = False,
    no_bias: bool = False,
    **_: Any,
) -> tuple[Shape, ...]:
    """Return the shape of x; statistics have its lengths on `axes` and 1 elsewhere."""
    if not axes:
        raise ArgumentError("axes must name at least one axis, got ()")
    stat = _kept(x, axes)
    _check_switches(beta, gamma, no_scale, no_bias)
    _check_parameters(stat, beta=beta, gamma=gamma, mean=mean, variance=variance)
    if not batch_stat and (mean is None or variance is None):
        raise ArgumentError("mean and variance must be given when batch_stat is False, got None")
    return x, stat, stat


shape_rule("BatchNormalization", "SyncBatchNormalization")(
    batch_normalization_shape
)  # not as a decorator: other rules use it under its own type


@shape_rule("FusedBatchNormalization")
def fused_batch_normalization_shape(
    x: Shape, beta: Shape, gamma: Shape, mean: Shape, variance: Shape, z: Shape | None, **args: Any
) -> tuple[Shape, ...]:
    """As the batch normalization; z has the shape of x."""
    if z is not None and z != x:
        raise ShapeError(f"z must have the shape of x, got {z} and {x}")
    return batch_normalization_shape(x, beta, gamma, mean, variance, **args)


def _kept(x: Shape, axes: Sequence[int]) -> Shape:
    """Return the shape of x with length 1 on all axes but `axes`."""
    return tuple(length if axis in axes else 1 for axis, length in enumerate(x))


def _check_switches(beta: Shape | None, gamma: Shape | None, no_scale: bool, no_bias: bool) -> None:
    for name, switch, switched_off, shape in (
        ("gamma", "no_scale", no_scale, gamma),
        ("beta", "no_bias", no_bias, beta),
    ):
        if switched_off and shape is not None:
            raise ArgumentError(f"{name} must be None when {switch} is True, got shape {shape}")


def _check_parameters(expected: Shape, **given: Shape | None) -> None:
    for name, shape in given.items():
        if shape is not None and shape != expected:
            raise ShapeError(f"{name} must have shape {expected}, got {shape}")


@gradient("BatchNormalization", "SyncBatchNormalization")
def batch_normalization(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Through the statistics when they are those of the batch (Ioffe and Szegedy, 2015, section 3)."""
    statistics = (g.mean, g.variance)
    wanted = tuple(map(g.wants, ("x", "beta", "gamma", "mean", "variance")))
    kept = g.kept("batch_mean", "batch_variance")
    return batch_normalization_gradient(F, g.x, g.beta, g.gamma, statistics, g.grad, g.axes, g.eps, g.batch_stat, wanted, kept)


@gradient("FusedBatchNormalization")
def fused_batch_normalization(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Return the ReLU passes dy where y is positive."""
    dy = chosen(F, F.greater_scalar(g.y, val=0.0), g.grad)
    statistics = (g.mean, g.variance)
    wanted = tuple(map(g.wants, ("x", "beta", "gamma", "mean", "variance")))
    kept = g.kept("batch_mean", "batch_variance")
    gradients = batch_normalization_gradient(
        F, g.x, g.beta, g.gamma, statistics, dy, g.axes, g.eps, g.batch_stat, wanted, kept
    )
    return (*gradients, dy if g.wants("z") else None)


def batch_normalization_gradient(
    F: Any,
    x: Any,
    beta: Any,
    gamma: Any,
    statistics: tuple[Any, Any],
    dy: Any,
    axes: Sequence[int],
    eps: float,
    batch_stat: bool,
    wanted: Sequence[bool],
    kept: Statistics | None,
) -> tuple[Any, ...]:
    """Gradients of x, beta, gamma, mean and variance, None where not `wanted`; `kept` are the statistics of the batch."""
    others = tuple(axis for axis in range(x.ndim) if axis not in axes)
    if batch_stat:
        dx, dbeta, dgamma = _normalization_gradient(F, x, beta, gamma, dy, others, eps, wanted, kept)
        return dx, dbeta, dgamma, None, None
    mean, variance = statistics
    rate = (variance + eps) ** -0.5
    standardized = (x - mean) * rate
    dbeta = unbroadcast(F, dy, beta.shape) if wanted[1] else None
    dgamma = unbroadcast(F, dy * standardized, gamma.shape) if wanted[2] else None
    scaled = dy if gamma is None else dy * gamma
    dx = scaled * rate
    dmean = -unbroadcast(F, dx, mean.shape) if wanted[3] else None
    dvariance = unbroadcast(F, dx * standardized * rate, variance.shape) * -0.5 if wanted[4] else None
    return dx, dbeta, dgamma, dmean, dvariance


def _normalization_gradient(
    F: Any,
    x: Any,
    beta: Any,
    gamma: Any,
    dy: Any,
    axes: tuple[int, ...],
    eps: float,
    wanted: Sequence[bool],
    kept: Statistics | None,
) -> tuple[Any, Any, Any]:
    """Gradients of x, beta and gamma where x is standardized over `axes`; None where not `wanted`."""
    dbeta = unbroadcast(F, dy, beta.shape) if wanted[1] else None
    if not (wanted[0] or wanted[2]):
        return None, dbeta, None
    standardized, rate = _standardized(F, x, axes, eps, kept)
    dgamma = unbroadcast(F, dy * standardized, gamma.shape) if wanted[2] else None
    if not wanted[0]:
        return None, dbeta, dgamma
    return _standardized_gradient(F, dy if gamma is None else dy * gamma, standardized, rate, axes), dbeta, dgamma


def _standardized(F: Any, x: Any, axes: tuple[int, ...], eps: float, kept: Statistics | None) -> tuple[Any, Any]:
    """(x - mean) / sqrt(variance + eps), and the reciprocal of that root; by statistics of x where none are `kept`."""
    mean, variance = kept or (_mean(F, x, axes), None)
    centred = x - mean
    rate = ((_mean(F, centred * centred, axes) if variance is None else variance) + eps) ** -0.5
    return centred * rate, rate


def _standardized_gradient(F: Any, dy: Any, standardized: Any, rate: Any, axes: tuple[int, ...]) -> Any:
    """Subtract from dy what shifts and stretches x, then divide as x was divided."""
    return rate * (dy - _mean(F, dy, axes) - standardized * _mean(F, dy * standardized, axes))


def _mean(F: Any, x: Any, axes: tuple[int, ...]) -> Any:
    if not axes:
        return x
    reduce = F.mean if all(x.shape[axis] for axis in axes) else F.sum  # over nothing the mean is 0 here
    return reduce(x, axes=axes, keep_dims=True)


@shape_rule("LayerNormalization")
def layer_normalization_shape(
    x: Shape,
    beta: Shape | None,
    gamma: Shape | None,
    *,
    batch_axis: Sequence[int],
    no_scale: bool,
    no_bias: bool,
    **_: Any,
) -> tuple[Shape, ...]:
    """Statistics for each place on the batch axes, parameters for each place elsewhere."""
    _check_switches(beta, gamma, no_scale, no_bias)
    parameters = tuple(1 if axis in batch_axis else length for axis, length in enumerate(x))
    _check_parameters(parameters, beta=beta, gamma=gamma)
    stat = _kept(x, batch_axis)
    return x, stat, stat


@gradient("LayerNormalization")
def layer_normalization(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Take the statistics of each sample."""
    return _gradient(F, g, g.batch_axis)


def _gradient(F: Any, g: GradientCall, kept: Sequence[int]) -> tuple[Any, Any, Any]:
    axes = tuple(axis for axis in range(g.x.ndim) if axis not in kept)
    wanted = tuple(map(g.wants, ("x", "beta", "gamma")))
    return _normalization_gradient(F, g.x, g.beta, g.gamma, g.grad, axes, g.eps, wanted, g.kept("mean", "variance"))


@shape_rule("InstanceNormalization")
def instance_normalization_shape(
    x: Shape,
    beta: Shape | None,
    gamma: Shape | None,
    *,
    channel_axis: int,
    batch_axis: Sequence[int],
    no_scale: bool,
    no_bias: bool,
    **_: Any,
) -> tuple[Shape, ...]:
    """Statistics for each channel of each sample; parameters for each channel, and if wanted for each sample too."""
    _check_switches(beta, gamma, no_scale, no_bias)
    stat, shared = _kept(x, (*batch_axis, channel_axis)), _kept(x, (channel_axis,))
    for name, shape in (("beta", beta), ("gamma", gamma)):
        if shape is not None and shape not in (stat, shared):
            raise ShapeError(f"{name} must have shape {shared} or {stat}, got {shape}")
    return x, stat, stat


@gradient("InstanceNormalization")
def instance_normalization(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Take the statistics of each channel of each sample."""
    return _gradient(F, g, (*g.batch_axis, g.channel_axis))


@shape_rule("TensorNormalization")
def tensor_normalization_shape(
    x: Shape, beta: Shape | None, gamma: Shape | None, *, axes: Sequence[int], no_scale: bool, no_bias: bool, **_: Any
) -> tuple[Shape, ...]:
    """Statistics and parameters for each place on `axes`."""
    _check_switches(beta, gamma, no_scale, no_bias)
    stat = _kept(x, axes)
    _check_parameters(stat, beta=beta, gamma=gamma)
    return x, stat, stat


@gradient("TensorNormalization")
def tensor_normalization(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Take the statistics over all axes but `axes`."""
    return _gradient(F, g, g.axes)


@shape_rule("GroupNormalization")
def group_normalization_shape(
    x: Shape,
    beta: Shape | None,
    gamma: Shape | None,
    *,
    num_groups: int,
    channel_axis: int,
    batch_axis: Sequence[int],
    no_scale: bool,
    no_bias: bool,
    **_: Any,
) -> tuple[Shape, ...]:
    """Statistics for each group of each sample, with an axis of length 1 for the channels of a group."""
    _check_switches(beta, gamma, no_scale, no_bias)
    if x[channel_axis] % num_groups:
        raise ShapeError(f"the channels of x must be a multiple of num_groups, got {x[channel_axis]} and {num_groups}")
    _check_parameters(_kept(x, (channel_axis,)), beta=beta, gamma=gamma)
    stat = _kept(x, batch_axis)
    stat = (*stat[:channel_axis], num_groups, 1, *stat[channel_axis + 1 :])
    return x, stat, stat


@gradient("GroupNormalization")
def group_normalization(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """As for the other normalizations, on x with its channels split into groups."""
    c, shape = g.channel_axis, tuple(g.x.shape)
    split = (*shape[:c], g.num_groups, shape[c] // g.num_groups, *shape[c + 1 :])
    kept = (c, *(axis + (axis > c) for axis in g.batch_axis))
    axes = tuple(axis for axis in range(len(split)) if axis not in kept)
    standardized, rate = _standardized(F, F.reshape(g.x, shape=split), axes, g.eps, g.kept("mean", "variance"))
    dx = dgamma = None
    if g.wants("x"):
        dy = g.grad if g.gamma is None else g.grad * g.gamma
        dx = _standardized_gradient(F, F.reshape(dy, shape=split), standardized, rate, axes)
        dx = F.reshape(dx, shape=shape)
    dbeta = unbroadcast(F, g.grad, g.beta.shape) if g.wants("beta") else None
    if g.wants("gamma"):
        dgamma = unbroadcast(F, g.grad * F.reshape(standardized, shape=shape), g.gamma.shape)
    return dx, dbeta, dgamma


@shape_rule("WeightStandardization")
def weight_standardization_shape(w: Shape, *, channel_axis: int, **_: Any) -> tuple[Shape, ...]:
    """Return the shape of w; statistics for each channel."""
    stat = _kept(w, (channel_axis,))
    return w, stat, stat


@gradient("WeightStandardization")
def weight_standardization(F: Any, g: GradientCall) -> Any:
    """Take the statistics of each output channel."""
    axes = tuple(axis for axis in range(g.w.ndim) if axis != g.channel_axis)
    standardized, rate = _standardized(F, g.w, axes, g.eps, g.kept("mean", "variance"))
    return _standardized_gradient(F, g.grad, standardized, rate, axes)


@shape_rule("NormNormalization")
def norm_normalization_shape(x: Shape, *, p: float, **_: Any) -> tuple[Shape]:
    """Return the shape of x."""
    if not isfinite(p):
        raise ArgumentError(f"p must be finite, got {p}")
    return (x,)


@gradient("NormNormalization")
def norm_normalization(F: Any, g: GradientCall) -> Any:
    """With n the norm: dx = dy / n - sum(dy x) n^(-p-1) |x|^(p-1) sign(x)."""
    x, p = g.x, g.p
    raised = x * x if p == 2 else F.abs(x) ** p
    total = F.sum(raised, axes=g.axes, keep_dims=True) + g.eps
    slope = x if p == 2 else _sign(F, x) if p == 1 else F.abs(x) ** (p - 1) * _sign(F, x)
    shared = F.sum(g.grad * x, axes=g.axes, keep_dims=True) * total ** (-1 / p - 1)
    return g.grad * total ** (-1 / p) - slope * shared


def _sign(F: Any, x: Any) -> Any:
    """Return the sign of x, 0 at 0, without a gradient (F.sign has a surrogate one)."""
    return F.greater_scalar(x, val=0.0) - F.less_scalar(x, val=0.0)


@shape_rule("WeightNormalization")
def weight_normalization_shape(w: Shape, g: Shape, *, dim: int, **_: Any) -> tuple[Shape, ...]:
    """Return the shape of w; g has one length for each slice."""
    if g != (w[dim],):
        raise ShapeError(f"g must have one value for each place on axis dim of w, shape {(w[dim],)}, got {g}")
    return (w,)


@gradient("WeightNormalization")
def weight_normalization(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """Salimans and Kingma (2016), eq. 3."""
    w, dy = g.w, g.grad
    axes = tuple(axis for axis in range(w.ndim) if axis != g.dim)
    lengths = F.reshape(g.g, shape=_kept(tuple(w.shape), (g.dim,)))
    rate = (_sum(F, w * w, axes) + g.eps) ** -0.5
    along = _sum(F, dy * w, axes) * rate
    dw = (dy - w * (along * rate)) * (lengths * rate) if g.wants("w") else None
    return dw, F.reshape(along, shape=tuple(g.g.shape)) if g.wants("g") else None


def _sum(F: Any, x: Any, axes: tuple[int, ...]) -> Any:
    return F.sum(x, axes=axes, keep_dims=True) if axes else x


@shape_rule("SpectralNorm")
def spectral_norm_shape(w: Shape, u: Shape, *, dim: int, **_: Any) -> tuple[Shape, ...]:
    """Return the shape of w, the two vectors of the power iteration, and what the first of them was."""
    if prod(u) != w[dim]:
        raise ShapeError(f"u must have one value for each place on axis dim of w, got {prod(u)} and {w[dim]}")
    return w, u, (prod(w[:dim]) * prod(w[dim + 1 :]),), u


@gradient("SpectralNorm")
def spectral_norm(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """Return the vectors of the power iteration count as constants (Miyato et al., 2018, section 2.2)."""
    if not g.wants("w"):
        return None, None
    w, dim, shape = g.w, g.dim, tuple(g.w.shape)
    left = F.reshape(g.left, shape=_kept(shape, (dim,)))
    right = F.reshape(g.right, shape=tuple(1 if axis == dim else length for axis, length in enumerate(shape)))
    outer = left * right
    largest = F.reshape(F.sum(w * outer), shape=(1,) * w.ndim)
    total = F.reshape(F.sum(g.grad * w), shape=(1,) * w.ndim)
    return g.grad / largest - outer * (total / (largest * largest)), None


@shape_rule("MeanSubtraction")
def mean_subtraction_shape(x: Shape, rmean: Shape, t: Shape, *, base_axis: int, **_: Any) -> tuple[Shape, ...]:
    """Return the shape of x; rmean has its axes from `base_axis` on."""
    if rmean != x[base_axis:]:
        raise ShapeError(f"rmean must have the axes of x from base_axis on, got {rmean} and {x[base_axis:]}")
    if t != (1,):
        raise ShapeError(f"t must have shape (1,), got {t}")
    return x, t


@gradient("MeanSubtraction")
def mean_subtraction(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Subtract (1 - rate) * rmean + rate * mean of the batch."""
    batch_axes = tuple(range(g.base_axis))
    total = _sum(F, g.grad, batch_axes)
    dx = drmean = None
    if g.wants("x"):
        count = max(prod(g.x.shape[: g.base_axis]), 1)
        dx = g.grad - total * (g.rate * (1 / count))
    if g.wants("rmean"):
        drmean = F.reshape(total * (g.rate - 1.0), shape=tuple(g.rmean.shape))
    return dx, drmean, None
