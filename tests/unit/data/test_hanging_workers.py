"""Samples that hang or kill a worker are named, given up, and passed over like others that cannot be read."""

import os
import threading
import time

import numpy as np
import pytest

from nn_core.data.iterator import DataIterator
from nn_core.data.loader.sample_watch import SampleWatch
from nn_core.data.source import SimpleDataSource, TransformedDataSource
from nn_core.errors import ArgumentError
from tests.unit.data import worker_sources as functions

PROCESSES = pytest.mark.skipif(not hasattr(os, "fork"), reason="starts many processes, which is slow without a fork server")
KINDS = pytest.mark.parametrize("kind", ["thread", pytest.param("process", marks=PROCESSES)])


def source(function):
    return SimpleDataSource(function, 12, True, np.random.RandomState(5))


def place_of(sample):
    drawn = source(functions.hanging)
    drawn.reset()
    return list(drawn.order).index(sample)


@KINDS
def test_a_sample_that_hangs_is_named_and_passed_over(kind):
    release = functions.release = threading.Event()
    with DataIterator(source(functions.hanging), 2, workers=2, worker_type=kind, timeout=0.3) as data:
        seen, errors = [], []
        for _ in range(7):
            try:
                seen += data.next()[0].ravel().tolist()
            except TimeoutError as error:
                errors.append(str(error))
        state = data.get_state()
        release.set()
    place = place_of(7)
    assert errors[0] == f"DataIterator: a sample must be read within 0.3 s, got sample 7 at position {place} of epoch 0"
    assert len(errors) == 1 or (len(errors) == 2 and "of epoch 1" in errors[1])
    assert sorted(seen[:11]) == [index for index in range(12) if index != 7]
    assert [0, place] in state["skipped"] or state["epoch"] == 1


@KINDS
def test_samples_that_hang_are_counted_where_errors_are_skipped(kind):
    functions.release = threading.Event()
    options = {"workers": 1, "worker_type": kind, "timeout": 0.3, "skip_errors": True}
    with DataIterator(source(functions.hanging), 4, **options) as data:
        assert (
            7
            not in [value for _ in range(2) for value in data.next()[0].ravel().tolist()] + data.next()[0][:3].ravel().tolist()
        )
        assert data.skipped in (1, 2)
        functions.release.set()


@KINDS
def test_a_transformation_that_hangs_is_told_by_its_batch(kind):
    functions.release = threading.Event()
    options = {"workers": 1, "worker_type": kind, "timeout": 0.3, "transform": functions.hanging_batch}
    with DataIterator(SimpleDataSource(functions.numbers, 6), 2, **options) as data:
        data.next()
        with pytest.raises(TimeoutError, match=r"within 0.3 s, got the batch at position 2 of epoch 0"):
            data.next()
        functions.release.set()


@KINDS
def test_a_batch_may_take_longer_than_each_of_its_samples(kind):
    options = {"workers": 1, "worker_type": kind, "timeout": 0.4}
    with DataIterator(SimpleDataSource(functions.slow, 6), 6, **options) as data:
        begin = time.monotonic()
        assert data.next()[0].ravel().tolist() == list(range(6))
        assert time.monotonic() - begin > 0.4


@PROCESSES
def test_a_sample_that_kills_its_workers_is_named_and_passed_over():
    with DataIterator(SimpleDataSource(functions.deadly, 4), 2, workers=1, worker_type="process") as data:
        assert data.next()[0].tolist() == [0, 1]
        message = r"got 3 that died \(exit code -9\), the last while it read sample 2 at position 2 of epoch 0"
        with pytest.raises(RuntimeError, match=message):
            data.next()
        assert data.next()[0].tolist() == [3, 0]
    with DataIterator(SimpleDataSource(functions.deadly, 4), 3, workers=2, worker_type="process", skip_errors=True) as data:
        assert data.next()[0].tolist() == [0, 1, 3] and data.skipped == 1


def test_timeouts_need_workers():
    for options in ({"timeout": 1.0}, {"timeout": 0, "workers": 1}):
        with pytest.raises(ArgumentError, match="DataIterator: timeout must be positive, together with workers, got "):
            DataIterator(SimpleDataSource(functions.numbers, 4), 2, **options)


def test_a_watch_shows_whole_moments_alone():
    cells = [0.0] * 4
    watch = SampleWatch(cells)
    assert watch.moment() is None
    watch.begin(1, 2, 3)
    assert watch.moment()[:3] == (1, 2, 3) and watch.overdue(0.0) and watch.overdue(60.0) is None
    watch.end()
    assert watch.moment() is None and watch.overdue(0.0) is None


def test_generators_of_samples_depend_on_epoch_and_sample_alone():
    """The same numbers as from a new generator for each sample, whatever the transformation has drawn before."""
    drawn = []

    def transform(rng, x, y):
        drawn.append((rng.random(3).tolist(), rng.integers(0, 9, dtype=np.int32), rng.standard_normal()))
        return x, y

    changed = TransformedDataSource(SimpleDataSource(functions.numbers, 5), transform, rng=np.random.RandomState(2))
    changed.reset()
    for index in (4, 0, 4):
        changed._sample(index)
    fresh = np.random.Generator(np.random.Philox(key=np.array([changed._key, 4], np.uint64)))
    expected = (fresh.random(3).tolist(), fresh.integers(0, 9, dtype=np.int32), fresh.standard_normal())
    assert drawn[0] == drawn[2] == expected != drawn[1]
