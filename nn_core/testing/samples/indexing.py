"""Samples of functions that pick, place and order elements."""

from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.drawing import distinct, integers, mask, normal, uniform, values
from nn_core.testing.samples.registry import Settings, convention, error, sample

convention("the function exists to alter the gradient", "TopKGrad")

# By number ----------------------------------------------------------------------------------------------------------

sample("OneHot", "vector", integers(4, 1, high=3), shape=(3,))
sample("OneHot", "matrix", values([[0, 1], [2, 0], [1, 1]]), shape=(3, 2))
sample("OneHot", "outside", values([[3], [-4], [-1]]), shape=(3,))
sample("OneHot", "axes", integers(2, 3, 1, high=4), shape=(4,))
sample("OneHot", "empty", integers(0, 1, high=3), shape=(3,))
error(
    "OneHot",
    "axes",
    ShapeError,
    "the last axis of x must have an entry for each axis of shape",
    integers(4, 2, high=3),
    shape=(3,),
)

sample("Embed", "rows", integers(5, high=4), normal(4, 3))
sample("Embed", "matrix", integers(2, 3, high=4), normal(4, 3, 2))
sample("Embed", "repeated", values([1, 1, 1, -1]), normal(3, 2))
sample("Embed", "numbers", integers(3, high=4), normal(4))
sample("Embed", "scalar", integers(high=4), normal(4, 3))
sample("Embed", "many", integers(70, high=131), normal(131, 17))
sample("Embed", "empty", integers(0, 2, high=4), normal(4, 3))
error("Embed", "outside", ArgumentError, "x0 must be in", values([0, 4]), normal(4, 3))
error("Embed", "scalar", ShapeError, "w must have at least one axis", integers(2, high=3), normal())

sample("Gather", "rows", normal(4, 3), integers(5, high=4))
sample("Gather", "axis", normal(2, 4, 3), integers(2, 2, high=4), axis=1)
sample("Gather", "last", normal(2, 4), integers(high=4), axis=-1)
sample("Gather", "batch", normal(2, 3, 4), integers(2, 5, high=3), axis=1, batch_dims=1)
sample("Gather", "batch_later", normal(2, 3, 4, 2), integers(2, 3, high=4), axis=2, batch_dims=1)
sample("Gather", "negative", normal(4, 3), values([-1, 0, -4]))
sample("Gather", "integers", integers(4, 3, high=9), integers(2, high=4))
sample("Gather", "empty", normal(4, 3), integers(0, high=4))
error("Gather", "outside", ArgumentError, "Indices must be in", normal(4, 3), values([4]))
error(
    "Gather",
    "batch",
    ShapeError,
    "x and Indices must agree on the first",
    normal(2, 3),
    integers(3, 2, high=3),
    axis=1,
    batch_dims=1,
)

sample("GatherNd", "elements", normal(3, 4), values([[0, 2, -1], [1, 3, 0]]))
sample("GatherNd", "rows", normal(3, 4), values([[0, 2, 2, 1]]))
sample("GatherNd", "matrix", normal(3, 2, 2), values([[[1, 0]], [[0, 0]], [[1, 1]]]))
sample("GatherNd", "integers", integers(3, 4, high=9), values([[0, 2]]))
sample("GatherNd", "empty", normal(3, 4), integers(1, 0, high=3))
error(
    "GatherNd",
    "rows",
    ShapeError,
    "indices must have at most one row for each axis of x",
    normal(3),
    integers(2, 3, high=3),
)
error("GatherNd", "outside", ArgumentError, "indices must be in", normal(3, 4), values([[3]]))

sample("ScatterNd", "rows", normal(3, 2), values([[4, 0, -2]]), shape=(5, 2))
sample("ScatterNd", "added", normal(4, 2), values([[1, 1, 0, 1]]), shape=(3, 2), add=True)
sample("ScatterNd", "elements", normal(3), values([[0, 2, 1], [1, 3, 0]]), shape=(3, 4))
sample("ScatterNd", "into", normal(2, 3), values([[3, 1]]), normal(4, 3))
sample("ScatterNd", "added_into", normal(3, 3), values([[3, 1, 3]]), normal(4, 3), add=True)
sample("ScatterNd", "empty", normal(0, 2), integers(1, 0, high=3), shape=(3, 2))
error(
    "ScatterNd",
    "both",
    ArgumentError,
    "exactly one of shape and out must be given",
    normal(2, 3),
    values([[3, 1]]),
    normal(4, 3),
    shape=(4, 3),
)
error("ScatterNd", "data", ShapeError, "data must have the shape", normal(2, 2), values([[3, 1]]), shape=(4, 3))
error("ScatterNd", "outside", ArgumentError, "indices must be in", normal(1, 3), values([[4]]), shape=(4, 3))

