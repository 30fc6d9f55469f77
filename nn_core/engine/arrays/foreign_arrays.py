"""Arrays that backends of plugins make: they must be arrays, and have the shape and the dtype that was asked for.

An array of another shape would broadcast, and give numbers that are wrong. Backends of nn_core are tested for it, and not
asked.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from nn_core.engine.dispatch.blame import own_method
from nn_core.engine.error_messages.refusal import described
from nn_core.engine.runtime.installed import OWN_PACKAGES
from nn_core.errors import PluginError
from nn_core.typing import Array, Backend, Shape

#: The names of dtypes that libraries agree on.
_NAMES: Final = frozenset(
    {
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16"),
        *("float32", "float64", "complex64", "complex128", "object"),
    }
)


def made_array(backend: Backend) -> Callable[[Shape, str], Array]:
    """Return the method `empty` of a backend."""
    return _checked(backend, "empty", lambda shape, dtype: (tuple(shape), dtype))


def taken_array(backend: Backend) -> Callable[[Array], Array]:
    """Return the method `from_numpy` of a backend."""
    return _checked(backend, "from_numpy", _described)


def given_array(backend: Backend) -> Callable[[Array], Array]:
    """Return the method `to_numpy` of a backend."""
    return _checked(backend, "to_numpy", _described)


def _checked(backend: Backend, method: str, asked: Callable[..., tuple[Shape, str]]) -> Callable[..., Array]:
    """Return a method of a backend whose result must have the shape and the dtype that `asked` reads off its arguments."""
    call: Callable[..., Array] = own_method(backend, method)
    if backend.name.partition(".")[0] in OWN_PACKAGES:
        return call

    def checked(*args: Any) -> Array:
        found = call(*args)
        if method == "to_numpy" and not isinstance(found, np.ndarray):
            raise PluginError(_refusal(backend, method, "an array of NumPy", found))
        return _fitting(backend, method, found, *asked(*args))

    return checked


def _described(array: Array) -> tuple[Shape, str]:
    return tuple(array.shape), _name(array.dtype)


def _fitting(backend: Backend, method: str, found: Any, shape: Shape, dtype: str) -> Array:
    try:
        fits = tuple(found.shape) == shape and _names_agree(_name(found.dtype), dtype)
    except Exception:  # nobody knows what it is
        fits = False
    if not fits:
        raise PluginError(_refusal(backend, method, f"an array of shape {shape} and dtype {dtype}", found))
    return found


def _name(dtype: Any) -> str:
    """Return the name of a dtype of any library: "torch.float32" is "float32"."""
    return str(dtype).rpartition(".")[2]


def _names_agree(found: str, wanted: str) -> bool:
    # a library may have names of its own
    return found == wanted or found not in _NAMES


def _refusal(backend: Backend, method: str, wanted: str, found: object) -> str:
    plugin = backend.name.partition(".")[0]
    dtype = f" and dtype {found.dtype}" if hasattr(found, "dtype") else ""
    return f"{method}() of backend {backend.name!r} of plugin {plugin!r}: must return {wanted}, got {described(found)}{dtype}"
