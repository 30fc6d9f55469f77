"""Let another array library compute: NumPy, which notes what it is asked for; forward and backward run on it."""

import numpy as np
import torch

aten = torch.ops.aten
used = set()
KERNELS = {
    aten.tanh.default: np.tanh,
    aten.tanh_backward.default: lambda dy, y: dy * (1 - y * y),
    aten.sum.default: np.sum,
    aten.expand.default: np.broadcast_to,
    aten.ones_like.default: np.ones_like,
    aten.detach.default: lambda x: x,
}


class DeviceTensor(torch.Tensor):
    @staticmethod
    def __new__(cls, array):
        return torch.Tensor._make_wrapper_subclass(cls, array.shape, dtype=torch.float32)

    def __init__(self, array):
        self.array = array

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        used.add(function.__name__)
        arrays = [value.array if isinstance(value, DeviceTensor) else value for value in args]
        return DeviceTensor(np.asarray(KERNELS[function](*arrays), np.float32))


x = DeviceTensor(np.array([0.5, -0.5], np.float32)).requires_grad_()
y = x.tanh().sum()
y.backward()
assert "tanh.default" in used
assert np.allclose(x.grad.array, 1 - np.tanh(x.array) ** 2, atol=1e-6)
