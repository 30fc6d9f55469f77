"""The door ``utils.data_source``; see ``nn_core.data``. Sources and caches of plugins are found here by name."""

from typing import TYPE_CHECKING

from nn_core.data.combined_sources import ZippedDataSource as ZippedDataSource
from nn_core.data.file_cache import DataSourceWithFileCache as DataSourceWithFileCache
from nn_core.data.file_cache import DataSourceWithFileCacheError as DataSourceWithFileCacheError
from nn_core.data.source import DataSource as DataSource
from nn_core.data.source import DataSourceWithMemoryCache as DataSourceWithMemoryCache
from nn_core.data.source import SlicedDataSource as SlicedDataSource
from nn_core.data.source import TransformedDataSource as TransformedDataSource
from nn_core.data.splitting import ChosenDataSource as ChosenDataSource
from nn_core.data.splitting import folds as folds
from nn_core.data.splitting import split as split
from nn_core.engine.dispatch.attributes import module_attributes

if not TYPE_CHECKING:  # so that checkers report names that do not exist
    __getattr__, __dir__ = module_attributes(__name__, "data", ("source", "cache"))
