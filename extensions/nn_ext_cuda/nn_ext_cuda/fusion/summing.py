"""Normalizations over rows that a plan may join with the sum that they read, or with the one that their gradient is added to.

Forward, a sum and the normalization of it are one step, which writes both. Backward, the gradient of x is added to another
gradient of it in passing. Only neighbours are joined, so that no step in between touches their arrays; and only where
no array that is written shares memory with one that is read, other than element by element.
"""

from collections.abc import Callable, Sequence
from typing import Any

from nn_core.ext import Array
from nn_ext_cuda.fusion.replaceable import ReplaceableStep, Wrapped
from nn_ext_cuda.gemm.cublaslt import is_all_of, overlap
from nn_ext_cuda.launch.program import Step


class Summing(Wrapped):
    """A runner of a normalization (see `nn_core.ext.Runner`) that knows the one with a sum.

    Args:
        runner: Runs the call alone.
        with_sum: Makes the runner with a sum. Forward its arrays are those of the call, x being the first summand, the
            second summand, and the sum. Backward they are those of the call, dx being the sum, and the other summand.
        place: The position of x, or of dx.
        is_backward: The runner computes gradients.
    """

    __slots__ = ("_is_backward", "_place", "_with_sum")

    def __init__(self, runner: Any, with_sum: Callable[[], Any], place: int, *, is_backward: bool = False) -> None:
        super().__init__(runner)
        self._with_sum = with_sum
        self._place = place
        self._is_backward = is_backward

    def summed(self) -> Any:
        """Return the runner with a sum."""
        return self._with_sum()

    def bind(self, *arrays: Array) -> "SummingStep":
        """Return the step on these arrays."""
        return SummingStep(self._runner.bind(*arrays), arrays, self._with_sum, self._place, self._is_backward)


class SummingStep(ReplaceableStep):
    """A normalization on given arrays; see `Summing`.

    Attributes:
        place: The position of x, or of dx.
    """

    __slots__ = ("_with_sum", "place")

    def __init__(
        self, step: Any, arrays: Sequence[Array | None], with_sum: Callable[[], Any], place: int, is_backward: bool
    ) -> None:
        super().__init__(step, arrays, is_backward)
        self.place = place
        self._with_sum = with_sum

    @property
    def x(self) -> Array:
        """The array x, or dx."""
        array = self.arrays[self.place]
        assert array is not None
        return array

    def others(self) -> list[Array]:
        """All arrays but x, or dx."""
        return [array for place, array in enumerate(self.arrays) if array is not None and place != self.place]

    def summed(self, x: Array, *further: Array) -> Any:
        """Return the step with a sum: `x` in place of x or dx, and the further arrays."""
        arrays = list(self.arrays)
        arrays[self.place] = x
        return self._with_sum().bind(*arrays, *further)


def take_sum(steps: list[Any], normalization: SummingStep) -> bool:
    """Let a normalization take over the sum that the step before it has computed; that one is replaced."""
    total: Any = steps[-1] if steps else None
    if not _is_sum(total) or not is_all_of(total.arrays[2], normalization.x):
        return False
    one, other, result = total.arrays[:3]
    read, written = [one, other], [result, *normalization.others()]
    if not _are_alike([one, other, normalization.x], result) or not _may_write(written, read):
        return False
    steps[-1] = normalization.summed(one, other, result)
    return True


def give_sum(steps: list[Any], total: Any) -> bool:
    """Let the gradient before a sum, one of whose summands it is and nobody else reads, be added to the other one."""
    gradient = steps[-1] if steps else None
    if not isinstance(gradient, SummingStep) or not gradient.is_backward or not _is_sum(total):
        return False
    one, other, result = total.arrays[:3]
    for place, part, rest in ((0, one, other), (1, other, one)):
        if place not in total.ends or not is_all_of(part, gradient.x) or overlap(part, rest):
            continue
        if _are_alike([part, rest, gradient.x], result) and _may_write([result], [*gradient.others(), rest]):
            steps[-1] = gradient.summed(result, rest)
            return True
    return False


def _is_sum(step: Any) -> bool:
    return isinstance(step, Step) and step.name == "add2_forward" and all(array is not None for array in step.arrays[:3])


def _are_alike(arrays: Sequence[Array], result: Array) -> bool:
    """Return whether arrays have the shape and dtype of `result`, or at least its elements in its order."""
    return all(
        array.size == result.size and array.dtype == result.dtype and array.flags.c_contiguous for array in (*arrays, result)
    )


def _may_write(written: Sequence[Array], read: Sequence[Array]) -> bool:
    """Return whether `written` may be written while `read` is read row by row."""
    return all(not overlap(target, source) or _is_same(target, source) for target in written for source in read)


def _is_same(one: Array, other: Array) -> bool:
    return is_all_of(one, other) and one.dtype == other.dtype
