"""A source of data."""

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
