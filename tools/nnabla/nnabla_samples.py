"""Random cases for compare_nnabla.py: a row per function, which draws its inputs and settings.

Functions are called as users of both packages call them: ``F.<name>(*inputs, **settings)``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Sample:
    """The inputs and settings of one call.

    `wrt` names the inputs whose gradients are compared, by position in `inputs` or key in `named`; None: every floating
    one. `sources` are the outputs that gradients come from; None: all. A `dynamic` function runs as it is called. Only
    the shapes of `random` results are compared.
    """

    inputs: list[np.ndarray | None]
    settings: dict[str, Any] = field(default_factory=dict)
    named: dict[str, np.ndarray] = field(default_factory=dict)
    wrt: tuple[int | str, ...] | None = None
    sources: tuple[int, ...] | None = None
    dynamic: bool = False
    random: bool = False


class Draw:
    """The random numbers of one sample."""

    def __init__(self, seed: list[int]) -> None:
        self.rng = np.random.default_rng(seed)

    def length(self, low: int = 1, high: int = 5) -> int:
        """Return an integer in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def shape(self, ndim: int | None = None, low: int = 1, high: int = 5) -> tuple[int, ...]:
        """`ndim` lengths (1 to 4 if not given)."""
        return tuple(self.length(low, high) for _ in range(self.length(1, 4) if ndim is None else ndim))

    def normal(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        """Return normally distributed numbers."""
        return (scale * self.rng.normal(size=shape)).astype(np.float32)

    def uniform(self, low: float, high: float, *shape: int) -> np.ndarray:
        """Evenly distributed numbers."""
        return self.rng.uniform(low, high, shape).astype(np.float32)

    def distinct(self, *shape: int) -> np.ndarray:
        """Numbers at least 0.1 apart from each other and from 0."""
        count = int(np.prod(shape))
        numbers = (np.arange(count) - count // 2 + 0.5) * 0.25 + self.rng.uniform(-0.07, 0.07, count)
        return self.rng.permutation(numbers).reshape(shape).astype(np.float32)

    def integers(self, high: int, *shape: int) -> np.ndarray:
        """Whole numbers in [0, high), as integers."""
        return self.rng.integers(0, high, shape).astype(np.int32)

    def bits(self, *shape: int) -> np.ndarray:
        """Zeros and ones, as floats."""
        return self.rng.integers(0, 2, shape).astype(np.float32)

    def flag(self) -> bool:
        """Return True or False."""
        return bool(self.rng.integers(2))

    def one_of(self, *values: Any) -> Any:
        """One of `values`."""
        return values[self.rng.integers(len(values))]

    def some_axes(self, ndim: int) -> tuple[int, ...]:
        """One axis at least."""
        count = self.length(1, ndim)
        return tuple(sorted(int(axis) for axis in self.rng.permutation(ndim)[:count]))


Row = Callable[[Draw], Sample]
SAMPLES: dict[str, Row] = {}


def row(*names: str) -> Callable[[Row], Row]:
    """Use the decorated function for each function in `names`."""

    def decorate(function: Row) -> Row:
        for name in names:
            SAMPLES[name] = function
        return function

    return decorate


# --- Element by element

#: The intervals of the inputs of functions of one variable.
DOMAINS = {
    "sigmoid tanh relu relu6 hard_sigmoid hard_tanh log_sigmoid softsign tanh_shrink swish gelu mish sinc": (-4, 4),
    "abs exp sin cos sinh cosh atan asinh erf identity sign round ceil floor reset_nan reset_inf": (-3, 3),
    "log": (0.1, 4),
    "tan": (-1.3, 1.3),
    "asin acos atanh": (-0.9, 0.9),
    "acosh": (1.1, 4),
    "binary_sigmoid binary_tanh unlink logical_not isnan isinf": (-2, 2),
}


def _unary(low: float, high: float) -> Row:
    return lambda d: Sample([d.uniform(low, high, *d.shape())])


SAMPLES.update({name: _unary(*domain) for names, domain in DOMAINS.items() for name in names.split()})


@row("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
def _comparison(d: Draw) -> Sample:
    x0, x1 = _broadcast_shapes(d)
    return Sample([np.round(d.normal(*x0)), np.round(d.normal(*x1))], wrt=())


@row("logical_and", "logical_or", "logical_xor")
def _logical(d: Draw) -> Sample:
    x0, x1 = _broadcast_shapes(d)
    return Sample([d.bits(*x0), d.bits(*x1)], wrt=())


@row("add2", "sub2", "mul2", "minimum2", "maximum2", "atan2", "bc_add2")
def _binary(d: Draw) -> Sample:
    x0, x1 = _broadcast_shapes(d)
    return Sample([d.normal(*x0), d.normal(*x1)])


@row("div2", "pow2")
def _binary_positive(d: Draw) -> Sample:
    x0, x1 = _broadcast_shapes(d)
    return Sample([d.uniform(0.3, 2, *x0), d.uniform(0.3, 2, *x1)])


@row("mod2")
def _mod2(d: Draw) -> Sample:
    x0, x1 = _broadcast_shapes(d)
    return Sample([3 * d.normal(*x0), d.one_of(-1, 1) * d.uniform(0.5, 2, *x1)], {"fmod": d.flag()}, wrt=())


@row("bit_shift")
def _bit_shift(d: Draw) -> Sample:
    shape = d.shape()
    direction = d.one_of("LEFT", "RIGHT")
    arrays = [d.integers(100, *shape).astype(np.uint8), d.integers(4, *shape).astype(np.uint8)]
    return Sample(arrays, {"direction": direction}, wrt=())


def _broadcast_shapes(d: Draw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = d.shape()
    first = tuple(1 if d.length(1, 4) == 1 else length for length in shape)
    second = tuple(1 if d.length(1, 4) == 1 else length for length in shape)
    return first, second


@row("add_scalar", "mul_scalar", "r_sub_scalar", "minimum_scalar", "maximum_scalar")
def _scalar(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape())], {"val": float(d.normal())})


@row("pow_scalar", "r_div_scalar", "r_pow_scalar")
def _positive_scalar(d: Draw) -> Sample:
    return Sample([d.uniform(0.3, 2, *d.shape())], {"val": float(d.uniform(0.3, 2))})


@row("equal_scalar", "not_equal_scalar", "greater_scalar", "greater_equal_scalar", "less_scalar", "less_equal_scalar")
def _scalar_comparison(d: Draw) -> Sample:
    return Sample([np.round(d.normal(*d.shape()))], {"val": float(d.length(-1, 1))}, wrt=())


@row("logical_and_scalar", "logical_or_scalar", "logical_xor_scalar")
def _scalar_logical(d: Draw) -> Sample:
    return Sample([d.bits(*d.shape())], {"val": d.flag()}, wrt=())


@row("add_n", "mul_n")
def _variadic(d: Draw) -> Sample:
    shape = d.shape()
    return Sample([d.normal(*shape) for _ in range(d.length(1, 4))])


@row("where")
def _where(d: Draw) -> Sample:
    shape = d.shape(d.length(1, 3))
    more = d.shape(d.length(0, 1))
    return Sample([d.bits(*shape), d.normal(*shape, *more), d.normal(*shape, *more)], wrt=(1, 2))


@row("elu", "leaky_relu")
def _alpha(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape())], {"alpha": float(d.uniform(0.1, 2))})


