"""NdArray: one logical array that is free of device and dtype.

Inside, a ``SyncedArray`` keeps copies of the values by memory space and dtype and knows which one is the head, the copy
that was written last. Reading in another dtype or space converts the head and keeps the copy until the head moves.
``zero()`` and ``fill()`` only make a note; the first reader carries it out where it needs the values.
"""

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from nn_core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from nn_core.typing import Array, Backend, Shape

ALIGNMENT_BYTES = 64


class Epoch:
    """A counter of events that can make a compiled plan wrong: buffers replaced, heads moved, graphs rewired."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


EPOCH = Epoch()


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """One memory: the host's, or that of one device; converts from and to NumPy."""

    name: str
    empty: Callable[[Shape, str], Array]
    from_numpy: Callable[[Array], Array]
    to_numpy: Callable[[Array], Array]

    def __repr__(self) -> str:
        return f"Space({self.name!r})"


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy dtype called `name`; bfloat16 comes with the package ml_dtypes."""
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError as error:
            raise DTypeError("dtype bfloat16 needs the package ml_dtypes; run: pip install ml_dtypes") from error
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def host_empty(shape: Shape, dtype: str) -> Array:
    """A new uninitialised C-contiguous NumPy array whose memory starts at a multiple of 64 bytes."""
    kind = dtype_of(dtype)
    n_bytes = kind.itemsize
    for length in shape:
        n_bytes *= length
    raw = np.empty(n_bytes + ALIGNMENT_BYTES, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT_BYTES
    return raw[start : start + n_bytes].view(kind).reshape(shape)


HOST = Space("host", host_empty, np.array, np.asarray)
_SPACES: dict[tuple[str, str], Space] = {}


def space_of(backend: Backend, device_id: str) -> Space:
    """The memory in which `backend` computes; all backends whose namespace is NumPy share the host's."""
    key = (backend.array_class, device_id)
    space = _SPACES.get(key)
    if space is None:
        if backend.namespace() is np:
            space = HOST
        else:
            space = Space(f"{backend.array_class}:{device_id}", backend.empty, backend.from_numpy, backend.to_numpy)
        _SPACES[key] = space
    return space


class Owner(Protocol):
    """A plan that lends its buffers to arrays; it is told when one of them has been taken back."""

    displaced: bool


class Tenure:
    """The right of an array to values that lie in a plan's memory; it ends when the plan reuses the memory."""

    __slots__ = ("_owner", "alive")

    def __init__(self, owner: Owner, alive: bool) -> None:
        self._owner = weakref.ref(owner)
        self.alive = alive

    @property
    def owner(self) -> Owner | None:
        """The plan, unless it is gone. The reference is weak, so that a graph is freed as soon as nobody holds it."""
        return self._owner()

    def displace(self) -> None:
        """Tell the plan that the array has other values now."""
        owner = self._owner()
        if owner is not None:
            owner.displaced = True


Key: TypeAlias = tuple[Space, str]


