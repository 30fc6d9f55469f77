"""Tables that follow from the sizes of a call, such as roots of unity: computed on the host, brought to the device once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from nn_core.ext import Array
from nn_ext_cuda.launch.program import WithArrays
from nn_ext_cuda.memory.arrays import UPLOADS, allocated

#: Tables that are kept for later calls; steps keep those that they read in any case.
_MAX_TABLES: Final = 256


@dataclass(frozen=True, slots=True)
class Constant:
    """A table.

    Attributes:
        make: Computes it as a NumPy array.
        arguments: What `make` is called with.
    """

    make: Callable[..., Array]
    arguments: tuple[Any, ...]


def with_constants(runner: Any, n_arrays: int, constants: Sequence[Constant]) -> WithArrays:
    """Return a runner that takes tables after the `n_arrays` arrays of the call."""
    kept = tuple(constants)
    return WithArrays(runner, n_arrays, lambda: [_on_device(constant) for constant in kept])


def _on_device(constant: Constant) -> Array:
    """Return the table on the current device, where the current stream finds it."""
    from nn_ext_cuda.device.runtime import cupy  # programs can be made without CuPy

    return _brought(int(cupy.cuda.Device().id), int(cupy.cuda.get_current_stream().ptr), constant)


@lru_cache(maxsize=_MAX_TABLES)
def _brought(device: int, stream: int, constant: Constant) -> Array:
    """Return the table, copied in the order of a stream; another stream would have to wait for the copy, so it has its own."""
    values = constant.make(*constant.arguments)
    table = allocated(values.shape, values.dtype.name)
    UPLOADS.start(table, values)
    return table
