"""Updates of all parameters of a solver in one launch; see ``nn_core.solvers.update`` for what a solver expects.

The elements of all parameters are divided into chunks, one a block; tables on the device have the addresses of the arrays and
which chunk belongs to which parameter.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.ext import Array, Refusal, Step
from nn_ext_cuda import held
from nn_ext_cuda.code import Code, compiled, generated, in_real
from nn_ext_cuda.dtypes import real_type
from nn_ext_cuda.errors import failed
from nn_ext_cuda.launch import THREADS
from nn_ext_cuda.solver_rules import RULES
from nn_ext_cuda.words import Letter, Words

_BLOCKS: Final = 1056
#: ``launch(numbers)``
Launcher: TypeAlias = Callable[[Sequence[Any]], None]


class MultiTensorUpdate:
    """The update of a rule, for any number of parameters; see `nn_core.solvers.update.UpdateKernel`.

    Args:
        name: Name of the rule.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def prepare(self, sizes: Sequence[int], dtype: str) -> "MultiTensorUpdate | Refusal":
        """Take parameters of float32 and float64."""
        return self if dtype in ("float32", "float64") else Refusal(f"computes in float32 and float64, got {dtype}")

    def bind(
        self, params: Sequence[Array], grads: Sequence[Array], states: Sequence[Sequence[Array]], hyper: Array
    ) -> Step:
        """A step that updates these arrays; `hyper` is read each time."""
        tables = Tables(list(zip(params, grads, *states, strict=True)))
        dtype = str(params[0].dtype)
        rule = RULES[self._name]

        def launcher(resident: bool) -> Launcher:
            return tables.launcher(update_code(self._name, dtype, resident=resident))

        return UpdateStep(launcher, lambda: list(rule.numbers(hyper.tolist()).values()), dtype)


class ClipGradByNorm:
    """Gradients scaled to a norm where theirs is larger: a launch for the squares, and one that scales."""

    def prepare(self, sizes: Sequence[int], dtype: str) -> "ClipGradByNorm | Refusal":
        """Take gradients of float32 and float64."""
        return self if dtype in ("float32", "float64") else Refusal(f"computes in float32 and float64, got {dtype}")

    def bind(
        self, params: Sequence[Array], grads: Sequence[Array], states: Sequence[Sequence[Array]], hyper: Array
    ) -> Step:
        """A step that scales these gradients; `hyper` is read each time."""
        tables = Tables([(grad,) for grad in grads])
        dtype = str(grads[0].dtype)

        def launcher(resident: bool) -> Launcher:
            squares = tables.launcher(norm_code(dtype, scales=False), partial=True)
            scale = tables.launcher(norm_code(dtype, scales=True, resident=resident), partial=True)

            def launch(numbers: Sequence[Any]) -> None:
                squares([])
                scale(numbers)

            return launch

        return UpdateStep(launcher, lambda: [float(hyper[0])], "float64")


