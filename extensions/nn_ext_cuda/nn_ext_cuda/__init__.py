"""The CUDA backend of nn_core: ``nn_core.ext_utils.get_extension_context("cuda")``.

Importing it is free: CuPy is imported when a function that needs a device is first called.
"""

from importlib import import_module
from typing import Any

from nn_ext_cuda.gemm.precision import allow_reduced_precision_reduction as allow_reduced_precision_reduction
from nn_ext_cuda.gemm.precision import allow_tf32 as allow_tf32
from nn_ext_cuda.gemm.precision import is_reduced_precision_reduction_allowed as is_reduced_precision_reduction_allowed
from nn_ext_cuda.gemm.precision import is_tf32_allowed as is_tf32_allowed
from nn_ext_cuda.memory import preference
from nn_ext_cuda.plugin import ARRAY_CLASSES
from nn_ext_cuda.plugin import context as context

#: Functions of modules that import CuPy, by name.
_LAZY = {
    "StreamEventHandler": "device.devices",
    "annotate_ranges": "launch.capture",
    "clear_memory_cache": "device.devices",
    "device_synchronize": "device.devices",
    "get_device_count": "device.devices",
    "get_devices": "device.devices",
    "graph_report": "launch.capture_report",
    "memory_info": "device.devices",
    "memory_report": "memory.usage",
    "prefer_cached_array": "device.devices",
    "print_memory_cache_map": "device.devices",
    "reset_array_preference": "device.devices",
    "synchronize_stream": "device.devices",
    "use_device": "device.devices",
    "use_graphs": "launch.capture",
}

__all__ = [  # noqa: PLE0604 -- all are names
    *_LAZY,
    "allow_reduced_precision_reduction",
    "allow_tf32",
    "array_classes",
    "context",
    "is_reduced_precision_reduction_allowed",
    "is_tf32_allowed",
]


def array_classes() -> list[str]:
    """Names of the kinds of arrays, the preferred one first."""
    return list(ARRAY_CLASSES if preference.cached else ARRAY_CLASSES[::-1])


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"nn_ext_cuda.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'nn_ext_cuda' has no attribute {name!r}")
