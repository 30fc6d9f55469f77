"""Descriptors of cuDNN: made once, destroyed when nobody holds them any more."""

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from nn_core.ext import Shape
from nn_ext_cudnn.legacy import api


class Descriptor:
    """An object of cuDNN by its pointer, which functions of cuDNN take as an argument.

    Args:
        create: Writes the pointer of a new object to its argument.
        destroy: Takes the pointer.
    """

    __slots__ = ("__weakref__", "_as_parameter_")  # ctypes passes the latter

    def __init__(self, create: Callable[[Any], object], destroy: Callable[[Any], object]) -> None:
        self._as_parameter_ = ctypes.c_void_p()
        create(ctypes.byref(self._as_parameter_))
        weakref.finalize(self, destroy, self._as_parameter_).atexit = False


def ints(values: Sequence[int]) -> Any:
    """Return an array of C ints."""
    return (ctypes.c_int * len(values))(*values)


def tensor(dtype: str, dims: Shape, strides: Shape | None = None) -> Descriptor:
    """Return a tensor of at least three axes.

    Args:
        dtype: Its dtype.
        dims: Its lengths, (N, C, ...).
        strides: Elements from one index to the next on each axis; C-contiguous if None.
    """
    functions = api.ops()
    descriptor = Descriptor(functions.cudnnCreateTensorDescriptor, functions.cudnnDestroyTensorDescriptor)
    strides = contiguous(dims) if strides is None else strides
    functions.cudnnSetTensorNdDescriptor(descriptor, api.DATA_TYPES[dtype], len(dims), ints(dims), ints(strides))
    return descriptor


def contiguous(dims: Shape) -> Shape:
    """Strides in elements of a C-contiguous array."""
    strides = [1] * len(dims)
    for axis in range(len(dims) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * dims[axis + 1]
    return tuple(strides)


def layout_of(descriptor: Descriptor) -> tuple[int, Shape, Shape]:
    """Return data type, lengths and strides of a tensor, as cuDNN tells them."""
    kind, rank = ctypes.c_int(), ctypes.c_int()
    dims, strides = ints([0] * 8), ints([0] * 8)
    api.ops().cudnnGetTensorNdDescriptor(descriptor, 8, ctypes.byref(kind), ctypes.byref(rank), dims, strides)
    return kind.value, tuple(dims[: rank.value]), tuple(strides[: rank.value])


def parameters_of(x: Descriptor, mode: api.BatchNorm) -> Descriptor:
    """Return the tensor of scales, shifts and statistics of a batch normalization of `x`."""
    functions = api.ops()
    descriptor = Descriptor(functions.cudnnCreateTensorDescriptor, functions.cudnnDestroyTensorDescriptor)
    functions.cudnnDeriveBNTensorDescriptor(descriptor, x, mode)
    return descriptor


def pooling(mode: api.Pooling, window: Shape, pad: Shape, stride: Shape) -> Descriptor:
    """Return a pooling over two or three axes."""
    functions = api.ops()
    descriptor = Descriptor(functions.cudnnCreatePoolingDescriptor, functions.cudnnDestroyPoolingDescriptor)
    functions.cudnnSetPoolingNdDescriptor(
        descriptor, mode, api.PROPAGATE_NAN, len(window), ints(window), ints(pad), ints(stride)
    )
    return descriptor


def pooled(descriptor: Descriptor, x: Descriptor, rank: int) -> Shape:
    """Return the lengths of what a pooling makes of `x`, by cuDNN's own rule."""
    dims = ints([0] * rank)
    api.ops().cudnnGetPoolingNdForwardOutputDim(descriptor, x, rank, dims)
    return tuple(dims)


def no_dropout(handle: Any) -> Descriptor:
    """Return a dropout that drops nothing, as recurrent networks want one; `handle` is a pointer."""
    functions = api.adv()
    descriptor = Descriptor(functions.cudnnCreateDropoutDescriptor, functions.cudnnDestroyDropoutDescriptor)
    functions.cudnnSetDropoutDescriptor(descriptor, handle, 0.0, None, 0, 0)
    return descriptor


def steps(dtype: str, n_steps: int, n_batch: int, n_features: int) -> Descriptor:
    """Sequences of one length, (T, B, features) in memory."""
    functions = api.adv()
    descriptor = Descriptor(functions.cudnnCreateRNNDataDescriptor, functions.cudnnDestroyRNNDataDescriptor)
    functions.cudnnSetRNNDataDescriptor(
        descriptor,
        api.DATA_TYPES[dtype],
        api.RNN_STEPS_OUTERMOST,
        n_steps,
        n_batch,
        n_features,
        ints([n_steps] * n_batch),
        None,
    )
    return descriptor
