"""A backend over any library that follows the Python array API standard."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nn_core.engine.array_api_adapter.array import AdaptedArray, Memory
from nn_core.engine.array_api_adapter.library import Library, Update
from nn_core.engine.array_api_adapter.namespace import AdaptedNamespace
from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.error_messages.refusal import fitted
from nn_core.typing import Array, Kernel, Namespace, Shape


class AdaptedBackend:
    """Runs every operator on the arrays of a library, immutable ones and ones without views included.

    Args:
        name: Name of the backend, as in its `BackendInfo`.
        array_class: Name of its device family, as in its `BackendInfo`.
        xp: The namespace of the library, as the Python array API standard describes it.
        update: ``update(x, key, values, add)`` returns `x` with `values` set, or added if `add`, in the places of `key`: a
            tuple with an integer or a slice of positive step for each axis, or the indices of some elements of a flat `x`.
            None: by assignment to a copy, and for indices on the host.
        functions: Functions of the array contract on values of the library, in place of those of `xp`, by name.
        from_numpy: Makes one of its arrays of a NumPy array, on a device for example; None: ``xp.asarray``.
        to_numpy: Makes a NumPy array of one of its arrays; None: ``numpy.asarray``.
        kernels: Kernels of its own; their arrays are `AdaptedArray`: ``array.value`` reads and ``array.store(value)`` writes.

    Example:
        >>> import numpy as np
        >>> backend = AdaptedBackend("acme", "AcmeArray", np)
        >>> x = backend.from_numpy(np.ones(3))
        >>> x[1:] += 1
        >>> x.tolist()
        [1.0, 2.0, 2.0]
    """

    @fitted
    def __init__(
        self,
        name: str,
        array_class: str,
        xp: Namespace,
        *,
        update: Update | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        from_numpy: Callable[[Array], Array] | None = None,
        to_numpy: Callable[[Array], Array] | None = None,
        kernels: Mapping[str, Kernel] | None = None,
    ) -> None:
        self.name = name
        self.array_class = array_class
        self.kernels: Mapping[str, Kernel] = dict(kernels or {})
        self._library = Library(xp, update=update, functions=functions, from_numpy=from_numpy, to_numpy=to_numpy)
        self._namespace = AdaptedNamespace(self._library)

    def namespace(self) -> Namespace:
        """Return the array contract over the library."""
        return self._namespace

    def host_functions(self) -> tuple[str, ...]:
        """Return the functions of the array contract that run on the host: the library has none, or has refused a call of
        it.
        """
        return self._namespace.host_functions()

    def empty(self, shape: Shape, dtype: str) -> Array:
        """Return a new array; nothing is allocated before it is written."""
        return AdaptedArray(self._library, Memory(), tuple(shape), dtype_of(dtype))

    def from_numpy(self, array: Array) -> Array:
        """Return a copy of a NumPy array."""
        host = np.asarray(array)
        return self._library.wrapped(self._library.from_numpy(host), host.dtype)

    def to_numpy(self, array: Array) -> Array:
        """Return a copy on the host."""
        return array.numpy()
