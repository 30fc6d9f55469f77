"""Kernels over all parameters of a solver in one launch.

The elements of all parameters are divided into chunks, one a block; tables on the device have the addresses of the arrays and
which chunk belongs to which parameter.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from nn_core.ext import Array, Refusal
from nn_ext_cuda.codegen.code import Code, compiled
from nn_ext_cuda.codegen.words import Letter, Words
from nn_ext_cuda.device.errors import failed
from nn_ext_cuda.launch import deferred
from nn_ext_cuda.launch.program import THREADS

_BLOCKS: Final = 1056
U = TypeVar("U", bound="FloatingUpdate")
#: ``launch(numbers)``
Launcher: TypeAlias = Callable[[Sequence[Any]], None]


class FloatingUpdate:
    """An update that computes in the dtype of the parameters; see `nn_core.solvers.update.UpdateKernel`."""

    guards = False

    def prepare(self: U, sizes: Sequence[int], dtype: str) -> "U | Refusal":
        """Take parameters of float32 and float64."""
        return self if dtype in ("float32", "float64") else Refusal(f"computes in float32 and float64, got {dtype}")


class UpdateStep:
    """An update of given arrays: launched with its numbers, or as a part of a graph that reads them from the device.

    Args:
        launcher: ``launcher(resident)`` makes the launch, which takes numbers, or the array that holds them.
        read: The numbers of the next run.
        dtype: dtype of numbers that are arguments.
    """

    __slots__ = ("_launch", "_launcher", "_numbers", "_read", "_real", "_resident", "_word", "together", "words")

    uses_blas = False
    may_wait = True

    def __init__(self, launcher: Callable[[bool], Launcher], read: Callable[[], list[float]], dtype: str) -> None:
        self._launcher = launcher
        self._launch = launcher(False)
        self._resident: Launcher | None = None
        self._read = read
        self._real = np.float64 if dtype == "float64" else np.float32
        self._numbers = np.zeros(0)
        self.words: Letter | None = None
        self.together: dict[tuple[int, ...], Any] = {}

    def __call__(self) -> None:
        numbers = self._read()
        if not deferred.is_holding():
            self._launch([self._real(number) for number in numbers])
            return
        self._numbers = np.array(numbers, np.float64)
        if self.words is None:
            self._word = Words(len(numbers), lambda: self._numbers)
            self._resident = self._launcher(True)
            self.words = Letter([self._word])
        deferred.launch(self)

    def run(self) -> None:
        """Update with the numbers that are on the device."""
        assert self._resident is not None
        self._resident([self._word.memory])

    def launch(self) -> None:
        """Bring the numbers to the device, and update."""
        assert self.words is not None
        self.words.send()
        self.run()


class Tables:
    """Tables on the device with the addresses of parameters' arrays and their division into chunks.

    Args:
        members: The arrays of each parameter, all of one size and of one dtype.
        n_partial: How many numbers a kernel keeps for each chunk.
    """

    def __init__(self, members: Sequence[Sequence[Array]], n_partial: int = 1) -> None:
        from nn_ext_cuda.device.runtime import cupy  # rules can be read without CuPy

        self._members = members  # the tables hold addresses only
        sizes = [arrays[0].size for arrays in members]
        chunk = chunk_of(sum(sizes))
        owners, starts, firsts = chunks(sizes, chunk)
        self._n_chunks = len(owners)
        self._chunk = np.int64(chunk)
        pointers = np.array([[int(array.data.ptr) for array in arrays] for arrays in members], np.uint64)
        tables = (pointers, np.array(sizes, np.int64), owners, starts, firsts)
        self._tables = [cupy.asarray(table) for table in tables]
        self._partial = cupy.zeros((max(self._n_chunks, 1) * n_partial,), "float64")

    def launcher(self, code: Code, *, partial: bool = False) -> "Launcher":
        """``launch(numbers)`` for a kernel over the chunks; `partial`: it has an array with numbers for each."""
        if self._n_chunks == 0:
            return lambda numbers: None
        function = compiled(code)
        arguments: list[Any] = [self._chunk, *self._tables, *([self._partial] if partial else [])]
        shapes = [array for arrays in self._members for array in arrays[:1]]

        def launch(numbers: Sequence[Any]) -> None:
            try:
                function((self._n_chunks,), (THREADS,), (*arguments, *numbers), shared_mem=0)
            except Exception as error:  # whatever the device says is told with the name and the sizes
                raise failed(code.name, error, shapes) from error

        return launch


def chunk_of(n: int) -> int:
    """Return number of the `n` elements that a block takes: enough blocks to fill a device, not too many for very large
    models.
    """
    return min(max(-(-n // _BLOCKS // 1024) * 1024, 1024), 65536)


def chunks(sizes: Sequence[int], chunk: int) -> tuple[Any, Any, Any]:
    """For each chunk its parameter and its first element; for each parameter its first chunk, followed by the end."""
    counts = [-(-size // chunk) for size in sizes]
    owners = np.repeat(np.arange(len(sizes)), counts).astype(np.int64)
    starts = np.concatenate([np.arange(count) * chunk for count in counts] or [np.zeros(0, np.int64)]).astype(np.int64)
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return owners, starts, firsts


PARAMETERS: Final = (
    "const int64 chunk",
    "const uint64* pointers",
    "const int64* sizes",
    "const int64* owners",
    "const int64* starts",
    "const int64* firsts",
)
LOOP: Final = "for (int64 i = start + threadIdx.x; i < end; i += blockDim.x)"
HEAD: Final = """\
  const int64 owner = owners[blockIdx.x], start = starts[blockIdx.x];
  const int64 end = min(start + chunk, sizes[owner]);"""


def number_parameters(names: Sequence[str], c_type: str, resident: bool) -> list[str]:
    """Return the parameters of a kernel that hold the numbers of a rule; `resident`: they are on the device."""
    return ["const double* numbers"] if resident else [f"const {c_type} {name}" for name in names]


#: The parameter of an update that depends on a norm, and the statement that leaves it out where that is infinite or NaN.
GUARD_PARAMETER: Final = "const double* norm_of_all"
GUARD: Final = "  if (norm_of_all[0] - norm_of_all[0] != 0) return;"


def guarded(launch: Launcher, guard: Array | None) -> Launcher:
    """Return the launcher with the guard in front of its numbers, if there is one."""
    return launch if guard is None else lambda numbers: launch([guard, *numbers])


def read_numbers(names: Sequence[str], resident: bool, c_type: str = "R") -> list[str]:
    """Statements that read resident numbers."""
    return [f"  const {c_type} {name} = {c_type}(numbers[{k}]);" for k, name in enumerate(names) if resident]


def block_sum(first: str, last: str) -> str:
    """Return the part of a kernel that sums ``double a`` over the threads of a block.

    Args:
        first: Statements in which a thread adds to `a`.
        last: Statements that find the sum of the block in ``sums[0]``.
    """
    return f"""\
  __shared__ double sums[{THREADS}];
  double a = 0;
  {first}
  sums[threadIdx.x] = a;
  for (int half = {THREADS // 2}; half > 0; half /= 2) {{
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }}
  __syncthreads();
  {last}"""
