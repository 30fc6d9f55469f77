"""The array contract as a namespace over the arrays of a library."""

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from nn_core.array_contract import BINARY, DTYPES, FUNCTIONS, REDUCTIONS, UNARY
from nn_core.engine.array_api_adapter.array import AdaptedArray
from nn_core.engine.array_api_adapter.library import Library
from nn_core.typing import Shape

#: Names in the standard, where they differ from NumPy's.
_STANDARD_NAMES: Final = {"cumsum": "cumulative_sum", "cumprod": "cumulative_prod"}
#: Element-wise functions whose results are whole numbers or truth values for whole numbers.
_KEEP_INTEGERS: Final = frozenset({"abs", "ceil", "floor", "isfinite", "isinf", "isnan", "round", "sign", "square", "trunc"})
_SUMS: Final = frozenset({"cumprod", "cumsum", "prod", "sum"})
#: Constants, made by NumPy and brought over.
_MADE_ON_HOST: Final = ("eye", "linspace")
#: Functions of which the standard has no counterpart, or another one.
_NUMPY_ONLY: Final = ("diagonal", "einsum", "tile", "unique")


class AdaptedNamespace:
    """The namespace ``xp`` of kernels: the functions of the array contract, in NumPy's spelling.

    Args:
        library: Computes.
    """

    inf = np.inf

    def __init__(self, library: Library) -> None:
        self._library = library
        self.add = SimpleNamespace(at=self._add_at)
        #: dtypes of the contract that the library lacks
        self.missing_dtypes = frozenset(name for name in (*DTYPES, "bfloat16") if library.find(name) is None)
        for name in DTYPES:
            setattr(self, name, np.dtype(name).type)
        for name in UNARY:
            setattr(self, name, functools.partial(library.unary, name, floating=name not in _KEEP_INTEGERS))
        for name in BINARY:
            setattr(self, name, functools.partial(library.binary, name, floating=name in ("atan2", "logaddexp")))
        for name in REDUCTIONS:
            setattr(self, name, functools.partial(self._reduce, name))
        for name in (*_MADE_ON_HOST, *_NUMPY_ONLY):
            setattr(self, name, self._numpy_function(name))
        self.linalg = SimpleNamespace(**{name: self._linalg(name) for name in ("cholesky", "det", "inv", "slogdet")})
        self.fft = SimpleNamespace(**{name: self._fft(name) for name in ("fftn", "ifftn", "irfft", "rfft")})

    def host_functions(self) -> tuple[str, ...]:
        """Return the functions of the contract that run on the host: the library has none, or has refused a call of it."""
        return tuple(sorted(name for name in FUNCTIONS if self._runs_on_host(name)))

    def _runs_on_host(self, name: str) -> bool:
        library = self._library
        standard = _STANDARD_NAMES.get(name, name)
        if standard in library.refused:
            return True
        if name in library.own or name in _MADE_ON_HOST:
            return False
        own_way = {"add.at", "clip", "finfo", "fmod", "mean", "take_along_axis", "full_like", "ones_like", "zeros_like"}
        return name in _NUMPY_ONLY or (name not in own_way and library.find(standard) is None)

    def _numpy_function(self, name: str) -> Callable[..., Any]:
        library = self._library
        own = library.own.get(name)
        if own is None:
            return functools.partial(library.on_host, getattr(np, name))

        def call(*args: Any, **keywords: Any) -> Any:
            keywords.pop("optimize", None)  # how NumPy orders the products of einsum
            values = [arg.value if isinstance(arg, AdaptedArray) else arg for arg in args]
            return library.wrapped(own(*values, **keywords))

        return call

    # -- creation --------------------------------------------------------------------------------------------------

    def asarray(self, values: Any, dtype: Any = None) -> AdaptedArray:
        """Return an array of numbers, lists, NumPy arrays or arrays."""
        return self._library.array(values, dtype)

    def arange(self, *bounds: float, dtype: Any = None) -> AdaptedArray:
        """Equal steps, as NumPy has them."""
        return self._library.array(np.arange(*bounds, dtype=dtype))

    def full(self, shape: Any, value: Any, dtype: Any = None) -> AdaptedArray:
        """Return an array of one number."""
        library = self._library
        kind = np.asarray(value).dtype if dtype is None else np.dtype(dtype)
        lengths = tuple(int(length) for length in shape) if isinstance(shape, Sequence) else (int(shape),)
        return library.wrapped(library.fitted(value, kind, lengths), kind)

    def zeros(self, shape: Any, dtype: Any = np.float64) -> AdaptedArray:
        """Return an array of zeros."""
        return self.full(shape, 0, dtype)

    def ones(self, shape: Any, dtype: Any = np.float64) -> AdaptedArray:
        """Return an array of ones."""
        return self.full(shape, 1, dtype)

    def full_like(self, x: AdaptedArray, value: Any, dtype: Any = None) -> AdaptedArray:
        """Return an array of one number in the shape of another."""
        return self.full(x.shape, value, x.dtype if dtype is None else dtype)

    def zeros_like(self, x: AdaptedArray, dtype: Any = None) -> AdaptedArray:
        """Zeros in the shape of another array."""
        return self.full_like(x, 0, dtype)

    def ones_like(self, x: AdaptedArray, dtype: Any = None) -> AdaptedArray:
        """Ones in the shape of another array."""
        return self.full_like(x, 1, dtype)

    def meshgrid(self, *arrays: AdaptedArray, indexing: str = "xy") -> tuple[AdaptedArray, ...]:
        """Coordinates of a grid."""
        library = self._library
        return tuple(library.wrapped(grid) for grid in library.xp.meshgrid(*[x.value for x in arrays], indexing=indexing))

    @staticmethod
    def finfo(dtype: Any) -> Any:
        """Return NumPy's limits of a floating dtype."""
        return np.finfo(dtype)

    # -- reductions ------------------------------------------------------------------------------------------------

    def _reduce(self, name: str, x: Any, axis: Any = None, *, keepdims: bool | None = None, dtype: Any = None) -> AdaptedArray:
        array = self._library.array(x, dtype)
        if name == "mean":
            count = array.size if axis is None else int(np.prod([array.shape[place] for place in np.atleast_1d(axis)]))
            total = self._reduce("sum", array, axis, keepdims=keepdims)
            return total / count
        if name in _SUMS and array.dtype.kind in "biu":
            array = array.astype(np.int64, copy=False)  # as NumPy adds up truth values and short integers
        keywords: dict[str, Any] = {} if keepdims is None else {"keepdims": keepdims}
        axis = tuple(axis) if isinstance(axis, list) else axis
        return self._library.reduced(_STANDARD_NAMES.get(name, name), array, axis=axis, **keywords)

    # -- shapes ----------------------------------------------------------------------------------------------------

    def reshape(self, x: Any, shape: Any) -> AdaptedArray:
        """Return the elements in another shape."""
        return self._library.array(x).reshape(shape if isinstance(shape, tuple) else tuple(np.atleast_1d(shape).tolist()))

    def broadcast_to(self, x: Any, shape: Shape) -> AdaptedArray:
        """Return the elements repeated along new and short axes."""
        array = self._library.array(x)
        return self._library.wrapped(self._library.xp.broadcast_to(array.value, tuple(shape)), array.dtype)

    def concat(self, arrays: Sequence[Any], axis: int = 0) -> AdaptedArray:
        """Arrays one after the other."""
        values, dtype = self._library.promoted(*arrays)
        return self._library.wrapped(self._library.xp.concat(values, axis=axis), dtype)

    def stack(self, arrays: Sequence[Any], axis: int = 0) -> AdaptedArray:
        """Arrays along a new axis."""
        values, dtype = self._library.promoted(*arrays)
        return self._library.wrapped(self._library.xp.stack(values, axis=axis), dtype)

    def expand_dims(self, x: AdaptedArray, axis: int) -> AdaptedArray:
        """Return a new axis of length 1."""
        shape = list(x.shape)
        shape.insert(axis % (x.ndim + 1), 1)
        return x.reshape(tuple(shape))

    def flip(self, x: AdaptedArray, axis: Any = None) -> AdaptedArray:
        """Return some axes backwards."""
        axes = range(x.ndim) if axis is None else np.atleast_1d(axis).tolist()
        return self._library.wrapped(self._library.flip(x.value, tuple(axes)), x.dtype) if len(axes) else x

    def moveaxis(self, x: AdaptedArray, source: int, destination: int) -> AdaptedArray:
        """One axis in another place."""
        order = [axis for axis in range(x.ndim) if axis != source % x.ndim]
        order.insert(destination % x.ndim, source % x.ndim)
        return self._library.permuted(x, order)

    def permute_dims(self, x: AdaptedArray, axes: Sequence[int]) -> AdaptedArray:
        """Return the axes in another order."""
        return self._library.permuted(x, axes)

    def repeat(self, x: AdaptedArray, repeats: int, axis: int) -> AdaptedArray:
        """Each element several times."""
        return self.take(x, np.repeat(np.arange(x.shape[axis]), repeats), axis=axis)

    def tril(self, x: AdaptedArray, k: int = 0) -> AdaptedArray:
        """Return the lower triangles."""
        return self._library.wrapped(self._library.xp.tril(x.value, k=k), x.dtype)

    def triu(self, x: AdaptedArray, k: int = 0) -> AdaptedArray:
        """Return the upper triangles."""
        return self._library.wrapped(self._library.xp.triu(x.value, k=k), x.dtype)

    # -- selection -------------------------------------------------------------------------------------------------

    def where(self, condition: Any, a: Any, b: Any) -> AdaptedArray:
        """Elements of `a` or `b`."""
        return self._library.select(condition, a, b)

    def clip(self, x: Any, low: Any, high: Any) -> AdaptedArray:
        """Numbers moved into [low, high]."""
        return self._library.binary("minimum", self._library.binary("maximum", x, low), high)

    def take(self, x: AdaptedArray, indices: Any, axis: int) -> AdaptedArray:
        """Elements along one axis."""
        library = self._library
        array = library.array(indices)
        place = axis % x.ndim
        length = x.shape[place]
        index = library.select(array < 0, array + length, array).astype(np.int64, copy=False)
        taken = library.xp.take(x.value, library.reshape(index.value, (index.size,)), axis=place)
        shape = (*x.shape[:place], *index.shape, *x.shape[place + 1 :])
        return library.wrapped(library.reshape(taken, shape), x.dtype)

    def take_along_axis(self, x: AdaptedArray, indices: AdaptedArray, axis: int) -> AdaptedArray:
        """Elements along one axis, by other indices in each row."""
        place = axis % x.ndim
        keys = [
            indices if position == place else self.arange(length).reshape((-1, *[1] * (x.ndim - position - 1)))
            for position, length in enumerate(x.shape)
        ]
        return x[tuple(keys)]

    def argsort(self, x: AdaptedArray, axis: int = -1, kind: str = "stable") -> AdaptedArray:
        """Return the order of elements; equal ones keep their places, NaN comes last."""
        return self._library.wrapped(self._library.xp.argsort(x.value, axis=axis, stable=True)).astype(np.int64, copy=False)

    def sort(self, x: AdaptedArray, axis: int = -1) -> AdaptedArray:
        """Elements in order."""
        return self._library.wrapped(self._library.xp.sort(x.value, axis=axis), x.dtype)

    def nonzero(self, x: AdaptedArray) -> tuple[AdaptedArray, ...]:
        """Places of the elements that are not zero."""
        return tuple(axis.astype(np.int64, copy=False) for axis in self._library.nonzero(x))

    def searchsorted(self, x: AdaptedArray, values: Any, side: str = "left") -> AdaptedArray:
        """Return the indices at which values would be inserted into a sorted array."""
        library = self._library
        function = library.function("searchsorted")
        if function is None:
            return library.on_host(np.searchsorted, x, values, side=side)
        first, second = library.promoted(x, values)[0]
        return library.wrapped(function(first, second, side=side)).astype(np.int64, copy=False)

    def _add_at(self, x: AdaptedArray, places: Any, values: Any) -> None:
        self._library.put(x, places, values, add=True)

    # -- products --------------------------------------------------------------------------------------------------

    def matmul(self, a: Any, b: Any) -> AdaptedArray:
        """Return the product of matrices."""
        return self._library.matmul(a, b)

    def tensordot(self, a: Any, b: Any, axes: Any) -> AdaptedArray:
        """Return sums of products over axes of both arrays."""
        values, dtype = self._library.promoted(a, b)
        return self._library.wrapped(self._library.xp.tensordot(*values, axes=axes), dtype)

    def _linalg(self, name: str) -> Callable[[AdaptedArray], Any]:
        library = self._library

        full = f"linalg.{name}"

        def on_host(x: AdaptedArray) -> Any:
            try:
                return library.on_host(getattr(np.linalg, name), x)
            except np.linalg.LinAlgError as cause:
                raise ValueError(f"{name}: {cause}") from cause

        def call(x: AdaptedArray) -> Any:
            function = library.function(full)
            if function is None:
                return on_host(x)
            try:
                result = function(x.value)
            except (ValueError, RuntimeError):  # singular matrices, or stacks of matrices in a library that has none
                result = on_host(x)
                library.refused.add(full)
                return result
            if name == "slogdet":
                return tuple(library.wrapped(part) for part in result)
            wrapped = library.wrapped(result)
            if name in ("cholesky", "inv") and _is_finite(x) and not _is_finite(wrapped):
                raise ValueError(f"{name}: the matrix is singular or not positive definite")
            return wrapped

        return call

    def _fft(self, name: str) -> Callable[..., Any]:
        library = self._library

        def call(x: AdaptedArray, **keywords: Any) -> Any:
            function = library.function(f"fft.{name}")
            if function is None or not x.size:  # some libraries refuse to transform no elements
                return library.on_host(getattr(np.fft, name), x, **keywords)
            return library.wrapped(function(x.value, **keywords))

        return call


def _is_finite(x: AdaptedArray) -> bool:
    return bool(np.isfinite(x.numpy()).all())
