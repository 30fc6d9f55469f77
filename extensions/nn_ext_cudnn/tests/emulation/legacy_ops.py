"""Tensors, softmax and poolings of the stand-in for libcudnn: by the formulas of cuDNN's documentation, in NumPy."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from fake_cudnn import require
from legacy_memory import NOT_SUPPORTED, Registry, Tensor, factor, launched, store, wide_of


@dataclass
class PoolingDescriptor:
    mode: int = -1
    window: tuple = ()
    pad: tuple = ()
    stride: tuple = ()


class Ops:
    """The content of libcudnn_ops, except for normalizations; `missing` plays an installation without it."""

    def __init__(self):
        from nn_ext_cudnn.legacy import api

        self.TABLE = {name: kinds for name, kinds in api.OPS.items() if "atchNorm" not in name and "DeriveBN" not in name}
        self.registry = Registry()
        self.missing = False

    def cudnnOpsVersionCheck(self):
        require(not self.missing, "", 3009)

    # -- tensors ---------------------------------------------------------------------------------------------------

    def cudnnCreateTensorDescriptor(self, result):
        self.registry.make(result, Tensor())

    def cudnnDestroyTensorDescriptor(self, number):
        self.registry.destroy(number, Tensor)

    def cudnnSetTensorNdDescriptor(self, number, kind, rank, dims, strides):
        tensor = self.registry.get(number, Tensor)
        require(3 <= rank <= 8, f"{rank} axes", NOT_SUPPORTED)
        tensor.kind, tensor.dims, tensor.strides = kind, tuple(dims[:rank]), tuple(strides[:rank])
        require(all(n > 0 for n in (*tensor.dims, *tensor.strides)), f"lengths {tensor.dims}, strides {tensor.strides}")

    def cudnnGetTensorNdDescriptor(self, number, requested, kind, rank, dims, strides):
        tensor = self.registry.get(number, Tensor)
        kind[0], rank[0] = tensor.kind, len(tensor.dims)
        for axis, (n, step) in enumerate(zip(tensor.dims, tensor.strides, strict=True)):
            if axis < requested:
                dims[axis], strides[axis] = n, step

    # -- softmax ---------------------------------------------------------------------------------------------------

    def cudnnSoftmaxForward(self, handle, algorithm, mode, alpha, x_desc, x, beta, y_desc, y):
        source, target = (self.registry.get(number, Tensor) for number in (x_desc, y_desc))
        require((algorithm, mode) in ((1, 1), (2, 1)) and source.dims == target.dims, "softmax")
        factors = factor(source.kind, alpha), factor(source.kind, beta)

        def work():
            values = source.at(x).astype(wide_of(source.kind))
            shifted = values - values.max(axis=1, keepdims=True)
            total = np.exp(shifted).sum(axis=1, keepdims=True)
            result = np.exp(shifted) / total if algorithm == 1 else shifted - np.log(total)
            store(target.at(y, writable=True), result, *factors)

        launched(work)

    def cudnnSoftmaxBackward(self, handle, algorithm, mode, alpha, y_desc, y, dy_desc, dy, beta, dx_desc, dx):
        tensors = [self.registry.get(number, Tensor) for number in (y_desc, dy_desc, dx_desc)]
        require((algorithm, mode) in ((1, 1), (2, 1)), "softmax")
        require(len({tensor.dims for tensor in tensors}) == 1, "lengths differ", 2008)
        factors = factor(tensors[0].kind, alpha), factor(tensors[0].kind, beta)

        def work():
            real = wide_of(tensors[0].kind)
            result, given = tensors[0].at(y).astype(real), tensors[1].at(dy).astype(real)
            if algorithm == 1:
                gradient = result * (given - (given * result).sum(axis=1, keepdims=True))
            else:
                gradient = given - np.exp(result) * given.sum(axis=1, keepdims=True)
            store(tensors[2].at(dx, writable=True), gradient, *factors)

        launched(work)

    # -- poolings --------------------------------------------------------------------------------------------------

    def cudnnCreatePoolingDescriptor(self, result):
        self.registry.make(result, PoolingDescriptor())

    def cudnnDestroyPoolingDescriptor(self, number):
        self.registry.destroy(number, PoolingDescriptor)

    def cudnnSetPoolingNdDescriptor(self, number, mode, nan, rank, window, pad, stride):
        pooling = self.registry.get(number, PoolingDescriptor)
        require(0 <= mode <= 3 and nan == 1, f"mode {mode}, NaN {nan}")
        require(2 <= rank <= 3, f"{rank} axes", NOT_SUPPORTED)
        pooling.mode, pooling.window = mode, tuple(window[:rank])
        pooling.pad, pooling.stride = tuple(pad[:rank]), tuple(stride[:rank])
        require(all(n > 0 for n in (*pooling.window, *pooling.stride)), "windows and strides")
        require(all(edge < n for edge, n in zip(pooling.pad, pooling.window, strict=True)), "padding")

    def cudnnGetPoolingNdForwardOutputDim(self, number, x_desc, rank, dims):
        pooling, tensor = self.registry.get(number, PoolingDescriptor), self.registry.get(x_desc, Tensor)
        require(rank == len(tensor.dims), "rank")
        for axis, n in enumerate(_pooled(pooling, tensor.dims)):
            dims[axis] = n

    def cudnnPoolingForward(self, handle, number, alpha, x_desc, x, beta, y_desc, y):
        pooling = self.registry.get(number, PoolingDescriptor)
        source, target = (self.registry.get(number, Tensor) for number in (x_desc, y_desc))
        require(target.dims == _pooled(pooling, source.dims), f"y must be {_pooled(pooling, source.dims)}", 2008)
        require(source.packed and target.packed, "packed memory", NOT_SUPPORTED)
        factors = factor(source.kind, alpha), factor(source.kind, beta)

        def work():
            values = source.at(x).astype(wide_of(source.kind))
            result = np.zeros(target.dims, values.dtype)
            for place, window, count in _windows(pooling, source.dims, target.dims):
                seen = values[(slice(None), slice(None), *window)].reshape(*target.dims[:2], -1)
                result[(slice(None), slice(None), *place)] = (
                    seen.max(axis=2) if pooling.mode in (0, 3) else seen.sum(axis=2) / count
                )
            store(target.at(y, writable=True), result, *factors)

        launched(work)

    def cudnnPoolingBackward(self, handle, number, alpha, y_desc, y, dy_desc, dy, x_desc, x, beta, dx_desc, dx):
        pooling = self.registry.get(number, PoolingDescriptor)
        tensors = [self.registry.get(number, Tensor) for number in (y_desc, dy_desc, x_desc, dx_desc)]
        require(tensors[0].dims == tensors[1].dims == _pooled(pooling, tensors[2].dims), "lengths", 2008)
        require(tensors[0].strides == tensors[1].strides and tensors[2] == tensors[3], "strides differ", NOT_SUPPORTED)
        require(x and y, "null pointer", 2002)
        require(pooling.mode in (1, 2), "the emulation has gradients of means", NOT_SUPPORTED)
        factors = factor(tensors[1].kind, alpha), factor(tensors[1].kind, beta)

        def work():
            given = tensors[1].at(dy).astype(wide_of(tensors[1].kind))
            gradient = np.zeros(tensors[3].dims, given.dtype)
            for place, window, count in _windows(pooling, tensors[3].dims, tensors[1].dims):
                share = given[(slice(None), slice(None), *place)] / count
                gradient[(slice(None), slice(None), *window)] += share[(..., *[None] * len(window))]
            store(tensors[3].at(dx, writable=True), gradient, *factors)

        launched(work)


def _pooled(pooling, dims):
    require(len(dims) == 2 + len(pooling.window), "rank")
    full = [n + 2 * edge - size for n, edge, size in zip(dims[2:], pooling.pad, pooling.window, strict=True)]
    require(all(n >= 0 for n in full), "windows larger than x")
    return (*dims[:2], *(n // step + 1 for n, step in zip(full, pooling.stride, strict=True)))


def _windows(pooling, dims, counts):
    """For each window its place in y, its part of x, and by what a mean divides."""
    for place in product(*map(range, counts[2:])):
        starts = [k * step - edge for k, step, edge in zip(place, pooling.stride, pooling.pad, strict=True)]
        window = tuple(
            slice(max(start, 0), min(start + size, n)) for start, size, n in zip(starts, pooling.window, dims[2:], strict=True)
        )
        seen = np.prod([part.stop - part.start for part in window])
        yield place, window, np.prod(pooling.window) if pooling.mode == 1 else seen
