"""Operators that arrange elements."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.arithmetic import expanded
from nn_ext_onnx.importing.external import to_array
from nn_ext_onnx.importing.registry import Made, Node, operator
from nn_ext_onnx.importing.values import UnsupportedError


@operator("Reshape", takes_whole=True)
def _reshape(node: Node) -> nn.Variable:
    given = node.attr("shape") if node.opset < 5 else node.ints(1)
    is_zero_allowed = node.attr("allowzero", 0)
    shape = [node.shape[k] if length == 0 and not is_zero_allowed else length for k, length in enumerate(given)]
    if -1 in shape:
        rest = math.prod(length for length in shape if length != -1)
        shape[shape.index(-1)] = math.prod(node.shape) // rest if rest else 0
    return F.reshape(node.x, shape)


@operator("Flatten", takes_whole=True)
def _flatten(node: Node) -> nn.Variable:
    axis = node.attr("axis", 1)
    axis = node.axis_of(axis) if axis < 0 else axis
    return F.reshape(node.x, (math.prod(node.shape[:axis]), math.prod(node.shape[axis:])))


@operator("Squeeze", takes_whole=True)
def _squeeze(node: Node) -> nn.Variable:
    axes = node.axes(1)
    if axes is None:
        axes = tuple(axis for axis, length in enumerate(node.shape) if length == 1)
    if any(node.shape[axis] != 1 for axis in axes):
        raise UnsupportedError(f"axes {axes} of shape {node.shape}")
    return F.reshape(node.x, [length for axis, length in enumerate(node.shape) if axis not in axes])


@operator("Unsqueeze", takes_whole=True)
def _unsqueeze(node: Node) -> nn.Variable:
    given = node.attr("axes") if node.opset < 13 else node.ints(1)
    ndim = node.ndim + len(given)
    axes = {node.axis_of(axis, ndim) for axis in given}
    lengths = iter(node.shape)
    return F.reshape(node.x, [1 if axis in axes else next(lengths) for axis in range(ndim)])


@operator("Transpose", takes_whole=True)
def _transpose(node: Node) -> nn.Variable:
    return F.transpose(node.x, node.attr("perm") or list(range(node.ndim))[::-1])


@operator("Concat")
def _concat(node: Node) -> nn.Variable:
    axis = node.axis_of(node.attr("axis", 1))
    return F.concatenate(*[node.variable(k) for k in range(len(node.inputs))], axis=axis)


@operator("Split", takes_whole=True)
def _split(node: Node) -> list[nn.Variable]:
    axis = node.axis_of(node.attr("axis", 0))
    sizes = node.attr("split")
    if sizes is None and node.optional(1) is not None:
        sizes = node.ints(1)
    if sizes is None:
        n = node.attr("num_outputs") or len(node.proto.output)
        size = -(-node.shape[axis] // n)
        sizes = [size] * (n - 1) + [node.shape[axis] - size * (n - 1)]
    ends = np.cumsum(sizes)
    if not len(sizes) or ends[-1] != node.shape[axis] or min(sizes) < 0:
        raise UnsupportedError(f"parts {list(sizes)} of {node.shape[axis]} elements")
    return [_part(node.x, axis, int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)]


def _part(x: nn.Variable, axis: int, start: int, stop: int) -> nn.Variable:
    after = x.ndim - axis - 1
    stops = [stop, *x.shape[axis + 1 :]]
    return F.slice(x, start=[start] + [0] * after, stop=stops, step=[1] * (after + 1))


@operator("Slice", takes_whole=True)
def _slice(node: Node) -> nn.Variable:
    if node.opset < 10:
        starts, ends, axes, steps = node.attr("starts"), node.attr("ends"), node.attr("axes"), None
    else:
        starts, ends = node.ints(1), node.ints(2)
        axes = None if node.optional(3) is None else node.ints(3)
        steps = None if node.optional(4) is None else node.ints(4)
    chosen = [node.axis_of(axis) for axis in (range(len(starts)) if axes is None else axes)]
    places = [slice(0, length, 1) for length in node.shape]
    for axis, start, end, step in zip(chosen, starts, ends, steps or [1] * len(chosen), strict=True):
        if step == 0:
            raise UnsupportedError("step 0")
        places[axis] = slice(*slice(start, end, step).indices(node.shape[axis]))
    return sliced(node.x, places)


def sliced(x: nn.Variable, places: Sequence[slice]) -> nn.Variable:
    """Parts of all axes; those that go backwards are picked by number."""
    y = x
    forward = []
    for axis, place in enumerate(places):
        numbers = np.arange(place.start, place.stop, place.step, dtype=np.int64)
        is_picked = place.step < 0 or not numbers.size
        if is_picked:
            y = F.gather(y, nn.Variable.from_numpy_array(numbers), axis=axis)
        forward.append(slice(0, y.shape[axis], 1) if is_picked else place)
    if all((p.start, p.stop, p.step) == (0, n, 1) for p, n in zip(forward, y.shape, strict=True)):
        return F.identity(y) if y is x else y
    return F.slice(y, start=[p.start for p in forward], stop=[p.stop for p in forward], step=[p.step for p in forward])


@operator("Expand", takes_whole=True)
def _expand(node: Node) -> nn.Variable:
    shape = np.broadcast_shapes(node.shape, node.ints(1))
    return expanded(node.x, shape) if shape != node.shape else F.identity(node.x)


@operator("Tile", takes_whole=True, since=6)
def _tile(node: Node) -> nn.Variable:
    return F.tile(node.x, node.ints(1)) if node.ndim else F.identity(node.x)


@operator("Shape", takes_whole=True)
def _shape(node: Node) -> Made:
    return np.asarray(node.shape[node.attr("start", 0) : node.attr("end")], dtype=np.int64)


@operator("Size", takes_whole=True)
def _size(node: Node) -> Made:
    return np.asarray(math.prod(node.shape), dtype=np.int64)


#: The attributes of a Constant that hold its numbers, and their types.
_NUMBERS: Final = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}


@operator("Constant", takes_whole=True)
def _constant(node: Node) -> Made:
    (attribute,) = node.proto.attribute
    if attribute.name == "value":
        return to_array(attribute.t, node.builder.base)
    if attribute.name not in _NUMBERS:
        raise UnsupportedError(attribute.name)
    return np.asarray(node.attr(attribute.name), _NUMBERS[attribute.name])


@operator("ConstantOfShape", takes_whole=True)
def _constant_of_shape(node: Node) -> Made:
    value = node.attr("value")
    array = np.zeros(1, np.float32) if value is None else onnx.numpy_helper.to_array(value)
    return np.full(node.ints(0), array.reshape(-1)[0], dtype=array.dtype)


@operator("Range", takes_whole=True)
def _range(node: Node) -> Made:
    start, limit, delta = (node.array(index).reshape(-1)[0] for index in range(3))
    count = max(math.ceil((limit - start) / delta), 0)
    return (start + np.arange(count) * delta).astype(start.dtype)


@operator("EyeLike", takes_whole=True)
def _eye_like(node: Node) -> Made:
    dtype = node.dtypes[0]
    return np.eye(*node.shape, k=node.attr("k", 0), dtype=dtype if dtype is not None else node[0].dtype)


@operator("Pad")
def _pad(node: Node) -> nn.Variable:
    if node.opset < 11:
        pads, value = node.attr("pads") or node.attr("paddings"), node.attr("value", 0.0)
    else:
        pads, value = node.ints(1), node.number(2, 0.0)
    axes = tuple(range(node.ndim)) if node.optional(3) is None else tuple(node.axis_of(a) for a in node.ints(3))
    n, mode = len(axes), node.attr("mode", "constant")
    widths = {axis: (pads[k], pads[k + n]) for k, axis in enumerate(axes)}
    return padded(node.x, [widths.get(axis, (0, 0)) for axis in range(node.ndim)], mode, float(value))


def padded(x: nn.Variable, widths: Sequence[tuple[int, int]], mode: str = "constant", value: float = 0.0) -> nn.Variable:
    """`x` with a border; negative widths cut."""
    if any(min(width) < 0 for width in widths):
        x = sliced(x, [slice(-min(a, 0), n + min(b, 0), 1) for (a, b), n in zip(widths, x.shape, strict=True)])
        widths = [(max(a, 0), max(b, 0)) for a, b in widths]
    if not x.ndim:
        return F.identity(x)
    if mode == "constant":
        return F.pad(x, [w for width in widths for w in width], mode="constant", constant_value=value)
    return _continued(x, widths, mode)


def _continued(x: nn.Variable, widths: Sequence[tuple[int, int]], mode: str) -> nn.Variable:
    """`x` with a border of its own elements, in a mode of `numpy.pad`."""
    y = x
    for axis, (before, after) in enumerate(widths):
        if before or after:
            places = np.pad(np.arange(y.shape[axis]), (before, after), mode=mode)  # type: ignore[call-overload]
            y = F.gather(y, nn.Variable.from_numpy_array(places.astype(np.int64)), axis=axis)
    return F.identity(y) if y is x else y


@operator("DepthToSpace")
def _depth_to_space(node: Node) -> nn.Variable:
    (b, c, h, w), size = node.shape, node.attr("blocksize")
    if node.attr("mode", "DCR") == "DCR":
        parts, order = (b, size, size, c // size**2, h, w), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (b, c // size**2, size, size, h, w), (0, 1, 4, 2, 5, 3)
    return F.reshape(F.transpose(F.reshape(node.x, parts), order), (b, c // size**2, h * size, w * size))


@operator("SpaceToDepth")
def _space_to_depth(node: Node) -> nn.Variable:
    (b, c, h, w), size = node.shape, node.attr("blocksize")
    order = (0, 3, 5, 1, 2, 4) if node.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    x = F.transpose(F.reshape(node.x, (b, c, h // size, size, w // size, size)), order)
    return F.reshape(x, (b, c * size**2, h // size, w // size))


@operator("Trilu")
def _trilu(node: Node) -> nn.Variable:
    k, upper = int(node.number(1, 0)), bool(node.attr("upper", 1))
    ones = np.ones(node.shape[-2:], dtype=bool)
    kept = np.triu(ones, k) if upper else np.tril(ones, k)
    chosen = np.broadcast_to(kept, node.shape).astype(np.float32)
    return F.where(
        nn.Variable.from_numpy_array(chosen), node.x, nn.Variable.from_numpy_array(np.zeros(node.shape, np.float32))
    )
