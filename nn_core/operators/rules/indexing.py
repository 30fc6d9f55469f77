"""Shape and gradient rules of functions that pick, place and order elements."""

import math
from typing import Any

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.operators.rules.shape import require_shape
from nn_core.typing import Shape

# Picking by number --------------------------------------------------------------------------------------------------


@shape_rule("OneHot")
def one_hot_shape(x: Shape, *, shape: Shape) -> tuple[Shape]:
    require_shape(shape)
    if not x or x[-1] != len(shape):
        raise ShapeError(f"the last axis of x must have an entry for each axis of shape, got {x} and {shape}")
    return ((*x[:-1], *shape),)


@shape_rule("Embed")
def embed_shape(x0: Shape, w: Shape) -> tuple[Shape]:
    if not w:
        raise ShapeError("w must have at least one axis, got 0-d")
    return ((*x0, *w[1:]),)


@gradient("Embed")
def embed_gradient(F: Any, g: GradientCall) -> tuple[None, Any]:
    return None, _add_to_rows(F, g.grad, g.x0, g.w.shape)


def _add_to_rows(F: Any, dy: Any, rows: Any, shape: Shape) -> Any:
    """Zeros of `shape` with each entry of `dy` (rows.shape + shape[1:]) added to the row that it was read from."""
    return F.scatter_nd(dy, F.reshape(rows, shape=(1, *rows.shape)), shape=tuple(shape), add=True)


@shape_rule("Gather")
def gather_shape(x: Shape, indices: Shape, *, axis: int, batch_dims: int) -> tuple[Shape]:
    if batch_dims > min(axis, len(indices)):
        raise ArgumentError(
            f"batch_dims must be at most axis and the rank of Indices, got {batch_dims}, {axis} and {len(indices)}"
        )
    if x[:batch_dims] != indices[:batch_dims]:
        raise ShapeError(f"x and Indices must agree on the first {batch_dims} axes, got {x} and {indices}")
    return ((*x[:axis], *indices[batch_dims:], *x[axis + 1 :]),)


@gradient("Gather")
def gather_gradient(F: Any, g: GradientCall) -> tuple[Any, None]:
    x_shape, n_batch = tuple(g.x.shape), g.batch_dims
    if g.axis == 0:
        return _add_to_rows(F, g.grad, g.Indices, x_shape), None
    # Axes: batch, x before `axis`, picked, x after `axis`.
    batch, before, after = x_shape[:n_batch], x_shape[n_batch : g.axis], x_shape[g.axis + 1 :]
    n_picked = math.prod(g.Indices.shape[n_batch:])
    grouped = (math.prod(batch), math.prod(before), n_picked, math.prod(after))
    places = F.broadcast(F.reshape(g.Indices, shape=(grouped[0], 1, n_picked, 1)), shape=grouped)
    zeros = F.constant(val=0, shape=(*grouped[:2], x_shape[g.axis], grouped[3]))
    dx = F.scatter_add(zeros, places, F.reshape(g.grad, shape=grouped), axis=2)
    return F.reshape(dx, shape=x_shape), None


@shape_rule("GatherNd")
def gather_nd_shape(x: Shape, indices: Shape) -> tuple[Shape]:
    return ((*indices[1:], *_element_shape("x", x, indices)),)


@gradient("GatherNd", rounds_once=True)
def gather_nd_gradient(F: Any, g: GradientCall) -> tuple[Any, None]:
    return F.scatter_nd(g.grad, g.indices, shape=tuple(g.x.shape), add=True), None


def _element_shape(name: str, shape: Shape, indices: Shape) -> Shape:
    """Return the axes of `shape` that one column of `indices` (M, ...) does not name."""
    if not indices:
        raise ShapeError("indices must have at least one axis, got 0-d")
    if indices[0] == 0:
        raise ShapeError(f"indices must have at least one row, which names an axis of {name}, got shape {indices}")
    if indices[0] > len(shape):
        raise ShapeError(f"indices must have at most one row for each axis of {name}, got {indices} and {shape}")
    return shape[indices[0] :]


