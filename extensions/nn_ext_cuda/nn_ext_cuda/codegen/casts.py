"""Casts between floating dtypes, many of them in one launch.

A pass in half precision casts each parameter before it is read, and each gradient after it was computed. Most are small, so
that launching them takes longer than casting. In a plan, casts of parameters come first, and those of gradients wait until
a step touches what they read or write; neighbours then are one launch.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from nn_core.ext import Array, ArrayDesc, Step
from nn_ext_cuda.codegen.code import Code, generated
from nn_ext_cuda.codegen.dtypes import C_TYPES, FLOATING
from nn_ext_cuda.codegen.words import Words
from nn_ext_cuda.kernels.solvers.multi_tensor import HEAD, LOOP, PARAMETERS, Tables
from nn_ext_cuda.launch.program import Program, arrays_of, flat, span

#: Casts of more elements take longer than their launch; they stay by themselves, where they are.
_MAX_ELEMENTS: Final = 1 << 20
#: So many casts wait at most: each step of the plan is compared with all of them.
_MAX_WAITING: Final = 64


def caster(source: ArrayDesc, target: ArrayDesc) -> "Cast | None":
    """Return the runner that casts between arrays of these descriptions; None where it is not for kernels of this module."""
    dtypes = source.dtype, target.dtype
    if source.strides is not None or target.strides is not None or source.size == 0:
        return None
    if source.dtype == target.dtype or not set(dtypes) <= set(FLOATING):
        return None
    # from float64 to 16 bits, by way of float32, values would be rounded twice
    return None if "float64" in dtypes and "float32" not in dtypes else Cast(dtypes, source.size)


class Cast:
    """A runner (see `nn_core.ext.Runner`) that casts one array into another.

    Attributes:
        weights: The copy of a parameter says whether the parameter has changed; see `follow_weights` in `nn_core.ext`.
    """

    __slots__ = ("_dtypes", "_program")

    weights = (1,)

    def __init__(self, dtypes: tuple[str, str], size: int) -> None:
        self._dtypes = dtypes
        self._program = Program([flat(_cast_code(dtypes), size, (np.int64(size), 0, 1))], 2)

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> "CastStep":
        """Return the step on these arrays."""
        return CastStep(self._program.bind(*arrays), self._dtypes, arrays)


class CastStep:
    """Casts of given arrays.

    Attributes:
        arrays: What is read and written.
        dtypes: The dtypes of what is read and of what is written.
        version: Tells what the parameters hold; None: they are no parameters, or nobody can tell.
    """

    __slots__ = ("_step", "arrays", "dtypes", "version")

    name = "cast"
    capturable = True
    words: tuple[Words, ...] = ()

    def __init__(
        self,
        step: Any,
        dtypes: tuple[str, str],
        arrays: Sequence[Array],
        version: Callable[[], object] | None = None,
    ) -> None:
        self._step = step
        self.dtypes = dtypes
        self.arrays = tuple(arrays)
        self.version = version

    def follow_weights(self, versions: Sequence[Callable[[], object] | None]) -> None:
        """Take the function that tells what the parameter holds."""
        (self.version,) = versions

    def run(self) -> None:
        """Cast."""
        self._step()

    __call__ = run


def gathered(steps: Sequence[Step]) -> list[Step]:
    """Return the steps, with casts in common launches: of parameters at the start, of what is computed as late as possible."""
    result: list[Step] = [*_in_common([step for step in steps if _is_small_cast(step, of_parameter=True)])]
    waiting = _Waiting()
    for step in steps:
        if _is_small_cast(step, of_parameter=True):
            continue
        if waiting.steps and waiting.is_touched(_spans(step)):
            result += waiting.taken()
        if _is_small_cast(step, of_parameter=False):
            waiting.add(step)
        else:
            result.append(step)
    return result + waiting.taken()


def _is_small_cast(step: Any, *, of_parameter: bool) -> bool:
    """Return whether it is a cast that may share a launch, of a parameter or of something else."""
    if not isinstance(step, CastStep) or step.arrays[0].size > _MAX_ELEMENTS:
        return False
    return (step.version is not None) == of_parameter


@dataclass(slots=True)
class _Waiting:
    """Casts that wait, and the memory that no step before them may touch."""

    steps: list[Any] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def is_touched(self, spans: "Sequence[tuple[int, int]] | None") -> bool:
        """Return whether a step that touches `spans` has to come after the casts; None: it may touch anything."""
        if spans is None or len(self.steps) >= _MAX_WAITING:
            return True
        return any(start < end_of_own and own < end for start, end in spans for own, end_of_own in self.spans)

    def add(self, step: Any) -> None:
        self.steps.append(step)
        self.spans += _spans(step) or []

    def taken(self) -> list[Any]:
        """Return the casts in common launches; none waits afterwards."""
        steps = list(_in_common(self.steps))
        self.steps, self.spans = [], []
        return steps


def _spans(step: Any) -> list[tuple[int, int]] | None:
    """Return the addresses of the first byte and after the last one of each array of the device that a step touches.

    None where that is not known.
    """
    arrays = arrays_of([step])
    return None if arrays is None else [span(array) for array in arrays if hasattr(array.data, "ptr")]


def _in_common(steps: Sequence[Any]) -> Iterator[CastStep]:
    """One launch for all casts between the same dtypes."""
    for dtypes in dict.fromkeys(step.dtypes for step in steps):
        alike = [step for step in steps if step.dtypes == dtypes]
        if len(alike) == 1:
            yield alike[0]
            continue
        launch = Tables([step.arrays for step in alike]).launcher(_casts_code(dtypes))
        arrays = [array for step in alike for array in step.arrays]
        yield CastStep(_Launching(launch), dtypes, arrays, _all_of([step.version for step in alike]))


class _Launching:
    """A launch without numbers."""

    __slots__ = ("_launch",)

    def __init__(self, launch: Callable[[Sequence[Any]], None]) -> None:
        self._launch = launch

    def __call__(self) -> None:
        self._launch([])


def _all_of(versions: Sequence[Callable[[], object] | None]) -> Callable[[], object] | None:
    """Return a function that tells what all parameters hold; None where one cannot be told."""
    known = [version for version in versions if version is not None]

    def together() -> object:
        values = [version() for version in known]
        return None if None in values else tuple(values)

    return together if len(known) == len(versions) else None


def _cast_code(dtypes: tuple[str, str]) -> Code:
    """Return the kernel for one array."""
    source, target = (C_TYPES[dtype] for dtype in dtypes)
    loop = "for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)"
    parameters = ["const int64 n", f"const {source}* x", f"{target}* y"]
    return generated("cast", parameters, f"  {loop} store(y[i], load(x[i]));", "float")


def _casts_code(dtypes: tuple[str, str]) -> Code:
    """Return the kernel for many arrays."""
    source, target = (C_TYPES[dtype] for dtype in dtypes)
    body = f"""\
{HEAD}
  const {source}* const x = (const {source}*)pointers[owner * 2];
  {target}* const y = ({target}*)pointers[owner * 2 + 1];
  {LOOP} store(y[i], load(x[i]));"""
    return generated("casts", PARAMETERS, body, "float")
