"""The views of arrays that programs hold: their link to the memory, and when that must not move."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

from nn_core.typing import Array


class ExportedView:
    """A link between an array and the user's views of it, which keep it alive as long as they live.

    NumPy lets a view of a view refer to the memory itself, but not past an object that is no array.
    """

    __slots__ = ("__weakref__", "array")

    def __init__(self, array: Array) -> None:
        self.array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        interface: dict[str, Any] = self.array.__array_interface__
        return interface


class Observed(threading.local):
    """Whether a pass of this thread calls hooks, under which the memory that it has bound must not move."""

    now = False

    @contextlib.contextmanager
    def during(self) -> Iterator[None]:
        """Let memory stay where it is in a ``with`` block."""
        outer, self.now = self.now, True
        try:
            yield
        finally:
            self.now = outer


OBSERVED: Final = Observed()
