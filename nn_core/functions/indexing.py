"""Functions of the topic indexing.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.indexing import (
    BOOL_FILL,
    BOOL_GATHER,
    BOOL_SCATTER,
    EMBED,
    GATHER,
    GATHER_AXES,
    GATHER_ND,
    NMS_DETECTION2D,
    NONZERO,
    ONE_HOT,
    ONNX_NON_MAX_SUPPRESSION,
    SCATTER_ADD,
    SCATTER_AXES,
    SCATTER_ND,
    SEARCHSORTED,
    SORT,
    SPECS,
    TOP_K_DATA,
    TOP_K_GRAD,
    UNIQUE,
)


def one_hot(x=None, shape=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Turn positions into arrays that are one at the position and zero elsewhere.

    output[..., i_1, ..., i_M] = 1 if x[..., :] == (i_1, ..., i_M) else 0

    Args:
        x: Positions, one entry for each axis of `shape`. Shape (N_1, ..., N_k, M).
        shape: Shape (D_1, ..., D_M) that a position points into; (classes,) for labels of shape (N, 1).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        output: Ones and zeros. Shape (N_1, ..., N_k, D_1, ..., D_M).

    Notes:
        Negative entries count from the end. A position outside of `shape` gives zeros only.

    Example:
        F.one_hot(nn.Variable((16, 1)), (10,)).shape  # (16, 10)

    Spec: function_spec.yaml, entry OneHot
    """
    if surplus or unknown:
        refuse(ONE_HOT, surplus, unknown)
    return apply(ONE_HOT, (x,), {"shape": shape}, outputs)


