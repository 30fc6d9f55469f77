"""Poolings over windows of one to three axes.

The gradient of a maximum is left to nn_ext_cuda: cuDNN does not say which of several equal elements gets it, and wants
to read y, which the function does not keep. A sum is a mean times the size of a window.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.kernels.pooling import POOLING as CUDA_POOLING
from nn_ext_cudnn.legacy import api, descriptors
from nn_ext_cudnn.legacy.images import Image, image
from nn_ext_cudnn.legacy.recipe import At, LibraryCall, Recipe, number
from nn_ext_cudnn.legacy.refusal import refuse_arrays, refuse_failures
from nn_ext_cudnn.precision import prefers_channels_last

_MODES: Final[Mapping[str, api.Pooling]] = {
    "MaxPooling": api.Pooling.MAX,
    "SumPooling": api.Pooling.AVERAGE_WITH_PADDING,
    "AveragePooling": api.Pooling.AVERAGE_WITH_PADDING,
}


_CUDA_AVERAGE: Final = CUDA_POOLING["GlobalAveragePooling"]


class Pooling:
    """A pooling; which one, the function of the call says."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse more than three axes, windows that reach beyond the padded input, and what no function takes."""
        kernel, stride, pad = (_ints(call, name) for name in ("kernel", "stride", "pad"))
        if len(kernel) > 3:
            return Refusal(f"takes windows of up to 3 axes, got {len(kernel)}")
        refusal = refuse_arrays(call)
        if refusal is not None:
            return refusal
        x, y = (seen.dims[-len(kernel) :] for seen in _images(call))
        for length, count, size, step, edge in zip(x, y, kernel, stride, pad, strict=True):
            inside = (length + 2 * edge - size) // step + 1
            if count != inside:
                return Refusal(f"takes windows that end inside the padded input, {inside} on an axis, got {count}")
        return api.refuse_part("ops") or refuse_failures(lambda: self.forward(call))

    def layout(self, call: Call) -> str:
        """Channels-last where convolutions want it, if the windows cover all axes after the channels."""
        (x,) = call.inputs
        assert x is not None
        ordinary = len(x.shape) == len(_ints(call, "kernel")) + 2 and not call.args["channel_last"]
        return "channels_last" if ordinary and prefers_channels_last(call.dtype) else "contiguous"

    def forward(self, call: Call) -> Runner:
        """One call."""
        x, y = _images(call)
        if not x.lies_as(y):
            return CUDA_POOLING[call.spec.name].forward(call)
        pooling, factor = _pooling(call)
        zero = number(call.dtype, 0)
        arguments = [pooling, number(call.dtype, factor), x.descriptor(), At(0), zero, y.descriptor(), At(1)]
        return Recipe(
            call.spec.api,
            [LibraryCall(api.ops().cudnnPoolingForward, arguments)],
            2,
            otherwise=lambda: CUDA_POOLING[call.spec.name].forward(call),
        )

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One call for means and sums."""
        x, y = _images(call)
        cuda = CUDA_POOLING[call.spec.name]
        if call.spec.name == "MaxPooling" or not x.lies_as(y):
            return cuda.backward(call, wanted)
        pooling, factor = _pooling(call)
        x_tensor, y_tensor, zero = x.descriptor(), y.descriptor(), number(call.dtype, 0)
        # arrays are x, y (not kept), dy, dx; a mean does not read y, and dy replaces it
        arguments = [pooling, number(call.dtype, factor), y_tensor, At(2), y_tensor, At(2), x_tensor, At(0)]
        return Recipe(
            call.spec.api,
            [LibraryCall(api.ops().cudnnPoolingBackward, [*arguments, zero, x_tensor, At(3)])],
            4,
            otherwise=lambda: cuda.backward(call, wanted),
        )


class GlobalAveragePooling:
    """A mean over whole images by the kernel of nn_ext_cuda, in the layout in which they are."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what nn_ext_cuda refuses."""
        return _CUDA_AVERAGE.refuse(call)

    def layout(self, call: Call) -> str:
        """Channels-last for images where convolutions want it."""
        (x,) = call.inputs
        assert x is not None
        return "channels_last" if 3 <= len(x.shape) <= 5 and prefers_channels_last(call.dtype) else "contiguous"

    def forward(self, call: Call) -> Runner:
        """One launch, or two."""
        return _CUDA_AVERAGE.forward(call)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch."""
        return _CUDA_AVERAGE.backward(call, wanted)


def _pooling(call: Call) -> tuple[descriptors.Descriptor, float]:
    """Return the pooling of cuDNN, and by what its results are multiplied."""
    mode = _MODES[call.spec.name]
    if call.args.get("including_pad") is False:
        mode = api.Pooling.AVERAGE_WITHOUT_PADDING
    kernel, stride, pad = (_ints(call, name) for name in ("kernel", "stride", "pad"))
    factor = math.prod(kernel) if call.spec.name == "SumPooling" else 1
    if len(kernel) == 1:
        kernel, stride, pad = (1, *kernel), (1, *stride), (0, *pad)
    return descriptors.pooling(mode, kernel, pad, stride), factor


def _images(call: Call) -> tuple[Image, Image]:
    """x and y."""
    (x,), (y,) = call.inputs, call.outputs
    assert x is not None
    n_spatial, channel_last = len(_ints(call, "kernel")), bool(call.args["channel_last"])
    return image(x, n_spatial, channel_last=channel_last), image(y, n_spatial, channel_last=channel_last)


def _ints(call: Call, name: str) -> Shape:
    value: Any = call.args[name]
    return tuple(int(item) for item in value)


POOLING: Final[Mapping[str, Kernel]] = {
    **dict.fromkeys(_MODES, Pooling()),
    "GlobalAveragePooling": GlobalAveragePooling(),
}
