"""The door ``utils.data_source``; see ``nn_core.data``."""

from nn_core.data.file_cache import DataSourceWithFileCache as DataSourceWithFileCache
from nn_core.data.file_cache import DataSourceWithFileCacheError as DataSourceWithFileCacheError
from nn_core.data.source import DataSource as DataSource
from nn_core.data.source import DataSourceWithMemoryCache as DataSourceWithMemoryCache
from nn_core.data.source import SlicedDataSource as SlicedDataSource
from nn_core.data.source import TransformedDataSource as TransformedDataSource
