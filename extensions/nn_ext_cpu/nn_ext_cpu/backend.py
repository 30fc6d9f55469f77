"""The backend: NumPy arrays, the native kernels, and the merging of native steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nn_core.ext import ArgumentError, Array, ArrayDesc, Kernel, Runner, Shape, Step
from nn_ext_cpu import _native
from nn_ext_cpu.describe import FLOATING, WIDE, numpy_dtype
from nn_ext_cpu.kernels import KERNELS
from nn_ext_cpu.updates import UPDATES, NativeUpdate

_native.set_argument_error(ArgumentError)

#: Arrays begin at multiples of this many bytes: a cache line, and the widest vector register.
ALIGNMENT = 64
#: Alignment costs more time than it saves for arrays of up to this many bytes.
SMALL_BYTES = 16384


class CpuBackend:
    """NumPy arrays and native kernels; see `nn_core.ext.Backend`."""

    name: str = "cpu"
    array_class: str = "CpuCachedArray"
    kernels: Mapping[str, Kernel] = KERNELS
    updates: Mapping[str, NativeUpdate] = UPDATES
    wide_dtypes: Mapping[str, str] = WIDE

    def namespace(self) -> Any:
        """NumPy."""
        return np

    def empty(self, shape: Shape, dtype: str) -> Array:
        """A new uninitialised array; one that does not fit the first-level cache begins at a cache line."""
        array = np.empty(shape, numpy_dtype(dtype))
        if array.nbytes <= SMALL_BYTES:
            return array
        memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + array.nbytes].view(array.dtype).reshape(shape)

    def from_numpy(self, array: Array) -> Array:
        """A copy of `array`."""
        copy = self.empty(array.shape, array.dtype.name)
        copy[...] = array
        return copy

    def to_numpy(self, array: Array) -> Array:
        """The array itself."""
        return np.asarray(array)

    def copier(self, source: ArrayDesc, target: ArrayDesc) -> Runner | None:
        """A kernel that copies an array over another of its shape, between layouts, and float32 and bfloat16."""
        if source.dtype in FLOATING and target.dtype in FLOATING:
            return _native.prepare("pointwise", [source, target], program=[("copy", 1, [0], [])])
        return None

    def fuse(self, steps: Sequence[Step]) -> list[Step]:
        """Merge each run of neighbouring native steps into one."""
        merged: list[Step] = []
        native: list[_native.Step] = []
        for step in steps:
            if isinstance(step, _native.Step):
                native.append(step)
                continue
            merged += _one(native)
            native = []
            merged.append(step)
        return merged + _one(native)


def _one(native: Sequence[_native.Step]) -> list[_native.Step]:
    return [_native.sequence(native)] if len(native) > 1 else list(native)