class SyncedArray:
    """The values behind one or more NdArrays: copies by (space, dtype), of which the valid ones agree."""

    __slots__ = ("bound", "clear_called", "copies", "head", "lazy", "modifications", "shape", "tenure", "valid")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.copies: dict[Key, Array] = {}
        self.valid: set[Key] = set()
        self.head: Key | None = None
        self.lazy: float | None = None
        self.tenure: Tenure | None = None
        self.clear_called = False
        self.bound = False
        self.modifications = 0

    @property
    def dtype(self) -> str:
        """dtype of the head; float32 before anything was written."""
        return self.head[1] if self.head is not None else "float32"

    @property
    def cleared(self) -> bool:
        """True when a plan has reused the memory that held the values."""
        return self.tenure is not None and not self.tenure.alive

    def buffer(self, key: Key) -> Array:
        """The memory for `key`, allocated if it is not there; its content is whatever it was."""
        array = self.copies.get(key)
        if array is None:
            array = key[0].empty(self.shape, key[1])
            self.copies[key] = array
        return array

    def read(self, key: Key) -> Array:
        """The values in the space and dtype of `key`; the caller must not write."""
        if key in self.valid and self.lazy is None:
            return self.copies[key]
        self._require_alive()
        if self.lazy is not None or self.head is None:
            array = self.buffer(key)
            array[...] = self.lazy or 0.0
            self._move_head(key)
            self.lazy = None
            return array
        array = self.buffer(key)
        _convert(self.head, self.copies[self.head], key, array)
        self.valid.add(key)
        return array

    def write(self, key: Key) -> Array:
        """The memory for `key`, about to be overwritten as a whole; all other copies become invalid."""
        self._end_tenure()
        array = self.buffer(key)
        self.lazy = None
        self.clear_called = False
        self.modifications += 1
        self._move_head(key)
        return array

    def readwrite(self, key: Key) -> Array:
        """The values in `key`'s space and dtype, about to be changed in place."""
        array = self.read(key)
        self.clear_called = False
        self.modifications += 1
        self._move_head(key)
        return array

    def fill(self, value: float) -> None:
        """Note that every element is `value`; carried out by the first reader."""
        self._end_tenure()
        self.lazy = value
        self.clear_called = False
        self.modifications += 1

    def clear(self) -> None:
        """Give the memory back; the next reader gets zeros."""
        self._end_tenure()
        self.clear_called = True
        self.lazy = None
        self.copies.clear()
        self.valid.clear()
        self.head = None
        if self.bound:
            EPOCH.value += 1

    def attach(self, key: Key, array: Array, tenure: Tenure) -> None:
        """Let a plan's `array` be the values, for as long as `tenure` lasts."""
        old = self.tenure
        if old is not None and old is not tenure and old.owner is not tenure.owner:
            old.displace()
        self.tenure = tenure
        self.lazy = None
        self.clear_called = not tenure.alive
        if not tenure.alive:
            self.copies.clear()
            self.valid.clear()
            self.head = None
            return
        self.copies[key] = array
        self._move_head(key)

    def settle(self, key: Key) -> Array:
        """The values in C order in `key`, replacing a plan's strided buffer by a copy of its own."""
        array = self.read(key)
        if key[0] is HOST and not array.flags.c_contiguous:
            contiguous = host_empty(self.shape, key[1])
            contiguous[...] = array
            self.copies[key] = array = contiguous
            self._end_tenure()
            if self.bound:
                EPOCH.value += 1
        return array

    def _move_head(self, key: Key) -> None:
        if self.head is not key and self.head != key and self.bound:
            EPOCH.value += 1
        self.head = key
        if len(self.valid) != 1 or key not in self.valid:
            self.valid = {key}

    def _end_tenure(self) -> None:
        if self.tenure is not None:
            self.tenure.displace()
            self.tenure = None

    def _require_alive(self) -> None:
        if self.tenure is not None and not self.tenure.alive and self.lazy is None:
            raise GraphError(
                f"an array of shape {self.shape} must not be read after its memory was reused, got a read after "
                "forward or backward with clear_buffer=True or clear_no_need_grad=True\n"
                "  hint: set variable.persistent = True before the forward pass to keep the values"
            )


def _convert(source_key: Key, source: Array, target_key: Key, target: Array) -> None:
    source_space, target_space = source_key[0], target_key[0]
    if source_space is target_space:
        if target_space is HOST:
            np.copyto(target, source, casting="unsafe")
        else:
            target[...] = source
        return
    host = np.asarray(source_space.to_numpy(source))
    if target_space is HOST:
        np.copyto(target, host, casting="unsafe")
        return
    target[...] = target_space.from_numpy(np.ascontiguousarray(host, dtype_of(target_key[1])))


