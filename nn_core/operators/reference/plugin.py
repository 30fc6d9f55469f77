"""The reference kernels as a plugin: NumPy arrays, and the kernels of this package over the arrays of any backend."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from nn_core.engine.dispatch.hookspecs import BackendInfo, hookimpl
from nn_core.errors import DTypeError
from nn_core.operators.reference.adapter import ReferenceKernels
from nn_core.typing import Array, Backend, Kernel, Shape

PLUGIN_API: Final = 1
REQUIRES_CORE: Final = ">=0.1"

#: The device family of NumPy arrays; backends with kernels for them announce the same.
HOST_ARRAY_CLASS: Final = "CpuCachedArray"
#: The dtype of parameters and statistics while another one is computed in.
PARAMETER_DTYPES: Final[Mapping[str, str]] = MappingProxyType({"float16": "float32", "bfloat16": "float32"})


class ReferenceBackend:
    """NumPy arrays and the reference kernels over them; see `nn_core.typing.Backend`."""

    name: str = "reference"
    array_class: str = HOST_ARRAY_CLASS
    #: Parameters, statistics and losses stay float32: half precision would lose small changes of them.
    parameter_dtypes: Mapping[str, str] = PARAMETER_DTYPES

    def __init__(self) -> None:
        self._over: dict[int, tuple[Backend, Mapping[str, Kernel]]] = {}
        self.kernels: Mapping[str, Kernel] = self.over(self)

    def over(self, backend: Backend) -> Mapping[str, Kernel]:
        """Return the reference kernels on the arrays of `backend`, by name of the function."""
        key = id(backend)
        if key not in self._over:
            self._over[key] = backend, ReferenceKernels(backend.namespace())
        return self._over[key][1]

    def namespace(self) -> Any:
        """NumPy."""
        return np

    def empty(self, shape: Shape, dtype: str) -> Array:
        """Return a new uninitialised array."""
        return np.empty(shape, numpy_dtype(dtype))

    def from_numpy(self, array: Array) -> Array:
        """Return a copy of `array`."""
        return np.array(array, order="C")

    def to_numpy(self, array: Array) -> Array:
        """Return the array itself."""
        return np.asarray(array)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype called `name`; bfloat16 comes from the package ml_dtypes."""
    if name == "bfloat16":
        try:
            import ml_dtypes  # type: ignore[import-not-found, unused-ignore]  # optional
        except ImportError as error:
            raise DTypeError("bfloat16: ml_dtypes must be installed, got none\n  hint: pip install ml-dtypes") from error
        name = ml_dtypes.bfloat16
    return np.dtype(name)


@hookimpl
def nn_core_backends() -> Sequence[BackendInfo]:
    """Return the one backend of this plugin."""
    return [
        BackendInfo(
            name="reference",
            array_class=HOST_ARRAY_CLASS,
            load=ReferenceBackend,
            description="clear NumPy kernels: the oracle and the last resort",
            priority=-100,
        )
    ]
