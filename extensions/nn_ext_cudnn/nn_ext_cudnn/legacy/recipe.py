"""Recipes: calls of cuDNN and small kernels of nn_ext_cuda, one after the other, and the steps that they become."""

import ctypes
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from nn_core.ext import Array, Runner, Shape
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES
from nn_ext_cuda.device.errors import failed
from nn_ext_cudnn import handle
from nn_ext_cudnn.aligned import AlignedStep, on_stand_ins, stand_in
from nn_ext_cudnn.errors import CudnnError, NotSupportedError, located

_LOGGER: Final = logging.getLogger("nn_core.cudnn")
#: Scratch arrays begin at multiples of it, as arrays of CuPy do.
ALIGNMENT: Final = 512
#: Functions over descriptors read 16-bit values in packs, at addresses that are multiples of it. A view that begins
#: elsewhere would be a misaligned access, after which the process can use the device no more.
ARRAY_ALIGNMENT: Final = 16

#: The hint of an error after which later calls are refused.
_LATER: Final = "such calls run on another backend from now on; run forward() again"


@dataclass(frozen=True, slots=True)
class At:
    """Argument of a call: the pointer of the array at `place`; arrays of the call come first, then scratch arrays."""

    place: int


#: Argument of a call: an array, or what is passed as it is (descriptors, numbers, pointers).
Argument: TypeAlias = "At | Any"


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A function of cuDNN, and its arguments after the handle."""

    function: Callable[..., object]
    arguments: Sequence[Argument]

    def bind(self, *arrays: Array | None) -> Callable[[], object]:
        """Return the call on these arrays, on the handle and the stream of the time when it runs."""
        values = [_value(argument, arrays) for argument in self.arguments]
        function, current = self.function, handle.current
        return lambda: function(current().pointer, *values)


def number(dtype: str, value: float) -> Any:
    """Return a scaling factor (alpha, beta) for arrays of `dtype`: a pointer to a float, for double precision to a double."""
    return ctypes.byref(ctypes.c_double(value) if dtype == "float64" else ctypes.c_float(value))


def scratch_bytes(scratch: Sequence[tuple[Shape, str]]) -> tuple[list[int], int]:
    """Return the offset of each scratch array, and the bytes of all."""
    starts, end = [], 0
    for shape, dtype in scratch:
        starts.append(end)
        end += -(-max(math.prod(shape), 1) * ITEM_BYTES[dtype] // ALIGNMENT) * ALIGNMENT
    return starts, end


class Recipe:
    """A runner (see `nn_core.ext.Runner`) of several parts.

    Args:
        name: Name of the function, for messages.
        parts: Calls of cuDNN, and runners of nn_ext_cuda over the arrays of the call and the scratch arrays.
        n_arrays: How many arrays the call has.
        scratch: Shape and dtype of arrays that are needed while a step runs.
        otherwise: Makes the runner that takes over where cuDNN turns out not to support the call; there are functions
            of which it does not tell before they run. None from it: there is no such runner, but later calls are refused.
    """

    __slots__ = ("n_arrays", "name", "otherwise", "parts", "scratch")

    def __init__(
        self,
        name: str,
        parts: Sequence[LibraryCall | Any],
        n_arrays: int,
        scratch: Sequence[tuple[Shape, str]] = (),
        otherwise: Callable[[], Runner | None] | None = None,
    ) -> None:
        self.name = name
        self.parts = tuple(parts)
        self.n_arrays = n_arrays
        self.scratch = tuple(scratch)
        self.otherwise = otherwise

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> "RecipeStep | AlignedStep":
        """All parts on these arrays."""
        given = arrays[: self.n_arrays]
        aligned = [stand_in(array, ARRAY_ALIGNMENT) if _is_narrow(array) else array for array in given]
        return on_stand_ins(RecipeStep(self, aligned), given, aligned)


class RecipeStep:
    """A recipe on given arrays. It allocates nothing and waits for nothing, so it can be part of a CUDA graph.

    Its scratch arrays are in the memory that all steps of a stream share. When that grows the step moves; what was
    recorded before stays valid, because the step keeps the memory that it has used.
    """

    __slots__ = ("_arrays", "_calls", "_memories", "_recipe", "_starts", "_workspace")

    capturable = True

    def __init__(self, recipe: Recipe, arrays: Sequence[Array | None]) -> None:
        self._recipe = recipe
        self._arrays = tuple(arrays)
        self._starts, n_bytes = scratch_bytes(recipe.scratch)
        self._workspace = handle.workspace(n_bytes)
        handle.current()  # made before anything is recorded
        self._memories: list[Array] = []
        self._calls: list[Callable[[], object]] = []
        self._move()

    @property
    def name(self) -> str:
        """Name of the function."""
        return self._recipe.name

    @property
    def arrays(self) -> tuple[Array | None, ...]:
        """The arrays of the call."""
        return self._arrays

    def run(self) -> None:
        """Run all parts."""
        if self._starts and self._workspace.array is not self._memories[-1]:
            self._move()
        try:
            for call in self._calls:
                call()
        except NotSupportedError as error:
            self._substitute(error)
        except CudnnError as error:
            raise located(error, self._recipe.name, self._arrays) from error
        except Exception as error:  # whatever the device says is told with the sizes
            raise failed(self._recipe.name, error, self._arrays) from error

    __call__ = run

    def _move(self) -> None:
        arrays = list(self._arrays)
        if self._starts:
            memory: Any = self._workspace.array
            self._memories.append(memory)
            arrays += [memory[start:] for start in self._starts]
        bound = [part.bind(*arrays) for part in self._recipe.parts]
        self._calls = [getattr(part, "run", part) for part in bound]

    def _substitute(self, error: NotSupportedError) -> None:
        """Let kernels of nn_ext_cuda take over for good: this is known from the first run on, before any recording."""
        runner: Any = None if self._recipe.otherwise is None else self._recipe.otherwise()
        if runner is None:
            told = located(error, self._recipe.name, self._arrays)
            hint = "" if self._recipe.otherwise is None else f"\n  hint: {_LATER}"
            raise NotSupportedError(f"{told}{hint}", told.status) from error
        _LOGGER.warning("%s: nn_ext_cuda takes over from cuDNN: %s", self._recipe.name, str(error).partition("\n")[0])
        self._starts = []
        self._calls = [runner.bind(*self._arrays).run]
        self._calls[0]()


def _is_narrow(array: Array | None) -> bool:
    return array is not None and array.dtype.itemsize == 2


def _value(argument: Argument, arrays: Sequence[Array | None]) -> Any:
    if not isinstance(argument, At):
        return argument
    array = arrays[argument.place]
    return None if array is None else int(array.data.ptr)
