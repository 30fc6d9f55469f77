"""Samples altered at random: cropped, flipped, shifted, erased in parts, or warped; the bits are those of every backend.

Where an output is read from is kept as a row of positions for each axis of a sample, which gradients read.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.code import from_file, generated, part
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.dtypes import C_TYPES, real_type, refuse_dtypes
from nn_ext_cuda.codegen.located import located
from nn_ext_cuda.device.faults import beyond_length
from nn_ext_cuda.kernels.indexing import NOTHING
from nn_ext_cuda.kernels.random import SeededProgram
from nn_ext_cuda.launch.program import Argument, Launch, Program, flat

_LOOP: Final = "for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)"
_BORDERS: Final = ("nearest", "reflect", "constant")


class Sourced:
    """A function that reads each sample at random positions of its axes; the gradient is that of the rule.

    Args:
        position: Statements that set `place` to the position that element j of an axis of `length` is read from; the
            axis has the number `of_axis`, and the random word is `word`.
        of_axis: The number of each axis of a sample.
        moves: Whether axes before `base_axis` are altered, which exchanges samples.
    """

    def __init__(self, position: str, of_axis: Callable[[Call, Shape], Sequence[int]], moves: Callable[[Call], bool]) -> None:
        self._position = position
        self._of_axis = of_axis
        self._moves = moves

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, and samples that are exchanged."""
        if self._moves(call):
            return Refusal("alters the axes from base_axis on alone")
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Return a launch for the positions, and one that reads."""
        x, y = _given(call, 0), call.outputs[0]
        base_axis = _integer(call, "base_axis")
        fill = call.args.get("constant_value", 0.0)
        assert isinstance(fill, int | float)
        reading = _read(call, x.shape[base_axis:], y.shape[base_axis:], float(fill), fault="")
        launches = [*self._positions(call, x.shape, y.shape), *reading.launches]
        return SeededProgram(launches, 4)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None

    def _positions(self, call: Call, x: Shape, y: Shape) -> list[Launch]:
        """Return the launch that writes the positions."""
        base_axis = _integer(call, "base_axis")
        lengths, made, numbers = x[base_axis:], y[base_axis:], self._of_axis(call, x)
        n_axes, width, n = len(made), sum(made), call.outputs[1].size
        if n == 0:
            return []
        lines = [f"const int64 sample = i / {width}; int64 j = i % {width}, axis = 0;"]
        lines += [f"if (axis == {k} && j >= {length}) {{ j -= {length}; axis = {k + 1}; }}" for k, length in enumerate(made)]
        for name, values in (("length", lengths), ("cropped", made), ("of_axis", numbers)):
            lines.append(f"const int64 {name} = {_chosen(values)};")
        lines.append(f"const uint64 element = sample * {n_axes} + axis;")
        lines.append("const uint32 word = philox(key, element / 4).lane[element % 4]; int64 place;")
        lines += [self._position, "source[i] = place;"]
        parameters = ["const int64 n", "const uint64* key", "int64* source", "const int64 border"]
        border = _BORDERS.index(str(call.args.get("border_mode", "nearest")))
        body = f"  {_LOOP} {{\n    " + "\n    ".join(lines) + "\n  }"
        code = generated(f"{call.spec.api}_positions", parameters, body, "float", part("philox.cuh"))
        return [flat(code, n, [np.int64(n), 3, 2, np.int64(border)])]


def _chosen(values: Sequence[int]) -> str:
    """Return the value that belongs to the number `axis`."""
    return " : ".join([*[f"axis == {k} ? int64({value})" for k, value in enumerate(values[:-1])], f"int64({values[-1]})"])


def _read(call: Call, lengths: Shape, made: Shape, fill: float, *, fault: str) -> Program:
    """Return the program that reads samples of `lengths` at the positions in `source`; -1 gives `fill`."""
    numbers: dict[str, int | float] = {"width": sum(made), "fill": fill}
    lines, index, is_out = [], "int64(i0)", []
    for axis, length in enumerate(lengths):
        numbers |= {f"length{axis}": length, f"first{axis}": sum(made[:axis])}
        lines.append(f"const int64 p{axis} = source[int64(i0) * width + first{axis} + i{axis + 1}];")
        index = f"({index} * length{axis} + p{axis})"
        is_out.append(f"p{axis} < 0")
    if fault:
        beyond = " : ".join([*[f"p{axis} >= length{axis} ? p{axis}" for axis in range(len(lengths))], "int64(-1)"])
        lines.append(f"const int64 beyond = {beyond};")
        lines.append("if (beyond >= 0) { spoil(y[i]); tell(fault, fault_number, beyond); continue; }")
    lines.append(f"if ({' || '.join(is_out) or 'false'}) store(y[i], fill); else y[i] = x[{index}];")
    n_samples = call.outputs[0].size // max(math.prod(made), 1)
    statement = "\n    ".join(lines)
    return located(call, "axes_read", (n_samples, *made), statement, numbers, functions=NOTHING, fault=fault)


class GatherAxes:
    """Samples read at given positions of their axes."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        lengths, made = _given(call, 0).shape[_integer(call, "base_axis") :], call.args["shape"]
        assert isinstance(made, tuple)
        return _read(call, lengths, tuple(map(int, made)), 0.0, fault=_fault(call, lengths))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


