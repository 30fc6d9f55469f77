"""Learning rates and batch sizes by trial, averages of weights, and statistics that are computed anew."""

import threading

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.communicators import LocalCommunicator
from nn_core.errors import ArgumentError
from nn_core.training import (
    Checkpoint,
    Trainer,
    WeightAverage,
    every,
    find_batch_size,
    find_learning_rate,
    finders,
    renew_statistics,
)
from nn_core.training.checkpoint import take_snapshot
from nn_core.training.finders import LearningRates
from nn_core.training.states import as_text, pack
from tests.unit.training.test_ranks import BATCH, make_data
from tests.unit.training.test_ranks import make_updater as make_on_ranks


def state_of(updater):
    arrays = {}
    text = as_text(pack(take_snapshot(updater=updater).copy().states, arrays)).tobytes()
    return text, {name: values.tobytes() for name, values in arrays.items()}


@pytest.mark.parametrize("solver", ["Sgd", "Adam"])
def test_learning_rates_are_tried_without_a_trace(make_updater, solver):
    """The rate at which the squared error of this regression falls fastest is below that at which it diverges."""
    updater = make_updater(solver)
    updater.update()
    before = state_of(updater)
    found = find_learning_rate(updater, low=1e-5, high=1e3, iterations=120)
    assert state_of(updater) == before and updater.iteration == 1
    assert list(found.rates) == sorted(found.rates) and found.rates[0] == 1e-5 and np.isfinite(found.losses).all()
    assert found.diverged_at is not None and 1e-4 < found.suggestion < found.diverged_at
    again = find_learning_rate(updater, low=1e-5, high=1e3, iterations=120)
    assert again == found
    quiet = find_learning_rate(updater, low=1e-9, high=1e-8, iterations=5)
    assert quiet.diverged_at is None and len(quiet.rates) == 5


