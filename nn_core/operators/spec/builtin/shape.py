"""Specifications of the topic shape.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

CONCATENATE = FunctionSpec(
    name="Concatenate",
    api="concatenate",
    topic="shape",
    doc="Join arrays along an axis that they have.",
    inputs=(
        InputSpec(
            name="x",
            doc="Arrays of equal shapes except along `axis`.",
            shape="(D_1, ..., L_i, ..., D_n) for input i",
            variadic=True,
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="The inputs one after the other.",
            shape="(D_1, ..., L_1 + ... + L_m, ..., D_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="axis",
            type="axis",
            doc="Axis to join along; the last one by default.",
            default_rule="last_axis",
        ),
    ),
    tags=("selecting",),
    notes="The gradient is cut into the pieces that belong to the inputs.",
    example="x0, x1 = nn.Variable((2, 3)), nn.Variable((2, 1))\nF.concatenate(x0, x1, axis=1).shape  # (2, 4)",
)

SPLIT = FunctionSpec(
    name="Split",
    api="split",
    topic="shape",
    doc="Cut an array into its entries along an axis, which goes away.",
    inputs=(
        InputSpec(
            name="x",
            doc="Array to cut; L is at least 1.",
            shape="(D_1, ..., L, ..., D_n)",
            dtype="same",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="L arrays, one for each entry.",
            shape="(D_1, ..., D_n) without L",
            dtype="same",
            variadic=True,
        ),
    ),
    args=(ArgSpec(name="axis", type="axis", doc="Axis to cut.", default=0),),
    tags=("selecting",),
    formula="y_i = x[..., i, ...]",
    example="a, b, c = F.split(nn.Variable((4, 3)), axis=1)\na.shape  # (4,)",
)

STACK = FunctionSpec(
    name="Stack",
    api="stack",
    topic="shape",
    doc="Join arrays of one shape along a new axis.",
    inputs=(InputSpec(name="x", doc="Arrays of equal shapes.", shape="(D_1, ..., D_n)", variadic=True),),
    outputs=(
        OutputSpec(
            name="y",
            doc="The m inputs, one for each entry along the new axis.",
            shape="(D_1, ..., m, ..., D_n)",
        ),
    ),
    args=(ArgSpec(name="axis", type="int", doc="Place of the new axis in the result, in [-n - 1, n].", default=0),),
    tags=("selecting",),
    example="F.stack(nn.Variable((2, 3)), nn.Variable((2, 3)), axis=1).shape  # (2, 2, 3)",
)

SLICE = FunctionSpec(
    name="Slice",
    api="slice",
    topic="shape",
    doc="Cut out evenly spaced elements along each axis.",
    inputs=(InputSpec(name="x", doc="Array to cut.", shape="(D_1, ..., D_n)", dtype="same"),),
    outputs=(
        OutputSpec(
            name="y",
            doc="Elements that were cut out, a copy.",
            shape="(L_1, ..., L_n)",
            dtype="same",
        ),
    ),
    args=(
        ArgSpec(
            name="start",
            type="ints",
            doc="First element for each axis; by default the first one (the last, for a negative step).",
            default=None,
        ),
        ArgSpec(
            name="stop",
            type="ints",
            doc="End for each axis, not included; by default everything up to the edge.",
            default=None,
        ),
        ArgSpec(
            name="step",
            type="ints",
            doc=(
                "Distance of neighbours for each axis, not zero; 1 by default. A negative step walks "
                "backwards."
            ),
            default=None,
        ),
    ),
    tags=("selecting",),
    formula="y = x[start_1:stop_1:step_1, ..., start_n:stop_n:step_n]",
    notes=(
        "Bounds mean what they mean in a Python slice: negative ones count from the end, those beyond the "
        "edge are moved to it, and an empty range gives an axis of length 0. Settings with fewer entries "
        "than axes belong to the last axes. The gradient is put back to its places among zeros."
    ),
    example="F.slice(nn.Variable((4, 8)), start=(1, 0), stop=(3, 8), step=(1, 2)).shape  # (2, 4)",
)

PAD = FunctionSpec(
    name="Pad",
    api="pad",
    topic="shape",
    doc="Add elements before and after each axis.",
    inputs=(InputSpec(name="x", doc="Array to pad.", shape="(D_1, ..., D_n)"),),
    outputs=(
        OutputSpec(
            name="y",
            doc="Padded array.",
            shape="(before_1 + D_1 + after_1, ..., before_n + D_n + after_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="pad_width",
            type="ints",
            doc=(
                "Widths (before, after) of each axis, flattened; not negative. With fewer pairs than "
                "axes they belong to the last axes."
            ),
        ),
        ArgSpec(
            name="mode",
            type="str",
            doc=(
                "What is added: `constant_value`, the mirror image at the edge element (which is not "
                "repeated), or the edge element."
            ),
            default="constant",
            choices=("constant", "reflect", "repeat"),
        ),
        ArgSpec(name="constant_value", type="float", doc="What is added in the mode constant.", default=0.0),
    ),
    tags=("selecting",),
    notes=(
        "The mirror image continues beyond the opposite edge where a width exceeds the axis; an axis of "
        "length 1 repeats its element. The gradient of an added element flows to the element that it "
        "copies."
    ),
    example="F.pad(nn.Variable((3, 4)), (1, 1, 2, 0)).shape  # (5, 6)",
)

PAD_BACKWARD = FunctionSpec(
    name="PadBackward",
    api="pad_backward",
    topic="shape",
    doc="Remove what `pad` adds, giving the sum of its copies to each element; the transpose of `pad`.",
    inputs=(
        InputSpec(
            name="dy",
            doc="Gradient of the padded array.",
            shape="(before_1 + D_1 + after_1, ..., before_n + D_n + after_n)",
        ),
    ),
    outputs=(OutputSpec(name="dx", doc="Gradient of the array that was padded.", shape="(D_1, ..., D_n)"),),
    args=(
        ArgSpec(name="pad_width", type="ints", doc="As in `pad`."),
        ArgSpec(
            name="mode",
            type="str",
            doc="As in `pad`.",
            default="constant",
            choices=("constant", "reflect", "repeat"),
        ),
    ),
    example="F.pad_backward(nn.Variable((5, 6)), (1, 1, 2, 0)).shape  # (3, 4)",
)

TRANSPOSE = FunctionSpec(
    name="Transpose",
    api="transpose",
    topic="shape",
    doc="Put the axes in another order.",
    inputs=(InputSpec(name="x", doc="Array to turn.", shape="(D_1, ..., D_n)", dtype="same"),),
    outputs=(
        OutputSpec(
            name="y",
            doc="Turned array, a copy in C order.",
            shape="(D_axes_1, ..., D_axes_n)",
            dtype="same",
        ),
    ),
    args=(
        ArgSpec(
            name="axes",
            type="axes",
            doc="The axis of x that becomes axis i of the result, for each i; each axis once.",
        ),
    ),
    tags=("selecting",),
    formula="y.shape[i] = x.shape[axes[i]]",
    example="F.transpose(nn.Variable((8, 3, 32, 32)), (0, 2, 3, 1)).shape  # (8, 32, 32, 3)",
)

BROADCAST = FunctionSpec(
    name="Broadcast",
    api="broadcast",
    topic="shape",
    doc="Repeat an array along axes of length 1 to get a given shape.",
    inputs=(InputSpec(name="x", doc="Array to repeat; k is at most n.", shape="(D_1, ..., D_k)", dtype="same"),),
    outputs=(OutputSpec(name="y", doc="Repeated array, a copy.", shape="shape", dtype="same"),),
    args=(
        ArgSpec(
            name="shape",
            type="shape",
            doc=(
                "Shape of the result. Counted from the last axis, each length of x is 1 or the one "
                "given here; axes that x lacks are added in front."
            ),
        ),
    ),
    tags=("selecting",),
    notes="The gradient is summed over the axes that were stretched or added.",
    example="F.broadcast(nn.Variable((3, 1)), (2, 3, 4)).shape  # (2, 3, 4)",
)

BROADCAST_TO = FunctionSpec(
    name="BroadcastTo",
    api="broadcast_to",
    topic="shape",
    doc="Repeat y over those axes of x that it does not have.",
    inputs=(
        InputSpec(
            name="x",
            doc="Array that gives the shape; its values are not read.",
            shape="(D_1, ..., D_n)",
            dtype="same",
        ),
        InputSpec(
            name="y",
            doc="Array to repeat; its shape is that of neighbouring axes of x.",
            shape="(D_a, ..., D_b)",
        ),
    ),
    outputs=(OutputSpec(name="z", doc="y repeated to the shape of x.", shape="(D_1, ..., D_n)"),),
    args=(
        ArgSpec(
            name="axis",
            type="int",
            doc=(
                "The axis of x that the first axis of y belongs to. Negative (default): the axes of "
                "y belong to the last axes of x."
            ),
            default=-1,
            shown_as_none=True,
        ),
    ),
    tags=("selecting",),
    notes="No gradient flows to x. The gradient of y is summed over the other axes; NNabla has no gradient here.",
    example="F.broadcast_to(nn.Variable((2, 3, 4)), nn.Variable((3,)), axis=1).shape  # (2, 3, 4)",
)

TILE = FunctionSpec(
    name="Tile",
    api="tile",
    topic="shape",
    doc="Put copies of an array side by side along each axis.",
    inputs=(InputSpec(name="x", doc="Array to repeat.", shape="(D_1, ..., D_n)", dtype="same"),),
    outputs=(OutputSpec(name="y", doc="Copies side by side.", shape="(r_1 * D_1, ..., r_n * D_n)", dtype="same"),),
    args=(
        ArgSpec(
            name="reps",
            type="ints",
            doc=(
                "Number of copies along each axis, at least 1. With fewer entries than axes they "
                "belong to the last axes; with more, axes are added in front."
            ),
        ),
    ),
    tags=("selecting",),
    notes="The gradient is summed over the copies.",
    example="F.tile(nn.Variable((2, 3)), (2, 1, 2)).shape  # (2, 2, 6)",
)

FLIP = FunctionSpec(
    name="Flip",
    api="flip",
    topic="shape",
    doc="Reverse the order of elements along axes.",
    inputs=(InputSpec(name="x", doc="Array to reverse.", shape="(D_1, ..., D_n)", dtype="same"),),
    outputs=(OutputSpec(name="y", doc="Reversed array, a copy.", shape="(D_1, ..., D_n)", dtype="same"),),
    args=(
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes to reverse; the last one by default.",
            default_rule="last_axis_list",
        ),
    ),
    shape="same_as x",
    tags=("selecting",),
    example="F.flip(nn.NdArray.from_numpy_array([1.0, 2.0]), axes=(0,))  # [2, 1]",
)

SHIFT = FunctionSpec(
    name="Shift",
    api="shift",
    topic="shape",
    doc="Move elements along each axis and fill the gap from the edge.",
    inputs=(InputSpec(name="x", doc="Array to move.", shape="(D_1, ..., D_n)"),),
    outputs=(OutputSpec(name="y", doc="Moved array.", shape="(D_1, ..., D_n)"),),
    args=(
        ArgSpec(
            name="shifts",
            type="ints",
            doc=(
                "Number of elements to move along each axis, towards higher positions if positive. "
                "With fewer entries than axes they belong to the last axes."
            ),
            default_rule="zeros_per_axis",
        ),
        ArgSpec(
            name="border_mode",
            type="str",
            doc=(
                "Fill with the edge element, or with the mirror image at the edge (the edge element "
                "is repeated)."
            ),
            default="nearest",
            choices=("nearest", "reflect"),
        ),
    ),
    tags=("selecting",),
    formula="y[i] = x[i - shift], positions outside of x brought inside as `border_mode` says",
    notes=(
        "The gradient flows to the element that was read; several may add up at an edge, and what left the "
        "array gets none."
    ),
    example="F.shift(nn.Variable((8, 3, 32, 32)), (-3, 2))  # images 3 pixels up and 2 to the right",
)

SHIFT_BACKWARD = FunctionSpec(
    name="ShiftBackward",
    api="shift_backward",
    topic="shape",
    doc="Move the gradient of `shift` back to the elements that were read; the transpose of `shift`.",
    inputs=(InputSpec(name="dy", doc="Gradient of the moved array.", shape="(D_1, ..., D_n)"),),
    outputs=(OutputSpec(name="dx", doc="Gradient of the array that was moved.", shape="(D_1, ..., D_n)"),),
    args=(
        ArgSpec(name="shifts", type="ints", doc="As in `shift`.", default_rule="zeros_per_axis"),
        ArgSpec(
            name="border_mode",
            type="str",
            doc="As in `shift`.",
            default="nearest",
            choices=("nearest", "reflect"),
        ),
    ),
    example="F.shift_backward(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]",
)

RESHAPE = FunctionSpec(
    name="Reshape",
    api="reshape",
    topic="shape",
    doc="Give an array another shape with the same elements in C order.",
    inputs=(InputSpec(name="x", doc="Array of any shape.", shape="(D_1, ..., D_n)", dtype="same"),),
    outputs=(OutputSpec(name="y", doc="The elements of x; shares memory with x.", shape="shape", dtype="same"),),
    args=(
        ArgSpec(
            name="shape",
            type="shape",
            doc="New shape. One length may be -1: it follows from the size of x.",
        ),
        ArgSpec(
            name="inplace",
            type="bool",
            doc="Kept for programs that pass it: the result is the memory of x in either case.",
            default=True,
        ),
    ),
    tags=("view", "selecting"),
    example="F.reshape(nn.Variable((8, 3, 4)), (8, -1)).shape  # (8, 12)",
)

SHAPE = FunctionSpec(
    name="Shape",
    api="shape",
    topic="shape",
    doc="Return the shape of an array as an array.",
    inputs=(InputSpec(name="x", doc="Array; its values are not read.", shape="(D_1, ..., D_n)", dtype="same"),),
    outputs=(OutputSpec(name="shape", doc="Lengths of the axes.", shape="(end - start)", dtype="index"),),
    args=(
        ArgSpec(
            name="start",
            type="int",
            doc="First axis to report; negative values count from the end.",
            default=0,
            shown_as_none=True,
        ),
        ArgSpec(
            name="end",
            type="int",
            doc="End of the axes to report, not included; negative values count from the end, 0 stands for n.",
            default=0,
            shown_as_none=True,
        ),
    ),
    backward=BackwardSpec(none_because="a shape does not depend on values"),
    notes="The result is int64, where NNabla has float32. A range without axes gives an empty array.",
    example="F.shape(nn.NdArray((2, 3))).numpy().tolist()  # [2, 3]",
)

MATRIX_DIAG = FunctionSpec(
    name="MatrixDiag",
    api="matrix_diag",
    topic="shape",
    doc="Put the last axis on the diagonal of square matrices.",
    inputs=(InputSpec(name="x", doc="Diagonals.", shape="(D_1, ..., D_n, N)"),),
    outputs=(OutputSpec(name="y", doc="Diagonal matrices.", shape="(D_1, ..., D_n, N, N)"),),
    tags=("selecting",),
    formula="y[..., i, j] = x[..., i] if i == j else 0",
    example="F.matrix_diag(nn.Variable((4, 3))).shape  # (4, 3, 3)",
)

MATRIX_DIAG_PART = FunctionSpec(
    name="MatrixDiagPart",
    api="matrix_diag_part",
    topic="shape",
    doc="Take the diagonal of each matrix.",
    inputs=(InputSpec(name="x", doc="Square matrices; others are refused.", shape="(D_1, ..., D_n, N, N)"),),
    outputs=(OutputSpec(name="y", doc="Diagonals.", shape="(D_1, ..., D_n, N)"),),
    tags=("selecting",),
    formula="y[..., i] = x[..., i, i]",
    example="F.matrix_diag_part(nn.Variable((4, 3, 3))).shape  # (4, 3)",
)

TRILU = FunctionSpec(
    name="Trilu",
    api="trilu",
    topic="shape",
    doc="Keep the upper or lower triangle of each matrix and set the rest to zero.",
    inputs=(InputSpec(name="x", doc="Matrices.", shape="(D_1, ..., D_n, N, M)"),),
    outputs=(OutputSpec(name="y", doc="Triangular matrices.", shape="(D_1, ..., D_n, N, M)"),),
    args=(
        ArgSpec(
            name="k",
            type="int",
            doc="Diagonal that bounds the triangle: 0 is the main one, positive ones lie above it.",
            default=0,
        ),
        ArgSpec(
            name="upper",
            type="bool",
            doc="Keep the upper triangle rather than the lower one.",
            default=True,
        ),
    ),
    tags=("selecting",),
    formula="y[..., i, j] = x[..., i, j] if j - i >= k (upper) or j - i <= k (lower) else 0",
    example="F.trilu(nn.NdArray.from_numpy_array([[2, 1], [1, 3]]))  # [[2, 1], [0, 3]]",
)

MESHGRID = FunctionSpec(
    name="Meshgrid",
    api="meshgrid",
    topic="shape",
    doc="Spread vectors over a grid, each along an axis of its own.",
    inputs=(InputSpec(name="x", doc="Vectors of coordinates.", shape="(L_i) for input i", variadic=True),),
    outputs=(
        OutputSpec(
            name="y",
            doc="One grid for each input.",
            shape="(L_2, L_1, L_3, ...), or (L_1, L_2, L_3, ...)",
            variadic=True,
        ),
    ),
    args=(
        ArgSpec(
            name="ij_indexing",
            type="bool",
            doc=(
                "Input i varies along axis i. By default the first two axes are swapped (the x of an "
                "image runs along its second axis)."
            ),
            default=False,
        ),
    ),
    example=(
        "x, y = F.meshgrid(nn.NdArray.from_numpy_array([1, 2, 3]), nn.NdArray.from_numpy_array([4, 5]))\n"
        "x  # [[1, 2, 3], [1, 2, 3]]\ny  # [[4, 4, 4], [5, 5, 5]]"
    ),
)

IDENTITY = FunctionSpec(
    name="Identity",
    api="identity",
    topic="shape",
    doc="Return the input.",
    inputs=(InputSpec(name="x", doc="Array of any shape.", shape="any", dtype="same"),),
    outputs=(OutputSpec(name="y", doc="Copy of x.", shape="that of x", dtype="same"),),
    shape="same_as x",
    tags=("pointwise", "inplace_ok"),
    formula="y = x",
    example="F.identity(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]",
)

CONSTANT = FunctionSpec(
    name="Constant",
    api="constant",
    topic="shape",
    doc="Make an array of one value.",
    inputs=(),
    outputs=(OutputSpec(name="y", doc="Array full of `val`.", shape="shape"),),
    args=(
        ArgSpec(name="val", type="float", doc="Value of every element.", default=0.0),
        ArgSpec(name="shape", type="shape", doc="Shape of the array; 0-d by default.", default=()),
    ),
    backward=BackwardSpec(none_because="there is no input"),
    example="F.constant(3, (2, 4)).shape  # (2, 4)",
)

ARANGE = FunctionSpec(
    name="Arange",
    api="arange",
    topic="shape",
    doc="Make an array of evenly spaced values within [start, stop).",
    inputs=(),
    outputs=(
        OutputSpec(
            name="y",
            doc="Values, computed in double precision and then rounded.",
            shape="(max(0, ceil((stop - start) / step)))",
        ),
    ),
    args=(
        ArgSpec(name="start", type="float", doc="First value."),
        ArgSpec(name="stop", type="float", doc="End, not included."),
        ArgSpec(
            name="step",
            type="float",
            doc="Distance of neighbours, not zero; negative ones count down.",
            default=1.0,
        ),
    ),
    backward=BackwardSpec(none_because="there is no input"),
    formula="y_i = start + i * step",
    example="F.arange(0, 5).shape  # (5,)",
)

LINSPACE = FunctionSpec(
    name="Linspace",
    api="linspace",
    topic="shape",
    doc="Make an array of a given number of evenly spaced values within [start, stop].",
    inputs=(),
    outputs=(OutputSpec(name="y", doc="Values, computed in double precision and then rounded.", shape="(num)"),),
    args=(
        ArgSpec(name="start", type="float", doc="First value."),
        ArgSpec(name="stop", type="float", doc="Last value (for `num` of at least 2)."),
        ArgSpec(name="num", type="int", doc="Number of values.", minimum=0),
    ),
    backward=BackwardSpec(none_because="there is no input"),
    formula="y_i = start + i * (stop - start) / (num - 1)",
    example="F.linspace(0, 1, 5).shape  # (5,)",
)

EYE_LIKE = FunctionSpec(
    name="EyeLike",
    api="eye_like",
    topic="shape",
    doc="Make a matrix with ones on a diagonal and zeros elsewhere, in the shape of another matrix.",
    inputs=(
        InputSpec(
            name="x",
            doc="Matrix that gives the shape; its values are not read.",
            shape="(N, M)",
            dtype="same",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Matrix of ones and zeros.", shape="(N, M)"),),
    args=(
        ArgSpec(
            name="k",
            type="int",
            doc="Diagonal of the ones: 0 is the main one, positive ones lie above it.",
            default=0,
        ),
    ),
    backward=BackwardSpec(none_because="the values of x are not read"),
    formula="y[i, j] = 1 if j - i == k else 0",
    example="F.eye_like(nn.NdArray((2, 2)))  # [[1, 0], [0, 1]]",
)

ASSIGN = FunctionSpec(
    name="Assign",
    api="assign",
    topic="shape",
    doc="Copy one array into another when the graph runs.",
    inputs=(
        InputSpec(name="dst", doc="Array that is overwritten.", shape="(D_1, ..., D_n)", dtype="parameter"),
        InputSpec(name="src", doc="Array that is copied.", shape="(D_1, ..., D_n)"),
    ),
    outputs=(OutputSpec(name="y", doc="The new values of dst.", shape="(D_1, ..., D_n)"),),
    updates=("dst",),
    formula="dst := src, y = src",
    notes="The gradient of y is the gradient of dst; src gets none, as in NNabla.",
    example=(
        "x, average = nn.Variable((3,)), nn.Variable((3,))\nmomentum = F.assign(average, 0.9 * average + "
        "0.1 * x)\nmomentum.forward()  # average has the new values"
    ),
)

UNLINK = FunctionSpec(
    name="Unlink",
    api="unlink",
    topic="shape",
    doc="Return the input and let no gradient pass.",
    inputs=(InputSpec(name="x", doc="Array of any shape.", shape="any", dtype="same"),),
    outputs=(OutputSpec(name="y", doc="Copy of x.", shape="that of x", dtype="same"),),
    shape="same_as x",
    backward=BackwardSpec(none_because="stopping the gradient is what the function is for"),
    tags=("pointwise", "inplace_ok"),
    formula="y = x",
    example="F.unlink(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]",
)

SINK = FunctionSpec(
    name="Sink",
    api="sink",
    topic="shape",
    doc="Hold several ends of a graph together, so that they run forward and backward as one.",
    inputs=(
        InputSpec(
            name="x",
            doc="Ends of a graph; their values are not read.",
            shape="any",
            dtype="same",
            variadic=True,
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Zero.", shape="()"),),
    args=(
        ArgSpec(
            name="one_input_grad",
            type="bool",
            doc=(
                "Each input gets a gradient of ones. Otherwise they keep the gradients that were set "
                "from outside."
            ),
            default=True,
        ),
    ),
    tags=("sink",),
    notes="The gradient of the result is not read. Use it at the end of a graph only.",
    example=(
        "x, label = nn.Variable((8, 3), need_grad=True), nn.Variable((8, 1))\nloss, score = "
        "F.mean(F.softmax_cross_entropy(x, label)), F.top_n_error(x, label)\nboth = F.sink(loss, score)\n"
        "both.forward()  # one pass for the loss and the score"
    ),
)

SPECS: tuple[FunctionSpec, ...] = (
    CONCATENATE,
    SPLIT,
    STACK,
    SLICE,
    PAD,
    PAD_BACKWARD,
    TRANSPOSE,
    BROADCAST,
    BROADCAST_TO,
    TILE,
    FLIP,
    SHIFT,
    SHIFT_BACKWARD,
    RESHAPE,
    SHAPE,
    MATRIX_DIAG,
    MATRIX_DIAG_PART,
    TRILU,
    MESHGRID,
    IDENTITY,
    CONSTANT,
    ARANGE,
    LINSPACE,
    EYE_LIKE,
    ASSIGN,
    UNLINK,
    SINK,
)
