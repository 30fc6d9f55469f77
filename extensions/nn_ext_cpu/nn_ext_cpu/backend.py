"""The backend: NumPy arrays, the native kernels, and the merging of native steps."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nn_core.ext import (
    WHEN_SWITCHED,
    ArgumentError,
    Array,
    ArrayDesc,
    Cache,
    Kernel,
    Runner,
    Shape,
    Step,
    is_deterministic,
    is_enabled,
    num_threads,
    register_cache,
)
from nn_ext_cpu import _native
from nn_ext_cpu.describe import FLOATING, WIDE, numpy_dtype
from nn_ext_cpu.kernels import KERNELS
from nn_ext_cpu.updates import UPDATES, NativeUpdate

_native.set_argument_error(ArgumentError)


_INTEGERS: Final = frozenset({"int8", "uint8", "int32"})


def _follow_switches() -> None:
    _native.enable_winograd(is_enabled("winograd"))
    _native.enable_packing(is_enabled("pack"))
    _native.set_deterministic(is_deterministic())
    _native.set_num_threads(num_threads())


_follow_switches()
# before the core forgets what was prepared, so that nothing is prepared the old way any more
WHEN_SWITCHED.insert(0, _follow_switches)
register_cache(Cache("packed weights", lambda: None, _native.packed_bytes, _native.clear_packed, _native.limit_packed_bytes))


class CpuBackend:
    """NumPy arrays and native kernels; see `nn_core.ext.Backend`."""

    name: str = "cpu"
    array_class: str = "CpuCachedArray"
    kernels: Mapping[str, Kernel] = KERNELS
    updates: Mapping[str, NativeUpdate] = UPDATES
    #: functions that replace several of which nobody reads the intermediate results
    inference_fusions: frozenset[str] = frozenset({"FusedConvolution"} & set(KERNELS))
    parameter_dtypes: Mapping[str, str] = WIDE

    def namespace(self) -> Any:
        """NumPy."""
        return np

    def empty(self, shape: Shape, dtype: str) -> Array:
        """Return a new uninitialised array, of memory that earlier ones have given back where it fits."""
        array: Array = _native.empty(shape, numpy_dtype(dtype))
        return array

    def maker(self, shape: Shape, dtype: str) -> Callable[[], Array]:
        """`empty` with its arguments worked out: NumPy is quicker where the pool does not matter."""
        kind = numpy_dtype(dtype)
        make = np.empty if math.prod(shape) * kind.itemsize <= _native.SMALL_BYTES else _native.empty
        return functools.partial(make, shape, kind)

    def from_numpy(self, array: Array) -> Array:
        """Return a copy of `array`."""
        copy = self.empty(array.shape, array.dtype.name)
        copy[...] = array
        return copy

    def to_numpy(self, array: Array) -> Array:
        """Return the array itself."""
        return np.asarray(array)

    def copier(self, source: ArrayDesc, target: ArrayDesc) -> Runner | None:
        """Return a kernel that copies an array over another of its shape.

        Between layouts of float32 and bfloat16, and from integers of 8 and 32 bits in C order to float32; None for others.
        """
        is_plain = source.strides is None and target.strides is None
        if source.dtype in _INTEGERS and target.dtype == "float32" and is_plain:
            return _native.prepare("integers_to_floats", [source, target])
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

    def program(
        self, parts: Sequence[tuple[Runner, Sequence[Array | None], Mapping[int, int]]]
    ) -> Callable[..., object] | None:
        """Native steps as one function of the arrays that `parts` number; None if some are not native."""
        steps = [runner.bind(*arrays) if hasattr(runner, "bind") else None for runner, arrays, _ in parts]
        if not all(isinstance(step, _native.Step) for step in steps):
            return None
        given = {number: arrays[position] for _, arrays, places in parts for position, number in places.items()}
        slots = [given[number] for number in range(len(given))]
        program: Callable[..., object] = _native.program(steps, slots)
        return program


def _one(native: Sequence[_native.Step]) -> list[_native.Step]:
    return [_native.sequence(native)] if len(native) > 1 else list(native)
