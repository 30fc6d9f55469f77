"""Failures of devices as exceptions of nn_core's tree that name the function and the sizes."""

import math
from collections.abc import Sequence
from typing import Final

from nn_core.ext import Array, NNCoreError, Shape
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES


class DeviceMemoryError(NNCoreError, MemoryError):
    """An array does not fit into the memory of the device."""


class DeviceError(NNCoreError, RuntimeError):
    """A device or a library of NVIDIA reported an error."""


class DeviceLostError(DeviceError):
    """A fault after which this process cannot use the device any more: every further call reports it again."""


#: Errors of CUDA that stay until the process ends, without the prefixes and underscores in which its two interfaces differ.
_STICKY: Final = (
    "asserttriggered",
    "cudaerrorassert:",
    "contextisdestroyed",
    "eccuncorrectable",
    "hardwarestackerror",
    "illegaladdress",
    "illegalinstruction",
    "invalidaddressspace",
    "invalidpc",
    "launchfailed",
    "launchfailure",
    "launchtimeout",
    "misalignedaddress",
    "nvlinkuncorrectable",
)


def out_of_memory(what: str, shape: Shape, dtype: str, free_bytes: int, total_bytes: int) -> DeviceMemoryError:
    """Return the exception for an array that could not be allocated."""
    n_bytes = math.prod(shape) * ITEM_BYTES.get(dtype, 1)
    return DeviceMemoryError(
        f"{what}: an array of shape {tuple(shape)} and dtype {dtype} ({_mebibytes(n_bytes)}) must fit into the memory of "
        f"the device, got {_mebibytes(free_bytes)} free of {_mebibytes(total_bytes)}\n"
        "  hint: a smaller batch, forward(clear_no_need_grad=True), or nn_ext_cuda.clear_memory_cache()"
    )


def failed(what: str, error: Exception, arrays: Sequence[Array | None] = ()) -> NNCoreError:
    """Return the exception for a launch or a call of a library that failed on these arrays.

    Raises:
        DeviceMemoryError, DeviceLostError: `error` itself, where it says so already; it keeps its cause.
    """
    if isinstance(error, (DeviceMemoryError, DeviceLostError)):
        raise error
    shapes = "  ".join(f"({', '.join(map(str, array.shape))}) {array.dtype}" for array in arrays if array is not None)
    lines = [f"{what}: the device must run it, got {type(error).__name__}: {error}"]
    if shapes:
        lines.append(f"  arrays {shapes}")
    if isinstance(error, MemoryError):
        return DeviceMemoryError("\n".join(lines))
    if is_sticky(error):
        hint = "  hint: this process cannot use the device any more; CUDA_LAUNCH_BLOCKING=1 shows which launch is to blame"
        return DeviceLostError("\n".join([*lines, hint]))
    return DeviceError("\n".join(lines))


def is_sticky(error: Exception) -> bool:
    """Return whether an error of CUDA stays until the process ends."""
    text = str(error).lower().replace("_", "")
    return any(name in text for name in _STICKY)


def not_compiled(name: str, error: Exception) -> DeviceError:
    """Return the exception for a kernel that could not be compiled or loaded."""
    text = str(error).strip()
    if "nvrtc" in f"{type(error).__name__} {text}".lower() and "compil" not in type(error).__name__.lower():
        return DeviceError(
            f"{name}: NVRTC must be installed, which compiles kernels when they are first used, got {text}\n"
            "  hint: pip install nvidia-cuda-nvrtc (CUDA 13), or nvidia-cuda-nvrtc-cu12, as CuPy is"
        )
    if is_sticky(error):
        lost = failed(name, error)
        assert isinstance(lost, DeviceError)
        return lost
    return DeviceError(f"{name}: the CUDA source must compile, got {type(error).__name__}: {text}")


def _mebibytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:.1f} MiB"
