"""Steps on copies of arrays whose addresses cuDNN may not be given."""

from collections.abc import Sequence
from typing import Any

from nn_core.ext import Array
from nn_ext_cuda.memory.arrays import allocated


class AlignedStep:
    """A step on copies of some arrays.

    It can be part of a CUDA graph: the copies are made when it is bound, and are written in the order of the stream.

    Args:
        step: The step.
        moved: The arrays of the call, each with the copy that stands in for it.
    """

    __slots__ = ("_moved", "_step")

    capturable = True

    def __init__(self, step: Any, moved: Sequence[tuple[Array, Array]]) -> None:
        self._step = step
        self._moved = tuple(moved)

    @property
    def name(self) -> str:
        """Name of the function."""
        return str(self._step.name)

    @property
    def arrays(self) -> tuple[Array | None, ...]:
        """The arrays of the call, and those that stand in for some of them."""
        return (*[array for array, _ in self._moved], *self._step.arrays)

    def run(self) -> None:
        """Bring all values to the copies, results too (a sum is added to them), run, and take all values back."""
        for array, copy in self._moved:
            copy[...] = array
        self._step.run()
        for array, copy in self._moved:
            array[...] = copy

    __call__ = run


def stand_in(array: Array | None, alignment: int) -> Array | None:
    """`array`, or an uninitialised one of its kind where its address is no multiple of `alignment`."""
    if array is None or int(array.data.ptr) % alignment == 0:
        return array
    return allocated(tuple(array.shape), array.dtype.name)


def on_stand_ins(step: Any, given: Sequence[Array | None], used: Sequence[Array | None]) -> Any:
    """Return a step that uses some arrays instead of those that were given: itself where they are the same."""
    moved = [(array, copy) for array, copy in zip(given, used, strict=True) if copy is not array]
    return AlignedStep(step, moved) if moved else step
