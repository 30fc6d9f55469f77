"""What can go wrong on a device, as exceptions of nn_core's tree that name the function and the sizes."""

import math
from collections.abc import Sequence

from nn_core.ext import Array, NNCoreError, Shape
from nn_ext_cuda.dtypes import ITEM_BYTES


class DeviceMemoryError(NNCoreError, MemoryError):
    """An array does not fit into the memory of the device."""


class DeviceError(NNCoreError, RuntimeError):
    """A device or a library of NVIDIA reported an error; after some of them the process has to be started anew."""


def out_of_memory(what: str, shape: Shape, dtype: str, free_bytes: int, total_bytes: int) -> DeviceMemoryError:
    """The exception for an array that could not be allocated."""
    n_bytes = math.prod(shape) * ITEM_BYTES.get(dtype, 1)
    return DeviceMemoryError(
        f"{what}: an array of shape {tuple(shape)} and dtype {dtype} ({_mebibytes(n_bytes)}) must fit into the memory of "
        f"the device, got {_mebibytes(free_bytes)} free of {_mebibytes(total_bytes)}\n"
        "  hint: a smaller batch, forward(clear_no_need_grad=True), or nn_ext_cuda.clear_memory_cache()"
    )


def failed(what: str, error: Exception, arrays: Sequence[Array | None] = ()) -> NNCoreError:
    """The exception for a launch or a call of a library that failed on these arrays."""
    shapes = "  ".join(f"({', '.join(map(str, array.shape))}) {array.dtype}" for array in arrays if array is not None)
    lines = [f"{what}: the device must run it, got {type(error).__name__}: {error}"]
    if shapes:
        lines.append(f"  arrays {shapes}")
    if isinstance(error, MemoryError):
        return DeviceMemoryError("\n".join(lines))
    return DeviceError("\n".join([*lines, "  hint: after a fault of the device the process has to be started anew"]))


def _mebibytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:.1f} MiB"
