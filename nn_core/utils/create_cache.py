"""Make caches from tables."""

import os
from pathlib import Path

from nn_core.data.file_cache import ORDER, ORIGINAL, as_csv, write_cache
from nn_core.data.table import CsvDataSource
from nn_core.random import Rng


class CreateCache(CsvDataSource):
    """A table whose samples are copied to a cache, which `data_iterator_cache` and NNabla read.

    Args:
        input_csv_filename: The table.
        rng: Generator of the order; None: one with a fixed seed.
        shuffle: Save the samples in an order that is drawn.
        num_of_threads: Without effect; kept for programs that give it.
    """

    def __init__(
        self,
        input_csv_filename: str | os.PathLike[str],
        rng: Rng | None = None,
        shuffle: bool = False,
        num_of_threads: int | None = None,
    ) -> None:
        super().__init__(input_csv_filename, shuffle, rng)

    def create(
        self,
        output_cache_dirname: str | os.PathLike[str],
        normalize: bool = True,
        cache_file_name_prefix: str = "cache",
        cache_file_format: str = ".npy",
    ) -> None:
        """Write the cache, with a copy of the table, original.csv, and the row of each sample, order.csv.

        Args:
            output_cache_dirname: Its folder.
            normalize: Divide arrays of integers by the largest one of their dtype.
            cache_file_name_prefix: How the names of the files start.
            cache_file_format: ".npy" for files of NumPy, ".h5" for HDF5.

        Raises:
            ArgumentError: when the format is another one.
        """
        self._normalize = normalize
        if self.order is None:
            self.reset()
        extras = {ORIGINAL: self._path.read_bytes(), ORDER: as_csv(list(enumerate(self.order or ())))}
        folder = Path(output_cache_dirname)
        write_cache(self, folder, cache_file_name_prefix, extension=cache_file_format, extras=extras)
