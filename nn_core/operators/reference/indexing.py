"""Reference kernels of functions that pick, place and order elements.

Indices are checked here, because only a kernel sees them; under a device namespace this waits for the device.
"""

import math

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.reference import axis_maps
from nn_core.operators.reference.precision import sum_dtype, widen
from nn_core.operators.reference.registry import kernel
from nn_core.typing import Array, Namespace, Shape


def _require_within(function: str, name: str, indices: Array, length: int) -> None:
    if indices.size and (int(indices.min()) < -length or int(indices.max()) >= length):
        low, high = int(indices.min()), int(indices.max())
        raise ArgumentError(f"{function}: {name} must be in [{-length}, {length}), got values from {low} to {high}")


# Picking by number --------------------------------------------------------------------------------------------------


@kernel("OneHot")
def one_hot(xp: Namespace, x: Array, *, shape: Shape) -> Array:
    hits = xp.ones(x.shape[:-1] + (1,) * len(shape), dtype=bool)
    for axis, length in enumerate(shape):
        place = x[..., axis].reshape(x.shape[:-1] + (1,) * len(shape))
        number = xp.arange(length).reshape(-1, *[1] * (len(shape) - axis - 1))
        hits = hits & ((place == number) | (place + length == number))
    return hits.astype(xp.float64)


@kernel("Embed")
def embed(xp: Namespace, x0: Array, w: Array) -> Array:
    _require_within("embed", "x0", x0, w.shape[0])
    return w[x0]


@kernel("Gather")
def gather(xp: Namespace, x: Array, Indices: Array, *, axis: int, batch_dims: int) -> Array:
    _require_within("gather", "Indices", Indices, x.shape[axis])
    batch, before = x.shape[:batch_dims], x.shape[batch_dims:axis]
    grouped = x.reshape(math.prod(batch), *before, *x.shape[axis:])
    rows = Indices.reshape(grouped.shape[0], *Indices.shape[batch_dims:])
    picked = [xp.take(entry, row, axis=len(before)) for entry, row in zip(grouped, rows, strict=True)]
    shape = (*x.shape[:axis], *Indices.shape[batch_dims:], *x.shape[axis + 1 :])
    return xp.stack(picked).reshape(shape) if picked else xp.zeros(shape, dtype=x.dtype)


@kernel("GatherNd")
def gather_nd(xp: Namespace, x: Array, indices: Array) -> Array:
    return x[_places("gather_nd", indices, x.shape)]


@kernel("ScatterNd")
def scatter_nd(
    xp: Namespace, data: Array, indices: Array, out: Array | None, *, shape: Shape | None, add: bool
) -> tuple[Array, Array | None]:
    data = widen(xp, data)
    dtype = sum_dtype(xp, data) if add else data.dtype
    y = xp.zeros(shape, dtype=dtype) if out is None else out.astype(dtype)
    places = _places("scatter_nd", indices, y.shape)
    if add:
        xp.add.at(y, places, data)
    else:
        y[places] = data
    return y, None if out is None else y


def _places(function: str, indices: Array, shape: Shape) -> tuple[Array, ...]:
    """Return the first axis of `indices` as one index array for each axis that it names."""
    for row, length in zip(indices, shape, strict=False):
        _require_within(function, "indices", row, length)
    return tuple(indices)


@kernel("ScatterAdd")
def scatter_add(xp: Namespace, x0: Array, indices: Array, x1: Array, *, axis: int) -> Array:
    _require_within("scatter_add", "indices", indices, x0.shape[axis])
    places = [xp.arange(n).reshape(-1, *[1] * (x0.ndim - place - 1)) for place, n in enumerate(indices.shape)]
    places[axis] = indices
    y = xp.asarray(x0, dtype=sum_dtype(xp, x0)).copy()
    xp.add.at(y, tuple(places), widen(xp, x1)[tuple(map(slice, indices.shape))])
    return y


# Picking by mask ----------------------------------------------------------------------------------------------------


@kernel("BoolGather")
def bool_gather(xp: Namespace, input: Array, mask: Array) -> Array:  # noqa: A002  # the name that users type
    return input[mask != 0]


@kernel("BoolScatter")
def bool_scatter(
    xp: Namespace,
    input: Array,  # noqa: A002  # the name that users type
    mask: Array,
    output: Array | None,
) -> tuple[Array, Array | None]:
    chosen = mask != 0
    count = int(xp.sum(chosen))
    if count != input.shape[0]:
        raise ShapeError(f"bool_scatter: input must have an entry for each non-zero of mask, got {input.shape[0]} and {count}")
    y = xp.zeros((*mask.shape, *input.shape[1:]), dtype=input.dtype) if output is None else output.copy()
    y[chosen] = input
    return y, None if output is None else y


