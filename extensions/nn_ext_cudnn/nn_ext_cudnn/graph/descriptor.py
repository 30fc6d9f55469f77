"""Descriptors of the backend API as objects."""

import ctypes
import weakref
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from nn_ext_cudnn import library
from nn_ext_cudnn.graph.attributes import BACKEND_DESCRIPTOR, Kind, Type

#: The functions of the backend API that this package calls.
FUNCTIONS: Final[library.Table] = {
    "cudnnBackendCreateDescriptor": (ctypes.c_int, library.RESULT),
    "cudnnBackendDestroyDescriptor": (library.POINTER,),
    "cudnnBackendFinalize": (library.POINTER,),
    "cudnnBackendSetAttribute": (library.POINTER, ctypes.c_int, ctypes.c_int, ctypes.c_int64, library.POINTER),
    "cudnnBackendGetAttribute": (
        library.POINTER,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int64,
        ctypes.POINTER(ctypes.c_int64),
        library.POINTER,
    ),
    "cudnnBackendExecute": (library.POINTER, library.POINTER, library.POINTER),
}


@lru_cache(maxsize=1)
def functions() -> Any:
    """Return the functions of the backend API."""
    return library.functions(FUNCTIONS)


class Descriptor:
    """A descriptor; cuDNN frees it together with this object.

    Attributes:
        kind: The kind of object that it describes.
        pointer: The ``cudnnBackendDescriptor_t``.
    """

    __slots__ = ("__weakref__", "_parts", "kind", "pointer")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.pointer = ctypes.c_void_p()
        self._parts: list[Descriptor] = []  # what it refers to lives as long
        called = functions()
        called.cudnnBackendCreateDescriptor(kind.number, ctypes.byref(self.pointer))
        weakref.finalize(self, called.cudnnBackendDestroyDescriptor, self.pointer.value).atexit = False

    def set(self, name: str, *values: Any, kind: Type | None = None) -> None:
        """Set an attribute, as one of another type than that of the table if `kind` is given."""
        number, listed = self.kind.attributes[name]
        chosen = kind or listed
        if chosen is BACKEND_DESCRIPTOR:
            self._parts += values
            values = tuple(part.pointer for part in values)
        array = (chosen.c_type * len(values))(*values)
        functions().cudnnBackendSetAttribute(self.pointer, number, chosen.number, len(values), array)

    def finalize(self) -> None:
        """Check the attributes; they stay as they are from now on."""
        functions().cudnnBackendFinalize(self.pointer)

    def get(self, name: str, n_most: int = 1) -> list[Any]:
        """Return the values of an attribute, `n_most` of them at most."""
        _, listed = self.kind.attributes[name]
        array = (listed.c_type * n_most)()
        return list(array[: self._read(name, n_most, array)])

    def descriptors(self, name: str, kind: Kind) -> "list[Descriptor]":
        """Return the descriptors that an attribute consists of."""
        n_most = self._read(name, 0, None)
        found = [Descriptor(kind) for _ in range(n_most)]
        if not found:
            return []
        array = (ctypes.c_void_p * n_most)(*[each.pointer.value for each in found])
        found = found[: self._read(name, n_most, array)]
        for each in found:
            each._parts.append(self)
        return found

    def _read(self, name: str, n_most: int, array: Any) -> int:
        number, listed = self.kind.attributes[name]
        count = ctypes.c_int64(0)
        functions().cudnnBackendGetAttribute(self.pointer, number, listed.number, n_most, ctypes.byref(count), array)
        return count.value


def described(kind: Kind, **attributes: Any) -> Descriptor:
    """Return a finalized descriptor; an attribute is a value or a sequence of values, and None leaves it out."""
    descriptor = Descriptor(kind)
    for name, value in attributes.items():
        if value is not None:
            values = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
            descriptor.set(name, *values)
    descriptor.finalize()
    return descriptor


def execute(handle: Any, plan: Descriptor, pack: Descriptor) -> None:
    """Run a plan on the arrays of a variant pack, in the stream of the handle."""
    functions().cudnnBackendExecute(handle, plan.pointer, pack.pointer)
