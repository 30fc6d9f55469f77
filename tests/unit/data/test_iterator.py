"""Iterators: batches, epochs, callbacks, slices, threads."""

import threading

import numpy as np
import pytest

from nn_core.errors import ArgumentError, ShapeError
from nn_core.utils.data_iterator import (
    DataIterator,
    data_iterator,
    data_iterator_cache,
    data_iterator_concat_datasets,
    data_iterator_csv_dataset,
    data_iterator_simple,
)
from nn_core.utils.data_source_implements import SimpleDataSource


def load(index):
    return np.array([index, index + 0.5]), index * 10


@pytest.fixture(params=[False, True], ids=["direct", "thread"])
def use_thread(request):
    return request.param


def second(batch):
    return batch[1].ravel().tolist()


def test_batches_go_on_over_epochs(use_thread):
    with data_iterator_simple(load, 10, 4, use_thread=use_thread) as iterator:
        assert (iterator.size, iterator.batch_size, iterator.epoch, iterator.position) == (10, 4, 0, 0)
        assert list(iterator.variables) == ["x0", "x1"]
        seen = []
        for _ in range(6):
            batch = iterator.next()
            seen.append((second(batch), iterator.epoch, iterator.position))
        assert isinstance(batch, tuple)
        assert batch[0].shape == (4, 2)
        assert seen == [
            ([0, 10, 20, 30], 0, 4),
            ([40, 50, 60, 70], 0, 8),
            ([80, 90, 0, 10], 1, 2),
            ([20, 30, 40, 50], 1, 6),
            ([60, 70, 80, 90], 2, 0),
            ([0, 10, 20, 30], 2, 4),
        ]


def test_batches_larger_than_the_data(use_thread):
    with data_iterator_simple(load, 2, 5, use_thread=use_thread) as iterator:
        assert second(iterator.next()) == [0, 10, 0, 10, 0]
        assert iterator.epoch == 2


def test_callbacks(use_thread):
    calls = []
    iterator = data_iterator_simple(
        load,
        5,
        4,
        use_thread=use_thread,
        epoch_begin_callbacks=[lambda epoch: calls.append(f"begin {epoch}")],
        epoch_end_callbacks=[lambda epoch: calls.append(f"end {epoch}")],
    )
    iterator.register_epoch_begin_callback(lambda epoch: calls.append(f"also begin {epoch}"))
    iterator.register_epoch_end_callback(lambda epoch: calls.append(f"also end {epoch}"))
    with iterator:
        iterator.next()
        assert calls == []
        iterator.next()
    assert calls == ["end 0", "also end 0", "begin 1", "also begin 1"]


@pytest.mark.parametrize(("size", "batches"), [(10, 2), (8, 2), (3, 0)])
def test_stop_at_the_end_of_an_epoch(use_thread, size, batches):
    ended = []
    iterator = data_iterator_simple(
        load, size, 4, use_thread=use_thread, stop_exhausted=True, epoch_end_callbacks=[ended.append]
    )
    with iterator:
        for number in range(3):
            assert len(list(iterator)) == batches
            assert ended == list(range(number + 1))
            assert iterator.epoch == number + 1


def test_shuffled_epochs_are_permutations(use_thread):
    random = np.random.RandomState(0)
    expected = [*random.permutation(6), *random.permutation(6)]
    with data_iterator_simple(load, 6, 4, True, np.random.RandomState(0), use_thread) as iterator:
        seen = [value for _ in range(3) for value in second(iterator.next())]
    assert seen == [10 * index for index in expected]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"num_of_slices": 3, "slice_pos": 0}, [0, 10, 20, 30]),
        ({"num_of_slices": 3, "slice_pos": 1}, [40, 50, 60, 70]),
        ({"num_of_slices": 3, "slice_pos": 2}, [60, 70, 80, 90]),
        ({"num_of_slices": 3, "slice_pos": 2, "drop_last": True}, [60, 70, 80]),
        ({"slice_start": 2, "slice_end": 5}, [20, 30, 40]),
    ],
)
def test_slices(use_thread, settings, expected):
    with data_iterator_simple(load, 10, 1, use_thread=use_thread) as whole, whole.slice(None, **settings) as part:
        assert part.size == len(expected)
        assert [second(part.next())[0] for _ in expected] == expected


