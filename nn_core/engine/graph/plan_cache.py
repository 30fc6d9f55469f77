"""The plans that a variable keeps: those for the present shapes of the leaves, and those for the last few others."""

import threading
from typing import Any, Final, TypeAlias

from nn_core.errors import GraphError
from nn_core.typing import Shape

#: For so many shapes of its leaves a graph keeps plans, and an array the memory that it had.
MAX_SHAPES: Final = 8
Shapes: TypeAlias = tuple[Shape, ...]


class Plans(dict[Any, Any]):
    """The plans of a variable for the shapes that the leaves of its graph have.

    Attributes:
        fitted: The value of `nn_core.engine.graph.node.RESHAPED` for which the shapes of the graph were looked at.
        shapes: The shapes of the leaves; None until something was compiled.
        turn: Held by the thread that runs a pass; the same for all shapes.
    """

    __slots__ = ("_others", "fitted", "shapes", "turn")

    def __init__(self, shapes: Shapes | None = None, turn: Any = None) -> None:
        super().__init__()
        self.turn = threading.RLock() if turn is None else turn
        self.fitted = 0
        self.shapes = shapes
        self._others: dict[Shapes, Plans] = {}

    def of_shapes(self, shapes: Shapes) -> "Plans":
        """Return the plans to take the place of these when the leaves have other shapes.

        They hold the plans for earlier shapes from now on, so that references do not go around in a circle.
        """
        if self.shapes == shapes:
            return self
        others, self._others = self._others, {}
        if self.shapes is not None:
            others[self.shapes] = self
        found = others.pop(shapes, None)
        if found is None:
            found = Plans(shapes, self.turn)
        # in the order of use: the first is the one that was not needed for longest
        while len(others) >= MAX_SHAPES:
            others.pop(next(iter(others)))
        found._others = others
        return found


def refuse_turn(function: str) -> GraphError:
    """Return the error of a thread that starts a pass of a variable while another thread runs one."""
    return GraphError(
        f"{function}: a graph must be computed by one thread at a time, got a call while another thread computes it\n"
        "  hint: build a graph in each thread, which may share parameters; or hold a lock from forward() to the last use of "
        "the results"
    )
