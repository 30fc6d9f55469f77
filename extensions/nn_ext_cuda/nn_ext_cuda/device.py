"""Devices, streams and memory: what `nn_ext_cuda` offers besides running functions. Imports CuPy."""

from typing import NamedTuple

from nn_core.ext import ArgumentError
from nn_ext_cuda.runtime import cupy


class MemoryInfo(NamedTuple):
    """Memory of a device in bytes: free and total by the driver, used and held by the pool of this process."""

    free_bytes: int
    total_bytes: int
    used_bytes: int
    held_bytes: int


def get_device_count() -> int:
    """Number of CUDA devices."""
    return int(cupy.cuda.runtime.getDeviceCount())


def get_devices() -> list[str]:
    """Name of each CUDA device."""
    names = [cupy.cuda.runtime.getDeviceProperties(number)["name"] for number in range(get_device_count())]
    return [name.decode() if isinstance(name, bytes) else str(name) for name in names]


def use_device(device_id: int) -> None:
    """Make a device the current one of this thread.

    Raises:
        ArgumentError: when there is no device of that number.
    """
    if device_id == cupy.cuda.runtime.getDevice():
        return
    if not 0 <= device_id < get_device_count():
        raise ArgumentError(f"device_id: must be below the number of devices, {get_device_count()}, got {device_id}")
    cupy.cuda.Device(device_id).use()


def device_synchronize(device_id: str | int = 0) -> None:
    """Wait until a device has done everything that it was given."""
    with cupy.cuda.Device(int(device_id)):
        cupy.cuda.runtime.deviceSynchronize()


def synchronize_stream() -> None:
    """Wait until the current stream of this thread has done everything that it was given."""
    cupy.cuda.get_current_stream().synchronize()


def clear_memory_cache() -> None:
    """Give the memory that the pools hold and nobody uses back to the driver."""
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()


def memory_info(device_id: str | int = 0) -> MemoryInfo:
    """Memory of a device."""
    with cupy.cuda.Device(int(device_id)):
        free, total = cupy.cuda.runtime.memGetInfo()
        pool = cupy.get_default_memory_pool()
        return MemoryInfo(free, total, pool.used_bytes(), pool.total_bytes())
