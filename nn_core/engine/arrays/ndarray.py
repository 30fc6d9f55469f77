"""NdArray: one logical array that is free of device and dtype.

Reading in another dtype or space converts lazily and keeps the copy until the values change (see ``synced``).
``zero()`` and ``fill()`` only make a note; the first reader carries it out where it needs the values.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nn_core.engine.arrays.bound_operators import NdArrayOperators
from nn_core.engine.arrays.casting import cast, dtype_name, dtype_of
from nn_core.engine.arrays.construction import Constructed
from nn_core.engine.arrays.display import display_line, html_table, values_on_host
from nn_core.engine.arrays.exchange import ON_HOST, dlpack_device, lent, lent_address, taken
from nn_core.engine.arrays.shapes import checked_shape, inferred_shape
from nn_core.engine.arrays.synced import HOST, Space, SyncedArray, is_ready_on_device
from nn_core.engine.error_messages.attributes import Misnamed, SuggestsAttributes, offered
from nn_core.engine.error_messages.refusal import described, door, fitted, real_numbers
from nn_core.engine.error_messages.whole import fraction_hint, whole
from nn_core.errors import ArgumentError, DTypeError, ShapeError
from nn_core.settings import are_shapes_strict
from nn_core.typing import Array, Shape

_new: Final = object.__new__

#: Attributes of the engine, which completion does not offer.
_ENGINE: Final = frozenset(
    {"get_data", "is_narrowed", "is_unwritten", "is_whole", "of_shape", "present", "read", "readwrite", "rest_as", "rest_on"}
) | {"synced", "write"}


class NdArray(NdArrayOperators, SuggestsAttributes, Constructed):
    """A multi-dimensional array, free of device and dtype.

    Args:
        shape: lengths of the axes, as a tuple or one after the other; () gives an array with one element and no axis.

    The values are zero until something is written; the dtype is float32 until values of another dtype are assigned.
    Arithmetic (``+ - * / // % ** @``) and comparisons (``< <= > >=``) compute at once in the current context and give a
    new NdArray; ``+= -= *= /=`` change the values in place. The other operand is a number, an NdArray, a computed Variable
    or a NumPy array.

    Example:
        >>> a = NdArray((2, 3))
        >>> a.fill(1.5)
        >>> float(a.data.sum())
        9.0
    """

    #: `synced` has the values, and is the engine's: views share it, and copies of devices and dtypes are in it
    __slots__ = ("__weakref__", "_base", "_shape", "_window", "synced")
    __array_priority__ = 1000
    _takes_numpy = True

    if not TYPE_CHECKING:  # a checker would take these as leave for any attribute
        d = Misnamed("data is a NumPy array that shares the memory")
        value = Misnamed("data is a NumPy array that shares the memory")
        values = Misnamed("data is a NumPy array that shares the memory")
        need_grad = Misnamed("gradients belong to a Variable, nn_core.Variable(shape)")
        requires_grad = Misnamed("gradients belong to a Variable, nn_core.Variable(shape)")
        grad = Misnamed("gradients belong to a Variable, nn_core.Variable(shape)")
        g = Misnamed("gradients belong to a Variable, nn_core.Variable(shape)")

    def __dir__(self) -> list[str]:
        return offered(self, _ENGINE)

    _shape: Shape
    _base: Shape
    _window: tuple[slice, ...] | None

    def _construct(self, shape: Iterable[int] | int = (), *lengths: int) -> None:
        try:
            self._shape = self._base = checked_shape((shape, *lengths) if lengths else shape)  # type: ignore[arg-type]  # checked
        except ShapeError as error:
            raise ShapeError(f"NdArray: {error}") from error.__cause__
        self.synced = SyncedArray(self._shape)
        self._window = None

    if TYPE_CHECKING:

        def __init__(self, shape: Iterable[int] | int = (), *lengths: int) -> None: ...

    @staticmethod
    def of_shape(shape: Shape) -> "NdArray":
        """Return a new array of a shape that is known to be a tuple of ints."""
        array = _new(NdArray)
        array._shape = array._base = shape
        array.synced = SyncedArray(shape)
        array._window = None
        return array

    @staticmethod
    @door
    def from_numpy_array(nparr: Any) -> "NdArray":
        """Return a new NdArray with a copy of the values; the dtype is kept."""
        values = real_numbers("NdArray", nparr)
        array = NdArray(values.shape)
        array.data = values
        return array

    @staticmethod
    @door
    def from_dlpack(source: Any) -> "NdArray":
        """Return a new NdArray over the memory of `source` (any object with ``__dlpack__``), on the host or on a device.

        Values that are not in C order, and those of the host that must not be written, are copied. Memory of a device is
        taken by a backend of the current context, whose stream waits for the producer's.

        Raises:
            DTypeError: when the numbers are complex, or such as NumPy does not have.
            ArgumentError: when the values are on a device of which no backend of the current context has arrays, or when
                their tensor requires a gradient.

        Example:
            >>> values = np.ones((2, 3), np.float32)
            >>> array = nn.from_dlpack(values)
            >>> values[0, 0] = 5
            >>> array.data[0].tolist()
            [5.0, 1.0, 1.0]
        """
        on_device = taken(source)
        values = _host_values(source) if on_device is None else on_device[1]
        if values.dtype.kind == "c":
            raise DTypeError(f"NdArray.from_dlpack: the numbers must be real, got {values.dtype.name}")
        key = (HOST, values.dtype.name) if on_device is None else on_device[0]
        array = NdArray(values.shape)
        if not values.flags.c_contiguous or (on_device is None and not values.flags.writeable):
            array.write(*key)[...] = values
            return array
        array.synced.hold(key, values)
        array.synced.modifications += 1
        array.synced.export_for_good(key)
        return array

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        return self._shape

    @property
    def is_narrowed(self) -> bool:
        """Whether the array shows a part of its memory; see `narrow`."""
        return self._window is not None

    @property
    def is_whole(self) -> bool:
        """Whether the array shows all of its memory, in the shape that the memory has; views have shapes of their own."""
        return self._window is None and self._shape is self.synced.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self._shape)

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
        return dtype_of(self.synced.dtype)

    @property
    def zeroing(self) -> bool:
        """True when the array is known to be zero and nothing has read it since ``zero()``."""
        return self.synced.pending_fill == 0.0

    @property
    def is_unwritten(self) -> bool:
        """True when there are no values: the array is ``zeroing``, or nothing was ever written or was cleared."""
        synced = self.synced
        return synced.pending_fill == 0.0 or (synced.pending_fill is None and synced.latest is None)

    @property
    def clear_called(self) -> bool:
        """True when the memory was given back and nothing has been written since."""
        return self.synced.clear_called or self.synced.cleared

    @property
    def modification_count(self) -> int:
        """Number of times that the values were replaced or opened for writing."""
        return self.synced.modifications

    @door
    def size_from_axis(self, axis: int = -1) -> int:
        """Return number of elements of the axes from `axis` on; all elements for a negative axis."""
        return math.prod(self._shape[max(whole(axis), 0) :])

    def __bool__(self) -> bool:
        if self.synced.dtype == "bool":
            return bool(self._only_truth())
        return True

    def _only_truth(self) -> Any:
        if self.size != 1:
            raise ArgumentError(
                f"bool: a comparison of arrays must not be used as one truth value, got a result of shape {self._shape}\n"
                "  hint: use y.numpy().all() or y.numpy().any(), or F.where to choose element by element"
            )
        return self.item()

    def __repr__(self) -> str:
        return display_line(type(self).__name__, self._facts(), values_on_host(self))

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self._facts(), values_on_host(self))

    def _facts(self) -> list[str]:
        return [str(self._shape), self.synced.dtype]

    def _values(self) -> "NdArray":
        return self

    # -- values ----------------------------------------------------------------------------------------------------

    @property
    def data(self) -> np.ndarray[Any, Any]:
        """The values as a NumPy array that shares memory: writing to it changes this NdArray.

        Assigning an array copies its values, which are broadcast to the shape as in NumPy, and takes its dtype; assigning
        a number fills with it, and leaves arrays that were taken before alone. Where `nn_core.settings.strict_shapes` holds,
        an array must have the shape itself.
        """
        return self.get_data("rw")

    @data.setter
    def data(self, value: Any) -> None:
        if isinstance(value, NdArray):
            if value._shape == self._shape and is_ready_on_device(value.synced):
                self.copy_from(value)
                return
            value = value.get_data("r")
        if not isinstance(value, np.ndarray):
            value = real_numbers("NdArray", value) if isinstance(value, (list, tuple)) else value
        if not isinstance(value, np.ndarray) and np.ndim(value) == 0:
            if value is None or isinstance(value, (str, dict)):
                raise ArgumentError(f"NdArray: values must be an array or a number, got {described(value)}")
            self.fill(value)
            return
        values = real_numbers("NdArray", value)
        if values.shape != self._shape:
            values = _broadcast(values, self._shape)
        np.copyto(self.write(HOST, dtype_name(values.dtype)), values)

    def get_data(self, mode: str = "rw", dtype: Any = None) -> np.ndarray[Any, Any]:
        """Return the values as a NumPy array.

        Args:
            mode: "r" to read, "w" to overwrite all values, "rw" to change some.
            dtype: dtype to convert to; None: the present one.
        """
        name = self.synced.dtype if dtype is None else np.dtype(dtype).name
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
        return self.present(self.synced.export((HOST, name)))

    def read(self, space: Space, dtype: str, exact: bool = False) -> Array:
        """Return the raw array to read in `space` as `dtype`; `exact`: see `SyncedArray.read`."""
        return self.present(self.synced.read((space, dtype), exact))

    def write(self, space: Space, dtype: str) -> Array:
        """Return the raw array in `space` as `dtype`, to be overwritten as a whole."""
        if self._window is not None:
            return self.readwrite(space, dtype)
        return self.present(self.synced.write((space, dtype)))

    def readwrite(self, space: Space, dtype: str) -> Array:
        """Return the raw array in `space` as `dtype`, C-contiguous, to be changed in place."""
        synced = self.synced
        synced.make_contiguous((space, dtype))
        return self.present(synced.readwrite((space, dtype)))

    def present(self, raw: Array) -> Array:
        """Return the part of `raw`, which has the layout of the memory, that the array shows."""
        if self._window is not None:
            part = raw.reshape(self._base)[self._window]
            return part if part.shape == self._shape else part.reshape(self._shape)
        return raw if raw.shape == self._shape else raw.reshape(self._shape)

    def rest_on(self, synced: SyncedArray, shape: Shape) -> None:
        """Show `synced` as a whole, under another shape with as many elements, from now on; for the engine."""
        self._shape, self._base, self.synced, self._window = shape, shape, synced, None

    def rest_as(self, other: "NdArray") -> None:
        """Show what `other` shows, from now on; for the engine."""
        self._shape, self._base, self.synced, self._window = other._shape, other._base, other.synced, other._window

    def zero(self) -> None:
        """Set all values to zero, lazily; NumPy views that a program holds keep what they show."""
        self.fill(0.0)

    @fitted
    def fill(self, value: float) -> None:
        """Set all values to `value`, lazily; NumPy views that a program holds keep what they show."""
        if self._window is not None:
            cast(np.asarray(_number(value)), self.data)
        else:
            self.synced.fill(_number(value))

    def clear(self) -> None:
        """Give the memory back."""
        self.synced.clear()

    @door
    def cast(self, dtype: Any, ctx: Any = None) -> np.ndarray[Any, Any]:
        """Convert the values to `dtype` and return them as a NumPy array that shares memory."""
        return self.get_data("rw", dtype)

    @door
    def data_ptr(self, dtype: Any, ctx: Any = None, write_only: bool = False) -> int:
        """Address of the first element of the values as `dtype` on the host."""
        array = self.get_data("w" if write_only else "rw", dtype)
        self.synced.export_for_good((HOST, array.dtype.name))
        return int(array.ctypes.data)

    @door
    def copy_from(self, arr: "NdArray", use_current_context: bool = True) -> None:
        """Copy the values of `arr`, which must have the same shape."""
        if arr.shape != self._shape:
            raise ShapeError(f"copy_from: the arrays must have one shape, got {arr.shape} for {self._shape}")
        source = arr.synced
        if source.pending_fill is not None:
            self.fill(source.pending_fill)
            return
        space, dtype = source.latest if source.latest is not None else (HOST, "float32")
        values = arr.read(space, dtype)
        self.write(space, dtype)[...] = values

    @door
    def bool_fill(self, mask: "NdArray", value: float) -> None:
        """Set the elements where `mask` is not zero to `value`."""
        np.putmask(self.data, np.broadcast_to(mask.get_data("r") != 0, self._shape), value)

    masked_fill = bool_fill

    # -- views -----------------------------------------------------------------------------------------------------

    @door
    def view(self, shape: Iterable[int]) -> "NdArray":
        """Return the same memory under another shape with the same number of elements (one length may be -1)."""
        target = inferred_shape(shape, self.size)
        other = _new(NdArray)
        other._shape, other.synced, other._window, other._base = target, self.synced, None, target
        if self._window is not None:
            other._window, other._base = self._window_in_a_row(target), (math.prod(self._base),)
        return other

    def _window_in_a_row(self, target: Shape) -> tuple[slice, ...]:
        """Return the elements of a narrowed array as one piece of its memory."""
        strides, start, step = [], 0, 1
        for length, part in zip(reversed(self._base), reversed(self._window or ()), strict=True):
            start += part.start * step
            if part.stop - part.start > 1:
                strides.append((part.stop - part.start, step))
            step *= length
        step = 1
        for length, stride in strides:
            if stride != step:
                raise ShapeError(f"view: a narrowed array must be contiguous, got view({target}) of {self._shape}")
            step *= length
        return (slice(start, start + self.size),)

    @door
    def narrow(self, dim: int, start: int, length: int) -> "NdArray":
        """Return the same memory limited to `length` elements from `start` along axis `dim`."""
        try:
            dim, start, length = whole(dim), whole(start), whole(length)
        except TypeError as error:
            given = f"{dim!r}, {start!r} and {length!r}"
            hint = next(filter(None, map(fraction_hint, (dim, start, length))), "")
            raise ArgumentError(f"narrow: dim, start and length must be integers, got {given}{hint}") from error
        if not -self.ndim <= dim < self.ndim:
            raise ArgumentError(f"narrow: dim must be an axis of {self._shape}, got {dim}")
        dim %= self.ndim
        if self._window is not None and len(self._window) != self.ndim:
            raise ShapeError(f"narrow: a narrowed array under another shape must not be narrowed, got {self._shape}")
        if start < 0 or length < 0 or start + length > self._shape[dim]:
            raise ArgumentError(
                f"narrow: start and length must lie within axis {dim} of {self._shape}, got {start} and {length}"
            )
        window = list(self._window or (slice(0, n) for n in self._shape))
        origin = window[dim].start
        window[dim] = slice(origin + start, origin + start + length)
        other = _new(NdArray)
        other._shape = (*self._shape[:dim], length, *self._shape[dim + 1 :])
        other.synced, other._window, other._base = self.synced, tuple(window), self._base
        return other

    # -- copies ----------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and deepcopy by value, ``copy.copy`` as another NdArray of the same memory; views stay views."""
        return _restored, (type(self), self._shape, self.synced, self._window, self._base), self.__getstate__()

    def __getstate__(self) -> Any:
        """Attributes that a user's subclass adds to its instances."""
        return added_state(self, NdArray)

    # -- exchange --------------------------------------------------------------------------------------------------

    def __dlpack__(self, **options: Any) -> Any:
        wanted = options.get("dl_device")
        if wanted is None or tuple(wanted) == self.__dlpack_device__():
            raw = lent(self)
            return (self.get_data("rw") if raw is None else raw).__dlpack__(**options)
        if options.get("copy") is False or tuple(wanted) != ON_HOST:
            raise BufferError(
                f"__dlpack__: dl_device must be the device of the values, {self.__dlpack_device__()}, or, with a copy, the "
                f"host, {ON_HOST}, got {tuple(wanted)} with copy={options.get('copy')}"
            )
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack_device(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raw = lent_address(self)
        if raw is None:
            raise AttributeError(
                "__cuda_array_interface__: the values are not on a CUDA device, or they are bfloat16, which it cannot name"
            )
        return {**raw.__cuda_array_interface__, "stream": None}  # nothing to wait for: the values are there


def _broadcast(values: np.ndarray[Any, Any], shape: Shape) -> np.ndarray[Any, Any]:
    if values.ndim and are_shapes_strict():
        raise ShapeError(
            f"NdArray: assigned values must have the shape {shape} or be a number, got {values.shape}\n"
            "  hint: strict_shapes() or NN_CORE_STRICT_SHAPES forbids broadcasting"
        )
    try:
        return np.broadcast_to(values, shape)
    except ValueError as error:
        raise ShapeError(f"NdArray: assigned values must have the array's shape, got {values.shape} for {shape}") from error


def added_state(value: Any, base: type) -> Any:
    """Return the attributes of `value` that classes below `base` have made room for, as ``object.__getstate__`` gives them."""
    slots: dict[str, Any] = {}
    for cls in type(value).__mro__[: type(value).__mro__.index(base)]:
        names = vars(cls).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                slots[name] = getattr(value, name)
    attributes = getattr(value, "__dict__", None) or None
    return (attributes, slots) if slots else attributes


def _restored(cls: type[NdArray], shape: Shape, synced: SyncedArray, window: tuple[slice, ...] | None, base: Shape) -> NdArray:
    array = _new(cls)
    array._shape, array.synced, array._window, array._base = shape, synced, window, base
    return array


def _host_values(source: Any) -> np.ndarray[Any, Any]:
    """Return the memory of an object with ``__dlpack__`` as a NumPy array."""
    if getattr(source, "requires_grad", False) and hasattr(source, "detach"):
        raise ArgumentError(
            "NdArray.from_dlpack: a tensor must not require a gradient, got one that does\n  hint: tensor.detach() does not"
        )
    try:
        return np.from_dlpack(source)
    except (RuntimeError, BufferError) as error:
        raise DTypeError(
            f"NdArray.from_dlpack: numbers must be such as NumPy has, got {described(source)} ({error})"
        ) from error


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise ArgumentError(f"fill: a number must fit into 64 bits, got {described(value)}") from error
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"fill: value must be a number, got {described(value)}") from error
