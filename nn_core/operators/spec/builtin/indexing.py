"""Specifications of the topic indexing.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

ONE_HOT = FunctionSpec(
    name="OneHot", api="one_hot", topic="indexing",
    doc="Turn positions into arrays that are one at the position and zero elsewhere.",
    inputs=(InputSpec(name="x", dtype="index"),), outputs=(OutputSpec(name="output"),),
    args=(ArgSpec(name="shape", type="shape"),), backward=BackwardSpec(none_because="positions have no gradient"),
)

EMBED = FunctionSpec(
    name="Embed", api="embed", topic="indexing", doc="Look up rows of a table by number.",
    inputs=(InputSpec(name="x0", dtype="index"), InputSpec(name="w", dtype="parameter", parameter=True)),
    outputs=(OutputSpec(name="y"),), backward=BackwardSpec(needs=("x0",)),
)

GATHER = FunctionSpec(
    name="Gather", api="gather", topic="indexing", doc="Pick elements along an axis by number.",
    inputs=(InputSpec(name="x", dtype="same"), InputSpec(name="Indices", dtype="index")),
    outputs=(OutputSpec(name="y", dtype="same"),),
    args=(
        ArgSpec(name="axis", type="axis", default=0, shown_as_none=True),
        ArgSpec(name="batch_dims", type="int", default=0, minimum=0, shown_as_none=True),
    ),
    backward=BackwardSpec(needs=("Indices",)), tags=("selecting",),
)

GATHER_ND = FunctionSpec(
    name="GatherNd", api="gather_nd", topic="indexing", doc="Pick elements or blocks by position.",
    inputs=(InputSpec(name="x", dtype="same"), InputSpec(name="indices", dtype="index")),
    outputs=(OutputSpec(name="y", dtype="same"),), backward=BackwardSpec(needs=("indices",)), tags=("selecting",),
)

SCATTER_ND = FunctionSpec(
    name="ScatterNd", api="scatter_nd", topic="indexing",
    doc="Put elements or blocks at positions of a new array of zeros or of an existing array.",
    inputs=(
        InputSpec(name="data"), InputSpec(name="indices", dtype="index"),
        InputSpec(name="out", dtype="parameter", optional=True),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="shape", type="shape", default=None), ArgSpec(name="add", type="bool", default=False)),
    backward=BackwardSpec(needs=("indices",)), updates=("out",),
)

SCATTER_ADD = FunctionSpec(
    name="ScatterAdd", api="scatter_add", topic="indexing",
    doc="Add elements to a copy of an array at numbered places along an axis.",
    inputs=(InputSpec(name="x0"), InputSpec(name="indices", dtype="index"), InputSpec(name="x1")),
    outputs=(OutputSpec(name="y"),), args=(ArgSpec(name="axis", type="axis", default=0, shown_as_none=True),),
    backward=BackwardSpec(needs=("indices",)),
)

BOOL_GATHER = FunctionSpec(
    name="BoolGather", api="bool_gather", topic="indexing", doc="Pick the elements where a mask is not zero.",
    inputs=(InputSpec(name="input", dtype="same"), InputSpec(name="mask", dtype="same")),
    outputs=(OutputSpec(name="output", dtype="same"),), backward=BackwardSpec(needs=("mask",)), tags=("dynamic_shape",),
)

BOOL_SCATTER = FunctionSpec(
    name="BoolScatter", api="bool_scatter", topic="indexing",
    doc="Put elements where a mask is not zero, into zeros or into an existing array; undoes `bool_gather`.",
    inputs=(
        InputSpec(name="input"), InputSpec(name="mask", dtype="same"),
        InputSpec(name="output", dtype="parameter", optional=True),
    ),
    outputs=(OutputSpec(name="y"),), backward=BackwardSpec(needs=("mask",)), updates=("output",),
)

BOOL_FILL = FunctionSpec(
    name="BoolFill", api="bool_fill", topic="indexing", doc="Replace elements where a mask is not zero.",
    inputs=(InputSpec(name="data"), InputSpec(name="mask", dtype="same")), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="value", type="float", default=0.0),), backward=BackwardSpec(needs=("mask",)),
)

NONZERO = FunctionSpec(
    name="NonZero", api="nonzero", topic="indexing", doc="Find the positions of elements that are not zero.",
    inputs=(InputSpec(name="x", dtype="same"),), outputs=(OutputSpec(name="y", dtype="index"),),
    backward=BackwardSpec(none_because="positions have no gradient"), tags=("dynamic_shape", "discontinuous"),
)

SORT = FunctionSpec(
    name="Sort", api="sort", topic="indexing", doc="Put the elements along an axis in order.",
    inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"), OutputSpec(name="index", dtype="index", optional=True)),
    args=(
        ArgSpec(name="axis", type="axis", default=-1), ArgSpec(name="reverse", type="bool", default=False),
        ArgSpec(name="with_index", type="bool", default=False),
        ArgSpec(name="only_index", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x",)), tags=("selecting",),
)

UNIQUE = FunctionSpec(
    name="Unique", api="unique", topic="indexing",
    doc="Find the distinct elements of an array, or its distinct entries along an axis.",
    inputs=(InputSpec(name="x", dtype="same"),),
    outputs=(
        OutputSpec(name="y", dtype="same"), OutputSpec(name="indices", dtype="index", optional=True),
        OutputSpec(name="inverse_indices", dtype="index", optional=True),
        OutputSpec(name="counts", dtype="index", optional=True),
    ),
    args=(
        ArgSpec(name="flatten", type="bool", default=True), ArgSpec(name="axis", type="axis", default=None),
        ArgSpec(name="sorted", type="bool", default=True), ArgSpec(name="with_index", type="bool", default=False),
        ArgSpec(name="with_inverse", type="bool", default=False),
        ArgSpec(name="with_counts", type="bool", default=False),
    ),
    backward=BackwardSpec(none_because="which elements are distinct does not change smoothly"),
    tags=("dynamic_shape", "discontinuous"),
)

SEARCHSORTED = FunctionSpec(
    name="SearchSorted", api="searchsorted", topic="indexing", doc="Find where values belong in sorted sequences.",
    inputs=(InputSpec(name="sorted_sequence"), InputSpec(name="values")),
    outputs=(OutputSpec(name="y", dtype="index"),),
    args=(ArgSpec(name="right", type="bool", default=False, shown_as_none=True),),
    backward=BackwardSpec(none_because="places have no gradient"), tags=("discontinuous",),
)

TOP_K_DATA = FunctionSpec(
    name="TopKData", api="top_k_data", topic="indexing", doc="Keep the k largest elements of each sample.",
    inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"), OutputSpec(name="indices", dtype="index", optional=True)),
    args=(
        ArgSpec(name="k", type="int"), ArgSpec(name="abs", type="bool", default=False),
        ArgSpec(name="reduce", type="bool", default=True), ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="largest", type="bool", default=True),
        ArgSpec(name="with_index", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x",)),
)

TOP_K_GRAD = FunctionSpec(
    name="TopKGrad", api="top_k_grad", topic="indexing",
    doc="Return the input, and keep only the k largest elements of its gradient for each sample.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="k", type="int"), ArgSpec(name="abs", type="bool", default=False),
        ArgSpec(name="base_axis", type="axis", default=1),
    ),
)

NMS_DETECTION2D = FunctionSpec(
    name="NmsDetection2d", api="nms_detection2d", topic="indexing",
    doc="Suppress detected boxes that overlap with a better one.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="thresh", type="float", default=0.5, shown_as_none=True),
        ArgSpec(name="nms", type="float", default=0.45, shown_as_none=True),
        ArgSpec(name="nms_per_class", type="bool", default=True, shown_as_none=True),
    ),
    backward=BackwardSpec(none_because="boxes are suppressed or not, without a slope"),
)

ONNX_NON_MAX_SUPPRESSION = FunctionSpec(
    name="ONNXNonMaxSuppression", api="onnx_non_max_suppression", topic="indexing",
    doc="Pick the boxes that do not overlap with a better one, as the ONNX operator NonMaxSuppression does.",
    inputs=(InputSpec(name="boxes"), InputSpec(name="scores")), outputs=(OutputSpec(name="y", dtype="index"),),
    args=(
        ArgSpec(name="center_point_box", type="int", default=0, minimum=0, maximum=1, shown_as_none=True),
        ArgSpec(name="max_output_boxes_per_class", type="int", default=0, minimum=0, shown_as_none=True),
        ArgSpec(name="iou_threshold", type="float", default=0.0, minimum=0, maximum=1, shown_as_none=True),
        ArgSpec(name="score_threshold", type="float", default=0.0, shown_as_none=True),
    ),
    backward=BackwardSpec(none_because="places have no gradient"), tags=("dynamic_shape",),
)

GATHER_AXES = FunctionSpec(
    name="GatherAxes", api="gather_axes", topic="indexing",
    doc="Read each sample at positions that are given for each axis by itself, as crops, shifts and flips do.",
    inputs=(InputSpec(name="x"), InputSpec(name="source", dtype="index")), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="base_axis", type="int", default=1, minimum=0),
        ArgSpec(name="shape", type="shape", keyword_only=True),
    ),
    backward=BackwardSpec(needs=("source",)),
)

SCATTER_AXES = FunctionSpec(
    name="ScatterAxes", api="scatter_axes", topic="indexing",
    doc=(
        "Add the elements of each sample at positions that are given for each axis by itself; the transpose "
        "of `gather_axes`."
    ),
    inputs=(InputSpec(name="dy"), InputSpec(name="source", dtype="index")), outputs=(OutputSpec(name="dx"),),
    args=(
        ArgSpec(name="base_axis", type="int", default=1, minimum=0),
        ArgSpec(name="shape", type="shape", keyword_only=True),
    ),
    backward=BackwardSpec(needs=("source",)),
)

SPECS: tuple[FunctionSpec, ...] = (
    ONE_HOT, EMBED, GATHER, GATHER_ND, SCATTER_ND, SCATTER_ADD, BOOL_GATHER, BOOL_SCATTER, BOOL_FILL, NONZERO, SORT,
    UNIQUE, SEARCHSORTED, TOP_K_DATA, TOP_K_GRAD, NMS_DETECTION2D, ONNX_NON_MAX_SUPPRESSION, GATHER_AXES, SCATTER_AXES,
)
