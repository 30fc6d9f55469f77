"""A namespace over NumPy that has the array contract and refuses everything else.

Kernels that pass on it run over any library that is adapted by `nn_core.engine.array_api_adapter`. Whatever is not in
`nn_core.array_contract` raises `ContractError` with the name that is missing: other functions, other attributes of
arrays, mixing with arrays of NumPy, and writing into an input or into a part of another array.

>>> xp = strict_namespace()
>>> x = xp.asarray([1.0, 2.0])
>>> xp.exp(x).shape
(2,)
>>> xp.convolve(x, x)
Traceback (most recent call last):
nn_core.testing.strict_namespace.ContractError: xp must be used by the array contract (docs/array_contract.md), got xp.convolve
"""

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType, SimpleNamespace
from typing import Any, Final

import numpy as np

from nn_core.array_contract import ATTRIBUTES, CONSTANTS, DTYPES, FUNCTIONS, METHODS


class ContractError(AssertionError):
    """A kernel used something that is not in the array contract."""


def _refuse(what: str) -> ContractError:
    return ContractError(f"xp must be used by the array contract (docs/array_contract.md), got {what}")


class StrictArray:
    """An array of NumPy with the members of the contract only.

    Args:
        values: The array.
        owned: Whether a kernel may write into it: not into inputs, and not into parts of other arrays, which are copies with
            some libraries and views with others.
    """

    __slots__ = ("_owned", "_values")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # comparisons are element by element

    def __init__(self, values: Any, owned: bool = True) -> None:
        self._values = np.asarray(values)
        self._owned = owned

    def __getattr__(self, name: str) -> Any:
        if name in ATTRIBUTES:
            return _wrapped(getattr(self._values, name), of=[self._values])
        if name in METHODS:
            return functools.partial(self._call, name)
        if name.startswith("__"):
            raise AttributeError(name)  # protocols that NumPy looks for
        raise _refuse(f"the attribute {name} of an array")

    def _call(self, name: str, *args: Any, **keywords: Any) -> Any:
        if name == "tolist":
            return self._values.tolist()
        return _wrapped(getattr(self._values, name)(*map(_plain, args), **keywords), of=[self._values])

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise _refuse("an array of xp where one of NumPy belongs")

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise _refuse(f"numpy.{getattr(function, '__name__', function)} of an array of xp")

    def __getitem__(self, key: Any) -> "StrictArray":
        return StrictArray(self._values[_plain_key(key)], owned=_has_arrays(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self._owned:
            raise _refuse("an assignment to an input or to a part of another array")
        self._values[_plain_key(key)] = _plain(value)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator["StrictArray"]:
        return (StrictArray(part, owned=False) for part in self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __int__(self) -> int:
        return int(self._values)

    def __float__(self) -> float:
        return float(self._values)

    def __index__(self) -> int:
        return operator.index(self._values.item())

    def __neg__(self) -> "StrictArray":
        return StrictArray(-self._values)

    def __pos__(self) -> "StrictArray":
        return StrictArray(+self._values)

    def __abs__(self) -> "StrictArray":
        return StrictArray(abs(self._values))

    def __invert__(self) -> "StrictArray":
        return StrictArray(~self._values)


#: Operators of two arrays, or of an array and a number.
OPERATORS: Final = (
    *("add", "and", "eq", "floordiv", "ge", "gt", "le", "lshift", "lt", "matmul", "mod", "mul", "ne", "or", "pow", "rshift"),
    *("sub", "truediv", "xor"),
)
_COMPARISONS: Final = frozenset({"eq", "ge", "gt", "le", "lt", "ne"})


def _forward(operate: Callable[[Any, Any], Any]) -> Callable[[StrictArray, Any], StrictArray]:
    return lambda self, other: StrictArray(operate(self._values, _plain(other)))


def _reflected(operate: Callable[[Any, Any], Any]) -> Callable[[StrictArray, Any], StrictArray]:
    return lambda self, other: StrictArray(operate(_plain(other), self._values))


def _in_place(operate: Callable[[Any, Any], Any]) -> Callable[[StrictArray, Any], StrictArray]:
    def method(self: StrictArray, other: Any) -> StrictArray:
        # the array itself, not what an index gave: `part = x[0]; part += 1` changes x with NumPy only
        if not self._owned:
            return _Pending(operate(self._values, _plain(other)), owned=False)
        self._values[...] = operate(self._values, _plain(other))
        return self

    return method


class _Pending(StrictArray):
    """The result of ``x[key] += y``, which Python assigns back to ``x[key]``."""

    __slots__ = ()


for _name in OPERATORS:
    _operate = getattr(operator, f"{_name.rstrip('_')}_" if _name in ("and", "or") else _name)
    setattr(StrictArray, f"__{_name}__", _forward(_operate))
    if _name not in _COMPARISONS:
        setattr(StrictArray, f"__r{_name}__", _reflected(_operate))
        setattr(StrictArray, f"__i{_name}__", _in_place(_operate))


class StrictNamespace:
    """The functions of the array contract over `StrictArray`; see `strict_namespace`."""

    def __init__(self) -> None:
        for name in sorted(FUNCTIONS):
            self._add(name)
        for name in CONSTANTS:
            setattr(self, name, getattr(np, name))
        for name in DTYPES:
            setattr(self, name, np.dtype(name).type)

    def _add(self, name: str) -> None:
        place: Any = self
        function: Any = np
        *outer, last = name.split(".")
        for part in outer:
            function = getattr(function, part)
            if part not in vars(place):
                setattr(place, part, SimpleNamespace())
            place = getattr(place, part)
        setattr(place, last, _function(name, getattr(function, last)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _refuse(f"xp.{name}")


def _function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **keywords: Any) -> Any:
        if name == "add.at":
            if not args[0]._owned:
                raise _refuse("xp.add.at on an input or on a part of another array")
            function(args[0]._values, _plain_key(args[1]), _plain(args[2]))
            return None
        if name != "asarray" and any(isinstance(arg, (np.ndarray, np.generic)) for arg in args):
            raise _refuse(f"an array of NumPy in xp.{name}")
        plain = [_plain(arg) for arg in args]
        return _wrapped(function(*plain, **{key: _plain(value) for key, value in keywords.items()}), of=plain)

    call.__name__ = name
    return call


def _wrapped(result: Any, *, of: Sequence[Any]) -> Any:
    """Arrays in `result` as strict ones; those that share memory with the arguments `of` may not be written to."""
    if isinstance(result, (np.ndarray, np.generic)):
        given = [part for arg in of for part in (arg if isinstance(arg, (tuple, list)) else (arg,))]
        shared = any(isinstance(part, np.ndarray) and np.may_share_memory(result, part) for part in given)
        return StrictArray(result, owned=not shared)
    if isinstance(result, (tuple, list)) and any(isinstance(part, (np.ndarray, np.generic)) for part in result):
        return tuple(_wrapped(part, of=of) for part in result)
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, StrictArray):
        return value._values
    if isinstance(value, np.ndarray):
        raise _refuse("an array of NumPy among those of xp")
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(part) for part in value)
    return value


def _has_arrays(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return any(not (isinstance(part, (int, slice, EllipsisType)) or part is None) for part in parts)


def _plain_key(key: Any) -> Any:
    return tuple(map(_plain, key)) if isinstance(key, tuple) else _plain(key)


def strict_namespace() -> StrictNamespace:
    """Return a namespace over NumPy with the array contract and nothing else."""
    return StrictNamespace()


def strict_array(values: Any) -> StrictArray:
    """Return an input of a kernel: an array that it may only read."""
    return StrictArray(values, owned=False)


def plain_array(array: Any) -> Any:
    """Return the NumPy array inside an array of the strict namespace."""
    return array._values if isinstance(array, StrictArray) else array
