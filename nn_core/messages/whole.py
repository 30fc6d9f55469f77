"""Whole numbers: the one rule for lengths, counts, axes and indices that programs give as other types.

Division gives floating-point numbers, so a program may say ``8 / 2`` where it means 4. A number with a fraction is never
rounded, since that would hide a mistake.
"""

from operator import index
from typing import Any, Final

import numpy as np

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
            return int(number)
        raise


def is_number(value: Any) -> bool:
    """Whether `value` is one integer or floating-point number, and no sequence."""
    return isinstance(value, (int, np.integer, *FLOATS))


def fraction_hint(value: Any) -> str:
    """The line of advice for a message about a value that is not whole; empty where there is none."""
    has_fraction = isinstance(value, FLOATS) and bool(np.isfinite(value))
    return f"\n  hint: // divides without a fraction, or int(...) drops the one of {value!r}" if has_fraction else ""
