"""The methods that Variable and NdArray share and that only read values.

Those that compute with functions are declared for type checkers in ``bound_operators.pyi``;
`nn_core.engine.arrays.operators` and `nn_core.engine.arrays.indexing`, which know the functions, bind them once when
nn_core is imported.
"""

from collections.abc import Callable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nn_core.engine.arrays.numpy_protocol import call_function, call_ufunc
from nn_core.engine.error_messages.refusal import fitted_methods
from nn_core.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from nn_core.engine.arrays.ndarray import NdArray
    from nn_core.typing import Shape


@fitted_methods()
class ArrayInterface:
    """The NumPy-like interface that Variables and NdArrays share."""

    __slots__ = ()

    #: whether NumPy's functions compute with the values
    _takes_numpy: ClassVar[bool] = False

    @property
    def shape(self) -> "Shape":
        """Lengths of the axes."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Number of elements."""
        raise NotImplementedError

    # -- values ----------------------------------------------------------------------------------------------------

    def _values(self) -> "NdArray":
        """Return the array whose values are read; raises a GraphError where there are none yet."""
        raise NotImplementedError

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a copy of the values as a NumPy array; ``d`` and ``data`` share memory."""
        return np.array(self._values().get_data("r"))

    def item(self) -> Any:
        """Return the value of an array of one element as a number of Python."""
        return self._only_element("item")

    def show(self, path: "str | PathLike[str] | None" = None) -> None:
        """Show the values as images by matplotlib, which ``pip install 'nn-core[plots]'`` brings.

        Images of one channel share a grey scale and its bar. Colours are from 0 to 1, or from 0 to 255 where the values are
        integers. Of a Variable the values must have been computed.

        Shapes: (H, W), (N, H, W), (C, H, W) or (N, C, H, W) with N of at most 64 images and C of 1 or 3 channels; the first
        axis of length 1 or 3 of an array with three axes is C.

        Args:
            path: File to write, such as ``"images.png"``; None: a window, or the output of a notebook.

        Raises:
            ShapeError: for other shapes.
            ArgumentError: for more than 64 images, values that are not finite, and a path that is none or has no format.
            FileNotFoundError: when there is no folder for the file.
            PluginError: when matplotlib is not installed.

        Example:
            >>> nn.NdArray.from_numpy_array(np.eye(8)).show("eye.png")
        """
        from nn_core.engine.arrays.pictures import show_images  # an extra; only who draws needs it

        show_images(self._values().get_data("r"), path)

    def _only_element(self, what: str) -> Any:
        if self.size != 1:
            raise ShapeError(
                f"{what}: an array must have one element to become a number, got shape {self.shape}\n"
                "  hint: reduce it first, for example with nn_core.functions.mean, or take an element of its values"
            )
        return self._values().get_data("r").item()

    def __float__(self) -> float:
        return float(self._only_element("float"))

    def __int__(self) -> int:
        return int(self._only_element("int"))

    def __format__(self, spec: str) -> str:
        return format(self._only_element("format"), spec) if spec else str(self)

    # -- sequences -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("len() needs an array with at least one axis, got shape ()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise ShapeError("iteration: an array must have at least one axis to be iterated over, got shape ()")
        array: Any = self
        return iter([array[position] for position in range(self.shape[0])])

    def __contains__(self, value: object) -> bool:
        raise ArgumentError(
            f"in: an array must not be searched by `in`, got `{_short(value)} in array` of shape {self.shape}\n"
            "  hint: search its values, `value in array.numpy()`; for a list of variables compare with `is`"
        )

    # -- NumPy -----------------------------------------------------------------------------------------------------

    # Checkers ask the declarations of NumPy what `ndarray + variable` gives, and these go by what `__array__` returns: for
    # arrays of objects that is Any, for all others an ndarray, which is wrong.
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[np.object_]]:
        values: np.ndarray[Any, Any] = self._values().get_data("rw")
        if dtype is not None and values.dtype != np.dtype(dtype):
            if copy is False:
                raise ValueError(
                    f"asarray: copy must not be False where the dtype changes, got {np.dtype(dtype)} for {values.dtype}"
                )
            return values.astype(dtype)
        return np.array(values) if copy else values

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(func, types, args, kwargs)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
