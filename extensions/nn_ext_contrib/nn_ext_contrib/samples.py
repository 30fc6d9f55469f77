"""Samples of the operators for the conformance kit."""

from nn_core.ext import ArgumentError, ShapeError
from nn_core.testing import convention, error, sample
from nn_core.testing.drawing import distinct, integers, normal, uniform, values

convention(
    "the corners are rounded to pixels",
    "contrib.RoiPooling2d.rois",
    "contrib.RoiAveragePooling2d.rois",
    "contrib.RoiAveragePooling2dBackward.rois",
)
convention("the first derivative counts as constant", "contrib.CtcLoss", "contrib.Crf1d", first=False, second=True)

# The step sizes of central differences suit scores around 1; the sums over paths are smooth.
_NAME = "contrib.CtcLoss"
sample(_NAME, "labels", normal(7, 3, 4), values([[1, 2], [3, 3], [2, 1]]), blank=0)
sample(_NAME, "lengths", normal(6, 4, 3), values([[1, 2], [1, 1], [2, 0], [0, 0]]), values([6, 3, 4, 0]), values([2, 2, 1, 0]))
sample(_NAME, "last_blank", normal(4, 2, 3), values([[0, 1], [1, 1]]), None, values([1, 2]), blank=2)
sample(_NAME, "impossible", normal(2, 2, 3), values([[1, 1], [1, 2]]), smooth=False)
sample(_NAME, "no_labels", normal(3, 2, 3), integers(2, 0, high=3))
sample(_NAME, "no_steps", normal(0, 2, 3), values([[1], [2]]), None, values([0, 1]), smooth=False)
sample(_NAME, "no_samples", normal(3, 0, 3), integers(0, 2, high=3))
sample(_NAME, "far", uniform(5, 2, 4, low=-40, high=40), values([[1, 2], [3, 1]]), values([5, 4]), smooth=False)
sample(_NAME, "many", normal(30, 3, 20), integers(3, 12, low=1, high=20), smooth=False)
error(_NAME, "axes", ShapeError, r"x must have three axes \(T, B, K\)", normal(4, 3), integers(4, 2, high=3))
error(_NAME, "samples", ShapeError, r"target must have shape \(B, L\) with B = 2", normal(4, 2, 3), integers(3, 2, high=3))
error(
    _NAME, "blank", ShapeError, "blank must be one of the 3 classes, got 3", normal(4, 2, 3), integers(2, 2, high=3), blank=3
)
error(
    _NAME, "length", ShapeError, r"input_length must have shape \(2,\)", normal(4, 2, 3), integers(2, 2, high=3), values([4])
)
error(_NAME, "class", ArgumentError, r"labels must be in \[0, 3\), got values from 1 to 3", normal(4, 1, 3), values([[1, 3]]))
error(_NAME, "steps", ArgumentError, r"input_length must be in \[0, 4\]", normal(4, 1, 3), values([[1]]), values([5]))

_NAME = "contrib.Crf1d"
sample(_NAME, "labels", normal(3, 3), normal(4, 2, 3), integers(4, 2, high=3))
sample(_NAME, "lengths", normal(4, 4), normal(5, 3, 4), integers(5, 3, high=4), values([1, 5, 3]))
sample(_NAME, "one_step", normal(3, 3), normal(1, 2, 3), integers(1, 2, high=3))
sample(_NAME, "no_sequences", normal(3, 3), normal(2, 0, 3), integers(2, 0, high=3))
sample(_NAME, "far", normal(3, 3, scale=30), normal(6, 2, 3, scale=30), integers(6, 2, high=3), smooth=False)
error(_NAME, "axes", ShapeError, r"x must have shape \(T, B, K\)", normal(3, 3), normal(4, 3), integers(4, high=3))
error(_NAME, "cost", ShapeError, r"cost must have shape \(3, 3\)", normal(3, 2), normal(4, 2, 3), integers(4, 2, high=3))
error(_NAME, "labels", ShapeError, r"target must have shape \(4, 2\)", normal(3, 3), normal(4, 2, 3), integers(4, 1, high=3))
error(_NAME, "class", ArgumentError, r"labels must be in \[0, 3\)", normal(3, 3), normal(1, 1, 3), values([[3]]))
error(
    _NAME,
    "steps",
    ArgumentError,
    r"length must be in \[1, 2\]",
    normal(3, 3),
    normal(2, 1, 3),
    integers(2, 1, high=3),
    values([0]),
)

_NAME = "contrib.ArgmaxCrf1d"
sample(_NAME, "best", distinct(3, 3, gap=0.3), distinct(4, 2, 3, gap=0.7))
sample(_NAME, "lengths", distinct(4, 4, gap=0.3), distinct(5, 3, 4, gap=0.7), values([1, 5, 3]))
sample(_NAME, "ties", values([[0.0, 0.0], [0.0, 0.0]]), values([[[0.0, 0.0]], [[1.0, 1.0]]]))
error(_NAME, "cost", ShapeError, r"cost must have shape \(3, 3\)", normal(2, 2), normal(4, 2, 3))

