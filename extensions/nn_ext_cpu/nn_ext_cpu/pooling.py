"""Maxima, means and sums under windows."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cpu import _native
from nn_ext_cpu.describe import NUMBERS, backward_arrays, forward_arrays, refuse_dtypes, strides_of
from nn_ext_cpu.pointwise import Pointwise
from nn_ext_cpu.reduction import GLOBAL_AVERAGE


class Pooling:
    """A pooling over the last axes, or those before the channels.

    Args:
        operation: Name of the native operation.
        reads: Those of x, y, dy and dx (0 to 3) that the backward operation takes.
        mean: Divide by the number of elements of the window.
    """

    def __init__(self, operation: str, reads: Sequence[int], *, mean: bool = False) -> None:
        self._operation = operation
        self._reads = reads
        self._mean = mean

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, bfloat16 and float64, more than three spatial dimensions, and padding alone."""
        if not 1 <= _n_spatial(call) <= 3:
            return Refusal(f"takes one to three spatial dimensions, got {_n_spatial(call)}")
        x = call.inputs[0]
        assert x is not None
        if 0 in x.shape and 0 not in call.outputs[0].shape:
            return Refusal(f"takes windows of something, got padding alone around the shape {x.shape}")
        return refuse_dtypes(call, NUMBERS)

    def layout(self, call: Call) -> str:
        """Channels-last where the channel axis is the second."""
        x = call.inputs[0]
        assert x is not None
        ordinary = len(x.shape) == _n_spatial(call) + 2 and not call.args["channel_last"]
        return "channels_last" if ordinary else "contiguous"

    def forward(self, call: Call) -> Runner:
        """Prepare the pooling."""
        return self._prepared(call, self._operation, forward_arrays(call), [0, 1])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradient."""
        arrays = backward_arrays(call, wanted)
        return self._prepared(call, f"{self._operation}_backward", arrays, self._reads)

    def _prepared(self, call: Call, operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int]) -> Runner:
        settings: dict[str, Any] = {name: call.args[name] for name in ("kernel", "stride", "pad")}
        settings["mean"] = self._mean
        settings["counts_pad"] = bool(call.args.get("including_pad", True))
        views = [_image(arrays[place], _n_spatial(call), bool(call.args["channel_last"])) for place in places]
        runner: Runner = _native.prepare(operation, arrays, views=views, places=places, **settings)
        return runner


def _n_spatial(call: Call) -> int:
    kernel = call.args["kernel"]
    assert isinstance(kernel, tuple)
    return len(kernel)


def _image(desc: ArrayDesc | None, n_spatial: int, channel_last: bool) -> ArrayDesc | None:
    """Return the array as (batch, channels, spatial axes); axes before the windows are batch, one of them the channels."""
    assert desc is not None
    if len(desc.shape) == n_spatial + 2 and not channel_last:
        return desc
    if channel_last:
        split = len(desc.shape) - n_spatial - 1
        flat = ArrayDesc((math.prod(desc.shape[:split]), *desc.shape[split:]), desc.dtype)
        shape, strides = flat.shape, strides_of(flat)
        return ArrayDesc((shape[0], shape[-1], *shape[1:-1]), desc.dtype, (strides[0], strides[-1], *strides[1:-1]))
    split = len(desc.shape) - n_spatial
    return ArrayDesc((math.prod(desc.shape[:split]), 1, *desc.shape[split:]), desc.dtype)


def _unpooled(call: Call) -> dict[str, Shape]:
    """Return views in which each axis of y is two: that of x, and the repetition."""
    (x,), (y,) = call.inputs, call.outputs
    assert x is not None
    pairs = [(length, long // max(length, 1)) for length, long in zip(x.shape, y.shape, strict=True)]
    return {"x": tuple(n for length, _ in pairs for n in (length, 1)), "y": tuple(n for pair in pairs for n in pair)}


def _refuse_many_axes(call: Call) -> Refusal | None:
    ndim = len(call.outputs[0].shape)
    return Refusal(f"takes at most 8 axes, got {ndim}") if ndim > 8 else None


class Unpooling:
    """Each element repeated over a window; the gradient is the sum of it."""

    _repeat: Final = Pointwise("y = copy x", {"x": "dx = copy dy"}, views=_unpooled, refuse=_refuse_many_axes)

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, bfloat16 and float64, and more axes than a program takes."""
        return self._repeat.refuse(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the repetition."""
        return self._repeat.forward(call)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the sums; as a program where windows have other dimensions than pooling takes."""
        n_spatial, kernel = _n_spatial(call), call.args["kernel"]
        if not 1 <= n_spatial <= 3:
            return self._repeat.backward(call, wanted)
        arrays = backward_arrays(call, wanted)
        settings: dict[str, Any] = {"kernel": kernel, "stride": kernel, "pad": (0,) * n_spatial, "mean": False}
        views = [_image(arrays[place], n_spatial, bool(call.args["channel_last"])) for place in (2, 3)]
        runner: Runner = _native.prepare("sum_pooling", arrays, views=views, places=[2, 3], counts_pad=True, **settings)
        return runner


POOLING: Final[Mapping[str, Kernel]] = {
    "MaxPooling": Pooling("max_pooling", reads=[0, 2, 3]),
    "AveragePooling": Pooling("sum_pooling", reads=[2, 3], mean=True),
    "GlobalAveragePooling": GLOBAL_AVERAGE,
    "Unpooling": Unpooling(),
    "SumPooling": Pooling("sum_pooling", reads=[2, 3]),
}
