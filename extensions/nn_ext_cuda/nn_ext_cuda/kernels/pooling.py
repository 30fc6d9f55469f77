"""Poolings over windows, and over whole images."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.code import Code, part
from nn_ext_cuda.codegen.describe import backward_arrays, forward_arrays
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES, real_type, refuse_dtypes
from nn_ext_cuda.kernels.reduction import GLOBAL_AVERAGE
from nn_ext_cuda.launch.program import Argument, Launch, Program, flat

_MODES: Final[Mapping[str, int]] = {"maximum": 0, "sum": 1, "average": 2}


class Pooling:
    """A pooling over windows of up to three axes.

    Args:
        mode: maximum, sum or average.
        layout: "contiguous", or "channels_last" where the windows cover all axes after the channels.
    """

    def __init__(self, mode: str, layout: str = "contiguous") -> None:
        self._mode = _MODES[mode]
        self._layout = layout

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and more than three axes."""
        n_axes = len(_ints(call, "kernel"))
        return Refusal(f"takes windows of up to 3 axes, got {n_axes}") if n_axes > 3 else refuse_dtypes(call)

    def layout(self, call: Call) -> str:
        """Return the layout that was chosen for the table."""
        rank, covered = len(call.outputs[0].shape), len(_ints(call, "kernel"))
        return self._layout if rank == covered + 2 and not call.args["channel_last"] else "contiguous"

    def forward(self, call: Call) -> Runner:
        """One thread for each element of y."""
        x = call.inputs[0]
        assert x is not None
        launches = _Launches(call, self._mode, x, call.outputs[0])
        return Program(launches.one("pooling", (0, 1), call.outputs[0].size), len(forward_arrays(call)))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One thread for each element of dx; for maxima, or for several of them, after a launch that finds these."""
        x, n_arrays = call.inputs[0], len(backward_arrays(call, wanted))
        assert x is not None
        launches = _Launches(call, self._mode, x, call.outputs[0])
        if self._mode == _MODES["maximum"]:
            return launches.of_maxima(0, 2, 3, n_arrays)
        return Program(launches.one("pooling_backward", (2, 3), x.size), n_arrays)


class OfMaxima:
    """The part that gradients of the maximum pooling are made of; each is the transpose, and so the gradient, of the other.

    Args:
        gathers: Read a value at the place of each maximum, rather than add one there.
    """

    def __init__(self, *, gathers: bool) -> None:
        self._gathers = gathers

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and more than three axes."""
        n_axes = len(_ints(call, "kernel"))
        return Refusal(f"takes windows of up to 3 axes, got {n_axes}") if n_axes > 3 else refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch over the arrays values, keys, result."""
        return self._program(call, 3, (0, 1, 2), gathers=self._gathers)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the other of the two; the keys have no gradient."""
        return self._program(call, 6, (3, 1, 4), gathers=not self._gathers) if not wanted[1] else None

    def _program(self, call: Call, n_arrays: int, places: tuple[int, int, int], *, gathers: bool) -> Runner:
        values, keys = call.inputs
        assert values is not None and keys is not None
        windows = call.outputs[0] if self._gathers else values
        given, key, result = places
        launches = _Launches(call, _MODES["maximum"], keys, windows)
        if gathers:
            return Program(launches.one("pooling_gather", (key, given, result), windows.size), n_arrays)
        return launches.of_maxima(key, given, result, n_arrays)