class ScatterAxes(GatherAxes):
    """The transpose: each element is the sum of what was read from it, in order."""

    def forward(self, call: Call) -> Runner:
        """One launch, whose threads look for the position of their element."""
        made, lengths = _given(call, 0).shape[_integer(call, "base_axis") :], call.args["shape"]
        assert isinstance(lengths, tuple)
        numbers: dict[str, int | float] = {"width": sum(made)}
        checks, loops, index = [], [], "int64(i0)"
        for axis, (length, n) in enumerate(zip(lengths, made, strict=True)):
            numbers |= {f"length{axis}": int(length), f"made{axis}": n, f"first{axis}": sum(made[:axis])}
            own = f"source[int64(i0) * width + first{axis} + j{axis}]"
            loop = f"for (int64 j{axis} = 0; j{axis} < made{axis}; ++j{axis})"
            checks.append(f"  {loop} if ({own} >= length{axis}) tell(fault, fault_number, {own});")
            loops.append(f"{loop} if ({own} == int64(i{axis + 1}))")
            index = f"({index} * made{axis} + j{axis})"
        is_first = " && ".join([f"i{axis + 1} == 0" for axis in range(len(made))]) or "false"
        lines = [f"if ({is_first}) {{", *checks, "}", "R a = 0;", *loops, f"  a += R(load(dy[{index}]));", "store(dx[i], a);"]
        frame = (call.outputs[0].size // max(math.prod(lengths), 1), *lengths)
        fault = _fault(call, tuple(map(int, lengths)))
        return located(call, "axes_scattered", frame, "\n    ".join(lines), numbers, fault=fault)


def _fault(call: Call, lengths: Shape) -> str:
    """Return the message for a position beyond an axis."""
    return beyond_length(call.spec.api, "source", *lengths)


class RandomErase:
    """Patches of each sample with new values."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Return a launch each for the patches, for what is kept, and for the new values."""
        x, kept, args = _given(call, 0), call.outputs[1], call.args
        is_last, share = bool(args["channel_last"]), bool(args["share"])
        sample = x.shape[_integer(call, "base_axis") :]
        channels, height, width = (sample[2], *sample[:2]) if is_last else sample
        n_samples, own = x.size // max(math.prod(sample), 1), 1 if share else channels
        count = _integer(call, "n")
        n_patches = n_samples * count * own
        if x.size == 0:
            return SeededProgram([], 4)
        ranges = [float(limit) for name in ("area_ratios", "aspect_ratios") for limit in _pair(call, name)]
        doubles = [np.float64(number) for number in (args["prob"], *ranges, height, width)]  # type: ignore[arg-type]
        replacements = [np.float64(limit) for limit in _pair(call, "replacements")]
        numbers = [kept.size, own, height, width, count, is_last]
        launches = [_flat("erase_patches", call, n_patches, [np.int64(n_patches), 3, *doubles, 4])] if n_patches else []
        launches.append(_flat("erase_kept", call, kept.size, [*map(np.int64, numbers), 4, 2]))
        numbers = [channels, height * width, share, is_last]
        arguments = [np.int64(x.size), 3, *map(np.int64, numbers), *replacements, 0, 2, 1]
        launches.append(_flat("erase_replace", call, x.size, arguments))
        return SeededProgram(launches, 4, [((max(4 * n_patches, 1),), "float64")])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


class ImageAugmentation:
    """Images zoomed, turned, bent, flipped, cut out, and with other contrast, brightness and noise."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Return a launch for what is drawn for samples and channels, and one for the pixels."""
        x, y, args = _given(call, 0), call.outputs[0], dict[str, Any](call.args)
        channels, height, width = x.shape[-3:]
        out_height, out_width = y.shape[-2:]
        n_images = math.prod(x.shape[:-2])
        if y.size == 0:
            return SeededProgram([], 3)
        sizes = [height, width, out_height, out_width]
        logs = [math.log(args[name]) for name in ("min_scale", "max_scale", "aspect_ratio")]
        doubles = [*sizes, *args["pad"], *logs, args["angle"], args["distortion"]]
        drawing: list[Argument] = [np.int64(n_images), 2, np.int64(channels), *map(np.float64, doubles)]
        drawing += [np.int64(args["flip_ud"]), np.int64(args["flip_lr"])]
        drawing += [np.float64(math.log(args["contrast"])), np.int64(args["contrast_each"])]
        drawing += [np.float64(args["brightness"]), np.int64(args["brightness_each"]), 3, 4]
        pixels: list[Argument] = [np.int64(y.size), 2, np.int64(channels), *map(np.int64, sizes)]
        pixels += [np.float64(args["contrast_center"]), np.float64(args["noise"]), 0, 3, 4, 1]
        launches = [_flat("augment_drawn", call, n_images, drawing), _flat("augment", call, y.size, pixels)]
        scratch = [((_GEOMETRY * n_images // channels,), "float64"), ((2 * n_images,), "float64")]
        return SeededProgram(launches, 3, scratch)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: there is no gradient."""
        return None


#: Numbers of the struct Geometry of augmenting.cu.
_GEOMETRY: Final = 7


def _flat(function: str, call: Call, n: int, arguments: Sequence[Argument]) -> Launch:
    """Return a launch of a function of augmenting.cu."""
    types = {"T": C_TYPES[call.dtype]}
    code = from_file("augmenting.cu", function, real_type(call.dtype), before=("philox.cuh",), **types)
    return flat(code, n, arguments)


def _given(call: Call, place: int) -> ArrayDesc:
    desc = call.inputs[place]
    assert desc is not None
    return desc


def _integer(call: Call, name: str) -> int:
    number = call.args[name]
    assert isinstance(number, int)
    return number


def _pair(call: Call, name: str) -> tuple[float, float]:
    pair = call.args[name]
    assert isinstance(pair, tuple)
    low, high = pair
    return float(low), float(high)


def _limits(call: Call, x: Shape) -> list[int]:
    """Return the largest shift of each axis; short settings belong to the last axes."""
    shifts = call.args["shifts"]
    assert isinstance(shifts, tuple)
    return [0] * (len(x) - len(shifts)) + [int(shift) for shift in shifts]


def _of_sample(numbers: Sequence[int], call: Call) -> Sequence[int]:
    return numbers[_integer(call, "base_axis") :]


def _flipped(call: Call, x: Shape) -> list[int]:
    """1 for each axis that may be flipped."""
    axes = call.args["axes"]
    assert isinstance(axes, tuple)
    return [int(axis in axes) for axis in range(len(x))]


def _crops_batch(call: Call) -> bool:
    base_axis = _integer(call, "base_axis")
    return call.outputs[0].shape[:base_axis] != _given(call, 0).shape[:base_axis]


#: Random words as numbers below n; see `below` in the reference of every backend's numbers.
_CROP: Final = "place = int64((uint64(word) * uint64(length - cropped + 1)) >> 32) + j;"
_FLIP: Final = "place = of_axis && (word >> 31) ? length - 1 - j : j;"
_SHIFT: Final = """\
place = j - (int64((uint64(word) * uint64(2 * of_axis + 1)) >> 32) - of_axis);
    if (border == 0) place = place < 0 ? 0 : place >= length ? length - 1 : place;
    if (border == 1) {
      place = (place % (2 * length) + 2 * length) % (2 * length);
      if (place >= length) place = 2 * length - 1 - place;
    }
    if (border == 2 && (place < 0 || place >= length)) place = -1;"""

AUGMENTING: Final[Mapping[str, Kernel]] = {
    "GatherAxes": GatherAxes(),
    "ImageAugmentation": ImageAugmentation(),
    "RandomCrop": Sourced(_CROP, lambda call, x: _of_sample(x, call), _crops_batch),
    "RandomErase": RandomErase(),
    "RandomFlip": Sourced(
        _FLIP,
        lambda call, x: _of_sample(_flipped(call, x), call),
        lambda call: any(_flipped(call, _given(call, 0).shape)[: _integer(call, "base_axis")]),
    ),
    "RandomShift": Sourced(
        _SHIFT,
        lambda call, x: _of_sample(_limits(call, x), call),
        lambda call: any(_limits(call, _given(call, 0).shape)[: _integer(call, "base_axis")]),
    ),
    "ScatterAxes": ScatterAxes(),
}