sample("ScatterAdd", "rows", normal(4, 3), integers(2, 3, high=4), normal(2, 3))
sample("ScatterAdd", "columns", normal(3, 5), integers(3, 4, high=5), normal(3, 4), axis=1)
sample("ScatterAdd", "repeated", normal(3, 2), values([[1, 1], [1, 0], [1, 2]]), normal(3, 2), axis=0)
sample("ScatterAdd", "part", normal(3, 4), integers(2, 2, high=3), normal(4, 4))
sample("ScatterAdd", "empty", normal(3, 4), integers(0, 4, high=3), normal(2, 4))
error(
    "ScatterAdd",
    "axes",
    ShapeError,
    "x0, indices and x1 must have equally many axes",
    normal(3, 4),
    integers(3, high=3),
    normal(3, 4),
)
error("ScatterAdd", "outside", ArgumentError, "indices must be in", normal(3), values([3]), normal(1))

# By mask ------------------------------------------------------------------------------------------------------------

_MASK = values([[1, 0, 1], [0, 1, 1]])
sample("BoolGather", "rows", normal(2, 3, 4), _MASK)
sample("BoolGather", "elements", normal(2, 3), _MASK)
sample("BoolGather", "floats", normal(2, 3), values([[1.0, 0.0, 1.0], [0.0, 0.0, 2.0]]), smooth=False)
sample("BoolGather", "nothing", normal(2, 3), values([[0, 0, 0], [0, 0, 0]]))
sample("BoolGather", "integers", integers(2, 3, high=9), _MASK)
error("BoolGather", "mask", ShapeError, "mask must have the shape of the first axes of input", normal(2, 4), _MASK)

sample("BoolScatter", "rows", normal(4, 5), _MASK)
sample("BoolScatter", "elements", normal(4), _MASK)
sample("BoolScatter", "into", normal(4, 2), _MASK, normal(2, 3, 2))
sample("BoolScatter", "nothing", normal(0), values([0, 0]))
error("BoolScatter", "output", ShapeError, "output must have the shape", normal(4), _MASK, normal(3, 3))
error("BoolScatter", "count", ShapeError, "input must", normal(3), _MASK)

sample("BoolFill", "matrix", normal(2, 3), _MASK, value=1.5)
sample("BoolFill", "row", normal(2, 3), values([1, 0, 1]))
sample("BoolFill", "floats", normal(3, 4), mask(3, 4), value=-1.0, smooth=False)
sample("BoolFill", "image", normal(2, 3, 4, 5), integers(4, 5, high=2), value=2.0)
sample("BoolFill", "empty", normal(0, 3), values([1, 0, 1]))
error("BoolFill", "mask", ShapeError, "mask must have lengths of 1 or those of data", normal(2, 3), values([1, 0]))

sample("NonZero", "matrix", _MASK)
sample("NonZero", "floats", values([0.0, 1.5, 0.0, -2.0]))
sample("NonZero", "nothing", values([[0.0, 0.0]]))
sample("NonZero", "empty", normal(0, 3))

# By order -----------------------------------------------------------------------------------------------------------

sample("Sort", "last_axis", distinct(3, 5))
sample("Sort", "first_axis", distinct(5, 3), axis=0)
sample("Sort", "reverse", distinct(3, 5), reverse=True)
sample("Sort", "with_index", distinct(2, 4, 3), axis=1, with_index=True)
sample("Sort", "only_index", distinct(3, 5), reverse=True, only_index=True)
sample("Sort", "ties", values([[1.0, 0.0, 1.0, 0.0]]), with_index=True, smooth=False)
sample("Sort", "empty", normal(0, 3))
error("Sort", "axis", ArgumentError, "axis must be in", normal(2, 3), axis=2)