@kernel("BoolFill")
def bool_fill(xp: Namespace, data: Array, mask: Array, *, value: float) -> Array:
    return xp.where(mask != 0, xp.asarray(value, dtype=data.dtype), data)


@kernel("NonZero")
def nonzero(xp: Namespace, x: Array) -> Array:
    if x.ndim == 0:
        return xp.zeros((0, int(x != 0)), dtype=xp.int64)
    (places,) = xp.nonzero((x != 0).reshape(-1))  # truth values along one axis take a third of the time
    axes = []
    for length in x.shape[:0:-1]:
        axes.append(places % length)
        places = places // length
    return xp.stack([places, *axes[::-1]])


# Ordering -----------------------------------------------------------------------------------------------------------


def _order(xp: Namespace, x: Array, axis: int, descending: bool) -> Array:
    """Return the order of elements along `axis`; equal ones keep their places, NaN is the largest."""
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable")
    backwards = x.shape[axis] - 1 - xp.argsort(xp.flip(x, axis=axis), axis=axis, kind="stable")
    return xp.flip(backwards, axis=axis)


@kernel("Sort")
def sort(
    xp: Namespace, x: Array, *, axis: int, reverse: bool, with_index: bool, only_index: bool
) -> Array | tuple[Array, Array]:
    order = _order(xp, x, axis, reverse)
    if only_index:
        return order
    y = xp.take_along_axis(x, order, axis=axis)
    return (y, order) if with_index else y


@kernel("Unique")
def unique(
    xp: Namespace,
    x: Array,
    *,
    flatten: bool,
    axis: int | None,
    sorted: bool,  # noqa: A002  # the name that users type
    with_index: bool,
    with_inverse: bool,
    with_counts: bool,
) -> tuple[Array, ...]:
    along = 0 if flatten or axis is None else axis
    entries = x.reshape(-1) if flatten or axis is None else x
    y, first, inverse, counts = xp.unique(entries, return_index=True, return_inverse=True, return_counts=True, axis=along)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = xp.argsort(first)
        y, first, counts = xp.take(y, order, axis=along), first[order], counts[order]
        inverse = xp.argsort(order)[inverse]
    wanted = ((first, with_index), (inverse, with_inverse), (counts, with_counts))
    return (y, *[indices for indices, is_wanted in wanted if is_wanted])


@kernel("SearchSorted")
def searchsorted(xp: Namespace, sorted_sequence: Array, values: Array, *, right: bool) -> Array:
    n_rows = math.prod(values.shape[:-1])
    rows = zip(
        sorted_sequence.reshape(n_rows, sorted_sequence.shape[-1]),
        values.reshape(n_rows, values.shape[-1]),
        strict=True,
    )
    found = [xp.searchsorted(sequence, wanted, side="right" if right else "left") for sequence, wanted in rows]
    return xp.stack(found).reshape(values.shape) if found else xp.zeros(values.shape, dtype=xp.int64)


@kernel("TopKData")
def top_k_data(
    xp: Namespace,
    x: Array,
    *,
    k: int,
    abs: bool,  # noqa: A002  # the name that users type
    reduce: bool,
    base_axis: int,
    largest: bool,
    with_index: bool,
) -> Array | tuple[Array, Array]:
    samples = x.reshape(math.prod(x.shape[:base_axis]), math.prod(x.shape[base_axis:]))
    places = _order(xp, xp.abs(samples) if abs else samples, 1, largest)[:, :k]
    picked = xp.take_along_axis(samples, places, axis=1)
    shape = (*x.shape[:base_axis], k)
    if reduce:
        y = picked.reshape(shape)
        return (y, places.reshape(shape)) if with_index else y
    y = xp.zeros(samples.shape, dtype=x.dtype)
    y[xp.arange(samples.shape[0])[:, None], places] = picked
    return y.reshape(x.shape)


@kernel("TopKGrad")
def top_k_grad(xp: Namespace, x: Array, *, k: int, abs: bool, base_axis: int) -> Array:  # noqa: A002
    return x.copy()


# Boxes --------------------------------------------------------------------------------------------------------------


@kernel("NmsDetection2d")
def nms_detection2d(xp: Namespace, x: Array, *, thresh: float, nms: float, nms_per_class: bool) -> Array:
    y = widen(xp, x).copy()
    objectness = xp.where(y[..., 4] >= thresh, y[..., 4], 0)
    probabilities = y[..., 5:] * objectness[..., None]
    probabilities = xp.where(probabilities >= thresh, probabilities, 0)
    half = y[..., 2:4] / 2
    corners = xp.concat((y[..., :2] - half, y[..., :2] + half), axis=-1)
    for sample in range(y.shape[0]):
        overlap = _overlap(xp, corners[sample]) > nms
        if nms_per_class:
            for label in range(probabilities.shape[2]):
                probabilities[sample, :, label] = _kept_scores(xp, probabilities[sample, :, label], overlap)
        else:
            kept = _kept_scores(xp, objectness[sample], overlap)
            probabilities[sample] = xp.where(kept[:, None] > 0, probabilities[sample], 0)
            objectness[sample] = kept
    y[..., 4] = objectness
    y[..., 5:] = probabilities
    return y


