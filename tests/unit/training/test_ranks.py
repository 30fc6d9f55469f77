"""Training on several ranks: the same bits on any number of them, one set of files, one decision to stop."""

import json
import threading
import time

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.communicators import Communicator, LocalCommunicator
from nn_core.communicators.threads import ThreadEngine, ThreadWorld, run_threads
from nn_core.errors import ArgumentError, CommunicationError, ShapeError
from nn_core.training import Checkpoint, Evaluator, Log, Trainer, Updater, early_stop, every, report
from nn_core.training.metrics import Accuracy, RegressionErrors
from nn_core.utils.data_iterator import data_iterator_simple

BATCH, N_SAMPLES = 8, 24
#: Parameter scopes of threads are opened one after the other.
WORK = threading.Lock()
rng = np.random.default_rng(3)
IMAGES = rng.standard_normal((N_SAMPLES, 5)).astype(np.float32)
LABELS = rng.integers(0, 3, (N_SAMPLES, 1))


def alone():
    comm = Communicator(engine="alone")
    comm.init()
    return comm


def network(n_samples, seed=0, training=True):
    """The inputs, the predictions and the loss of a small net with running statistics."""
    x, t = nn.Variable((n_samples, 5)), nn.Variable((n_samples, 1))
    h = PF.batch_normalization(PF.affine(x, 4, rng=np.random.RandomState(seed), name="first"), batch_stat=training)
    y = PF.affine(F.tanh(h), 3, rng=np.random.RandomState(seed + 1), name="second")
    return x, t, y, F.mean(F.softmax_cross_entropy(y, t))


def make_updater(comm, n_samples, data, **options):
    """An updater, its parameters, and its Variables; ranks start from different numbers."""
    with WORK, nn.parameter_scope("", {}):
        x, t, y, loss = network(n_samples, seed=comm.rank if comm is not None else 0)
        parameters = nn.get_parameters(grad_only=False)
    solver = S.Adam(0.05)
    solver.set_parameters({name: v for name, v in parameters.items() if v.need_grad})
    updater = Updater(data, [x, t], loss, solver, comm=comm, model=parameters, **options)
    return updater, parameters, (x, t, y, loss)


def make_data(images=IMAGES, labels=LABELS, batch_size=BATCH):
    rng = np.random.RandomState(1)
    return data_iterator_simple(lambda i: (images[i], labels[i]), len(images), batch_size, shuffle=True, rng=rng)


