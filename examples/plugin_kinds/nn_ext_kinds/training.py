"""A logger that keeps what it is told, and an engine of communicators for one process."""

from nn_core.communicators import AloneEngine
from nn_core.ext import Array


class LossLogger:
    """Keeps (iteration, name, value)."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, float]] = []

    def log(self, iteration: int, name: str, value: float) -> None:
        """Keep one value."""
        self.rows.append((iteration, name, value))


class Counted(AloneEngine):
    """An engine of one process that counts its sums; one of several processes has the eight calls of `Engine`."""

    def __init__(self, context: object = None) -> None:
        super().__init__()
        self.context = context
        self.sums = 0

    def all_reduce(self, array: Array, op: str = "sum") -> None:
        """Count; the sum over one process is what it has."""
        self.sums += 1
