"""Specifications of the topic shape.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

CONCATENATE = FunctionSpec(
    name="Concatenate", api="concatenate", topic="shape", doc="Join arrays along an axis that they have.",
    inputs=(InputSpec(name="x", variadic=True),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="axis", type="axis", default_rule="last_axis"),), tags=("selecting",),
)

SPLIT = FunctionSpec(
    name="Split", api="split", topic="shape", doc="Cut an array into its entries along an axis, which goes away.",
    inputs=(InputSpec(name="x", dtype="same"),), outputs=(OutputSpec(name="y", dtype="same", variadic=True),),
    args=(ArgSpec(name="axis", type="axis", default=0),), tags=("selecting",),
)

STACK = FunctionSpec(
    name="Stack", api="stack", topic="shape", doc="Join arrays of one shape along a new axis.",
    inputs=(InputSpec(name="x", variadic=True),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="axis", type="int", default=0),), tags=("selecting",),
)

SLICE = FunctionSpec(
    name="Slice", api="slice", topic="shape", doc="Cut out evenly spaced elements along each axis.",
    inputs=(InputSpec(name="x", dtype="same"),), outputs=(OutputSpec(name="y", dtype="same"),),
    args=(
        ArgSpec(name="start", type="ints", default=None), ArgSpec(name="stop", type="ints", default=None),
        ArgSpec(name="step", type="ints", default=None),
    ),
    tags=("selecting",),
)

PAD = FunctionSpec(
    name="Pad", api="pad", topic="shape", doc="Add elements before and after each axis.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="pad_width", type="ints"),
        ArgSpec(name="mode", type="str", default="constant", choices=("constant", "reflect", "repeat")),
        ArgSpec(name="constant_value", type="float", default=0.0),
    ),
    tags=("selecting",),
)

PAD_BACKWARD = FunctionSpec(
    name="PadBackward", api="pad_backward", topic="shape",
    doc="Remove what `pad` adds, giving the sum of its copies to each element; the transpose of `pad`.",
    inputs=(InputSpec(name="dy"),), outputs=(OutputSpec(name="dx"),),
    args=(
        ArgSpec(name="pad_width", type="ints"),
        ArgSpec(name="mode", type="str", default="constant", choices=("constant", "reflect", "repeat")),
    ),
)

TRANSPOSE = FunctionSpec(
    name="Transpose", api="transpose", topic="shape", doc="Put the axes in another order.",
    inputs=(InputSpec(name="x", dtype="same"),), outputs=(OutputSpec(name="y", dtype="same"),),
    args=(ArgSpec(name="axes", type="axes"),), tags=("selecting",),
)

BROADCAST = FunctionSpec(
    name="Broadcast", api="broadcast", topic="shape",
    doc="Repeat an array along axes of length 1 to get a given shape.", inputs=(InputSpec(name="x", dtype="same"),),
    outputs=(OutputSpec(name="y", dtype="same"),), args=(ArgSpec(name="shape", type="shape"),), tags=("selecting",),
)

BROADCAST_TO = FunctionSpec(
    name="BroadcastTo", api="broadcast_to", topic="shape", doc="Repeat y over those axes of x that it does not have.",
    inputs=(InputSpec(name="x", dtype="same"), InputSpec(name="y")), outputs=(OutputSpec(name="z"),),
    args=(ArgSpec(name="axis", type="int", default=-1, shown_as_none=True),), tags=("selecting",),
)

TILE = FunctionSpec(
    name="Tile", api="tile", topic="shape", doc="Put copies of an array side by side along each axis.",
    inputs=(InputSpec(name="x", dtype="same"),), outputs=(OutputSpec(name="y", dtype="same"),),
    args=(ArgSpec(name="reps", type="ints"),), tags=("selecting",),
)

FLIP = FunctionSpec(
    name="Flip", api="flip", topic="shape", doc="Reverse the order of elements along axes.",
    inputs=(InputSpec(name="x", dtype="same"),), outputs=(OutputSpec(name="y", dtype="same"),),
    args=(ArgSpec(name="axes", type="axes", default_rule="last_axis_list"),), shape="same_as x", tags=("selecting",),
)

SHIFT = FunctionSpec(
    name="Shift", api="shift", topic="shape", doc="Move elements along each axis and fill the gap from the edge.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="shifts", type="ints", default_rule="zeros_per_axis"),
        ArgSpec(name="border_mode", type="str", default="nearest", choices=("nearest", "reflect")),
    ),
    tags=("selecting",),
)

SHIFT_BACKWARD = FunctionSpec(
    name="ShiftBackward", api="shift_backward", topic="shape",
    doc="Move the gradient of `shift` back to the elements that were read; the transpose of `shift`.",
    inputs=(InputSpec(name="dy"),), outputs=(OutputSpec(name="dx"),),
    args=(
        ArgSpec(name="shifts", type="ints", default_rule="zeros_per_axis"),
        ArgSpec(name="border_mode", type="str", default="nearest", choices=("nearest", "reflect")),
    ),
)

RESHAPE = FunctionSpec(
    name="Reshape", api="reshape", topic="shape", doc="Give an array another shape with the same elements in C order.",
    inputs=(InputSpec(name="x", dtype="same"),), outputs=(OutputSpec(name="y", dtype="same"),),
    args=(ArgSpec(name="shape", type="shape"), ArgSpec(name="inplace", type="bool", default=True)),
    tags=("view", "selecting"),
)

SHAPE = FunctionSpec(
    name="Shape", api="shape", topic="shape", doc="Return the shape of an array as an array.",
    inputs=(InputSpec(name="x", dtype="same"),), outputs=(OutputSpec(name="shape", dtype="index"),),
    args=(
        ArgSpec(name="start", type="int", default=0, shown_as_none=True),
        ArgSpec(name="end", type="int", default=0, shown_as_none=True),
    ),
    backward=BackwardSpec(none_because="a shape does not depend on values"),
)

MATRIX_DIAG = FunctionSpec(
    name="MatrixDiag", api="matrix_diag", topic="shape", doc="Put the last axis on the diagonal of square matrices.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), tags=("selecting",),
)

MATRIX_DIAG_PART = FunctionSpec(
    name="MatrixDiagPart", api="matrix_diag_part", topic="shape", doc="Take the diagonal of each matrix.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), tags=("selecting",),
)

TRILU = FunctionSpec(
    name="Trilu", api="trilu", topic="shape",
    doc="Keep the upper or lower triangle of each matrix and set the rest to zero.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="k", type="int", default=0), ArgSpec(name="upper", type="bool", default=True)),
    tags=("selecting",),
)

MESHGRID = FunctionSpec(
    name="Meshgrid", api="meshgrid", topic="shape", doc="Spread vectors over a grid, each along an axis of its own.",
    inputs=(InputSpec(name="x", variadic=True),), outputs=(OutputSpec(name="y", variadic=True),),
    args=(ArgSpec(name="ij_indexing", type="bool", default=False),),
)

IDENTITY = FunctionSpec(
    name="Identity", api="identity", topic="shape", doc="Return the input.",
    inputs=(InputSpec(name="x", dtype="same"),), outputs=(OutputSpec(name="y", dtype="same"),), shape="same_as x",
    tags=("pointwise", "inplace_ok", "passes_gradient"),
)

CONSTANT = FunctionSpec(
    name="Constant", api="constant", topic="shape", doc="Make an array of one value.", inputs=(),
    outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="val", type="float", default=0.0), ArgSpec(name="shape", type="shape", default=())),
    backward=BackwardSpec(none_because="there is no input"),
)

ARANGE = FunctionSpec(
    name="Arange", api="arange", topic="shape", doc="Make an array of evenly spaced values within [start, stop).",
    inputs=(), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="start", type="float"), ArgSpec(name="stop", type="float"),
        ArgSpec(name="step", type="float", default=1.0),
    ),
    backward=BackwardSpec(none_because="there is no input"),
)

LINSPACE = FunctionSpec(
    name="Linspace", api="linspace", topic="shape",
    doc="Make an array of a given number of evenly spaced values within [start, stop].", inputs=(),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="start", type="float"), ArgSpec(name="stop", type="float"),
        ArgSpec(name="num", type="int", minimum=0),
    ),
    backward=BackwardSpec(none_because="there is no input"),
)

EYE_LIKE = FunctionSpec(
    name="EyeLike", api="eye_like", topic="shape",
    doc="Make a matrix with ones on a diagonal and zeros elsewhere, in the shape of another matrix.",
    inputs=(InputSpec(name="x", dtype="same"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="k", type="int", default=0),),
    backward=BackwardSpec(none_because="the values of x are not read"),
)

ASSIGN = FunctionSpec(
    name="Assign", api="assign", topic="shape", doc="Copy one array into another when the graph runs.",
    inputs=(InputSpec(name="dst", dtype="parameter"), InputSpec(name="src")), outputs=(OutputSpec(name="y"),),
    updates=("dst",),
)

UNLINK = FunctionSpec(
    name="Unlink", api="unlink", topic="shape", doc="Return the input and let no gradient pass.",
    inputs=(InputSpec(name="x", dtype="same"),), outputs=(OutputSpec(name="y", dtype="same"),), shape="same_as x",
    backward=BackwardSpec(none_because="stopping the gradient is what the function is for"),
    tags=("pointwise", "inplace_ok"),
)

SINK = FunctionSpec(
    name="Sink", api="sink", topic="shape",
    doc="Hold several ends of a graph together, so that they run forward and backward as one.",
    inputs=(InputSpec(name="x", dtype="same", variadic=True),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="one_input_grad", type="bool", default=True),), tags=("sink",),
)

SPECS: tuple[FunctionSpec, ...] = (
    CONCATENATE, SPLIT, STACK, SLICE, PAD, PAD_BACKWARD, TRANSPOSE, BROADCAST, BROADCAST_TO, TILE, FLIP, SHIFT,
    SHIFT_BACKWARD, RESHAPE, SHAPE, MATRIX_DIAG, MATRIX_DIAG_PART, TRILU, MESHGRID, IDENTITY, CONSTANT, ARANGE,
    LINSPACE, EYE_LIKE, ASSIGN, UNLINK, SINK,
)
