"""The data of a worker."""

from typing import Any

from nn_core.data.source import DataSource


class Data:
    """Batches for a `Worker`: a subclass defines ``next``, ``reset`` and ``size``."""

    #: Base class of sources of a program.
    CustomDataSource = DataSource

    def next(self) -> Any:
        """Return the next batch."""

    def reset(self) -> None:
        """Start from the beginning."""

    def size(self) -> int | None:
        """Return number of samples."""
