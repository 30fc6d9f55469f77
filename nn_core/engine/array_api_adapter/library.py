"""The functions of the Python array API standard that `AdaptedArray` and the adapted namespace call in a library.

NumPy's rules of promotion are applied here, so that the library only sees operands of one dtype. A function that the library
lacks, or refuses with NotImplementedError, runs on the host; so do those of matrices that it refuses in stacks.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nn_core.engine.array_api_adapter.array import AdaptedArray, Memory
from nn_core.engine.arrays.casting import dtype_of
from nn_core.errors import DTypeError
from nn_core.typing import Array, Namespace, Shape

#: ``update(x, key, values, add)`` is `x` with `values` set (or added) in the places of `key`, which is either a tuple of
#: integers and slices of positive step, one for each axis, or the indices of some elements of a flat `x`.
Update = Callable[[Array, Any, Array, bool], Array]

_COMPARISONS: Final = frozenset({operator.eq, operator.ge, operator.gt, operator.le, operator.lt, operator.ne})
_NUMBERS: Final = (bool, int, float, complex)
_FLOAT64: Final = np.dtype(np.float64)
_INT64: Final = np.dtype(np.int64)
_BOOL: Final = np.dtype(np.bool_)


class Library:
    """One array library.

    Args:
        xp: Its namespace, as the standard describes it.
        update: How elements of its immutable arrays are replaced; None: by assignment to a copy, or on the host.
        functions: Functions of the contract under the names and arguments that NumPy has, in place of those of `xp`.
        from_numpy: Makes one of its arrays of a NumPy array; None: ``xp.asarray``.
        to_numpy: Makes a NumPy array of one of its arrays; None: ``numpy.asarray``.
    """

    def __init__(
        self,
        xp: Namespace,
        *,
        update: Update | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        from_numpy: Callable[[Array], Array] | None = None,
        to_numpy: Callable[[Array], Array] | None = None,
    ) -> None:
        self.xp = xp
        self.own = dict(functions or {})
        self._update = update
        self._from_numpy = from_numpy or xp.asarray
        self._to_numpy = to_numpy or np.asarray
        #: functions that the library has, and has refused for some arrays that the host computes
        self.refused: set[str] = set()
        self._assigns = True
        self._dtypes: dict[Any, np.dtype[Any]] = {}

    # -- functions -------------------------------------------------------------------------------------------------

    def find(self, name: str) -> Callable[..., Any] | None:
        """Return the library's function of the standard called `name` ("linalg.det"), or None."""
        found: Any = self.xp
        for part in name.split("."):
            found = getattr(found, part, None)
        return found

    def function(self, name: str) -> Callable[..., Any] | None:
        """Return the function that is used for `name`: the one that was given, else the library's own, or None."""
        return self.own.get(name) or self.find(name)

    def on_host(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        """Return the result of a NumPy function, computed on the host and brought back."""
        with np.errstate(all="ignore"):
            return self._brought_back(function(*[_taken_to_host(arg) for arg in args], **keywords))

    def _computed(self, name: str, values: tuple[Array, ...], operands: tuple[Any, ...], **keywords: Any) -> Any:
        """Return the result of the library's function for its own `values`; without one, NumPy's for the `operands`."""
        function = self.function(name)
        if function is not None:
            try:
                return self.wrapped(function(*values, **keywords))
            except NotImplementedError:  # perhaps for this dtype only: the next call tries again
                self.refused.add(name)
        return self.on_host(getattr(np, name), *operands, **keywords)

    def _brought_back(self, result: Any) -> Any:
        if isinstance(result, (tuple, list)):
            return tuple(self._brought_back(part) for part in result)
        return self.array(result)

    # -- dtypes and conversions ------------------------------------------------------------------------------------

    def native(self, dtype: "np.dtype[Any]") -> Any:
        """Return the library's dtype.

        Raises:
            DTypeError: when it has none.
        """
        found = getattr(self.xp, dtype.name, None)
        if found is None:
            raise DTypeError(f"dtype: must be one of the library {self.xp.__name__}, got {dtype.name}")
        return found

    def dtype_of_value(self, value: Array) -> "np.dtype[Any]":
        """Return the NumPy dtype of a value of the library."""
        native = value.dtype
        if native not in self._dtypes:
            self._dtypes[native] = dtype_of(str(native).rpartition(".")[2])
        return self._dtypes[native]

    def cast(self, value: Array, source: "np.dtype[Any]", target: "np.dtype[Any]") -> Array:
        """Return a value of the library in another dtype."""
        if source == target:
            return value
        if source.kind == "c" and target.kind != "c":
            value = self.xp.real(value)
        return self.xp.astype(value, self.native(target))

    def from_numpy(self, array: Any) -> Array:
        """Return a value of the library with the elements of a NumPy array."""
        array = np.array(array, order="C")
        native = self.native(array.dtype)
        if array.dtype.name != "bfloat16":
            return self._from_numpy(array)
        return self.xp.astype(self._from_numpy(array.astype(np.float32)), native)

    def to_numpy(self, value: Array, dtype: "np.dtype[Any]") -> "np.ndarray[Any, Any]":
        """Return the elements of a value of the library, in a copy."""
        if dtype.name == "bfloat16":
            value = self.xp.astype(value, self.xp.float32)
        return np.array(self._to_numpy(value), dtype=dtype, order="C")

    def wrapped(self, value: Array, dtype: "np.dtype[Any] | None" = None) -> AdaptedArray:
        """Return a new array over a value of the library."""
        kind = self.dtype_of_value(value) if dtype is None else dtype
        return AdaptedArray(self, Memory(value, kind), tuple(value.shape), kind)

    def array(self, values: Any, dtype: Any = None) -> AdaptedArray:
        """Return an array of what a kernel gives: one of ours, one of NumPy's, numbers, or lists of these."""
        if isinstance(values, AdaptedArray):
            return values if dtype is None else values.astype(dtype, copy=False)
        if isinstance(values, (list, tuple)):
            values = [_taken_to_host(part) for part in values]
        return self.wrapped(self.from_numpy(np.asarray(values, None if dtype is None else np.dtype(dtype))))

    def fitted(self, values: Any, dtype: "np.dtype[Any]", shape: Shape) -> Array:
        """Return a value of the library for `values`, cast to `dtype` and broadcast to `shape`.

        Raises:
            ValueError: when it cannot be broadcast.
        """
        if not isinstance(values, AdaptedArray):
            with np.errstate(all="ignore"):
                values = self.wrapped(self.from_numpy(np.asarray(values).astype(dtype)), dtype)
        value = self.cast(values.value, values.dtype, dtype)
        if values.shape == shape:
            return value
        while len(values.shape) > len(shape) and values.shape[0] == 1:
            values = values.reshape(values.shape[1:])
            value = self.reshape(value, values.shape)
        if np.broadcast_shapes(values.shape, shape) != shape:
            raise ValueError(f"values must broadcast to the shape {shape}, got {values.shape}")
        return self.xp.broadcast_to(value, shape)

    # -- values of the library -------------------------------------------------------------------------------------

    def zeros(self, shape: Shape, dtype: "np.dtype[Any]") -> Array:
        """Return a value of zeros."""
        return self.xp.zeros(shape, dtype=self.native(dtype))

    def reshape(self, value: Array, shape: Shape) -> Array:
        """`value` in another shape."""
        if tuple(value.shape) == shape:
            return value
        try:
            return self.xp.reshape(value, shape)
        except NotImplementedError:  # of lazy arrays some merges of axes only
            self.refused.add("reshape")
            return self.from_numpy(self.to_numpy(value, self.dtype_of_value(value)).reshape(shape))

    def flip(self, value: Array, axes: Sequence[int]) -> Array:
        """`value` with some axes backwards."""
        return self.xp.flip(value, axis=tuple(axes))

    @staticmethod
    def size_of(value: Array) -> int:
        """Return number of elements."""
        size = 1
        for length in value.shape:
            size *= length
        return size

    def updated(self, value: Array, key: Any, part: Array, *, add: bool = False) -> Array:
        """`value` with `part` in the places of `key`; see `Update`."""
        if self._update is not None:
            return self._update(value, key, part, add)
        if isinstance(key, tuple) and self._assigns and not add:
            try:
                copy = self.xp.asarray(value, copy=True)
                copy[key] = part
            except TypeError:  # arrays of the library never change
                self._assigns = False
            else:
                return copy
        host = self.to_numpy(value, self.dtype_of_value(value))
        places = key if isinstance(key, tuple) else (self.to_numpy(key, _INT64),)
        new = self.to_numpy(part, host.dtype)
        if add:
            np.add.at(host, places, new)
        else:
            host[places] = new
        return self.from_numpy(host)

    # -- operators -------------------------------------------------------------------------------------------------

    def promoted(self, *operands: Any, at_least: "np.dtype[Any] | None" = None) -> tuple[list[Array], "np.dtype[Any]"]:
        """Values of the operands in their common dtype, by the rules of NumPy."""
        operands = tuple([op if isinstance(op, (AdaptedArray, *_NUMBERS)) else self.array(op) for op in operands])
        kinds = [op.dtype if isinstance(op, AdaptedArray) else op for op in operands]
        if all(isinstance(kind, _NUMBERS) for kind in kinds):
            kinds = [np.asarray(kind).dtype for kind in kinds]
        dtype = np.result_type(*kinds)
        if at_least is not None and dtype.kind in "biu":
            dtype = at_least
        return [self._operand(op, dtype) for op in operands], dtype

    def _operand(self, operand: Any, dtype: "np.dtype[Any]") -> Array:
        if isinstance(operand, AdaptedArray):
            return self.cast(operand.value, operand.dtype, dtype)
        return self._scalar(operand, dtype)

    def _scalar(self, number: Any, dtype: "np.dtype[Any]") -> Array:
        with np.errstate(all="ignore"):
            return self.from_numpy(np.asarray(number).astype(dtype))

    def operated(self, operate: Callable[..., Any], *operands: Any) -> AdaptedArray:
        """Return the result of an operator of Python."""
        widened = _FLOAT64 if operate is operator.truediv else _INT64 if operate in _ON_NUMBERS else None
        if widened is _INT64 and not all(_is_boolean(operand) for operand in operands):
            widened = None
        values, dtype = self.promoted(*operands, at_least=widened)
        return self.wrapped(operate(*values), _BOOL if operate in _COMPARISONS else dtype)

    def unary(self, name: str, x: Any, *, floating: bool = False) -> AdaptedArray:
        """Return an element-wise function; with `floating` whole numbers become float64 first."""
        (value,), _ = self.promoted(x, at_least=_FLOAT64 if floating else None)
        return self._computed(name, (value,), (x,))

    def binary(self, name: str, a: Any, b: Any, *, floating: bool = False) -> AdaptedArray:
        """Return an element-wise function of two arrays or numbers."""
        (first, second), _ = self.promoted(a, b, at_least=_FLOAT64 if floating else None)
        return self._computed(name, (first, second), (a, b))

    def matmul(self, a: Any, b: Any) -> AdaptedArray:
        """Return the product of matrices."""
        values, dtype = self.promoted(a, b)
        return self.wrapped(self.xp.matmul(*values), dtype)

    def reduced(self, name: str, x: Any, **keywords: Any) -> AdaptedArray:
        """Return a reduction of the standard."""
        return self._computed(name, (self.array(x).value,), (x,), **keywords)

    def permuted(self, x: Any, axes: Sequence[int]) -> AdaptedArray:
        """Return the axes in another order."""
        array = self.array(x)
        order = tuple(axis % max(array.ndim, 1) for axis in axes)
        return self.wrapped(self.xp.permute_dims(array.value, order), array.dtype)

    def part(self, x: AdaptedArray, name: str) -> AdaptedArray:
        """Return the real or the imaginary parts."""
        if x.dtype.kind == "c":
            return self.wrapped(getattr(self.xp, name)(x.value))
        return x if name == "real" else self.wrapped(self.zeros(x.shape, x.dtype), x.dtype)

    # -- indexing by arrays ----------------------------------------------------------------------------------------

    def gather(self, x: AdaptedArray, key: Any) -> AdaptedArray:
        """``x[key]`` where `key` has index arrays or a mask."""
        places, shape = self._flat_places(x, key)
        flat = self.reshape(x.value, (x.size,))
        return self.wrapped(self.reshape(self.xp.take(flat, places, axis=0), shape), x.dtype)

    def nonzero(self, x: AdaptedArray) -> tuple[AdaptedArray, ...]:
        """Places of the elements that are not zero."""
        found = self.xp.nonzero(x.value)
        if all(length is not None and length == length for axis in found for length in axis.shape):
            return tuple([self.wrapped(axis) for axis in found])
        self.refused.add("nonzero")  # a lazy array does not know how many there are: NaN, or None in the standard
        places: tuple[AdaptedArray, ...] = self.on_host(np.nonzero, x)
        return places

    def put(self, x: AdaptedArray, key: Any, values: Any, *, add: bool) -> None:
        """``x[key] = values`` where `key` has index arrays or a mask; with `add` ``numpy.add.at``."""
        places, shape = self._flat_places(x, key)
        part = self.reshape(self.fitted(values, x.dtype, shape), (int(np.prod(shape, dtype=np.int64)),))
        flat = self.updated(self.reshape(x.value, (x.size,)), places, part, add=add)
        x.store(self.reshape(flat, x.shape))

    def _flat_places(self, x: AdaptedArray, key: Any) -> tuple[Array, Shape]:
        """Numbers of the elements that `key` names, as a flat value of the library, and the shape of the result."""
        parts = key if isinstance(key, tuple) else (key,)
        if all(isinstance(part, AdaptedArray) and part.dtype.kind in "iu" for part in parts):
            return self._places_of_indices(parts, x.shape)
        if len(parts) == 1 and isinstance(key, AdaptedArray) and key.dtype.kind == "b":
            return self._places_of_indices(self.nonzero(key), x.shape)
        numbers = np.arange(x.size).reshape(x.shape)[tuple([_taken_to_host(part) for part in parts])]
        return self.from_numpy(numbers.reshape(-1)), numbers.shape

    def _places_of_indices(self, parts: Sequence[AdaptedArray], shape: Shape) -> tuple[Array, Shape]:
        common = np.broadcast_shapes(*[part.shape for part in parts])
        inner = shape[len(parts) :]
        number: Any = 0
        for part, length in zip(parts, shape, strict=False):
            index = part.astype(_INT64, copy=False)
            number = number * length + self.select(index < 0, index + length, index)
        width = int(np.prod(inner, dtype=np.int64))
        if inner:
            within = self.array(np.arange(width).reshape(inner))
            number = number.reshape(*number.shape, *[1] * len(inner)) * width + within
        places = self.xp.broadcast_to(number.value, (*common, *inner))
        return self.reshape(places, (int(np.prod((*common, *inner), dtype=np.int64)),)), (*common, *inner)

    def select(self, condition: Any, a: Any, b: Any) -> AdaptedArray:
        """``numpy.where(condition, a, b)``."""
        values, dtype = self.promoted(a, b)
        array = self.array(condition)
        mask = self.cast(array.value, array.dtype, _BOOL)
        return self.wrapped(self.xp.where(mask, *values), dtype)


#: Operators that the standard leaves undefined for booleans; NumPy counts them as 0 and 1 beside numbers.
_ON_NUMBERS: Final = frozenset(
    {operator.add, operator.mul, operator.sub, operator.neg, operator.floordiv, operator.mod, operator.pow}
)


def _is_boolean(operand: Any) -> bool:
    return isinstance(operand, bool) or (isinstance(operand, AdaptedArray) and operand.dtype == _BOOL)


def _taken_to_host(value: Any) -> Any:
    if isinstance(value, AdaptedArray):
        return value.numpy()
    if isinstance(value, (list, tuple)):
        return [_taken_to_host(part) for part in value]
    return value
