"""Specifications of the topic indexing.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

ONE_HOT = FunctionSpec(
    name="OneHot",
    api="one_hot",
    topic="indexing",
    doc="Turn positions into arrays that are one at the position and zero elsewhere.",
    inputs=(
        InputSpec(
            name="x",
            doc="Positions, one entry for each axis of `shape`.",
            shape="(N_1, ..., N_k, M)",
            dtype="index",
        ),
    ),
    outputs=(OutputSpec(name="output", doc="Ones and zeros.", shape="(N_1, ..., N_k, D_1, ..., D_M)"),),
    args=(
        ArgSpec(
            name="shape",
            type="shape",
            doc="Shape (D_1, ..., D_M) that a position points into; (classes,) for labels of shape (N, 1).",
        ),
    ),
    backward=BackwardSpec(none_because="positions have no gradient"),
    formula="output[..., i_1, ..., i_M] = 1 if x[..., :] == (i_1, ..., i_M) else 0",
    notes="Negative entries count from the end. A position outside of `shape` gives zeros only.",
    example="F.one_hot(nn.Variable((16, 1)), (10,)).shape  # (16, 10)",
)

EMBED = FunctionSpec(
    name="Embed",
    api="embed",
    topic="indexing",
    doc="Look up rows of a table by number.",
    inputs=(
        InputSpec(
            name="x0",
            doc="Row numbers in [-W, W); negative ones count from the end.",
            shape="(I_1, ..., I_n)",
            dtype="index",
        ),
        InputSpec(
            name="w",
            doc="Table of W rows.",
            shape="(W, D_1, ..., D_m)",
            dtype="parameter",
            parameter=True,
        ),
    ),
    outputs=(OutputSpec(name="y", doc="The rows, one for each number.", shape="(I_1, ..., I_n, D_1, ..., D_m)"),),
    backward=BackwardSpec(needs=("x0",)),
    formula="y[i, ...] = w[x0[i], ...]",
    notes=(
        "The gradient of a row is the sum over all places that looked it up. Numbers outside of the table "
        "are an ArgumentError where the backend checks them, as the reference does."
    ),
    example="F.embed(nn.Variable((8, 20)), nn.Variable((1000, 64))).shape  # (8, 20, 64)",
)

GATHER = FunctionSpec(
    name="Gather",
    api="gather",
    topic="indexing",
    doc="Pick elements along an axis by number.",
    inputs=(
        InputSpec(
            name="x",
            doc="Array to pick from; N is the length of `axis`.",
            shape="(B_1, ..., P_1, ..., N, Q_1, ...)",
            dtype="same",
        ),
        InputSpec(
            name="Indices",
            doc="Numbers in [-N, N); negative ones count from the end.",
            shape="(B_1, ..., I_1, ...)",
            dtype="index",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Picked elements.",
            shape="(B_1, ..., P_1, ..., I_1, ..., Q_1, ...)",
            dtype="same",
        ),
    ),
    args=(
        ArgSpec(name="axis", type="axis", doc="Axis of x to pick along.", default=0, shown_as_none=True),
        ArgSpec(
            name="batch_dims",
            type="int",
            doc="Number of leading axes that x and Indices have in common; at most `axis`.",
            default=0,
            minimum=0,
            shown_as_none=True,
        ),
    ),
    backward=BackwardSpec(needs=("Indices",)),
    tags=("selecting",),
    formula="y[p, i, q] = x[p, Indices[i], q]; with batch axes b, y[b, p, i, q] = x[b, p, Indices[b, i], q]",
    example="F.gather(nn.Variable((4, 3)), nn.Variable((2, 5)), axis=1).shape  # (4, 2, 5)",
)

GATHER_ND = FunctionSpec(
    name="GatherNd",
    api="gather_nd",
    topic="indexing",
    doc="Pick elements or blocks by position.",
    inputs=(
        InputSpec(name="x", doc="Array to pick from.", shape="(D_1, ..., D_N)", dtype="same"),
        InputSpec(
            name="indices",
            doc="Positions along the first M axes of x, M at most N; negative entries count from the end.",
            shape="(M, I_1, ..., I_k)",
            dtype="index",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Picked elements (M = N) or blocks.",
            shape="(I_1, ..., I_k, D_(M+1), ..., D_N)",
            dtype="same",
        ),
    ),
    backward=BackwardSpec(needs=("indices",)),
    tags=("selecting",),
    formula="y[i, ...] = x[indices[0, i], ..., indices[M - 1, i], ...]",
    example="F.gather_nd(nn.Variable((4, 5)), nn.Variable((2, 3))).shape  # (3,)",
)

SCATTER_ND = FunctionSpec(
    name="ScatterNd",
    api="scatter_nd",
    topic="indexing",
    doc="Put elements or blocks at positions of a new array of zeros or of an existing array.",
    inputs=(
        InputSpec(name="data", doc="What is put.", shape="(I_1, ..., I_k, D_(M+1), ..., D_N)"),
        InputSpec(
            name="indices",
            doc=(
                "Positions along the first M axes of the result, M at most N; negative entries "
                "count from the end."
            ),
            shape="(M, I_1, ..., I_k)",
            dtype="index",
        ),
        InputSpec(
            name="out",
            doc=(
                "Array to put into; it is rewritten when the function runs. Exactly one of `out` "
                "and `shape` is given."
            ),
            shape="(D_1, ..., D_N)",
            dtype="parameter",
            optional=True,
        ),
    ),
    outputs=(OutputSpec(name="y", doc="The array with the elements in place.", shape="(D_1, ..., D_N)"),),
    args=(
        ArgSpec(name="shape", type="shape", doc="Shape of a new array of zeros.", default=None),
        ArgSpec(
            name="add",
            type="bool",
            doc="Add to what is there; positions that repeat add up.",
            default=False,
        ),
    ),
    backward=BackwardSpec(needs=("indices",)),
    updates=("out",),
    formula="y[indices[0, i], ..., indices[M - 1, i], ...] = data[i, ...]",
    notes=(
        "Without `add`, a position that repeats has one of its values, which one is not defined, and each "
        "of them gets the gradient. The gradient of `out` is that of y, zero where y was overwritten; "
        "NNabla gives it none."
    ),
    example="F.scatter_nd(nn.Variable((3,)), nn.Variable((2, 3)), shape=(4, 5)).shape  # (4, 5)",
)

SCATTER_ADD = FunctionSpec(
    name="ScatterAdd",
    api="scatter_add",
    topic="indexing",
    doc="Add elements to a copy of an array at numbered places along an axis.",
    inputs=(
        InputSpec(name="x0", doc="Array that is added to; it is not changed itself.", shape="(D_1, ..., D_n)"),
        InputSpec(
            name="indices",
            doc=(
                "Places along `axis`, one for each element of x1 that is used; negative ones count "
                "from the end. I_k is at most D_k except along `axis`."
            ),
            shape="(I_1, ..., I_n)",
            dtype="index",
        ),
        InputSpec(
            name="x1",
            doc="What is added; E_k is at least I_k, elements beyond are not used.",
            shape="(E_1, ..., E_n)",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Sums.", shape="(D_1, ..., D_n)"),),
    args=(ArgSpec(name="axis", type="axis", doc="Axis that `indices` number.", default=0, shown_as_none=True),),
    backward=BackwardSpec(needs=("indices",)),
    formula="y[.., indices[.., i, ..], ..] += x1[.., i, ..] along `axis`, starting from y = x0",
    notes="Places that repeat add up, in float32 or wider.",
    example="F.scatter_add(nn.Variable((4, 5)), nn.Variable((4, 5)), nn.Variable((4, 5))).shape  # (4, 5)",
)

BOOL_GATHER = FunctionSpec(
    name="BoolGather",
    api="bool_gather",
    topic="indexing",
    doc="Pick the elements where a mask is not zero.",
    inputs=(
        InputSpec(
            name="input",
            doc="Array to pick from.",
            shape="(B_1, ..., B_k, D_1, ..., D_m)",
            dtype="same",
        ),
        InputSpec(
            name="mask",
            doc="Non-zero picks. No gradient flows to it.",
            shape="(B_1, ..., B_k)",
            dtype="same",
        ),
    ),
    outputs=(
        OutputSpec(
            name="output",
            doc="The nnz picked elements in order.",
            shape="(nnz, D_1, ..., D_m)",
            dtype="same",
        ),
    ),
    backward=BackwardSpec(needs=("mask",)),
    tags=("dynamic_shape",),
    notes=(
        "nnz is the number of non-zeros of mask. Until the function has run, the first axis of the output "
        "has length 0."
    ),
    example=(
        "F.bool_gather(nn.NdArray.from_numpy_array([5.0, 6.0, 7.0]), nn.NdArray.from_numpy_array([1, 0, "
        "1]))  # [5, 7]"
    ),
)

BOOL_SCATTER = FunctionSpec(
    name="BoolScatter",
    api="bool_scatter",
    topic="indexing",
    doc="Put elements where a mask is not zero, into zeros or into an existing array; undoes `bool_gather`.",
    inputs=(
        InputSpec(
            name="input",
            doc="One element for each non-zero of mask, in order.",
            shape="(nnz, D_1, ..., D_m)",
        ),
        InputSpec(
            name="mask",
            doc="Non-zero receives an element. No gradient flows to it.",
            shape="(B_1, ..., B_k)",
            dtype="same",
        ),
        InputSpec(
            name="output",
            doc="Array to put into; it is rewritten when the function runs.",
            shape="(B_1, ..., B_k, D_1, ..., D_m)",
            dtype="parameter",
            optional=True,
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Elements in place, else zero or the values of `output`.",
            shape="(B_1, ..., B_k, D_1, ..., D_m)",
        ),
    ),
    backward=BackwardSpec(needs=("mask",)),
    updates=("output",),
    notes=(
        "That mask has nnz non-zeros is checked when the function runs. The gradient of `input` is picked "
        "by mask, so its shape is known only then."
    ),
    example=(
        "F.bool_scatter(nn.NdArray.from_numpy_array([7, 8]), nn.NdArray.from_numpy_array([[1, 0], [0, "
        "1]]))  # [[7, 0], [0, 8]]"
    ),
)

BOOL_FILL = FunctionSpec(
    name="BoolFill",
    api="bool_fill",
    topic="indexing",
    doc="Replace elements where a mask is not zero.",
    inputs=(
        InputSpec(name="data", doc="Array of any shape.", shape="(D_1, ..., D_n)"),
        InputSpec(
            name="mask",
            doc="Non-zero is replaced. No gradient flows to it.",
            shape="broadcast to data",
            dtype="same",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Array with the replaced elements.", shape="(D_1, ..., D_n)"),),
    args=(ArgSpec(name="value", type="float", doc="What is put there.", default=0.0),),
    backward=BackwardSpec(needs=("mask",)),
    formula="y = value if mask != 0 else data",
    example="x = nn.NdArray.from_numpy_array([1.0, float('nan')])\nF.bool_fill(x, F.isnan(x), 0)  # [1, 0]",
)

NONZERO = FunctionSpec(
    name="NonZero",
    api="nonzero",
    topic="indexing",
    doc="Find the positions of elements that are not zero.",
    inputs=(InputSpec(name="x", doc="Array of any shape.", shape="(D_1, ..., D_n)", dtype="same"),),
    outputs=(
        OutputSpec(
            name="y",
            doc="Position of each non-zero, one a column, in C order.",
            shape="(n, nnz)",
            dtype="index",
        ),
    ),
    backward=BackwardSpec(none_because="positions have no gradient"),
    tags=("dynamic_shape", "discontinuous"),
    notes="The result fits `gather_nd`. Until the function has run, its last axis has length 0.",
    example="F.nonzero(nn.NdArray.from_numpy_array([0.0, 5.0, 7.0])).numpy().tolist()  # [[1, 2]]",
)

SORT = FunctionSpec(
    name="Sort",
    api="sort",
    topic="indexing",
    doc="Put the elements along an axis in order.",
    inputs=(InputSpec(name="x", doc="Array with at least one axis.", shape="(D_1, ..., D_n)"),),
    outputs=(
        OutputSpec(name="y", doc="Ordered elements.", shape="(D_1, ..., D_n)"),
        OutputSpec(
            name="index",
            doc="The place in x that each of them had.",
            shape="(D_1, ..., D_n)",
            dtype="index",
            optional=True,
        ),
    ),
    args=(
        ArgSpec(name="axis", type="axis", doc="Axis to sort along.", default=-1),
        ArgSpec(name="reverse", type="bool", doc="Largest first.", default=False),
        ArgSpec(name="with_index", type="bool", doc="Return the pair of values and places.", default=False),
        ArgSpec(name="only_index", type="bool", doc="Return the places alone.", default=False),
    ),
    backward=BackwardSpec(needs=("x",)),
    tags=("selecting",),
    notes=(
        "Equal elements keep their order, also with `reverse`. NaN is taken as the largest. The gradient "
        "is put back to the places that the elements had; places have none. NNabla puts it to other "
        "places: it inverts the order the wrong way."
    ),
    example="y, index = F.sort(nn.Variable((2, 3)), axis=1, with_index=True)",
)

UNIQUE = FunctionSpec(
    name="Unique",
    api="unique",
    topic="indexing",
    doc="Find the distinct elements of an array, or its distinct entries along an axis.",
    inputs=(InputSpec(name="x", doc="Array of any shape.", shape="(D_1, ..., D_n)", dtype="same"),),
    outputs=(
        OutputSpec(
            name="y",
            doc="The U distinct ones.",
            shape="(U), or that of x with U instead of the length of `axis`",
            dtype="same",
        ),
        OutputSpec(name="indices", doc="Where each first occurs.", shape="(U)", dtype="index", optional=True),
        OutputSpec(
            name="inverse_indices",
            doc="Place in y of each one of x.",
            shape="(number of compared elements or entries)",
            dtype="index",
            optional=True,
        ),
        OutputSpec(name="counts", doc="How often each occurs.", shape="(U)", dtype="index", optional=True),
    ),
    args=(
        ArgSpec(name="flatten", type="bool", doc="Compare single elements, whatever `axis` is.", default=True),
        ArgSpec(
            name="axis",
            type="axis",
            doc="Axis along which entries are compared if `flatten` is False.",
            default=None,
        ),
        ArgSpec(
            name="sorted",
            type="bool",
            doc="Smallest first; otherwise in the order in which they first occur.",
            default=True,
        ),
        ArgSpec(name="with_index", type="bool", doc="Also return `indices`.", default=False),
        ArgSpec(name="with_inverse", type="bool", doc="Also return `inverse_indices`.", default=False),
        ArgSpec(name="with_counts", type="bool", doc="Also return `counts`.", default=False),
    ),
    backward=BackwardSpec(none_because="which elements are distinct does not change smoothly"),
    tags=("dynamic_shape", "discontinuous"),
    notes="Until the function has run, U is 0. Results that are not asked for are left out.",
    example="F.unique(nn.NdArray.from_numpy_array([2.0, 1.0, 2.0]))  # [1, 2]",
)

SEARCHSORTED = FunctionSpec(
    name="SearchSorted",
    api="searchsorted",
    topic="indexing",
    doc="Find where values belong in sorted sequences.",
    inputs=(
        InputSpec(
            name="sorted_sequence",
            doc="Sequences, sorted along the last axis.",
            shape="(B_1, ..., B_k, N)",
        ),
        InputSpec(
            name="values",
            doc="Values to look for, each in the sequence at the same place.",
            shape="(B_1, ..., B_k, M)",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Numbers in [0, N] of the places to insert at.",
            shape="(B_1, ..., B_k, M)",
            dtype="index",
        ),
    ),
    args=(
        ArgSpec(
            name="right",
            type="bool",
            doc="Return the place after elements equal to the value rather than the one before them.",
            default=False,
            shown_as_none=True,
        ),
    ),
    backward=BackwardSpec(none_because="places have no gradient"),
    tags=("discontinuous",),
    formula="sequence[y - 1] < value <= sequence[y], or sequence[y - 1] <= value < sequence[y] if `right`",
    example=(
        "F.searchsorted(nn.NdArray.from_numpy_array([1.0, 3.0, 5.0]), nn.NdArray.from_numpy_array([2.0, "
        "5.0])).numpy().tolist()  # [1, 2]"
    ),
)

TOP_K_DATA = FunctionSpec(
    name="TopKData",
    api="top_k_data",
    topic="indexing",
    doc="Keep the k largest elements of each sample.",
    inputs=(
        InputSpec(
            name="x",
            doc="Samples; a sample has S = D_1 * ... * D_m elements.",
            shape="(N_1, ..., N_b, D_1, ..., D_m)",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Kept elements, best first, or the array with zeros.",
            shape="(N_1, ..., N_b, k), or that of x",
        ),
        OutputSpec(
            name="indices",
            doc="Place of each in the flattened sample.",
            shape="(N_1, ..., N_b, k)",
            dtype="index",
            optional=True,
        ),
    ),
    args=(
        ArgSpec(name="k", type="int", doc="Number of elements to keep, in [1, S]."),
        ArgSpec(name="abs", type="bool", doc="Compare magnitudes.", default=False),
        ArgSpec(
            name="reduce",
            type="bool",
            doc=(
                "Return the k elements alone, in order; otherwise leave them in place and set the "
                "others to zero."
            ),
            default=True,
        ),
        ArgSpec(name="base_axis", type="axis", doc="First axis of a sample.", default=1),
        ArgSpec(name="largest", type="bool", doc="Keep the largest; otherwise the smallest.", default=True),
        ArgSpec(name="with_index", type="bool", doc="Also return `indices`; with `reduce` only.", default=False),
    ),
    backward=BackwardSpec(needs=("x",)),
    notes=(
        "Of equal elements the first is better. NaN is taken as the largest. The gradient flows to the "
        "kept elements only; with `reduce=False` NNabla lets it flow to all of them."
    ),
    example="F.top_k_data(nn.Variable((4, 5, 6)), 3).shape  # (4, 3)",
)

TOP_K_GRAD = FunctionSpec(
    name="TopKGrad",
    api="top_k_grad",
    topic="indexing",
    doc="Return the input, and keep only the k largest elements of its gradient for each sample.",
    inputs=(
        InputSpec(
            name="x",
            doc="Samples; a sample has S = D_1 * ... * D_m elements.",
            shape="(N_1, ..., N_b, D_1, ..., D_m)",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Copy of x.", shape="(N_1, ..., N_b, D_1, ..., D_m)"),),
    args=(
        ArgSpec(name="k", type="int", doc="Number of gradients to let pass, in [1, S]."),
        ArgSpec(name="abs", type="bool", doc="Compare magnitudes.", default=False),
        ArgSpec(name="base_axis", type="axis", doc="First axis of a sample.", default=1),
    ),
    notes="The gradient is chosen, not derived; the others are set to zero.",
    example="F.top_k_grad(nn.Variable((8, 10)), 3).shape  # (8, 10)",
)

NMS_DETECTION2D = FunctionSpec(
    name="NmsDetection2d",
    api="nms_detection2d",
    topic="indexing",
    doc="Suppress detected boxes that overlap with a better one.",
    inputs=(
        InputSpec(
            name="x",
            doc="N boxes a sample: centre x and y, width, height, objectness, and C class probabilities.",
            shape="(B, N, 5 + C)",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc=(
                "The boxes with objectness * probability in place of the probabilities, zero "
                "where suppressed."
            ),
            shape="(B, N, 5 + C)",
        ),
    ),
    args=(
        ArgSpec(
            name="thresh",
            type="float",
            doc="Objectness and scores below it become zero.",
            default=0.5,
            shown_as_none=True,
        ),
        ArgSpec(
            name="nms",
            type="float",
            doc="Boxes overlap if their intersection over union is larger.",
            default=0.45,
            shown_as_none=True,
        ),
        ArgSpec(
            name="nms_per_class",
            type="bool",
            doc="Suppress for each class by score; otherwise suppress boxes by objectness.",
            default=True,
            shown_as_none=True,
        ),
    ),
    backward=BackwardSpec(none_because="boxes are suppressed or not, without a slope"),
    notes=(
        "Boxes are visited best first (the first of equal ones), and each removes the remaining ones that "
        "overlap with it. Without `nms_per_class` the objectness of a suppressed box becomes zero as well."
    ),
    references="Redmon and Farhadi (2017), YOLO9000, better, faster, stronger.",
    example="F.nms_detection2d(nn.Variable((1, 10, 25))).shape  # (1, 10, 25)",
)

ONNX_NON_MAX_SUPPRESSION = FunctionSpec(
    name="ONNXNonMaxSuppression",
    api="onnx_non_max_suppression",
    topic="indexing",
    doc="Pick the boxes that do not overlap with a better one, as the ONNX operator NonMaxSuppression does.",
    inputs=(
        InputSpec(
            name="boxes",
            doc=(
                "N boxes a sample: two opposite corners (y1, x1, y2, x2), or (x centre, y centre, "
                "width, height)."
            ),
            shape="(B, N, 4)",
        ),
        InputSpec(name="scores", doc="Score of each box for each of C classes.", shape="(B, C, N)"),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Sample, class and box of the M picked ones, best first within a sample and class.",
            shape="(M, 3)",
            dtype="index",
        ),
    ),
    args=(
        ArgSpec(
            name="center_point_box",
            type="int",
            doc="0: boxes hold corners; 1: they hold centre and size.",
            default=0,
            minimum=0,
            maximum=1,
            shown_as_none=True,
        ),
        ArgSpec(
            name="max_output_boxes_per_class",
            type="int",
            doc="Most boxes to pick for each sample and class; 0 picks none.",
            default=0,
            minimum=0,
            shown_as_none=True,
        ),
        ArgSpec(
            name="iou_threshold",
            type="float",
            doc="Boxes overlap if their intersection over union is larger.",
            default=0.0,
            minimum=0,
            maximum=1,
            shown_as_none=True,
        ),
        ArgSpec(
            name="score_threshold",
            type="float",
            doc="Boxes with a lower score are not picked.",
            default=0.0,
            shown_as_none=True,
        ),
    ),
    backward=BackwardSpec(none_because="places have no gradient"),
    tags=("dynamic_shape",),
    notes="Until the function has run, M is 0.",
    references="ONNX operator specification, NonMaxSuppression, version 11.",
    example=(
        "boxes = nn.NdArray.from_numpy_array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])\nscores = "
        "nn.NdArray.from_numpy_array([[[0.9, 0.8, 0.7]]])\nF.onnx_non_max_suppression(boxes, scores, "
        "max_output_boxes_per_class=3, iou_threshold=0.5)  # [[0, 0, 0], [0, 0, 2]]"
    ),
)

GATHER_AXES = FunctionSpec(
    name="GatherAxes",
    api="gather_axes",
    topic="indexing",
    doc="Read each sample at positions that are given for each axis by itself, as crops, shifts and flips do.",
    inputs=(
        InputSpec(name="x", doc="Samples.", shape="(N_1, ..., N_b, D_1, ..., D_k)"),
        InputSpec(
            name="source",
            doc="The positions source_1, ..., source_k of each sample one after the other.",
            shape="(N_1, ..., N_b, L_1 + ... + L_k)",
            dtype="index",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Elements that were read.", shape="(N_1, ..., N_b, L_1, ..., L_k)"),),
    args=(
        ArgSpec(name="base_axis", type="int", doc="First axis of a sample.", default=1, minimum=0),
        ArgSpec(name="shape", type="shape", doc="The lengths (L_1, ..., L_k).", keyword_only=True),
    ),
    backward=BackwardSpec(needs=("source",)),
    formula="y[n, i_1, ..., i_k] = x[n, source_1[n, i_1], ..., source_k[n, i_k]], zero where a position is -1",
    example=(
        "rows, columns = [1, 0], [2, 2, -1]\nx = nn.NdArray.from_numpy_array([[[1, 2, 3], [4, 5, 6]]])\n"
        "F.gather_axes(x, nn.NdArray.from_numpy_array([rows + columns]), shape=(2, 3))  # [[[6, 6, 0], "
        "[3, 3, 0]]]"
    ),
)

SCATTER_AXES = FunctionSpec(
    name="ScatterAxes",
    api="scatter_axes",
    topic="indexing",
    doc=(
        "Add the elements of each sample at positions that are given for each axis by itself; the transpose "
        "of `gather_axes`."
    ),
    inputs=(
        InputSpec(name="dy", doc="Samples.", shape="(N_1, ..., N_b, L_1, ..., L_k)"),
        InputSpec(
            name="source",
            doc="As in `gather_axes`; elements with a position of -1 are dropped.",
            shape="(N_1, ..., N_b, L_1 + ... + L_k)",
            dtype="index",
        ),
    ),
    outputs=(
        OutputSpec(
            name="dx",
            doc="Sums, zero where nothing was added.",
            shape="(N_1, ..., N_b, D_1, ..., D_k)",
        ),
    ),
    args=(
        ArgSpec(name="base_axis", type="int", doc="First axis of a sample.", default=1, minimum=0),
        ArgSpec(
            name="shape",
            type="shape",
            doc="The lengths (D_1, ..., D_k) of a sample of the result.",
            keyword_only=True,
        ),
    ),
    backward=BackwardSpec(needs=("source",)),
    example=(
        "dy = nn.NdArray.from_numpy_array([[1, 2, 3]])\nF.scatter_axes(dy, "
        "nn.NdArray.from_numpy_array([[0, 2, 2]]), shape=(4,))  # [[1, 0, 5, 0]]"
    ),
)

SPECS: tuple[FunctionSpec, ...] = (
    ONE_HOT,
    EMBED,
    GATHER,
    GATHER_ND,
    SCATTER_ND,
    SCATTER_ADD,
    BOOL_GATHER,
    BOOL_SCATTER,
    BOOL_FILL,
    NONZERO,
    SORT,
    UNIQUE,
    SEARCHSORTED,
    TOP_K_DATA,
    TOP_K_GRAD,
    NMS_DETECTION2D,
    ONNX_NON_MAX_SUPPRESSION,
    GATHER_AXES,
    SCATTER_AXES,
)
