"""The host as a device: what NNabla's package for the CPU says about devices, arrays and memory."""

from typing import Final

from nn_core.engine.error_messages.refusal import checked_flag
from nn_core.errors import ArgumentError
from nn_core.ext_utils import import_extension_module, list_extensions

#: Backends that a program has named with `add_available_context`, and those that are installed.
available_contexts: Final[list[str]] = list_extensions()

_USUAL: Final = ("CpuCachedArray", "CpuArray")
_PREFERRED: Final[list[str]] = list(_USUAL)


def add_available_context(ctx: str) -> None:
    """Add a name to ``available_contexts``; what is installed is there already.

    Raises:
        ArgumentError: when `ctx` is not a string.

    Example:
        >>> nn.add_available_context("cpu")
        >>> "cpu" in nn.available_contexts
        True
    """
    if not isinstance(ctx, str):
        raise ArgumentError(f"add_available_context: ctx must be the name of a backend, got {ctx!r}")
    if ctx not in available_contexts:
        available_contexts.append(ctx)


def array_classes() -> list[str]:
    """Names of the kinds of arrays on the host, the preferred one first.

    Example:
        >>> nn.array_classes()
        ['CpuCachedArray', 'CpuArray']
    """
    return list(_PREFERRED)


def prefer_cached_array(prefer: bool) -> None:
    """Change the order of ``array_classes()``.

    Memory stays as it is: plans place values in arenas, and backends keep pools of their own.

    Example:
        >>> nn.prefer_cached_array(False)
        >>> nn.array_classes()
        ['CpuArray', 'CpuCachedArray']
        >>> nn.reset_array_preference()
    """
    _PREFERRED[:] = _USUAL if checked_flag("prefer_cached_array: prefer", prefer) else _USUAL[::-1]


def reset_array_preference() -> None:
    """Give ``array_classes()`` its usual order.

    Example:
        >>> nn.reset_array_preference()
        >>> nn.array_classes()[0]
        'CpuCachedArray'
    """
    prefer_cached_array(True)


def clear_memory_cache() -> None:
    """Return to the system the host memory that the CPU backend holds and nobody uses now."""
    if "cpu" in list_extensions():
        import_extension_module("cpu").clear_memory_cache()


def device_synchronize(device: str | int = "0") -> None:
    """Return at once: functions on the host have computed when they return."""
    _checked_device(device)


def get_device_count() -> int:
    """Return number of devices: the host is one."""
    return 1


def get_devices() -> list[str]:
    """Return the ``device_id`` of each device."""
    return ["0"]


def _checked_device(device: str | int) -> None:
    if str(device) not in get_devices():
        raise ArgumentError(f"device_synchronize: device must be one of {get_devices()}, got {device!r}")
