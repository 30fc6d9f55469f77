"""The backend: the arrays of nn_ext_cuda, and kernels of cuDNN over them."""

from collections.abc import Mapping

from nn_core.ext import Kernel
from nn_ext_cuda.backend import CudaBackend
from nn_ext_cudnn.kernels import KERNELS


class CudnnBackend(CudaBackend):
    """CuPy arrays and cuDNN; see `nn_core.ext.Backend`."""

    name: str = "cudnn"
    kernels: Mapping[str, Kernel] = KERNELS
