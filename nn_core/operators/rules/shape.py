"""Shape and gradient rules of functions that arrange elements: join, cut, turn, pad, repeat, and make simple arrays."""

import math
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.broadcasting import unbroadcast
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape

T = TypeVar("T")


def on_last_axes(values: Sequence[T], ndim: int, default: T) -> tuple[T, ...]:
    """`values` belong to the last axes; the axes before them get `default`."""
    return (*[default] * (ndim - len(values)), *values)


#: A bound beyond every edge, to which it is moved: an open end that follows the shape; of 32 bits for files.
OPEN_END: Final = 2**31 - 1


def bounds_of(cut: slice) -> tuple[int, int, int]:
    """Start, stop and step of a Python slice for any length, open ends beyond the edges."""
    step = 1 if cut.step is None else cut.step
    start, stop = (OPEN_END, -OPEN_END) if step < 0 else (0, OPEN_END)
    return start if cut.start is None else cut.start, stop if cut.stop is None else cut.stop, step


def as_slices(
    shape: Shape,
    start: Sequence[int | None] | None,
    stop: Sequence[int | None] | None,
    step: Sequence[int | None] | None,
) -> tuple[slice, ...]:
    """One Python slice for each axis of `shape`; short settings belong to the last axes, None is an open end."""
    ndim = len(shape)
    return tuple(map(slice, *[on_last_axes(values or (), ndim, None) for values in (start, stop, step)]))


def require_shape(shape: Shape, name: str = "shape") -> None:
    """Refuse a shape with a negative length."""
    if any(length < 0 for length in shape):
        raise ArgumentError(f"{name} must have no negative length, got {shape}")


def _require_ndim(shape: Shape, least: int) -> None:
    if len(shape) < least:
        raise ShapeError(f"x must have at least {least} axes, got shape {shape}")


# Joining and cutting ------------------------------------------------------------------------------------------------


@shape_rule("Concatenate")
def concatenate_shape(*x: Shape, axis: int) -> tuple[Shape]:
    first = x[0]
    if not first:
        raise ShapeError("inputs must have at least one axis, got 0-d")
    for shape in x[1:]:
        if len(shape) != len(first) or shape[:axis] != first[:axis] or shape[axis + 1 :] != first[axis + 1 :]:
            raise ShapeError(f"inputs must have equal shapes except along axis {axis}, got {first} and {shape}")
    return ((*first[:axis], sum(shape[axis] for shape in x), *first[axis + 1 :]),)


@gradient("Concatenate")
def concatenate_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    gradients, first = [], 0
    for x in g.x:
        start, stop = [0] * x.ndim, list(g.grad.shape)
        start[g.axis], stop[g.axis] = first, first + x.shape[g.axis]
        first = stop[g.axis]
        gradients.append(F.slice(g.grad, start=tuple(start), stop=tuple(stop)))
    return tuple(gradients)


@shape_rule("Split")
def split_shape(x: Shape, *, axis: int) -> tuple[Shape, ...]:
    if x[axis] == 0:
        raise ShapeError(f"x must have a length of at least 1 along axis {axis}, got shape {x}")
    return (x[:axis] + x[axis + 1 :],) * x[axis]


@gradient("Split")
def split_gradient(F: Any, g: GradientCall) -> Any:
    return F.stack(*g.grads, axis=g.axis)


@shape_rule("Stack")
def stack_shape(*x: Shape, axis: int) -> tuple[Shape]:
    first = x[0]
    for shape in x[1:]:
        if shape != first:
            raise ShapeError(f"inputs must have equal shapes, got {first} and {shape}")
    if not -len(first) - 1 <= axis <= len(first):
        raise ArgumentError(f"axis must be in [{-len(first) - 1}, {len(first)}], got {axis}")
    place = axis % (len(first) + 1)
    return ((*first[:place], len(x), *first[place:]),)


@gradient("Stack")
def stack_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    parts = F.split(g.grad, axis=g.axis)
    return tuple(parts) if isinstance(parts, (tuple, list)) else (parts,)