@row("selu")
def _selu(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape())], {"scale": 1.2, "alpha": 1.5})


@row("softplus")
def _softplus(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(), scale=3)], {"beta": float(d.uniform(0.5, 2))})


@row("celu")
def _celu(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(3))], {"alpha": 0.7, "axis": d.length(0, 2)})


@row("crelu", "softmax", "log_softmax")
def _along_axis(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(3), scale=2)], {"axis": d.length(0, 2)})


@row("prelu")
def _prelu(d: Draw) -> Sample:
    x, axis = d.normal(*d.shape(3)), d.length(0, 2)
    slope = d.normal() if d.flag() else d.normal(x.shape[axis])
    return Sample([x, slope], {"base_axis": axis})


@row("clip_grad_by_value")
def _clip_grad_by_value(d: Draw) -> Sample:
    shape = d.shape()
    return Sample([d.normal(*shape), np.full(shape, -0.5, np.float32), np.full(shape, 0.6, np.float32)], wrt=(0,))


@row("clip_grad_by_norm")
def _clip_grad_by_norm(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(3))], {"clip_norm": 0.5, "axes": d.some_axes(3)})


# --- Reductions


@row("max", "min")
def _extremum(d: Draw) -> Sample:
    sample = _reduction(d)
    sample.settings["with_index"] = d.flag()
    sample.sources = (0,)
    return sample


@row("prod")
def _prod(d: Draw) -> Sample:
    sample = _reduction(d)
    sample.inputs = [d.uniform(0.6, 1.4, *sample.inputs[0].shape)]
    return sample


@row("sum", "mean")
def _reduction(d: Draw) -> Sample:
    shape = d.shape(3)
    return Sample([d.distinct(*shape)], {"axis": d.some_axes(3), "keepdims": d.flag()})


@row("norm")
def _norm(d: Draw) -> Sample:
    return Sample([d.distinct(*d.shape(3))], {"p": d.one_of(1.0, 2.0, 3.0), "axis": d.some_axes(3), "keepdims": d.flag()})


@row("norm_normalization")
def _norm_normalization(d: Draw) -> Sample:
    return Sample([d.distinct(*d.shape(3))], {"p": d.one_of(1.0, 2.0, 3.0), "axes": d.some_axes(3)})


@row("cumsum", "cumprod")
def _cumulative(d: Draw) -> Sample:
    settings = {"axis": d.length(0, 2), "exclusive": d.flag(), "reverse": d.flag()}
    return Sample([d.distinct(*d.shape(3))], settings)


@row("reduce_sum", "reduce_mean")
def _reduce_all(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape())])


# --- Matrices


@row("affine")
def _affine(d: Draw) -> Sample:
    x, base_axis = d.shape(3), d.length(0, 2)
    n_inputs, outputs = int(np.prod(x[base_axis:])), d.shape(d.length(1, 2))
    return Sample([d.normal(*x), d.normal(n_inputs, *outputs), d.normal(*outputs)], {"base_axis": base_axis})


@row("batch_matmul")
def _batch_matmul(d: Draw) -> Sample:
    batch, n, k, m, first, second = d.shape(1), d.length(), d.length(), d.length(), d.flag(), d.flag()
    a, b = ((k, n) if first else (n, k)), ((m, k) if second else (k, m))
    other = (1,) if d.flag() else batch
    settings = {"transpose_a": first, "transpose_b": second}
    return Sample([d.normal(*batch, *a), d.normal(*other, *b)], settings)


@row("batch_det", "batch_inv", "batch_logdet")
def _square(d: Draw) -> Sample:
    n = d.length(1, 4)
    return Sample([d.normal(d.length(), n, n) + 3 * np.eye(n, dtype=np.float32)])


@row("batch_cholesky")
def _cholesky(d: Draw) -> Sample:
    n = d.length(1, 4)
    x = d.normal(d.length(), n, n)
    return Sample([x @ x.transpose(0, 2, 1) + np.eye(n, dtype=np.float32)], {"upper": d.flag()})