def trained(comm, out, until=5, shards=4, resume=False, accumulate=1, extensions=(), **options):
    """The parameters after training, and the log."""
    with make_data() as data:
        updater, parameters, _ = make_updater(comm, BATCH // shards, data, shards=shards, accumulate=accumulate, **options)
        log = Log()
        trainer = Trainer(updater, every(until) if isinstance(until, int) else until, out, [log, Checkpoint(), *extensions])
        trainer.run(resume=resume)
        return {name: v.d.copy() for name, v in parameters.items()}, log.entries, trainer


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def same(a, b):
    return a.keys() == b.keys() and all((a[name] == b[name]).all() for name in a)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_any_number_of_ranks_gives_the_same_bits(tmp_path, accumulate):
    options = {"accumulate": accumulate, "clip_norm": 0.5, "weight_decay": 1e-3}
    expected, entries, _ = trained(alone(), tmp_path / "alone", **options)
    assert any(name.endswith("mean") and (values != 0).any() for name, values in expected.items())
    for size in (2, 4):
        found = LocalCommunicator.run(size, lambda comm, out=tmp_path / str(size): trained(comm, out, **options)[:2])
        assert all(same(parameters, expected) for parameters, _ in found)
        losses = [[{**entry, "elapsed_time": 0} for entry in log] for _, log in found]
        assert losses[0] == [{**entry, "elapsed_time": 0} for entry in entries]
        assert "loss" in losses[0][0] and "grad_norm" in losses[0][0]
        assert not any(losses[1:]), "ranks other than the first write no log"
        assert files(tmp_path / str(size)) == files(tmp_path / "alone")


def test_the_parts_of_a_batch_give_the_gradient_of_the_batch(tmp_path):
    """Without batch normalization, whose statistics are those of a part, parts change nothing but rounding."""

    def parameters_after(comm, n_samples, **options):
        w = nn.Variable.from_numpy_array(np.full((5, 3), 0.1, np.float32), need_grad=True)
        x, t = nn.Variable((n_samples, 5)), nn.Variable((n_samples, 1))
        solver = S.Momentum(0.1)
        solver.set_parameters({"w": w})
        with make_data() as data:
            loss = F.mean(F.softmax_cross_entropy(F.affine(x, w), t))
            updater = Updater(data, [x, t], loss, solver, comm=comm, model={"w": w}, **options)
            for _ in range(4):
                updater.update()
        return w.d.copy()

    expected = parameters_after(None, BATCH, accumulate=2)
    for found in LocalCommunicator.run(2, lambda comm: parameters_after(comm, BATCH // 4, shards=4, accumulate=2)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_training_is_resumed_on_other_numbers_of_ranks(tmp_path):
    expected = trained(alone(), tmp_path / "whole", until=12)[0]
    out = tmp_path / "parts"
    found = {}
    for size, end in ((4, 3), (2, 6), (1, 9), (4, 12)):
        run = LocalCommunicator.run(size, lambda comm, end=end: trained(comm, out, until=end, resume=True)[0])
        found = run[-1]
    assert same(found, expected)


class FirstAlone(ThreadEngine):
    """The engine of a rank that misses another one, which takes part after the first iteration."""

    n_missing = 1

    def __init__(self, both):
        super().__init__(ThreadWorld(1), 0)
        self.both = both

    def grow(self, n_processes):
        assert n_processes == 1
        return self.both


def test_a_rank_joins_a_training_that_has_begun(tmp_path):
    expected = trained(alone(), tmp_path / "alone")[0]

    def program(engine):
        engine.joins_late = engine.rank == 1
        comm = Communicator(engine=engine if engine.joins_late else FirstAlone(engine))
        comm.init()
        assert (comm.rank, comm.size, comm.joins_late) == ((1, 2, True) if engine.joins_late else (0, 1, False))
        parameters, log, trainer = trained(comm, tmp_path / "joined")
        assert (comm.size, comm.joins_late, trainer.iteration) == (2, False, 5)
        return parameters, log

    (first, entries), (second, others) = run_threads(2, program)
    assert same(first, expected) and same(second, expected)
    assert [entry["iteration"] for entry in entries] == [3] and not others


def test_ranks_with_data_of_their_own(tmp_path):
    """With ``shards=0`` the gradient is the mean over the ranks, and so is what is reported."""

    def program(comm):
        part = slice(comm.rank * 12, (comm.rank + 1) * 12)
        w = nn.Variable.from_numpy_array(np.zeros((5, 3), np.float32), need_grad=True)
        x, t = nn.Variable((12, 5)), nn.Variable((12, 1))
        solver = S.Sgd(0.1)
        solver.set_parameters({"w": w})
        with make_data(IMAGES[part], LABELS[part], 12) as data:
            loss = F.mean(F.softmax_cross_entropy(F.affine(x, w), t))
            updater = Updater(data, [x, t], loss, solver, comm=comm, shards=0, model={"w": w})
            trainer = Trainer(updater, every(3), tmp_path, [Log("loss")])
            trainer.run()
        return w.d.copy(), trainer.observation["loss"]

    w = nn.Variable.from_numpy_array(np.zeros((5, 3), np.float32), need_grad=True)
    x, t = nn.Variable.from_numpy_array(IMAGES), nn.Variable.from_numpy_array(LABELS)
    loss = F.mean(F.softmax_cross_entropy(F.affine(x, w), t))
    for _ in range(3):
        w.grad.zero()
        loss.forward()
        loss.backward()
        w.d -= 0.1 * w.g
    for found, reported in LocalCommunicator.run(2, program):
        np.testing.assert_allclose(found, w.d, rtol=1e-5)
        assert reported == pytest.approx(float(loss.d), rel=1e-5)


def test_all_ranks_stop_after_the_same_iteration(tmp_path):
    """A clock of one rank, values that all of them see, and a signal."""

    def clock(comm):
        _, _, trainer = trained(
            comm, tmp_path, until=100, extensions=[lambda trainer: comm.rank == 1 and trainer.stop("my time is over")]
        )
        return trainer.iteration, trainer.stop_reason

    assert LocalCommunicator.run(2, clock) == [(3, "another rank has stopped"), (3, "my time is over")]

    def values(comm):
        _, _, trainer = trained(comm, tmp_path / "b", until=early_stop("loss", 1, "min"))
        return trainer.iteration

    assert len(set(LocalCommunicator.run(2, values))) == 1


def test_no_rank_leaves_before_all_have_said_what_they_must(tmp_path):
    """Launchers end a job as a whole: what rank 0 says of its last checkpoint is lost if another rank has left by then."""
    order = []

    class Last:
        def __call__(self, trainer):
            pass

        def leave(self, trainer):
            if trainer.updater.comm.rank == 0:
                time.sleep(0.5)
            order.append("told")

    def run(comm):
        with make_data() as data:
            updater, _, _ = make_updater(comm, 2, data, shards=4)
            with pytest.raises(SystemExit):
                Trainer(updater, every(10**6), tmp_path, [Last()]).run(time_limit="0.2s")
        order.append("left")

    LocalCommunicator.run(2, run)
    assert order == ["told", "told", "left", "left"]


def test_ranks_report_the_same_names():
    def program(comm):
        w = nn.Variable.from_numpy_array([1.0], need_grad=True)
        solver = S.Sgd(0.1)
        solver.set_parameters({"w": w})

        def loss(x):
            report({f"mine/{comm.rank}": 1.0})
            return F.mean(x * w)

        with data_iterator_simple(lambda i: (np.ones(1),), 4, 2) as data:
            Updater(data, None, loss, solver, comm=comm, model={"w": w}).update()

    with pytest.raises(CommunicationError, match=r"report: all ranks .* must make the same call[^$]*mine/0[^$]*mine/1"):
        LocalCommunicator.run(2, program)


def test_ranks_resume_from_the_same_checkpoint(tmp_path):
    trained(alone(), tmp_path / "0", until=3)
    with pytest.raises(ArgumentError, match=r"resume from the same checkpoint, got iterations \[3, 0\] by rank"):
        LocalCommunicator.run(2, lambda comm: trained(comm, tmp_path / str(comm.rank), until=4, resume=True))


@pytest.mark.parametrize(
    ("shards", "n_samples", "error", "message"),
    [
        (3, 2, ArgumentError, r"Updater: shards must be a multiple of the 2 ranks, or 0 .* got 3"),
        (-2, 2, ArgumentError, r"Updater: shards must be a multiple of the 2 ranks, or 0 .* got -2"),
        (6, 2, ArgumentError, r"the batch must be cut into 6 parts of one size, got 8 samples\n  hint: choose"),
        (8, 2, ShapeError, r"Updater: the inputs must have the shape of a part of a batch, \(1, 5\), got \(2, 5\)"),
    ],
)
def test_parts_that_do_not_fit(shards, n_samples, error, message):
    def program(comm):
        with make_data() as data:
            make_updater(comm, n_samples, data, shards=shards)[0].update()

    with pytest.raises(error, match=message):
        LocalCommunicator.run(2, program)


def test_a_step_of_its_own_takes_data_of_its_own():
    class Adversaries(Updater):
        def step(self):
            raise NotImplementedError

    def program(comm):
        with make_data() as data, pytest.raises(ArgumentError, match=r"shards must be 0 for Adversaries, .* got None\n  hint"):
            Adversaries(data, [], nn.Variable(()), {}, comm=comm)

    LocalCommunicator.run(2, program)


def test_one_rank_is_no_communicator():
    with make_data() as data:
        assert make_updater(alone(), BATCH, data)[0].comm is None


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_evaluate_batches_in_turn(size):
    """Five batches, the last one smaller: values and metrics to the bit those of one rank."""

    def values(comm):
        with WORK, nn.parameter_scope("", {}):
            x, t, y, loss = network(5, training=False)
        outputs = {"loss": loss, "error": Accuracy(y, t), "spread": RegressionErrors(y, F.tanh(y))}
        evaluator = Evaluator([IMAGES, LABELS], [x, t], outputs, batch_size=5, comm=comm)
        return [evaluator.evaluate() for _ in range(2)]

    expected = values(None)
    assert LocalCommunicator.run(size, values) == [expected] * size
    assert json.dumps(expected[0]) == json.dumps(expected[1])


@pytest.mark.parametrize(
    ("function", "reason"),
    [(F.dropout, "which draws random numbers"), (PF.batch_normalization, "which changes running statistics")],
)
def test_ranks_evaluate_graphs_without_a_memory(function, reason):
    def program(comm):
        with WORK, nn.parameter_scope("", {}):
            x = nn.Variable((5, 5))
            y = F.mean(function(x))
        with pytest.raises(ArgumentError, match=f"Evaluator: with comm, .* got .*{reason}"):
            Evaluator([IMAGES], [x], {"y": y}, batch_size=5, comm=comm)

    LocalCommunicator.run(2, program)
