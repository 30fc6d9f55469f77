"""Functions of the topic shape.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.shape import (
    ARANGE,
    ASSIGN,
    BROADCAST,
    BROADCAST_TO,
    CONCATENATE,
    CONSTANT,
    EYE_LIKE,
    FLIP,
    IDENTITY,
    LINSPACE,
    MATRIX_DIAG,
    MATRIX_DIAG_PART,
    MESHGRID,
    PAD,
    PAD_BACKWARD,
    RESHAPE,
    SHAPE,
    SHIFT,
    SHIFT_BACKWARD,
    SINK,
    SLICE,
    SPECS,
    SPLIT,
    STACK,
    TILE,
    TRANSPOSE,
    TRILU,
    UNLINK,
)


def concatenate(*x, axis=None, n_outputs=-1, outputs=None, **unknown):
    """Join arrays along an axis that they have.

    Args:
        *x: Arrays of equal shapes except along `axis`. Shape (D_1, ..., L_i, ..., D_n) for input i.
        axis: Axis to join along; the last one by default.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The inputs one after the other. Shape (D_1, ..., L_1 + ... + L_m, ..., D_n).

    Notes:
        The gradient is cut into the pieces that belong to the inputs.

    Example:
        x0, x1 = nn.Variable((2, 3)), nn.Variable((2, 1))
        F.concatenate(x0, x1, axis=1).shape  # (2, 4)

    Spec: function_spec.yaml, entry Concatenate
    """
    if unknown:
        refuse(CONCATENATE, (), unknown)
    return apply(CONCATENATE, x, {"axis": axis}, outputs)


def split(x=None, axis=0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Cut an array into its entries along an axis, which goes away.

    y_i = x[..., i, ...]

    Args:
        x: Array to cut; L is at least 1. Shape (D_1, ..., L, ..., D_n).
        axis: Axis to cut.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: L arrays, one for each entry. Shape (D_1, ..., D_n) without L.

    Example:
        a, b, c = F.split(nn.Variable((4, 3)), axis=1)
        a.shape  # (4,)

    Spec: function_spec.yaml, entry Split
    """
    if surplus or unknown:
        refuse(SPLIT, surplus, unknown)
    return apply(SPLIT, (x,), {"axis": axis}, outputs)


def stack(*x, axis=0, n_outputs=-1, outputs=None, **unknown):
    """Join arrays of one shape along a new axis.

    Args:
        *x: Arrays of equal shapes. Shape (D_1, ..., D_n).
        axis: Place of the new axis in the result, in [-n - 1, n].
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The m inputs, one for each entry along the new axis. Shape (D_1, ..., m, ..., D_n).

    Example:
        F.stack(nn.Variable((2, 3)), nn.Variable((2, 3)), axis=1).shape  # (2, 2, 3)

    Spec: function_spec.yaml, entry Stack
    """
    if unknown:
        refuse(STACK, (), unknown)
    return apply(STACK, x, {"axis": axis}, outputs)


