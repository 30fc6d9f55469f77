"""An array that can be written to and has views, over values of a library that may have neither.

`Memory` holds one value of the library and is given another one by each write; nothing writes into a value. A view knows its
parent and how it is read from it, and how the parent's value becomes another one when the view is written.
"""

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nn_core.engine.array_api_adapter.keys import BasicSelection, basic_selection, is_basic, is_everything
from nn_core.errors import ArgumentError
from nn_core.typing import Array, Shape

if TYPE_CHECKING:
    from nn_core.engine.array_api_adapter.library import Library


class Memory:
    """One value of a library and its dtype, or nothing before the first write."""

    __slots__ = ("dtype", "value")

    def __init__(self, value: Array = None, dtype: "np.dtype[Any] | None" = None) -> None:
        self.value = value
        self.dtype = dtype


class AdaptedArray:
    """A NumPy-like array whose values are in a library.

    Args:
        library: The library.
        memory: Memory that this array shares with others.
        shape: Its shape.
        dtype: Its NumPy dtype.
        parent: The array that this one is a view of; None for an array over all of its memory.
        places: Places of its elements in the parent; None: the parent's in another shape.
    """

    __slots__ = ("_library", "_memory", "_parent", "_places", "dtype", "shape")
    __array_ufunc__ = None  # NumPy scalars leave operators to this class

    def __init__(
        self,
        library: "Library",
        memory: Memory,
        shape: Shape,
        dtype: "np.dtype[Any]",
        parent: "AdaptedArray | None" = None,
        places: BasicSelection | None = None,
    ) -> None:
        self._library = library
        self._memory = memory
        self._parent = parent
        self._places = places
        self.shape = shape
        self.dtype = dtype

    # -- values ----------------------------------------------------------------------------------------------------

    @property
    def value(self) -> Array:
        """The elements as a value of the library, which must not be changed."""
        library = self._library
        if self._parent is not None:
            found = self._parent.value
            return library.reshape(found, self.shape) if self._places is None else self._places.read(library, found)
        memory = self._memory
        if memory.value is None or memory.dtype != self.dtype:
            return library.zeros(self.shape, self.dtype)  # memory is not initialised
        if tuple(memory.value.shape) == self.shape:
            return memory.value
        if library.size_of(memory.value) != self.size:
            return library.zeros(self.shape, self.dtype)
        return library.reshape(memory.value, self.shape)

    def store(self, value: Array) -> None:
        """Let `value`, which has the shape and the dtype of this array, be the elements."""
        parent, library = self._parent, self._library
        if parent is None:
            self._memory.value, self._memory.dtype = value, self.dtype
        elif self._places is None:
            parent.store(library.reshape(value, parent.shape))
        else:
            parent.store(self._places.write(library, parent.value, value))

    def __getitem__(self, key: Any) -> "AdaptedArray":
        if is_basic(key):
            places = basic_selection(key, self.shape)
            return AdaptedArray(self._library, self._memory, places.shape, self.dtype, self, places)
        return self._library.gather(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        library = self._library
        if is_everything(key):
            self.store(library.fitted(value, self.dtype, self.shape))
        elif is_basic(key):
            places = basic_selection(key, self.shape)
            if not (isinstance(value, AdaptedArray) and value._parent is self and value._places == places):
                self.store(places.write(library, self.value, library.fitted(value, self.dtype, places.shape)))
        else:
            library.put(self, key, value, add=False)

    # -- description -----------------------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for length in self.shape:
            size *= length
        return size

    @property
    def T(self) -> "AdaptedArray":  # noqa: N802  # as in NumPy
        """The axes in reverse order."""
        return self.transpose()

    @property
    def real(self) -> "AdaptedArray":
        """The real parts."""
        return self._library.part(self, "real")

    @property
    def imag(self) -> "AdaptedArray":
        """The imaginary parts."""
        return self._library.part(self, "imag")

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator["AdaptedArray"]:
        return (self[index] for index in range(self.shape[0]))

    def __repr__(self) -> str:
        return f"AdaptedArray({self.numpy()!r})"

    # -- conversion ------------------------------------------------------------------------------------------------

    def numpy(self) -> "np.ndarray[Any, Any]":
        """Return a copy on the host."""
        return self._library.to_numpy(self.value, self.dtype)

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self.numpy().tolist()

    def item(self) -> Any:
        """Return the only element."""
        return self.numpy().item()

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())

    def astype(self, dtype: Any, copy: bool = True) -> "AdaptedArray":
        """Return the values in another dtype; `copy` False: this array itself where it has the dtype."""
        kind = np.dtype(dtype)
        if kind == self.dtype and not copy:
            return self
        return self._library.wrapped(self._library.cast(self.value, self.dtype, kind), kind)

    def copy(self) -> "AdaptedArray":
        """Return the values in memory of their own."""
        return self._library.wrapped(self.value, self.dtype)

    # -- shapes ----------------------------------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> "AdaptedArray":
        """Return the same elements under another shape; writes go through."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        lengths = np.broadcast_to(np.empty((), "?"), self.shape).reshape(tuple(wanted)).shape
        if self._parent is None:
            return AdaptedArray(self._library, self._memory, lengths, self.dtype)
        return AdaptedArray(self._library, self._memory, lengths, self.dtype, self)

    def transpose(self, *axes: Any) -> "AdaptedArray":
        """Return the axes in another order: reversed, or as given. A copy."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = tuple(order) or tuple(reversed(range(self.ndim)))
        return self._library.permuted(self, order)

    def view(self, dtype: Any) -> "AdaptedArray":
        """Memory of bytes that is about to be overwritten, for elements of another dtype.

        Raises:
            ArgumentError: when the array does not hold bytes.
        """
        kind = np.dtype(dtype)
        if self.dtype != np.uint8:
            raise ArgumentError(f"view: must be of an array of uint8, got {self.dtype}")
        return AdaptedArray(self._library, self._memory, (self.size // kind.itemsize,), kind)

    # -- reductions ------------------------------------------------------------------------------------------------

    def max(self) -> "AdaptedArray":
        """Return the largest element."""
        return self._library.reduced("max", self)

    def min(self) -> "AdaptedArray":
        """Return the smallest element."""
        return self._library.reduced("min", self)

    def any(self) -> "AdaptedArray":
        """Return whether any element is true."""
        return self._library.reduced("any", self)

    def all(self) -> "AdaptedArray":
        """Return whether all elements are true."""
        return self._library.reduced("all", self)

    if TYPE_CHECKING:  # made below, from a table

        def __add__(self, other: Any) -> "AdaptedArray": ...
        def __lt__(self, other: Any) -> "AdaptedArray": ...
        def __truediv__(self, other: Any) -> "AdaptedArray": ...

    # -- operators -------------------------------------------------------------------------------------------------

    def __neg__(self) -> "AdaptedArray":
        return self._library.operated(operator.neg, self)

    def __pos__(self) -> "AdaptedArray":
        return self.copy()

    def __abs__(self) -> "AdaptedArray":
        return self._library.unary("abs", self)

    def __invert__(self) -> "AdaptedArray":
        return self._library.operated(operator.invert, self)

    def __matmul__(self, other: Any) -> "AdaptedArray":
        return self._library.matmul(self, other)


def _forward(operate: Callable[[Any, Any], Any]) -> Callable[[AdaptedArray, Any], AdaptedArray]:
    def method(self: AdaptedArray, other: Any) -> AdaptedArray:
        return self._library.operated(operate, self, other)

    return method


def _reflected(operate: Callable[[Any, Any], Any]) -> Callable[[AdaptedArray, Any], AdaptedArray]:
    def method(self: AdaptedArray, other: Any) -> AdaptedArray:
        return self._library.operated(operate, other, self)

    return method


def _in_place(operate: Callable[[Any, Any], Any]) -> Callable[[AdaptedArray, Any], AdaptedArray]:
    def method(self: AdaptedArray, other: Any) -> AdaptedArray:
        result = self._library.operated(operate, self, other)
        self.store(self._library.fitted(result, self.dtype, self.shape))
        return self

    return method


_ARITHMETIC: Final = {
    "add": operator.add,
    "and": operator.and_,
    "floordiv": operator.floordiv,
    "lshift": operator.lshift,
    "mod": operator.mod,
    "mul": operator.mul,
    "or": operator.or_,
    "pow": operator.pow,
    "rshift": operator.rshift,
    "sub": operator.sub,
    "truediv": operator.truediv,
    "xor": operator.xor,
}
_COMPARISONS: Final = {
    "eq": operator.eq,
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "ne": operator.ne,
}
for _name, _operate in _ARITHMETIC.items():
    setattr(AdaptedArray, f"__{_name}__", _forward(_operate))
    setattr(AdaptedArray, f"__r{_name}__", _reflected(_operate))
    setattr(AdaptedArray, f"__i{_name}__", _in_place(_operate))
for _name, _operate in _COMPARISONS.items():
    setattr(AdaptedArray, f"__{_name}__", _forward(_operate))
AdaptedArray.__hash__ = None  # type: ignore[assignment]  # comparisons are element by element