@kernel("ONNXNonMaxSuppression")
def onnx_non_max_suppression(
    xp: Namespace,
    boxes: Array,
    scores: Array,
    *,
    center_point_box: int,
    max_output_boxes_per_class: int,
    iou_threshold: float,
    score_threshold: float,
) -> Array:
    boxes = widen(xp, boxes)
    first, second = boxes[..., :2], boxes[..., 2:]
    low, high = (first - second / 2, first + second / 2) if center_point_box else (first, second)
    corners = xp.concat((xp.minimum(low, high), xp.maximum(low, high)), axis=-1)
    picked = []
    for sample in range(boxes.shape[0]):
        overlap = _overlap(xp, corners[sample]) > iou_threshold
        for label in range(scores.shape[1]):
            column = scores[sample, label]
            kept = _greedy(xp, column, column >= score_threshold, overlap)[:max_output_boxes_per_class]
            picked += [(sample, label, box) for box in kept]
    return xp.asarray(picked, dtype=xp.int64).reshape(-1, 3)


def _overlap(xp: Namespace, corners: Array) -> Array:
    """Intersection over union of all pairs of boxes (B, 4), each (low, low, high, high). Shape (B, B)."""
    low = xp.maximum(corners[:, None, :2], corners[None, :, :2])
    high = xp.minimum(corners[:, None, 2:], corners[None, :, 2:])
    common = xp.prod(xp.maximum(high - low, 0), axis=-1)
    area = xp.prod(corners[:, 2:] - corners[:, :2], axis=-1)
    union = area[:, None] + area[None, :] - common
    return xp.where(union > 0, common / xp.where(union > 0, union, 1), 0)


def _greedy(xp: Namespace, scores: Array, candidates: Array, overlap: Array) -> list[int]:
    """Boxes that stay when each one, best score first, removes those that overlap with it; in this order."""
    left = candidates.copy()
    kept = []
    for box in _order(xp, scores, 0, True):
        if left[box]:
            kept.append(int(box))
            left = left & ~overlap[box]
    return kept


def _kept_scores(xp: Namespace, scores: Array, overlap: Array) -> Array:
    """`scores` with those of suppressed boxes set to zero."""
    kept = xp.asarray(_greedy(xp, scores, scores > 0, overlap), dtype=xp.int64)
    y = xp.zeros_like(scores)
    y[kept] = scores[kept]
    return y


# Several axes at once -----------------------------------------------------------------------------------------------


@kernel("GatherAxes")
def gather_axes(xp: Namespace, x: Array, source: Array, *, base_axis: int, shape: Shape) -> Array:
    samples = x.reshape(math.prod(x.shape[:base_axis]), *x.shape[base_axis:])
    y = axis_maps.take(xp, samples, _maps("gather_axes", source, base_axis, shape, x.shape[base_axis:]))
    return y.reshape(*x.shape[:base_axis], *shape)


@kernel("ScatterAxes")
def scatter_axes(xp: Namespace, dy: Array, source: Array, *, base_axis: int, shape: Shape) -> Array:
    samples = dy.reshape(math.prod(dy.shape[:base_axis]), *dy.shape[base_axis:])
    maps = _maps("scatter_axes", source, base_axis, dy.shape[base_axis:], shape)
    dx = axis_maps.give_back(xp, samples, maps, shape)
    return dx.reshape(*dy.shape[:base_axis], *shape)


def _maps(function: str, source: Array, base_axis: int, lengths: Shape, within: Shape) -> list[Array]:
    """Return the maps of `split_source`, whose positions must be below the lengths `within`."""
    maps = split_source(source, base_axis, lengths)
    for axis, (axis_map, length) in enumerate(zip(maps, within, strict=True)):
        if axis_map.size and int(axis_map.max()) >= length:
            text = f"source must be in [-1, {length}) along axis {axis} of a sample, got {int(axis_map.max())}"
            raise ArgumentError(f"{function}: {text}")
    return maps


def split_source(source: Array, base_axis: int, lengths: Shape) -> list[Array]:
    """Return the maps (S, L_i) of the axes from `source` (*samples, L_1 + ... + L_k)."""
    rows = source.reshape(math.prod(source.shape[:base_axis]), sum(lengths))
    ends = [sum(lengths[: axis + 1]) for axis in range(len(lengths))]
    return [rows[:, end - length : end] for end, length in zip(ends, lengths, strict=True)]