@row("einsum")
def _einsum(d: Draw) -> Sample:
    a, b, c = d.shape(3)
    return d.one_of(
        lambda: Sample([d.normal(a, b), d.normal(b, c)], {"equation": "ab,bc->ac"}),
        lambda: Sample([d.normal(a, b, c), d.normal(c, b)], {"equation": "abc,cb->a"}),
        lambda: Sample([d.normal(a, a)], {"equation": "aa->a"}),
        lambda: Sample([d.normal(a, b), d.normal(a, b), d.normal(a)], {"equation": "ab,ab,a->b"}),
    )()


# --- Convolutions and pooling


def _geometry(d: Draw, n_spatial: int) -> dict[str, Any]:
    return {
        "pad": [d.length(0, 2) for _ in range(n_spatial)],
        "stride": [d.length(1, 2) for _ in range(n_spatial)],
        "dilation": [d.length(1, 2) for _ in range(n_spatial)],
    }


def _convolution_arrays(d: Draw) -> tuple[list[np.ndarray], dict[str, Any]]:
    n_spatial, group = d.length(1, 2), d.length(1, 2)
    channels, filters = group * d.length(1, 2), group * d.length(1, 2)
    x = d.normal(2, channels, *d.shape(n_spatial, 5, 7))
    weight = d.normal(filters, channels // group, *d.shape(n_spatial, 1, 3))
    return [x, weight, d.normal(filters)], {**_geometry(d, n_spatial), "group": group}


@row("convolution")
def _convolution(d: Draw) -> Sample:
    return Sample(*_convolution_arrays(d))


@row("deconvolution")
def _deconvolution(d: Draw) -> Sample:
    n_spatial, group = d.length(1, 2), d.length(1, 2)
    channels, filters = group * d.length(1, 2), group * d.length(1, 2)
    x, weight = (
        d.normal(2, channels, *d.shape(n_spatial, 4, 6)),
        d.normal(channels, filters // group, *d.shape(n_spatial, 2, 3)),
    )
    geometry = {**_geometry(d, n_spatial), "pad": [d.length(0, 1) for _ in range(n_spatial)]}
    return Sample([x, weight, d.normal(filters)], {**geometry, "group": group})


@row("depthwise_convolution")
def _depthwise_convolution(d: Draw) -> Sample:
    n_spatial, channels, multiplier = d.length(1, 2), d.length(1, 3), d.length(1, 2)
    x = d.normal(2, channels, *d.shape(n_spatial, 5, 7))
    weight = d.normal(channels * multiplier, *d.shape(n_spatial, 1, 3))
    return Sample([x, weight, d.normal(channels * multiplier)], {**_geometry(d, n_spatial), "multiplier": multiplier})


@row("depthwise_deconvolution")
def _depthwise_deconvolution(d: Draw) -> Sample:
    n_spatial, channels, divisor = d.length(1, 2), d.length(1, 2), d.length(1, 2)
    x = d.normal(2, channels * divisor, *d.shape(n_spatial, 4, 6))
    weight = d.normal(channels * divisor, *d.shape(n_spatial, 2, 3))
    geometry = {**_geometry(d, n_spatial), "pad": [0] * n_spatial}
    return Sample([x, weight, d.normal(channels)], {**geometry, "divisor": divisor})


@row("deformable_convolution")
def _deformable_convolution(d: Draw) -> Sample:
    deformable_group = d.length(1, 2)
    height, width = d.shape(2, 4, 6)
    x, weight = d.normal(2, 2 * deformable_group, height, width), d.normal(4, 2 * deformable_group, 3, 3)
    offset, mask = (
        d.normal(2, 18 * deformable_group, height, width),
        d.uniform(0, 1, 2, 9 * deformable_group, height, width),
    )
    settings = {"pad": [1, 1], "stride": [1, 1], "dilation": [1, 1], "deformable_group": deformable_group}
    return Sample([x, weight, offset, mask, d.normal(4)], settings)


@row("adaptive_separable_convolution")
def _adaptive_separable_convolution(d: Draw) -> Sample:
    rows, columns, height, width = d.shape(4, 1, 4)
    x = d.normal(2, 3, height + rows - 1, width + columns - 1)
    return Sample([x, d.normal(2, rows, height, width), d.normal(2, columns, height, width)])


@row("fused_convolution")
def _fused_convolution(d: Draw) -> Sample:
    (x, weight, bias), geometry = _convolution_arrays(d)
    settings = {**geometry, "batch_stat": d.flag(), "nonlinearity": d.one_of("identity", "relu", "sigmoid", "tanh")}
    k = weight.shape[0]
    shape = (1, k, *(1,) * (x.ndim - 2))
    named = {name: d.normal(*shape) for name in ("beta", "gamma", "mean")}
    named["variance"] = d.uniform(0.5, 2, *shape)
    if d.flag():  # without normalization
        return Sample([x, weight, bias], settings)
    return Sample([x, weight], settings, named, (0, 1, "beta", "gamma"))


def _pooling_settings(d: Draw) -> dict[str, Any]:
    return {
        "kernel": [d.length(2, 3), d.length(2, 3)],
        "stride": [d.length(1, 3), d.length(1, 3)],
        "pad": [d.length(0, 1), d.length(0, 1)],
        "ignore_border": d.flag(),
    }


@row("max_pooling", "sum_pooling")
def _pooling(d: Draw) -> Sample:
    return Sample([d.distinct(2, d.length(), *d.shape(2, 4, 7))], _pooling_settings(d))


@row("average_pooling")
def _average_pooling(d: Draw) -> Sample:
    settings = {**_pooling_settings(d), "including_pad": d.flag()}
    return Sample([d.normal(2, d.length(), *d.shape(2, 4, 7))], settings)


@row("max_pooling_backward")
def _max_pooling_backward(d: Draw) -> Sample:
    x = d.distinct(2, 2, 6, 6)
    return Sample([d.normal(2, 2, 3, 3), x], {"kernel": [2, 2], "stride": [2, 2]}, wrt=(0,))


@row("global_average_pooling")
def _global_average_pooling(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(4))])