class _Launches:
    """Launches of the functions of ``pooling.cu``.

    Args:
        call: The call.
        mode: A value of _MODES.
        x: What is pooled.
        y: An element a window.
    """

    def __init__(self, call: Call, mode: int, x: ArrayDesc, y: ArrayDesc) -> None:
        self._dtype, self._mode, self._x, self._y = call.dtype, mode, x, y
        self._geometry = geometry(call, x, y)
        self._n_numbers = math.prod(_ints(call, "kernel"))

    def one(self, function: str, places: Sequence[int], n: int, pack: int = 1) -> list[Launch]:
        """One launch with a thread for each pack of `n` elements, or none; `places` are those of the arrays."""
        # twice as much for windows that begin before an image, and end after it
        is_short = max(self._x.size, self._y.size, *(abs(number) for number in self._geometry)) < 2**29
        types = {"T": C_TYPES[self._dtype], "Index": "int" if is_short else "int64", "Number": C_TYPES[self._number]}
        header = "".join(f"typedef {c_type} {name};\n" for name, c_type in types.items())
        text = f"#define MODE {self._mode}\n#define PACK {pack}\n{header}{part('pooling.cu')}"
        numbers = map(np.int32 if is_short else np.int64, self._geometry)
        arguments: list[Argument] = [*numbers, *places]
        return [flat(Code(function, text, real_type(self._dtype)), n // pack, arguments)] if n else []

    def of_maxima(self, keys: int, dy: int, dx: int, n_arrays: int) -> Program:
        """Return the launches that find the first maximum of each window of `keys`, and add dy there."""
        pack, scratch = self._pack(), [(self._y.shape, self._number)]
        found = self.one("pooling_first_maxima", (keys, n_arrays), self._y.size, pack)
        return Program([*found, *self.one("pooling_of_maxima", (n_arrays, dy, dx), self._x.size, pack)], n_arrays, scratch)

    @property
    def _number(self) -> str:
        """The dtype of numbers of elements of a window, and of -1, which is the largest number of a byte."""
        return "uint8" if self._n_numbers < 255 else "int32"

    def _pack(self) -> int:
        """Return number of channels that a thread takes: 16 bytes, if that is a part of channels that are neighbours in
        memory.
        """
        channels, per_channel = self._geometry[1], {self._geometry[-5], self._geometry[-2]}
        pack = 16 // ITEM_BYTES[self._dtype]
        return pack if per_channel == {1} and channels % pack == 0 else 1


def geometry(call: Call, x: ArrayDesc, y: ArrayDesc) -> list[int]:
    """Return the numbers that ``pooling.cu`` takes before the arrays; x is what is pooled, y has an element a window."""
    kernel = _ints(call, "kernel")
    inner = 1 if call.args["channel_last"] else 0
    first = len(x.shape) - len(kernel) - inner
    numbered = first == 2 and not inner  # channels are an axis of their own, whatever their layout in memory
    channels = x.shape[-1] if inner else x.shape[1] if numbered else 1
    batch = x.shape[0] if numbered else math.prod(x.shape[:first])

    def spatial(values: Sequence[int], otherwise: int) -> list[int]:
        return [otherwise] * (3 - len(values)) + list(values)

    def walk(desc: ArrayDesc) -> list[int]:
        """Elements from one batch index, channel and place to the next."""
        image = math.prod(desc.shape[first : first + len(kernel)])
        if inner:
            return [image * channels, 1, channels]
        if not numbered:
            return [image, 0, 1]
        if desc.strides is not None and desc.strides[1] == ITEM_BYTES[desc.dtype] and channels > 1:
            return [image * channels, 1, channels]
        return [image * channels, image, 1]

    lengths = x.shape[first : first + len(kernel)]
    counts = y.shape[first : first + len(kernel)]
    numbers = [batch, channels, *spatial(lengths, 1), *spatial(counts, 1), *spatial(kernel, 1)]
    numbers += [*spatial(_ints(call, "stride"), 1), *spatial(_ints(call, "pad"), 0)]
    return [*numbers, int(bool(call.args.get("including_pad", True))), *walk(x), *walk(y)]


def _ints(call: Call, name: str) -> tuple[int, ...]:
    value = call.args[name]
    assert isinstance(value, tuple)
    return tuple(int(item) for item in value)


POOLING: Final[Mapping[str, Kernel]] = {
    "MaxPoolingBackward": OfMaxima(gathers=False),
    "MaxPoolingGather": OfMaxima(gathers=True),
    "MaxPooling": Pooling("maximum"),
    "SumPooling": Pooling("sum"),
    "AveragePooling": Pooling("average"),
    "GlobalAveragePooling": GLOBAL_AVERAGE,
}
