"""NdArray: one logical array that is free of device and dtype.

Reading in another dtype or space converts lazily and keeps the copy until the values change (see ``synced``).
``zero()`` and ``fill()`` only make a note; the first reader carries it out where it needs the values.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from nn_core.errors import ArgumentError, DTypeError, ShapeError
from nn_core.synced import HOST, Space, SyncedArray, dtype_name, dtype_of
from nn_core.typing import Array, Shape


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
        array._synced.lend_for_good((HOST, values.dtype.name))
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
        if not isinstance(value, np.ndarray) and np.ndim(value) == 0:
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
        np.copyto(self.write(HOST, dtype_name(values.dtype)), broadcast)

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
            self.write(HOST, name)
        elif mode == "rw":
            self.readwrite(HOST, name)
        else:
            raise ArgumentError(f"get_data: mode must be 'r', 'w' or 'rw', got {mode!r}")
        return self._present(self._synced.lend((HOST, name)))

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
        array = self.get_data("w" if write_only else "rw", dtype)
        self._synced.lend_for_good((HOST, array.dtype.name))
        return int(array.ctypes.data)

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
