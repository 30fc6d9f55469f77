"""The CPU backend of nn_core: ``nn_core.ext_utils.get_extension_context("cpu")``."""

from nn_ext_cpu.plugin import context as context

__all__ = ["clear_memory_cache", "context", "set_num_threads"]


def clear_memory_cache() -> None:
    """Return to the system what arrays have given back and nobody uses now."""
    from nn_ext_cpu import _native  # loading the library is left to the first use

    _native.clear_memory_cache()


def set_num_threads(threads: int) -> None:
    """Change how many threads a kernel may use; it starts as the number of physical cores or OMP_NUM_THREADS."""
    from nn_ext_cpu import _native  # loading the library is left to the first use

    _native.set_num_threads(threads)
