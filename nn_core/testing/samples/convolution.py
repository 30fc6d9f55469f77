"""Samples of convolutions, in images just large enough for their geometry."""

from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.drawing import normal, uniform
from nn_core.testing.samples.registry import Settings, error, sample
from nn_core.typing import Shape

# geometry: shapes of x and of one filter (without the axes of channels), settings
_GEOMETRIES: dict[str, tuple[Shape, Shape, Settings]] = {
    "plain": ((4, 5), (3, 3), {}),
    "pointwise": ((3, 4), (1, 1), {}),
    "padded": ((4, 5), (3, 3), {"pad": (1, 1)}),
    "strided": ((5, 6), (3, 2), {"stride": (2, 3), "pad": (1, 0)}),
    "dilated": ((6, 7), (2, 3), {"dilation": (2, 2), "pad": (1, 2)}),
    "line": ((7,), (3,), {"pad": (1,), "stride": (2,)}),
    "volume": ((3, 4, 3), (2, 2, 2), {"pad": (1, 0, 1)}),
}
for _case, (_image, _kernel, _args) in _GEOMETRIES.items():
    sample("Convolution", _case, normal(2, 3, *_image), normal(4, 3, *_kernel), **_args)
    sample("Deconvolution", _case, normal(2, 3, *_image), normal(3, 4, *_kernel), **_args)
    sample("DepthwiseConvolution", _case, normal(2, 3, *_image), normal(3, *_kernel), **_args)
    sample("DepthwiseDeconvolution", _case, normal(2, 4, *_image), normal(4, *_kernel), **_args)
    sample("FusedConvolution", _case, normal(2, 3, *_image), normal(4, 3, *_kernel), **_args)

# Large enough for the blocks, tiles and threads of fast kernels; too large to be moved element by element.
_LARGE: dict[str, tuple[Shape, Shape, Settings]] = {
    "large": ((2, 32, 20, 21), (48, 32, 3, 3), {"pad": (1, 1)}),
    "large_unpadded": ((1, 16, 33, 30), (32, 16, 3, 3), {}),
    "large_odd": ((3, 19, 17, 15), (35, 19, 3, 3), {"pad": (1, 1)}),
    "large_strided": ((2, 16, 19, 23), (24, 16, 3, 3), {"pad": (1, 1), "stride": (2, 2)}),
    "large_pointwise": ((2, 64, 13, 11), (80, 64, 1, 1), {}),
    "large_pointwise_strided": ((2, 32, 14, 14), (48, 32, 1, 1), {"stride": (2, 2)}),
    "large_kernel": ((1, 3, 38, 41), (16, 3, 7, 7), {"pad": (3, 3), "stride": (2, 2)}),
    "large_dilated": ((1, 16, 20, 20), (16, 16, 3, 3), {"pad": (2, 2), "dilation": (2, 2)}),
    "large_groups": ((2, 32, 12, 12), (32, 8, 3, 3), {"pad": (1, 1), "group": 4}),
}
# Some engines of cuDNN add the 840 products of a filter's gradient in an order that loses a few bits more (H100, cuDNN 9.19).
_LOOSE = {"large": 1.5}
for _case, (_x, _w, _args) in _LARGE.items():
    _loose = _LOOSE.get(_case, 1.0)
    sample("Convolution", _case, normal(*_x), normal(*_w), normal(_w[0]), smooth=False, loose=_loose, **_args)
sample(
    "Deconvolution",
    "large",
    normal(2, 32, 9, 11),
    normal(32, 24, 4, 4),
    normal(24),
    stride=(2, 2),
    pad=(1, 1),
    smooth=False,
)
sample("DepthwiseConvolution", "large", normal(2, 48, 19, 17), normal(48, 3, 3), normal(48), pad=(1, 1), smooth=False)
sample("DepthwiseDeconvolution", "large", normal(2, 48, 9, 11), normal(48, 3, 3), normal(48), stride=(2, 2), smooth=False)

