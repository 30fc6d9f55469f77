"""Normalizations that a plan may replace by ones that do more; see `residual` and `summing`."""

from collections.abc import Sequence
from typing import Any

from nn_core.ext import Array
from nn_ext_cuda.codegen.words import Words


class Wrapped:
    """A runner (see `nn_core.ext.Runner`) that runs another one, and knows more about it.

    Args:
        runner: The other one.
    """

    __slots__ = ("_runner",)

    def __init__(self, runner: Any) -> None:
        self._runner = runner

    @property
    def launches(self) -> tuple[Any, ...]:
        """The launches of the other one."""
        return tuple(getattr(self._runner, "launches", ()))

    def __call__(self, *arrays: Array) -> None:
        self._runner(*arrays)


class ReplaceableStep:
    """A normalization on given arrays.

    Attributes:
        step: The step that it is as long as it is not replaced.
        arrays: The arrays of the call.
        is_backward: It computes gradients.
        ends: Positions of arrays whose values nobody reads afterwards, as far as the plan has said so.
    """

    __slots__ = ("arrays", "ends", "is_backward", "step")

    def __init__(self, step: Any, arrays: Sequence[Array | None], is_backward: bool) -> None:
        self.step = step
        self.arrays = tuple(arrays)
        self.is_backward = is_backward
        self.ends: Sequence[int] = ()

    @property
    def capturable(self) -> bool:
        """Whether it can be part of a CUDA graph."""
        return bool(getattr(self.step, "capturable", False))

    @property
    def words(self) -> tuple[Words, ...]:
        """The numbers that the host has to bring to the device before each run."""
        return tuple(getattr(self.step, "words", ()))

    @property
    def name(self) -> str:
        """Name of the function."""
        return str(getattr(self.step, "name", "normalization"))

    def run(self) -> None:
        """Normalize; the words are there."""
        self.step.run()

    def __call__(self) -> None:
        self.step()
