"""Functions that arrange elements."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nn_core.graph_rewriting import follows_shapes
from nn_ext_onnx.exporting.registry import Call, converter
from nn_ext_onnx.exporting.values import DOUBLE, INT, Value

#: The end of a slice that goes backwards and includes the first element.
_BEFORE_FIRST: Final = -(2**31)
#: The end of a slice that takes all that is there.
_BEYOND: Final = 2**31 - 1


@converter("Identity", "Unlink")
def _identity(call: Call) -> Value:
    return call.x.op("Identity")


@converter("Concatenate")
def _concatenate(call: Call) -> Value:
    return call.graph.op("Concat", *call.inputs, axis=call.args["axis"])


@converter("Stack")
def _stack(call: Call) -> Value:
    axis = call.args["axis"] % len(call.output_shape)
    return call.graph.op("Concat", *(call[k].unsqueeze(axis) for k in range(len(call.inputs))), axis=axis)


@converter("Split")
def _split(call: Call) -> list[Value]:
    axis, n = call.args["axis"], call.shape[call.args["axis"]]
    settings = {"num_outputs": n} if call.graph.opset >= 18 else {}
    parts = call.graph.ops("Split", call.x, dtypes=[None] * n, axis=axis, **settings)
    return [part.squeeze(axis) for part in parts]


@converter("Slice")
def _slice(call: Call) -> Value:
    """Short settings belong to the last axes."""
    starts, stops, steps, axes = [], [], [], []
    for axis, length in enumerate(call.shape):
        given = [_of_axis(call.args[name], axis - call.ndim) for name in ("start", "stop", "step")]
        start, stop, step = _ends(given, length)
        is_whole = (start, stop, step) in ((0, length, 1), (0, _BEYOND, 1))
        if not is_whole or follows_shapes(start) or follows_shapes(stop):
            starts.append(start)
            stops.append(stop)
            steps.append(step)
            axes.append(axis)
    return call.x.op("Slice", starts, stops, axes, steps) if axes else call.x.op("Identity")


def _ends(given: Sequence[Any], length: int) -> tuple[int, int, int]:
    """Return the settings of an axis as the operator takes them."""
    if not any(map(follows_shapes, (*given, length))):
        start, stop, step = slice(*given).indices(length)
        return start, stop if stop >= 0 else _BEFORE_FIRST, step
    start, stop, step = given
    step = 1 if step is None else step
    first, last = (0, _BEYOND) if step > 0 else (_BEYOND, _BEFORE_FIRST)
    return first if start is None else start, last if stop is None else stop, step


def _of_axis(values: Sequence[int | None] | None, axis: int) -> int | None:
    """Return the setting of an axis that is counted from the end."""
    return values[axis] if values is not None and len(values) >= -axis else None


@converter("Pad")
def _pad(call: Call) -> Value:
    width, mode = call.args["pad_width"], call.args["mode"]
    missing = call.ndim - len(width) // 2
    before, after = [0] * missing + list(width[0::2]), [0] * missing + list(width[1::2])
    if mode == "constant":
        return call.x.op("Pad", [*before, *after], call.args["constant_value"])
    y = call.x
    if any(map(follows_shapes, (*call.shape, *before, *after))):
        return y.op("Pad", [*before, *after], mode="reflect" if mode == "reflect" else "edge")
    for axis, length in enumerate(call.shape):
        if before[axis] or after[axis]:
            places = np.arange(-before[axis], length + after[axis])
            y = y.take(_reflected(places, length) if mode == "reflect" else np.clip(places, 0, length - 1), axis)
    return y


def _reflected(places: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    """Mirrored at the edge elements: ... 2 1 | 0 1 2 | 1 0 ..."""
    if length == 1:
        return places * 0
    turned = places % (2 * length - 2)
    return np.minimum(turned, 2 * length - 2 - turned)


@converter("Shift")
def _shift(call: Call) -> Value:
    shifts = call.args["shifts"]
    y = call.x
    for axis, by in enumerate(shifts, start=call.ndim - len(shifts)):
        y = y.op("Gather", _shifted(call, call.shape[axis], by), axis=axis) if by else y
    return y.op("Identity") if y is call.x else y


def _shifted(call: Call, length: int, by: int) -> Any:
    """Return the places from which elements come."""
    is_nearest = call.args["border_mode"] == "nearest"
    if follows_shapes(length):
        moved, count = call.arange(length) - by, call.graph.constant(length, INT)
        folded = moved if is_nearest else moved.op("Mod", 2 * count)
        other = count - 1 if is_nearest else 2 * count - 1 - folded
        return folded.op("Max", 0).op("Min", other)
    places = np.arange(length) - by
    if is_nearest:
        return np.clip(places, 0, length - 1)
    turned = places % (2 * length)
    return np.minimum(turned, 2 * length - 1 - turned)


@converter("Transpose")
def _transpose(call: Call) -> Value:
    return call.x.op("Transpose", perm=list(call.args["axes"]))


@converter("Broadcast")
def _broadcast(call: Call) -> Value:
    return call.x.op("Expand", call.output_shape)


@converter("BroadcastTo")
def _broadcast_to(call: Call) -> Value:
    n = len(call.shapes[1])
    first = call.ndim - n if call.args["axis"] < 0 else call.args["axis"]
    after = call.ndim - first - n
    y = call[1].unsqueeze(*range(n, n + after)) if after else call[1]
    return y.op("Expand", call.x.op("Shape", dtype=INT))


@converter("Tile")
def _tile(call: Call) -> Value:
    reps = [1] * (call.ndim - len(call.args["reps"])) + list(call.args["reps"])
    missing = len(reps) - call.ndim
    x = call.x.unsqueeze(*range(missing)) if missing else call.x
    return x.op("Tile", reps)


@converter("Flip")
def _flip(call: Call) -> Value:
    axes = list(call.args["axes"])
    if not axes:
        return call.x.op("Identity")
    ends = [-1] * len(axes)
    return call.x.op("Slice", ends, [_BEFORE_FIRST] * len(axes), axes, ends)


@converter("Reshape")
def _reshape(call: Call) -> Value:
    return call.graph.op("Reshape", call.x, call.output_shape)


@converter("Shape")
def _shape(call: Call) -> Value:
    if call.graph.opset >= 15:
        end = call.args["end"] or None
        return call.x.op("Shape", dtype=INT, start=call.args["start"] or None, end=end)
    start, end, _ = slice(call.args["start"], call.args["end"] or None).indices(call.ndim)
    return call.x.op("Shape", dtype=INT).slice(0, start, max(start, end))


@converter("MatrixDiag")
def _matrix_diag(call: Call) -> Value:
    """Select instead of multiplying: infinities stay on the diagonal."""
    diagonal = call.graph.constant(np.eye(call.shape[-1], dtype=bool))
    return call.graph.op("Where", diagonal, call.x.unsqueeze(call.ndim), call.graph.constant(0.0))


@converter("MatrixDiagPart")
def _matrix_diag_part(call: Call) -> Value:
    rows, columns = call.shape[-2:]
    n = min(rows, columns)
    x = call.x.reshape((*call.shape[:-2], rows * columns))
    return x.take(np.arange(n) * (columns + 1), call.ndim - 2)


@converter("Trilu")
def _trilu(call: Call) -> Value:
    if call.graph.opset >= 14:
        return call.x.op("Trilu", call.graph.constant(call.args["k"], INT), upper=int(call.args["upper"]))
    ones = np.ones(call.shape[-2:], dtype=bool)
    kept = np.triu(ones, call.args["k"]) if call.args["upper"] else np.tril(ones, call.args["k"])
    return call.graph.op("Where", call.graph.constant(kept), call.x, call.graph.constant(0.0))


@converter("Meshgrid")
def _meshgrid(call: Call) -> list[Value]:
    results = []
    for position, shape in enumerate(call.output_shapes):
        axis = position if call.args["ij_indexing"] or position > 1 else 1 - position
        if len(call.shapes) == 1:
            axis = 0
        line = [-1 if place == axis else 1 for place in range(len(shape))]
        results.append(call[position].reshape(line).op("Expand", shape))
    return results


@converter("Constant")
def _constant(call: Call) -> Value:
    return call.zeros(call.output_shape, call.args["val"])


@converter("Arange")
def _arange(call: Call) -> Value:
    start, stop, step = (call.args[name] for name in ("start", "stop", "step"))
    if any(map(follows_shapes, (start, stop, step))):
        return call.graph.op("Range", *(call.graph.constant(number, call.graph.real) for number in (start, stop, step)))
    values = start + step * np.arange(max(0, math.ceil((stop - start) / step)), dtype=np.float64)
    return call.graph.op("Identity", call.graph.constant(values))


@converter("Linspace")
def _linspace(call: Call) -> Value:
    start, stop, count = (call.args[name] for name in ("start", "stop", "num"))
    if any(map(follows_shapes, (start, stop, count))):
        first, last = (call.graph.constant(number, DOUBLE) for number in (start, stop))
        gaps = call.graph.constant(count, DOUBLE) - 1.0
        return first + call.arange(count, DOUBLE) * ((last - first) / gaps.op("Max", 1.0))
    values = np.linspace(start, stop, count)
    return call.graph.op("Identity", call.graph.constant(values))


@converter("EyeLike")
def _eye_like(call: Call) -> Value:
    return call.x.real().op("EyeLike", k=call.args["k"])


@converter("Assign")
def _assign(call: Call) -> Value:
    return call[1].op("Identity")


@converter("Sink")
def _sink(call: Call) -> Value:
    return call.graph.op("Identity", call.graph.constant(0.0))
