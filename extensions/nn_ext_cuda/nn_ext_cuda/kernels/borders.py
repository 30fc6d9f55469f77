"""Arrays read beyond their borders: padded or shifted, with elements repeated or mirrored there."""

from collections.abc import Sequence
from typing import Final

from nn_core.ext import Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.dtypes import refuse_dtypes
from nn_ext_cuda.codegen.located import located

#: ``inside(p, length, mode)`` is the element that the place p of an endless axis shows. Modes: 0 repeats the edges, 1 mirrors
#: the array with its edges, 2 mirrors it at its edges.
_FUNCTIONS: Final = """\
__device__ int64 inside(int64 p, int64 length, int64 mode) {
  if (p >= 0 && p < length) return p;
  if (mode == 0 || length == 1) return p < 0 ? 0 : length - 1;
  const int64 period = mode == 1 ? 2 * length : 2 * length - 2;
  const int64 turned = (p % period + period) % period;
  return turned < length ? turned : period - (mode == 1) - turned;
}
// The next place from p on, but below `high`, that shows `element`: beyond the borders each place is tried.
__device__ int64 next_place(int64 p, int64 high, int64 element, int64 length, int64 mode) {
  for (; p < high; ++p) {
    if (p >= 0 && p < length) p = p <= element ? element : length;
    if (p < high && inside(p, length, mode) == element) return p;
  }
  return high;
}
"""
_MODES: Final = {"repeat": 0, "nearest": 0, "reflect_shift": 1, "reflect": 2}


class Bordered:
    """A function that shows some places of an array that goes on beyond its borders.

    The transpose adds up what the places of an element get, in their order.

    Args:
        transposed: The function is the transpose, and its gradient shows the places.
    """

    def __init__(self, *, transposed: bool = False) -> None:
        self._transposed = transposed

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, and those without elements."""
        if not all(desc is None or desc.size for desc in (*call.inputs, *call.outputs)):
            return Refusal("takes arrays of at least one element")
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        names = call.spec.inputs[0].name, call.spec.outputs[0].name
        return self._program(call, names, None, transposed=self._transposed)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch."""
        names = f"d{call.spec.outputs[0].name}", f"d{call.spec.inputs[0].name}"
        return self._program(call, names, wanted, transposed=not self._transposed)

    def _program(self, call: Call, names: tuple[str, str], wanted: Sequence[bool] | None, *, transposed: bool) -> Runner:
        """Return the program that reads the first of two arrays and writes the second one."""
        x = (call.outputs if self._transposed else call.inputs)[0]
        assert x is not None
        ranges = _ranges(call, x.shape)
        axes = _joined(x.shape, ranges)
        mode = "reflect_shift" if call.args.get("border_mode") == "reflect" else str(call.args.get("mode") or "nearest")
        numbers: dict[str, int | float] = {"mode": _MODES[mode]}
        for axis, (length, low, high) in enumerate(axes):
            numbers |= {f"length{axis}": length, f"low{axis}": low, f"high{axis}": high}
        frame = [length if transposed else high - low for length, low, high in axes]
        statement = (_sum if transposed else _read)(len(axes)).replace("SOURCE", names[0]).replace("TARGET", names[1])
        name = f"border_{'sum' if transposed else 'read'}"
        return located(call, name, frame, statement, numbers, wanted, _FUNCTIONS)


class Padding:
    """Padding, or its transpose: with a constant a copy of a part, otherwise `Bordered`.

    Args:
        constant: The kernel for the mode constant.
        transposed: The function is the transpose.
    """

    def __init__(self, constant: Kernel, *, transposed: bool = False) -> None:
        self._constant = constant
        self._bordered = Bordered(transposed=transposed)

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what the kernel for the mode refuses."""
        return self._kernel(call).refuse(call)

    def forward(self, call: Call) -> Runner:
        """Return that of the kernel for the mode."""
        return self._kernel(call).forward(call)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return that of the kernel for the mode."""
        return self._kernel(call).backward(call, wanted)

    def _kernel(self, call: Call) -> Kernel:
        return self._constant if call.args["mode"] == "constant" else self._bordered


def _ranges(call: Call, shape: Shape) -> list[tuple[int, int]]:
    """Return the places of each axis that are shown, from the first to one after the last; short settings belong to the last
    axes.
    """
    shifts, widths = call.args.get("shifts"), call.args.get("pad_width")
    pairs = [(by, -by) for by in shifts] if isinstance(shifts, tuple) else []
    pairs = list(zip(widths[::2], widths[1::2], strict=True)) if isinstance(widths, tuple) else pairs
    whole = [(0, 0)] * (len(shape) - len(pairs)) + [(int(before), int(after)) for before, after in pairs]
    return [(-before, length + after) for length, (before, after) in zip(shape, whole, strict=True)]


def _joined(shape: Shape, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Length and range of each axis, neighbours that are shown as they are joined to one."""
    axes: list[tuple[int, int, int]] = []
    for length, (low, high) in zip(shape, ranges, strict=True):
        is_whole = (low, high) == (0, length)
        if is_whole and axes and axes[-1][1:] == (0, axes[-1][0]):
            axes[-1] = (axes[-1][0] * length, 0, axes[-1][0] * length)
        else:
            axes.append((length, low, high))
    return axes or [(1, 0, 1)]


def _read(rank: int) -> str:
    """Return the element that a place shows."""
    place = "0"
    for axis in range(rank):
        place = f"({place} * length{axis} + inside(int64(i{axis}) + low{axis}, length{axis}, mode))"
    return f"TARGET[i] = SOURCE[{place}];"


def _sum(rank: int) -> str:
    """Return the sum over all places that show an element."""
    lines, place = ["R a = 0;"], "0"
    for axis in range(rank):
        rest = f"high{axis}, i{axis}, length{axis}, mode"
        first, following = f"next_place(low{axis}, {rest})", f"next_place(p{axis} + 1, {rest})"
        lines.append(f"for (int64 p{axis} = {first}; p{axis} < high{axis}; p{axis} = {following})")
        place = f"({place} * (high{axis} - low{axis}) + p{axis} - low{axis})"
    return "\n    ".join([*lines, f"  a += R(load(SOURCE[{place}]));", "store(TARGET[i], a);"])
