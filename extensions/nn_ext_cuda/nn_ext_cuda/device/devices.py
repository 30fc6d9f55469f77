"""Devices, streams and memory: what `nn_ext_cuda` offers besides running functions. Imports CuPy."""

import sys
from collections import deque
from typing import Any, NamedTuple

from nn_core.ext import ArgumentError
from nn_ext_cuda.device.faults import FAULTS
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cuda.launch import deferred
from nn_ext_cuda.memory import preference
from nn_ext_cuda.memory.small_blocks import RECYCLED


class MemoryInfo(NamedTuple):
    """Memory of a device in bytes: free and total by the driver, used and held by the pool of this process."""

    free_bytes: int
    total_bytes: int
    used_bytes: int
    held_bytes: int


def get_device_count() -> int:
    """Return number of CUDA devices."""
    return int(cupy.cuda.runtime.getDeviceCount())


def get_devices() -> list[str]:
    """Name of each CUDA device."""
    names = [cupy.cuda.runtime.getDeviceProperties(number)["name"] for number in range(get_device_count())]
    return [name.decode() if isinstance(name, bytes) else str(name) for name in names]


def use_device(device_id: int) -> None:
    """Make a device the current one of this thread, after what is held back for the former one was launched.

    Raises:
        ArgumentError: when there is no device of that number.
    """
    if device_id == cupy.cuda.runtime.getDevice():
        return
    if not 0 <= device_id < get_device_count():
        raise ArgumentError(f"device_id: must be below the number of devices, {get_device_count()}, got {device_id}")
    deferred.flush()
    cupy.cuda.Device(device_id).use()


def device_synchronize(device: str | int = 0) -> None:
    """Wait until a device has done everything that it was given.

    Raises:
        ArgumentError: when a kernel has found an index or a label out of range.
    """
    deferred.flush()
    with cupy.cuda.Device(int(device)):
        cupy.cuda.runtime.deviceSynchronize()
    FAULTS.check()


def synchronize_stream() -> None:
    """Wait until the current stream of this thread has done everything that it was given.

    Raises:
        ArgumentError: when a kernel has found an index or a label out of range.
    """
    deferred.flush()
    cupy.cuda.get_current_stream().synchronize()
    FAULTS.check()


def clear_memory_cache() -> None:
    """Give the memory that the pools hold and nobody uses back to the driver."""
    RECYCLED.clear()
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()


def prefer_cached_array(prefer: bool) -> None:
    """Take the memory of new arrays from a pool (CudaCachedArray), which is usual, or from the driver (CudaArray).

    The driver waits for the device at each allocation; that helps to find who uses memory, and is slow otherwise.
    """
    preference.cached = bool(prefer)
    RECYCLED.clear()
    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc if prefer else None)


def reset_array_preference() -> None:
    """Take the memory of new arrays from the pool again."""
    prefer_cached_array(True)


def print_memory_cache_map() -> None:
    """Print for each device what the driver has, and what the pool of this process uses and holds."""
    for number, name in enumerate(get_devices()):
        info = memory_info(number)
        used, held_bytes, free, total = (f"{n / 2**20:.1f} MiB" for n in (info[2], info[3], info[0], info[1]))
        sys.stdout.write(f"{number}: {name}: pool uses {used} of {held_bytes}; {free} free of {total}\n")


class StreamEventHandler:
    """Keeps a program from running too far ahead of a device: mark a place in each step, and wait for an earlier one.

    Args:
        device_id: Number of the device.
        distance: How many marks may be open.

    Example::

        events = nn_ext_cuda.StreamEventHandler(0)
        for batch in data:
            events.event_synchronize()
            train(batch)
            events.add_default_stream_event()
    """

    def __init__(self, device_id: str | int = 0, distance: int = 1) -> None:
        self._device_id = int(device_id)
        self._distance = distance
        self._events: deque[Any] = deque()

    def add_default_stream_event(self) -> None:
        """Mark what the device was given up to now."""
        deferred.flush()
        with cupy.cuda.Device(self._device_id):
            event = cupy.cuda.Event(disable_timing=True)
            event.record(cupy.cuda.get_current_stream())
        self._events.append(event)

    def event_synchronize(self) -> None:
        """Wait until all marks but the last `distance` are reached."""
        while len(self._events) > self._distance:
            self._events.popleft().synchronize()


def memory_info(device: str | int = 0) -> MemoryInfo:
    """Memory of a device."""
    with cupy.cuda.Device(int(device)):
        free, total = cupy.cuda.runtime.memGetInfo()
        pool = cupy.get_default_memory_pool()
        return MemoryInfo(free, total, pool.used_bytes(), pool.total_bytes())
