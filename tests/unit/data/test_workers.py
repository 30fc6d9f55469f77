"""Workers give the batches that one thread gives, in the same order, and survive everything."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nn_core.data.combined_sources import ConcatDataSource
from nn_core.data.file_cache import DataSourceWithFileCache
from nn_core.data.iterator import DataIterator
from nn_core.data.loader import workers as pools
from nn_core.data.source import (
    DataSourceWithMemoryCache,
    SimpleDataSource,
    SlicedDataSource,
    TransformedDataSource,
)
from nn_core.errors import ArgumentError, ShapeError
from tests.unit.data import worker_sources as functions

PROCESSES = pytest.mark.skipif(not hasattr(os, "fork"), reason="starts many processes, which is slow without a fork server")


def shuffled(function=functions.numbers, size=23):
    return SimpleDataSource(function, size, True, np.random.RandomState(5))


def shared_generator():
    rng = np.random.RandomState(3)
    first = SimpleDataSource(functions.numbers, 7, True, rng)
    return ConcatDataSource([first, SlicedDataSource(shuffled(), True, rng, 2, 11)], True, rng)


SOURCES = {
    "simple": shuffled,
    "generator": lambda: SimpleDataSource(functions.numbers, 11, True, np.random.default_rng(2)),
    "transformed": lambda: TransformedDataSource(shuffled(), functions.augment, shuffle=True),
    "shared generator": shared_generator,
    "memory cache": lambda: DataSourceWithMemoryCache(shuffled(), True),
    "file cache": lambda: DataSourceWithFileCache(shuffled(), shuffle=True),
}


def equal(batch, other):
    return len(batch) == len(other) and all(map(np.array_equal, batch, other))


def take(iterator, count):
    """The next batches, with None where an epoch ends."""
    found = []
    for _ in range(count):
        try:
            found.append(iterator.next())
        except StopIteration:
            found.append(None)
    return found


def require_equal(found, expected):
    for batch, other in zip(found, expected, strict=True):
        assert (batch is None) == (other is None)
        assert batch is None or equal(batch, other)


@pytest.mark.parametrize("stop_exhausted", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_threads_give_the_batches_of_one(source, stop_exhausted):
    with DataIterator(SOURCES[source](), 4, use_thread=False, stop_exhausted=stop_exhausted) as iterator:
        expected = take(iterator, 20)
        state = iterator.get_state()
        after = take(iterator, 5)
    with DataIterator(SOURCES[source](), 4, workers=3, stop_exhausted=stop_exhausted) as iterator:
        require_equal(take(iterator, 20), expected)
        assert (iterator.epoch, iterator.position) == (state["epoch"], state["position"])
    with DataIterator(SOURCES[source](), 4, workers=2, stop_exhausted=stop_exhausted) as iterator:
        iterator.set_state(state)
        require_equal(take(iterator, 5), after)


@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    size=st.integers(1, 9),
    batch_size=st.integers(1, 7),
    stop_exhausted=st.booleans(),
    bad=st.sets(st.integers(0, 8), max_size=2),
    skip=st.booleans(),
)
def test_failing_samples_are_passed_over_as_without_workers(size, batch_size, stop_exhausted, bad, skip):
    def load(index):
        if index in bad:
            raise ValueError(f"no sample {index}")
        return (index,)

    def read(workers):
        found = []
        source = SimpleDataSource(load, size, True, np.random.RandomState(0))
        options = {"use_thread": False, "stop_exhausted": stop_exhausted, "workers": workers, "skip_errors": skip}
        with DataIterator(source, batch_size, **options) as iterator:
            for _ in range(12):
                try:
                    found.append((iterator.next()[0].tolist(), iterator.epoch, iterator.position))
                except (StopIteration, ValueError) as error:
                    found.append((repr(error), iterator.epoch, iterator.position))
            return found, iterator.skipped

    assert read(2) == read(0)


def test_a_batch_transformation_draws_the_same_whoever_runs_it():
    def batches(**options):
        with DataIterator(shuffled(), 4, transform=functions.mixed, **options) as iterator:
            return take(iterator, 8)

    expected = batches(use_thread=False)
    require_equal(batches(workers=3), expected)
    require_equal(batches(use_thread=True), expected)
    with DataIterator(shuffled(), 4, use_thread=False) as iterator:
        assert not any(equal(batch, other) for batch, other in zip(take(iterator, 8), expected, strict=True))


def test_wrong_options_are_refused():
    with pytest.raises(ArgumentError, match="worker_type one of thread, process, got 2 and 'gpu'"):
        DataIterator(shuffled(), 4, workers=2, worker_type="gpu")
    with (
        DataIterator(SimpleDataSource(lambda index: (index,), 4), 2, workers=1, worker_type="process") as iterator,
        pytest.raises(ArgumentError, match="must be picklable"),
    ):
        iterator.next()


def test_samples_that_do_not_fit_together_are_passed_over():
    source = SimpleDataSource(functions.ragged, 4)
    with DataIterator(source, 2, workers=2) as iterator:
        with pytest.raises(ShapeError, match="must have one shape in a batch"):
            iterator.next()
        assert iterator.position == 2


def test_an_iterator_that_is_dropped_ends_its_threads():
    iterator = DataIterator(shuffled(), 4, workers=2)
    iterator.next()
    threads = iterator._reader._pool._threads
    del iterator
    gc.collect()
    for thread in threads:
        thread.join()


def test_the_next_call_after_an_interrupt_gives_the_batch(monkeypatch):
    wait = pools.ThreadPool.wait
    with DataIterator(shuffled(), 4, use_thread=False) as iterator:
        expected = take(iterator, 4)

    def interrupted(self, number):
        result = wait(self, number)  # the batch is there, and is lost on its way
        monkeypatch.setattr(pools.ThreadPool, "wait", wait)
        raise KeyboardInterrupt(result)

    with DataIterator(shuffled(), 4, workers=2) as iterator:
        require_equal([iterator.next()], expected[:1])
        monkeypatch.setattr(pools.ThreadPool, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            iterator.next()
        require_equal(take(iterator, 3), expected[1:])


# -- processes ---------------------------------------------------------------------------------------------------------


@PROCESSES
@pytest.mark.parametrize("function", [functions.numbers, functions.images], ids=["connection", "shared memory"])
def test_processes_give_the_batches_of_one(function):
    def source():
        return TransformedDataSource(shuffled(function), functions.augment)

    with DataIterator(source(), 8, use_thread=False, transform=functions.mixed) as iterator:
        expected = take(iterator, 9)
    with DataIterator(source(), 8, workers=2, worker_type="process", transform=functions.mixed) as iterator:
        found = take(iterator, 9)
    require_equal(found, expected)
    assert all(array.flags.writeable for batch in found for array in batch)


@PROCESSES
def test_what_careless_code_draws_in_a_process_depends_on_the_batch_alone():
    def batches(workers):
        with DataIterator(shuffled(functions.careless), 4, workers=workers, worker_type="process") as iterator:
            return take(iterator, 6)

    first = batches(1)
    require_equal(batches(2), first)
    assert len({value for batch in first for value in batch[1].tolist()}) == 24


@PROCESSES
def test_an_exception_in_a_process_is_raised_once_and_names_its_sample():
    with DataIterator(SimpleDataSource(functions.bad, 8), 2, workers=2, worker_type="process") as iterator:
        assert iterator.next()[1].tolist() == [0, 10]
        with pytest.raises(RuntimeError, match="OwnError: sample 3 cannot be read") as caught:
            iterator.next()
        notes = caught.value.__notes__
        assert notes[0] == "nn_core: in DataIterator, reading sample 3 at position 3 of epoch 0"
        assert "in bad" in notes[1]
        assert iterator.next()[1].tolist() == [20, 40]


@PROCESSES
def test_a_sample_that_kills_processes_is_an_error():
    with DataIterator(SimpleDataSource(functions.deadly, 4), 2, workers=1, worker_type="process") as iterator:
        assert iterator.next()[0].tolist() == [0, 1]
        with pytest.raises(RuntimeError, match=r"got 3 that died \(exit code -9\)"):
            iterator.next()
        state = iterator.get_state()
        assert state["position"] == 2


@PROCESSES
def test_an_iterator_that_is_dropped_ends_its_processes():
    iterator = DataIterator(SimpleDataSource(functions.endless, 4), 2, workers=2, worker_type="process")
    pool = iterator._reader._pool = iterator._reader._make_pool()
    processes = [worker.process for worker in pool._workers]
    del iterator, pool
    gc.collect()
    assert not any(process.is_alive() for process in processes)


PROGRAM = """
import sys
from nn_core.data.iterator import DataIterator
from nn_core.data.source import SimpleDataSource
from tests.unit.data.worker_sources import endless, numbers