def test_ranks_try_the_same_rates(tmp_path):
    def program(comm):
        with make_data() as data:
            updater, parameters, _ = make_on_ranks(comm, BATCH // 4, data, shards=4)
            found = find_learning_rate(updater, low=1e-4, high=10.0, iterations=20)
            updater.update()
            return found, parameters["second/affine/W"].d.copy()

    runs = {size: LocalCommunicator.run(size, program) for size in (2, 4)}
    (first, weights), *rest = [*runs[2], *runs[4]]
    assert all(found == first and (other == weights).all() for found, other in rest)


@pytest.mark.parametrize("options", [{"low": 0}, {"low": 1, "high": 0.5}, {"iterations": 2}])
def test_rates_that_do_not_fit_are_refused(make_updater, options):
    with pytest.raises(ArgumentError, match="low must be positive and below high, with at least 3 iterations, got"):
        find_learning_rate(make_updater(), **options)


def test_a_loss_that_never_falls_suggests_nothing():
    with pytest.raises(ArgumentError, match="the loss must fall for some rates, got the smallest loss at the first"):
        _ = LearningRates((1e-3, 1e-2, 1e-1), (1.0, 2.0, 3.0), None).suggestion


class Machine:
    """Steps that take 1 ms and 0.1 ms a sample, and 10 MiB a sample."""

    def __init__(self, monkeypatch, fails_at=None):
        self.peak, self.now, self.fails_at = 100.0, 0.0, fails_at
        self.tried = []
        monkeypatch.setattr(finders, "_peak_mb", lambda: self.peak)
        monkeypatch.setattr(finders.time, "perf_counter", lambda: self.now)

    def make(self, size):
        self.tried.append(size)
        if size == self.fails_at:
            raise MemoryError("no memory")

        def step():
            self.peak = max(self.peak, 100.0 + 10.0 * size)
            self.now += 0.001 + 0.0001 * size

        return step


def test_batch_sizes_stop_before_the_memory_is_used_up(monkeypatch):
    machine = Machine(monkeypatch)
    found = find_batch_size(machine.make, memory_mb=1000)
    assert found.sizes == (1, 2, 4, 8, 16, 32, 64)[: len(found.sizes)] and found.peak_mb[-1] <= 1000
    assert found.largest == machine.tried[-1] == 64 and "128 would take about" in found.why_no_more
    assert found.samples_per_second[-1] == pytest.approx(64 / (0.001 + 0.0064))
    assert find_batch_size(Machine(monkeypatch).make, at_most=4, memory_mb=1e9).why_no_more == "at_most is 4"
    found = find_batch_size(Machine(monkeypatch, fails_at=8).make, memory_mb=1e9)
    assert found.largest == 4 and found.why_no_more == "8 does not fit: no memory"
    with pytest.raises(MemoryError):
        find_batch_size(Machine(monkeypatch, fails_at=1).make)
    assert find_batch_size(Machine(monkeypatch).make, at_most=1024, memory_mb=1e9).fastest == 256
    with pytest.raises(ArgumentError, match="start must be from 1 to at_most, got 0 and 65536"):
        find_batch_size(machine.make, start=0)


def test_the_memory_of_the_process_is_known():
    assert 10 < finders._peak_mb() < finders._usable_mb()


def test_averages_of_the_last_epochs_are_resumed(make_updater, tmp_path):
    def run(until, out, points=None):
        trainer = Trainer(make_updater(), every(until, "epoch"), out)
        parameters = nn.get_parameters()
        average = WeightAverage(parameters, start=2)
        trainer.extend(average, Checkpoint())
        if points is not None:
            trainer.on(every(1, "epoch"))(lambda trainer: points.append(parameters["affine/W"].d.astype(np.float64)))
        trainer.run(resume=True)
        return average, parameters["affine/W"]

    points = []
    average, w = run(6, tmp_path / "whole", points)
    last = w.d.copy()
    assert average.count == 4
    with average.applied():
        np.testing.assert_allclose(w.d, np.mean(points[2:], axis=0), rtol=1e-6)
    assert (w.d == last).all()
    expected = average.averages()["affine/W"].data
    for until in (3, 6):
        average, _ = run(until, tmp_path / "parts")
    assert (average.averages()["affine/W"].data == expected).all() and average.count == 4


def test_averages_of_nothing_are_refused():
    with pytest.raises(ArgumentError, match="there must be parameters to average, got none"):
        WeightAverage({})
    with pytest.raises(ArgumentError, match="parameters must be Variables by name, got"):
        WeightAverage([1])
    with pytest.raises(ArgumentError, match="start must be at least 0, got -1"):
        WeightAverage({"w": nn.Variable((1,))}, start=-1)
    with (
        pytest.raises(ArgumentError, match="there must be a point to average, got none"),
        WeightAverage({"w": nn.Variable.from_numpy_array(np.ones(1))}).applied(),
    ):
        pass


def test_statistics_are_the_means_over_batches():
    """With another share for each normalization, one that is frozen, and a parameter that no pass changes."""
    x = nn.Variable((6, 3))
    h = PF.batch_normalization(x, decay_rate=0.5, name="a")
    y = PF.batch_normalization(F.tanh(h) * 3, decay_rate=0.99, name="b")
    y = PF.batch_normalization(y, batch_stat=False, name="c")
    parameters = nn.get_parameters(grad_only=False)
    parameters["frozen"] = nn.Variable.from_numpy_array(np.full(2, 7.0))
    parameters["c/bn/mean"].d = 0.25
    batches = [[np.random.default_rng(n).standard_normal((6, 3)).astype(np.float32) + n] for n in range(5)]
    assert renew_statistics(y, [x], batches, parameters) == 4
    np.testing.assert_allclose(parameters["a/bn/mean"].d.ravel(), np.mean(batches, axis=(0, 1, 2)), rtol=1e-4)
    variances = [batch[0].var(axis=0, ddof=1) for batch in batches]
    np.testing.assert_allclose(parameters["a/bn/var"].d.ravel(), np.mean(variances, axis=0), rtol=1e-4)
    assert (parameters["c/bn/mean"].d == 0.25).all() and (parameters["frozen"].d == 7.0).all()
    with pytest.raises(ArgumentError, match="there must be a batch, got none"):
        renew_statistics(y, [x], [], parameters)


def test_statistics_are_averaged_over_ranks():
    lock = threading.Lock()

    def program(comm):
        with lock, nn.parameter_scope("", {}):
            x = nn.Variable((4, 2))
            y = PF.batch_normalization(x)
            parameters = nn.get_parameters(grad_only=False)
        renew_statistics(y, [x], [[np.full((4, 2), comm.rank + 1.0)]], parameters, comm)
        return parameters["bn/mean"].d.ravel().tolist()

    assert LocalCommunicator.run(2, program) == [[pytest.approx(1.5)] * 2] * 2
