"""The memory of each device: what a backend's array code works on, as a `Space`."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from nn_core.context import get_current_context
from nn_core.engine.arrays.foreign_arrays import given_array, made_array, taken_array
from nn_core.engine.arrays.synced import HOST, Space, nothing
from nn_core.engine.dispatch.blame import own_method
from nn_core.engine.dispatch.plugin_manager import PLUGINS, get_backend
from nn_core.errors import BackendNotFoundError, BackendUnavailableError, PluginError
from nn_core.typing import Array, Backend, Shape, extra

#: By class of arrays and device: backends of one class share arrays.
_SPACES: Final[dict[tuple[str, str], Space]] = {}


def space_of(backend: Backend, device_id: str) -> Space:
    """Return the memory in which `backend` computes; all backends whose namespace is NumPy share the host's."""
    key = (backend.array_class, device_id)
    space = _SPACES.get(key)
    if space is None:
        space = HOST if own_method(backend, "namespace")() is np else _device_space(backend, device_id)
        _SPACES[key] = space
    return space


def space_of_dlpack(kind: int, device_id: int) -> Space | None:
    """Return the memory that DLPack numbers so; None where no backend of the current context has arrays there."""
    for name, _ in get_current_context().entries:
        try:
            backend = get_backend(name)
        except (BackendNotFoundError, BackendUnavailableError, PluginError):
            continue  # as dispatch passes over those that cannot be used
        if extra(backend, "dlpack_device") == kind:
            return space_of(backend, str(device_id))
    return None


def _forget() -> None:
    """Drop the memory of backends that are not loaded any more; one that is loaded anew under the name is another."""
    loaded = {id(backend) for backend in PLUGINS.loaded()}
    for key, space in list(_SPACES.items()):
        if space is not HOST and id(space.backend) not in loaded:
            _SPACES.pop(key, None)


PLUGINS.when_refreshed.append(_forget)


def _optional_method(backend: Backend, method: str) -> Any:
    return None if extra(backend, method) is None else own_method(backend, method)


def _device_space(backend: Backend, device_id: str) -> Space:
    """Return the memory of one device; `use_device`, `flush`, `wait` and `upload` are optional methods of a backend."""
    choose: Callable[[str], object] | None = _optional_method(backend, "use_device")
    flush: Callable[[], object] = _optional_method(backend, "flush") or nothing
    wait: Callable[[], object] = _optional_method(backend, "wait") or nothing
    upload: Callable[[Array, Array], object] | None = _optional_method(backend, "upload")
    make, take, give = made_array(backend), taken_array(backend), given_array(backend)
    if choose is None:
        use = nothing
    else:

        def use() -> None:
            choose(device_id)

    def empty(shape: Shape, dtype: str) -> Array:
        use()
        return make(shape, dtype)

    def from_numpy(array: Array) -> Array:
        use()
        flush()
        return take(array)

    def to_numpy(array: Array) -> Array:
        use()
        flush()
        return give(array)

    name = f"{backend.array_class}:{device_id}"
    return Space(name, empty, from_numpy, to_numpy, upload, use, flush, wait, backend)