def slice(x=None, start=None, stop=None, step=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Cut out evenly spaced elements along each axis.

    y = x[start_1:stop_1:step_1, ..., start_n:stop_n:step_n]

    Args:
        x: Array to cut. Shape (D_1, ..., D_n).
        start: First element for each axis; by default the first one (the last, for a negative step).
        stop: End for each axis, not included; by default everything up to the edge.
        step: Distance of neighbours for each axis, not zero; 1 by default. A negative step walks backwards.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Elements that were cut out, a copy. Shape (L_1, ..., L_n).

    Notes:
        Bounds mean what they mean in a Python slice: negative ones count from the end, those beyond the edge are moved
        to it, and an empty range gives an axis of length 0. Settings with fewer entries than axes belong to the last
        axes. The gradient is put back to its places among zeros.

    Example:
        F.slice(nn.Variable((4, 8)), start=(1, 0), stop=(3, 8), step=(1, 2)).shape  # (2, 4)

    Spec: function_spec.yaml, entry Slice
    """
    if surplus or unknown:
        refuse(SLICE, surplus, unknown)
    return apply(SLICE, (x,), {"start": start, "stop": stop, "step": step}, outputs)


def pad(x=None, pad_width=None, mode="constant", constant_value=0.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Add elements before and after each axis.

    Args:
        x: Array to pad. Shape (D_1, ..., D_n).
        pad_width: Widths (before, after) of each axis, flattened; not negative. With fewer pairs than axes they belong
            to the last axes.
        mode: What is added: `constant_value`, the mirror image at the edge element (which is not repeated), or the edge
            element. One of 'constant', 'reflect', 'repeat'.
        constant_value: What is added in the mode constant.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Padded array. Shape (before_1 + D_1 + after_1, ..., before_n + D_n + after_n).

    Notes:
        The mirror image continues beyond the opposite edge where a width exceeds the axis; an axis of length 1 repeats
        its element. The gradient of an added element flows to the element that it copies.

    Example:
        F.pad(nn.Variable((3, 4)), (1, 1, 2, 0)).shape  # (5, 6)

    Spec: function_spec.yaml, entry Pad
    """
    if surplus or unknown:
        refuse(PAD, surplus, unknown)
    return apply(PAD, (x,), {"pad_width": pad_width, "mode": mode, "constant_value": constant_value}, outputs)


def pad_backward(dy=None, pad_width=None, mode="constant", n_outputs=-1, outputs=None, *surplus, **unknown):
    """Remove what `pad` adds, giving the sum of its copies to each element; the transpose of `pad`.

    Args:
        dy: Gradient of the padded array. Shape (before_1 + D_1 + after_1, ..., before_n + D_n + after_n).
        pad_width: As in `pad`.
        mode: As in `pad`. One of 'constant', 'reflect', 'repeat'.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        dx: Gradient of the array that was padded. Shape (D_1, ..., D_n).

    Example:
        F.pad_backward(nn.Variable((5, 6)), (1, 1, 2, 0)).shape  # (3, 4)

    Spec: function_spec.yaml, entry PadBackward
    """
    if surplus or unknown:
        refuse(PAD_BACKWARD, surplus, unknown)
    return apply(PAD_BACKWARD, (dy,), {"pad_width": pad_width, "mode": mode}, outputs)


def transpose(x=None, axes=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Put the axes in another order.

    y.shape[i] = x.shape[axes[i]]

    Args:
        x: Array to turn. Shape (D_1, ..., D_n).
        axes: The axis of x that becomes axis i of the result, for each i; each axis once.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Turned array, a copy in C order. Shape (D_axes_1, ..., D_axes_n).

    Example:
        F.transpose(nn.Variable((8, 3, 32, 32)), (0, 2, 3, 1)).shape  # (8, 32, 32, 3)

    Spec: function_spec.yaml, entry Transpose
    """
    if surplus or unknown:
        refuse(TRANSPOSE, surplus, unknown)
    return apply(TRANSPOSE, (x,), {"axes": axes}, outputs)


def broadcast(x=None, shape=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Repeat an array along axes of length 1 to get a given shape.

    Args:
        x: Array to repeat; k is at most n. Shape (D_1, ..., D_k).
        shape: Shape of the result. Counted from the last axis, each length of x is 1 or the one given here; axes that x
            lacks are added in front.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Repeated array, a copy. Shape shape.

    Notes:
        The gradient is summed over the axes that were stretched or added.

    Example:
        F.broadcast(nn.Variable((3, 1)), (2, 3, 4)).shape  # (2, 3, 4)

    Spec: function_spec.yaml, entry Broadcast
    """
    if surplus or unknown:
        refuse(BROADCAST, surplus, unknown)
    return apply(BROADCAST, (x,), {"shape": shape}, outputs)


def broadcast_to(x=None, y=None, axis=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Repeat y over those axes of x that it does not have.

    Args:
        x: Array that gives the shape; its values are not read. Shape (D_1, ..., D_n).
        y: Array to repeat; its shape is that of neighbouring axes of x. Shape (D_a, ..., D_b).
        axis: The axis of x that the first axis of y belongs to. Negative (default): the axes of y belong to the last
            axes of x.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        z: y repeated to the shape of x. Shape (D_1, ..., D_n).

    Notes:
        No gradient flows to x. The gradient of y is summed over the other axes; NNabla has no gradient here.

    Example:
        F.broadcast_to(nn.Variable((2, 3, 4)), nn.Variable((3,)), axis=1).shape  # (2, 3, 4)

    Spec: function_spec.yaml, entry BroadcastTo
    """
    if surplus or unknown:
        refuse(BROADCAST_TO, surplus, unknown)
    return apply(BROADCAST_TO, (x, y), {"axis": axis}, outputs)


def tile(x=None, reps=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Put copies of an array side by side along each axis.

    Args:
        x: Array to repeat. Shape (D_1, ..., D_n).
        reps: Number of copies along each axis, at least 1. With fewer entries than axes they belong to the last axes;
            with more, axes are added in front.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Copies side by side. Shape (r_1 * D_1, ..., r_n * D_n).

    Notes:
        The gradient is summed over the copies.

    Example:
        F.tile(nn.Variable((2, 3)), (2, 1, 2)).shape  # (2, 2, 6)

    Spec: function_spec.yaml, entry Tile
    """
    if surplus or unknown:
        refuse(TILE, surplus, unknown)
    return apply(TILE, (x,), {"reps": reps}, outputs)


def flip(x=None, axes=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Reverse the order of elements along axes.

    Args:
        x: Array to reverse. Shape (D_1, ..., D_n).
        axes: Axes to reverse; the last one by default.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Reversed array, a copy. Shape (D_1, ..., D_n).

    Example:
        F.flip(nn.NdArray.from_numpy_array([1.0, 2.0]), axes=(0,))  # [2, 1]

    Spec: function_spec.yaml, entry Flip
    """
    if surplus or unknown:
        refuse(FLIP, surplus, unknown)
    return apply(FLIP, (x,), {"axes": axes}, outputs)


def shift(x=None, shifts=None, border_mode="nearest", n_outputs=-1, outputs=None, *surplus, **unknown):
    """Move elements along each axis and fill the gap from the edge.

    y[i] = x[i - shift], positions outside of x brought inside as `border_mode` says

    Args:
        x: Array to move. Shape (D_1, ..., D_n).
        shifts: Number of elements to move along each axis, towards higher positions if positive. With fewer entries
            than axes they belong to the last axes. Default: zeros per axis.
        border_mode: Fill with the edge element, or with the mirror image at the edge (the edge element is repeated).
            One of 'nearest', 'reflect'.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Moved array. Shape (D_1, ..., D_n).

    Notes:
        The gradient flows to the element that was read; several may add up at an edge, and what left the array gets
        none.

    Example:
        F.shift(nn.Variable((8, 3, 32, 32)), (-3, 2))  # images 3 pixels up and 2 to the right

    Spec: function_spec.yaml, entry Shift
    """
    if surplus or unknown:
        refuse(SHIFT, surplus, unknown)
    return apply(SHIFT, (x,), {"shifts": shifts, "border_mode": border_mode}, outputs)


def shift_backward(dy=None, shifts=None, border_mode="nearest", n_outputs=-1, outputs=None, *surplus, **unknown):
    """Move the gradient of `shift` back to the elements that were read; the transpose of `shift`.

    Args:
        dy: Gradient of the moved array. Shape (D_1, ..., D_n).
        shifts: As in `shift`. Default: zeros per axis.
        border_mode: As in `shift`. One of 'nearest', 'reflect'.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        dx: Gradient of the array that was moved. Shape (D_1, ..., D_n).

    Example:
        F.shift_backward(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]

    Spec: function_spec.yaml, entry ShiftBackward
    """
    if surplus or unknown:
        refuse(SHIFT_BACKWARD, surplus, unknown)
    return apply(SHIFT_BACKWARD, (dy,), {"shifts": shifts, "border_mode": border_mode}, outputs)


def reshape(x=None, shape=None, inplace=True, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give an array another shape with the same elements in C order.

    Args:
        x: Array of any shape. Shape (D_1, ..., D_n).
        shape: New shape. One length may be -1: it follows from the size of x.
        inplace: Kept for programs that pass it: the result is the memory of x in either case.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The elements of x; shares memory with x. Shape shape.

    Example:
        F.reshape(nn.Variable((8, 3, 4)), (8, -1)).shape  # (8, 12)

    Spec: function_spec.yaml, entry Reshape
    """
    if surplus or unknown:
        refuse(RESHAPE, surplus, unknown)
    return apply(RESHAPE, (x,), {"shape": shape, "inplace": inplace}, outputs)


def shape(x=None, start=None, end=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Return the shape of an array as an array.

    Args:
        x: Array; its values are not read. Shape (D_1, ..., D_n).
        start: First axis to report; negative values count from the end. Default: 0.
        end: End of the axes to report, not included; negative values count from the end, 0 stands for n. Default: 0.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        shape: Lengths of the axes. Shape (end - start).

    Notes:
        The result is int64, where NNabla has float32. A range without axes gives an empty array.

    Example:
        F.shape(nn.NdArray((2, 3))).numpy().tolist()  # [2, 3]

    Spec: function_spec.yaml, entry Shape
    """
    if surplus or unknown:
        refuse(SHAPE, surplus, unknown)
    return apply(SHAPE, (x,), {"start": start, "end": end}, outputs)


def matrix_diag(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Put the last axis on the diagonal of square matrices.

    y[..., i, j] = x[..., i] if i == j else 0

    Args:
        x: Diagonals. Shape (D_1, ..., D_n, N).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Diagonal matrices. Shape (D_1, ..., D_n, N, N).

    Example:
        F.matrix_diag(nn.Variable((4, 3))).shape  # (4, 3, 3)

    Spec: function_spec.yaml, entry MatrixDiag
    """
    if surplus or unknown:
        refuse(MATRIX_DIAG, surplus, unknown)
    return apply(MATRIX_DIAG, (x,), {}, outputs)


def matrix_diag_part(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the diagonal of each matrix.

    y[..., i] = x[..., i, i]

    Args:
        x: Square matrices; others are refused. Shape (D_1, ..., D_n, N, N).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Diagonals. Shape (D_1, ..., D_n, N).

    Example:
        F.matrix_diag_part(nn.Variable((4, 3, 3))).shape  # (4, 3)

    Spec: function_spec.yaml, entry MatrixDiagPart
    """
    if surplus or unknown:
        refuse(MATRIX_DIAG_PART, surplus, unknown)
    return apply(MATRIX_DIAG_PART, (x,), {}, outputs)


def trilu(x=None, k=0, upper=True, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Keep the upper or lower triangle of each matrix and set the rest to zero.

    y[..., i, j] = x[..., i, j] if j - i >= k (upper) or j - i <= k (lower) else 0

    Args:
        x: Matrices. Shape (D_1, ..., D_n, N, M).
        k: Diagonal that bounds the triangle: 0 is the main one, positive ones lie above it.
        upper: Keep the upper triangle rather than the lower one.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Triangular matrices. Shape (D_1, ..., D_n, N, M).

    Example:
        F.trilu(nn.NdArray.from_numpy_array([[2, 1], [1, 3]]))  # [[2, 1], [0, 3]]

    Spec: function_spec.yaml, entry Trilu
    """
    if surplus or unknown:
        refuse(TRILU, surplus, unknown)
    return apply(TRILU, (x,), {"k": k, "upper": upper}, outputs)


def meshgrid(*x, ij_indexing=False, n_outputs=-1, outputs=None, **unknown):
    """Spread vectors over a grid, each along an axis of its own.

    Args:
        *x: Vectors of coordinates. Shape (L_i) for input i.
        ij_indexing: Input i varies along axis i. By default the first two axes are swapped (the x of an image runs
            along its second axis).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: One grid for each input. Shape (L_2, L_1, L_3, ...), or (L_1, L_2, L_3, ...).

    Example:
        x, y = F.meshgrid(nn.NdArray.from_numpy_array([1, 2, 3]), nn.NdArray.from_numpy_array([4, 5]))
        x  # [[1, 2, 3], [1, 2, 3]]
        y  # [[4, 4, 4], [5, 5, 5]]

    Spec: function_spec.yaml, entry Meshgrid
    """
    if unknown:
        refuse(MESHGRID, (), unknown)
    return apply(MESHGRID, x, {"ij_indexing": ij_indexing}, outputs)


def identity(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Return the input.

    y = x

    Args:
        x: Array of any shape. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Copy of x. Shape that of x.

    Example:
        F.identity(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]

    Spec: function_spec.yaml, entry Identity
    """
    if surplus or unknown:
        refuse(IDENTITY, surplus, unknown)
    return apply(IDENTITY, (x,), {}, outputs)


def constant(val=0.0, shape=(), n_outputs=-1, outputs=None, *surplus, **unknown):
    """Make an array of one value.

    Args:
        val: Value of every element.
        shape: Shape of the array; 0-d by default.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Array full of `val`. Shape shape.

    Example:
        F.constant(3, (2, 4)).shape  # (2, 4)

    Spec: function_spec.yaml, entry Constant
    """
    if surplus or unknown:
        refuse(CONSTANT, surplus, unknown)
    return apply(CONSTANT, (), {"val": val, "shape": shape}, outputs)


def arange(start=None, stop=None, step=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Make an array of evenly spaced values within [start, stop).

    y_i = start + i * step

    Args:
        start: First value.
        stop: End, not included.
        step: Distance of neighbours, not zero; negative ones count down.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Values, computed in double precision and then rounded. Shape (max(0, ceil((stop - start) / step))).

    Example:
        F.arange(0, 5).shape  # (5,)

    Spec: function_spec.yaml, entry Arange
    """
    if surplus or unknown:
        refuse(ARANGE, surplus, unknown)
    return apply(ARANGE, (), {"start": start, "stop": stop, "step": step}, outputs)


def linspace(start=None, stop=None, num=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Make an array of a given number of evenly spaced values within [start, stop].

    y_i = start + i * (stop - start) / (num - 1)

    Args:
        start: First value.
        stop: Last value (for `num` of at least 2).
        num: Number of values.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Values, computed in double precision and then rounded. Shape (num).

    Example:
        F.linspace(0, 1, 5).shape  # (5,)

    Spec: function_spec.yaml, entry Linspace
    """
    if surplus or unknown:
        refuse(LINSPACE, surplus, unknown)
    return apply(LINSPACE, (), {"start": start, "stop": stop, "num": num}, outputs)


def eye_like(x=None, k=0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Make a matrix with ones on a diagonal and zeros elsewhere, in the shape of another matrix.

    y[i, j] = 1 if j - i == k else 0

    Args:
        x: Matrix that gives the shape; its values are not read. Shape (N, M).
        k: Diagonal of the ones: 0 is the main one, positive ones lie above it.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Matrix of ones and zeros. Shape (N, M).

    Example:
        F.eye_like(nn.NdArray((2, 2)))  # [[1, 0], [0, 1]]

    Spec: function_spec.yaml, entry EyeLike
    """
    if surplus or unknown:
        refuse(EYE_LIKE, surplus, unknown)
    return apply(EYE_LIKE, (x,), {"k": k}, outputs)


def assign(dst=None, src=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Copy one array into another when the graph runs.

    dst := src, y = src

    Args:
        dst: Array that is overwritten. Shape (D_1, ..., D_n).
        src: Array that is copied. Shape (D_1, ..., D_n).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The new values of dst. Shape (D_1, ..., D_n).

    Notes:
        The gradient of y is the gradient of dst; src gets none, as in NNabla.

    Example:
        x, average = nn.Variable((3,)), nn.Variable((3,))
        momentum = F.assign(average, 0.9 * average + 0.1 * x)
        momentum.forward()  # average has the new values

    Spec: function_spec.yaml, entry Assign
    """
    if surplus or unknown:
        refuse(ASSIGN, surplus, unknown)
    return apply(ASSIGN, (dst, src), {}, outputs)


def unlink(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Return the input and let no gradient pass.

    y = x

    Args:
        x: Array of any shape. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Copy of x. Shape that of x.

    Example:
        F.unlink(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]

    Spec: function_spec.yaml, entry Unlink
    """
    if surplus or unknown:
        refuse(UNLINK, surplus, unknown)
    return apply(UNLINK, (x,), {}, outputs)


def sink(*x, one_input_grad=True, n_outputs=-1, outputs=None, **unknown):
    """Hold several ends of a graph together, so that they run forward and backward as one.

    Args:
        *x: Ends of a graph; their values are not read. Shape any.
        one_input_grad: Each input gets a gradient of ones. Otherwise they keep the gradients that were set from
            outside.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Zero. Shape ().

    Notes:
        The gradient of the result is not read. Use it at the end of a graph only.

    Example:
        x, label = nn.Variable((8, 3), need_grad=True), nn.Variable((8, 1))
        loss, score = F.mean(F.softmax_cross_entropy(x, label)), F.top_n_error(x, label)
        both = F.sink(loss, score)
        both.forward()  # one pass for the loss and the score

    Spec: function_spec.yaml, entry Sink
    """
    if unknown:
        refuse(SINK, (), unknown)
    return apply(SINK, x, {"one_input_grad": one_input_grad}, outputs)


show_signatures(globals(), SPECS)
