"""Names that NumPy 2 has dropped, and of which NumPy itself does not say what to write: programs for NNabla ran on NumPy 1."""

from collections.abc import Mapping
from typing import Final

import numpy as np

#: Names of the module, and what to write.
_FUNCTIONS: Final[Mapping[str, str]] = {
    "asscalar": "a.item()",
    "cumproduct": "np.cumprod",
    "in1d": "np.isin",
    "msort": "np.sort(a, axis=0)",
    "product": "np.prod",
    "trapz": "np.trapezoid",
    "unicode": "str",
}
#: Methods of arrays, and what to write.
_METHODS: Final[Mapping[str, str]] = {
    "itemset": "a[index] = value",
    "newbyteorder": "a.view(a.dtype.newbyteorder(order))",
    "ptp": "np.ptp(a)",
    "tostring": "a.tobytes()",
}


def add_hint(error: BaseException) -> None:
    """Add to an error of a program what to write for a name that NumPy has no more; others stay as they are.

    Example:
        >>> error = AttributeError("module 'numpy' has no attribute 'product'", name="product", obj=np)
        >>> add_hint(error)
        >>> print(error)
        module 'numpy' has no attribute 'product'
          hint: NumPy 2 has dropped the name product; write np.prod
    """
    if not isinstance(error, AttributeError):
        return
    names = _FUNCTIONS if error.obj is np else _METHODS if isinstance(error.obj, (np.ndarray, np.generic)) else {}
    substitute = names.get(error.name or "")
    if substitute is not None:
        text = f"{error}\n  hint: NumPy 2 has dropped the name {error.name}; write {substitute}"
        error.args = (text, *error.args[1:])
