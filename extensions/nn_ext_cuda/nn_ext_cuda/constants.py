"""Tables that follow from the sizes of a call, such as roots of unity: computed on the host, brought to the device once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from nn_core.ext import Array
from nn_ext_cuda.memory import UPLOADS, allocated

#: Tables that are kept for later calls; steps keep those that they read in any case.
_MAX_TABLES: Final = 256


@dataclass(frozen=True, slots=True)
class Constant:
    """A table.

    Attributes:
        make: Computes it as a NumPy array.
        arguments: What `make` is called with.
    """

    make: Callable[..., Array]
    arguments: tuple[Any, ...]


class WithConstants:
    """A runner that takes tables after the arrays of the call.

    Args:
        runner: Takes the arrays of the call, then the tables.
        n_arrays: How many arrays the call has.
        constants: The tables.
    """

    __slots__ = ("_constants", "_n_arrays", "_runner")

    def __init__(self, runner: Any, n_arrays: int, constants: Sequence[Constant]) -> None:
        self._runner = runner
        self._n_arrays = n_arrays
        self._constants = tuple(constants)

    @property
    def launches(self) -> tuple[Any, ...]:
        """The launches of the runner."""
        return tuple(getattr(self._runner, "launches", ()))

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> Any:
        """The step of the runner on these arrays."""
        return self._runner.bind(*arrays[: self._n_arrays], *[on_device(constant) for constant in self._constants])


def on_device(constant: Constant) -> Array:
    """The table on the current device, where the current stream finds it."""
    from nn_ext_cuda.runtime import cupy  # programs can be made without CuPy

    return _brought(int(cupy.cuda.Device().id), int(cupy.cuda.get_current_stream().ptr), constant)


@lru_cache(maxsize=_MAX_TABLES)
def _brought(device: int, stream: int, constant: Constant) -> Array:
    """The table, copied in the order of a stream; another stream would have to wait for the copy, so it has its own."""
    values = constant.make(*constant.arguments)
    table = allocated(values.shape, values.dtype.name)
    UPLOADS.start(table, values)
    return table
