"""Programs: the kernel launches that compute one function, and the steps that they become once arrays are known."""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nn_core.ext import Array, Shape
from nn_ext_cuda.codegen.code import Code, compiled
from nn_ext_cuda.codegen.words import Words
from nn_ext_cuda.device.errors import failed
from nn_ext_cuda.device.faults import Faults
from nn_ext_cuda.memory.arrays import allocated


@dataclass(frozen=True, slots=True)
class Distance:
    """From one element to the next one along an axis, counted in elements; known when arrays are bound.

    Attributes:
        place: The place of the array.
        axis: The axis.
    """

    place: int
    axis: int


#: The place of an array among those of the program, a number, a distance in an array, or where kernels note faults.
Argument: TypeAlias = int | np.generic | Distance | Faults
THREADS = 256
MAX_BLOCKS = 1 << 20


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a function of CUDA C.

    Attributes:
        code: The function.
        grid: Numbers of blocks.
        block: Numbers of threads of a block.
        arguments: An int is the place of an array, which is passed as a pointer; a NumPy number is passed as it is, a
            `Distance` as int64, and `faults.FAULTS` as the address of the word for faults.
        shared_bytes: Dynamic shared memory of a block.
    """

    code: Code
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Argument, ...]
    shared_bytes: int = 0


def flat(code: Code, n: int, arguments: Sequence[Argument]) -> Launch:
    """Return a launch of one thread for each of `n` elements, or for several where there are very many."""
    return Launch(code, (min(-(-n // THREADS), MAX_BLOCKS),), (THREADS,), tuple(arguments))


class Step:
    """Launches on given arrays. It allocates nothing and waits for nothing, so it can be part of a CUDA graph.

    Args:
        calls: (function, grid, block, arguments, shared bytes, name) of each launch.
        arrays: The arrays that the arguments point to.
        words: Numbers that the host has to bring to the device before each run, also before a replay.

    Attributes:
        ends: Positions of arrays whose values nobody reads afterwards, as far as the plan has said so.
    """

    __slots__ = ("_calls", "arrays", "ends", "words")

    capturable = True

    def __init__(self, calls: Sequence[tuple[Any, ...]], arrays: Sequence[Array | None], words: Sequence[Words] = ()) -> None:
        self._calls = tuple(calls)
        self.arrays = tuple(arrays)
        self.words = tuple(words)
        self.ends: Sequence[int] = ()

    @property
    def name(self) -> str:
        """Name of the first function of CUDA C, without the suffix that tells different ones apart."""
        return re.sub(r"_[0-9a-f]{8}$", "", self._calls[0][-1]) if self._calls else "nothing"

    def run(self) -> None:
        """Launch; the words are there."""
        name = ""
        try:
            for function, grid, block, arguments, shared_bytes, name in self._calls:  # noqa: B007 -- told on failure
                function(grid, block, arguments, shared_mem=shared_bytes)
        except Exception as error:  # whatever the device says is told with the name and the sizes
            raise failed(name, error, self.arrays) from error

    def __call__(self) -> None:
        for words in self.words:
            words.take()
            words.send()
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
        """Return the launches on these arrays."""
        held = [*arrays[: self._n_arrays], *(allocated(shape, dtype) for shape, dtype in self._scratch)]
        calls = []
        for launch in self.launches:
            arguments = tuple(_value(argument, held) for argument in launch.arguments)
            name = launch.code.name
            calls.append((compiled(launch.code), launch.grid, launch.block, arguments, launch.shared_bytes, name))
        return Step(calls, held)


class WithArrays:
    """A runner with more arrays than the call has.

    Args:
        runner: Takes the arrays of the call, then the others.
        n_arrays: How many arrays the call has.
        others: Gives the others on the current device.
    """

    __slots__ = ("_n_arrays", "_others", "_runner")

    def __init__(self, runner: Any, n_arrays: int, others: Callable[[], Sequence[Array]]) -> None:
        self._runner = runner
        self._n_arrays = n_arrays
        self._others = others

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of the runner."""
        return tuple(getattr(self._runner, "launches", ()))

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> Any:
        """Return the step of the runner on these arrays and the others."""
        return self._runner.bind(*arrays[: self._n_arrays], *self._others())


class Chain:
    """Runners over the same arrays, one after the other, as one runner."""

    __slots__ = ("_runners",)

    def __init__(self, runners: Sequence[Any]) -> None:
        self._runners = tuple(runners)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of all programs in it."""
        return tuple(launch for runner in self._runners for launch in getattr(runner, "launches", ()))

    def __call__(self, *arrays: Array) -> None:
        for runner in self._runners:
            runner(*arrays)

    def bind(self, *arrays: Array) -> "ChainStep":
        """Return the steps of all runners on these arrays."""
        return ChainStep([runner.bind(*arrays) for runner in self._runners])


class ChainStep:
    """Steps one after the other.

    Args:
        steps: The steps.
    """

    __slots__ = ("steps",)

    def __init__(self, steps: Sequence[Any]) -> None:
        self.steps = tuple(steps)

    @property
    def capturable(self) -> bool:
        """Whether all of the steps can be part of a CUDA graph."""
        return all(getattr(step, "capturable", False) for step in self.steps)

    @property
    def uses_blas(self) -> bool:
        """Whether one of the steps is a matrix product."""
        return any(getattr(step, "uses_blas", False) for step in self.steps)

    @property
    def words(self) -> tuple[Words, ...]:
        """The numbers that the host has to bring to the device before each run."""
        return tuple(words for step in self.steps for words in getattr(step, "words", ()))

    def run(self) -> None:
        """Run all of them; the words are there."""
        for step in self.steps:
            step.run()

    def __call__(self) -> None:
        for step in self.steps:
            step()


def arrays_of(steps: Sequence[Any]) -> list[Any] | None:
    """All arrays that steps of a plan read and write; None where one does not tell."""
    found: list[Any] = []
    for step in steps:
        arrays: Sequence[Any] | None
        if isinstance(step, ChainStep):
            arrays = arrays_of(step.steps)
        elif isinstance(step, functools.partial):
            arrays = step.args or None  # without arguments it has its arrays from elsewhere
        else:
            arrays = getattr(step, "arrays", None)
        if arrays is None:
            return None
        found += [array for array in arrays if array is not None]
    return found


def span(array: Array) -> tuple[int, int]:
    """Return the addresses of the first byte of an array and after its last one."""
    start = int(array.data.ptr)
    if 0 in array.shape:
        return start, start
    reach = [(length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True)]
    return start + sum(by for by in reach if by < 0), start + sum(by for by in reach if by > 0) + int(array.itemsize)


def _value(argument: Argument, arrays: Sequence[Array | None]) -> Any:
    """Return the argument as CuPy takes it; a null pointer for an array that is absent."""
    if isinstance(argument, Faults):
        return argument.address()
    if isinstance(argument, Distance):
        array = arrays[argument.place]
        return np.int64(0 if array is None else array.strides[argument.axis] // array.itemsize)
    if not isinstance(argument, int):
        return argument
    array = arrays[argument]
    return np.uint64(0) if array is None else array
