"""NumPy's functions on Variables and NdArrays.

On NdArrays they compute with the values and give NumPy arrays. On Variables they are refused, with the function of
nn_core to use: NumPy would compute outside the graph, where no gradient flows. Those that only look at values, such as
``numpy.allclose``, are let through.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from nn_core.errors import ArgumentError, ShapeError

#: Operators of Python that NumPy's arrays and numbers turn into ufuncs: (on the left, on the right) of one of ours.
_OPERATORS: Final = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "power": ("__pow__", "__rpow__"),
    "remainder": ("__mod__", "__rmod__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "divmod": ("__divmod__", "__rdivmod__"),
    "matmul": ("__matmul__", "__rmatmul__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
}
#: Functions that look at values, and return no arrays to compute with.
_LOOKERS: Final = frozenset(
    {
        *("allclose", "array_equal", "array_equiv", "array_repr", "array_str", "array2string", "isclose", "may_share_memory"),
        *("ndim", "save", "savetxt", "savez", "savez_compressed", "shape", "shares_memory", "size"),
    }
)
#: Names of ours that are not NumPy's.
# fmt: off
_OURS: Final[Mapping[str, str]] = {
    "absolute": "abs", "add": "add2", "amax": "max", "amin": "min", "append": "concatenate", "arccos": "acos",
    "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh",
    "divide": "div2", "fmod": "mod2", "hstack": "concatenate", "vstack": "concatenate", "maximum": "maximum2",
    "minimum": "minimum2", "multiply": "mul2", "power": "pow2", "remainder": "mod2", "subtract": "sub2",
    "broadcast_to": "broadcast", "swapaxes": "transpose", "moveaxis": "transpose", "ravel": "flatten", "take": "gather",
    "bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor", "repeat": "tile",
    "linalg.inv": "batch_inv", "linalg.det": "batch_det", "linalg.cholesky": "batch_cholesky", "linalg.norm": "norm",
}
# fmt: on
#: Names that are the same in both.
_SAME: Final = frozenset(
    {
        *("argmax", "argmin", "ceil", "clip", "concatenate", "cos", "cosh", "cumprod", "cumsum", "dot", "einsum", "equal"),
        *("exp", "expand_dims", "flip", "floor", "greater", "greater_equal", "isinf", "isnan", "less", "less_equal", "log"),
        *("logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "max", "mean", "meshgrid", "min", "pad"),
        *("not_equal", "prod", "reshape", "round", "searchsorted", "sign", "sin", "sinc", "sinh", "sort", "split", "sqrt"),
        *("square", "squeeze", "stack", "std", "sum", "tan", "tanh", "tile", "transpose", "unique", "var", "where"),
    }
)


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Return an operator of Python that NumPy's number or array began; a ufunc of NdArrays."""
    names = _OPERATORS.get(ufunc.__name__) if method == "__call__" and not options else None
    if names is None:
        return _call_on_values(ufunc, method, inputs, options)
    # comparisons make arrays of NumPy's numbers
    left, right = [value[()] if isinstance(value, np.ndarray) and not value.ndim else value for value in inputs]
    return getattr(left, names[0])(right) if _is_ours(left) else getattr(right, names[1])(left)


def _call_on_values(ufunc: Any, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Return a ufunc on the values of NdArrays; of Variables it would lose the gradient."""
    if any(_is_ours(value) and not value._takes_numpy for value in (*inputs, *options.get("out", ()))):
        raise refusal(ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}")
    try:
        return getattr(ufunc, method)(*_as_values(inputs), **{key: _as_values(value) for key, value in options.items()})
    except ValueError as error:  # shapes, for all that NumPy says of it
        shapes = ", ".join(str(np.shape(value)) for value in _as_values(inputs))
        raise ShapeError(f"{ufunc.__name__}: arrays must fit each other, got shapes {shapes} ({error})") from error


def call_function(
    function: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Return a function of NumPy that looks at values, or one of NdArrays."""
    if function.__name__ not in _LOOKERS and not all(getattr(kind, "_takes_numpy", True) for kind in types):
        module = function.__module__.removeprefix("numpy").removeprefix(".")
        raise refusal(f"{module}.{function.__name__}" if module else function.__name__)
    return function(*_as_values(args), **{name: _as_values(value) for name, value in kwargs.items()})


def refusal(name: str) -> ArgumentError:
    """Return the error for a function of NumPy."""
    ours = _OURS.get(name, name if name in _SAME else None)
    use = "" if ours is None else f"use nn_core.functions.{ours}, or "
    return ArgumentError(
        f"numpy.{name}: operands must be NumPy arrays or NdArrays, got a Variable\n"
        f"  hint: {use}compute with the values, numpy.{name}(x.numpy()), through which no gradient flows"
    )


def _is_ours(value: Any) -> bool:
    return hasattr(type(value), "_takes_numpy")


def _as_values(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([_as_values(part) for part in value])
    return np.asarray(value) if _is_ours(value) else value