@row("unpooling")
def _unpooling(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(4))], {"kernel": [d.length(1, 3), d.length(1, 3)]})


@row("roi_align")
def _roi_align(d: Draw) -> Sample:
    n = d.length(1, 4)
    corner, extent = d.uniform(0, 8, n, 2), d.uniform(1, 8, n, 2)
    boxes = np.concatenate((d.integers(2, n, 1), corner, corner + extent), axis=1).astype(np.float32)
    settings = {"output_size": list(d.shape(2, 1, 4)), "spatial_scale": [0.5, 0.5], "sampling_ratio": d.length(1, 3)}
    return Sample([d.normal(2, 3, 8, 9), boxes], settings, wrt=(0,))


# --- Normalization


def _batch_statistics(d: Draw, channels: int) -> list[np.ndarray]:
    shape = (1, channels, 1, 1)
    return [d.normal(*shape), d.normal(*shape), d.normal(*shape), d.uniform(0.5, 2, *shape)]


@row("batch_normalization")
def _batch_normalization(d: Draw) -> Sample:
    x = d.normal(*d.shape(4, 2))
    batch_stat = d.flag()
    settings = {"batch_stat": batch_stat, "decay_rate": 0.7, "eps": 1e-3, "output_stat": batch_stat and d.flag()}
    return Sample([x, *_batch_statistics(d, x.shape[1])], settings, wrt=(0, 1, 2))


@row("fused_batch_normalization")
def _fused_batch_normalization(d: Draw) -> Sample:
    x = d.normal(*d.shape(4, 2))
    settings = {"batch_stat": d.flag(), "decay_rate": 0.7, "nonlinearity": "relu"}
    return Sample([x, *_batch_statistics(d, x.shape[1]), d.normal(*x.shape)], settings, wrt=(0, 1, 2, 5))


@row("layer_normalization")
def _layer_normalization(d: Draw) -> Sample:
    x = d.normal(*d.shape(4, 2))
    return Sample([x, d.normal(1, *x.shape[1:]), d.normal(1, *x.shape[1:])], {"batch_axis": 0, "eps": 1e-3})


@row("instance_normalization")
def _instance_normalization(d: Draw) -> Sample:
    x = d.normal(*d.shape(4, 2))
    shape = (1, x.shape[1], 1, 1)
    return Sample([x, d.normal(*shape), d.normal(*shape)], {"eps": 1e-3})


@row("group_normalization")
def _group_normalization(d: Draw) -> Sample:
    groups = d.length(1, 3)
    x = d.normal(d.length(), groups * d.length(1, 2), *d.shape(2, 2))
    shape = (1, x.shape[1], 1, 1)
    return Sample([x, d.normal(*shape), d.normal(*shape)], {"num_groups": groups, "eps": 1e-3})


@row("tensor_normalization")
def _tensor_normalization(d: Draw) -> Sample:
    x, axes = d.normal(*d.shape(3, 2)), d.some_axes(3)
    shape = tuple(length if axis in axes else 1 for axis, length in enumerate(x.shape))
    return Sample([x], {"axes": list(axes), "eps": 1e-3}, {"beta": d.normal(*shape), "gamma": d.normal(*shape)})


@row("weight_normalization")
def _weight_normalization(d: Draw) -> Sample:
    w, dim = d.normal(*d.shape(3, 2)), d.length(0, 2)
    return Sample([w, d.normal(w.shape[dim])], {"dim": dim})


@row("weight_standardization")
def _weight_standardization(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(4, 2))], {"channel_axis": d.length(0, 3), "eps": 1e-3})


@row("spectral_norm")
def _spectral_norm(d: Draw) -> Sample:
    w, dim = d.normal(*d.shape(3, 2)), d.length(0, 2)
    return Sample([w, d.normal(w.shape[dim])], {"dim": dim, "itr": d.length(1, 3), "test": d.flag()}, wrt=(0,))


@row("mean_subtraction")
def _mean_subtraction(d: Draw) -> Sample:
    x = d.normal(*d.shape(3, 2))
    settings = {"base_axis": 1, "update_running_mean": d.flag()}
    return Sample([x, d.normal(*x.shape[1:]), np.array([float(d.length(0, 5))], np.float32)], settings, wrt=(0,))


# --- Losses and errors


@row("squared_error", "absolute_error", "huber_loss")
def _difference(d: Draw) -> Sample:
    shape = d.shape()
    return Sample([d.normal(*shape), d.normal(*shape)])


@row("epsilon_insensitive_loss")
def _epsilon_insensitive_loss(d: Draw) -> Sample:
    shape = d.shape()
    return Sample([d.normal(*shape), d.normal(*shape)], {"epsilon": 0.3})


@row("sigmoid_cross_entropy")
def _sigmoid_cross_entropy(d: Draw) -> Sample:
    shape = d.shape()
    return Sample([d.normal(*shape), d.bits(*shape)], wrt=(0,))


@row("binary_cross_entropy")
def _binary_cross_entropy(d: Draw) -> Sample:
    shape = d.shape()
    return Sample([d.uniform(0.1, 0.9, *shape), d.bits(*shape)], wrt=(0,))


def _labels(d: Draw, axis: int) -> tuple[np.ndarray, np.ndarray]:
    x = d.distinct(*d.shape(3, 2))
    return x, d.integers(x.shape[axis], *x.shape[:axis], 1, *x.shape[axis + 1 :])


@row("softmax_cross_entropy")
def _softmax_cross_entropy(d: Draw) -> Sample:
    axis = d.length(0, 2)
    return Sample([*_labels(d, axis)], {"axis": axis}, wrt=(0,))


