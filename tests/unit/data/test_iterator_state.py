"""Iterators: their state, what they survive, and that no sample is lost or read twice."""

import copy
import gc
import itertools
import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nn_core.data.combined_sources import ConcatDataSource
from nn_core.data.iterator import DataIterator
from nn_core.data.iterators import data_iterator, data_iterator_simple
from nn_core.data.source import (
    DataSource,
    DataSourceWithMemoryCache,
    SimpleDataSource,
    SlicedDataSource,
    TransformedDataSource,
)
from nn_core.data.splitting import ChosenDataSource
from nn_core.errors import ArgumentError
from tools.lanes.interrupts import Interrupts


class Squares(DataSource):
    """A source as programs define them: its order is drawn in reset()."""

    def __init__(self, n, shuffle=False, rng=None):
        super().__init__(shuffle, rng)
        self._size, self._variables = n, ("x", "y")
        self.reset()

    def reset(self):
        self._indexes = self._rng.permutation(self._size) if self._shuffle else range(self._size)
        super().reset()

    def _get_data(self, position):
        x = self._indexes[position]
        return np.array([x]), np.array([x * x])


def simple(size=11, rng=None):
    return SimpleDataSource(lambda index: (np.array([index]), index * 10), size, True, rng)


def noisy(rng):
    """A load function that draws from the generator of the orders, as careless augmentation does."""
    return SimpleDataSource(lambda index: (np.array([index + rng.randn()]),), 11, True, rng)


def shared(make):
    rng = np.random.RandomState(7)
    return make(rng)


SOURCES = {
    "simple": simple,
    "default_rng": lambda: simple(rng=np.random.default_rng(3)),
    "program": lambda: Squares(11, True),
    "memory cache": lambda: shared(lambda rng: DataSourceWithMemoryCache(simple(rng=rng), True, rng)),
    "slice": lambda: shared(lambda rng: SlicedDataSource(simple(20, rng), True, rng, 4, 15)),
    "concat": lambda: shared(lambda rng: ConcatDataSource([Squares(5, True, rng), Squares(6, True, rng)], True, rng)),
    "noise": lambda: shared(noisy),
    "transformed": lambda: TransformedDataSource(simple(), lambda rng, x, y: (x + rng.normal(), y), shuffle=True),
}


def values(batch):
    return [array.ravel().tolist() for array in batch]


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("use_thread", [False, True], ids=["direct", "thread"])
def test_a_state_continues_anywhere(name, use_thread):
    with DataIterator(SOURCES[name](), 4, use_thread=use_thread) as iterator:
        states, batches = [], []
        for _ in range(9):
            states.append(json.dumps(iterator.get_state(), default=np.ndarray.tolist))
            batches.append((values(iterator.next()), iterator.epoch, iterator.position))
    for number, state in enumerate(states):
        with DataIterator(SOURCES[name](), 4, use_thread=use_thread) as fresh:
            if number % 2:
                fresh.next()  # it may have run already
            fresh.set_state(json.loads(state))
            again = [(values(fresh.next()), fresh.epoch, fresh.position) for _ in range(9 - number)]
        assert again == batches[number:]


@pytest.mark.parametrize("use_thread", [False, True], ids=["direct", "thread"])
def test_nothing_is_replayed(use_thread):
    read = []

    def load(index):
        read.append(index)
        return (index,)

    def make():
        return data_iterator_simple(load, 44_000, 4, shuffle=True, use_thread=use_thread)

    with make() as iterator:
        state = iterator.get_state()
        state["position"] = 40_000  # batch 10,000
    read.clear()
    with make() as iterator:
        iterator.set_state(state)
        iterator.next()
    assert len(read) <= 2 * 4


def test_states_that_do_not_fit():
    with DataIterator(simple(), 4) as iterator, DataIterator(simple(12), 4) as other:
        state = iterator.get_state()
        with pytest.raises(ArgumentError, match="set_state: the data must have 11 samples, got 12"):
            other.set_state(state)
        with pytest.raises(ArgumentError, match="position must be one of 11 samples, got 12"):
            iterator.set_state({**state, "position": 12})
        third = DataIterator(simple(rng=np.random.default_rng(0)), 4)
        with third, pytest.raises(ArgumentError, match=r"the generators must be \['PCG64'\], got \['MT19937'\]"):
            third.set_state(state)
        with pytest.raises(ArgumentError, match="there must be 0 sources inside the source, got 1"):
            iterator.set_state({**state, "drawn": [None]})
    with pytest.raises(ArgumentError, match=r"the state must be set before close\(\), got one after it"):
        iterator.set_state(state)


