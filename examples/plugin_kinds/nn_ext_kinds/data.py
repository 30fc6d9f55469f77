"""A source of data, a cache, and a reader of cells of tables."""

from pathlib import Path
from typing import Any

import numpy as np

from nn_core.utils.data_source import DataSource


class CountingSource(DataSource):
    """The numbers from 0 to n - 1, one a sample."""

    def __init__(self, n: int, shuffle: bool = False) -> None:
        super().__init__(shuffle=shuffle)
        self._size, self._variables = n, ("x",)
        self.reset()

    def reset(self) -> None:
        """Start an epoch, in a new order if it is to be shuffled."""
        self._indexes = self._rng.permutation(self._size) if self._shuffle else range(self._size)
        super().reset()

    def _get_data(self, position: int) -> tuple[int]:
        return (int(self._indexes[position]),)


class FirstEpochCache(DataSource):
    """The samples of the first epoch of another source, in its order; the other source is not asked again."""

    def __init__(self, source: DataSource, shuffle: bool = False, rng: object = None) -> None:
        super().__init__()
        self._samples = [source.next() for _ in range(source.size)]
        self._size, self._variables = source.size, source.variables
        self.reset()

    def _get_data(self, position: int) -> tuple[Any, ...]:
        return self._samples[position]


def read_text(path: Path) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Return the codes of the characters of a text."""
    return np.array([ord(character) for character in path.read_text(encoding="utf-8")], np.float32)