@row("categorical_cross_entropy")
def _categorical_cross_entropy(d: Draw) -> Sample:
    axis = d.length(0, 2)
    x, labels = _labels(d, axis)
    x = np.abs(x) + 0.1
    return Sample([x / x.sum(axis=axis, keepdims=True), labels], {"axis": axis}, wrt=(0,))


@row("kl_multinomial")
def _kl_multinomial(d: Draw) -> Sample:
    shape = d.shape(3, 2)
    p, q = d.uniform(0.1, 1, *shape), d.uniform(0.1, 1, *shape)
    return Sample([p, q], {"base_axis": d.length(1, 2)})


@row("top_n_error")
def _top_n_error(d: Draw) -> Sample:
    axis = d.length(0, 2)
    return Sample([*_labels(d, axis)], {"axis": axis, "n": d.length(1, 2)}, wrt=())


@row("confusion_matrix")
def _confusion_matrix(d: Draw) -> Sample:
    axis = d.length(0, 2)
    return Sample([*_labels(d, axis)], {"axis": axis}, wrt=())


@row("binary_error")
def _binary_error(d: Draw) -> Sample:
    shape = d.shape()
    return Sample([d.uniform(0, 1, *shape), d.uniform(0, 1, *shape)], wrt=())


@row("vat_noise")
def _vat_noise(d: Draw) -> Sample:
    shape = d.shape(3)
    return Sample([d.normal(*shape), d.normal(*shape)], {"base_axis": 1, "eps": 0.7}, wrt=())


# --- Arranging elements


@row("concatenate")
def _concatenate(d: Draw) -> Sample:
    shape, axis = d.shape(3), d.length(0, 2)
    parts = [d.normal(*shape[:axis], d.length(), *shape[axis + 1 :]) for _ in range(d.length(2, 4))]
    return Sample(parts, {"axis": axis})


@row("stack")
def _stack(d: Draw) -> Sample:
    shape = d.shape(2)
    return Sample([d.normal(*shape) for _ in range(d.length(1, 3))], {"axis": d.length(0, 2)})


@row("split")
def _split(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(3, 2))], {"axis": d.length(0, 2)})


@row("slice")
def _slice(d: Draw) -> Sample:
    shape = d.shape(3, 3, 6)
    start, step = [d.one_of(0, 1, -length, 1 - length) for length in shape], [d.length(1, 2) for _ in shape]
    stop = [d.one_of(length, -1, length - 1) for length in shape]
    return Sample([d.normal(*shape)], {"start": start, "stop": stop, "step": step})


@row("pad")
def _pad(d: Draw) -> Sample:
    settings = {"pad_width": [d.length(0, 2) for _ in range(4)], "mode": d.one_of("constant", "reflect", "repeat")}
    if settings["mode"] == "constant":
        settings["constant_value"] = 0.5
    return Sample([d.normal(*d.shape(3, 3))], settings)


@row("transpose")
def _transpose(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(3))], {"axes": [int(axis) for axis in d.rng.permutation(3)]})


@row("broadcast")
def _broadcast(d: Draw) -> Sample:
    _, shape = _broadcast_shapes(d)
    return Sample([d.normal(*shape)], {"shape": [d.length() if length == 1 else length for length in shape]})


@row("broadcast_to")
def _broadcast_to(d: Draw) -> Sample:
    shape, axis = d.shape(4), d.length(0, 2)
    return Sample([d.normal(*shape), d.normal(*shape[axis : axis + 2])], {"axis": axis})


@row("tile")
def _tile(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(3))], {"reps": list(d.shape(3, 1, 3))})


@row("one_hot")
def _one_hot(d: Draw) -> Sample:
    return Sample([d.integers(4, *d.shape(2), 1)], {"shape": [4]}, wrt=())


@row("flip")
def _flip(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(3))], {"axes": list(d.some_axes(3))})


@row("shift")
def _shift(d: Draw) -> Sample:
    settings = {"shifts": [d.length(-2, 2), d.length(-2, 2)], "border_mode": d.one_of("nearest", "reflect")}
    return Sample([d.normal(*d.shape(3, 3))], settings)


@row("sort")
def _sort(d: Draw) -> Sample:
    settings = {"axis": d.length(0, 2), "reverse": d.flag(), "with_index": d.flag()}
    return Sample([d.distinct(*d.shape(3))], settings, sources=(0,))


@row("reshape")
def _reshape(d: Draw) -> Sample:
    a, b, c = d.shape(3)
    return Sample([d.normal(a, b, c)], {"shape": [c, -1], "inplace": d.flag()})


@row("shape")
def _shape(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(3))], {"start": d.length(0, 1), "end": d.length(2, 3)}, wrt=())


@row("matrix_diag")
def _matrix_diag(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(2))])


@row("matrix_diag_part")
def _matrix_diag_part(d: Draw) -> Sample:
    n = d.length()
    return Sample([d.normal(d.length(), n, n)])


@row("trilu")
def _trilu(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(3))], {"k": d.length(-2, 2), "upper": d.flag()})


@row("meshgrid")
def _meshgrid(d: Draw) -> Sample:
    return Sample([d.normal(d.length()) for _ in range(d.length(1, 3))], {"ij_indexing": d.flag()})


@row("assign")
def _assign(d: Draw) -> Sample:
    shape = d.shape()
    return Sample([d.normal(*shape), d.normal(*shape)], wrt=())


@row("constant")
def _constant(d: Draw) -> Sample:
    return Sample([], {"val": 0.7, "shape": list(d.shape())})


@row("arange")
def _arange(d: Draw) -> Sample:
    return Sample([], {"start": d.length(-3, 0), "stop": d.length(1, 9), "step": d.one_of(1, 0.5, 2)})


