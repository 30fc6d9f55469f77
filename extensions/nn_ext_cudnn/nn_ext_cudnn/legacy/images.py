"""Images in the terms of cuDNN: lengths and strides of (batch, channels, two or three spatial axes)."""

import math
from dataclasses import dataclass

from nn_core.ext import ArrayDesc, Shape
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES
from nn_ext_cudnn.legacy.descriptors import Descriptor, contiguous, tensor


@dataclass(frozen=True, slots=True)
class Image:
    """An array as images.

    Attributes:
        dims: Lengths of (N, C, D, H, W), D only where there are three spatial axes.
        strides: Elements from one index to the next on each of these axes.
        dtype: The dtype of its elements.
    """

    dims: Shape
    strides: Shape
    dtype: str

    @property
    def is_matrix(self) -> bool:
        """Whether images have one place each."""
        return math.prod(self.dims[2:]) == 1

    @property
    def layout(self) -> str:
        """The innermost axis: "channels_first", "channels_last", or "either" where there is only one to choose."""
        if self.dims[1] == 1 or self.is_matrix:
            return "either"
        return "channels_last" if self.strides[1] == 1 else "channels_first"

    def lies_as(self, other: "Image") -> bool:
        """Return whether both have the same layout in memory."""
        return self.layout == other.layout or "either" in (self.layout, other.layout)

    def descriptor(self) -> Descriptor:
        """Return the tensor of cuDNN."""
        return tensor(self.dtype, self.dims, self.strides)


def image(desc: ArrayDesc, n_spatial: int, *, channel_last: bool = False) -> Image:
    """Return an array whose last axes, or those before the channels, are `n_spatial` spatial ones, as images.

    Of the axes before the spatial ones the last are the channels and the others the batch; a single spatial axis
    becomes the second of two.

    Args:
        desc: The array; its memory is C-contiguous, or channels-last where it has two axes before the spatial ones.
        n_spatial: Number of spatial axes, one to three.
        channel_last: Whether the last axis of the array is the channels.
    """
    shape = desc.shape
    if channel_last:
        first = len(shape) - n_spatial - 1
        spatial, channels = shape[first:-1], shape[-1]
        batch = math.prod(shape[:first])
    else:
        first = len(shape) - n_spatial
        spatial, channels = shape[first:], shape[first - 1] if first else 1
        batch = math.prod(shape[: max(first - 1, 0)])
    innermost = channel_last or _is_channels_last(desc)
    spatial = (1, *spatial) if n_spatial == 1 else spatial
    return Image((batch, channels, *spatial), _strides(batch, channels, spatial, innermost=innermost), desc.dtype)


def channels_last(desc: ArrayDesc) -> ArrayDesc:
    """`desc` with its second axis innermost in memory."""
    batch, n_channels, *spatial = desc.shape
    outer, *inner, last = contiguous((batch, *spatial, n_channels))
    size = ITEM_BYTES[desc.dtype]
    return ArrayDesc(desc.shape, desc.dtype, tuple(size * step for step in (outer, last, *inner)))


def _strides(batch: int, channels: int, spatial: Shape, *, innermost: bool) -> Shape:
    if not innermost:
        return contiguous((batch, channels, *spatial))
    outer, *inner, last = contiguous((batch, *spatial, channels))
    return (outer, last, *inner)


def _is_channels_last(desc: ArrayDesc) -> bool:
    return desc.strides is not None and desc.strides[1] == ITEM_BYTES[desc.dtype] and desc.shape[1] > 1
