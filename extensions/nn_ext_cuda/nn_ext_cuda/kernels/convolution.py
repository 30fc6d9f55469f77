"""Convolutions and deconvolutions without cuDNN: columns and matrix products, direct sums for thin groups."""

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import Composition, refuse_images
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.fusion.adding import gradients
from nn_ext_cuda.kernels.convolution_products import Convolving
from nn_ext_cuda.launch.program import Chain


class Convolution:
    """y = weight * x + bias for any stride, dilation and group on up to three axes.

    Args:
        transposed: It is a deconvolution: y takes the place of the images, x that of the maps.
        depthwise: The weight has no axis for the channels of a group, because there is one.
    """

    def __init__(self, *, transposed: bool = False, depthwise: bool = False) -> None:
        self._transposed = transposed
        self._depthwise = depthwise

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, more than three axes, no elements, and very large arrays."""
        n_axes = len(_ints(call, "stride"))
        if n_axes > 3:
            return Refusal(f"takes up to 3 spatial axes, got {n_axes}")
        return refuse_images(call.inputs[0], call)

    def forward(self, call: Call) -> Runner:
        """Return maps from images, or images from maps."""
        geometry, n_arrays = self._geometry(call), len(forward_arrays(call))
        bias = None if call.inputs[2] is None else 2
        if self._transposed:
            return geometry.images(n_arrays, 0, 1, 3, bias)
        if bias is None or geometry.is_direct:
            return geometry.maps(n_arrays, 0, 1, 3, bias)
        composition = self._composition(call, forward_arrays(call), forward_names(call))
        composition.compute(f"{call.spec.api}_bias", {"y": "bias"})
        return Chain([composition.program(), geometry.maps(n_arrays, 0, 1, 3, bias)])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Each gradient is a product of the same family."""
        return gradients(partial(self._backward, call, wanted))

    def _backward(self, call: Call, wanted: Sequence[bool], added: Collection[int]) -> Runner | None:
        """Return the runner that adds the gradients at the places `added`; None for others than that of images."""
        if set(added) - {5} or (added and self._transposed):
            return None
        geometry, arrays = self._geometry(call), backward_arrays(call, wanted)
        n_arrays, runners = len(arrays), list[Runner]()
        if wanted[0] and self._transposed:
            runners.append(geometry.maps(n_arrays, 4, 1, 5, None))
        elif wanted[0]:
            runners.append(geometry.images(n_arrays, 4, 1, 5, None, adds=bool(added)))
        if wanted[1]:
            images, maps = (4, 0) if self._transposed else (0, 4)
            runners.append(geometry.gradient_of_filters(n_arrays, images, maps, 6))
        if wanted[2]:
            composition = self._composition(call, arrays, backward_names(call))
            composition.reduce(f"{call.spec.api}_backward_bias", "dbias", "dy")
            runners.append(composition.program())
        return Chain(runners)

    def _geometry(self, call: Call) -> Convolving:
        x, weight, y = call.inputs[0], call.inputs[1], call.outputs[0]
        assert x is not None and weight is not None
        images, maps = (y, x) if self._transposed else (x, y)
        base_axis = _base_axis(call)
        last = bool(call.args.get("channel_last", False))
        channels, lengths = _split(images.shape[base_axis:], last)
        filters, counts = _split(maps.shape[base_axis:], last)
        if self._depthwise:
            group, sizes = channels, weight.shape[1:]
        else:
            group, sizes = int(call.args["group"]), _split(weight.shape[1:], last)[1]  # type: ignore[arg-type]  # an int
        return Convolving(
            samples=math.prod(x.shape[:base_axis]),
            channels=channels,
            filters=filters,
            group=max(group, 1),
            lengths=lengths,
            counts=counts,
            sizes=sizes,
            strides=_ints(call, "stride"),
            pads=_ints(call, "pad"),
            dilations=_ints(call, "dilation"),
            channel_last=last,
            dtype=call.dtype,
        )

    def _composition(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        y, base_axis = call.outputs[0].shape, _base_axis(call)
        channel = len(y) - 1 if call.args.get("channel_last", False) else base_axis
        bias = tuple(length if axis == channel else 1 for axis, length in enumerate(y))
        return Composition(call, arrays, names, y, {"bias": bias, "dbias": bias})


def _split(shape: Shape, channel_last: bool) -> tuple[int, Shape]:
    """Return number of channels, and spatial lengths."""
    return (shape[-1], shape[:-1]) if channel_last else (shape[0], shape[1:])


def _base_axis(call: Call) -> int:
    value = call.args["base_axis"]
    assert isinstance(value, int)
    return value


def _ints(call: Call, name: str) -> tuple[int, ...]:
    value = call.args[name]
    assert isinstance(value, tuple)
    return tuple(map(int, value))


CONVOLUTION: Final[Mapping[str, Kernel]] = {
    "Convolution": Convolution(),
    "DepthwiseConvolution": Convolution(depthwise=True),
    "Deconvolution": Convolution(transposed=True),
    "DepthwiseDeconvolution": Convolution(transposed=True, depthwise=True),
}
