"""Functions that make iterators over the batches of a source, of files, or of what a function gives."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from nn_core.data.combined_sources import ConcatDataSource
from nn_core.data.file_cache import CacheDataSource, DataSourceWithFileCache
from nn_core.data.iterator import Callback, DataIterator
from nn_core.data.plugin_sources import with_offered_cache
from nn_core.data.source import DataSource, DataSourceWithMemoryCache, SimpleDataSource
from nn_core.data.table import CsvDataSource
from nn_core.engine.error_messages.refusal import door, fitted
from nn_core.random import Rng


@door
def data_iterator(
    data_source: DataSource,
    batch_size: int,
    rng: Rng | None = None,
    use_thread: bool = True,
    with_memory_cache: bool = True,
    with_file_cache: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    epoch_begin_callbacks: Sequence[Callback] = (),
    epoch_end_callbacks: Sequence[Callback] = (),
    stop_exhausted: bool = False,
    cache: str | None = None,
) -> DataIterator:
    """Return an iterator over the batches of a source.

    Args:
        data_source: The source.
        batch_size: Number of samples in a batch.
        rng: Generator of the orders of caches; None: one with a fixed seed.
        use_thread: Make the next batch in the background.
        with_memory_cache: Keep samples in memory once they were read.
        with_file_cache: Copy the samples to files at first.
        cache_dir: Folder of these files; None: a new one, removed by `close()`.
        epoch_begin_callbacks: Called with the number of an epoch when it begins, except for the first.
        epoch_end_callbacks: Called with the number of an epoch when it ends.
        stop_exhausted: Raise StopIteration at the end of an epoch.
        cache: Name of a cache that a plugin offers, which reads the source in the place of the other caches.

    Raises:
        ArgumentError: when no plugin offers a cache of that name.

    Example:
        >>> from nn_core.data import SimpleDataSource
        >>> source = SimpleDataSource(lambda i: (np.full(3, i), i), 10, shuffle=True)
        >>> with data_iterator(source, 4) as data:
        ...     x, y = data.next()
        >>> x.shape, y.shape
        ((4, 3), (4,))
    """
    shuffle = data_source.shuffle
    if cache is not None:
        data_source, with_file_cache, with_memory_cache = with_offered_cache(data_source, cache, rng), False, False
    if with_file_cache:
        data_source = DataSourceWithFileCache(data_source, cache_dir, shuffle=shuffle, rng=rng)
    if with_memory_cache:
        data_source = DataSourceWithMemoryCache(data_source, shuffle, rng)
    return DataIterator(data_source, batch_size, rng, use_thread, epoch_begin_callbacks, epoch_end_callbacks, stop_exhausted)


@door
def data_iterator_simple(
    load_func: Callable[[int], Any],
    num_examples: int,
    batch_size: int,
    shuffle: bool = False,
    rng: Rng | None = None,
    use_thread: bool = True,
    with_memory_cache: bool = False,
    with_file_cache: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    epoch_begin_callbacks: Sequence[Callback] = (),
    epoch_end_callbacks: Sequence[Callback] = (),
    stop_exhausted: bool = False,
) -> DataIterator:
    """Return an iterator over samples from a function: ``load_func(index)`` gives a tuple of values.

    The other arguments are those of `data_iterator`.

    Args:
        load_func: Gives the sample at an index: a tuple of arrays or numbers, of the same shapes for every index.
        num_examples: Number of samples.
        shuffle: Reshuffle for each epoch.

    Raises:
        ArgumentError: when there is no sample, or `batch_size` is less than 1.

    Example:
        >>> images, labels = np.zeros((10, 1, 28, 28)), np.arange(10).reshape(10, 1)
        >>> with data_iterator_simple(lambda i: (images[i], labels[i]), 10, batch_size=5) as data:
        ...     x, y = data.next()
        >>> x.shape, y.shape
        ((5, 1, 28, 28), (5, 1))
    """
    return data_iterator(
        SimpleDataSource(load_func, num_examples, shuffle, rng),
        batch_size,
        rng,
        use_thread,
        with_memory_cache,
        with_file_cache,
        cache_dir,
        epoch_begin_callbacks,
        epoch_end_callbacks,
        stop_exhausted,
    )


@door
def data_iterator_csv_dataset(
    uri: str | os.PathLike[str],
    batch_size: int,
    shuffle: bool = False,
    rng: Rng | None = None,
    use_thread: bool = True,
    normalize: bool = True,
    with_memory_cache: bool = True,
    with_file_cache: bool = True,
    cache_dir: str | os.PathLike[str] | None = None,
    epoch_begin_callbacks: Sequence[Callback] = (),
    epoch_end_callbacks: Sequence[Callback] = (),
    stop_exhausted: bool = False,
) -> DataIterator:
    """Return an iterator over the samples of a CSV file; see `CsvDataSource` for its format.

    The other arguments are those of `data_iterator`.

    Raises:
        MissingFileError: when there is no such file.
        FileFormatError: when the file is not such a table.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("points.csv").write_text("x__0,x__1,y\\n1,2,0\\n3,4,1\\n")
        >>> with data_iterator_csv_dataset("points.csv", batch_size=2) as data:
        ...     x, y = data.next()
        >>> x.tolist(), y.tolist()
        ([[1.0, 2.0], [3.0, 4.0]], [[0.0], [1.0]])
    """
    return data_iterator(
        CsvDataSource(uri, shuffle, rng, normalize),
        batch_size,
        rng,
        use_thread,
        with_memory_cache,
        with_file_cache,
        cache_dir,
        epoch_begin_callbacks,
        epoch_end_callbacks,
        stop_exhausted,
    )


@fitted
def data_iterator_cache(
    uri: str | os.PathLike[str],
    batch_size: int,
    shuffle: bool = False,
    rng: Rng | None = None,
    use_thread: bool = True,
    normalize: bool = True,
    with_memory_cache: bool = True,
    epoch_begin_callbacks: Sequence[Callback] = (),
    epoch_end_callbacks: Sequence[Callback] = (),
    stop_exhausted: bool = False,
) -> DataIterator:
    """Return an iterator over the samples of a cache, a folder that a file cache left.

    The other arguments are those of `data_iterator`.

    Raises:
        FileFormatError: when the folder is not a cache, or a file of it is damaged.

    Example:
        >>> from nn_core.data import DataSourceWithFileCache
        >>> from nn_core.data import SimpleDataSource
        >>> DataSourceWithFileCache(SimpleDataSource(lambda i: (np.full(3, i),), 10), cache_dir="squares").close()
        >>> with data_iterator_cache("squares", batch_size=5) as data:
        ...     (x,) = data.next()
        >>> x.shape
        (5, 3)
    """
    return data_iterator(
        CacheDataSource(uri, shuffle, rng, normalize),
        batch_size,
        rng,
        use_thread,
        with_memory_cache,
        epoch_begin_callbacks=epoch_begin_callbacks,
        epoch_end_callbacks=epoch_end_callbacks,
        stop_exhausted=stop_exhausted,
    )


@door
def data_iterator_concat_datasets(
    data_source_list: Sequence[DataSource],
    batch_size: int,
    shuffle: bool = False,
    rng: Rng | None = None,
    use_thread: bool = True,
    with_memory_cache: bool = True,
    with_file_cache: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    epoch_begin_callbacks: Sequence[Callback] = (),
    epoch_end_callbacks: Sequence[Callback] = (),
    stop_exhausted: bool = False,
) -> DataIterator:
    """Return an iterator over the samples of several sources, one after another.

    The other arguments are those of `data_iterator`.

    Raises:
        ArgumentError: when there is no source, or their variables differ.

    Example:
        >>> from nn_core.data import SimpleDataSource
        >>> first, second = (SimpleDataSource(lambda i, start=start: (start + i,), 2) for start in (0, 100))
        >>> with data_iterator_concat_datasets([first, second], batch_size=4) as data:
        ...     (x,) = data.next()
        >>> x.tolist()
        [0, 1, 100, 101]
    """
    return data_iterator(
        ConcatDataSource(data_source_list, shuffle, rng),
        batch_size,
        rng,
        use_thread,
        with_memory_cache,
        with_file_cache,
        cache_dir,
        epoch_begin_callbacks,
        epoch_end_callbacks,
        stop_exhausted,
    )
