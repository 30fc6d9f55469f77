"""The door ``utils.data_source_implements``; see ``nn_core.data``."""

from nn_core.data.cache_prefetch import CachePrefetcher as CachePrefetcher
from nn_core.data.cache_prefetch import CacheReaderWithPrefetch as CacheReaderWithPrefetch
from nn_core.data.combined_sources import ConcatDataSource as ConcatDataSource
from nn_core.data.file_cache import CacheDataSource as CacheDataSource
from nn_core.data.source import SimpleDataSource as SimpleDataSource
from nn_core.data.table import CsvDataSource as CsvDataSource