_X = normal(2, 4, 4, 5)
sample("Convolution", "bias", _X, normal(6, 4, 3, 3), normal(6), pad=(1, 1))
sample("Convolution", "groups", _X, normal(6, 2, 3, 3), normal(6), group=2)
sample("Convolution", "channel_last", normal(2, 4, 5, 3), normal(4, 3, 3, 3), normal(4), channel_last=True, pad=(1, 1))
sample("Convolution", "base_axis", normal(2, 2, 3, 4, 5), normal(4, 3, 3, 3), normal(4), base_axis=2)
sample("Convolution", "wide", normal(1, 17, 9, 8), normal(19, 17, 3, 3), normal(19), pad=(1, 1))
sample("Convolution", "one_sample", normal(3, 4, 5), normal(2, 3, 3, 3), base_axis=0)
sample("Convolution", "empty", normal(0, 3, 4, 5), normal(4, 3, 3, 3), normal(4))
error("Convolution", "channels", ShapeError, r"x channels must equal weight channels \* group", _X, normal(6, 3, 3, 3))
error(
    "Convolution",
    "groups",
    ShapeError,
    "the number of filters must be a multiple of group",
    _X,
    normal(5, 2, 3, 3),
    group=2,
)
error(
    "Convolution",
    "kernel",
    ShapeError,
    "x with its padding must be as long as the dilated kernel",
    _X,
    normal(6, 4, 5, 3),
)
error(
    "Convolution",
    "pad",
    ArgumentError,
    "pad must have one value for each of the 2 spatial axes",
    _X,
    normal(6, 4, 3, 3),
    pad=(1,),
)
error("Convolution", "stride", ArgumentError, "stride must be at least 1", _X, normal(6, 4, 3, 3), stride=(0, 1))
error(
    "Convolution",
    "bias",
    ShapeError,
    "bias must have one value for each output channel",
    _X,
    normal(6, 4, 3, 3),
    normal(5),
)

sample("Deconvolution", "bias", _X, normal(4, 3, 3, 3), normal(3), pad=(1, 1), stride=(2, 2))
sample("Deconvolution", "groups", _X, normal(4, 3, 2, 2), normal(6), group=2)
sample("Deconvolution", "output_padding", _X, normal(4, 2, 3, 3), stride=(2, 3), output_padding=(1, 2), pad=(1, 1))
sample("Deconvolution", "channel_last", normal(2, 4, 5, 3), normal(3, 2, 2, 4), normal(4), channel_last=True)
sample("Deconvolution", "base_axis", normal(2, 2, 3, 4, 5), normal(3, 2, 2, 2), base_axis=2)
sample("Deconvolution", "empty", normal(0, 3, 4, 5), normal(3, 4, 2, 2), normal(4))
error("Deconvolution", "channels", ShapeError, "x channels must equal the first axis of weight", _X, normal(3, 4, 3, 3))
error(
    "Deconvolution",
    "padding",
    ArgumentError,
    "output_padding must be less than stride or dilation",
    _X,
    normal(4, 2, 3, 3),
    output_padding=(1, 0),
)

sample("DepthwiseConvolution", "multiplier", _X, normal(8, 3, 3), normal(8), multiplier=2, pad=(1, 1))
sample("DepthwiseConvolution", "base_axis", normal(2, 2, 3, 4, 5), normal(3, 2, 2), normal(3), base_axis=2)
sample("DepthwiseConvolution", "empty", normal(0, 3, 4, 5), normal(3, 2, 2), normal(3))
error(
    "DepthwiseConvolution",
    "filters",
    ShapeError,
    r"the number of filters must equal x channels \* multiplier",
    _X,
    normal(3, 3, 3),
)
sample("DepthwiseDeconvolution", "divisor", _X, normal(4, 3, 3), normal(2), divisor=2, pad=(1, 1))
sample("DepthwiseDeconvolution", "base_axis", normal(2, 2, 4, 4, 5), normal(4, 2, 2), normal(4), base_axis=2)
sample("DepthwiseDeconvolution", "empty", normal(0, 4, 4, 5), normal(4, 2, 2), normal(4))
error(
    "DepthwiseDeconvolution",
    "divisor",
    ShapeError,
    "x channels must be a multiple of divisor",
    _X,
    normal(4, 3, 3),
    divisor=3,
)

_FUSED = (normal(2, 3, 4, 5), normal(4, 3, 3, 3), normal(4))
_STATISTICS = (normal(1, 4, 1, 1), uniform(1, 4, 1, 1, low=0.5, high=1.5))
_RUNNING = (normal(1, 4, 1, 1, scale=0.5), uniform(1, 4, 1, 1, low=0.5, high=1.5))
sample("FusedConvolution", "bias", *_FUSED, pad=(1, 1))
sample("FusedConvolution", "normalized", *_FUSED, *_STATISTICS, *_RUNNING, nonlinearity="tanh")
sample("FusedConvolution", "sum", *_FUSED, *_STATISTICS, *_RUNNING, normal(2, 4, 4, 5), pad=(1, 1), nonlinearity="sigmoid")
sample("FusedConvolution", "running", *_FUSED, *_STATISTICS, *_RUNNING, batch_stat=False, eps=1e-3, decay_rate=0.8)
sample("FusedConvolution", "only_sum", *_FUSED, None, None, None, None, normal(2, 4, 2, 3), nonlinearity="identity")
for _name, _numbers in (("leaky_relu", (0.2,)), ("elu", (0.7,)), ("relu6", ())):
    sample("FusedConvolution", _name, *_FUSED, nonlinearity=_name, nonlinearity_args=_numbers)
