"""Batch normalization of the stand-in for libcudnn: by the formulas of cuDNN's documentation, in NumPy."""

import numpy as np
from fake_cudnn import require
from legacy_memory import NOT_SUPPORTED, Tensor, factor, launched, store, wide_of


class Norms:
    """Batch normalizations over the tensors of `ops`.

    Attributes:
        persistent: Whether there are kernels for channels-last images.
        kept_bytes: Size of the data that those kernels keep from the forward to the backward pass.
    """

    def __init__(self, ops):
        self.TABLE = {name: kinds for name, kinds in _table().items() if "atchNorm" in name or "DeriveBN" in name}
        self.registry = ops.registry
        self.persistent = True
        self.kept_bytes = 0

    def _tensor(self, number):
        return self.registry.get(number, Tensor)

    def cudnnDeriveBNTensorDescriptor(self, derived, number, mode):
        x, tensor = self._tensor(number), self._tensor(derived)
        tensor.kind = 1 if x.kind == 1 else 0
        tensor.dims = (1, *x.dims[1:]) if mode == 0 else (1, x.dims[1], *[1] * (len(x.dims) - 2))
        strides = [1] * len(tensor.dims)
        for axis in range(len(strides) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * tensor.dims[axis + 1]
        tensor.strides = tuple(strides)

    def _check(self, mode, operations, x, *others):
        tensor = self._tensor(x)
        require(mode in (0, 1, 2) and operations == 0, f"mode {mode}, operations {operations}")
        require(len(tensor.dims) in (4, 5), "four or five axes", NOT_SUPPORTED)
        require(tensor.packed, "packed memory", NOT_SUPPORTED)
        for other in others:
            require(self._tensor(other) == tensor, "x, y and their gradients must be alike", NOT_SUPPORTED)
        is_last = tensor.strides[1] == 1 and tensor.dims[1] > 1 and np.prod(tensor.dims[2:]) > 1
        require(mode != 2 or (is_last and self.persistent), "channels-last images", NOT_SUPPORTED)
        return tensor

    def cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(self, handle, mode, operations, x, z, y, p, act, size):
        self._check(mode, operations, x, y)
        require(not z and not act, "nothing after it")
        size[0] = 640 if mode == 2 else 0

    def cudnnGetBatchNormalizationBackwardExWorkspaceSize(self, handle, mode, operations, x, y, dy, dz, dx, p, act, size):
        self._check(mode, operations, x, dy, dx)
        size[0] = 1280 if mode == 2 else 0

    def cudnnGetBatchNormalizationTrainingExReserveSpaceSize(self, handle, mode, operations, act, x, size):
        self._check(mode, operations, x)
        size[0] = self.kept_bytes if mode == 2 else 0

    def cudnnBatchNormalizationForwardInference(
        self, handle, mode, alpha, beta, x_desc, x, y_desc, y, p_desc, scale, bias, mean, variance, eps
    ):
        tensor, parameters = self._check(mode, 0, x_desc, y_desc), self._tensor(p_desc)
        self._check_parameters(mode, tensor, parameters)
        factors = factor(tensor.kind, alpha), factor(tensor.kind, beta)

        def work():
            s, b, m, v = (parameters.at(pointer) for pointer in (scale, bias, mean, variance))
            values = tensor.at(x).astype(wide_of(tensor.kind))
            with np.errstate(all="ignore"):
                result = s * (values - m) / np.sqrt(eps + v) + b
            store(tensor.at(y, writable=True), result.astype(values.dtype), *factors)

        launched(work)

    def cudnnBatchNormalizationForwardTrainingEx(
        self, handle, mode, operations, alpha, beta, x_desc, x, z_desc, z, y_desc, y, p_desc, scale, bias, new_part,
        running_mean, running_variance, eps, saved_mean, saved_scale, act, memory, n_bytes, kept, kept_bytes,
    ):  # fmt: skip
        tensor, parameters = self._check(mode, operations, x_desc, y_desc), self._tensor(p_desc)
        self._check_parameters(mode, tensor, parameters)
        require(not z and not act, "nothing after it")
        require(n_bytes >= (640 if mode == 2 else 0) and bool(memory) == bool(n_bytes), "workspace", 2006)
        require(kept_bytes >= (self.kept_bytes if mode == 2 else 0), "reserve space", 2006)
        require(bool(running_mean) == bool(running_variance), "running statistics")
        require(bool(saved_mean) == bool(saved_scale), "saved statistics")
        axes = _axes(mode, tensor)
        count = np.prod([tensor.dims[axis] for axis in axes])
        factors = factor(tensor.kind, alpha), factor(tensor.kind, beta)

        def work():
            real = wide_of(tensor.kind)
            values = tensor.at(x).astype(real)
            mean = values.mean(axis=axes, keepdims=True)
            variance = ((values - mean) ** 2).mean(axis=axes, keepdims=True)
            inverse = 1 / np.sqrt(variance + eps)
            result = parameters.at(scale) * (values - mean) * inverse + parameters.at(bias)
            store(tensor.at(y, writable=True), result.astype(real), *factors)
            if running_mean:
                with np.errstate(all="ignore"):
                    unbiased = variance * count / (count - 1)
                for pointer, new in ((running_mean, mean), (running_variance, unbiased)):
                    target = parameters.at(pointer, writable=True)
                    target[...] = new * new_part + target * (1 - new_part)
            if saved_mean:
                parameters.at(saved_mean, writable=True)[...] = mean
                parameters.at(saved_scale, writable=True)[...] = inverse

        launched(work)

    def cudnnBatchNormalizationBackwardEx(
        self, handle, mode, operations, alpha, beta, alpha_parameters, beta_parameters, x_desc, x, y_desc, y, dy_desc, dy,
        dz_desc, dz, dx_desc, dx, p_desc, scale, bias, dscale, dbias, eps, saved_mean, saved_scale, act, memory, n_bytes,
        kept, kept_bytes,
    ):  # fmt: skip
        tensor, parameters = self._check(mode, operations, x_desc, dy_desc, dx_desc), self._tensor(p_desc)
        self._check_parameters(mode, tensor, parameters)
        require(not dz and not act, "nothing after it")
        require(n_bytes >= (1280 if mode == 2 else 0) and bool(memory) == bool(n_bytes), "workspace", 2006)
        require(dscale and dbias, "null pointer", 2002)
        require(bool(saved_mean) == bool(saved_scale), "saved statistics")
        axes = _axes(mode, tensor)
        factors = factor(tensor.kind, alpha), factor(tensor.kind, beta)
        parameter_factors = factor(tensor.kind, alpha_parameters), factor(tensor.kind, beta_parameters)

        def work():
            real = wide_of(tensor.kind)
            values, given = tensor.at(x).astype(real), tensor.at(dy).astype(real)
            if saved_mean:
                mean, inverse = parameters.at(saved_mean), parameters.at(saved_scale)
            else:
                mean = values.mean(axis=axes, keepdims=True)
                inverse = 1 / np.sqrt(((values - mean) ** 2).mean(axis=axes, keepdims=True) + eps)
            standardized = (values - mean) * inverse
            shift, stretch = given.mean(axis=axes, keepdims=True), (given * standardized).mean(axis=axes, keepdims=True)
            gradient = parameters.at(scale) * inverse * (given - shift - standardized * stretch)
            count = np.prod([tensor.dims[axis] for axis in axes])
            store(tensor.at(dx, writable=True), gradient.astype(real), *factors)
            for pointer, total in ((dscale, stretch * count), (dbias, shift * count)):
                store(parameters.at(pointer, writable=True), total, *parameter_factors)

        launched(work)

    @staticmethod
    def _check_parameters(mode, tensor, parameters):
        dims = (1, *tensor.dims[1:]) if mode == 0 else (1, tensor.dims[1], *[1] * (len(tensor.dims) - 2))
        require(parameters.dims == dims and parameters.kind == (1 if tensor.kind == 1 else 0), "parameters")


def _axes(mode, tensor):
    return (0,) if mode == 0 else (0, *range(2, len(tensor.dims)))


def _table():
    from nn_ext_cudnn.legacy import api

    return api.OPS
