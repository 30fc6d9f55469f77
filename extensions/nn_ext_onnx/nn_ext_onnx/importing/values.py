"""Values of a model while its graph is built: known numbers, or variables of nn_core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, Protocol

import numpy as np
import onnx
from onnx import helper

import nn_core as nn

#: Integers of less than a byte.
_SHORT_INTEGERS: Final = frozenset({"int2", "int4", "uint2", "uint4"})
#: Types of few bits, in which nothing is computed: numbers of them are held as float32 or integers, and made on the host.
NARROW: Final = _SHORT_INTEGERS | {
    *("float4_e2m1fn", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
}
#: Element types that values may have; those of others, such as texts, may only be known.
COMPUTED: Final = NARROW | {
    *("bfloat16", "float16", "float32", "float64", "bool"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}

#: Element types of quantized numbers.
LEVELS: Final = frozenset({"int8", "uint8", "int16", "uint16"})

Array = np.ndarray[Any, Any]


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is one of floating point, bfloat16 included."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def is_whole(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is one of integers."""
    return dtype.kind in "iu" or dtype.name in _SHORT_INTEGERS


def held(array: Array) -> Array:
    """Return numbers as graphs hold them: of few bits as float32 or int8, others as they are."""
    if array.dtype.name not in NARROW:
        return array
    return array.astype(np.int8 if is_whole(array.dtype) else np.float32)


class UnsupportedError(Exception):
    """Something that cannot be imported; the text says what."""


class UnknownNumbersError(Exception):
    """A converter needs the numbers of a value that is not known when the graph is built."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class PresentNumbersError(Exception):
    """A graph can only be built for the numbers that the inputs have at present."""


class Stored(Protocol):
    """An array that stays in its file until it is needed."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its dtype."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    def read(self) -> Array:
        """Return the numbers."""


class Value:
    """A value of the model.

    Attributes:
        name: in the model.
        dtype: of the model; a variable may hold another one.
        sources: inputs of the model that it depends on.
        is_parameter: whether it is an initializer that may be trained.
        origin: the levels that it was made of, None where there are none.
        stored: where its numbers are in a file, from which they are read whenever they are needed, if they are in one.
        kept: the variable of an earlier graph of the model, which stands for it in this one too.
    """

    __slots__ = ("_array", "_compute", "_variable", "dtype", "is_parameter", "kept", "name", "origin", "sources", "stored")

    def __init__(
        self,
        name: str,
        dtype: np.dtype[Any],
        array: Array | None = None,
        variable: nn.Variable | None = None,
        sources: frozenset[str] = frozenset(),
        is_parameter: bool = False,
        compute: Callable[[], Array] | None = None,
        stored: Stored | None = None,
    ) -> None:
        self.name, self.dtype, self.sources, self.is_parameter = name, dtype, sources, is_parameter
        self._array, self._variable, self._compute, self.stored = array, variable, compute, stored
        self.origin: Any = None
        self.kept: nn.Variable | None = None

    @property
    def is_known(self) -> bool:
        """Whether its numbers are known and constant."""
        return (self._array is not None or self.stored is not None) and not self.is_parameter

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        if self._array is not None:
            return self._array.shape
        if self.stored is not None:
            return self.stored.shape
        assert self._variable is not None
        return tuple(self._variable.shape)

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return prod(self.shape)

    @property
    def array(self) -> Array:
        """Its numbers, in the dtype of the model.

        Raises:
            UnknownNumbersError: when they depend on what the model gets.
        """
        if self._array is None and self._compute is not None:
            self._array = self._compute()
        if self._array is None and self.stored is not None:
            return self.stored.read()  # not kept: the weights of large files would be in memory twice
        if self._array is None:
            raise UnknownNumbersError(self)
        return self._array

    @property
    def variable(self) -> nn.Variable:
        """The variable that stands for it in the graph."""
        if self._variable is None and self.kept is not None:
            self._variable = self.kept
        if self._variable is None:
            assert self._array is not None or self.stored is not None
            array = held(np.asarray(self.array))
            if is_float(array.dtype) and array.dtype != np.float64:
                array = array.astype(np.float32, copy=False)
            make = (
                nn.Variable.from_numpy_array if self.stored is None else nn.Variable.from_dlpack
            )  # nobody else has what was read
            self._variable = make(array, need_grad=self.is_parameter)
            self._variable.name = self.name
        return self._variable

    def changed(self, array: Array) -> nn.Variable:
        """Make the variable of a parameter from its numbers in another layout."""
        if self.kept is not None:
            return self.variable
        self._variable = Value(self.name, self.dtype, array, is_parameter=True).variable
        return self._variable

    @property
    def has_variable(self) -> bool:
        """Whether a variable was made for it."""
        return self._variable is not None


class SequenceValue(Value):
    """A sequence of values, whose number is known when the graph is built.

    Attributes:
        items: the values.
    """

    __slots__ = ("items",)

    def __init__(self, name: str, dtype: np.dtype[Any], items: Sequence[Value]) -> None:
        sources = frozenset().union(*(item.sources for item in items))
        super().__init__(name, dtype, np.zeros(0, dtype), sources=sources)
        self.items = list(items)


class AbsentValue(Value):
    """The value of an optional one that has none."""

    __slots__ = ()

    def __init__(self, name: str, sources: frozenset[str] = frozenset()) -> None:
        super().__init__(name, np.dtype(np.float32), np.zeros(0, np.float32), sources=sources)


def is_tensor(value: Value | None) -> bool:
    """Return whether a value is one array."""
    return not isinstance(value, (SequenceValue, AbsentValue))


def dtype_of(elem_type: int) -> np.dtype[Any]:
    """Return the dtype of an element type.

    Raises:
        UnsupportedError: when there is no such type.
    """
    try:
        return np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))
    except (KeyError, TypeError) as error:
        raise UnsupportedError(f"element type {elem_type}") from error


def type_proto(value: Value) -> onnx.TypeProto:
    """Return the type of a value, as the schemas of operators take it."""
    elem_type = helper.np_dtype_to_tensor_dtype(value.dtype)
    if isinstance(value, SequenceValue):
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(elem_type, None))
    if isinstance(value, AbsentValue):
        return helper.make_optional_type_proto(helper.make_tensor_type_proto(elem_type, None))
    return helper.make_tensor_type_proto(elem_type, list(value.shape))
