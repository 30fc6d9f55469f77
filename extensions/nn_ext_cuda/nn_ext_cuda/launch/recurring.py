"""Calls of dynamic graphs that come again in the memory of an earlier call, for which they are prepared already.

A dynamic graph allocates its results anew in each step. A program that does the same in each step gets the same memory
from the pool, as a rule. So steps are kept by the addresses of their arrays, without the arrays: the second call on some
memory binds a step to it, and a backward pass is recorded as a CUDA graph. Other memory costs one look-up.
"""

import functools
import itertools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Array, Runner
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cuda.fusion.replaceable import ReplaceableStep
from nn_ext_cuda.gemm.cublaslt import overlap
from nn_ext_cuda.launch import capture
from nn_ext_cuda.launch.capture import Apart, Parts, Recorded, parted
from nn_ext_cuda.launch.program import ChainStep, arrays_of
from nn_ext_cuda.memory.derived_weights import DerivingStep
from nn_ext_cuda.memory.workspace import is_shared

#: A runner keeps so many steps, or passes; beyond that the oldest are dropped. Layers of one size share a runner.
MAX_STEPS: Final = 512
MAX_PASSES: Final = 8
#: Steps and passes with more memory of their own than this are not kept.
MAX_STEP_BYTES: Final = 1 << 18
MAX_PASS_BYTES: Final = 1 << 24


class Recurring:
    """A runner of a function that is computed as it is called.

    Args:
        runner: The runner, which has ``bind``.
    """

    __slots__ = ("_recurs", "_runner", "_steps")

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._steps = _ByAddress(self._bound, MAX_STEPS)
        self._recurs = True

    def __call__(self, *arrays: Array) -> None:
        step = self._steps.found(arrays) if self._recurs else None
        if step is None:
            self._runner(*arrays)
        else:
            step()

    def _bound(self, arrays: Sequence[Array | None]) -> Any:
        step = self._runner.bind(*arrays)
        self._recurs = _recurs(step) and _own_bytes([step], arrays) <= MAX_STEP_BYTES
        return step if self._recurs else None


class RecurringPass:
    """A backward pass as one function of the arrays of a graph (see ``program`` in `nn_core.ext.BackendExtras`).

    Args:
        parts: (runner, arrays, numbers of the arrays that are given, by their positions) of each part.
    """

    __slots__ = ("_parts", "_passes", "_recurs")

    def __init__(self, parts: Sequence[tuple[Runner, Sequence[Array | None], Mapping[int, int]]]) -> None:
        # what is given must not be kept alive
        self._parts = [
            (runner, [None if position in places else array for position, array in enumerate(arrays)], places)
            for runner, arrays, places in parts
        ]
        self._passes = _ByAddress(self._recorded, MAX_PASSES)
        self._recurs = True

    def __call__(self, *given: Array) -> None:
        recorded = self._passes.found(given) if self._recurs and capture.is_enabled() else None
        if recorded is None:
            for number in range(len(self._parts)):
                self._run(number, given)
            return
        for part in recorded.parts:
            if isinstance(part, int):
                self._run(part, given)
            else:
                part()

    def _run(self, number: int, given: Sequence[Array]) -> None:
        runner, arrays, places = self._parts[number]
        runner(*_filled(arrays, places, given))

    def _recorded(self, given: Sequence[Array | None]) -> Parts | None:
        steps = [self._bound(number, given) for number in range(len(self._parts))]
        fixed = [array for _, arrays, _ in self._parts for array in arrays]
        self._recurs = _own_bytes([step for step in steps if step is not None], [*given, *fixed]) <= MAX_PASS_BYTES
        if not self._recurs:
            return None
        sequence: list[Recorded | Apart | int] = []
        for is_bound, group in itertools.groupby(enumerate(steps), lambda pair: pair[1] is not None):
            numbers, own = zip(*group, strict=True)
            sequence += parted(own, may_wait=False) if is_bound else numbers
        return Parts(sequence)

    def _bound(self, number: int, given: Sequence[Array | None]) -> Any:
        runner, fixed, places = self._parts[number]
        arrays = _filled(fixed, places, given)
        bind = getattr(runner, "bind", None)
        step = functools.partial(runner, *arrays) if bind is None else bind(*arrays)
        return step if _recurs(step) else None


class _ByAddress:
    """Keeps what was made for arrays by their addresses and the stream.

    Args:
        make: Makes it for arrays that do not own their memory; None where it cannot be used again.
        most: Number of entries.
    """

    __slots__ = ("_entries", "_make", "_most")

    def __init__(self, make: Callable[[Sequence[Array | None]], Any], most: int) -> None:
        self._make = make
        self._most = most
        self._entries: dict[tuple[int, ...], Any] = {}

    def found(self, arrays: Sequence[Array | None]) -> Any:
        """Return what was made for arrays of this memory, at the latest now; None where they are there for the first time."""
        entries = self._entries
        try:
            stream = cupy.cuda.get_current_stream().ptr
            # threads may not share the scratch memory that a step is bound to
            key = (threading.get_ident(), stream, *[0 if array is None else array.data.ptr for array in arrays])
        except AttributeError:  # an array of the host, such as a random key, has no address on the device
            return None
        made = entries.get(key)
        if made is not None:
            return made
        if key not in entries:
            while len(entries) >= self._most:
                entries.pop(next(iter(entries)), None)  # another thread may have dropped it
            entries[key] = None
        elif all(array is None or array.flags.c_contiguous for array in arrays):
            entries[key] = made = self._make([_unowned(array) for array in arrays])
        return made


def _filled(
    arrays: Sequence[Array | None], places: Mapping[int, int], given: Sequence[Array | None]
) -> Sequence[Array | None]:
    return [given[places[position]] if position in places else array for position, array in enumerate(arrays)]


def _unowned(array: Array | None) -> Array | None:
    """Return the same memory as an array that does not keep it."""
    if array is None or array.size == 0:
        return array
    memory = cupy.cuda.UnownedMemory(array.data.ptr, array.nbytes, None, cupy.cuda.Device().id)
    return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0))


def _own_bytes(steps: Sequence[Any], given: Sequence[Array | None]) -> float:
    """Bytes that steps have for themselves beside the arrays that were given; infinite where one does not tell."""
    found = arrays_of(steps)
    if found is None:
        return math.inf
    known = [array for array in given if array is not None]
    own = [array for array in found if not is_shared(array) and not any(overlap(array, other) for other in known)]
    return sum({int(array.data.ptr): int(array.nbytes) for array in own}.values())


def _recurs(step: Any) -> bool:
    """Return whether a step does the same whenever it runs, with what is in the memory of its arrays then."""
    if isinstance(step, ChainStep):
        return all(_recurs(each) for each in step.steps)
    if isinstance(step, functools.partial):  # array code
        return True
    if isinstance(step, DerivingStep):  # others may get what is derived from a weight, as long as the weight has that memory
        return False
    if isinstance(step, ReplaceableStep):
        return _recurs(step.step)
    return bool(getattr(step, "capturable", False)) and not getattr(step, "words", ())