def bad_at(*failing, kind=ValueError):
    def load(index):
        if index in failing:
            raise kind(f"no sample {index}")
        return (index,)

    return load


@pytest.mark.parametrize("use_thread", [False, True], ids=["direct", "thread"])
@pytest.mark.parametrize("stop", [False, True], ids=["for ever", "stop"])
def test_a_failing_sample_is_raised_once_and_passed_over(use_thread, stop):
    with data_iterator_simple(bad_at(2, 5), 8, 3, use_thread=use_thread, stop_exhausted=stop) as iterator:
        for index, batch in ((2, [0, 1, 3]), (5, [4, 6, 7])):
            with pytest.raises(ValueError, match=f"no sample {index}") as raised:
                iterator.next()
            assert raised.value.__notes__ == [
                f"nn_core: in DataIterator, reading sample {index} at position {index} of epoch 0"
            ]
            assert iterator.next()[0].tolist() == batch
        assert (iterator.epoch, iterator.position) == ((0, 8) if stop else (1, 0))


def test_stop_iteration_of_a_source_is_not_the_end():
    with (
        data_iterator_simple(bad_at(1, kind=StopIteration), 4, 2) as iterator,
        pytest.raises(RuntimeError, match="a data source must not raise StopIteration for a sample"),
    ):
        iterator.next()


def test_a_state_remembers_what_is_passed_over():
    with data_iterator_simple(bad_at(2), 8, 3, use_thread=False) as iterator:
        with pytest.raises(ValueError, match="no sample 2"):
            iterator.next()
        state = iterator.get_state()
    with data_iterator_simple(bad_at(2), 8, 3, use_thread=False) as iterator:
        iterator.set_state(state)
        assert iterator.next()[0].tolist() == [0, 1, 3]


def test_a_failing_callback_loses_no_batch():
    calls = []

    def fail(epoch):
        calls.append(epoch)
        raise KeyError(epoch)

    with data_iterator_simple(bad_at(), 3, 2, epoch_end_callbacks=[fail, calls.append]) as iterator:
        iterator.next()
        with pytest.raises(KeyError):
            iterator.next()
        assert iterator.next()[0].tolist() == [2, 0]
    assert calls == [0, 0]


