"""Batch normalizations that a plan may join with the sum and the ReLU after them; `residual` decides whether it does."""

from collections.abc import Callable, Sequence
from typing import Any

from nn_core.ext import Array, Call
from nn_ext_cuda.fusion.replaceable import ReplaceableStep, Wrapped


class Joinable(Wrapped):
    """A runner of a batch normalization (see `nn_core.ext.Runner`) that knows the one which adds and takes a ReLU as well.

    Args:
        runner: Runs the call alone.
        call: The call.
        joined: Makes the runner with a ReLU; True: with an array z before it, or with the gradient of z. Its arrays are
            those of the call, y being the result of the ReLU and dy the gradient of that, and z or its gradient.
        is_backward: The runner computes gradients.
    """

    __slots__ = ("_call", "_is_backward", "_joined")

    def __init__(self, runner: Any, call: Call, joined: Callable[[bool], Any], *, is_backward: bool = False) -> None:
        super().__init__(runner)
        self._call = call
        self._joined = joined
        self._is_backward = is_backward

    def bind(self, *arrays: Array) -> "JoinableStep":
        """Return the step on these arrays."""
        return JoinableStep(self._runner.bind(*arrays), arrays, self._call, self._joined, self._is_backward)


class JoinableStep(ReplaceableStep):
    """A batch normalization on given arrays; see `Joinable`."""

    __slots__ = ("_call", "_joined")

    def __init__(
        self,
        step: Any,
        arrays: Sequence[Array | None],
        call: Call,
        joined: Callable[[bool], Any],
        is_backward: bool,
    ) -> None:
        super().__init__(step, arrays, is_backward)
        self._call = call
        self._joined = joined

    @property
    def y_place(self) -> int:
        """The position of y, or of the place for it."""
        return len(self._call.inputs)

    @property
    def dy_place(self) -> int:
        """The position of dy, if it computes gradients."""
        return len(self._call.inputs) + len(self._call.outputs)

    def with_relu(self, y: Array, z: Array | None) -> Any:
        """Return the step that writes the ReLU of its result, or of the sum of that and z, to `y`."""
        arrays = list(self.arrays)
        arrays[self.y_place] = y
        return self._joined(z is not None).bind(*arrays, z)

    def through_relu(self, y: Array, dy: Array, dz: Array | None) -> Any:
        """Return the step that computes the gradients from that of a ReLU whose result is `y`, and `dz` in passing."""
        arrays = list(self.arrays)
        arrays[self.y_place], arrays[self.dy_place] = y, dy
        return self._joined(dz is not None).bind(*arrays, dz)
