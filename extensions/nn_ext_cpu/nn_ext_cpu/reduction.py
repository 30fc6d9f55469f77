"""Sums and means: element-wise programs whose output is smaller than their input receives sums.

Such a program joins others. Large arrays have an operation of their own for neighbouring axes, which is faster; other axes are
reduced in several stages.
"""

from collections.abc import Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape, is_deterministic
from nn_ext_cpu import _native
from nn_ext_cpu.describe import NUMBERS, blocks_around, refuse_dtypes, reshaped

#: Arrays of fewer elements gain more from joining a program, and outputs of fewer do not keep threads busy.
_LARGE: Final = 1 << 15
_SHARED: Final = 1 << 10
#: So many neighbouring lanes do, however few elements the output has.
_LANES: Final = 128
#: Sums of so few elements take more memory traffic than they save.
_SHORT: Final = 8


class SumKernel:
    """Sum or mean over some axes; the gradient repeats dy over them.

    Args:
        mean: Divide by the number of elements.
        first_axis: Where a function has no argument `axes`, the first of the axes that are reduced.
    """

    def __init__(self, *, mean: bool, first_axis: int = 0) -> None:
        self._mean = mean
        self._first_axis = first_axis

    def layout(self, call: Call) -> str:
        """As stored where only the first two axes stay, as in pooling over whole images."""
        return "channels_last" if self._first_axis == 2 else "contiguous"

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, bfloat16 and float64, and means of nothing."""
        (x,) = call.inputs
        if x is not None and x.size == 0 and self._mean:
            return Refusal("takes means of at least one element")
        return refuse_dtypes(call, NUMBERS)

    def forward(self, call: Call) -> Runner:
        """Prepare the sum."""
        (x,), (y,) = call.inputs, call.outputs
        assert x is not None
        kept = self._kept(call)
        samples = _independent_samples(x.shape, kept)
        stages = _stages(x.shape, kept) if x.strides is None and x.size // samples >= _LARGE else []
        if len(stages) == 1 and y.size // samples < _SHARED and stages[0][2] < _LANES:
            stages = _divided(*stages[0], samples)
        if stages:
            return self._along(call, stages)
        return self._prepared(call, [x, y], [x, reshaped(y, kept)], 0, 1)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the repetition."""
        (x,), (y,) = call.inputs, call.outputs
        return self._prepared(call, [None, None, y, x], [None, None, reshaped(y, self._kept(call)), x], 2, 3)

    def _kept(self, call: Call) -> Shape:
        """Return the shape of x with length 1 on the reduced axes."""
        (x,) = call.inputs
        assert x is not None
        axes = call.args.get("axes", tuple(range(self._first_axis, len(x.shape))))
        assert isinstance(axes, tuple)
        return tuple(1 if axis in axes else length for axis, length in enumerate(x.shape))

    def _scale(self, call: Call) -> float:
        (x,), (y,) = call.inputs, call.outputs
        assert x is not None
        return max(y.size, 1) / max(x.size, 1) if self._mean else 1.0

    def _along(self, call: Call, stages: Sequence[tuple[int, int, int]]) -> Runner:
        """Return the sums of each stage, those of all but the last one in working memory."""
        (x,), (y,) = call.inputs, call.outputs
        assert x is not None
        working = [ArrayDesc((before * after,), x.dtype) for before, _, after in stages[:-1]]
        arrays, sources = [x, y, *working], [0, *range(2, len(stages) + 1)]
        operations = []
        for stage, source, target in zip(stages, sources, [*sources[1:], 1], strict=True):
            scale = self._scale(call) if target == 1 else 1.0
            views = [reshaped(arrays[source], stage), arrays[target]]
            operations.append(_native.prepare("sum_along", arrays, views=views, places=[source, target], scale=scale))
        return _native.chain(operations, len(working)) if working else operations[0]

    def _prepared(
        self,
        call: Call,
        arrays: Sequence[ArrayDesc | None],
        views: Sequence[ArrayDesc | None],
        source: int,
        target: int,
    ) -> Runner:
        program = [("mul_scalar", target, [source], [self._scale(call)])] if self._mean else [("copy", target, [source], [])]
        runner: Runner = _native.prepare("pointwise", arrays, views=views, program=program)
        return runner


def _independent_samples(shape: Shape, kept: Shape) -> int:
    """Return how many samples choose their method each for itself: in deterministic mode, all that have a sum of their own."""
    return shape[0] if is_deterministic() and shape and shape[0] == kept[0] and shape[0] else 1


def _stages(shape: Shape, kept: Shape) -> list[tuple[int, int, int]]:
    """Return elements before, along and after each run of neighbouring axes that are reduced, the last run first.

    Empty where the last run is so short that its sums, which the next one reads, are many.
    """
    stages: list[tuple[int, int, int]] = []
    lengths, run = list(shape), []
    for axis in reversed(range(-1, len(shape))):
        if axis >= 0 and (shape[axis] == 1 or shape[axis] != kept[axis]):
            run += [axis] if shape[axis] != 1 else []
            continue
        if run:
            blocks = blocks_around(lengths, run)
            assert blocks is not None  # they are neighbours
            stages.append(blocks)
            for reduced in run:
                lengths[reduced] = 1
            run = []
    return [] if len(stages) > 1 and stages[0][1] < _SHORT else stages


def _divided(before: int, along: int, after: int, samples: int) -> list[tuple[int, int, int]]:
    """Return two stages for a sum of which there are few: equal parts, which keep threads busy, and the sum of these.

    Empty where the elements of one of `samples` have no number of equal parts that is fit.
    """
    most = min(_SHARED // (before // samples * after), along // _SHORT)
    parts = next((parts for parts in range(most, _SHORT - 1, -1) if along % parts == 0), 0)
    return [(before * parts, along // parts, after), (before, parts, after)] if parts else []


_SUM: Final = SumKernel(mean=False)
_MEAN: Final = SumKernel(mean=True)

REDUCTION: Final[dict[str, Kernel]] = {"Sum": _SUM, "Mean": _MEAN, "ReduceSum": _SUM, "ReduceMean": _MEAN}

#: Pooling over all spatial axes.
GLOBAL_AVERAGE: Final = SumKernel(mean=True, first_axis=2)
