"""Functions that pass values on and note their range in parameters."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nn_core.engine.error_messages.refusal import checked_flag
from nn_core.engine.graph.python_function import PythonFunction
from nn_core.errors import ShapeError
from nn_core.variable import Variable

#: The share of the old value in a moving mean.
DECAY: Final = 0.99


class Recorder(PythonFunction):
    """Base of the functions that note a range: ``y = x``, and the other inputs are the ends of the range.

    An end has as many axes as x, each of the length of x or 1; it is taken over the axes of length 1. The gradient passes
    through.

    Args:
        ctx: Context to run in; None: the current one.
        training: Whether forward passes change the range.
    """

    def __init__(self, ctx: Any = None, training: bool = True) -> None:
        super().__init__(ctx)
        self.training = checked_flag(f"{self.name}: training", training)

    def setup_impl(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        """Check the shapes of the range, and give the output that of x."""
        x = inputs[0]
        for end in inputs[1:]:
            if end.ndim != x.ndim or any(size not in (1, full) for size, full in zip(end.shape, x.shape, strict=True)):
                raise ShapeError(
                    f"{self.name}: a range must have 1 or the length of x at each axis, got {end.shape} for {x.shape}"
                )
        outputs[0].reset_shape(x.shape, True)

    def forward_impl(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        """Copy x, and note its range when training."""
        values = inputs[0].d
        outputs[0].d = values
        if self.training and values.size:
            self.note(values, inputs[1:])

    def note(self, values: Any, ends: Sequence[Variable]) -> None:
        """Change the ends of the range; each recorder defines how."""
        raise NotImplementedError(f"{self.name}: note() must be defined")

    def backward_impl(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], propagate_down: Sequence[bool], accum: Sequence[bool]
    ) -> None:
        """Pass the gradient of the output on to x."""
        if propagate_down[0]:
            inputs[0].g = outputs[0].g + (inputs[0].g if accum[0] else 0)
        for end, wanted, adds in zip(inputs[1:], propagate_down[1:], accum[1:], strict=True):
            if wanted and not adds:
                end.g = 0

    def grad_depends_input_data(self, i: int, j: int) -> bool:
        """No gradient reads the input."""
        return False

    def grad_depends_output_data(self, i: int, o: int) -> bool:
        """No gradient reads the output."""
        return False


class _MovingRecorder(Recorder):
    """Base of recorders of moving means.

    Args:
        ctx: Context to run in; None: the current one.
        decay: The share of the old value.
        training: Whether forward passes change the range.
    """

    def __init__(self, ctx: Any = None, decay: float = DECAY, training: bool = True) -> None:
        super().__init__(ctx, training)
        self.decay = decay

    def mean(self, old: Any, new: Any) -> Any:
        """Return the moving mean after a new value."""
        return self.decay * old + (1 - self.decay) * new


class AbsMaxRecorder(Recorder):
    """Notes the largest absolute value of all passes in M."""

    def note(self, values: Any, ends: Sequence[Variable]) -> None:
        """M = max(M, max |x|)."""
        (upper,) = ends
        upper.d = np.maximum(upper.d, _reduced(np.max, abs(values), upper))


class MaxMaxRecorder(Recorder):
    """Notes the largest value of all passes in M."""

    def note(self, values: Any, ends: Sequence[Variable]) -> None:
        """M = max(M, max x)."""
        (upper,) = ends
        upper.d = np.maximum(upper.d, _reduced(np.max, values, upper))


class MaxMvaRecorder(_MovingRecorder):
    """Notes the moving mean of the largest values in M."""

    def note(self, values: Any, ends: Sequence[Variable]) -> None:
        """M = decay M + (1 - decay) max x."""
        (upper,) = ends
        upper.d = self.mean(upper.d, _reduced(np.max, values, upper))


class MinMaxMinMaxRecorder(Recorder):
    """Notes the smallest value of all passes in m, and the largest in M."""

    def note(self, values: Any, ends: Sequence[Variable]) -> None:
        """m = min(m, min x), M = max(M, max x)."""
        lower, upper = ends
        lower.d = np.minimum(lower.d, _reduced(np.min, values, lower))
        upper.d = np.maximum(upper.d, _reduced(np.max, values, upper))


class MinMaxMvaRecorder(_MovingRecorder):
    """Notes the moving mean of the smallest values in m, and of the largest in M."""

    def note(self, values: Any, ends: Sequence[Variable]) -> None:
        """m = decay m + (1 - decay) min x, and M likewise of max x."""
        lower, upper = ends
        lower.d = self.mean(lower.d, _reduced(np.min, values, lower))
        upper.d = self.mean(upper.d, _reduced(np.max, values, upper))


def _reduced(reduce: Any, values: Any, end: Variable) -> Any:
    axes = tuple(axis for axis, size in enumerate(end.shape) if size == 1)
    return reduce(values, axis=axes, keepdims=True)


def abs_max_recorder(x: Variable, M: Variable, training: bool = True) -> Variable:
    """Pass `x` on, and note the largest absolute value of all passes in `M`.

    Example:
        >>> x, M = Variable.from_numpy_array([[1.0, -3.0]]), Variable.from_numpy_array([[0.0]])
        >>> abs_max_recorder(x, M).forward()
        >>> M.d.tolist()
        [[3.0]]
    """
    return _applied(AbsMaxRecorder(training=training), x, M)


def max_max_recorder(x: Variable, M: Variable, training: bool = True) -> Variable:
    """Pass `x` on, and note the largest value of all passes in `M`."""
    return _applied(MaxMaxRecorder(training=training), x, M)


def max_mva_recorder(x: Variable, M: Variable, decay: float = DECAY, training: bool = True) -> Variable:
    """Pass `x` on, and note the moving mean of its largest values in `M`."""
    return _applied(MaxMvaRecorder(decay=decay, training=training), x, M)


def minmax_minmax_recorder(x: Variable, m: Variable, M: Variable, training: bool = True) -> Variable:
    """Pass `x` on, and note the smallest and the largest value of all passes in `m` and `M`."""
    return _applied(MinMaxMinMaxRecorder(training=training), x, m, M)


def minmax_mva_recorder(x: Variable, m: Variable, M: Variable, decay: float = DECAY, training: bool = True) -> Variable:
    """Pass `x` on, and note the moving means of its smallest and largest values in `m` and `M`."""
    return _applied(MinMaxMvaRecorder(decay=decay, training=training), x, m, M)


def _applied(recorder: Recorder, *inputs: Variable) -> Variable:
    result: Variable = recorder(*inputs)
    return result
