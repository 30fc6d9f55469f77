"""Functions that pick, place and order elements."""

from collections.abc import Sequence

from nn_ext_onnx.exporting.arithmetic import where
from nn_ext_onnx.exporting.registry import Call, NotExportableError, converter, size_of
from nn_ext_onnx.exporting.values import BOOL, FLOAT, INT, Value


@converter("OneHot")
def _one_hot(call: Call) -> Value:
    """One axis of classes for each number in the last axis of x."""
    lengths, before = call.args["shape"], call.ndim - 1
    levels = call.graph.constant([0.0, 1.0])
    product: Value | None = None
    for position, length in enumerate(lengths):
        numbers = call.x.take(position, before)
        hits = numbers.op("OneHot", call.graph.constant(length, INT), levels, axis=-1, dtype=levels.dtype)
        others = [before + place for place in range(len(lengths)) if place != position]
        hits = hits.unsqueeze(*others) if others else hits
        product = hits if product is None else product * hits
    if product is None:
        raise NotExportableError("shape must have an axis")
    return product


@converter("Embed")
def _embed(call: Call) -> Value:
    return call[1].op("Gather", call[0], axis=0)


@converter("Gather")
def _gather(call: Call) -> Value:
    axis, batch = call.args["axis"], call.args["batch_dims"]
    if not batch:
        return call.x.op("Gather", call[1], axis=axis)
    between = list(range(batch, axis))
    x = call.x.transpose([*range(batch), axis, *between, *range(axis + 1, call.ndim)])
    n_new = len(call.shapes[1]) - batch
    y = x.op("GatherND", call[1].unsqueeze(len(call.shapes[1])), batch_dims=batch)
    total = len(call.output_shape)
    moved = list(range(batch + n_new, batch + n_new + len(between)))
    return y.transpose([*range(batch), *moved, *range(batch, batch + n_new), *range(batch + n_new + len(between), total)])


def _indices(value: Value, ndim: int) -> Value:
    """Return indices with the axis that tells the coordinates moved from the front to the end."""
    return value.transpose([*range(1, ndim), 0])


@converter("GatherNd")
def _gather_nd(call: Call) -> Value:
    return call.x.op("GatherND", _indices(call[1], len(call.shapes[1])))


@converter("ScatterNd")
def _scatter_nd(call: Call) -> Value:
    given = call.optional(2)
    base = call.zeros(call.output_shape) if given is None else given
    reduction = None
    if call.args["add"]:
        call.need_opset(16, "ScatterND with addition")
        reduction = "add"
    return base.op("ScatterND", _indices(call[1], len(call.shapes[1])), call[0], reduction=reduction)


@converter("ScatterAdd")
def _scatter_add(call: Call) -> Value:
    call.need_opset(16, "ScatterElements with addition")
    updates = call[2]
    for axis, (length, wanted) in enumerate(zip(call.shapes[2], call.shapes[1], strict=True)):
        updates = updates if length == wanted else updates.slice(axis, 0, wanted)
    return call.x.op("ScatterElements", call[1], updates, axis=call.args["axis"], reduction="add")


def _places(mask: Value) -> Value:
    """Return the places where a mask is not zero, a row of coordinates for each place."""
    return mask.cast(BOOL).op("NonZero", dtype=INT).transpose([1, 0])


@converter("BoolGather")
def _bool_gather(call: Call) -> Value:
    return call.x.op("GatherND", _places(call[1]))


@converter("BoolScatter")
def _bool_scatter(call: Call) -> Value:
    given = call.optional(2)
    base = call.zeros(call.output_shape) if given is None else given
    return base.op("ScatterND", _places(call[1]), call.x)


@converter("BoolFill")
def _bool_fill(call: Call) -> Value:
    return where(call[1].cast(BOOL), call.args["value"], call.x)


@converter("NonZero")
def _non_zero(call: Call) -> Value:
    if not call.ndim:
        raise NotExportableError("x must have an axis")
    x = call.x if call.x.dtype == FLOAT else call.x.cast(BOOL)  # runtimes have it for few types
    return x.op("NonZero", dtype=INT)


