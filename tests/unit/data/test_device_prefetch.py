"""DevicePrefetcher in a context of the host: batches are those of the iterator; errors belong to their batch."""

from typing import Any

import numpy as np
import pytest

from nn_core.errors import ArgumentError
from nn_core.utils.data_iterator import DevicePrefetcher, data_iterator_simple


def source(**options: Any) -> Any:
    return data_iterator_simple(lambda i: (np.array([i]),), 6, 2, shuffle=False, with_memory_cache=False, **options)


def test_batches_of_the_host_are_given_as_they_are() -> None:
    given = [batch[0].ravel().tolist() for batch, _ in zip(DevicePrefetcher(source()), range(4), strict=False)]
    assert given == [[0, 1], [2, 3], [4, 5], [0, 1]]


def test_an_end_comes_after_the_last_batch() -> None:
    assert [batch[0].sum() for batch in DevicePrefetcher(source(stop_exhausted=True))] == [1, 5, 9]


def test_an_error_is_raised_for_its_batch() -> None:
    def load(number: int) -> Any:
        if number == 3:
            raise ValueError("no such picture")
        return (np.array([number]),)

    ahead = DevicePrefetcher(data_iterator_simple(load, 6, 2, shuffle=False, with_memory_cache=False))
    assert ahead.next()[0].ravel().tolist() == [0, 1]
    with pytest.raises(ValueError, match="no such picture"):
        ahead.next()
    assert ahead.next()[0].size == 2


def test_what_is_no_iterator_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"DevicePrefetcher: data must have a method next, as DataIterator has, got \[1\]"):
        DevicePrefetcher([1])  # type: ignore[arg-type]
