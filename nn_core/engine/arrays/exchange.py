"""Memory shared with other libraries: values on devices by DLPack and ``__cuda_array_interface__``.

Values on the host are exchanged by NumPy. Whoever gets memory of a device may read and write it at any time, so what is
held back is started before, and copies of these values are made anew from then on.
"""

import weakref
from typing import TYPE_CHECKING, Any, Final

from nn_core.engine.arrays.spaces import space_of_dlpack
from nn_core.engine.arrays.synced import HOST, Key, ready
from nn_core.errors import ArgumentError
from nn_core.typing import Array, extra

if TYPE_CHECKING:
    from nn_core.engine.arrays.ndarray import NdArray

#: DLPack's number of the host and of its only memory.
ON_HOST: Final = (1, 0)
#: DLPack's numbers of memory that the host reads: its own, and what CUDA and ROCm lock, CUDA's managed memory.
_READ_BY_HOST: Final = frozenset({1, 3, 11, 13})
#: Raw arrays of which only the address was given away, by the NdArray that the consumer keeps alive.
_LENT: Final["weakref.WeakKeyDictionary[NdArray, dict[int, Array]]"] = weakref.WeakKeyDictionary()


def dlpack_device(array: "NdArray") -> tuple[int, int]:
    """Return the device of the values of an array, by the numbers of DLPack."""
    key = _key_on_device(array)
    if key is None:
        return ON_HOST
    kind, number = array.synced.buffer(key).__dlpack_device__()
    return int(kind), int(number)


def lent(array: "NdArray") -> Array | None:
    """Return the raw array on the device that has the values of `array`, for others who may write to it; None on the host.

    Raises:
        BufferError: when the array is a view under another shape of values that are not in C order.
    """
    key = _key_on_device(array)
    if key is None:
        return None
    ready(key[0])
    whole = array.synced.readwrite(key)
    raw = array.present(whole)
    if raw.shape != whole.shape and not array.is_narrowed and not whole.flags.c_contiguous:
        raise BufferError(
            f"an NdArray that is shared must not be a view under another shape of values that are channels-last, got "
            f"{array.shape} of {tuple(whole.shape)}\n  hint: share a copy, for example F.identity(array)"
        )
    array.synced.export_for_good(key)
    return raw


def lent_address(array: "NdArray") -> Array | None:
    """As `lent`; the memory is kept as long as `array` lives, because a consumer of an address refers to nothing else.

    The values are there when this returns: a consumer may read them in any stream, without waiting (PyTorch does).
    """
    key = _key_on_device(array)
    if key is None or key[1] == "bfloat16" or not hasattr(array.synced.buffer(key), "__cuda_array_interface__"):
        return None
    raw = lent(array)
    key[0].wait()
    whole = array.synced.copies[key]
    _LENT.setdefault(array, {})[id(whole)] = whole
    return raw


def taken(source: Any) -> tuple[Key, Array] | None:
    """Return a raw array over the memory of `source`, an object with ``__dlpack__``, and its key; None on the host.

    Raises:
        ArgumentError: when it is in the memory of a device of which no backend of the current context has arrays.
    """
    device = getattr(source, "__dlpack_device__", None)
    kind, number = ON_HOST if device is None else device()
    if kind in _READ_BY_HOST:
        return None
    space = space_of_dlpack(int(kind), int(number))
    if space is None or space.backend is None:
        raise ArgumentError(
            "from_dlpack: the values must be on the host or on a device of the current context, got "
            f"{'CUDA device' if kind == 2 else f'a device of kind {int(kind)}, number'} {int(number)}\n"
            "  hint: choose the device before, for example set_default_context(get_extension_context('cuda'))"
        )
    ready(space)
    values = space.backend.namespace().from_dlpack(source)
    return (space, values.dtype.name), values


def _key_on_device(array: "NdArray") -> Key | None:
    """Return the key of the copy that has the values, if it is in the memory of a device that DLPack knows."""
    key = array.synced.latest
    if key is None or key[0] is HOST or not extra(key[0].backend, "dlpack_device"):
        return None
    return key