@shape_rule("Slice")
def slice_shape(
    x: Shape,
    *,
    start: Sequence[int | None] | None,
    stop: Sequence[int | None] | None,
    step: Sequence[int | None] | None,
) -> tuple[Shape]:
    for name, values in (("start", start), ("stop", stop), ("step", step)):
        if values is not None and len(values) > len(x):
            raise ArgumentError(f"{name} must have at most one entry for each of the {len(x)} axes of x, got {values}")
    if step is not None and 0 in step:
        raise ArgumentError(f"step must not be zero, got {step}")
    return (tuple(len(range(*part.indices(n))) for n, part in zip(x, as_slices(x, start, stop, step), strict=True)),)


@gradient("Slice")
def slice_gradient(F: Any, g: GradientCall) -> Any:
    dy, x_shape = g.grad, g.x.shape
    if 0 in dy.shape:
        return F.constant(val=0, shape=x_shape)
    pad_width: list[int] = []
    for axis, part in enumerate(as_slices(x_shape, g.start, g.stop, g.step)):
        places = range(*part.indices(x_shape[axis]))
        if places.step < 0:
            dy, places = F.flip(dy, axes=(axis,)), places[::-1]
        if places.step > 1 and len(places) > 1:
            dy = _spread(F, dy, axis, places.step)
        pad_width += [places[0], x_shape[axis] - 1 - places[-1]]
    return F.pad(dy, pad_width=tuple(pad_width)) if any(pad_width) else dy


def _spread(F: Any, dy: Any, axis: int, step: int) -> Any:
    """Put `step` - 1 zeros between neighbours along `axis`."""
    before, length, after = dy.shape[:axis], dy.shape[axis], dy.shape[axis + 1 :]
    columns = F.reshape(dy, shape=(*before, length, 1, *after))
    filled = F.pad(columns, pad_width=(0, step - 1) + (0, 0) * len(after))
    line = F.reshape(filled, shape=(*before, length * step, *after))
    return F.slice(line, stop=(*before, (length - 1) * step + 1, *after))


@shape_rule("Pad")
def pad_shape(x: Shape, *, pad_width: tuple[int, ...], mode: str, constant_value: float) -> tuple[Shape]:
    return (_padded_shape(x, pad_width, mode, 1),)


@shape_rule("PadBackward")
def pad_backward_shape(dy: Shape, *, pad_width: tuple[int, ...], mode: str) -> tuple[Shape]:
    return (_padded_shape(dy, pad_width, mode, -1),)


def _padded_shape(shape: Shape, pad_width: tuple[int, ...], mode: str, sign: int) -> Shape:
    if len(pad_width) % 2 or len(pad_width) > 2 * len(shape):
        limit = 2 * len(shape)
        raise ArgumentError(f"pad_width must have an even number of entries, at most {limit}, got {pad_width}")
    if any(width < 0 for width in pad_width):
        raise ArgumentError(f"pad_width must not be negative, got {pad_width}")
    widths = on_last_axes([sum(pad_width[place : place + 2]) for place in range(0, len(pad_width), 2)], len(shape), 0)
    result = tuple(length + sign * width for length, width in zip(shape, widths, strict=True))
    if mode != "constant" and any(
        width and min(length, padded) < 1 for length, width, padded in zip(shape, widths, result, strict=True)
    ):
        raise ShapeError(f"padded axes must not be empty in mode {mode!r}, got shape {shape} and pad_width {pad_width}")
    if min(result, default=0) < 0:
        raise ShapeError(f"dy must be at least as long as pad_width on each axis, got shape {shape} and pad_width {pad_width}")
    return result


@gradient("Pad")
def pad_gradient(F: Any, g: GradientCall) -> Any:
    return F.pad_backward(g.grad, pad_width=g.pad_width, mode=g.mode)


@gradient("PadBackward")
def pad_backward_gradient(F: Any, g: GradientCall) -> Any:
    return F.pad(g.grad, pad_width=g.pad_width, mode=g.mode)


# Turning and moving -------------------------------------------------------------------------------------------------


