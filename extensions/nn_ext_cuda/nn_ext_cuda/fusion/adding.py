"""Runners of gradients that can add them to what is there, such as the gradients of other branches."""

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from nn_core.ext import Array, Runner
from nn_ext_cuda.fusion.replaceable import Wrapped

#: Makes the runner that adds the gradients at some places, and overwrites the others; None where there is no such runner.
Make: TypeAlias = Callable[[Collection[int]], Runner | None]


class Gradients(Wrapped):
    """A runner of gradients; see `accumulating` of `nn_core.ext.Runner`.

    Args:
        runner: Overwrites all gradients.
        make: Makes runners that add.
    """

    __slots__ = ("_make",)

    def __init__(self, runner: Any, make: Make) -> None:
        super().__init__(runner)
        self._make = make

    @property
    def weights(self) -> tuple[int, ...]:
        """The positions of weights of which it keeps copies."""
        return tuple(getattr(self._runner, "weights", ()))

    def bind(self, *arrays: Array) -> Any:
        """Return the step on these arrays."""
        return self._runner.bind(*arrays)

    def accumulating(self, places: Collection[int]) -> Runner | None:
        """Return the runner that adds the gradients at `places` to these arrays; None where there is none."""
        return self._make(places)


def gradients(make: Make) -> Gradients | None:
    """Return the runner that `make` makes for no place, with its others; None where there is none."""
    runner = make(())
    return None if runner is None else Gradients(runner, make)
