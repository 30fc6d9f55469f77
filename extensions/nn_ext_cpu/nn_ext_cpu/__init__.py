"""The CPU backend of nn_core: ``nn_core.ext_utils.get_extension_context("cpu")``."""

from nn_core.ext import set_num_threads as set_num_threads
from nn_ext_cpu.library import load_native
from nn_ext_cpu.plugin import context as context

__all__ = [
    "array_classes",
    "clear_memory_cache",
    "context",
    "device_synchronize",
    "get_device_count",
    "get_devices",
    "set_num_threads",
    "synchronize",
]


def clear_memory_cache() -> None:
    """Return to the system what arrays have given back and nobody uses now."""
    load_native().clear_memory_cache()


def array_classes() -> list[str]:
    """Names of the kinds of arrays, the preferred one first."""
    return ["CpuCachedArray", "CpuArray"]


def get_device_count() -> int:
    """Return number of devices: the host is one."""
    return 1


def get_devices() -> list[str]:
    """Return the ``device_id`` of each device."""
    return ["0"]


def device_synchronize(device: str | int = "0") -> None:
    """Return at once: functions on the host have computed when they return."""


def synchronize(**kw: object) -> None:
    """Return at once, as `device_synchronize` does; the arguments are those of a context."""