@shape_rule("Reshape")
def reshape_shape(x: Shape, *, shape: Shape, inplace: bool) -> tuple[Shape]:
    size = math.prod(x)
    if shape.count(-1) > 1 or min(shape, default=0) < -1:
        raise ArgumentError(f"shape must have at most one length of -1, got {shape}")
    if -1 in shape:
        known = -math.prod(shape)
        if known == 0 or size % known:
            raise ShapeError(f"the size of x must be a multiple of the given lengths, got {x} (size {size}) and shape {shape}")
        shape = tuple(size // known if length == -1 else length for length in shape)
    if math.prod(shape) != size:
        raise ShapeError(f"x and shape must have the same size, got {x} (size {size}) and {shape} (size {math.prod(shape)})")
    return (shape,)


@gradient("Reshape")
def reshape_gradient(F: Any, g: GradientCall) -> Any:
    return F.reshape(g.grad, shape=g.x.shape)


@shape_rule("Transpose")
def transpose_shape(x: Shape, *, axes: tuple[int, ...]) -> tuple[Shape]:
    if sorted(axes) != list(range(len(x))):
        raise ArgumentError(f"axes must name each of the {len(x)} axes of x once, got {axes}")
    return (tuple(x[axis] for axis in axes),)


@gradient("Transpose")
def transpose_gradient(F: Any, g: GradientCall) -> Any:
    return F.transpose(g.grad, axes=tuple(g.axes.index(axis) for axis in range(len(g.axes))))


@gradient("Flip")
def flip_gradient(F: Any, g: GradientCall) -> Any:
    return F.flip(g.grad, axes=g.axes)


@shape_rule("Shift", "ShiftBackward")
def shift_shape(x: Shape, *, shifts: tuple[int, ...], border_mode: str) -> tuple[Shape]:
    if len(shifts) > len(x):
        raise ArgumentError(f"shifts must have at most one entry for each of the {len(x)} axes, got {shifts}")
    return (x,)


@gradient("Shift")
def shift_gradient(F: Any, g: GradientCall) -> Any:
    return F.shift_backward(g.grad, shifts=g.shifts, border_mode=g.border_mode)


@gradient("ShiftBackward")
def shift_backward_gradient(F: Any, g: GradientCall) -> Any:
    return F.shift(g.grad, shifts=g.shifts, border_mode=g.border_mode)


# Repeating ----------------------------------------------------------------------------------------------------------


@shape_rule("Broadcast")
def broadcast_shape(x: Shape, *, shape: Shape) -> tuple[Shape]:
    require_shape(shape)
    if len(x) > len(shape) or any(n not in (1, wanted) for n, wanted in zip(x, shape[len(shape) - len(x) :], strict=True)):
        raise ShapeError(f"each length of x must be 1 or that of shape, counted from the last, got {x} and {shape}")
    return (shape,)


@gradient("Broadcast")
def broadcast_gradient(F: Any, g: GradientCall) -> Any:
    return unbroadcast(F, g.grad, g.x.shape)


@shape_rule("BroadcastTo")
def broadcast_to_shape(x: Shape, y: Shape, *, axis: int) -> tuple[Shape]:
    first = len(x) - len(y) if axis < 0 else axis
    if first < 0 or x[first : first + len(y)] != y:
        where = "the last axes" if axis < 0 else f"the axes from {axis}"
        raise ShapeError(f"y must have the shape of {where} of x, got {y} and {x}")
    return (x,)


@gradient("BroadcastTo", rounds_once=True)
def broadcast_to_gradient(F: Any, g: GradientCall) -> tuple[None, Any]:
    y_shape, ndim = g.y.shape, g.grad.ndim
    first = ndim - len(y_shape) if g.axis < 0 else g.axis
    axes = (*range(first), *range(first + len(y_shape), ndim))
    return None, F.sum(g.grad, axes=axes) if axes else g.grad


@shape_rule("Tile")
def tile_shape(x: Shape, *, reps: tuple[int, ...]) -> tuple[Shape]:
    if any(count < 1 for count in reps):
        raise ArgumentError(f"reps must be at least 1, got {reps}")
    ndim = max(len(x), len(reps))
    return (tuple(n * count for n, count in zip(on_last_axes(x, ndim, 1), on_last_axes(reps, ndim, 1), strict=True)),)


@gradient("Tile")
def tile_gradient(F: Any, g: GradientCall) -> Any:
    ndim = g.grad.ndim
    lengths, counts = on_last_axes(g.x.shape, ndim, 1), on_last_axes(g.reps, ndim, 1)
    tiles = F.reshape(g.grad, shape=tuple(n for pair in zip(counts, lengths, strict=True) for n in pair))
    repeated = tuple(2 * axis for axis in range(ndim) if counts[axis] > 1)
    return F.reshape(F.sum(tiles, axes=repeated) if repeated else tiles, shape=g.x.shape)


@shape_rule("Meshgrid")
def meshgrid_shape(*x: Shape, ij_indexing: bool) -> tuple[Shape, ...]:
    for shape in x:
        if len(shape) != 1:
            raise ShapeError(f"inputs must have one axis, got shape {shape}")
    lengths = [shape[0] for shape in x]
    return (tuple(lengths[place] for place in _grid_axes(len(x), ij_indexing)),) * len(x)


@gradient("Meshgrid")
def meshgrid_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    places = _grid_axes(len(g.x), g.ij_indexing)
    others = [tuple(axis for axis, place in enumerate(places) if place != n) for n in range(len(g.x))]
    return tuple(F.sum(dy, axes=axes) if axes else dy for dy, axes in zip(g.grads, others, strict=True))


def _grid_axes(n: int, ij_indexing: bool) -> tuple[int, ...]:
    """Return the input that varies along each axis of a grid."""
    return tuple(range(n)) if ij_indexing or n < 2 else (1, 0, *range(2, n))


# Diagonals and triangles --------------------------------------------------------------------------------------------


@shape_rule("MatrixDiag")
def matrix_diag_shape(x: Shape) -> tuple[Shape]:
    _require_ndim(x, 1)
    return ((*x, x[-1]),)


@gradient("MatrixDiag")
def matrix_diag_gradient(F: Any, g: GradientCall) -> Any:
    return F.matrix_diag_part(g.grad)


@shape_rule("MatrixDiagPart")
def matrix_diag_part_shape(x: Shape) -> tuple[Shape]:
    _require_ndim(x, 2)
    if x[-1] != x[-2]:
        raise ShapeError(f"the last two axes of x must have equal lengths, got shape {x}")
    return (x[:-1],)


@gradient("MatrixDiagPart")
def matrix_diag_part_gradient(F: Any, g: GradientCall) -> Any:
    return F.matrix_diag(g.grad)


@shape_rule("Trilu")
def trilu_shape(x: Shape, *, k: int, upper: bool) -> tuple[Shape]:
    _require_ndim(x, 2)
    return (x,)


@gradient("Trilu")
def trilu_gradient(F: Any, g: GradientCall) -> Any:
    return F.trilu(g.grad, k=g.k, upper=g.upper)


@shape_rule("EyeLike")
def eye_like_shape(x: Shape, *, k: int) -> tuple[Shape]:
    if len(x) != 2:
        raise ShapeError(f"x must have two axes, got shape {x}")
    return (x,)


# Making arrays ------------------------------------------------------------------------------------------------------


@shape_rule("Constant")
def constant_shape(*, val: float, shape: Shape) -> tuple[Shape]:
    require_shape(shape)
    return (shape,)


@shape_rule("Arange")
def arange_shape(*, start: float, stop: float, step: float) -> tuple[Shape]:
    if step == 0:
        raise ArgumentError(f"step must not be zero, got {step}")
    if not all(map(math.isfinite, (start, stop, step))):
        raise ArgumentError(f"start, stop and step must be finite, got {start}, {stop} and {step}")
    count = (stop - start) / step
    if not math.isfinite(count):
        raise ArgumentError(f"(stop - start) / step must be a number of elements, got {start}, {stop} and {step}")
    return ((max(0, math.ceil(count)),),)


@shape_rule("Linspace")
def linspace_shape(*, start: float, stop: float, num: int) -> tuple[Shape]:
    return ((num,),)


@shape_rule("Shape")
def shape_shape(x: Shape, *, start: int, end: int) -> tuple[Shape]:
    return ((len(x[start : end or len(x)]),),)


# Copying and ending -------------------------------------------------------------------------------------------------


@gradient("Identity")
def identity_gradient(F: Any, g: GradientCall) -> Any:
    return g.grad


@shape_rule("Assign")
def assign_shape(dst: Shape, src: Shape) -> tuple[Shape]:
    if dst != src:
        raise ShapeError(f"dst and src must have equal shapes, got {dst} and {src}")
    return (dst,)


@gradient("Assign", rounds_once=True)
def assign_gradient(F: Any, g: GradientCall) -> tuple[Any, None]:
    return g.grad, None


@shape_rule("Sink")
def sink_shape(*x: Shape, one_input_grad: bool) -> tuple[Shape]:
    return ((),)


@gradient("Sink")
def sink_gradient(F: Any, g: GradientCall) -> tuple[Any, ...]:
    return tuple(F.constant(val=1, shape=x.shape) if g.one_input_grad else None for x in g.x)
