"""Convolutions and deconvolutions in one to three spatial dimensions."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.axes import base_axis_of
from nn_ext_cpu.describe import FLOATING, NUMBERS, backward_arrays, forward_arrays, refuse_dtypes, refuse_empty, strides_of

#: Places of the arrays in a backward call: x, weight, bias, y, dy, dx, dweight, dbias.
_IMAGES: Final = (0, 3, 4, 5)
_WEIGHTS: Final = (1, 6)
#: oneDNN counts the places along an axis in 32 bits.
_END: Final = 2**31


class ConvolutionKernel:
    """A convolution by oneDNN or as a matrix product; images are channels-last in memory where the plan allows it.

    Args:
        operation: Name of the native operation.
        depthwise: Weights have no axis of input channels, and the group is this function of the arguments and the
            number of channels of x.
        taken: The dtypes that the operation computes in; float64 as a matrix product.
    """

    def __init__(
        self,
        operation: str,
        depthwise: Callable[[Mapping[str, Any], int], int] | None = None,
        taken: Sequence[str] = NUMBERS,
    ) -> None:
        self._operation = operation
        self._taken = taken
        self._depthwise = depthwise

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, more than three spatial dimensions, empty arrays, and what oneDNN cannot count."""
        x = call.inputs[0]
        assert x is not None
        n_spatial = len(x.shape) - base_axis_of(call) - 1
        if not 1 <= n_spatial <= 3:
            return Refusal(f"takes one to three spatial dimensions, got {n_spatial}")
        longest = max(max(call.args[name]) for name in ("pad", "stride", "dilation"))  # type: ignore[arg-type]
        if max(x.shape) + 2 * longest >= _END:
            return Refusal(f"takes padded lengths, strides and dilations below 2**31, got {longest}")
        return refuse_empty(call) or refuse_dtypes(call, self._taken)

    def layout(self, call: Call) -> str:
        """Channels-last where the channel axis is the second."""
        return "channels_last" if base_axis_of(call) == 1 and not _is_channel_last(call) else "contiguous"

    def forward(self, call: Call) -> Runner:
        """Prepare the convolution and its bias."""
        return self._prepared(call, self._operation, forward_arrays(call))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradients; None for the bias alone, which is a sum."""
        if wanted[2] and not wanted[1]:
            return None
        return self._prepared(call, f"{self._operation}_backward", backward_arrays(call, wanted))

    def _prepared(
        self,
        call: Call,
        operation: str,
        arrays: Sequence[ArrayDesc | None],
        images: Sequence[int] = _IMAGES,
        weights: Sequence[int] = _WEIGHTS,
        **settings: float,
    ) -> Runner:
        channel_last = _is_channel_last(call)
        x = call.inputs[0]
        assert x is not None
        group = int(call.args.get("group", 1))  # type: ignore[arg-type]  # an int by the specification
        if self._depthwise is not None:
            group = self._depthwise(call.args, x.shape[base_axis_of(call)])
        views = list(arrays)
        for position, desc in enumerate(arrays):
            if desc is not None and position in images:
                views[position] = image(desc, base_axis_of(call), channel_last)
            if desc is not None and position in weights:
                views[position] = _weight(desc, channel_last, depthwise=self._depthwise is not None)
        pad = call.args["pad"]
        runner: Runner = _native.prepare(
            operation,
            arrays,
            views=views,
            stride=call.args["stride"],
            dilation=call.args["dilation"],
            pad=pad,
            pad_end=pad,
            group=group,
            **settings,
        )
        return runner


class JoinedConvolution(ConvolutionKernel):
    """A convolution with the normalization by running statistics, addition and activation that follow it, for inference."""

    def __init__(self) -> None:
        super().__init__("joined_convolution", taken=FLOATING)

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse training, other borders than zeros, and other activations than relu."""
        args, (_, _, _, beta, gamma, mean, variance, _) = call.args, call.inputs
        statistics = [mean is None, variance is None]
        if args["batch_stat"] and not all(desc is None for desc in (beta, gamma, mean, variance)):
            return Refusal("normalizes by running statistics only, got batch_stat=True")
        if any(statistics) and not all(desc is None for desc in (beta, gamma, mean, variance)):
            return Refusal("takes parameters of a normalization with mean and variance, got one without")
        if args["nonlinearity"] not in ("identity", "relu"):
            return Refusal(f"takes the nonlinearities identity and relu, got {args['nonlinearity']}")
        if args["pad_mode"] != "constant" or args["constant_value"] != 0:
            return Refusal(f"pads with zeros, got {args['pad_mode']} and {args['constant_value']}")
        return super().refuse(call)

    def forward(self, call: Call) -> Runner:
        """Prepare everything as one operation."""
        settings = {"eps": float(call.args["eps"]), "relu": call.args["nonlinearity"] == "relu"}  # type: ignore[arg-type]
        return self._prepared(call, "joined_convolution", forward_arrays(call), images=(0, 7, 8), weights=(1,), **settings)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the gradient rule."""
        return None


def _is_channel_last(call: Call) -> bool:
    return bool(call.args.get("channel_last", False))


def image(desc: ArrayDesc, base_axis: int, channel_last: bool = False) -> ArrayDesc:
    """Return the array as (batch, channels, spatial axes)."""
    if desc.strides is not None:
        return desc
    flat = ArrayDesc((math.prod(desc.shape[:base_axis]), *desc.shape[base_axis:]), desc.dtype)
    return _channels_first(flat) if channel_last else flat


def _weight(desc: ArrayDesc, channel_last: bool, *, depthwise: bool) -> ArrayDesc:
    """Return the array as (filters, channels, kernel axes)."""
    if depthwise:
        strides = strides_of(desc)
        return ArrayDesc((desc.shape[0], 1, *desc.shape[1:]), desc.dtype, (strides[0], strides[0], *strides[1:]))
    return _channels_first(desc) if channel_last else desc


def _channels_first(desc: ArrayDesc) -> ArrayDesc:
    """Return the same memory with the last axis moved to the second place."""
    shape, strides = desc.shape, strides_of(desc)
    return ArrayDesc((shape[0], shape[-1], *shape[1:-1]), desc.dtype, (strides[0], strides[-1], *strides[1:-1]))


_TABLE: Final[Mapping[str, Kernel]] = {
    "Convolution": ConvolutionKernel("convolution"),
    "Deconvolution": ConvolutionKernel("deconvolution"),
    "FusedConvolution": JoinedConvolution(),
    "DepthwiseConvolution": ConvolutionKernel("convolution", depthwise=lambda args, channels: channels),
    "DepthwiseDeconvolution": ConvolutionKernel(
        "deconvolution", depthwise=lambda args, channels: channels // int(args["divisor"])
    ),
}

#: Fusions of a convolution with its neighbours consist of oneDNN's operations alone.
_NEEDS_ONEDNN: Final = frozenset({"FusedConvolution"})

CONVOLUTION: Final[Mapping[str, Kernel]] = {
    name: kernel for name, kernel in _TABLE.items() if _native.has_onednn() or name not in _NEEDS_ONEDNN
}
