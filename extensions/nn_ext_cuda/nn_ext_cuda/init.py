"""Devices and their memory, under the name of NNabla's module; see the package itself."""

from nn_ext_cuda.device.devices import clear_memory_cache as clear_memory_cache
from nn_ext_cuda.device.devices import device_synchronize as device_synchronize
from nn_ext_cuda.device.devices import get_device_count as get_device_count
from nn_ext_cuda.device.devices import get_devices as get_devices
from nn_ext_cuda.device.devices import memory_info

__all__ = ["clear_memory_cache", "device_synchronize", "get_device_count", "get_device_memory_size", "get_devices"]


def get_device_memory_size(device: str | int = 0) -> int:
    """Return the size of the memory of a device in bytes."""
    return memory_info(device).total_bytes
