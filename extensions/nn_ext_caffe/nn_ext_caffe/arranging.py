"""Layers of Caffe that arrange elements, reduce axes or compare results with data."""

from math import prod

import nn_core as nn
import nn_core.functions as F
from nn_ext_caffe.layers import Call, Made, UnsupportedError, given, layer


@layer("Concat")
def _concat(call: Call) -> Made:
    settings = call.settings("ConcatParameter")
    axis = settings.concat_dim if settings.HasField("concat_dim") else given(settings, "axis", 1)
    return F.concatenate(*call.inputs, axis=call.axis(axis))


@layer("Slice")
def _slice(call: Call) -> Made:
    settings, x, n_parts = call.settings("SliceParameter"), call.x, len(call.layer.tops)
    axis = call.axis(settings.slice_dim if settings.HasField("slice_dim") else given(settings, "axis", 1))
    length, points = x.shape[axis], list(settings.slice_point)
    if not points and n_parts and not length % n_parts:
        points = [length // n_parts * k for k in range(1, n_parts)]
    ends = [*points, length]
    if len(ends) != n_parts or any(a >= b for a, b in zip([0, *points], ends, strict=True)):
        raise UnsupportedError(f"{n_parts} parts of {length} elements at {points}")
    return [_part(x, axis, start, end) for start, end in zip([0, *points], ends, strict=True)]


def _part(x: nn.Variable, axis: int, start: int, stop: int) -> nn.Variable:
    n = x.ndim - axis
    return F.slice(x, start=[start, *[0] * (n - 1)], stop=[stop, *x.shape[axis + 1 :]], step=[1] * n)


@layer("Reshape")
def _reshape(call: Call) -> Made:
    """Replace some axes: 0 keeps a length, -1 is what remains."""
    settings, x = call.settings("ReshapeParameter"), call.x
    start, count = given(settings, "axis", 0), given(settings, "num_axes", -1)
    start = call.axis(start, x.ndim + 1)
    stop = x.ndim if count == -1 else start + count
    lengths = [_kept(x, start + k) if n == 0 else n for k, n in enumerate(settings.shape.dim)]
    if not 0 <= count + 1 <= x.ndim + 1 or stop > x.ndim or lengths.count(-1) > 1 or min(lengths, default=1) < -1:
        raise UnsupportedError(f"lengths {list(settings.shape.dim)} for the axes {start} to {stop} of {x.shape}")
    return F.reshape(x, (*x.shape[:start], *lengths, *x.shape[stop:]))


def _kept(x: nn.Variable, axis: int) -> int:
    if axis >= x.ndim:
        raise UnsupportedError(f"the length of axis {axis} of {x.shape}")
    return int(x.shape[axis])


@layer("Flatten")
def _flatten(call: Call) -> Made:
    settings, x = call.settings("FlattenParameter"), call.x
    start, end = (call.axis(given(settings, name, axis)) for name, axis in (("axis", 1), ("end_axis", -1)))
    if end < start:
        raise UnsupportedError(f"axes {start} to {end}")
    return F.reshape(x, (*x.shape[:start], prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


@layer("Tile")
def _tile(call: Call) -> Made:
    settings = call.settings("TileParameter")
    axis = call.axis(given(settings, "axis", 1))
    if settings.tiles < 1:
        raise UnsupportedError(f"{settings.tiles} tiles")
    return F.tile(call.x, [settings.tiles if k == axis else 1 for k in range(call.x.ndim)])


@layer("Crop")
def _crop(call: Call) -> Made:
    """Cut axes of the first input to the lengths of the second."""
    settings = call.settings("CropParameter")
    x, like = call.inputs
    axis, offsets = call.axis(given(settings, "axis", 2)), list(settings.offset)
    if x.ndim != like.ndim or len(offsets) not in (0, 1, x.ndim - axis):
        raise UnsupportedError(f"offsets {offsets} for {x.shape} as {like.shape}")
    starts = (offsets or [0]) * (x.ndim - axis) if len(offsets) < 2 else offsets
    stops = [start + n for start, n in zip(starts, like.shape[axis:], strict=True)]
    if any(stop > n for stop, n in zip(stops, x.shape[axis:], strict=True)):
        raise UnsupportedError(f"offsets {offsets} for {x.shape} as {like.shape}")
    return F.slice(x, start=starts, stop=stops, step=[1] * len(starts))


@layer("Reduction")
def _reduction(call: Call) -> Made:
    """Reduce the last axes, times a coefficient."""
    settings, x = call.settings("ReductionParameter"), call.x
    axes = tuple(range(call.axis(settings.axis), x.ndim))
    kind = given(settings, "operation", 1)
    values = {1: x, 2: F.abs(x), 3: x * x, 4: x}[kind]
    return (F.mean if kind == 4 else F.sum)(values, axis=axes) * given(settings, "coeff", 1.0)


@layer("ArgMax")
def _arg_max(call: Call) -> Made:
    """Return the index of the largest element of each sample, or along an axis."""
    settings, x = call.settings("ArgMaxParameter"), call.x
    if given(settings, "top_k", 1) != 1 or settings.out_max_val:
        raise UnsupportedError("several largest elements, or their values")
    if settings.HasField("axis"):
        return F.max(x, axis=call.axis(settings.axis), keepdims=True, only_index=True)
    flat = F.reshape(x, (x.shape[0], -1))
    return F.reshape(F.max(flat, axis=1, only_index=True), (x.shape[0], 1, 1))


# Comparisons with data ----------------------------------------------------------------------------------------------


def _labels(call: Call, axis: int) -> nn.Variable:
    """Return the labels of the places of all samples, with an axis of length 1 in the place of classes."""
    x, labels = call.inputs
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    if labels.size != prod(shape):
        raise UnsupportedError(f"labels of shape {labels.shape} for {x.shape}")
    return F.reshape(labels, shape)


@layer("SoftmaxWithLoss")
def _softmax_with_loss(call: Call) -> Made:
    settings = call.settings("LossParameter")
    if settings.HasField("ignore_label") or settings.HasField("normalize") or given(settings, "normalization", 1) not in (1,):
        raise UnsupportedError("ignored labels and other normalizations")
    axis = call.axis(given(call.settings("SoftmaxParameter"), "axis", 1))
    return F.mean(F.softmax_cross_entropy(call.inputs[0], _labels(call, axis), axis=axis))


@layer("SigmoidCrossEntropyLoss")
def _sigmoid_cross_entropy(call: Call) -> Made:
    x, target = call.inputs
    settings = call.settings("LossParameter")
    if settings.HasField("ignore_label") or settings.HasField("normalize") or settings.HasField("normalization"):
        raise UnsupportedError("ignored labels and other normalizations")
    return F.sum(F.sigmoid_cross_entropy(x, target)) * (1 / x.shape[0])


@layer("EuclideanLoss")
def _euclidean_loss(call: Call) -> Made:
    x, target = call.inputs
    if x.shape != target.shape:
        raise UnsupportedError(f"a target of shape {target.shape} for {x.shape}")
    return F.sum(F.squared_error(x, target)) * (0.5 / x.shape[0])


@layer("Accuracy")
def _accuracy(call: Call) -> Made:
    settings = call.settings("AccuracyParameter")
    if len(call.layer.tops) != 1 or settings.HasField("ignore_label"):
        raise UnsupportedError("ignored labels, or results of each class")
    axis = call.axis(given(settings, "axis", 1))
    errors = F.top_n_error(call.inputs[0], _labels(call, axis), axis=axis, n=given(settings, "top_k", 1))
    return 1.0 - F.mean(errors)
