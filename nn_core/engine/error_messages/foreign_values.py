"""Values of other libraries that NumPy alone does not take: tensors of graphs, bfloat16, columns with missing values."""

import math
from decimal import Decimal
from typing import Any, Final

import numpy as np

#: Columns and tables have these attributes, and arrays have not: protocols of Arrow and of tables, positions in pandas.
_OF_COLUMNS: Final = ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__", "iloc")
#: The hint for a column of something else than numbers.
ENCODING_OF_COLUMNS: Final = (
    "codes in place of texts and categories, days in place of dates, np.stack(column) in place of a column of arrays"
)


def values_of(value: Any) -> np.ndarray[Any, Any]:
    """Return ``np.asarray(value)``, also of a tensor of a graph or of bfloat16, and of a column of numbers with gaps."""
    try:
        values = np.asarray(value)
    except (TypeError, RuntimeError, ValueError):
        taken = of_tensor(value)
        if taken is None:
            raise
        return taken
    column = of_column(value, values) if values.dtype.hasobject else None
    return values if column is None else column


def of_tensor(value: Any) -> np.ndarray[Any, Any] | None:
    """Return the values of a tensor that requires a gradient or holds bfloat16, the latter in float32, which holds them all.

    None where it is something else, or on a device.
    """
    is_wide = str(getattr(value, "dtype", "")).endswith("bfloat16")
    if not callable(getattr(value, "detach", None)):
        return None
    try:
        detached = value.detach()
        return np.asarray(detached.float() if is_wide else detached)
    except (TypeError, RuntimeError, ValueError, AttributeError):
        return None


def of_column(value: Any, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a column or a table, of which NumPy makes objects, `values`; missing ones as NaN.

    None for everything else. Texts and dates are no numbers, also where a library would convert them.
    """
    if not callable(getattr(value, "to_numpy", None)) or not all(map(_is_number_or_missing, values.flat)):
        return None
    numbers = [math.nan if _is_missing(member) else float(member) for member in values.flat]
    return np.array(numbers, np.float64).reshape(values.shape)


def is_of_columns(value: Any) -> bool:
    """Return whether something is a column or a table of pandas, Arrow or Polars, whose index says no positions of rows."""
    return not isinstance(value, np.ndarray) and any(hasattr(value, name) for name in _OF_COLUMNS)


def hint_for_column(value: Any) -> str:
    """Return the last line of an error about values that are no numbers; empty where they are no column."""
    return f"\n  hint: {ENCODING_OF_COLUMNS}" if is_of_columns(value) else ""


def _is_missing(member: Any) -> bool:
    return member is None or type(member).__name__ == "NAType"  # of pandas, which we do not import


def _is_number_or_missing(member: Any) -> bool:
    return isinstance(member, (int, float, np.integer, np.floating, np.bool_, Decimal)) or _is_missing(member)
