"""Programs: the kernel launches that compute one function, and the steps that they become once arrays are known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nn_core.ext import Array, Shape
from nn_ext_cuda.code import Code, compiled

#: The place of an array among those of the program, or a number.
Argument: TypeAlias = int | np.generic
THREADS = 256
MAX_BLOCKS = 1 << 20


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a function of CUDA C.

    Attributes:
        code: The function.
        grid: Numbers of blocks.
        block: Numbers of threads of a block.
        arguments: An int is the place of an array, which is passed as a pointer; a NumPy number is passed as it is.
        shared_bytes: Dynamic shared memory of a block.
    """

    code: Code
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Argument, ...]
    shared_bytes: int = 0


def flat(code: Code, n: int, arguments: Sequence[Argument]) -> Launch:
    """A launch of one thread for each of `n` elements, or for several where there are very many."""
    return Launch(code, (min(-(-n // THREADS), MAX_BLOCKS),), (THREADS,), tuple(arguments))


class Step:
    """Launches on given arrays. It allocates nothing and waits for nothing, so it can be part of a CUDA graph.

    Args:
        calls: (function, grid, block, arguments, shared bytes) of each launch.
        arrays: What the arguments point to.
        before: What has to happen on the host before each run, also before a replay; None: nothing.
    """

    __slots__ = ("_calls", "arrays", "before")

    capturable = True

    def __init__(
        self, calls: Sequence[tuple[Any, ...]], arrays: Sequence[Array | None], before: Callable[[], object] | None = None
    ) -> None:
        self._calls = tuple(calls)
        self.arrays = tuple(arrays)
        self.before = before

    def run(self) -> None:
        """Launch, without what has to happen before."""
        for function, grid, block, arguments, shared_bytes in self._calls:
            function(grid, block, arguments, shared_mem=shared_bytes)

    def __call__(self) -> None:
        if self.before is not None:
            self.before()
        self.run()


class Program:
    """A runner (see `nn_core.ext.Runner`) made of launches.

    Args:
        launches: In order. Arguments count the arrays of the call first, then the scratch arrays.
        n_arrays: How many arrays the call has.
        scratch: Shape and dtype of arrays that live as long as a step.
    """

    __slots__ = ("_n_arrays", "_scratch", "launches")

    def __init__(self, launches: Sequence[Launch], n_arrays: int, scratch: Sequence[tuple[Shape, str]] = ()) -> None:
        self.launches = tuple(launches)
        self._n_arrays = n_arrays
        self._scratch = tuple(scratch)

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> Step:
        """The launches on these arrays."""
        held = [*arrays[: self._n_arrays], *self._scratch_arrays()]
        calls = []
        for launch in self.launches:
            arguments = tuple(
                _pointer(held[argument]) if isinstance(argument, int) else argument for argument in launch.arguments
            )
            calls.append((compiled(launch.code), launch.grid, launch.block, arguments, launch.shared_bytes))
        return Step(calls, held)

    def _scratch_arrays(self) -> list[Array]:
        if not self._scratch:
            return []
        from nn_ext_cuda.runtime import cupy  # programs can be made without CuPy

        return [cupy.empty(shape, dtype) for shape, dtype in self._scratch]


def _pointer(array: Array | None) -> Any:
    return np.uint64(0) if array is None else array

