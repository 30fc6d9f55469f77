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
        layout: "contiguous", or "channels_last" where the windows cover all axes behind the channels.
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
        (x,) = call.inputs
        assert x is not None
        return self._program(call, "pooling_backward", backward_arrays(call, wanted), (0, 2, 3), x.size)

    def _program(
        self, call: Call, function: str, arrays: Sequence[ArrayDesc | None], places: tuple[int, ...], n: int
    ) -> Runner:
        header = f"#define MODE {self._mode}\ntypedef {C_TYPES[call.dtype]} T;\n"
        code = Code(function, f"{header}{part('pooling.cu')}", real_type(call.dtype))
        arguments: list[Argument] = [*map(np.int64, geometry(call)), *places]
        return Program([flat(code, n, arguments)] if n else [], len(arrays))


def geometry(call: Call) -> list[int]:
    """The numbers that ``pooling.cu`` takes before the arrays."""
    (x,), (y,) = call.inputs, call.outputs
    assert x is not None
    kernel = _ints(call, "kernel")
    inner = 1 if call.args["channel_last"] else 0
    first = len(x.shape) - len(kernel) - inner
    numbered = first == 2 and not inner  # channels are an axis of their own, wherever they lie in memory
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
    "MaxPooling": Pooling("maximum"),
    "SumPooling": Pooling("sum"),
    "AveragePooling": Pooling("average"),
    "GlobalAveragePooling": GLOBAL_AVERAGE,
}