if __name__ == "__main__":
    iterator = DataIterator(SimpleDataSource({function}, 100), 2, workers=2, worker_type="{kind}")
    {use}
    print("done", flush=True)
    {end}
"""


@pytest.mark.parametrize("kind", ["thread", pytest.param("process", marks=[PROCESSES, pytest.mark.slow])])
@pytest.mark.parametrize(
    ("function", "use", "end", "code"),
    [
        ("numbers", "iterator.next()", "", 0),
        ("endless", "iterator._reader._pool = pool = iterator._reader._make_pool()", "sys.exit(3)", 3),
        ("numbers", "iterator.next()", "raise KeyboardInterrupt", -2),
    ],
    ids=["used", "source hangs", "interrupt"],
)
def test_the_interpreter_ends_while_workers_are_there(tmp_path, kind, function, use, end, code):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(kind=kind, function=function, use=use, end=end))
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("done\n", code), done.stderr


@pytest.mark.slow
def test_a_program_without_a_guard_gets_advice(tmp_path):
    program = tmp_path / "program.py"
    text = PROGRAM.format(kind="process", function="numbers", use="iterator.next()", end="")
    program.write_text(text.replace('if __name__ == "__main__":', "if True:"))
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert '`if __name__ == "__main__":`' in done.stderr


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"use_thread": False},
        {"use_thread": True},
        {"workers": 2},
        pytest.param({"workers": 2, "worker_type": "process"}, marks=PROCESSES),
    ],
    ids=["direct", "ahead", "threads", "processes"],
)
def test_a_transformation_that_fails_is_raised_once_and_loses_no_other_batch(options, skip):
    source = SimpleDataSource(functions.numbers, 15)
    with DataIterator(source, 3, transform=functions.failing, skip_errors=skip, **options) as it:
        seen = []
        for _ in range(10):
            try:
                seen.append(it.next()[0].ravel().tolist())
            except (functions.OwnError, RuntimeError) as error:  # an exception that cannot be pickled becomes the other one
                assert "an odd batch" in str(error)
                assert "nn_core: in DataIterator, transforming the batch at position" in error.__notes__[0]
                seen.append(it.position)
        assert seen == 2 * [[0, 1, 2], 6, [6, 7, 8], 12, [12, 13, 14]]
        assert it.skipped == 0


@PROCESSES
@pytest.mark.parametrize("n_faults", [12, pytest.param(1000, marks=pytest.mark.slow)])
def test_faults_lose_no_batch(n_faults, monkeypatch):
    """Processes are killed, calls interrupted, samples and batches fail, iterators are dropped, in a random order."""
    rng = np.random.default_rng(n_faults)
    wait = pools.connection.wait

    def make(**options):
        source = TransformedDataSource(shuffled(functions.bad, 19), functions.augment)
        return DataIterator(source, 4, skip_errors=True, use_thread=False, transform=functions.failing_at_times, **options)

    def kill():
        pool = iterator._reader._pool
        if pool is not None and pool._workers:
            pool._workers[rng.integers(len(pool._workers))].process.kill()

    def strike(act):
        def waiting(*args):
            monkeypatch.setattr(pools.connection, "wait", wait)
            act()
            return wait(*args)

        monkeypatch.setattr(pools.connection, "wait", waiting)

    def interrupt():
        raise KeyboardInterrupt

    def taken():
        with raising_after(120):  # seconds: far above what starting processes takes on a busy machine
            while True:
                try:
                    return iterator.next()
                except KeyboardInterrupt:
                    continue
                except RuntimeError as error:
                    if "an odd batch" in str(error):
                        return None
                    # by chance, one batch met three kills; the next call reads it again
                    assert "must live until it has read a batch" in str(error)

    def expected():
        try:
            return reference.next()
        except functions.OwnError:
            return None

    workers = {"workers": 2, "worker_type": "process"}
    reference, iterator = make(), make(**workers)
    for kind in rng.choice(["kill", "kill later", "interrupt", "drop"], n_faults, p=[0.4, 0.3, 0.15, 0.15]):
        if kind == "kill":
            kill()
        elif kind == "drop":
            state = iterator.get_state()
            iterator = make(**workers)
            gc.collect()  # ends the processes of the dropped one now: an interrupt meanwhile would be lost in a finalizer
            iterator.set_state(state)
        else:
            strike(interrupt if kind == "interrupt" else kill)
        batch = taken()
        monkeypatch.setattr(pools.connection, "wait", wait)  # a call that did not wait was not struck
        require_equal([batch], [expected()])
    assert (iterator.epoch, iterator.position) == (reference.epoch, reference.position)
    iterator.close()
    gc.collect()
    assert not [process for process in multiprocessing.active_children() if process.name == "nn_core.data"]


@contextmanager
def raising_after(seconds):
    """Fail in place of hanging."""

    def fail(*_):
        pytest.fail(f"a call took more than {seconds} s")

    previous = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


# -- padding -----------------------------------------------------------------------------------------------------------


def padded_batches(**options):
    source = SimpleDataSource(functions.sequences, 10, True, np.random.RandomState(1))
    with DataIterator(source, 4, use_thread=False, **options) as iterator:
        return take(iterator, 5)


@pytest.mark.parametrize("padding", [-1, {"x0": -1, "x1": -1}])
def test_values_of_different_shapes_are_filled_up(padding):
    for values, grids, lengths in padded_batches(padding=padding):
        assert (values.dtype, grids.dtype) == (np.int32, np.float32)
        assert values.shape == (4, lengths.max())
        assert grids.shape == (4, lengths.max(), 2 * lengths.max())
        for row, grid, length in zip(values, grids, lengths, strict=True):
            assert row.tolist() == [*range(length), *[-1] * (lengths.max() - length)]
            assert (grid[:length, : 2 * length] == length).all()
            assert (grid[length:] == -1).all()
            assert (grid[:, 2 * length :] == -1).all()


@pytest.mark.parametrize("kind", ["thread", pytest.param("process", marks=PROCESSES)])
def test_workers_fill_up_as_the_iterator_does(kind):
    require_equal(padded_batches(padding=0, workers=2, worker_type=kind), padded_batches(padding=0))


def test_what_is_not_filled_up():
    with pytest.raises(ShapeError, match="the values of x1 must have one shape in a batch, got"):
        padded_batches(padding={"x0": 0})
    source = SimpleDataSource(lambda i: (np.zeros((1,) * (i + 1)),), 2)
    with (
        DataIterator(source, 2, use_thread=False, padding=0) as iterator,
        pytest.raises(ShapeError, match=r"the values of x0 must have as many axes to be filled up, got \(1,\), \(1, 1\)"),
    ):
        iterator.next()


def test_a_part_of_an_iterator_fills_up_too():
    source = SimpleDataSource(functions.sequences, 10)
    with DataIterator(source, 4, use_thread=False, padding=7) as whole, whole.slice(None, 2, 0) as part:
        assert part.next()[0].shape[0] == 4