@pytest.mark.parametrize("use_thread", [False, True], ids=["direct", "thread"])
def test_interrupts_lose_no_batch(use_thread):
    """Several batches, each of which is interrupted at every place where an interrupt can come."""
    interrupts, seen, n_interrupts = Interrupts(), [], 0
    with data_iterator_simple(lambda index: (index,), 1000, 5, use_thread=use_thread) as iterator:
        for _ in range(4):
            for at in itertools.count():
                given, position = [], iterator.position
                raised = interrupts.run(lambda given=given: given.append(iterator.next()), at)
                # Interrupted after the batch was given, the position says so, although its value is lost.
                seen += given[0][0].tolist() if given else range(position, iterator.position)
                if raised is None:
                    break
                n_interrupts += 1
    assert n_interrupts > 20
    assert seen == list(range(len(seen)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_child_goes_on_where_the_parent_was():
    parent, reached, gate = os.getpid(), os.pipe(), os.pipe()
    calls = []

    def load(index):
        calls.append(index)
        if len(calls) == 5 and os.getpid() == parent:  # in the second batch, which the thread reads ahead
            os.write(reached[1], b".")
            os.read(gate[0], 1)
        return (index,)

    with data_iterator_simple(load, 20, 3, shuffle=True) as iterator:
        iterator.next()
        os.read(reached[0], 1)
        reader, writer = os.pipe()
        child = os.fork()
        os.write(gate[1], b".")
        if child == 0:
            signal.alarm(60)
            got = [iterator.next()[0].tolist() for _ in range(9)]
            os.write(writer, json.dumps(got).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            theirs = json.load(pipe)
        assert os.waitpid(child, 0)[1] == 0
        assert [iterator.next()[0].tolist() for _ in range(9)] == theirs
    for end in (*reached, *gate):
        os.close(end)


def test_the_thread_of_a_dropped_iterator_ends():
    iterator = data_iterator_simple(bad_at(), 100, 2)
    iterator.next()
    thread = iterator._prefetcher._thread
    del iterator
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()


def test_an_iterator_that_is_not_used_starts_no_thread():
    before = set(threading.enumerate())
    with data_iterator_simple(bad_at(), 100, 2):
        assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("hang", ["", "time.sleep(1000) if i > 3 else None"], ids=["used", "source hangs"])
def test_the_exit_of_the_interpreter_does_not_wait(hang):
    program = f"""
import time
from nn_core.utils.data_iterator import data_iterator_simple
def load(i):
    {hang or "pass"}
    return (i,)
iterator = data_iterator_simple(load, 100, 2)
print(iterator.next()[0].tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "[0, 1]\n"
    assert done.stderr == ""


def test_names_are_asked_for_without_drawing():
    rng = np.random.RandomState(1)
    source = SimpleDataSource(lambda index: (rng.rand(),), 4, False, rng)
    state = rng.get_state()[1].tolist()
    assert source.variables == ("x0",)
    assert rng.get_state()[1].tolist() == state


@settings(max_examples=25, deadline=None)
@given(
    size=st.integers(1, 12),
    batch_size=st.integers(1, 7),
    failing=st.sets(st.integers(0, 11)),
    stop=st.booleans(),
    resume=st.lists(st.booleans(), min_size=15, max_size=15),
    use_thread=st.booleans(),
)
def test_every_good_sample_comes_once_an_epoch(size, batch_size, failing, stop, resume, use_thread):
    def make():
        source = SimpleDataSource(bad_at(*failing), size, True)
        return data_iterator(source, batch_size, use_thread=use_thread, with_memory_cache=False, stop_exhausted=stop)

    iterator = make()
    seen, failed = [], []
    for restart in resume:
        if restart:
            state = iterator.get_state()
            iterator.close()
            iterator = make()
            iterator.set_state(state)
        try:
            seen += iterator.next()[0].tolist()
        except ValueError as error:
            failed += error.__notes__
        except StopIteration:
            pass
    epochs = iterator.epoch
    iterator.close()
    assert len(set(failed)) == len(failed)  # the notes have epoch and position
    for index in set(range(size)) - failing:
        assert seen.count(index) <= epochs + 1
        assert seen.count(index) >= epochs or stop


def test_a_whole_number_in_place_of_a_fraction_stays_a_number_with_a_fraction():
    """An iterator keeps the state that its generator started from: of an integer there, it would refuse 0.0 later."""
    with data_iterator_simple(lambda i: (np.array(i),), 6, 2, shuffle=True, rng=np.random.RandomState(3)) as iterator:
        iterator.next()
        state = iterator.get_state()
        assert isinstance(state["start"][0]["gauss"], float)
        other = copy.deepcopy(state)
        other["start"][0]["gauss"] = 3
        iterator.set_state(other)
        assert iterator.get_state()["start"][0]["gauss"] == 3.0
        iterator.set_state(state)
        assert iterator.get_state()["start"][0]["gauss"] == 0.0


def test_a_place_before_the_orders_of_inner_sources_were_drawn_can_be_returned_to():
    source = ChosenDataSource(TransformedDataSource(simple(), lambda rng, x, y: (x, y)), range(8))
    with DataIterator(source, 4) as data:
        state = data.get_state()
        assert None in state["drawn"]
        batches = [data.next()[0].tolist() for _ in range(4)]
        data.set_state(state)
        assert [data.next()[0].tolist() for _ in range(4)] == batches
        data.next()
        later = data.get_state()
        wrong = {**next(filter(None, later["drawn"])), "bit_generator": "PCG64"}
        for drawn in (3, [3], [wrong] * len(state["drawn"])):
            with pytest.raises(ArgumentError, match=r"there must be 2 sources inside|state must be that of a MT19937"):
                data.set_state({**later, "drawn": drawn})
        data.set_state(later)
