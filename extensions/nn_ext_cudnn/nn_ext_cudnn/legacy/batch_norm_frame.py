"""A batch normalization in the terms of cuDNN: images whose channels have the statistics, and the kernels that take them."""

import ctypes
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Shape
from nn_ext_cuda.codegen.copies import Copies
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cudnn import handle, library
from nn_ext_cudnn.errors import CudnnError, NotSupportedError, is_final, one_line
from nn_ext_cudnn.legacy import api
from nn_ext_cudnn.legacy.descriptors import Descriptor, contiguous, parameters_of
from nn_ext_cudnn.legacy.images import Image, image

#: Modes in the order in which they are tried. Where images have one place each, a channel is an activation.
_OF_MATRICES: Final = (api.BatchNorm.PER_ACTIVATION, api.BatchNorm.SPATIAL)
_OF_CHANNELS_LAST: Final = (api.BatchNorm.SPATIAL_PERSISTENT, api.BatchNorm.SPATIAL)
_OF_OTHERS: Final = (api.BatchNorm.SPATIAL,)


@dataclass(frozen=True, slots=True)
class Training:
    """The needs of the functions of training: a mode and bytes of scratch memory, forward and backward."""

    mode: api.BatchNorm
    forward_bytes: int
    backward_bytes: int


def frame_of(desc: ArrayDesc, axes: Sequence[int]) -> Image:
    """Return an array as images whose channels are the neighbouring axes `axes`."""
    shape = desc.shape
    if tuple(axes) == (1,) and 3 <= len(shape) <= 5:
        return image(desc, len(shape) - 2)
    first, last = min(axes), max(axes) + 1
    dims = (math.prod(shape[:first]), math.prod(shape[first:last]), math.prod(shape[last:]), 1)
    return Image(dims, contiguous(dims), desc.dtype)


def modes(frame: Image) -> tuple[api.BatchNorm, ...]:
    """Return the modes for such images, best first."""
    if frame.is_matrix:
        return _OF_MATRICES
    return _OF_CHANNELS_LAST if frame.layout == "channels_last" else _OF_OTHERS


def tensors(frame: Image, mode: api.BatchNorm) -> tuple[Descriptor, Descriptor]:
    """Return the tensor of images, and that of their scales, shifts and statistics."""
    x = frame.descriptor()
    return x, parameters_of(x, mode)


def training(frame: Image) -> Training:
    """Return the first mode in which cuDNN trains on such images and keeps nothing from forward to backward.

    Raises:
        NotSupportedError: when there is none.
    """
    found = _training(library.library(), frame, int(cupy.cuda.Device().id))
    if isinstance(found, str):
        raise NotSupportedError(found)
    return found


@lru_cache(maxsize=1024)
def _training(source: object, frame: Image, device_id: int) -> Training | str:
    """Return the result for the current device, or why there is none."""
    reason = ""
    for mode in modes(frame):
        try:
            sizes = _sizes(frame, mode)
        except CudnnError as error:
            if is_final(error):
                raise
            reason = reason or one_line(error)
            continue
        if sizes[2] == 0:
            return Training(mode, *sizes[:2])
        reason = reason or f"mode {mode.name} keeps {sizes[2]} bytes from the forward pass, for which there is no place"
    return reason


def _sizes(frame: Image, mode: api.BatchNorm) -> tuple[int, int, int]:
    """Bytes of scratch memory forward and backward, and of what is kept in between."""
    functions, pointer = api.ops(), handle.current().pointer
    x, parameters = tensors(frame, mode)
    forward, backward, kept = (ctypes.c_size_t() for _ in range(3))
    start: tuple[Any, ...] = (pointer, mode, api.NORMALIZE_ONLY)
    functions.cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        *start, x, None, x, parameters, None, ctypes.byref(forward)
    )
    functions.cudnnGetBatchNormalizationBackwardExWorkspaceSize(
        *start, x, x, x, None, x, parameters, None, ctypes.byref(backward)
    )
    functions.cudnnGetBatchNormalizationTrainingExReserveSpaceSize(*start, None, x, ctypes.byref(kept))
    return forward.value, backward.value, kept.value


def as_matrix(call: Call) -> Call:
    """Return the same normalization of channels-last images, as rows of channels in contiguous memory."""
    x = call.inputs[0]
    assert x is not None
    n_channels = x.shape[1]
    rows = (x.size // n_channels, n_channels)

    def flat(desc: ArrayDesc | None) -> ArrayDesc | None:
        return None if desc is None else ArrayDesc(rows if desc.shape == x.shape else (1, n_channels), desc.dtype)

    return dataclasses.replace(
        call,
        args={**call.args, "axes": (1,)},
        inputs=tuple(map(flat, call.inputs)),
        outputs=tuple(desc for desc in map(flat, call.outputs) if desc is not None),
    )


def as_cuda(call: Call) -> Call:
    """Return the same normalization for nn_ext_cuda, which takes contiguous memory; all images have the layout of y."""
    axes = axes_of(call)
    is_last = _is_of_images(call) and frame_of(call.outputs[0], axes).layout == "channels_last"
    return as_matrix(call) if is_last else call


def is_of_one_layout(call: Call) -> bool:
    """Return whether all images have the layout of y."""
    if not _is_of_images(call):
        return True
    y, axes = call.outputs[0], axes_of(call)
    images = [desc for desc in call.inputs if desc is not None and desc.shape == y.shape]
    return all(frame_of(desc, axes).lies_as(frame_of(y, axes)) for desc in images)


def _is_of_images(call: Call) -> bool:
    return axes_of(call) == (1,) and 3 <= len(call.outputs[0].shape) <= 5


def rearranged(desc: ArrayDesc, places: tuple[int, int], n_arrays: int, *, to_last: bool) -> Any:
    """Return the copy of an image into the other layout, as a runner.

    Args:
        desc: The image.
        places: Numbers of its old and its new memory among the arrays.
        n_arrays: Number of arrays.
        to_last: Whether the channels become the innermost axis.
    """
    batch, n_channels, *spatial = desc.shape
    last = ArrayDesc((batch, *spatial, n_channels), desc.dtype)
    first = ArrayDesc(desc.shape, desc.dtype)
    arrays: list[ArrayDesc | None] = [None] * n_arrays
    source, target = places
    arrays[source], arrays[target] = (first, last) if to_last else (last, first)
    copies = Copies(arrays)
    turn: Shape = (0, *range(2, len(desc.shape)), 1) if to_last else (0, len(desc.shape) - 1, *range(1, len(desc.shape) - 1))
    copies.copy(source, copies.view(source).transpose(turn), target, copies.view(target))
    return copies.program()


def axes_of(call: Call) -> tuple[int, ...]:
    """Return the axes that have statistics of their own, in order."""
    axes: Any = call.args["axes"]
    return tuple(sorted(int(axis) for axis in axes))