class NdArray:
    """A multi-dimensional array, free of device and dtype.

    Args:
        shape: lengths of the axes; () gives an array with one element and no axis.

    The values are zero until something is written; the dtype is float32 until values of another dtype are assigned.
    Arithmetic (``+ - * / **``) computes at once in the current context and gives a new NdArray; ``+= -= *= /=`` change
    the values in place.

    Example:
        >>> a = NdArray((2, 3))
        >>> a.fill(1.5)
        >>> float(a.data.sum())
        9.0
    """

    __slots__ = ("__weakref__", "_base", "_shape", "_synced", "_window")
    __array_priority__ = 1000

    def __init__(self, shape: Iterable[int] | int = ()) -> None:
        self._shape = checked_shape(shape)
        self._synced = SyncedArray(self._shape)
        self._window: tuple[slice, ...] | None = None
        self._base = self._shape

    @staticmethod
    def of_shape(shape: Shape) -> "NdArray":
        """A new array of a shape that is known to be a tuple of ints."""
        array = NdArray.__new__(NdArray)
        array._shape = array._base = shape
        array._synced = SyncedArray(shape)
        array._window = None
        return array

    @staticmethod
    def from_numpy_array(nparr: Any) -> "NdArray":
        """A new NdArray with a copy of the values; the dtype is kept."""
        values = np.asarray(nparr)
        array = NdArray(values.shape)
        array.data = values
        return array

    @staticmethod
    def from_dlpack(source: Any) -> "NdArray":
        """A new NdArray over the memory of `source` (any object with ``__dlpack__``), without a copy on the host."""
        values = np.from_dlpack(source)
        array = NdArray(values.shape)
        if not values.flags.writeable or not values.flags.c_contiguous:
            array.data = values
            return array
        array._synced.copies[(HOST, values.dtype.name)] = values
        array._synced._move_head((HOST, values.dtype.name))
        return array

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return _product(self._shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements to step over for one step along each axis, in C order."""
        steps, step = [], 1
        for length in reversed(self._shape):
            steps.append(step)
            step *= length
        return tuple(reversed(steps))

    @property
    def dtype(self) -> np.dtype[Any]:
        """dtype of the values that were written last; float32 before that."""
        return dtype_of(self._synced.dtype)

    @property
    def zeroing(self) -> bool:
        """True when the array is known to be zero and nothing has read it since ``zero()``."""
        return self._synced.lazy == 0.0

    @property
    def clear_called(self) -> bool:
        """True when the memory was given back and nothing has been written since."""
        return self._synced.clear_called or self._synced.cleared

    @property
    def modification_count(self) -> int:
        """How often the values were replaced or opened for writing."""
        return self._synced.modifications

    def size_from_axis(self, axis: int = -1) -> int:
        """Number of elements of the axes from `axis` on; all elements for a negative axis."""
        return _product(self._shape[max(axis, 0) :])

    def __len__(self) -> int:
        if not self._shape:
            raise ShapeError("len() needs an array with at least one axis, got shape ()")
        return self._shape[0]

    def __repr__(self) -> str:
        return f"<NdArray({self._shape}) at {id(self):#x}>"

    # -- values ----------------------------------------------------------------------------------------------------

    @property
    def data(self) -> np.ndarray[Any, Any]:
        """The values as a NumPy array that shares memory: writing to it changes this NdArray.

        Assigning an array copies its values and takes its dtype; assigning a number fills with it.
        """
        return self.get_data("rw")

    @data.setter
    def data(self, value: Any) -> None:
        if isinstance(value, NdArray):
            value = value.get_data("r")
        if isinstance(value, (int, float)) or (np.ndim(value) == 0 and not isinstance(value, np.ndarray)):
            self.fill(float(value))
            return
        values = np.asarray(value)
        if values.dtype.kind not in "fiubV" or values.dtype.hasobject:
            raise DTypeError(f"NdArray: values must be real numbers or booleans, got dtype {values.dtype}")
        try:
            broadcast = values if values.shape == self._shape else np.broadcast_to(values, self._shape)
        except ValueError as error:
            raise ShapeError(
                f"NdArray: assigned values must have the array's shape, got {values.shape} for {self._shape}"
            ) from error
        np.copyto(self.write(HOST, values.dtype.name), broadcast)

    def get_data(self, mode: str = "rw", dtype: Any = None) -> np.ndarray[Any, Any]:
        """The values as a NumPy array.

        Args:
            mode: "r" to read, "w" to overwrite all values, "rw" to change some.
            dtype: dtype to convert to; None: the present one.
        """
        name = self._synced.dtype if dtype is None else np.dtype(dtype).name
        if mode == "r":
            array = self.read(HOST, name).view()
            array.flags.writeable = False
            return array
        if mode == "w":
            return self.write(HOST, name)
        if mode == "rw":
            return self.readwrite(HOST, name)
        raise ArgumentError(f"get_data: mode must be 'r', 'w' or 'rw', got {mode!r}")

    def read(self, space: Space, dtype: str) -> Array:
        """The raw array to read in `space` as `dtype`."""
        return self._present(self._synced.read((space, dtype)))

    def write(self, space: Space, dtype: str) -> Array:
        """The raw array in `space` as `dtype`, to be overwritten as a whole."""
        if self._window is not None:
            return self.readwrite(space, dtype)
        return self._present(self._synced.write((space, dtype)))

    def readwrite(self, space: Space, dtype: str) -> Array:
        """The raw array in `space` as `dtype`, C-contiguous, to be changed in place."""
        synced = self._synced
        synced.settle((space, dtype))
        return self._present(synced.readwrite((space, dtype)))

    def _present(self, raw: Array) -> Array:
        if self._window is not None:
            return raw.reshape(self._base)[self._window]
        return raw if raw.shape == self._shape else raw.reshape(self._shape)

    def zero(self) -> None:
        """Set all values to zero, lazily."""
        self.fill(0.0)

    def fill(self, value: float) -> None:
        """Set all values to `value`, lazily."""
        if self._window is not None:
            self.data[...] = value
        else:
            self._synced.fill(float(value))

    def clear(self) -> None:
        """Give the memory back."""
        self._synced.clear()

    def cast(self, dtype: Any, ctx: Any = None) -> np.ndarray[Any, Any]:
        """Convert the values to `dtype` and return them as a NumPy array that shares memory."""
        return self.get_data("rw", dtype)

    def data_ptr(self, dtype: Any, ctx: Any = None, write_only: bool = False) -> int:
        """Address of the first element of the values as `dtype` on the host."""
        return int(self.get_data("w" if write_only else "rw", dtype).ctypes.data)

    def copy_from(self, arr: "NdArray", use_current_context: bool = True) -> None:
        """Copy the values of `arr`, which must have the same shape."""
        if arr.shape != self._shape:
            raise ShapeError(f"copy_from: the arrays must have one shape, got {arr.shape} for {self._shape}")
        source = arr._synced
        if source.lazy is not None:
            self.fill(source.lazy)
            return
        space, dtype = source.head if source.head is not None else (HOST, "float32")
        values = arr.read(space, dtype)
        self.write(space, dtype)[...] = values

    def bool_fill(self, mask: "NdArray", value: float) -> None:
        """Set the elements where `mask` is not zero to `value`."""
        np.putmask(self.data, np.broadcast_to(mask.get_data("r") != 0, self._shape), value)

    masked_fill = bool_fill

    # -- views -----------------------------------------------------------------------------------------------------

    def view(self, shape: Iterable[int]) -> "NdArray":
        """The same memory under another shape with the same number of elements (one length may be -1)."""
        target = inferred_shape(shape, self.size)
        if self._window is not None:
            raise ShapeError(f"view: a narrowed array keeps its shape, got view({target}) of {self._shape}")
        other = NdArray.__new__(NdArray)
        other._shape, other._synced, other._window, other._base = target, self._synced, None, target
        return other

    def narrow(self, dim: int, start: int, length: int) -> "NdArray":
        """The same memory limited to `length` elements from `start` along axis `dim`."""
        if not -self.ndim <= dim < self.ndim:
            raise ArgumentError(f"narrow: dim must be an axis of {self._shape}, got {dim}")
        dim %= self.ndim
        if start < 0 or length < 0 or start + length > self._shape[dim]:
            raise ArgumentError(
                f"narrow: start and length must lie within axis {dim} of {self._shape}, got {start} and {length}"
            )
        window = list(self._window or (slice(0, n) for n in self._shape))
        origin = window[dim].start
        window[dim] = slice(origin + start, origin + start + length)
        other = NdArray.__new__(NdArray)
        other._shape = (*self._shape[:dim], length, *self._shape[dim + 1 :])
        other._synced, other._window, other._base = self._synced, tuple(window), self._base
        return other

    # -- exchange --------------------------------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        values = self.get_data("rw")
        if copy or (dtype is not None and values.dtype != np.dtype(dtype)):
            return np.array(values, dtype=dtype)
        return values

    def __dlpack__(self, **options: Any) -> Any:
        return self.get_data("rw").__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        head = self._synced.head
        raw = self._synced.copies[head] if head is not None and self._synced.lazy is None else None
        if raw is None or not hasattr(raw, "__cuda_array_interface__"):
            raise AttributeError("__cuda_array_interface__: the values do not lie on a CUDA device")
        interface: dict[str, Any] = self._present(raw).__cuda_array_interface__
        return interface


def checked_shape(shape: Iterable[int] | int) -> Shape:
    """`shape` as a tuple of non-negative ints."""
    lengths = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    try:
        result = tuple([length.__index__() for length in lengths])
    except AttributeError as error:
        raise ShapeError(f"shape: every length must be an int, got {lengths}") from error
    if any(length < 0 for length in result):
        raise ShapeError(f"shape: every length must be at least 0, got {result}")
    return result


def inferred_shape(shape: Iterable[int], size: int) -> Shape:
    """`shape` with its -1, if there is one, replaced so that it has `size` elements."""
    lengths = tuple(int(length) for length in shape)
    unknown = lengths.count(-1)
    known = _product(length for length in lengths if length != -1)
    if unknown == 1 and known > 0 and size % known == 0:
        lengths = tuple(size // known if length == -1 else length for length in lengths)
    elif unknown or known != size:
        raise ShapeError(f"the new shape must have {size} elements, got {lengths}")
    return checked_shape(lengths)


def _product(lengths: Iterable[int]) -> int:
    product = 1
    for length in lengths:
        product *= length
    return product
