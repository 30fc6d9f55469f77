"""The door ``utils.data_iterator``; see ``nn_core.data.iterator``."""

from nn_core.data.device_prefetch import DevicePrefetcher as DevicePrefetcher
from nn_core.data.iterator import DataIterator as DataIterator
from nn_core.data.iterators import data_iterator as data_iterator
from nn_core.data.iterators import data_iterator_cache as data_iterator_cache
from nn_core.data.iterators import data_iterator_concat_datasets as data_iterator_concat_datasets
from nn_core.data.iterators import data_iterator_csv_dataset as data_iterator_csv_dataset
from nn_core.data.iterators import data_iterator_simple as data_iterator_simple
