"""Values of other libraries that NumPy alone does not take: tensors of graphs, bfloat16, columns with missing values."""

import math
from typing import Any

import numpy as np


def values_of(value: Any) -> np.ndarray[Any, Any]:
    """Return ``np.asarray(value)``, also of a tensor that requires a gradient or holds bfloat16."""
    try:
        return np.asarray(value)
    except (TypeError, RuntimeError, ValueError):
        taken = of_tensor(value)
        if taken is None:
            raise
        return taken


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


def of_column(value: Any) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a column whose missing values are objects, as NaN; None where it is something else."""
    convert = getattr(value, "to_numpy", None)
    if not callable(convert):
        return None
    try:
        return np.asarray(convert(dtype="float64", na_value=math.nan))
    except (TypeError, ValueError):
        return None
