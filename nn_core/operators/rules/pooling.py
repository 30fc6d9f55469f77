"""Shape and gradient rules of poolings.

Sums of windows are transposed by a deconvolution with a kernel of ones. Max pooling has two functions of its own for
that, one the transpose of the other: ``max_pooling_backward`` puts values to the places of the maxima,
``max_pooling_gather`` takes them from there. ``roi_align`` has its transpose in ``roi_align_backward``.
"""

from math import prod
from typing import Any

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape


def pooling_shape(
    x: Shape, *, kernel: Shape, stride: Shape, ignore_border: bool, pad: Shape, channel_last: bool, **_: Any
) -> tuple[Shape, ...]:
    """As many places on each spatial axis as there are windows: whole ones, or all that begin inside of x."""
    batch, lengths, channels = _split(x, kernel, channel_last)
    for name, value in (("stride", stride), ("pad", pad)):
        if len(value) != len(kernel):
            raise ArgumentError(f"{name} must have one value for each of the {len(kernel)} axes of kernel, got {value}")
    if any(edge >= size for edge, size in zip(pad, kernel, strict=True)):
        raise ArgumentError(f"pad must be less than kernel on each axis, got {pad} and {kernel}")
    full = tuple(n + 2 * edge for n, edge in zip(lengths, pad, strict=True))
    if not ignore_border:
        counts = tuple(-(-(n + edge) // step) for n, edge, step in zip(lengths, pad, stride, strict=True))
        return ((*batch, *counts, *channels),)
    if any(size > n for size, n in zip(kernel, full, strict=True)):
        raise ShapeError(f"x with its padding must be as long as kernel, got {full} and {kernel}")
    counts = tuple((n - size) // step + 1 for n, size, step in zip(full, kernel, stride, strict=True))
    return ((*batch, *counts, *channels),)


shape_rule("MaxPooling", "SumPooling", "AveragePooling")(
    pooling_shape
)  # not as a decorator: other rules use it under its own type


def _split(x: Shape, kernel: Shape, channel_last: bool) -> tuple[Shape, Shape, Shape]:
    """Axes before the spatial ones, the spatial ones, and those after."""
    if not kernel:
        raise ArgumentError("kernel must have at least one length, got ()")
    end = len(x) - 1 if channel_last else len(x)
    if end < len(kernel):
        raise ShapeError(f"x must have an axis for each axis of kernel, got {end} and {len(kernel)}")
    return x[: end - len(kernel)], x[end - len(kernel) : end], x[end:]


@shape_rule("MaxPoolingBackward")
def max_pooling_backward_shape(dy: Shape, x: Shape, **args: Any) -> tuple[Shape, ...]:
    """Return the shape of x; dy has that of its max pooling."""
    (y,) = pooling_shape(x, **args)
    if dy != y:
        raise ShapeError(f"dy must have the shape of the max pooling of x, got {dy} and {y}")
    return (x,)


@shape_rule("MaxPoolingGather")
def max_pooling_gather_shape(values: Shape, x: Shape, **args: Any) -> tuple[Shape, ...]:
    """Return the shape of the max pooling of x."""
    if values != x:
        raise ShapeError(f"values must have the shape of x, got {values} and {x}")
    return pooling_shape(x, **args)


def _settings(g: GradientCall) -> dict[str, Any]:
    return {name: getattr(g, name) for name in ("kernel", "stride", "ignore_border", "pad", "channel_last")}


@gradient("MaxPooling")
def max_pooling(F: Any, g: GradientCall) -> Any:
    """Each dy goes to the first maximum of its window."""
    return F.max_pooling_backward(g.grad, g.x, **_settings(g))


@gradient("MaxPoolingBackward", rounds_once=True)
def max_pooling_backward(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """Linear in dy; moving x a little moves no maximum."""
    return F.max_pooling_gather(g.grad, g.x, **_settings(g)) if g.wants("dy") else None, None


@gradient("MaxPoolingGather", rounds_once=True)
def max_pooling_gather(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """Linear in values; moving x a little moves no maximum."""
    return F.max_pooling_backward(g.grad, g.x, **_settings(g)) if g.wants("values") else None, None


@gradient("SumPooling")
def sum_pooling(F: Any, g: GradientCall) -> Any:
    """Each dy goes to every element of its window."""
    return _spread(F, g, g.grad)


@gradient("AveragePooling")
def average_pooling(F: Any, g: GradientCall) -> Any:
    """Each dy goes in equal shares to every element of its window."""
    _, lengths, _ = _split(tuple(g.x.shape), g.kernel, g.channel_last)
    _, counts, channels = _split(tuple(g.grad.shape), g.kernel, g.channel_last)
    dy = g.grad
    for axis, (n, count) in enumerate(zip(lengths, counts, strict=True)):
        edge, size = float(g.pad[axis]), float(g.kernel[axis])
        start = F.arange(start=0.0, stop=float(count)) * float(g.stride[axis]) - edge
        stop = F.minimum_scalar(start + size, val=n + edge)
        if not g.including_pad:
            start, stop = F.maximum_scalar(start, val=0.0), F.minimum_scalar(stop, val=float(n))
        after = len(counts) - 1 - axis + len(channels)
        dy = dy / F.reshape(stop - start, shape=(count, *[1] * after))
    return _spread(F, g, dy)


def _spread(F: Any, g: GradientCall, dy: Any) -> Any:
    """Add each element of dy to all of its window: a deconvolution with ones, its border cut off."""
    shape, n_spatial = tuple(g.x.shape), len(g.kernel)
    batch, lengths, channels = _split(shape, g.kernel, g.channel_last)
    _, counts, _ = _split(tuple(dy.shape), g.kernel, g.channel_last)
    n_channels = prod(channels)
    dy = F.reshape(dy, shape=(prod(batch), *counts, n_channels))
    dy = F.transpose(dy, axes=(0, n_spatial + 1, *range(1, n_spatial + 1)))
    dy = F.reshape(dy, shape=(prod(batch) * n_channels, 1, *counts))
    ones = F.constant(val=1.0, shape=(1, 1, *g.kernel))
    whole = F.deconvolution(dy, ones, None, stride=g.stride)
    missing = (max(edge + n - m, 0) for edge, n, m in zip(g.pad, lengths, whole.shape[2:], strict=True))
    whole = F.pad(whole, pad_width=tuple(width for n in missing for width in (0, n)))
    stop = tuple(edge + n for edge, n in zip(g.pad, lengths, strict=True))
    inner = F.slice(whole, start=(0, 0, *g.pad), stop=(*whole.shape[:2], *stop), step=(1,) * whole.ndim)
    inner = F.reshape(inner, shape=(prod(batch), n_channels, *lengths))
    return F.reshape(F.transpose(inner, axes=(0, *range(2, n_spatial + 2), 1)), shape=shape)


@shape_rule("GlobalAveragePooling")
def global_average_pooling_shape(x: Shape) -> tuple[Shape, ...]:
    """Length 1 on all axes but the first two."""
    if len(x) < 3:
        raise ShapeError(f"x must have a spatial axis after samples and channels, got {len(x)} axes")
    return ((*x[:2], *[1] * (len(x) - 2)),)


@gradient("GlobalAveragePooling")
def global_average_pooling(F: Any, g: GradientCall) -> Any:
    """Equal shares for all elements of a channel."""
    shape = tuple(g.x.shape)
    return F.broadcast(g.grad * (1 / max(prod(shape[2:]), 1)), shape=shape)


@shape_rule("Unpooling")
def unpooling_shape(x: Shape, *, kernel: Shape, channel_last: bool) -> tuple[Shape, ...]:
    """Return the spatial axes times the kernel."""
    batch, lengths, channels = _split(x, kernel, channel_last)
    return ((*batch, *(n * size for n, size in zip(lengths, kernel, strict=True)), *channels),)


@gradient("Unpooling")
def unpooling(F: Any, g: GradientCall) -> Any:
    """Return the sum of the copies."""
    if 0 in g.grad.shape:  # poolings need a window
        return F.constant(val=0, shape=tuple(g.x.shape))
    return F.sum_pooling(g.grad, kernel=g.kernel, channel_last=g.channel_last)


def roi_align_shape(
    input: Shape,  # noqa: A002  # the public name
    boxes: Shape,
    *,
    output_size: Shape,
    spatial_scale: tuple[float, ...],
    channel_last: bool,
    **_: Any,
) -> tuple[Shape, ...]:
    """Return an image of `output_size` for each box."""
    if len(input) != 4:
        raise ShapeError(f"input must have 4 axes, got {len(input)}")
    _check_boxes(boxes, output_size, spatial_scale)
    n_channels = input[3] if channel_last else input[1]
    return ((boxes[0], *output_size, n_channels) if channel_last else (boxes[0], n_channels, *output_size),)


shape_rule("RoiAlign")(roi_align_shape)  # not as a decorator: other rules use it under its own type


def _check_boxes(boxes: Shape, output_size: Shape, spatial_scale: tuple[float, ...]) -> None:
    if len(boxes) != 2 or boxes[1] != 5:
        raise ShapeError(f"boxes must have shape (K, 5), got {boxes}")
    for name, value in (("output_size", output_size), ("spatial_scale", spatial_scale)):
        if len(value) != 2:
            raise ArgumentError(f"{name} must have two values, vertical and horizontal, got {value}")


@shape_rule("RoiAlignBackward")
def roi_align_backward_shape(dy: Shape, boxes: Shape, *, input_shape: Shape, **args: Any) -> tuple[Shape, ...]:
    """Return the shape of what was aligned."""
    (y,) = roi_align_shape(input_shape, boxes, **args)
    if dy != y:
        raise ShapeError(f"dy must have the shape that roi_align gives, got {dy} and {y}")
    return (input_shape,)


@gradient("RoiAlign")
def roi_align(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """Linear in the images; the boxes get no gradient."""
    if not g.wants("input"):
        return None, None
    return F.roi_align_backward(g.grad, g.boxes, input_shape=tuple(g.input.shape), **_roi_settings(g)), None


@gradient("RoiAlignBackward")
def roi_align_backward(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """Return the transpose of the transpose."""
    return F.roi_align(g.grad, g.boxes, **_roi_settings(g)) if g.wants("dy") else None, None


def _roi_settings(g: GradientCall) -> dict[str, Any]:
    return {name: getattr(g, name) for name in ("output_size", "spatial_scale", "sampling_ratio", "channel_last")}
