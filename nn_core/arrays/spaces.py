"""The memory of each device: what a backend's array code works on, as a `Space`."""

from collections.abc import Callable
from typing import Final

import numpy as np

from nn_core.arrays.synced import HOST, Space, nothing
from nn_core.context import get_current_context
from nn_core.dispatch.plugins import get_backend
from nn_core.errors import BackendNotFoundError, BackendUnavailableError, PluginError
from nn_core.typing import Array, Backend, Shape, extra

#: By class of arrays and device: backends of one class share arrays.
_SPACES: Final[dict[tuple[str, str], Space]] = {}


def space_of(backend: Backend, device_id: str) -> Space:
    """The memory in which `backend` computes; all backends whose namespace is NumPy share the host's."""
    key = (backend.array_class, device_id)
    space = _SPACES.get(key)
    if space is None:
        space = HOST if backend.namespace() is np else _device_space(backend, device_id)
        _SPACES[key] = space
    return space


def space_of_dlpack(kind: int, device_id: int) -> Space | None:
    """The memory that DLPack numbers so; None where no backend of the current context has arrays there."""
    for name, _ in get_current_context().entries:
        try:
            backend = get_backend(name)
        except (BackendNotFoundError, BackendUnavailableError, PluginError):
            continue  # as dispatch passes over those that cannot be used
        if extra(backend, "dlpack_device") == kind:
            return space_of(backend, str(device_id))
    return None


def _device_space(backend: Backend, device_id: str) -> Space:
    """The memory of one device; `use_device`, `flush` and `upload` are optional methods of a backend."""
    choose: Callable[[str], object] | None = extra(backend, "use_device")
    flush: Callable[[], object] = extra(backend, "flush") or nothing
    upload: Callable[[Array, Array], object] | None = extra(backend, "upload")
    if choose is None:
        use = nothing
    else:

        def use() -> None:
            choose(device_id)

    def empty(shape: Shape, dtype: str) -> Array:
        use()
        return backend.empty(shape, dtype)

    def from_numpy(array: Array) -> Array:
        use()
        flush()
        return backend.from_numpy(array)

    def to_numpy(array: Array) -> Array:
        use()
        flush()
        return backend.to_numpy(array)

    name = f"{backend.array_class}:{device_id}"
    return Space(name, empty, from_numpy, to_numpy, upload, use, flush, backend)