@row("linspace")
def _linspace(d: Draw) -> Sample:
    return Sample([], {"start": d.length(-3, 0), "stop": d.length(1, 9), "num": d.length(1, 7)})


@row("eye_like")
def _eye_like(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(2))], {"k": d.length(-2, 2)}, wrt=())


# --- Indexing


@row("embed")
def _embed(d: Draw) -> Sample:
    return Sample([d.integers(5, *d.shape(2)), d.normal(5, *d.shape(1))])


@row("gather")
def _gather(d: Draw) -> Sample:
    batch, axis = d.length(0, 1), d.length(1, 2)
    x = d.normal(*d.shape(3))
    indices = d.integers(x.shape[axis], *x.shape[:batch], *d.shape(2))
    return Sample([x, indices], {"axis": axis, "batch_dims": batch})


@row("gather_nd")
def _gather_nd(d: Draw) -> Sample:
    x, points = d.normal(*d.shape(3)), d.shape(2)
    return Sample([x, np.stack([d.integers(length, *points) for length in x.shape[:2]])])


@row("scatter_nd")
def _scatter_nd(d: Draw) -> Sample:
    shape, n = d.shape(3, 2), d.length(1, 4)
    flat = d.rng.permutation(shape[0] * shape[1])[:n]
    indices = np.stack(np.unravel_index(flat, shape[:2])).astype(np.int32)
    return Sample([d.normal(len(flat), shape[2]), indices], {"shape": list(shape), "add": d.flag()})


@row("scatter_add")
def _scatter_add(d: Draw) -> Sample:
    shape, axis = d.shape(3), d.length(0, 2)
    part = (*shape[:axis], d.length(), *shape[axis + 1 :])
    return Sample([d.normal(*shape), d.integers(shape[axis], *part), d.normal(*part)], {"axis": axis})


@row("bool_gather")
def _bool_gather(d: Draw) -> Sample:
    shape = d.shape(2)
    mask = d.bits(*shape)
    mask.flat[0] = 1
    return Sample([d.normal(*shape, 3), mask], wrt=(0,), dynamic=True)


@row("bool_scatter")
def _bool_scatter(d: Draw) -> Sample:
    mask = d.bits(*d.shape(2))
    mask.flat[0] = 1
    return Sample([d.normal(int(mask.sum()), 3), mask], wrt=(0,))


@row("bool_fill")
def _bool_fill(d: Draw) -> Sample:
    shape = d.shape(2)
    return Sample([d.normal(*shape), d.bits(*shape)], {"value": 0.3}, wrt=(0,))


@row("nonzero")
def _nonzero(d: Draw) -> Sample:
    mask = d.bits(*d.shape(2))
    mask.flat[0] = 1
    return Sample([mask], wrt=(), dynamic=True)


@row("unique")
def _unique(d: Draw) -> Sample:
    settings = {"flatten": d.flag(), "axis": 0, "with_index": True, "with_inverse": True, "with_counts": True}
    return Sample([d.integers(3, *d.shape(2)).astype(np.float32)], settings, wrt=(), dynamic=True)


@row("searchsorted")
def _searchsorted(d: Draw) -> Sample:
    batch = d.length()
    ordered = np.sort(d.distinct(batch, d.length()), axis=1)
    return Sample([ordered, d.normal(batch, d.length())], {"right": d.flag()}, wrt=())


@row("top_k_data")
def _top_k_data(d: Draw) -> Sample:
    x = d.distinct(*d.shape(3, 2))
    settings = {
        "k": d.length(1, 2),
        "abs": d.flag(),
        "reduce": d.flag(),
        "base_axis": d.length(1, 2),
        "largest": d.flag(),
    }
    return Sample([x], settings)


@row("top_k_grad")
def _top_k_grad(d: Draw) -> Sample:
    return Sample([d.distinct(*d.shape(3, 2))], {"k": d.length(1, 2), "abs": d.flag(), "base_axis": d.length(1, 2)})


@row("nms_detection2d")
def _nms_detection2d(d: Draw) -> Sample:
    boxes = d.uniform(0.1, 0.9, 2, d.length(2, 6), 4)
    scores = d.uniform(0, 1, *boxes.shape[:2], 3)
    settings = {"thresh": 0.3, "nms": 0.4, "nms_per_class": d.flag()}
    return Sample([np.concatenate((boxes, scores), axis=2)], settings)


@row("onnx_non_max_suppression")
def _onnx_non_max_suppression(d: Draw) -> Sample:
    n = d.length(2, 6)
    corner = d.uniform(0, 0.5, 2, n, 2)
    boxes = np.concatenate((corner, corner + d.uniform(0.1, 0.5, 2, n, 2)), axis=2)
    settings = {"max_output_boxes_per_class": 3, "iou_threshold": 0.4, "score_threshold": 0.2}
    return Sample([boxes, d.uniform(0, 1, 2, 2, n)], settings, wrt=(), dynamic=True)


# --- Recurrent layers and sequences


def _recurrent(d: Draw, gates: int, bias_gates: int, states: int) -> Sample:
    layers, directions = d.length(1, 3), d.length(1, 2)
    time, batch, inputs, hidden = d.shape(4, 2, 4)
    state = [d.normal(layers, directions, batch, hidden) for _ in range(states)]
    gate_axis = (gates,) if gates > 1 else ()
    bias_axis = (bias_gates,) if bias_gates > 1 else ()
    first = d.normal(directions, *gate_axis, hidden, inputs + hidden, scale=0.5)
    rest = d.normal(layers - 1, directions, *gate_axis, hidden, directions * hidden + hidden, scale=0.5)
    named = {"weight": rest} if layers > 1 else {}
    named["bias"] = d.normal(layers, directions, *bias_axis, hidden)
    settings = {"num_layers": layers, "bidirectional": directions == 2, "training": True}
    return Sample([d.normal(time, batch, inputs), *state, first], settings, named)


