"""Things that NumPy 2 has dropped, where NumPy itself does not say what to write: programs for NNabla ran on NumPy 1."""

import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np

#: Names of modules, and what to write.
_FUNCTIONS: Final[Mapping[str, str]] = {
    "NAN": "np.nan",
    "RankWarning": "np.exceptions.RankWarning",
    "asscalar": "a.item()",
    "bool8": "np.bool_",
    "cumproduct": "np.cumprod",
    "disp": "print",
    "helper": "np.fft itself",
    "in1d": "np.isin",
    "linalg": "np.linalg itself",
    "msort": "np.sort(a, axis=0)",
    "product": "np.prod",
    "row_stack": "np.vstack",
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
#: Arguments of functions, and what to write.
_ARGUMENTS: Final[Mapping[tuple[str, str], str]] = {
    ("array2string", "style"): "formatter=",
    ("corrcoef", "bias"): "the call without it; it had no effect",
    ("corrcoef", "ddof"): "the call without it; it had no effect",
    ("nanpercentile", "interpolation"): "method=",
    ("nanquantile", "interpolation"): "method=",
    ("percentile", "interpolation"): "method=",
    ("quantile", "interpolation"): "method=",
    ("reshape", "newshape"): "the shape as second argument",
    ("save", "fix_imports"): "the call without it",
}
#: Beginnings of NumPy's messages about conversions, and what to write.
_CONVERSIONS: Final[Mapping[str, str]] = {
    "only 0-dimensional arrays can be converted": "NumPy 2 takes an array with axes for no number; write a.item()",
    "Python integer ": "NumPy 2 wraps no integer into a smaller dtype; write np.array(value).astype(dtype)",
}
#: Packages that programs for GPUs import, and where they come from.
_PACKAGES: Final[Mapping[str, str]] = {
    "cupy": "cupy: nn-ext-cuda has it: pip install 'nn-ext-cuda[cuda13]', or with cuda12; without a GPU write numpy",
}


def add_hint(error: BaseException) -> None:
    """Add to an error of a program what to write for what NumPy has no more; others stay as they are.

    Example:
        >>> error = AttributeError("module 'numpy' has no attribute 'product'", name="product", obj=np)
        >>> add_hint(error)
        >>> print(error)
        module 'numpy' has no attribute 'product'
          hint: NumPy 2 has dropped the name product; write np.prod
    """
    if isinstance(error, AttributeError):
        hint = _of_name(error.obj, error.name or "")
    elif isinstance(error, ImportError):
        hint = _of_import(error)
    else:
        hint = _of_call(error)
    if hint is None:
        return
    text = f"{error}\n  hint: {hint}"
    error.args = (text, *error.args[1:])
    if isinstance(error, ImportError):
        error.msg = text


def _of_name(owner: Any, name: str) -> str | None:
    if owner is np.lib and hasattr(np, name):
        instead: str | None = f"np.{name}"
    elif isinstance(owner, ModuleType):
        instead = _FUNCTIONS.get(name) if owner in (np, np.lib, np.linalg, np.fft) else None
    else:
        instead = _METHODS.get(name) if isinstance(owner, np.ndarray | np.generic) else None
    return instead and f"NumPy 2 has dropped the name {name}; write {instead}"


def _of_import(error: ImportError) -> str | None:
    if isinstance(error, ModuleNotFoundError):
        return _PACKAGES.get(error.name or "")
    # the name is an attribute of the exception from Python 3.12 on only
    quoted = re.match(r"cannot import name '(\w+)' from 'numpy'", str(error))
    return _of_name(np, quoted[1]) if quoted else None


def _of_call(error: BaseException) -> str | None:
    if not isinstance(error, TypeError | ValueError | OverflowError):
        return None
    text = str(error.__cause__ or error)  # an assignment to an element names the conversion as its cause
    named = re.match(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'", text)
    if named is None:
        return next((instead for begin, instead in _CONVERSIONS.items() if text.startswith(begin)), None)
    instead = _ARGUMENTS.get((named[1], named[2]))
    return instead and f"NumPy 2 has dropped the argument {named[2]} of {named[1]}; write {instead}"