def test_slices_in_files(tmp_path):
    with data_iterator_simple(load, 10, 2, use_thread=False) as whole:
        part = whole.slice(None, 2, 1, cache_dir=tmp_path, use_cache=True)
        assert second(part.next()) == [50, 60]
        assert (tmp_path / "cache_index.csv").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "num_of_slices and slice_pos, or slice_start and slice_end must be given, got None, None, None, None"),
        (
            {"num_of_slices": 3, "slice_pos": 3},
            "slice_pos must be one of num_of_slices parts of 10 samples, got 3 of 3",
        ),
        (
            {"num_of_slices": 11, "slice_pos": 0},
            "slice_pos must be one of num_of_slices parts of 10 samples, got 0 of 11",
        ),
    ],
)
def test_slices_fit(settings, message):
    with data_iterator_simple(load, 10, 1) as whole, pytest.raises(ArgumentError, match=message):
        whole.slice(None, **settings)


def test_errors_of_the_source_reach_the_caller(use_thread):
    def fail(index):
        if index == 2:
            raise ValueError("no such sample")
        return (index,)

    with data_iterator_simple(fail, 4, 2, use_thread=use_thread) as iterator:
        iterator.next()
        with pytest.raises(ValueError, match="no such sample"):
            iterator.next()


def test_samples_of_a_batch_have_one_shape(use_thread):
    with data_iterator_simple(lambda i: (np.ones(i + 1),), 4, 2, use_thread=use_thread) as iterator:
        message = r"DataIterator: the values of x0 must have one shape in a batch, got \(1,\), \(2,\)"
        with pytest.raises(ShapeError, match=message):
            iterator.next()


def test_the_next_batch_is_made_in_the_background():
    asked = threading.Event()

    def watch(index):
        if index == 2:
            asked.set()
        return (index,)

    with data_iterator_simple(watch, 4, 2) as iterator:
        iterator.next()
        assert asked.wait(60)


def test_close(use_thread):
    iterator = data_iterator_simple(load, 4, 2, use_thread=use_thread)
    iterator.next()
    iterator.close()
    iterator.close()
    with pytest.raises(ArgumentError, match=r"a batch must be taken before close\(\), got one after it"):
        iterator.next()


def test_batches_are_positive():
    with pytest.raises(ArgumentError, match="DataIterator: batch_size must be a whole number of at least 1, got 0"):
        DataIterator(SimpleDataSource(load, 3), 0)


def test_caches(tmp_path):
    reads = []

    def watch(index):
        reads.append(index)
        return load(index)

    with data_iterator_simple(watch, 3, 3, use_thread=False, with_file_cache=True, cache_dir=tmp_path) as iterator:
        for _ in range(3):
            assert second(iterator.next()) == [0, 10, 20]
    assert [index for index in reads if reads.count(index) > 2] == []
    with data_iterator_cache(tmp_path, 3, use_thread=False) as iterator:
        assert second(iterator.next()) == [0, 10, 20]


def test_memory_cache_is_the_default_for_sources(use_thread):
    reads = []
    source = SimpleDataSource(lambda i: (reads.append(i) or i,), 3)
    with data_iterator(source, 3, use_thread=use_thread) as iterator:
        for _ in range(3):
            iterator.next()
    assert sorted(reads[-3:]) == [0, 1, 2]
    assert len(reads) <= 4  # one more to learn the variables


def test_concatenated_and_tables(tmp_path):
    sources = [SimpleDataSource(load, 2), SimpleDataSource(load, 3)]
    with data_iterator_concat_datasets(sources, 5, use_thread=False) as iterator:
        assert second(iterator.next()) == [0, 10, 0, 10, 20]
    (tmp_path / "t.csv").write_text("x,y\n1,2\n3,4\n")
    with data_iterator_csv_dataset(tmp_path / "t.csv", 2, use_thread=False) as iterator:
        assert second(iterator.next()) == [2.0, 4.0]
        assert list(iterator.variables) == ["x", "y"]