def _ordered(x: Value, count: int, axis: int, largest: bool) -> list[Value]:
    """Return the `count` first elements in order, and where they are."""
    return x.graph.ops("TopK", x, (count,), dtypes=[x.dtype, INT], axis=axis, largest=int(largest), sorted=1)


@converter("Sort")
def _sort(call: Call) -> list[Value]:
    axis = call.args["axis"]
    values, index = _ordered(call.x, call.shape[axis], axis, call.args["reverse"])
    if call.args["only_index"]:
        return [index]
    return [values, index][: len(call.output_shapes)]


@converter("Unique")
def _unique(call: Call) -> list[Value]:
    axis = None if call.args["flatten"] else call.args["axis"]
    x = call.x.cast(INT) if call.x.dtype.kind in "iub" else call.x
    found = call.graph.ops("Unique", x, dtypes=[x.dtype, INT, INT, INT], axis=axis, sorted=int(call.args["sorted"]))
    wanted = [True, call.args["with_index"], call.args["with_inverse"], call.args["with_counts"]]
    return [value for value, is_wanted in zip(found, wanted, strict=True) if is_wanted]


@converter("SearchSorted")
def _search_sorted(call: Call) -> Value:
    kind = "LessOrEqual" if call.args["right"] else "Less"
    smaller = call.x.unsqueeze(call.ndim - 1).compare(kind, call[1].unsqueeze(len(call.shapes[1])))
    return smaller.cast(INT).reduce("ReduceSum", [call.ndim], False)


@converter("TopKData")
def _top_k_data(call: Call) -> list[Value]:
    base_axis, k = call.args["base_axis"], call.args["k"]
    samples = call.x.reshape((size_of(call.shape[:base_axis]), size_of(call.shape[base_axis:])))
    keys = samples.op("Abs") if call.args["abs"] else samples
    _, places = _ordered(keys, k, 1, call.args["largest"])
    picked = samples.op("GatherElements", places, axis=1)
    if call.args["reduce"]:
        shape = (*call.shape[:base_axis], k)
        return [picked.reshape(shape), places.reshape(shape)][: len(call.output_shapes)]
    return [(samples * 0.0).op("ScatterElements", places, picked, axis=1).reshape(call.shape)]


@converter("ONNXNonMaxSuppression")
def _non_max_suppression(call: Call) -> Value:
    limits: Sequence[Value] = [
        call.graph.constant(call.args["max_output_boxes_per_class"], INT),
        call.graph.constant(call.args["iou_threshold"], FLOAT),
        call.graph.constant(call.args["score_threshold"], FLOAT),
    ]
    return call.graph.op(
        "NonMaxSuppression",
        call[0].cast(FLOAT),
        call[1].cast(FLOAT),
        *limits,
        dtype=INT,
        center_point_box=call.args["center_point_box"],
    )


@converter("NmsDetection2d")
def _nms_detection2d(call: Call) -> Value:
    """Scores of boxes that the operator does not pick become zero."""
    x, n_boxes, n_classes = call.x, call.shape[1], call.shape[2] - 5
    thresh, is_each = call.args["thresh"], call.args["nms_per_class"]
    objectness = _above(x.slice(2, 4, 5), thresh)
    scores = _above(x.slice(2, 5, 5 + n_classes) * objectness, thresh)
    candidates = (scores if is_each else objectness).transpose([0, 2, 1])
    limits = [call.graph.constant(v, d) for v, d in ((n_boxes, INT), (call.args["nms"], FLOAT), (0.0, FLOAT))]
    boxes = x.slice(2, 0, 4).cast(FLOAT)
    picked = boxes.op("NonMaxSuppression", candidates.cast(FLOAT), *limits, dtype=INT, center_point_box=1)
    zeros = candidates * 0.0
    ones = picked.slice(1, 0, 1).squeeze(1).real() * 0.0 + 1.0
    kept = zeros.op("ScatterND", picked, ones).transpose([0, 2, 1])
    if not is_each:
        objectness = objectness * kept
    parts = [x.slice(2, 0, 4), objectness, scores * kept]
    return call.graph.op("Concat", *parts, axis=2)


def _above(x: Value, threshold: float) -> Value:
    return where(x.compare("GreaterOrEqual", threshold), x, 0.0)