def embed(x0=None, w=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Look up rows of a table by number.

    y[i, ...] = w[x0[i], ...]

    Args:
        x0: Row numbers in [-W, W); negative ones count from the end. Shape (I_1, ..., I_n).
        w: Table of W rows. Shape (W, D_1, ..., D_m).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The rows, one for each number. Shape (I_1, ..., I_n, D_1, ..., D_m).

    Notes:
        The gradient of a row is the sum over all places that looked it up. Numbers outside of the table are an
        ArgumentError where the backend checks them, as the reference does.

    Example:
        F.embed(nn.Variable((8, 20)), nn.Variable((1000, 64))).shape  # (8, 20, 64)

    Spec: function_spec.yaml, entry Embed
    """
    if surplus or unknown:
        refuse(EMBED, surplus, unknown)
    return apply(EMBED, (x0, w), {}, outputs)


def gather(x=None, Indices=None, axis=None, batch_dims=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Pick elements along an axis by number.

    y[p, i, q] = x[p, Indices[i], q]; with batch axes b, y[b, p, i, q] = x[b, p, Indices[b, i], q]

    Args:
        x: Array to pick from; N is the length of `axis`. Shape (B_1, ..., P_1, ..., N, Q_1, ...).
        Indices: Numbers in [-N, N); negative ones count from the end. Shape (B_1, ..., I_1, ...).
        axis: Axis of x to pick along. Default: 0.
        batch_dims: Number of leading axes that x and Indices have in common; at most `axis`. Default: 0.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Picked elements. Shape (B_1, ..., P_1, ..., I_1, ..., Q_1, ...).

    Example:
        F.gather(nn.Variable((4, 3)), nn.Variable((2, 5)), axis=1).shape  # (4, 2, 5)

    Spec: function_spec.yaml, entry Gather
    """
    if surplus or unknown:
        refuse(GATHER, surplus, unknown)
    return apply(GATHER, (x, Indices), {"axis": axis, "batch_dims": batch_dims}, outputs)


def gather_nd(x=None, indices=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Pick elements or blocks by position.

    y[i, ...] = x[indices[0, i], ..., indices[M - 1, i], ...]

    Args:
        x: Array to pick from. Shape (D_1, ..., D_N).
        indices: Positions along the first M axes of x, M at most N; negative entries count from the end. Shape (M, I_1,
            ..., I_k).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Picked elements (M = N) or blocks. Shape (I_1, ..., I_k, D_(M+1), ..., D_N).

    Example:
        F.gather_nd(nn.Variable((4, 5)), nn.Variable((2, 3))).shape  # (3,)

    Spec: function_spec.yaml, entry GatherNd
    """
    if surplus or unknown:
        refuse(GATHER_ND, surplus, unknown)
    return apply(GATHER_ND, (x, indices), {}, outputs)


def scatter_nd(
    data=None,
    indices=None,
    out=None,
    shape=None,
    add=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Put elements or blocks at positions of a new array of zeros or of an existing array.

    y[indices[0, i], ..., indices[M - 1, i], ...] = data[i, ...]

    Args:
        data: What is put. Shape (I_1, ..., I_k, D_(M+1), ..., D_N).
        indices: Positions along the first M axes of the result, M at most N; negative entries count from the end. Shape
            (M, I_1, ..., I_k).
        out: Array to put into; it is rewritten when the function runs. Exactly one of `out` and `shape` is given. Shape
            (D_1, ..., D_N). Optional.
        shape: Shape of a new array of zeros.
        add: Add to what is there; positions that repeat add up.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The array with the elements in place. Shape (D_1, ..., D_N).

    Notes:
        Without `add`, a position that repeats has one of its values, which one is not defined, and each of them gets
        the gradient. The gradient of `out` is that of y, zero where y was overwritten; NNabla gives it none.

    Example:
        F.scatter_nd(nn.Variable((3,)), nn.Variable((2, 3)), shape=(4, 5)).shape  # (4, 5)

    Spec: function_spec.yaml, entry ScatterNd
    """
    if surplus or unknown:
        refuse(SCATTER_ND, surplus, unknown)
    return apply(SCATTER_ND, (data, indices, out), {"shape": shape, "add": add}, outputs)


def scatter_add(x0=None, indices=None, x1=None, axis=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Add elements to a copy of an array at numbered places along an axis.

    y[.., indices[.., i, ..], ..] += x1[.., i, ..] along `axis`, starting from y = x0

    Args:
        x0: Array that is added to; it is not changed itself. Shape (D_1, ..., D_n).
        indices: Places along `axis`, one for each element of x1 that is used; negative ones count from the end. I_k is
            at most D_k except along `axis`. Shape (I_1, ..., I_n).
        x1: What is added; E_k is at least I_k, elements beyond are not used. Shape (E_1, ..., E_n).
        axis: Axis that `indices` number. Default: 0.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Sums. Shape (D_1, ..., D_n).

    Notes:
        Places that repeat add up, in float32 or wider.

    Example:
        F.scatter_add(nn.Variable((4, 5)), nn.Variable((4, 5)), nn.Variable((4, 5))).shape  # (4, 5)

    Spec: function_spec.yaml, entry ScatterAdd
    """
    if surplus or unknown:
        refuse(SCATTER_ADD, surplus, unknown)
    return apply(SCATTER_ADD, (x0, indices, x1), {"axis": axis}, outputs)


def bool_gather(input=None, mask=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Pick the elements where a mask is not zero.

    Args:
        input: Array to pick from. Shape (B_1, ..., B_k, D_1, ..., D_m).
        mask: Non-zero picks. No gradient flows to it. Shape (B_1, ..., B_k).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        output: The nnz picked elements in order. Shape (nnz, D_1, ..., D_m).

    Notes:
        nnz is the number of non-zeros of mask. Until the function has run, the first axis of the output has length 0.

    Example:
        F.bool_gather(nn.NdArray.from_numpy_array([5.0, 6.0, 7.0]), nn.NdArray.from_numpy_array([1, 0, 1]))  # [5, 7]

    Spec: function_spec.yaml, entry BoolGather
    """
    if surplus or unknown:
        refuse(BOOL_GATHER, surplus, unknown)
    return apply(BOOL_GATHER, (input, mask), {}, outputs)


def bool_scatter(input=None, mask=None, output=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Put elements where a mask is not zero, into zeros or into an existing array; undoes `bool_gather`.

    Args:
        input: One element for each non-zero of mask, in order. Shape (nnz, D_1, ..., D_m).
        mask: Non-zero receives an element. No gradient flows to it. Shape (B_1, ..., B_k).
        output: Array to put into; it is rewritten when the function runs. Shape (B_1, ..., B_k, D_1, ..., D_m).
            Optional.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Elements in place, else zero or the values of `output`. Shape (B_1, ..., B_k, D_1, ..., D_m).

    Notes:
        That mask has nnz non-zeros is checked when the function runs. The gradient of `input` is picked by mask, so its
        shape is known only then.

    Example:
        F.bool_scatter(nn.NdArray.from_numpy_array([7, 8]), nn.NdArray.from_numpy_array([[1, 0], [0, 1]]))  # [[7, 0], [0, 8]]

    Spec: function_spec.yaml, entry BoolScatter
    """
    if surplus or unknown:
        refuse(BOOL_SCATTER, surplus, unknown)
    return apply(BOOL_SCATTER, (input, mask, output), {}, outputs)


def bool_fill(data=None, mask=None, value=0.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Replace elements where a mask is not zero.

    y = value if mask != 0 else data

    Args:
        data: Array of any shape. Shape (D_1, ..., D_n).
        mask: Non-zero is replaced. No gradient flows to it. Shape broadcast to data.
        value: What is put there.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Array with the replaced elements. Shape (D_1, ..., D_n).

    Example:
        x = nn.NdArray.from_numpy_array([1.0, float('nan')])
        F.bool_fill(x, F.isnan(x), 0)  # [1, 0]

    Spec: function_spec.yaml, entry BoolFill
    """
    if surplus or unknown:
        refuse(BOOL_FILL, surplus, unknown)
    return apply(BOOL_FILL, (data, mask), {"value": value}, outputs)


def nonzero(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Find the positions of elements that are not zero.

    Args:
        x: Array of any shape. Shape (D_1, ..., D_n).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Position of each non-zero, one a column, in C order. Shape (n, nnz).

    Notes:
        The result fits `gather_nd`. Until the function has run, its last axis has length 0.

    Example:
        F.nonzero(nn.NdArray.from_numpy_array([0.0, 5.0, 7.0])).numpy().tolist()  # [[1, 2]]

    Spec: function_spec.yaml, entry NonZero
    """
    if surplus or unknown:
        refuse(NONZERO, surplus, unknown)
    return apply(NONZERO, (x,), {}, outputs)


def sort(
    x=None,
    axis=-1,
    reverse=False,
    with_index=False,
    only_index=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Put the elements along an axis in order.

    Args:
        x: Array with at least one axis. Shape (D_1, ..., D_n).
        axis: Axis to sort along.
        reverse: Largest first.
        with_index: Return the pair of values and places.
        only_index: Return the places alone.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Ordered elements. Shape (D_1, ..., D_n).
        index: The place in x that each of them had. Shape (D_1, ..., D_n). Only where asked for.

    Notes:
        Equal elements keep their order, also with `reverse`. NaN is taken as the largest. The gradient is put back to
        the places that the elements had; places have none. NNabla puts it to other places: it inverts the order the
        wrong way.

    Example:
        y, index = F.sort(nn.Variable((2, 3)), axis=1, with_index=True)

    Spec: function_spec.yaml, entry Sort
    """
    if surplus or unknown:
        refuse(SORT, surplus, unknown)
    return apply(
        SORT,
        (x,),
        {"axis": axis, "reverse": reverse, "with_index": with_index, "only_index": only_index},
        outputs,
    )


def unique(
    x=None,
    flatten=True,
    axis=None,
    sorted=True,
    with_index=False,
    with_inverse=False,
    with_counts=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Find the distinct elements of an array, or its distinct entries along an axis.

    Args:
        x: Array of any shape. Shape (D_1, ..., D_n).
        flatten: Compare single elements, whatever `axis` is.
        axis: Axis along which entries are compared if `flatten` is False.
        sorted: Smallest first; otherwise in the order in which they first occur.
        with_index: Also return `indices`.
        with_inverse: Also return `inverse_indices`.
        with_counts: Also return `counts`.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The U distinct ones. Shape (U), or that of x with U instead of the length of `axis`.
        indices: Where each first occurs. Shape (U). Only where asked for.
        inverse_indices: Place in y of each one of x. Shape (number of compared elements or entries). Only where asked
            for.
        counts: How often each occurs. Shape (U). Only where asked for.

    Notes:
        Until the function has run, U is 0. Results that are not asked for are left out.

    Example:
        F.unique(nn.NdArray.from_numpy_array([2.0, 1.0, 2.0]))  # [1, 2]

    Spec: function_spec.yaml, entry Unique
    """
    if surplus or unknown:
        refuse(UNIQUE, surplus, unknown)
    return apply(
        UNIQUE,
        (x,),
        {
            "flatten": flatten,
            "axis": axis,
            "sorted": sorted,
            "with_index": with_index,
            "with_inverse": with_inverse,
            "with_counts": with_counts,
        },
        outputs,
    )


def searchsorted(sorted_sequence=None, values=None, right=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Find where values belong in sorted sequences.

    sequence[y - 1] < value <= sequence[y], or sequence[y - 1] <= value < sequence[y] if `right`

    Args:
        sorted_sequence: Sequences, sorted along the last axis. Shape (B_1, ..., B_k, N).
        values: Values to look for, each in the sequence at the same place. Shape (B_1, ..., B_k, M).
        right: Return the place after elements equal to the value rather than the one before them. Default: False.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Numbers in [0, N] of the places to insert at. Shape (B_1, ..., B_k, M).

    Example:
        F.searchsorted(nn.NdArray.from_numpy_array([1.0, 3.0, 5.0]), nn.NdArray.from_numpy_array([2.0, 5.0])).numpy().tolist()  # [1, 2]

    Spec: function_spec.yaml, entry SearchSorted
    """
    if surplus or unknown:
        refuse(SEARCHSORTED, surplus, unknown)
    return apply(SEARCHSORTED, (sorted_sequence, values), {"right": right}, outputs)


def top_k_data(
    x=None,
    k=None,
    abs=False,
    reduce=True,
    base_axis=1,
    largest=True,
    with_index=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Keep the k largest elements of each sample.

    Args:
        x: Samples; a sample has S = D_1 * ... * D_m elements. Shape (N_1, ..., N_b, D_1, ..., D_m).
        k: Number of elements to keep, in [1, S].
        abs: Compare magnitudes.
        reduce: Return the k elements alone, in order; otherwise leave them in place and set the others to zero.
        base_axis: First axis of a sample.
        largest: Keep the largest; otherwise the smallest.
        with_index: Also return `indices`; with `reduce` only.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Kept elements, best first, or the array with zeros. Shape (N_1, ..., N_b, k), or that of x.
        indices: Place of each in the flattened sample. Shape (N_1, ..., N_b, k). Only where asked for.

    Notes:
        Of equal elements the first is better. NaN is taken as the largest. The gradient flows to the kept elements
        only; with `reduce=False` NNabla lets it flow to all of them.

    Example:
        F.top_k_data(nn.Variable((4, 5, 6)), 3).shape  # (4, 3)

    Spec: function_spec.yaml, entry TopKData
    """
    if surplus or unknown:
        refuse(TOP_K_DATA, surplus, unknown)
    return apply(
        TOP_K_DATA,
        (x,),
        {"k": k, "abs": abs, "reduce": reduce, "base_axis": base_axis, "largest": largest, "with_index": with_index},
        outputs,
    )


def top_k_grad(x=None, k=None, abs=False, base_axis=1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Return the input, and keep only the k largest elements of its gradient for each sample.

    Args:
        x: Samples; a sample has S = D_1 * ... * D_m elements. Shape (N_1, ..., N_b, D_1, ..., D_m).
        k: Number of gradients to let pass, in [1, S].
        abs: Compare magnitudes.
        base_axis: First axis of a sample.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Copy of x. Shape (N_1, ..., N_b, D_1, ..., D_m).

    Notes:
        The gradient is chosen, not derived; the others are set to zero.

    Example:
        F.top_k_grad(nn.Variable((8, 10)), 3).shape  # (8, 10)

    Spec: function_spec.yaml, entry TopKGrad
    """
    if surplus or unknown:
        refuse(TOP_K_GRAD, surplus, unknown)
    return apply(TOP_K_GRAD, (x,), {"k": k, "abs": abs, "base_axis": base_axis}, outputs)


def nms_detection2d(x=None, thresh=None, nms=None, nms_per_class=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Suppress detected boxes that overlap with a better one.

    Args:
        x: N boxes a sample: centre x and y, width, height, objectness, and C class probabilities. Shape (B, N, 5 + C).
        thresh: Objectness and scores below it become zero. Default: 0.5.
        nms: Boxes overlap if their intersection over union is larger. Default: 0.45.
        nms_per_class: Suppress for each class by score; otherwise suppress boxes by objectness. Default: True.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The boxes with objectness * probability in place of the probabilities, zero where suppressed. Shape (B, N, 5
            + C).

    Notes:
        Boxes are visited best first (the first of equal ones), and each removes the remaining ones that overlap with
        it. Without `nms_per_class` the objectness of a suppressed box becomes zero as well.

    Example:
        F.nms_detection2d(nn.Variable((1, 10, 25))).shape  # (1, 10, 25)

    References:
        Redmon and Farhadi (2017), YOLO9000, better, faster, stronger.

    Spec: function_spec.yaml, entry NmsDetection2d
    """
    if surplus or unknown:
        refuse(NMS_DETECTION2D, surplus, unknown)
    return apply(NMS_DETECTION2D, (x,), {"thresh": thresh, "nms": nms, "nms_per_class": nms_per_class}, outputs)


def onnx_non_max_suppression(
    boxes=None,
    scores=None,
    center_point_box=None,
    max_output_boxes_per_class=None,
    iou_threshold=None,
    score_threshold=None,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Pick the boxes that do not overlap with a better one, as the ONNX operator NonMaxSuppression does.

    Args:
        boxes: N boxes a sample: two opposite corners (y1, x1, y2, x2), or (x centre, y centre, width, height). Shape
            (B, N, 4).
        scores: Score of each box for each of C classes. Shape (B, C, N).
        center_point_box: 0: boxes hold corners; 1: they hold centre and size. Default: 0.
        max_output_boxes_per_class: Most boxes to pick for each sample and class; 0 picks none. Default: 0.
        iou_threshold: Boxes overlap if their intersection over union is larger. Default: 0.0.
        score_threshold: Boxes with a lower score are not picked. Default: 0.0.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Sample, class and box of the M picked ones, best first within a sample and class. Shape (M, 3).

    Notes:
        Until the function has run, M is 0.

    Example:
        boxes = nn.NdArray.from_numpy_array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])
        scores = nn.NdArray.from_numpy_array([[[0.9, 0.8, 0.7]]])
        F.onnx_non_max_suppression(boxes, scores, max_output_boxes_per_class=3, iou_threshold=0.5)  # [[0, 0, 0], [0, 0, 2]]

    References:
        ONNX operator specification, NonMaxSuppression, version 11.

    Spec: function_spec.yaml, entry ONNXNonMaxSuppression
    """
    if surplus or unknown:
        refuse(ONNX_NON_MAX_SUPPRESSION, surplus, unknown)
    return apply(
        ONNX_NON_MAX_SUPPRESSION,
        (boxes, scores),
        {
            "center_point_box": center_point_box,
            "max_output_boxes_per_class": max_output_boxes_per_class,
            "iou_threshold": iou_threshold,
            "score_threshold": score_threshold,
        },
        outputs,
    )


def gather_axes(x=None, source=None, base_axis=1, n_outputs=-1, outputs=None, *surplus, shape=None, **unknown):
    """Read each sample at positions that are given for each axis by itself, as crops, shifts and flips do.

    y[n, i_1, ..., i_k] = x[n, source_1[n, i_1], ..., source_k[n, i_k]], zero where a position is -1

    Args:
        x: Samples. Shape (N_1, ..., N_b, D_1, ..., D_k).
        source: The positions source_1, ..., source_k of each sample one after the other. Shape (N_1, ..., N_b, L_1 +
            ... + L_k).
        base_axis: First axis of a sample.
        shape: The lengths (L_1, ..., L_k).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Elements that were read. Shape (N_1, ..., N_b, L_1, ..., L_k).

    Example:
        rows, columns = [1, 0], [2, 2, -1]
        x = nn.NdArray.from_numpy_array([[[1, 2, 3], [4, 5, 6]]])
        F.gather_axes(x, nn.NdArray.from_numpy_array([rows + columns]), shape=(2, 3))  # [[[6, 6, 0], [3, 3, 0]]]

    Spec: function_spec.yaml, entry GatherAxes
    """
    if surplus or unknown:
        refuse(GATHER_AXES, surplus, unknown)
    return apply(GATHER_AXES, (x, source), {"base_axis": base_axis, "shape": shape}, outputs)


def scatter_axes(dy=None, source=None, base_axis=1, n_outputs=-1, outputs=None, *surplus, shape=None, **unknown):
    """Add the elements of each sample at positions that are given for each axis by itself; the transpose of
    `gather_axes`.

    Args:
        dy: Samples. Shape (N_1, ..., N_b, L_1, ..., L_k).
        source: As in `gather_axes`; elements with a position of -1 are dropped. Shape (N_1, ..., N_b, L_1 + ... + L_k).
        base_axis: First axis of a sample.
        shape: The lengths (D_1, ..., D_k) of a sample of the result.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        dx: Sums, zero where nothing was added. Shape (N_1, ..., N_b, D_1, ..., D_k).

    Example:
        dy = nn.NdArray.from_numpy_array([[1, 2, 3]])
        F.scatter_axes(dy, nn.NdArray.from_numpy_array([[0, 2, 2]]), shape=(4,))  # [[1, 0, 5, 0]]

    Spec: function_spec.yaml, entry ScatterAxes
    """
    if surplus or unknown:
        refuse(SCATTER_AXES, surplus, unknown)
    return apply(SCATTER_AXES, (dy, source), {"base_axis": base_axis, "shape": shape}, outputs)


show_signatures(globals(), SPECS)
