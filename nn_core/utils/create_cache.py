"""Make caches from tables."""

import os
from pathlib import Path

from nn_core.data.file_cache import write_cache
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
        self, output_cache_dirname: str | os.PathLike[str], normalize: bool = True, cache_file_name_prefix: str = "cache"
    ) -> None:
        """Write the cache.

        Args:
            output_cache_dirname: Its folder.
            normalize: Divide arrays of integers by the largest one of their dtype.
            cache_file_name_prefix: How the names of the files start.
        """
        self._normalize = normalize
        write_cache(self, Path(output_cache_dirname), cache_file_name_prefix)