class UpdateStep:
    """An update of given arrays: launched with its numbers, or as a part of a graph that reads them from the device.

    Args:
        launcher: ``launcher(resident)`` makes the launch, which takes numbers, or the array that holds them.
        read: The numbers of the next run.
        dtype: dtype of numbers that are arguments.
    """

    __slots__ = ("_launch", "_launcher", "_numbers", "_read", "_real", "_resident", "_word", "together", "words")

    uses_blas = False

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
        if not held.is_holding():
            self._launch([self._real(number) for number in numbers])
            return
        self._numbers = np.array(numbers, np.float64)
        if self.words is None:
            self._word = Words(len(numbers), lambda: self._numbers)
            self._resident = self._launcher(True)
            self.words = Letter([self._word])
        held.launch(self)

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
    """

    def __init__(self, members: Sequence[Sequence[Array]]) -> None:
        from nn_ext_cuda.runtime import cupy  # rules can be read without CuPy

        self._members = members  # the tables hold addresses only
        sizes = [arrays[0].size for arrays in members]
        chunk = chunk_of(sum(sizes))
        owners, starts, firsts = chunks(sizes, chunk)
        self._n_chunks = len(owners)
        self._chunk = np.int64(chunk)
        pointers = np.array([[int(array.data.ptr) for array in arrays] for arrays in members], np.uint64)
        tables = (pointers, np.array(sizes, np.int64), owners, starts, firsts)
        self._tables = [cupy.asarray(table) for table in tables]
        self._partial = cupy.zeros((max(self._n_chunks, 1),), "float64")

    def launcher(self, code: Code, *, partial: bool = False) -> "Launcher":
        """``launch(numbers)`` for a kernel over the chunks; `partial`: it has an array with a number for each."""
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
    """Number of the `n` elements that a block takes: enough blocks to fill a device, not too many for very large models."""
    return min(max(-(-n // _BLOCKS // 1024) * 1024, 1024), 65536)


def chunks(sizes: Sequence[int], chunk: int) -> tuple[Any, Any, Any]:
    """For each chunk its parameter and its first element; for each parameter its first chunk, followed by the end."""
    counts = [-(-size // chunk) for size in sizes]
    owners = np.repeat(np.arange(len(sizes)), counts).astype(np.int64)
    starts = np.concatenate([np.arange(count) * chunk for count in counts] or [np.zeros(0)]).astype(np.int64)
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return owners, starts, firsts


_PARAMETERS: Final = (
    "const int64 chunk",
    "const uint64* pointers",
    "const int64* sizes",
    "const int64* owners",
    "const int64* starts",
    "const int64* firsts",
)
_LOOP: Final = "for (int64 i = start + threadIdx.x; i < end; i += blockDim.x)"
_HEAD: Final = """\
  const int64 owner = owners[blockIdx.x], start = starts[blockIdx.x];
  const int64 end = min(start + chunk, sizes[owner]);"""


def update_code(name: str, dtype: str, *, resident: bool = False) -> Code:
    """The kernel of a rule; `resident`: its numbers are on the device."""
    rule = RULES[name]
    arrays = ("w", "g", *rule.states)
    numbers = list(rule.numbers([0.5] * 9))
    head = [f"R* const {array}_ = (R*)pointers[owner * {len(arrays)} + {k}];" for k, array in enumerate(arrays)]
    loads = [f"R {array} = {array}_[i];" for array in arrays]
    stores = [f"{array}_[i] = {array};" for array in (*rule.writes, *rule.states)]
    body = "\n".join(
        [
            *_read_numbers(numbers, resident),
            _HEAD,
            *(f"  {line}" for line in head),
            f"  {_LOOP} {{",
            *(f"    {line}" for line in (*loads, in_real(rule.body), *stores)),
            "  }",
        ]
    )
    parameters = [*_PARAMETERS, *_number_parameters(numbers, "R", resident)]
    return generated(f"update_{name}", parameters, body, real_type(dtype))


def _number_parameters(names: Sequence[str], c_type: str, resident: bool) -> list[str]:
    return ["const double* numbers"] if resident else [f"const {c_type} {name}" for name in names]


def _read_numbers(names: Sequence[str], resident: bool, c_type: str = "R") -> list[str]:
    return [f"  const {c_type} {name} = {c_type}(numbers[{k}]);" for k, name in enumerate(names) if resident]


def norm_code(dtype: str, *, scales: bool, resident: bool = False) -> Code:
    """The kernel that writes the sum of squares of each chunk, or the one that scales by the sum of the chunks.

    `resident`: the limit is on the device.
    """
    limit = ["limit"] if scales else []
    loop = "for (int64 k = firsts[owner] + threadIdx.x; k < firsts[owner + 1]; k += blockDim.x) a += partial[k];"
    first = loop if scales else f"{_LOOP} a += double(g[i]) * g[i];"
    last = (
        f"const double norm = sqrt(sums[0]);\n  if (norm > limit) {_LOOP} g[i] = R(g[i] * R(limit / norm));"
        if scales
        else "if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];"
    )
    body = f"""\
{"".join(_read_numbers(limit, resident, "double"))}
{_HEAD}
  R* const g = (R*)pointers[owner];
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
    numbers = _number_parameters(limit, "double", resident) if scales else []
    parameters = [*_PARAMETERS, "double* partial", *numbers]
    return generated("clip_scale" if scales else "clip_squares", parameters, body, real_type(dtype))


UPDATES: Final[Mapping[str, MultiTensorUpdate | ClipGradByNorm]] = {
    **{name: MultiTensorUpdate(name) for name in RULES},
    "ClipGradByNorm": ClipGradByNorm(),
}