@shape_rule("ScatterNd")
def scatter_nd_shape(data: Shape, indices: Shape, out: Shape | None, *, shape: Shape | None, add: bool) -> tuple[Shape]:
    if (shape is None) == (out is None):
        raise ArgumentError(f"exactly one of shape and out must be given, got {'none' if shape is None else 'both'}")
    target = shape if out is None else out
    assert target is not None
    require_shape(target)
    expected = (*indices[1:], *_element_shape("the result", target, indices))
    if data != expected:
        raise ShapeError(f"data must have the shape {expected} that indices {indices} select from {target}, got {data}")
    return (target,)


@gradient("ScatterNd")
def scatter_nd_gradient(F: Any, g: GradientCall) -> tuple[Any, None, Any]:
    d_data = F.gather_nd(g.grad, g.indices) if g.wants("data") else None
    if g.out is None or not g.wants("out"):
        return d_data, None, None
    if g.add:
        return d_data, None, g.grad
    written = F.scatter_nd(F.constant(val=1, shape=g.data.shape), g.indices, shape=tuple(g.out.shape))
    return d_data, None, F.bool_fill(g.grad, written, value=0)


@shape_rule("ScatterAdd")
def scatter_add_shape(x0: Shape, indices: Shape, x1: Shape, *, axis: int) -> tuple[Shape]:
    if not len(x0) == len(indices) == len(x1):
        raise ShapeError(f"x0, indices and x1 must have equally many axes, got {x0}, {indices} and {x1}")
    for place, (n0, n, n1) in enumerate(zip(x0, indices, x1, strict=True)):
        if n > n1 or (place != axis and n > n0):
            raise ShapeError(
                f"indices must not be longer than x1, nor x0 except along axis {axis}, got {indices}, {x1} and {x0}"
            )
    return (x0,)


@gradient("ScatterAdd")
def scatter_add_gradient(F: Any, g: GradientCall) -> tuple[Any, None, Any]:
    dx0 = g.grad if g.wants("x0") else None
    if not g.wants("x1"):
        return dx0, None, None
    used = list(g.indices.shape)
    used[g.axis] = g.grad.shape[g.axis]
    dy = g.grad if tuple(used) == tuple(g.grad.shape) else F.slice(g.grad, stop=tuple(used))
    dx1 = _take_along(F, dy, g.indices, g.axis)
    lacking = [n1 - n for n1, n in zip(g.x1.shape, g.indices.shape, strict=True)]
    if any(lacking):
        dx1 = F.pad(dx1, pad_width=tuple(width for n in lacking for width in (0, n)))
    return dx0, None, dx1


def _take_along(F: Any, x: Any, indices: Any, axis: int) -> Any:
    """y[..., i, ...] = x[..., indices[..., i, ...], ...] along `axis`; the other axes of x and indices agree."""
    last = x.ndim - 1
    swap = list(range(x.ndim))
    swap[axis], swap[last] = last, axis
    swapped = tuple(swap)
    y = F.gather(F.transpose(x, axes=swapped), F.transpose(indices, axes=swapped), axis=last, batch_dims=last)
    return F.transpose(y, axes=swapped)


# Picking by mask ----------------------------------------------------------------------------------------------------


@shape_rule("BoolGather")
def bool_gather_shape(input: Shape, mask: Shape) -> tuple[Shape]:  # noqa: A002  # the name that users type
    if input[: len(mask)] != mask:
        raise ShapeError(f"mask must have the shape of the first axes of input, got {mask} and {input}")
    return ((0, *input[len(mask) :]),)


@gradient("BoolGather", rounds_once=True)
def bool_gather_gradient(F: Any, g: GradientCall) -> tuple[Any, None]:
    return F.bool_scatter(g.grad, g.mask), None


@shape_rule("BoolScatter")
def bool_scatter_shape(input: Shape, mask: Shape, output: Shape | None) -> tuple[Shape]:  # noqa: A002
    if not input:
        raise ShapeError("input must have at least one axis, got 0-d")
    y = (*mask, *input[1:])
    if output is not None and output != y:
        raise ShapeError(f"output must have the shape {y} of mask and the elements of input, got {output}")
    return (y,)


