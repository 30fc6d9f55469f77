"""NNabla's module of the devices of the core, of which the host is the only one; see `nn_core.compat.host`."""

from nn_core.compat.host import add_available_context as add_available_context
from nn_core.compat.host import array_classes as array_classes
from nn_core.compat.host import available_contexts as available_contexts
from nn_core.compat.host import clear_memory_cache as clear_memory_cache
from nn_core.compat.host import device_synchronize as device_synchronize
from nn_core.compat.host import get_device_count as get_device_count
from nn_core.compat.host import get_devices as get_devices
from nn_core.compat.host import prefer_cached_array as prefer_cached_array
from nn_core.compat.host import reset_array_preference as reset_array_preference

__all__ = [
    "add_available_context",
    "array_classes",
    "available_contexts",
    "clear_memory_cache",
    "device_synchronize",
    "get_device_count",
    "get_devices",
    "prefer_cached_array",
    "reset_array_preference",
]
