"""Batch normalizations, the sum and the ReLU after them as one step of a plan, forward and backward.

A joined step reads and writes at another time than its parts would: forward it comes last, backward it comes first. It is
made only where no step in between touches its arrays, where nobody else reads what is not written any more, and where no
array that it writes shares memory with one that it still reads, other than element by element.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from nn_core.ext import Array
from nn_ext_cuda.fusion.joinable import JoinableStep
from nn_ext_cuda.gemm.cublaslt import is_all_of, overlap
from nn_ext_cuda.launch.program import Step, arrays_of

#: So many steps before the last one the first may be.
_REACH: Final = 12


def take_relu(steps: list[Any], relu: Step) -> bool:
    """Let the batch normalization whose result `relu` reads, or whose sum with another array, take it over.

    Args:
        steps: The steps before; the normalization and the sum are taken out, and the joined step comes last.
        relu: A ReLU.
    """
    source, target = relu.arrays[:2]
    assert source is not None and target is not None
    last = _maker(steps, source)
    if last is None or not (_is_over(relu, 0) or _is_same(source, target)):
        return False
    for first, z in _candidates(steps, last):
        joined = _joined_forward(steps, first, last, source, target, z)
        if joined is not None:
            for number in sorted({first, last}, reverse=True):
                del steps[number]
            steps.append(joined)
            return True
    return False


def take_gradients(steps: list[Any], normalization: JoinableStep) -> bool:
    """Let the gradients of a batch normalization come first and take over those of the ReLU, and of the sum, after it.

    Args:
        steps: The steps before; the gradient of the ReLU is replaced, that of the sum is taken out.
        normalization: The gradients of the normalization.
    """
    found = _relu_after(steps, normalization)
    if found is None or not _may_join(steps, found, normalization):
        return False
    steps[found.first] = normalization.through_relu(found.y, found.dy, found.dz)
    if found.last != found.first:
        del steps[found.last]
    return True


@dataclass(frozen=True, slots=True)
class _Gradients:
    """The gradients of a ReLU, and of a sum before it, among steps.

    Attributes:
        first: Number of the step of the ReLU.
        last: Number of that of the sum; `first` where there is none.
        y: The result of the ReLU.
        dy: Its gradient.
        dsum: The gradient of what the ReLU reads.
        dz: The gradient of the other summand, if it is wanted; `dsum` where others read that one.
    """

    first: int
    last: int
    y: Array
    dy: Array
    dsum: Array
    dz: Array | None


def _relu_after(steps: Sequence[Any], normalization: JoinableStep) -> _Gradients | None:
    """Return the gradients from which a normalization has its own; what others read of those in between is one of a
    summand.
    """
    dy = normalization.arrays[normalization.dy_place]
    last, is_over = _maker(steps, dy), normalization.dy_place in normalization.ends
    if last is None:
        return None
    is_read = not (is_over and _is_untouched(steps[last + 1 :], [dy]))
    first: int | None = last
    dsum, dz = dy, dy if is_read else None
    if steps[last].name == "add2_backward":
        first, dsum, dz = _before_sum(steps, last, dy) if is_over else (None, dy, None)
    if first is None:
        return None
    relu = steps[first]
    if relu.name != "relu_backward" or not is_all_of(relu.arrays[3], dsum):
        return None
    y, given = relu.arrays[1:3]
    if not all(_is_alike(array, dy) for array in _given(y, given, dz)):
        return None
    return _Gradients(first, last, y, given, dsum, dz)


def _before_sum(steps: Sequence[Any], last: int, dy: Array) -> tuple[int | None, Array, Array | None]:
    """Return the step whose gradient that of a sum is, this gradient, and that of the summand that does not have `dy`."""
    dsum, one, other = steps[last].arrays[3:6]
    first = _maker(steps[:last], dsum) if _is_over(steps[last], 3) else None
    return first, dsum, other if one is not None and is_all_of(one, dy) else one


def _given(*arrays: Array | None, besides: Array | None = None) -> list[Array]:
    return [array for array in arrays if array is not None and array is not besides]


def _maker(steps: Sequence[Any], array: Array) -> int | None:
    """Return the number of the last step that computes all of `array`, if it is one that can be joined and is near."""
    for number in range(len(steps) - 1, max(len(steps) - 1 - _REACH, -1), -1):
        if any(result is not None and is_all_of(result, array) for result in _results(steps[number])):
            return number
    return None


#: The positions of the results of steps that can be joined, by their names.
_RESULTS: Final = {"add2_forward": (2,), "relu_backward": (3,), "add2_backward": (4, 5)}


def _results(step: Any) -> list[Array | None]:
    if isinstance(step, JoinableStep):
        return [] if step.is_backward else [step.arrays[step.y_place]]
    return [step.arrays[place] for place in _RESULTS.get(step.name, ())] if isinstance(step, Step) else []


def _candidates(steps: Sequence[Any], last: int) -> list[tuple[int, Array | None]]:
    """Return the normalizations whose result, or sum with z, is that of step `last`, with z; the latest one first."""
    if isinstance(steps[last], JoinableStep):
        return [(last, None)]
    total = steps[last]
    if total.name != "add2_forward":
        return []
    *pair, result = total.arrays[:3]
    if not all(_is_alike(array, result) for array in pair) or overlap(*pair):
        return []
    found: list[tuple[int, Array | None]] = []
    for place, value in enumerate(pair):
        number = _maker(steps[:last], value) if _is_over(total, place) or _is_same(value, result) else None
        if number is not None and isinstance(steps[number], JoinableStep):
            found.append((number, pair[1 - place]))
    return sorted(found, key=lambda candidate: -candidate[0])


def _joined_forward(steps: Sequence[Any], first: int, last: int, source: Array, target: Array, z: Array | None) -> Any | None:
    """Return the joined step at the place of the ReLU, or None."""
    normalization: JoinableStep = steps[first]
    y = normalization.arrays[normalization.y_place]
    assert y is not None
    x, *small = _others(normalization, normalization.y_place)
    images = [x] if z is None else [x, z]
    if not all(_is_alike(array, y) for array in (*images, source, target)):
        return None
    own = _given(*normalization.arrays)
    after = [*own, source, *images]
    if not _is_untouched(steps[first + 1 : last], own) or not _is_untouched(steps[last + 1 :], after):
        return None
    if not all(_is_elementwise(target, array) for array in images):
        return None
    if _any_overlap(small, [target, *images]):
        return None
    return normalization.with_relu(target, z)


def _may_join(steps: Sequence[Any], found: _Gradients, normalization: JoinableStep) -> bool:
    """Return whether gradients may be computed at the place of the gradient of the ReLU."""
    between, after = steps[found.first + 1 : found.last], steps[found.last + 1 :]
    early = _given(found.dz, found.dsum)
    own = _given(*normalization.arrays, besides=found.dz)  # which others may read
    if not _is_untouched([*between, *after], own) or not _is_untouched(between, early):
        return False
    x, *rest = _others(normalization, normalization.dy_place)
    dx = normalization.arrays[normalization.dy_place + 1]
    written, read = _given(dx, found.dz), _given(x, found.y, found.dy)
    if not all(_is_alike(array, found.y) for array in (*written, *read)) or not _may_write(dx, found.dz, x, read):
        return False
    return not _any_overlap(_given(*rest, besides=dx), [*written, *read])


def _may_write(dx: Array | None, dz: Array | None, x: Array, read: Sequence[Array]) -> bool:
    """Return whether gradients of images may be written while arrays are read; dz is written before x and dx are used
    again.
    """
    if dz is not None and _any_overlap([dz], _given(dx, x)):
        return False
    return all(_is_elementwise(target, array) for target in _given(dx, dz) for array in read)


def _others(normalization: JoinableStep, place: int) -> list[Any]:
    """Return the first array, x, and all others that there are, except the one at `place`."""
    arrays = normalization.arrays
    return [arrays[0], *[array for k, array in enumerate(arrays[1:], 1) if array is not None and k != place]]


def _is_untouched(steps: Sequence[Any], arrays: Sequence[Array]) -> bool:
    """Return whether none of `steps` reads or writes memory of `arrays`; False where one does not tell."""
    touched = arrays_of(steps)
    return touched is not None and not _any_overlap(touched, arrays)


def _any_overlap(some: Sequence[Array], others: Sequence[Array]) -> bool:
    return any(overlap(one, other) for one in some for other in others)


def _is_elementwise(target: Array, source: Array) -> bool:
    """Return whether a target may be written while the source is read element by element."""
    return _is_same(target, source) or not overlap(target, source)


def _is_over(step: Step, place: int) -> bool:
    """Return whether nobody reads the array at `place` after a step."""
    return place in step.ends


def _is_same(one: Array, other: Array) -> bool:
    return is_all_of(one, other) and _is_alike(one, other)


def _is_alike(one: Array, other: Array) -> bool:
    """Return whether two arrays have the same shape, dtype and order of elements in memory."""
    return bool(one.shape == other.shape and one.strides == other.strides and one.dtype == other.dtype)