@gradient("BoolScatter", rounds_once=True)
def bool_scatter_gradient(F: Any, g: GradientCall) -> tuple[Any, None, Any]:
    d_input = F.bool_gather(g.grad, g.mask) if g.wants("input") else None
    if g.output is None or not g.wants("output"):
        return d_input, None, None
    mask = F.reshape(g.mask, shape=(*g.mask.shape, *[1] * (g.grad.ndim - g.mask.ndim)))
    return d_input, None, F.bool_fill(g.grad, mask, value=0)


@shape_rule("BoolFill")
def bool_fill_shape(data: Shape, mask: Shape, *, value: float) -> tuple[Shape]:
    last = data[len(data) - len(mask) :] if len(mask) <= len(data) else None
    if last is None or any(n not in (1, wanted) for n, wanted in zip(mask, last, strict=True)):
        raise ShapeError(f"mask must have lengths of 1 or those of data, counted from the last, got {mask} and {data}")
    return (data,)


@gradient("BoolFill")
def bool_fill_gradient(F: Any, g: GradientCall) -> tuple[Any, None]:
    return F.bool_fill(g.grad, g.mask, value=0), None


@shape_rule("NonZero")
def nonzero_shape(x: Shape) -> tuple[Shape]:
    return ((len(x), 0),)


# Ordering -----------------------------------------------------------------------------------------------------------


@shape_rule("Sort")
def sort_shape(x: Shape, *, axis: int, reverse: bool, with_index: bool, only_index: bool) -> tuple[Shape | None, ...]:
    return (None if only_index else x, x if with_index or only_index else None)


@gradient("Sort")
def sort_gradient(F: Any, g: GradientCall) -> Any:
    if g.only_index:
        return None
    order = F.sort(g.x, axis=g.axis, reverse=g.reverse, only_index=True)
    return F.scatter_add(F.constant(val=0, shape=g.x.shape), order, g.grad, axis=g.axis)


@shape_rule("Unique")
def unique_shape(
    x: Shape,
    *,
    flatten: bool,
    axis: int | None,
    sorted: bool,  # noqa: A002  # the name that users type
    with_index: bool,
    with_inverse: bool,
    with_counts: bool,
) -> tuple[Shape | None, ...]:
    if not flatten and axis is None:
        raise ArgumentError("axis must be given if flatten is False, got None")
    n = math.prod(x) if flatten or axis is None else x[axis]
    y = (0,) if flatten or axis is None else (*x[:axis], 0, *x[axis + 1 :])
    return (y, (0,) if with_index else None, (n,) if with_inverse else None, (0,) if with_counts else None)


@shape_rule("SearchSorted")
def searchsorted_shape(sorted_sequence: Shape, values: Shape, *, right: bool) -> tuple[Shape]:
    if not sorted_sequence or len(sorted_sequence) != len(values) or sorted_sequence[:-1] != values[:-1]:
        raise ShapeError(
            f"sorted_sequence and values must agree except along the last axis, got {sorted_sequence} and {values}"
        )
    return (values,)


@shape_rule("TopKData")
def top_k_data_shape(
    x: Shape,
    *,
    k: int,
    abs: bool,  # noqa: A002  # the name that users type
    reduce: bool,
    base_axis: int,
    largest: bool,
    with_index: bool,
) -> tuple[Shape, Shape | None]:
    _require_k(x, k, base_axis)
    if with_index and not reduce:
        raise ArgumentError("reduce must be True if with_index is True, got False")
    picked = (*x[:base_axis], k)
    return (picked if reduce else x, picked if with_index else None)