_REPEATED = values([[3.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
_ALL: Settings = {"with_index": True, "with_inverse": True, "with_counts": True}
sample("Unique", "values", _REPEATED)
sample("Unique", "all", _REPEATED, **_ALL)
sample("Unique", "rows", _REPEATED, flatten=False, axis=0, **_ALL)
sample("Unique", "columns", _REPEATED, flatten=False, axis=1, with_counts=True)
sample("Unique", "unsorted", _REPEATED, sorted=False, **_ALL)
sample("Unique", "integers", integers(7, high=3), with_inverse=True)
error("Unique", "axis", ArgumentError, "axis must be given if flatten is False", normal(3), flatten=False)

_SORTED = values([-1.0, 0.0, 0.5, 0.5, 2.0])
sample("SearchSorted", "left", _SORTED, values([-2.0, 0.5, 0.4, 3.0]))
sample("SearchSorted", "right", _SORTED, values([-2.0, 0.5, 0.4, 3.0]), right=True)
sample("SearchSorted", "batch", values([[0.0, 1.0], [2.0, 3.0]]), uniform(2, 4, high=3))
sample("SearchSorted", "empty", _SORTED, normal(0))
error("SearchSorted", "batch", ShapeError, "sorted_sequence and values must agree", normal(2, 3), normal(3, 3))

sample("TopKData", "rows", distinct(3, 6), k=2)
sample("TopKData", "in_place", distinct(3, 6), k=2, reduce=False)
sample("TopKData", "magnitude", distinct(3, 6, gap=0.3), k=3, abs=True, with_index=True)
sample("TopKData", "smallest", distinct(3, 6), k=2, largest=False)
sample("TopKData", "flattened", distinct(2, 3, 4), k=5, with_index=True)
sample("TopKData", "batch_axes", distinct(2, 3, 4), k=2, base_axis=2)
sample("TopKData", "whole", distinct(6), k=3, base_axis=0, reduce=False)
sample("TopKData", "empty", normal(0, 4), k=2)
error("TopKData", "k", ArgumentError, "k must be in", normal(3, 4), k=5)
error(
    "TopKData",
    "index",
    ArgumentError,
    "reduce must be True if with_index",
    normal(3, 4),
    k=2,
    reduce=False,
    with_index=True,
)

sample("TopKGrad", "rows", distinct(3, 6), k=2)
sample("TopKGrad", "magnitude", distinct(3, 6), k=2, abs=True)
sample("TopKGrad", "whole", distinct(2, 6), k=3, base_axis=0)
error("TopKGrad", "k", ArgumentError, "k must be in", normal(3, 4), k=0)

# Boxes --------------------------------------------------------------------------------------------------------------

# x, y, width, height, objectness, classes
_DETECTIONS = values(
    [
        [
            [0.50, 0.50, 0.40, 0.40, 0.90, 0.80, 0.10],
            [0.52, 0.50, 0.40, 0.40, 0.80, 0.90, 0.20],
            [0.20, 0.20, 0.20, 0.20, 0.95, 0.10, 0.90],
            [0.80, 0.80, 0.20, 0.20, 0.30, 0.60, 0.40],
        ]
    ]
)
sample("NmsDetection2d", "each_class", _DETECTIONS)
sample("NmsDetection2d", "together", _DETECTIONS, thresh=0.2, nms=0.3, nms_per_class=False)
sample("NmsDetection2d", "empty", uniform(1, 0, 7))
error("NmsDetection2d", "shape", ShapeError, "x must have the shape", uniform(2, 5))

_CORNERS = values([[[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0], [0.0, 0.0, 0.9, 1.0]]])
_SCORES = values([[[0.9, 0.75, 0.6, 0.3], [0.1, 0.8, 0.2, 0.7]]])
_LIMITS: Settings = {"max_output_boxes_per_class": 3, "iou_threshold": 0.5}
sample("ONNXNonMaxSuppression", "corners", _CORNERS, _SCORES, **_LIMITS)
sample("ONNXNonMaxSuppression", "scores", _CORNERS, _SCORES, score_threshold=0.5, **_LIMITS)
sample(
    "ONNXNonMaxSuppression",
    "centers",
    values([[[0.5, 0.5, 1.0, 1.0], [0.5, 2.0, 1.0, 1.0], [0.5, 0.6, 1.0, 1.0], [3.0, 3.0, 1.0, 1.0]]]),
    _SCORES,
    center_point_box=1,
    **_LIMITS,
)
sample("ONNXNonMaxSuppression", "nothing", _CORNERS, _SCORES)
error("ONNXNonMaxSuppression", "boxes", ShapeError, "boxes must have the shape", uniform(1, 4, 3), _SCORES)
error("ONNXNonMaxSuppression", "scores", ShapeError, "scores must have the shape", _CORNERS, uniform(1, 2, 3))

# Several axes at once -----------------------------------------------------------------------------------------------

sample(
    "GatherAxes",
    "rows_and_columns",
    normal(2, 3, 4),
    values([[2, 0, 1, 3, 3], [1, 1, -1, 0, 2]]),
    base_axis=1,
    shape=(2, 3),
)
sample("GatherAxes", "whole", normal(3, 4), values([1, 0, 3, 2, 1]), base_axis=0, shape=(2, 3))
sample("GatherAxes", "empty", normal(0, 3), integers(0, 2, high=3), base_axis=1, shape=(2,))
error(
    "GatherAxes",
    "source",
    ShapeError,
    "source must have the shape",
    normal(2, 3),
    integers(2, 3, high=3),
    base_axis=1,
    shape=(2,),
)

sample(
    "ScatterAxes",
    "rows_and_columns",
    normal(2, 2, 3),
    values([[2, 0, 1, 3, 3], [1, 1, -1, 0, 2]]),
    base_axis=1,
    shape=(3, 4),
)
sample("ScatterAxes", "whole", normal(2, 3), values([1, 0, 3, 2, 1]), base_axis=0, shape=(3, 4))
sample("ScatterAxes", "empty", normal(0, 2), integers(0, 2, high=3), base_axis=1, shape=(3,))
error(
    "ScatterAxes",
    "source",
    ShapeError,
    "source must have the shape",
    normal(2, 2),
    integers(2, 3, high=3),
    base_axis=1,
    shape=(3,),
)
