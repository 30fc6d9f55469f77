"""The backend: CuPy arrays, and kernels over them."""

from collections.abc import Mapping, Sequence
from typing import Any

from nn_core.ext import Array, Kernel, Shape, Step
from nn_ext_cuda import capture
from nn_ext_cuda.kernels import KERNELS
from nn_ext_cuda.launch import allocated
from nn_ext_cuda.runtime import cupy
from nn_ext_cuda.updates import UPDATES, ClipGradByNorm, MultiTensorUpdate


class CudaBackend:
    """CuPy arrays; see `nn_core.ext.Backend`."""

    name: str = "cuda"
    array_class: str = "CudaCachedArray"
    kernels: Mapping[str, Kernel] = KERNELS
    updates: Mapping[str, MultiTensorUpdate | ClipGradByNorm] = UPDATES

    def namespace(self) -> Any:
        """CuPy."""
        return cupy

    def empty(self, shape: Shape, dtype: str) -> Array:
        """A new uninitialised array on the current device."""
        return allocated(shape, dtype)

    def from_numpy(self, array: Array) -> Array:
        """A copy of a NumPy array on the current device."""
        return cupy.asarray(array, order="C")

    def to_numpy(self, array: Array) -> Array:
        """The values as a NumPy array."""
        return cupy.asnumpy(array)

    def fuse(self, steps: Sequence[Step]) -> list[Step]:
        """Make one of each run of neighbouring steps that can be recorded as a CUDA graph."""
        return capture.merged(steps)
