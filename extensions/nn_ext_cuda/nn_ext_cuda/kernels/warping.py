"""Grids of points, and images sampled at them."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.compose import refuse_images, refuse_sizes
from nn_ext_cuda.codegen.dtypes import refuse_dtypes
from nn_ext_cuda.codegen.located import located

#: The place of a normalized coordinate on an axis, in units of elements, and what a place outside becomes. NaN stays NaN.
_FUNCTIONS: Final = """\
__device__ R held(R place, R low, R high) { return place < low ? low : place > high ? high : place; }
__device__ R place_of(R normalized, int64 length, int64 corners, int64 padding) {
  const R place = corners ? (normalized + 1) * R(length - 1) / 2 : ((normalized + 1) * R(length) - 1) / 2;
  if (padding == 0) return held(place, R(-1), R(length));
  if (padding == 1) return held(place, R(0), R(length - 1));
  const R start = corners ? R(0) : R(-0.5), span = corners ? R(length - 1) : R(length);
  const R turned = fmod(fabs(place - start), larger(2 * span, R(1)));
  return held((turned > span ? 2 * span - turned : turned) + start, R(0), R(length - 1));
}
__device__ R nearest_of(R place) { return place < 0 ? -floor(-place + R(0.5)) : floor(place + R(0.5)); }
// The element at a whole place; NaN reads the first one, so that its weight, which is NaN too, spoils the result.
// R(length - 1) is rounded, and may be `length`.
__device__ int64 index_of(R place, int64 length) {
  return place >= 0 ? min(int64(held(place, R(0), R(length - 1))), length - 1) : 0;
}
__device__ bool is_inside(R place, int64 length) { return place >= 0 && place <= R(length - 1); }
"""
_PADDINGS: Final = ("zero", "repeat", "reflect")


class WarpByGrid:
    """Multilinear or nearest sampling; gradients are those of the rule, which adds up in the order of the points."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, and images without elements."""
        return refuse_images(call.inputs[0], call)

    def forward(self, call: Call) -> Runner:
        """One launch; neighbouring threads have neighbouring points, or channels if these are last."""
        x, grid = call.inputs
        assert x is not None and grid is not None
        is_last = bool(call.args["channel_last"])
        spatial = x.shape[1:-1] if is_last else x.shape[2:]
        channels, points = x.shape[-1 if is_last else 1], math.prod(grid.shape[1:-1])
        numbers: dict[str, int | float] = {f"length{axis}": length for axis, length in enumerate(spatial)}
        numbers |= {"corners": int(bool(call.args["align_corners"])), "channels": channels, "points": points}
        numbers |= {"padding": _PADDINGS.index(str(call.args["padding_mode"]))}
        statement = _statement(len(spatial), linear=call.args["mode"] == "linear", is_last=is_last)
        frame = (x.shape[0], points, channels) if is_last else (x.shape[0], channels, points)
        return located(call, "warp_by_grid", frame, statement, numbers, functions=_FUNCTIONS)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


def _statement(rank: int, *, linear: bool, is_last: bool) -> str:
    """Return the sum over the corners around a point, or the nearest element."""
    point, channel = ("i1", "i2") if is_last else ("i2", "i1")
    lines = [f"const int64 point = (int64(i0) * points + {point}) * {rank}; R a = 0;"]
    for axis in range(rank):
        place = f"place_of(R(load(grid[point + {rank - 1 - axis}])), length{axis}, corners, padding)"
        lines.append(f"const R place{axis} = {place};")
        lines.append(f"const R low{axis} = {'floor' if linear else 'nearest_of'}(place{axis});")
    lines.append(f"for (int corner = 0; corner < {2**rank if linear else 1}; ++corner) {{")
    for axis in range(rank):
        lines.append(f"  const R at{axis} = low{axis} + (corner >> {axis} & 1);")
        share = f"corner >> {axis} & 1 ? place{axis} - low{axis} : 1 - (place{axis} - low{axis})"
        lines.append(f"  const R share{axis} = {share if linear else '1'};")
    offset = "int64(i0)" if is_last else f"(int64(i0) * channels + {channel})"
    for axis in range(rank):
        offset = f"({offset} * length{axis} + index_of(at{axis}, length{axis}))"
    offset = f"{offset} * channels + {channel}" if is_last else offset
    inside = " && ".join(f"is_inside(at{axis}, length{axis})" for axis in range(rank))
    share = " * ".join(f"share{axis}" for axis in range(rank))
    lines.append(f"  a += {share} * ({inside} ? R(load(x[{offset}])) : R(0));")
    return "\n    ".join([*lines, "}", "store(y[i], a);"])


class AffineGrid:
    """The points of a grid, transformed; the gradient is that of the rule, a product of matrices."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes([*call.inputs, *call.outputs]) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch, a thread for each coordinate."""
        frame = call.outputs[0].shape
        rank, corners = frame[-1], bool(call.args["align_corners"])
        numbers: dict[str, int | float] = {f"length{axis}": length for axis, length in enumerate(frame[1:-1])}
        lines = [f"const int64 row = (int64(i0) * {rank} + i{rank + 1}) * {rank + 1}; R a = R(load(theta[row + {rank}]));"]
        for axis in range(rank):
            steps = f"(length{axis} > 1 ? length{axis} - 1 : 1)" if corners else f"length{axis}"
            place = f"R(2 * int64(i{axis + 1}) - (length{axis} - 1)) / R({steps})"
            lines.append(f"a += R(load(theta[row + {rank - 1 - axis}])) * ({place});")
        return located(call, "affine_grid", frame, "\n    ".join([*lines, "store(grid[i], a);"]), numbers)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


#: The four pixels around the place that the flow of a pixel leads to, which is held inside of the image.
_FLOW: Final = """\
const int64 row = i2 / width, column = i2 % width, at = int64(i0) * 2 * height * width + i2;
    const R y = held(R(load(flow[at + height * width])) + R(row), R(0), R(height - 1));
    const R x = held(R(load(flow[at])) + R(column), R(0), R(width - 1));
    const int64 top = index_of(floor(y), height), left = index_of(floor(x), width);
    const int64 bottom = min(top + 1, height - 1), right = min(left + 1, width - 1);
    const R down = y - floor(y), over = x - floor(x);
    const int64 image = (int64(i0) * channels + i1) * height * width;
    const R upper = (1 - over) * R(load(data[image + top * width + left])) + over * R(load(data[image + top * width + right]));
    const R lower = (1 - over) * R(load(data[image + bottom * width + left]))
        + over * R(load(data[image + bottom * width + right]));
    store(warped_image[i], (1 - down) * upper + down * lower);"""


class WarpByFlow:
    """Linear sampling at each pixel plus its flow; gradients are those of the rule."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, and images without elements."""
        return refuse_images(call.inputs[0], call)

    def forward(self, call: Call) -> Runner:
        """One launch, a thread for each element."""
        n, channels, height, width = call.outputs[0].shape
        numbers: dict[str, int | float] = {"channels": channels, "height": height, "width": width}
        return located(call, "warp_by_flow", (n, channels, height * width), _FLOW, numbers, functions=_FUNCTIONS)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


WARPING: Final[Mapping[str, Kernel]] = {
    "AffineGrid": AffineGrid(),
    "WarpByFlow": WarpByFlow(),
    "WarpByGrid": WarpByGrid(),
}