@row("rnn")
def _rnn(d: Draw) -> Sample:
    sample = _recurrent(d, 1, 1, 1)
    sample.settings["nonlinearity"] = d.one_of("tanh", "relu")
    return sample


@row("lstm")
def _lstm(d: Draw) -> Sample:
    return _recurrent(d, 4, 4, 2)


@row("gru")
def _gru(d: Draw) -> Sample:
    return _recurrent(d, 3, 4, 1)


@row("pack_padded_sequence")
def _pack_padded_sequence(d: Draw) -> Sample:
    time, batch = d.shape(2, 2)
    lengths = np.sort(d.rng.integers(1, time + 1, batch))[::-1].astype(np.int32)
    lengths[0] = time
    return Sample([d.normal(time, batch, 3), lengths], {"batch_first": False}, wrt=(0,), dynamic=True)


@row("pad_packed_sequence")
def _pad_packed_sequence(d: Draw) -> Sample:
    sizes = np.sort(d.rng.integers(1, 5, d.length(2, 4)))[::-1].astype(np.int32)
    settings = {"batch_first": d.flag(), "padding_value": 0.5}
    return Sample([d.normal(int(sizes.sum()), 3), sizes], settings, wrt=(0,), dynamic=True)


# --- Images


@row("interpolate")
def _interpolate(d: Draw) -> Sample:
    n_spatial, align_corners = d.length(1, 3), d.flag()
    settings = {
        "output_size": list(d.shape(n_spatial, 1, 8)),
        "mode": d.one_of("nearest", "linear"),
        "align_corners": align_corners,
        "half_pixel": not align_corners and d.flag(),
        "half_pixel_for_nn": d.flag(),
    }
    return Sample([d.normal(2, 2, *d.shape(n_spatial, 1, 6))], settings)


@row("onnx_resize")
def _onnx_resize(d: Draw) -> Sample:
    settings: dict[str, Any] = {
        "mode": d.one_of("nearest", "linear", "cubic"),
        "nearest_mode": d.one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        "cubic_coeff_a": d.one_of(-0.75, -0.5),
        "exclude_outside": d.length(0, 1),
        "extrapolation_value": 0.5,
        "coordinate_transformation_mode": d.one_of(
            "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"
        ),
        "scales": [1.0, 1.0, *(float(scale) for scale in d.uniform(1.1, 2.5, 2))],
    }
    if settings["coordinate_transformation_mode"] == "tf_crop_and_resize":
        low, high = d.uniform(-0.3, 0.4, 2), d.uniform(0.6, 1.4, 2)
        settings["roi"] = [0.0, 0.0, *map(float, low), 1.0, 1.0, *map(float, high)]
    return Sample([d.normal(2, 2, *d.shape(2, 4, 6))], settings)


@row("fft", "ifft")
def _fft(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape(3), 2)], {"signal_ndim": d.length(1, 3), "normalized": d.flag()})


def _frames(d: Draw) -> dict[str, Any]:
    size = d.one_of(6, 8)
    window_type = d.one_of("hanning", "hamming", "rectangular")
    return {"window_size": size, "stride": 2, "fft_size": 8, "window_type": window_type, "center": True}


@row("stft")
def _stft(d: Draw) -> Sample:
    return Sample([d.normal(2, 2 * d.length(5, 9))], {**_frames(d), "pad_mode": d.one_of("constant", "reflect")})


@row("istft")
def _istft(d: Draw) -> Sample:
    frames = d.length(5, 8)
    return Sample([d.normal(2, 5, frames), d.normal(2, 5, frames)], {**_frames(d), "pad_mode": "constant"})


@row("affine_grid")
def _affine_grid(d: Draw) -> Sample:
    ndim = d.length(2, 3)
    settings = {"size": list(d.shape(ndim, 2, 5)), "align_corners": d.flag()}
    return Sample([d.normal(2, ndim, ndim + 1)], settings)


@row("warp_by_grid")
def _warp_by_grid(d: Draw) -> Sample:
    ndim, mode = d.length(2, 3), d.one_of("linear", "nearest")
    settings = {"mode": mode, "padding_mode": d.one_of("zero", "repeat", "reflect"), "align_corners": d.flag()}
    grid = d.normal(2, *d.shape(ndim, 2, 4), ndim)
    return Sample([d.normal(2, 2, *d.shape(ndim, 2, 5)), grid], settings, wrt=(0, 1) if mode == "linear" else (0,))


@row("warp_by_flow")
def _warp_by_flow(d: Draw) -> Sample:
    height, width = d.shape(2, 2)
    return Sample([d.normal(2, 3, height, width), d.normal(2, 2, height, width, scale=1.5)])


@row("patch_correlation")
def _patch_correlation(d: Draw) -> Sample:
    shape = (2, 3, *d.shape(2, 4, 6))
    pairs = {"patch": (1, 3), "shift": (0, 3), "patch_step": (1, 2), "shift_step": (1, 2)}
    settings = {name: list(d.shape(2, *limits)) for name, limits in pairs.items()}
    settings["padding"] = list(d.shape(4, 0, 2))
    return Sample([d.normal(*shape), d.normal(*shape)], settings)


# --- Quantization


@row("binary_connect_affine")
def _binary_connect_affine(d: Draw) -> Sample:
    x, n_outputs = d.normal(*d.shape(2)), d.length()
    weight = np.round(d.normal(x.shape[1], n_outputs), 1)
    return Sample([x, weight, d.normal(*weight.shape), d.normal(n_outputs)], {"quantize_zero_to": -1.0}, wrt=(0, 1, 3))


