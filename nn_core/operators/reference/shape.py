"""Reference kernels of functions that arrange elements: join, cut, turn, pad, repeat, and make simple arrays."""

import math
from collections.abc import Callable, Sequence

from nn_core.operators.reference import axis_maps
from nn_core.operators.reference.registry import kernel
from nn_core.operators.rules.shape import as_slices, on_last_axes
from nn_core.typing import Array, Namespace, Shape


@kernel("Identity", "Unlink")
def identity(xp: Namespace, x: Array) -> Array:
    return x.copy()


@kernel("Concatenate")
def concatenate(xp: Namespace, *x: Array, axis: int) -> Array:
    return xp.concat(x, axis=axis)


@kernel("Split")
def split(xp: Namespace, x: Array, *, axis: int) -> tuple[Array, ...]:
    first = xp.moveaxis(x, axis, 0)
    return tuple(first[place].copy() for place in range(x.shape[axis]))


@kernel("Stack")
def stack(xp: Namespace, *x: Array, axis: int) -> Array:
    return xp.stack(x, axis=axis)


@kernel("Slice")
def slice_(
    xp: Namespace,
    x: Array,
    *,
    start: tuple[int, ...] | None,
    stop: tuple[int, ...] | None,
    step: tuple[int, ...] | None,
) -> Array:
    return x[as_slices(x.shape, start, stop, step)].copy()


@kernel("Pad")
def pad(xp: Namespace, x: Array, *, pad_width: tuple[int, ...], mode: str, constant_value: float) -> Array:
    widths = _width_pairs(x.ndim, pad_width)
    if mode == "constant":
        y = xp.full(
            [before + length + after for length, (before, after) in zip(x.shape, widths, strict=True)],
            constant_value,
            x.dtype,
        )
        y[_inner(x.shape, widths)] = x
        return y
    return axis_maps.take(xp, x[None], _pad_maps(xp, x.shape, widths, mode))[0]


@kernel("PadBackward")
def pad_backward(xp: Namespace, dy: Array, *, pad_width: tuple[int, ...], mode: str) -> Array:
    widths = _width_pairs(dy.ndim, pad_width)
    shape = tuple(length - before - after for length, (before, after) in zip(dy.shape, widths, strict=True))
    if mode == "constant":
        return dy[_inner(shape, widths)].copy()
    return axis_maps.give_back(xp, dy[None], _pad_maps(xp, shape, widths, mode), shape)[0]


def _width_pairs(ndim: int, pad_width: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(zip(on_last_axes(pad_width[0::2], ndim, 0), on_last_axes(pad_width[1::2], ndim, 0), strict=True))


def _inner(shape: Shape, widths: Sequence[tuple[int, int]]) -> tuple[slice, ...]:
    return tuple(slice(before, before + length) for length, (before, _) in zip(shape, widths, strict=True))


def _pad_maps(xp: Namespace, shape: Shape, widths: Sequence[tuple[int, int]], mode: str) -> list[Array]:
    place = {"reflect": axis_maps.reflected, "repeat": axis_maps.nearest}[mode]
    return [
        place(xp, xp.arange(-before, length + after), length)[None]
        for length, (before, after) in zip(shape, widths, strict=True)
    ]


@kernel("Shift")
def shift(xp: Namespace, x: Array, *, shifts: tuple[int, ...], border_mode: str) -> Array:
    return axis_maps.take(xp, x[None], _shift_maps(xp, x.shape, shifts, border_mode))[0]


@kernel("ShiftBackward")
def shift_backward(xp: Namespace, dy: Array, *, shifts: tuple[int, ...], border_mode: str) -> Array:
    return axis_maps.give_back(xp, dy[None], _shift_maps(xp, dy.shape, shifts, border_mode), dy.shape)[0]


def _shift_maps(xp: Namespace, shape: Shape, shifts: tuple[int, ...], border_mode: str) -> list[Array]:
    place: Callable[[Namespace, Array, int], Array] = {"nearest": axis_maps.nearest, "reflect": axis_maps.mirrored}[
        border_mode
    ]
    return [
        place(xp, xp.arange(length) - by, length)[None] if length else xp.arange(0)[None]
        for length, by in zip(shape, on_last_axes(shifts, len(shape), 0), strict=True)
    ]


@kernel("Transpose")
def transpose(xp: Namespace, x: Array, *, axes: tuple[int, ...]) -> Array:
    return xp.permute_dims(x, axes).copy()


@kernel("Broadcast")
def broadcast(xp: Namespace, x: Array, *, shape: Shape) -> Array:
    return xp.broadcast_to(x, shape).copy()


@kernel("BroadcastTo")
def broadcast_to(xp: Namespace, x: Array, y: Array, *, axis: int) -> Array:
    first = x.ndim - y.ndim if axis < 0 else axis
    return xp.broadcast_to(y.reshape(y.shape + (1,) * (x.ndim - first - y.ndim)), x.shape).copy()


@kernel("Tile")
def tile(xp: Namespace, x: Array, *, reps: tuple[int, ...]) -> Array:
    return xp.tile(x, reps)


@kernel("Flip")
def flip(xp: Namespace, x: Array, *, axes: tuple[int, ...]) -> Array:
    return xp.flip(x, axis=axes).copy()


@kernel("Shape")
def shape(xp: Namespace, x: Array, *, start: int, end: int) -> Array:
    return xp.asarray(x.shape[start : end or x.ndim], dtype=xp.int64)


@kernel("MatrixDiag")
def matrix_diag(xp: Namespace, x: Array) -> Array:
    return xp.where(xp.eye(x.shape[-1], dtype=bool), x[..., None], 0).astype(x.dtype, copy=False)


@kernel("MatrixDiagPart")
def matrix_diag_part(xp: Namespace, x: Array) -> Array:
    return xp.diagonal(x, axis1=-2, axis2=-1).copy()


@kernel("Trilu")
def trilu(xp: Namespace, x: Array, *, k: int, upper: bool) -> Array:
    return xp.triu(x, k) if upper else xp.tril(x, k)


@kernel("Meshgrid")
def meshgrid(xp: Namespace, *x: Array, ij_indexing: bool) -> tuple[Array, ...]:
    return tuple(grid.copy() for grid in xp.meshgrid(*x, indexing="ij" if ij_indexing else "xy"))


@kernel("Constant")
def constant(xp: Namespace, *, val: float, shape: Shape) -> Array:
    return xp.full(shape, val, dtype=xp.float64)


@kernel("Arange")
def arange(xp: Namespace, *, start: float, stop: float, step: float) -> Array:
    return start + step * xp.arange(max(0, math.ceil((stop - start) / step)), dtype=xp.float64)


@kernel("Linspace")
def linspace(xp: Namespace, *, start: float, stop: float, num: int) -> Array:
    return xp.linspace(start, stop, num, dtype=xp.float64)


@kernel("EyeLike")
def eye_like(xp: Namespace, x: Array, *, k: int) -> Array:
    return xp.eye(*x.shape, k=k, dtype=xp.float64)


@kernel("Assign")
def assign(xp: Namespace, dst: Array, src: Array) -> tuple[Array, Array]:
    return src.copy(), src.copy()


@kernel("Sink")
def sink(xp: Namespace, *x: Array, one_input_grad: bool) -> Array:
    return xp.zeros((), dtype=xp.float64)
