"""The door ``utils.data_source_implements``; see ``nn_core.data``."""

from nn_core.data.file_cache import CacheDataSource as CacheDataSource
from nn_core.data.source import ConcatDataSource as ConcatDataSource
from nn_core.data.source import SimpleDataSource as SimpleDataSource
from nn_core.data.table import CsvDataSource as CsvDataSource
