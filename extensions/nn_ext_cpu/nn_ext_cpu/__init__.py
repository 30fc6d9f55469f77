"""The CPU backend of nn_core: ``nn_core.ext_utils.get_extension_context("cpu")``."""

from nn_core.ext import set_num_threads as set_num_threads
from nn_ext_cpu.plugin import context as context

__all__ = ["clear_memory_cache", "context", "set_num_threads"]


def clear_memory_cache() -> None:
    """Return to the system what arrays have given back and nobody uses now."""
    from nn_ext_cpu import _native  # loading the library is left to the first use

    _native.clear_memory_cache()
