"""Whole numbers: the one rule for lengths, counts, axes and indices that programs give as other types.

Division gives floating-point numbers, so a program may say ``8 / 2`` where it means 4. A number with a fraction is never
rounded, since that would hide a mistake.
"""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from operator import index
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from nn_core.errors import ArgumentTypeError, IntegerRangeError

P = ParamSpec("P")
R = TypeVar("R")

#: Python's and NumPy's floating-point numbers.
FLOATS: Final = (float, np.floating)


def whole(value: Any) -> int:
    """`value` as an int: integers, and floating-point numbers without a fraction; NumPy's too, also in arrays without axes.

    Raises:
        TypeError: for everything else; `fraction_hint` has advice for its message.

    Example:
        >>> whole(8 / 2), whole(np.float32(3))
        (4, 3)
    """
    try:
        return index(value)
    except TypeError:
        number = value.item() if isinstance(value, np.ndarray) and value.shape == () else value
        if isinstance(number, FLOATS) and number == np.floor(number) and abs(number) < 2**63:  # neither NaN nor infinite
            remembers = getattr(number, "as_whole", None)  # of a number that was computed from lengths of axes
            return int(number) if remembers is None else remembers()
        raise


def not_whole(text: str, value: Any) -> ArgumentTypeError:
    """Return the exception for `value`, of which `text` says what it must be.

    Example:
        >>> not_whole("axis must be an integer", 1e30)
        IntegerRangeError('axis must be an integer, got 1e+30')
    """
    is_large = isinstance(value, FLOATS) and bool(abs(value) >= 2**63)
    return (IntegerRangeError if is_large else ArgumentTypeError)(f"{text}, got {value!r}{fraction_hint(value)}")


def is_number(value: Any) -> bool:
    """Return whether `value` is one integer or floating-point number, also as an array without axes, and no sequence."""
    return isinstance(value, (int, np.integer, *FLOATS)) or (isinstance(value, np.ndarray) and value.shape == ())


def fraction_hint(value: Any) -> str:
    """Return the line of advice for a message about a value that is not whole; empty where there is none."""
    number = value.item() if isinstance(value, np.ndarray) and value.shape == () else value
    has_fraction = isinstance(number, FLOATS) and bool(np.isfinite(number)) and number != np.floor(number)
    return f"\n  hint: // divides without a fraction, or int(...) drops the one of {value!r}" if has_fraction else ""


def takes_whole_numbers(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function or method: arguments that it annotates as integers become ints, as `with_whole_numbers` does."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given, named = with_whole_numbers(function, args, kwargs)
        return function(*given, **named)

    return call


def with_whole_numbers(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the arguments of a call, those that `function` annotates as integers with ints for whole floats.

    Raises:
        ArgumentTypeError: for a number with a fraction; names the function and the argument.
    """
    for value in (*args, *kwargs.values()):
        kind = type(value)
        if kind in _SUSPECT or (kind is tuple and not _ONLY_INTS.issuperset(map(type, value))):
            break
    else:
        return args, kwargs
    positional, keywords = list(args), dict(kwargs)
    subject = _subject(function)
    for name, position in _integers_of(function):
        if position < len(positional):
            positional[position] = _as_whole(subject, name, positional[position])
        elif name in keywords:
            keywords[name] = _as_whole(subject, name, keywords[name])
    return positional, keywords


#: Types that may stand for integers, or hold what does.
_SUSPECT: Final = frozenset((float, list, np.ndarray, *np.sctypeDict.values()))
_ONLY_INTS: Final = frozenset((int,))
_INTEGER: Final = re.compile(r"\bint\b|\bShape\b|\bAxes\b|tuple\[int")
_OTHER: Final = re.compile(r"float|Callable|ndarray")


def _subject(function: Callable[..., Any]) -> str:
    """Return the name in messages: that of a function, or of the class whose objects are called."""
    owner, _, name = function.__qualname__.rpartition(".")
    return owner if name == "__call__" else name


@functools.cache
def _integers_of(function: Callable[..., Any]) -> tuple[tuple[str, int], ...]:
    """Names and positions of the parameters whose annotations speak of integers, and of no floats."""
    parameters = enumerate(signature(function).parameters.values())
    texts = [(p.name, i, str(p.annotation)) for i, p in parameters]
    return tuple((name, i) for name, i, text in texts if _INTEGER.search(text) and not _OTHER.search(text))


def _as_whole(function: str, name: str, value: Any) -> Any:
    """`value` with ints for whole floats, also in a sequence; whatever else it is stays."""
    if isinstance(value, (np.integer, *FLOATS)) or (isinstance(value, np.ndarray) and value.shape == ()):
        try:
            return whole(value)
        except TypeError as error:
            raise not_whole(f"{function}: {name} must be an integer", value) from error
    if isinstance(value, (tuple, list)) and not _ONLY_INTS.issuperset(map(type, value)):
        return type(value)([_as_whole(function, f"each of {name}", item) for item in value])
    return value