_NAME = "contrib.RoiPooling2d"
_ROIS = values([[0.0, 1.0, 0.0, 5.0, 3.0], [1.0, 2.0, 2.0, 2.0, 2.0], [1.0, 0.0, 1.0, 6.0, 4.0]])
_OUTSIDE = values([[0.0, 2.0, 2.0, 8.0, 8.0], [0.0, -3.0, -3.0, 1.0, 1.0]])
for _NAME in ("contrib.RoiPooling2d", "contrib.RoiAveragePooling2d"):
    sample(_NAME, "regions", distinct(2, 2, 5, 7), _ROIS, output_size=(2, 3))
    sample(_NAME, "scaled", distinct(2, 1, 5, 7), _ROIS, output_size=(2, 2), spatial_scale=0.5)
    sample(_NAME, "outside", distinct(1, 1, 3, 3), _OUTSIDE, output_size=(3, 3))
    sample(_NAME, "more_bins", distinct(1, 2, 4, 4), values([[0.0, 1.0, 1.0, 2.0, 2.0]]), output_size=(4, 4))
    sample(_NAME, "no_regions", distinct(1, 2, 4, 4), uniform(0, 5), output_size=(2, 2))
    error(
        _NAME, "axes", ShapeError, r"x must have four axes \(N, C, H, W\)", normal(2, 3, 4), uniform(1, 5), output_size=(2, 2)
    )
    error(_NAME, "rois", ShapeError, r"rois must have shape \(R, 5\)", normal(1, 2, 3, 4), uniform(1, 4), output_size=(2, 2))
    error(
        _NAME,
        "sizes",
        ArgumentError,
        "output_size must be two numbers",
        normal(1, 2, 3, 4),
        uniform(1, 5),
        output_size=(1, 2, 3),
    )
    error(
        _NAME,
        "image",
        ArgumentError,
        r"rois must name an image in \[0, 1\), got 3",
        normal(1, 1, 4, 4),
        values([[3.0, 0, 0, 1, 1]]),
        output_size=(2, 2),
    )

_NAME = "contrib.RoiAveragePooling2dBackward"
sample(_NAME, "regions", normal(3, 2, 2, 3), _ROIS, input_shape=(2, 2, 5, 7), output_size=(2, 3))
sample(_NAME, "outside", normal(2, 1, 3, 3), _OUTSIDE, input_shape=(1, 1, 3, 3), output_size=(3, 3), spatial_scale=0.8)
error(
    _NAME,
    "shape",
    ShapeError,
    r"dy must have shape \(3, 2, 2, 3\)",
    normal(3, 2, 2, 2),
    _ROIS,
    input_shape=(2, 2, 5, 7),
    output_size=(2, 3),
)

_NAME = "contrib.MaxPooling2dIndexes"
sample(_NAME, "windows", distinct(2, 2, 4, 6), kernel=2)
sample(_NAME, "borders", distinct(1, 2, 5, 6), kernel=(3, 2), stride=(2, 1), pad=(1, 0), cover_all=False)
sample(_NAME, "covered", distinct(1, 2, 5, 6), kernel=3, stride=2, pad=1)
sample(_NAME, "ties", values([[[[1.0, 1.0], [1.0, 1.0]]]]), kernel=2)
error(_NAME, "axes", ShapeError, r"x must have four axes \(N, C, H, W\)", normal(2, 3, 4), kernel=2)
error(_NAME, "gaps", ShapeError, "x must have a pixel in every window", normal(1, 1, 6, 6), kernel=2, stride=3)
error(_NAME, "small", ShapeError, "x must be as large as the kernel", normal(1, 1, 2, 2), kernel=4, cover_all=False)

_NAME = "contrib.Upsampling2d"
sample(_NAME, "windows", normal(2, 2, 2, 3), integers(2, 2, 2, 3, high=4), kernel=2, output_size=(4, 6))
sample(_NAME, "smallest", normal(1, 2, 2, 2), values([[[[0, 2], [1, 0]], [[0, 0], [1, 0]]]]), kernel=2)
sample(_NAME, "overlaps", normal(1, 1, 2, 2), integers(1, 1, 2, 2, high=9), kernel=3, stride=1, pad=0, cover_all=False)
sample(
    _NAME,
    "borders",
    normal(1, 1, 2, 2),
    values([[[[4, 3], [1, 0]]]]),
    kernel=3,
    stride=2,
    pad=1,
    output_size=(3, 3),
    cover_all=False,
)
error(
    _NAME,
    "shapes",
    ShapeError,
    r"indexes must have the shape \(1, 1, 2, 2\) of x",
    normal(1, 1, 2, 2),
    integers(1, 1, 2, 1, high=4),
    kernel=2,
)
error(
    _NAME,
    "size",
    ShapeError,
    r"must be pooled to \(2, 2\), the size of x",
    normal(1, 1, 2, 2),
    integers(1, 1, 2, 2, high=4),
    kernel=2,
    output_size=(9, 9),
)
error(
    _NAME,
    "index",
    ArgumentError,
    r"indexes must be in \[0, 4\), got values from 4 to 4",
    normal(1, 1, 1, 1),
    values([[[[4]]]]),
    kernel=2,
)
error(
    _NAME,
    "place",
    ArgumentError,
    r"indexes must name a row in \[0, 1\), got 1",
    normal(1, 1, 1, 1),
    values([[[[2]]]]),
    kernel=2,
    output_size=(1, 1),
)
