"""Samples that a source gives several at a time are those that it gives one by one, and so are batches, orders and states."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nn_core.data.array_sources import ArrayDataSource
from nn_core.data.iterator import DataIterator
from nn_core.data.source import DataSource, DataSourceWithMemoryCache, SimpleDataSource, SlicedDataSource
from nn_core.data.splitting import ChosenDataSource

RANDOM = np.random.RandomState(0)
ARRAYS = {
    "x": RANDOM.randn(23, 2, 3).astype(np.float32),
    "t": np.arange(23),
    "columns": np.asfortranarray(RANDOM.randn(23, 4)),
    "flags": RANDOM.rand(23) > 0.5,
}


def rng() -> np.random.RandomState:
    return np.random.RandomState(7)


class OneByOne(ArrayDataSource):
    """A subclass that reads samples in a way of its own, which is that of its base class."""

    def _sample(self, index: int) -> Any:
        return super()._sample(index)


#: Sources over an array source of either class.
SOURCES: dict[str, Callable[[type[ArrayDataSource]], DataSource]] = {
    "in order": lambda base: base(ARRAYS),
    "shuffled": lambda base: base(ARRAYS, True, rng()),
    "a part": lambda base: SlicedDataSource(base(ARRAYS, True, rng()), True, rng(), 3, 20),
    "chosen": lambda base: ChosenDataSource(base(ARRAYS), [5, 4, 9, 0, 22], True, rng()),
    "kept": lambda base: DataSourceWithMemoryCache(base(ARRAYS), True, rng()),
}


def batches(source: DataSource, n: int = 9, size: int = 4, **settings: Any) -> list[list[np.ndarray[Any, Any]]]:
    found = []
    with DataIterator(source, size, **settings) as data:
        for _ in range(n):
            try:
                found.append([np.array(values) for values in data.next()])
            except StopIteration:
                found.append([])
    return found


def require_same(found: Any, expected: Any) -> None:
    assert len(found) == len(expected) > 0
    for some, others in zip(found, expected, strict=True):
        for one, other in zip(some, others, strict=True):
            assert one.dtype == other.dtype and one.flags.c_contiguous == other.flags.c_contiguous
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [1, 4, 23, 50])
@pytest.mark.parametrize("settings", [{}, {"use_thread": False}, {"stop_exhausted": True}], ids=str)
@pytest.mark.parametrize("kind", SOURCES)
def test_batches_are_those_of_single_samples(kind: str, settings: dict[str, Any], size: int) -> None:
    make = SOURCES[kind]
    require_same(batches(make(ArrayDataSource), size=size, **settings), batches(make(OneByOne), size=size, **settings))


@pytest.mark.parametrize("kind", SOURCES)
def test_no_sample_is_read_by_itself(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SOURCES[kind](ArrayDataSource)

    def refuse(*_: object) -> None:
        raise AssertionError("a sample was read by itself")

    monkeypatch.setattr("nn_core.data.loader.reading.read_sample", refuse)
    assert len(batches(source)) == 9


def test_transformations_and_states_are_the_same() -> None:
    def transform(generator: Any, *values: Any) -> Any:
        return [value + generator.integers(5) if value.dtype.kind != "b" else value for value in values]

    found = []
    for base in (ArrayDataSource, OneByOne):
        with DataIterator(base(ARRAYS, True, rng()), 5, transform=transform) as data:
            for _ in range(7):
                data.next()
            state = data.get_state()
            following = [[np.array(values) for values in data.next()] for _ in range(4)]
        with DataIterator(base(ARRAYS, True, rng()), 5, transform=transform) as data:
            data.set_state(state)
            require_same([[np.array(values) for values in data.next()] for _ in range(4)], following)
        found.append((state, following))
    require_same(found[0][1], found[1][1])
    assert str(found[0][0]) == str(found[1][0])


@pytest.mark.parametrize(
    "array",
    [np.arange(6, dtype=">i4"), np.array(["a", None] * 3, object), np.zeros(6, [("a", "f4")]), list(range(6))],
    ids=["bytes swapped", "objects", "records", "a list"],
)
def test_arrays_of_other_kinds_are_read_one_by_one(array: Any) -> None:
    source = ArrayDataSource({"x": array})
    assert source.rows_at(np.arange(2)) is None
    ((values,),) = batches(source, 1)
    assert len(values) == 4


def test_what_reads_samples_in_another_way_is_asked_for_each() -> None:
    source = ArrayDataSource({"x": np.arange(6)})
    assert source.rows_at(np.arange(2)) is not None
    assert OneByOne({"x": np.arange(6)}).rows_at(np.arange(2)) is None
    assert SimpleDataSource(lambda i: i, 6).rows_at(np.arange(2)) is None
    assert SlicedDataSource(SimpleDataSource(lambda i: i, 6)).rows_at(np.arange(2)) is None
    source._get_data = lambda position: (position * 10,)  # type: ignore[method-assign]  # as programs do
    assert source.rows_at(np.arange(2)) is None
    ((values,),) = batches(source, 1)
    assert values.tolist() == [0, 10, 20, 30]


def test_batches_are_copies() -> None:
    array = np.arange(6)
    with DataIterator(ArrayDataSource({"x": array}), 3, use_thread=False) as data:
        (values,) = data.next()
    values[:] = -1
    assert array.tolist() == list(range(6))
