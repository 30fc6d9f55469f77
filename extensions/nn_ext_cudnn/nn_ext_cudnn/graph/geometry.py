"""Arrays as cuDNN sees them: (batch, channels, spatial axes) with strides in elements. No array is touched."""

import math
from dataclasses import dataclass, replace
from typing import Final

from nn_core.ext import ArrayDesc, Shape
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES
from nn_ext_cuda.codegen.layout import pitch
from nn_ext_cudnn.graph.operations import Tensor

#: cuDNN knows images of two and three spatial axes.
MIN_SPATIAL: Final = 2


@dataclass(frozen=True, slots=True)
class View:
    """An array with its axes in the order of cuDNN."""

    shape: Shape
    strides: tuple[int, ...]
    dtype: str

    def tensor(self, uid: int) -> Tensor:
        """Return the tensor."""
        return Tensor(uid, self.shape, self.strides, self.dtype)

    @property
    def is_channels_last(self) -> bool:
        """Whether the channels are innermost in memory, and there is something to tell them from."""
        return self.strides[1] == 1 and self.strides != pitch(self.shape)


def image(desc: ArrayDesc, base_axis: int, channel_last: bool) -> View:
    """Return an image: axes before `base_axis` are the batch; the channels follow them, or come last."""
    if desc.strides is not None:  # laid out by the engine: the batch is one axis
        return _spread(View(desc.shape, _steps(desc), desc.dtype))
    shape = (math.prod(desc.shape[:base_axis]), *desc.shape[base_axis:])
    view = View(shape, pitch(shape), desc.dtype)
    return _spread(_channels_second(view) if channel_last else view)


def filters(desc: ArrayDesc, channel_last: bool, *, depthwise: bool, like: View) -> View:
    """Return filters: (filters, channels of a group, window axes).

    Args:
        desc: The array.
        channel_last: The channels are its last axis.
        depthwise: It has no axis of channels.
        like: An image of the same call. Where the memory of the filters can be read in its order too, it is.
    """
    shape, steps = desc.shape, _steps(desc)
    if depthwise:
        shape, steps = (shape[0], 1, *shape[1:]), (steps[0], steps[0], *steps[1:])
    view = View(shape, steps, desc.dtype)
    view = _spread(_channels_second(view) if channel_last else view)
    if like.is_channels_last and desc.strides is None and (view.shape[1] == 1 or math.prod(view.shape[2:]) == 1):
        return replace(view, strides=channels_last_strides(view.shape))
    return view


def vector(desc: ArrayDesc, rank: int) -> View:
    """One number for each channel, as an image of `rank` axes."""
    (n,) = desc.shape
    return View((1, n, *(1,) * (rank - 2)), (n, 1, *(n,) * (rank - 2)), desc.dtype)


def channels_last_strides(shape: Shape) -> tuple[int, ...]:
    """Strides in elements of a dense array whose second axis is innermost in memory."""
    batch, *spatial, channel = pitch((shape[0], *shape[2:], shape[1]))
    return (batch, channel, *spatial)


def spatial(values: tuple[int, ...], otherwise: int) -> tuple[int, ...]:
    """Return a setting of each spatial axis, `otherwise` for an axis that was put in front."""
    return (otherwise,) * (MIN_SPATIAL - len(values)) + values


def _steps(desc: ArrayDesc) -> tuple[int, ...]:
    """Strides in elements."""
    if desc.strides is None:
        return pitch(desc.shape)
    return tuple(stride // ITEM_BYTES[desc.dtype] for stride in desc.strides)


def _channels_second(view: View) -> View:
    """Return the same memory with the last axis moved to the second place."""
    shape, strides = view.shape, view.strides
    return View((shape[0], shape[-1], *shape[1:-1]), (strides[0], strides[-1], *strides[1:-1]), view.dtype)


def _spread(view: View) -> View:
    """Return the same memory with spatial axes of length 1 in front until cuDNN knows such images."""
    missing = max(MIN_SPATIAL + 2 - len(view.shape), 0)
    step = view.shape[2] * view.strides[2] if missing else 0
    shape, strides = view.shape, view.strides
    return replace(
        view,
        shape=(*shape[:2], *(1,) * missing, *shape[2:]),
        strides=(*strides[:2], *(step,) * missing, *strides[2:]),
    )
