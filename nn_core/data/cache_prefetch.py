"""Read the files of a cache ahead, in threads."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nn_core.data.cache_files import read_cache_file
from nn_core.errors import ArgumentError

Arrays = dict[str, np.ndarray[Any, Any]]


class CachePrefetcher:
    """Reads one file of a cache in a thread of its own.

    Args:
        cachedir: Folder of the cache.
        variables: Names of the variables.

    Example:
        prefetcher.request("cache_00000000_00000099.npy")
        ...  # meanwhile
        arrays = prefetcher.read()
    """

    def __init__(self, cachedir: str | os.PathLike[str], variables: Sequence[str]) -> None:
        self._folder = Path(cachedir)
        self._variables = list(variables)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nn_core.data.cache")
        self._requested: tuple[str, Future[Arrays]] | None = None

    def request(self, cache_file_name: str) -> None:
        """Start to read a file of the folder; an earlier request is forgotten."""
        if self._requested is not None:
            self._requested[1].cancel()
        future = self._thread.submit(self.read_cache, cache_file_name, self._variables)
        self._requested = (cache_file_name, future)

    def check_if_hit(self, fn: str) -> bool:
        """Return whether `fn` is the file that was requested."""
        return self._requested is not None and self._requested[0] == fn

    def read(self) -> Arrays:
        """Wait for the requested file, and return its arrays by variable.

        Raises:
            ArgumentError: when no file was requested.
            FileFormatError: when the file is missing or damaged.
        """
        if self._requested is None:
            raise ArgumentError("CachePrefetcher.read: a file must be requested before, got no request")
        future, self._requested = self._requested[1], None
        return future.result()

    def read_cache(self, file_name: str, variables: Sequence[str]) -> Arrays:
        """Read a file of the folder at once.

        Raises:
            FileFormatError: when the file is missing or damaged, or has other variables.
        """
        return read_cache_file(self._folder / file_name, variables)

    def close(self) -> None:
        """Wait for the file that is being read, and end the thread."""
        self._requested = None
        self._thread.shutdown(cancel_futures=True)


class CacheReaderWithPrefetch:
    """Reads the files of a cache while threads read those that are to follow.

    Args:
        cachedir: Folder of the cache.
        num_threads: Number of files that are read ahead.
        variables: Names of the variables.

    Raises:
        ArgumentError: when there is no thread.
    """

    def __init__(self, cachedir: str | os.PathLike[str], num_threads: int, variables: Sequence[str]) -> None:
        if num_threads < 1:
            raise ArgumentError(f"CacheReaderWithPrefetch: num_threads must be at least 1, got {num_threads}")
        self._variables = list(variables)
        self._prefetchers = [CachePrefetcher(cachedir, variables) for _ in range(num_threads)]

    @contextmanager
    def open_and_prefetch_cache(self, file_name: str, file_names_to_prefetch: Sequence[str]) -> Iterator[Arrays]:
        """Return the arrays of a file by variable, for a ``with`` block; meanwhile other files are read.

        Args:
            file_name: The file; if it was read ahead, nothing is read again.
            file_names_to_prefetch: Those that follow it, the next one first. As many as there are threads are read.

        Raises:
            FileFormatError: when the file is missing or damaged.
        """
        hit = next((ahead for ahead in self._prefetchers if ahead.check_if_hit(file_name)), None)
        arrays = self._prefetchers[0].read_cache(file_name, self._variables) if hit is None else hit.read()
        wanted = list(file_names_to_prefetch)[: len(self._prefetchers)]
        idle = [ahead for ahead in self._prefetchers if not any(map(ahead.check_if_hit, wanted))]
        missing = [name for name in wanted if not any(ahead.check_if_hit(name) for ahead in self._prefetchers)]
        for ahead, name in zip(idle, missing, strict=False):
            ahead.request(name)
        yield arrays

    def close(self) -> None:
        """Wait for what is being read, and end the threads."""
        for ahead in self._prefetchers:
            ahead.close()