@row("binary_weight_affine")
def _binary_weight_affine(d: Draw) -> Sample:
    x, n_outputs = d.normal(*d.shape(2)), d.length()
    weight = d.normal(x.shape[1], n_outputs)
    return Sample([x, weight, d.normal(*weight.shape), d.normal(n_outputs), d.normal(n_outputs)], wrt=(0, 1, 4))


@row("binary_connect_convolution")
def _binary_connect_convolution(d: Draw) -> Sample:
    (x, weight, bias), settings = _convolution_arrays(d)
    return Sample([x, weight, d.normal(*weight.shape), bias], settings, wrt=(0, 1, 3))


@row("binary_weight_convolution")
def _binary_weight_convolution(d: Draw) -> Sample:
    (x, weight, bias), settings = _convolution_arrays(d)
    return Sample([x, weight, d.normal(*weight.shape), d.normal(*bias.shape), bias], settings, wrt=(0, 1, 4))


@row("inq_affine")
def _inq_affine(d: Draw) -> Sample:
    x, n_outputs = d.normal(*d.shape(2)), d.length()
    weight = d.normal(x.shape[1], n_outputs)
    settings = {"num_bits": d.length(2, 5), "inq_iterations": d.one_of([], [0, 3], [0])}
    return Sample([x, weight, np.zeros_like(weight), d.normal(n_outputs)], settings, wrt=(0, 1, 3))


@row("inq_convolution")
def _inq_convolution(d: Draw) -> Sample:
    (x, weight, bias), settings = _convolution_arrays(d)
    settings |= {"num_bits": d.length(2, 5), "inq_iterations": d.one_of([], [0, 3], [0])}
    return Sample([x, weight, np.zeros_like(weight), bias], settings, wrt=(0, 1, 3))


@row("fixed_point_quantize")
def _fixed_point_quantize(d: Draw) -> Sample:
    settings = {"sign": d.flag(), "n": d.length(2, 6), "delta": 0.25, "ste_fine_grained": d.flag()}
    return Sample([d.normal(*d.shape(), scale=3)], settings)


@row("pow2_quantize")
def _pow2_quantize(d: Draw) -> Sample:
    settings = {"sign": d.flag(), "with_zero": d.flag(), "n": d.length(3, 6), "m": d.length(-1, 1)}
    return Sample([d.normal(*d.shape(), scale=2)], {**settings, "ste_fine_grained": d.flag()})


@row("prune")
def _prune(d: Draw) -> Sample:
    return Sample([d.distinct(*d.shape())], {"rate": d.one_of(0.0, 0.5, 0.75, 1.0)})


@row("min_max_quantize")
def _min_max_quantize(d: Draw) -> Sample:
    x = d.normal(*d.shape(2))
    shape = d.one_of((1, 1), (x.shape[0], 1), (1, x.shape[1]))
    low = d.normal(*shape)
    limits = [low, low + d.uniform(0.1, 2, *shape), np.zeros(shape, np.float32), np.full(shape, 15, np.float32)]
    x_min_max, ema = d.flag(), d.flag()
    settings = {"decay": 0.9, "x_min_max": x_min_max, "ema": ema, "ste_fine_grained": d.flag()}
    return Sample([x, *limits], settings, wrt=(0,) if x_min_max or ema else (0, 1, 2))


@row("quantize_linear")
def _quantize_linear(d: Draw) -> Sample:
    x, scale = d.normal(*d.shape(2), scale=30), d.uniform(0.2, 1, 1, 1)
    mode = d.one_of("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN")
    settings = {"round_mode": mode, "narrow_range": d.flag(), "dtype": d.one_of("np.int8", "np.uint8")}
    return Sample([x, scale, np.round(d.normal(1, 1, scale=3))], settings, wrt=(0,))


@row("dequantize_linear")
def _dequantize_linear(d: Draw) -> Sample:
    x, scale = np.round(d.normal(*d.shape(2), scale=30)), d.uniform(0.2, 1, 1, 1)
    return Sample([x, scale, np.round(d.normal(1, 1, scale=3))], wrt=(0,))


# --- Random: only shapes can be compared


@row("rand", "randn", "rand_beta", "rand_gamma", "rand_binomial", "randint")
def _random_array(d: Draw) -> Sample:
    return Sample([], {"shape": list(d.shape())}, random=True)


@row("dropout")
def _dropout(d: Draw) -> Sample:
    return Sample([d.normal(*d.shape())], {"p": 0.4}, random=True)


@row("random_choice")
def _random_choice(d: Draw) -> Sample:
    n = d.length(2, 5)
    return Sample([d.normal(2, n), d.uniform(0.1, 1, 2, n)], {"shape": [3]}, wrt=(), random=True)


@row("random_crop")
def _random_crop(d: Draw) -> Sample:
    return Sample([d.normal(2, 3, *d.shape(2, 4, 6))], {"shape": [3, 3, 4]}, random=True)


@row("random_flip")
def _random_flip(d: Draw) -> Sample:
    return Sample([d.normal(2, 3, *d.shape(2))], {"axes": [2, 3]}, random=True)


@row("random_shift")
def _random_shift(d: Draw) -> Sample:
    return Sample([d.normal(2, 3, *d.shape(2, 3))], {"shifts": [1, 2]}, random=True)


@row("random_erase")
def _random_erase(d: Draw) -> Sample:
    return Sample([d.uniform(0, 255, 2, 3, 8, 9)], random=True)


@row("image_augmentation")
def _image_augmentation(d: Draw) -> Sample:
    return Sample([d.uniform(0, 1, 2, 3, 8, 9)], {"shape": [3, 6, 5], "angle": 0.3}, random=True)


#: Functions without a row, and why.
LEFT_OUT = {
    "sink": "has no result",
    "sync_batch_normalization": "needs a communicator",
}
