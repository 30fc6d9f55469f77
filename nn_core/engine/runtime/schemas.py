"""Schemas of states: what `get_state` gives now says of which types the parts of a state are that is to be set.

States come from files whose checksums say that they are whole, and not that they are sound: a writer can write anything.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import numpy as np

from nn_core.engine.runtime.tracebacks import packages_in
from nn_core.errors import ArgumentError, NNCoreError, ShapeError, quoted

S = TypeVar("S", bound=Callable[..., Any])

#: Exceptions of Python and NumPy for a value that is not what it should be.
_FOREIGN: Final = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, AssertionError, RecursionError)


def checked_state(set_state: S) -> S:
    """Decorate a method ``set_state(state)`` of an object that also has ``get_state()``.

    The state must be like the present one: dictionaries, lists, texts, numbers and arrays at the same places (None may
    stand for a number with a fraction). What nn_core or NumPy raise about its values becomes an ArgumentError, and the object
    is as it was before. Exceptions of objects of the program pass.
    """
    return _checked(set_state, ())


def checked_state_without(*keys: str) -> Callable[[S], S]:
    """Decorate as `checked_state` does; what the state has for these keys is compared by those who get it."""
    return lambda set_state: _checked(set_state, keys)


def _checked(set_state: S, keys: Sequence[str]) -> S:
    @functools.wraps(set_state)
    def call(self: Any, state: Any) -> Any:
        function = f"{type(self).__name__}.set_state"
        before = self.get_state()
        own = {key: part for key, part in before.items() if key not in keys} if keys else before
        require_like(function, state, own)
        state = _with_fractions(state, own)
        before = _copied(before)
        try:
            return set_state(self, state)
        except BaseException as error:
            with suppress(Exception):  # what could be set before can be set again, but for objects of the program
                set_state(self, before)
            if isinstance(error, _FOREIGN) and not isinstance(error, NNCoreError) and _is_of_ours(error):
                raise wrong_state(function, error) from error
            raise

    return call  # type: ignore[return-value]  # it is called alike


def wrong_state(function: str, error: BaseException) -> ArgumentError:
    """Return the refusal of a state about whose values something was raised."""
    told = " ".join(str(error).split())
    return ArgumentError(f"{function}: the state must be what get_state() gives, got one with {type(error).__name__}: {told}")


def require_like(function: str, state: Any, own: Any, path: str = "", *, shapes: bool = True) -> None:
    """Refuse a state that has other types than another one.

    Args:
        function: Name at the start of messages.
        state: What is to be set.
        own: The present state.
        path: Where in the states these are.
        shapes: Arrays must have the same shapes, too.

    Raises:
        ArgumentError: when a part has another type, or an integer more than 64 bits.
        ShapeError: when an array has another shape.
    """
    if own is None or (state is None and isinstance(own, float)):
        return
    if not _is_like(state, own):
        raise ArgumentError(f"{function}: {_at(path)} must be {_kind(own)}, got {_described(state)}")
    if shapes and isinstance(own, np.ndarray) and own.shape != np.shape(state):
        raise ShapeError(f"{function}: {_at(path)} must have the shape {own.shape}, got {np.shape(state)}")
    for key, part, own_part in _parts(state, own):
        require_like(function, part, own_part, f"{path}/{key}", shapes=shapes)


def _with_fractions(state: Any, own: Any) -> Any:
    """Return `state` with floats instead of integers where the present one has floats.

    An object that keeps what it is given would else have a state of integers, and refuse its former one.
    """
    if isinstance(own, float):
        return float(state) if isinstance(state, (int, np.integer)) else state
    if not isinstance(state, (Mapping, list, tuple)) or isinstance(own, np.ndarray):
        return state
    parts = {key: _with_fractions(part, own_part) for key, part, own_part in _parts(state, own)}
    if isinstance(state, Mapping):
        return {key: parts.get(key, part) for key, part in state.items()}
    items = [parts.get(index, part) for index, part in enumerate(state)]
    return tuple(items) if isinstance(state, tuple) else items


def _parts(state: Any, own: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the keys and parts of two states that must be alike; of lists, where all items have one type."""
    if isinstance(own, Mapping):
        yield from ((key, state[key], own[key]) for key in own.keys() & state.keys())
    elif isinstance(own, (list, tuple)) and len({type(item) for item in own}) == 1:
        yield from ((index, item, own[min(index, len(own) - 1)]) for index, item in enumerate(state))


def _is_like(state: Any, own: Any) -> bool:
    if isinstance(own, np.ndarray):
        found = _as_array(state)
        return found is not None and _class(found.dtype) == _class(own.dtype)
    if isinstance(own, Mapping):
        return isinstance(state, Mapping) and all(isinstance(key, str) for key in state)
    if isinstance(own, (list, tuple)):
        return isinstance(state, (list, tuple))
    if isinstance(own, (bool, np.bool_)):
        return isinstance(state, (bool, np.bool_))
    if isinstance(own, (int, float, np.number)):
        return _is_like_number(state, own)
    return not isinstance(own, str) or isinstance(state, str)


def _is_like_number(state: Any, own: Any) -> bool:
    if isinstance(state, bool):
        return False
    if isinstance(own, (int, np.integer)):
        return isinstance(state, (int, np.integer)) and _has_bits(state, 128 if own >= 2**63 else 64)
    return isinstance(state, (int, float, np.number)) and _has_bits(state)


def _as_array(state: Any) -> "np.ndarray[Any, Any] | None":
    """Return an array, or a list of numbers as JSON has in place of one."""
    if isinstance(state, (list, tuple)):
        with suppress(ValueError, TypeError, OverflowError):
            return np.asarray(state)
    return state if isinstance(state, np.ndarray) else None


def _has_bits(number: Any, bits: int = 64) -> bool:
    """Return whether an integer has at most so many bits; generators of NumPy have some of 128."""
    return not isinstance(number, int) or -(2**63) <= number < 2**bits


def _class(dtype: np.dtype[Any]) -> str:
    """Return the kind of a dtype, integers with and without sign alike; floating dtypes that NumPy lacks are "V"."""
    return {"u": "i", "V": "f"}.get(dtype.kind, dtype.kind)


def _kind(own: Any) -> str:
    if isinstance(own, np.ndarray):
        return f"an array of {own.dtype.name}"
    names = {dict: "a dictionary with string keys", list: "a list", tuple: "a list", bool: "True or False", str: "a text"}
    whole = "a whole number of at most 64 bits" if isinstance(own, (int, np.integer)) else "a number"
    return next((text for kind, text in names.items() if isinstance(own, kind)), whole)


def _described(state: Any) -> str:
    if isinstance(state, np.ndarray):
        return f"an array of {state.dtype.name} with the shape {state.shape}"
    return quoted(state) if isinstance(state, (str, int, float)) else type(state).__name__


def _at(path: str) -> str:
    return f"the state, at {quoted(path.lstrip('/'))}," if path else "the state"


def _copied(state: Any) -> Any:
    if isinstance(state, np.ndarray):
        return state.copy()
    if isinstance(state, Mapping):
        return {key: _copied(value) for key, value in state.items()}
    return [_copied(value) for value in state] if isinstance(state, (list, tuple)) else state


def _is_of_ours(error: BaseException) -> bool:
    """Return whether code of nn_core, NumPy or Python raised it, and no object of the program in between."""
    return all(package in ("nn_core", "numpy") or package in sys.stdlib_module_names for package in packages_in(error))
