"""Data for training: sources that give one sample at a time, and iterators that make batches of them.

Example:
    >>> from nn_core.data import ArrayDataSource, data_iterator
    >>> source = ArrayDataSource({"x": np.zeros((10, 3)), "t": np.arange(10)}, shuffle=True)
    >>> with data_iterator(source, 4) as batches:
    ...     [values.shape for values in batches.next()]
    [(4, 3), (4,)]
"""

from typing import TYPE_CHECKING, Final

from nn_core.engine.dispatch.attributes import lazy_attributes

#: The public names, by module.
_MODULES: Final = {
    "array_sources": ("ArrayDataSource", "Hdf5DataSource", "ImageDataSource", "ImageFolderDataSource", "NumpyDataSource"),
    "combined_sources": ("ConcatDataSource", "ZippedDataSource"),
    "device_prefetch": ("DevicePrefetcher",),
    "file_cache": ("CacheDataSource", "DataSourceWithFileCache"),
    "iterable": ("IterableDataSource",),
    "iterator": ("DataIterator",),
    "iterators": (
        "data_iterator",
        "data_iterator_cache",
        "data_iterator_concat_datasets",
        "data_iterator_csv_dataset",
        "data_iterator_simple",
    ),
    "parquet": ("ParquetDataSource",),
    "source": (
        "DataSource",
        "DataSourceWithMemoryCache",
        "SimpleDataSource",
        "SlicedDataSource",
        "TransformedDataSource",
    ),
    "splitting": ("ChosenDataSource", "folds", "split"),
    "table": ("CsvDataSource",),
    "tar": ("TarDataSource",),
    "weighted": ("WeightedDataSource",),
}

__all__ = [  # noqa: PLE0604  # the names are strings of the table
    *(name for names in _MODULES.values() for name in names),
]

__getattr__, __dir__ = lazy_attributes(__name__, _MODULES)

if TYPE_CHECKING:
    from nn_core.data.array_sources import ArrayDataSource as ArrayDataSource
    from nn_core.data.array_sources import Hdf5DataSource as Hdf5DataSource
    from nn_core.data.array_sources import ImageDataSource as ImageDataSource
    from nn_core.data.array_sources import ImageFolderDataSource as ImageFolderDataSource
    from nn_core.data.array_sources import NumpyDataSource as NumpyDataSource
    from nn_core.data.combined_sources import ConcatDataSource as ConcatDataSource
    from nn_core.data.combined_sources import ZippedDataSource as ZippedDataSource
    from nn_core.data.device_prefetch import DevicePrefetcher as DevicePrefetcher
    from nn_core.data.file_cache import CacheDataSource as CacheDataSource
    from nn_core.data.file_cache import DataSourceWithFileCache as DataSourceWithFileCache
    from nn_core.data.iterable import IterableDataSource as IterableDataSource
    from nn_core.data.iterator import DataIterator as DataIterator
    from nn_core.data.iterators import data_iterator as data_iterator
    from nn_core.data.iterators import data_iterator_cache as data_iterator_cache
    from nn_core.data.iterators import data_iterator_concat_datasets as data_iterator_concat_datasets
    from nn_core.data.iterators import data_iterator_csv_dataset as data_iterator_csv_dataset
    from nn_core.data.iterators import data_iterator_simple as data_iterator_simple
    from nn_core.data.parquet import ParquetDataSource as ParquetDataSource
    from nn_core.data.source import DataSource as DataSource
    from nn_core.data.source import DataSourceWithMemoryCache as DataSourceWithMemoryCache
    from nn_core.data.source import SimpleDataSource as SimpleDataSource
    from nn_core.data.source import SlicedDataSource as SlicedDataSource
    from nn_core.data.source import TransformedDataSource as TransformedDataSource
    from nn_core.data.splitting import ChosenDataSource as ChosenDataSource
    from nn_core.data.splitting import folds as folds
    from nn_core.data.splitting import split as split
    from nn_core.data.table import CsvDataSource as CsvDataSource
    from nn_core.data.tar import TarDataSource as TarDataSource
    from nn_core.data.weighted import WeightedDataSource as WeightedDataSource
