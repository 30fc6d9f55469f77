"""Poolings over windows, and over whole images."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.code import Code, part
from nn_ext_cuda.describe import backward_arrays, forward_arrays
from nn_ext_cuda.dtypes import C_TYPES, ITEM_BYTES, real_type, refuse_dtypes
from nn_ext_cuda.kernels.reduction import GLOBAL_AVERAGE
from nn_ext_cuda.launch import Argument, Program, flat

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
        """The layout that was chosen for the table."""
        rank, covered = len(call.outputs[0].shape), len(_ints(call, "kernel"))
        return self._layout if rank == covered + 2 and not call.args["channel_last"] else "contiguous"

    def forward(self, call: Call) -> Runner:
        """One thread for each element of y."""
        return self._program(call, "pooling", forward_arrays(call), (0, 1), call.outputs[0].size)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One thread for each element of dx."""
        x = call.inputs[0]
        assert x is not None
        return self._program(call, "pooling_backward", backward_arrays(call, wanted), (0, 2, 3), x.size)

    def _program(
        self, call: Call, function: str, arrays: Sequence[ArrayDesc | None], places: tuple[int, ...], n: int
    ) -> Runner:
        x = call.inputs[0]
        assert x is not None
        return pooling_program(call, function, self._mode, len(arrays), x, call.outputs[0], places, n)


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
        """The other of the two; the keys have no gradient."""
        return self._program(call, 6, (3, 1, 4), gathers=not self._gathers) if not wanted[1] else None

    def _program(self, call: Call, n_arrays: int, places: tuple[int, int, int], *, gathers: bool) -> Runner:
        values, keys = call.inputs
        assert values is not None and keys is not None
        windows = call.outputs[0] if self._gathers else values
        given, key, result = places
        order = (key, given, result)
        function, n = ("pooling_gather", windows.size) if gathers else ("pooling_backward", keys.size)
        return pooling_program(call, function, _MODES["maximum"], n_arrays, keys, windows, order, n)


def pooling_program(
    call: Call,
    function: str,
    mode: int,
    n_arrays: int,
    x: ArrayDesc,
    y: ArrayDesc,
    places: tuple[int, ...],
    n: int,
) -> Program:
    """One launch of a function of ``pooling.cu`` with a thread for each of `n` elements."""
    header = f"#define MODE {mode}\ntypedef {C_TYPES[call.dtype]} T;\n"
    code = Code(function, f"{header}{part('pooling.cu')}", real_type(call.dtype))
    arguments: list[Argument] = [*map(np.int64, geometry(call, x, y)), *places]
    return Program([flat(code, n, arguments)] if n else [], n_arrays)


def geometry(call: Call, x: ArrayDesc, y: ArrayDesc) -> list[int]:
    """The numbers that ``pooling.cu`` takes before the arrays; x is what is pooled, y has an element a window."""
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