@gradient("TopKData")
def top_k_data_gradient(F: Any, g: GradientCall) -> Any:
    x_shape = tuple(g.x.shape)
    n_samples, size = math.prod(x_shape[: g.base_axis]), math.prod(x_shape[g.base_axis :])
    x = F.reshape(g.x, shape=(n_samples, size))
    _, places = F.top_k_data(x, k=g.k, abs=g.abs, base_axis=1, largest=g.largest, with_index=True)
    dy = F.reshape(g.grad, shape=(n_samples, g.k if g.reduce else size))
    if not g.reduce:
        dy = F.gather(dy, places, axis=1, batch_dims=1)
    return F.reshape(F.scatter_add(F.constant(val=0, shape=x.shape), places, dy, axis=1), shape=x_shape)


@shape_rule("TopKGrad")
def top_k_grad_shape(x: Shape, *, k: int, abs: bool, base_axis: int) -> tuple[Shape]:  # noqa: A002
    _require_k(x, k, base_axis)
    return (x,)


@gradient("TopKGrad")
def top_k_grad_gradient(F: Any, g: GradientCall) -> Any:
    return F.top_k_data(g.grad, k=g.k, abs=g.abs, reduce=False, base_axis=g.base_axis)


def _require_k(x: Shape, k: int, base_axis: int) -> None:
    size = math.prod(x[base_axis:])
    if not 1 <= k <= size:
        raise ArgumentError(f"k must be in [1, {size}], the size of a sample, got {k}")


# Boxes --------------------------------------------------------------------------------------------------------------


@shape_rule("NmsDetection2d")
def nms_detection2d_shape(x: Shape, *, thresh: float, nms: float, nms_per_class: bool) -> tuple[Shape]:
    if len(x) != 3 or x[2] < 5:
        raise ShapeError(f"x must have the shape (samples, boxes, 5 + classes), got {x}")
    return (x,)


@shape_rule("ONNXNonMaxSuppression")
def onnx_non_max_suppression_shape(
    boxes: Shape,
    scores: Shape,
    *,
    center_point_box: int,
    max_output_boxes_per_class: int,
    iou_threshold: float,
    score_threshold: float,
) -> tuple[Shape]:
    if len(boxes) != 3 or boxes[2] != 4:
        raise ShapeError(f"boxes must have the shape (samples, boxes, 4), got {boxes}")
    if len(scores) != 3 or (scores[0], scores[2]) != boxes[:2]:
        raise ShapeError(f"scores must have the shape ({boxes[0]}, classes, {boxes[1]}), got {scores}")
    return ((0, 3),)


# Several axes at once -----------------------------------------------------------------------------------------------


@shape_rule("GatherAxes")
def gather_axes_shape(x: Shape, source: Shape, *, base_axis: int, shape: Shape) -> tuple[Shape]:
    require_shape(shape)
    if len(shape) != len(x) - base_axis:
        raise ArgumentError(f"shape must have a length for each axis from base_axis {base_axis} on, got {shape} and {x}")
    _require_source(source, (*x[:base_axis], sum(shape)))
    return ((*x[:base_axis], *shape),)


@gradient("GatherAxes", rounds_once=True)
def gather_axes_gradient(F: Any, g: GradientCall) -> tuple[Any, None]:
    return F.scatter_axes(g.grad, g.source, base_axis=g.base_axis, shape=tuple(g.x.shape[g.base_axis :])), None


@shape_rule("ScatterAxes")
def scatter_axes_shape(dy: Shape, source: Shape, *, base_axis: int, shape: Shape) -> tuple[Shape]:
    require_shape(shape)
    if len(shape) != len(dy) - base_axis:
        raise ArgumentError(f"shape must have a length for each axis from base_axis {base_axis} on, got {shape} and {dy}")
    _require_source(source, (*dy[:base_axis], sum(dy[base_axis:])))
    return ((*dy[:base_axis], *shape),)


@gradient("ScatterAxes", rounds_once=True)
def scatter_axes_gradient(F: Any, g: GradientCall) -> tuple[Any, None]:
    return F.gather_axes(g.grad, g.source, base_axis=g.base_axis, shape=tuple(g.dy.shape[g.base_axis :])), None


def _require_source(source: Shape, expected: Shape) -> None:
    if source != expected:
        raise ShapeError(f"source must have the shape {expected} of the samples and all places, got {source}")
