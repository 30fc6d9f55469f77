"""Arrays of other libraries without a copy, by capsules of DLPack."""

import ctypes
from typing import Any, Final

import numpy as np

from nn_core.context import Context
from nn_core.engine.arrays.exchange import ON_HOST
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import HOST
from nn_core.errors import ArgumentError, ShapeError
from nn_core.variable import Variable

#: Bytes in front of the device in a `DLManagedTensor` and in a `DLManagedTensorVersioned`, by the names of their capsules.
_DEVICE_OFFSETS: Final = {b"dltensor": 8, b"dltensor_versioned": 40}


class _Owner:
    """Hands a capsule to a library in the way it asks for one."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        name = ctypes.pythonapi.PyCapsule_GetName
        name.argtypes, name.restype = [ctypes.py_object], ctypes.c_char_p
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
        try:
            own_name = name(self._capsule)
            start = pointer(self._capsule, own_name) + _DEVICE_OFFSETS[own_name]
        except (ValueError, KeyError) as error:
            raise ArgumentError(
                f"from_dlpack: dlp must be a capsule that was not consumed, or have __dlpack__, got {self._capsule!r}"
            ) from error
        kind, number = (ctypes.c_int32 * 2).from_address(start)
        return kind, number


class _Writable:
    """The memory of an array, to be written as well."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self._values = values  # keeps the memory alive
        self.__array_interface__ = {**values.__array_interface__, "data": (values.ctypes.data, False)}


def to_dlpack(a: NdArray | Variable, dtype: Any = None, ctx: Context | None = None) -> Any:
    """Return a DLPack capsule over the memory of an array, on the host or on the device where its values are.

    Args:
        a: The array; of a Variable, its data.
        dtype: The array is converted to it where it is; None: its own.
        ctx: Not used; the values stay where they are.

    Returns:
        A capsule for one consumer. The NdArray and the consumer share memory.

    Raises:
        ArgumentError: when `a` is neither.

    Example:
        >>> import numpy as np
        >>> capsule = to_dlpack(NdArray.from_numpy_array(np.arange(3.0)))
        >>> from_dlpack(capsule).data.tolist()
        [0.0, 1.0, 2.0]
    """
    array = a.data if isinstance(a, Variable) else a
    if not isinstance(array, NdArray):
        raise ArgumentError(f"to_dlpack: a must be an NdArray or a Variable, got {type(a).__name__}")
    if dtype is not None:
        latest = array.synced.latest
        array.readwrite(HOST if latest is None else latest[0], np.dtype(dtype).name)
    return array.__dlpack__()


def from_dlpack(dlp: Any, arr: NdArray | None = None) -> NdArray:
    """Return an NdArray over the memory of a capsule, or of an object with ``__dlpack__``.

    Args:
        dlp: The capsule, which is consumed, or the object.
        arr: An NdArray of the same shape that takes a copy of the values in place of a new one.

    Returns:
        A new NdArray that shares memory with the producer, or `arr`.

    Raises:
        ShapeError: when `arr` has another shape.
        ArgumentError: when `dlp` is neither, was consumed before, or is on a device that the current context has no
            backend for.
    """
    if not hasattr(dlp, "__dlpack__"):
        dlp = _Owner(dlp)
        if dlp.__dlpack_device__() == ON_HOST:
            # A capsule of the first version of DLPack cannot say whether it may be written; NumPy takes it as read-only.
            dlp = np.asarray(_Writable(np.from_dlpack(dlp)))
    found = NdArray.from_dlpack(dlp)
    if arr is None:
        return found
    if arr.shape != found.shape:
        raise ShapeError(f"from_dlpack: arr must have the shape {found.shape}, got {arr.shape}")
    arr.copy_from(found)
    return arr