for _mode in ("reflect", "repeat", "constant"):
    sample("FusedConvolution", f"pad_{_mode}", *_FUSED, pad=(1, 1), pad_mode=_mode, constant_value=0.5)
sample("FusedConvolution", "groups", normal(2, 4, 4, 5), normal(6, 2, 3, 3), group=2)
sample("FusedConvolution", "channel_last", normal(2, 4, 5, 3), normal(4, 3, 3, 3), normal(4), channel_last=True)
sample("FusedConvolution", "base_axis", normal(2, 2, 3, 4, 5), normal(4, 3, 3, 3), base_axis=2)
error("FusedConvolution", "channels", ShapeError, "x channels must equal", normal(2, 3, 4, 5), normal(4, 2, 3, 3))
error(
    "FusedConvolution",
    "z",
    ShapeError,
    "z must have the shape of the output",
    *_FUSED,
    None,
    None,
    None,
    None,
    normal(2, 4, 4, 5),
)

_OFFSETS = {"low": -0.8, "high": 0.8}
sample("DeformableConvolution", "plain", normal(1, 2, 4, 4), normal(3, 2, 2, 2), uniform(1, 8, 4, 4, **_OFFSETS))
sample(
    "DeformableConvolution",
    "mask",
    normal(1, 2, 4, 4),
    normal(3, 2, 2, 2),
    uniform(1, 8, 4, 4, **_OFFSETS),
    uniform(1, 4, 4, 4),
)
sample(
    "DeformableConvolution",
    "bias",
    normal(1, 2, 4, 4),
    normal(2, 2, 3, 3),
    uniform(1, 18, 4, 4, **_OFFSETS),
    uniform(1, 9, 4, 4),
    normal(2),
    pad=(1, 1),
)
sample(
    "DeformableConvolution",
    "groups",
    normal(1, 4, 4, 4),
    normal(2, 2, 2, 2),
    uniform(1, 16, 4, 4, **_OFFSETS),
    uniform(1, 8, 4, 4),
    group=2,
    deformable_group=2,
)
sample(
    "DeformableConvolution",
    "strided",
    normal(1, 2, 5, 5),
    normal(2, 2, 2, 2),
    uniform(1, 8, 5, 5, **_OFFSETS),
    stride=(2, 2),
    dilation=(2, 1),
)
sample(
    "DeformableConvolution",
    "channel_last",
    normal(1, 4, 4, 2),
    normal(3, 2, 2, 2),
    uniform(1, 4, 4, 8, **_OFFSETS),
    channel_last=True,
)
sample(
    "DeformableConvolution",
    "base_axis",
    normal(1, 2, 4, 4),
    normal(3, 2, 2, 2),
    uniform(1, 8, 4, 4, **_OFFSETS),
    base_axis=-3,
)
error(
    "DeformableConvolution",
    "offset",
    ShapeError,
    "offset must have shape",
    normal(1, 2, 4, 4),
    normal(3, 2, 2, 2),
    normal(1, 4, 4, 4),
)

_SEPARABLE = (normal(2, 3, 5, 6), normal(2, 3, 3, 4), normal(2, 3, 3, 4))
sample("AdaptiveSeparableConvolution", "square", *_SEPARABLE)
sample("AdaptiveSeparableConvolution", "oblong", normal(1, 2, 5, 5), normal(1, 2, 4, 3), normal(1, 3, 4, 3))
error(
    "AdaptiveSeparableConvolution",
    "samples",
    ShapeError,
    "must have as many samples as x",
    normal(1, 3, 5, 6),
    *_SEPARABLE[1:],
)
error(
    "AdaptiveSeparableConvolution",
    "places",
    ShapeError,
    "must have a place for each output",
    _SEPARABLE[0],
    normal(2, 3, 2, 4),
    normal(2, 3, 2, 4),
)
