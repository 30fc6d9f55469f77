"""Samples of poolings and of regions of interest."""

from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.drawing import distinct, normal, values
from nn_core.testing.samples.registry import Settings, convention, error, sample
from nn_core.typing import Shape

convention("regions are given, not learnt", "RoiAlign.boxes", "RoiAlignBackward.boxes")
convention("the places of the maxima are given, not learnt", "MaxPoolingBackward.x", "MaxPoolingGather.x")

# name: shape of x, shape of y, settings
_GEOMETRIES: dict[str, tuple[Shape, Shape, Settings]] = {
    "plain": ((2, 2, 4, 6), (2, 2, 2, 3), {"kernel": (2, 2)}),
    "overlapping": ((2, 2, 5, 5), (2, 2, 2, 2), {"kernel": (3, 3), "stride": (2, 2)}),
    "padded": ((2, 2, 4, 5), (2, 2, 2, 3), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}),
    "gaps": ((1, 2, 7, 7), (1, 2, 2, 2), {"kernel": (2, 2), "stride": (4, 4)}),
    "border": ((1, 2, 5, 5), (1, 2, 3, 3), {"kernel": (2, 2), "ignore_border": False}),
    "line": ((2, 3, 7), (2, 3, 3), {"kernel": (3,), "stride": (2,)}),
    "volume": ((1, 2, 4, 2, 4), (1, 2, 2, 1, 2), {"kernel": (2, 2, 2)}),
    "channel_last": ((2, 4, 6, 3), (2, 2, 3, 3), {"kernel": (2, 2), "channel_last": True}),
    "no_batch": ((4, 4), (2, 2), {"kernel": (2, 2)}),
    "whole": ((2, 3, 4, 4), (2, 3, 1, 1), {"kernel": (4, 4)}),
    "empty": ((0, 2, 4, 4), (0, 2, 2, 2), {"kernel": (2, 2)}),
}
for _case, (_x, _y, _args) in _GEOMETRIES.items():
    sample("MaxPooling", _case, distinct(*_x), **_args)
    sample("SumPooling", _case, normal(*_x), **_args)
    sample("AveragePooling", _case, normal(*_x), **_args)
    sample("MaxPoolingBackward", _case, normal(*_y), distinct(*_x), **_args)
    sample("MaxPoolingGather", _case, normal(*_x), distinct(*_x), **_args)
for _name, _draw in (
    ("MaxPooling", lambda *shape: distinct(*shape, gap=1 / 1024)),
    ("AveragePooling", normal),
    ("SumPooling", normal),
):
    sample(_name, "large", _draw(2, 33, 15, 18), kernel=(3, 3), stride=(2, 2), pad=(1, 1), smooth=False)
    sample(_name, "large_plain", _draw(2, 32, 16, 16), kernel=(2, 2), smooth=False)
sample("MaxPooling", "ties", values([[[[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]]]), kernel=(2, 2), smooth=False)
sample("MaxPooling", "negative", values([[[[-3.0, -2.0], [-1.0, -4.0]]]]), kernel=(2, 2), stride=(1, 1), pad=(1, 1))
sample("AveragePooling", "without_pad", normal(2, 2, 4, 5), kernel=(3, 3), stride=(2, 2), pad=(1, 1), including_pad=False)
sample("AveragePooling", "border_without_pad", normal(2, 2, 5, 5), kernel=(2, 2), ignore_border=False, including_pad=False)
for _name in ("MaxPooling", "SumPooling", "AveragePooling"):
    _shorter = distinct(2, 3, 3, 4)
    sample(_name, "longer_than_x", _shorter, kernel=(64, 5), stride=(64, 2), pad=(1, 0))
    error(
        _name,
        "kernel",
        ShapeError,
        "x with its padding must be as long as kernel",
        normal(1, 1, 2, 2),
        kernel=(4, 3),
        stride=(2, 2),
    )
    error(_name, "pad", ArgumentError, "pad must be less than kernel", normal(1, 1, 4, 4), kernel=(2, 2), pad=(2, 2))
    error(
        _name,
        "stride",
        ArgumentError,
        "stride must have one value for each",
        normal(1, 1, 4, 4),
        kernel=(2, 2),
        stride=(2,),
    )
    error(_name, "missing", ArgumentError, "kernel must be given", normal(1, 1, 4, 4))
error(
    "MaxPoolingBackward",
    "dy",
    ShapeError,
    "dy must have the shape of the max pooling",
    normal(1, 2),
    distinct(4, 4),
    kernel=(2, 2),
)
error(
    "MaxPoolingGather",
    "values",
    ShapeError,
    "values must have the shape of x",
    normal(2, 4),
    distinct(4, 4),
    kernel=(2, 2),
)

sample("GlobalAveragePooling", "image", normal(2, 3, 4, 5))
sample("GlobalAveragePooling", "line", normal(2, 3, 7))
sample("GlobalAveragePooling", "volume", normal(1, 2, 2, 3, 2))
sample("GlobalAveragePooling", "empty", normal(0, 3, 4, 5))
error("GlobalAveragePooling", "axes", ShapeError, "x must have a spatial axis", normal(2, 3))

sample("Unpooling", "image", normal(2, 2, 2, 3), kernel=(2, 3))
sample("Unpooling", "line", normal(2, 3), kernel=(4,))
sample("Unpooling", "channel_last", normal(2, 2, 3, 2), kernel=(2, 2), channel_last=True)
sample("Unpooling", "empty", normal(0, 2, 2, 3), kernel=(2, 2))
error("Unpooling", "axes", ShapeError, "x must have an axis for each axis of kernel", normal(3), kernel=(2, 2))

_BOXES = values([[0, 0.3, 0.4, 3.1, 2.7], [1, 1.2, 0.1, 3.7, 3.6], [0, 0.2, 1.3, 2.6, 3.4]])
_ALIGN: Settings = {"output_size": (2, 3)}
_SETTINGS: Settings = {"spatial_scale": (0.5, 0.75), "sampling_ratio": 2, **_ALIGN}
sample("RoiAlign", "plain", normal(2, 2, 4, 4), _BOXES, **_ALIGN)
sample("RoiAlign", "settings", normal(2, 2, 4, 4), _BOXES, **_SETTINGS)
sample("RoiAlign", "channel_last", normal(2, 4, 4, 2), _BOXES, channel_last=True, **_ALIGN)
error("RoiAlign", "boxes", ShapeError, "boxes must have shape", normal(2, 2, 4, 4), normal(3, 4), **_ALIGN)
error("RoiAlign", "size", ArgumentError, "output_size must have two values", normal(2, 2, 4, 4), _BOXES, output_size=(2,))
sample("RoiAlignBackward", "plain", normal(3, 2, 2, 3), _BOXES, input_shape=(2, 2, 4, 4), **_ALIGN)
sample("RoiAlignBackward", "settings", normal(3, 2, 2, 3), _BOXES, input_shape=(2, 2, 4, 4), **_SETTINGS)
sample(
    "RoiAlignBackward",
    "channel_last",
    normal(3, 2, 3, 2),
    _BOXES,
    input_shape=(2, 4, 4, 2),
    channel_last=True,
    **_ALIGN,
)
error(
    "RoiAlignBackward",
    "dy",
    ShapeError,
    "dy must have the shape that roi_align gives",
    normal(3, 2, 2, 2),
    _BOXES,
    input_shape=(2, 2, 4, 4),
    **_ALIGN,
)
