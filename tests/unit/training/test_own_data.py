"""Ranks with data of their own: resumed to the bit, parts of different lengths, one set of running statistics."""

import time

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.communicators import LocalCommunicator
from nn_core.errors import ArgumentError, CommunicationError
from nn_core.training import Checkpoint, Evaluator, Log, Trainer, Updater, checkpoints_in, every
from nn_core.training.checkpoint import read_snapshot, write_snapshot
from nn_core.training.extensions import saving
from nn_core.utils.data_iterator import data_iterator_simple

from .test_ranks import IMAGES, LABELS, WORK, alone, make_data, make_updater, same


def part(comm, lengths):
    """Samples of a rank; parts follow each other."""
    start = sum(lengths[: comm.rank])
    return slice(start, start + lengths[comm.rank])


def trained(comm, out, until=9, lengths=(12, 12), resume=False, asynchronous=False, period=2, seen=None, **options):
    """The parameters after training, and the trainer."""
    own = part(comm, lengths)
    rng = np.random.RandomState(comm.rank)

    def load(index):
        if seen is not None:
            seen.append(own.start + index)
        return IMAGES[own][index], LABELS[own][index]

    with data_iterator_simple(load, own.stop - own.start, 4, shuffle=True, rng=rng) as data:
        updater, parameters, (x, t, _, loss) = make_updater(comm, 4, data, shards=0, **options)
        trainer = Trainer(updater, until if callable(until) else every(until), out, [Log()])
        trainer.extend(Evaluator([IMAGES, LABELS], [x, t], {"loss": loss}, batch_size=4), every=every(1, "epoch"))
        trainer.extend(Checkpoint(asynchronous=asynchronous), every=every(period))
        trainer.run(resume=resume)
        return {name: v.d.copy() for name, v in parameters.items()}, trainer


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("lengths", [(12, 12), (15, 9)])
def test_every_rank_is_resumed_where_it_was(tmp_path, lengths, asynchronous):
    options = {"lengths": lengths, "asynchronous": asynchronous}
    expected = LocalCommunicator.run(2, lambda comm: trained(comm, tmp_path / "whole", **options)[0])
    assert same(*expected)
    found = []
    for end in (2, 5, 6, 9):
        run = LocalCommunicator.run(2, lambda comm, end=end: trained(comm, tmp_path / "parts", end, resume=True, **options)[0])
        found = run
    assert same(found[0], expected[0]) and same(found[1], expected[0])
    logs = [(tmp_path / name / "log.jsonl").read_text().count("\n") for name in ("whole", "parts")]
    assert logs[0] == logs[1] > 0


def test_a_checkpoint_holds_what_each_rank_has(tmp_path):
    LocalCommunicator.run(2, lambda comm: trained(comm, tmp_path, 4, lengths=(15, 9)))
    state = read_snapshot(checkpoints_in(tmp_path)[0]).states["trainer"]
    assert [rank["data"]["size"] for rank in state["ranks"]] == [15, 9]
    assert state["updater"]["data"]["size"] == 15
    assert all({"data", "graph", "random"} == set(rank) for rank in state["ranks"])


def test_no_rank_reads_the_samples_of_another_one(tmp_path):
    seen = ([], [])
    for end in (3, 6):
        LocalCommunicator.run(2, lambda comm, end=end: trained(comm, tmp_path, end, resume=True, seen=seen[comm.rank])[0])
    assert set(seen[0]) <= set(range(12)) and set(seen[1]) <= set(range(12, 24))


def test_epochs_are_those_of_rank_0(tmp_path):
    """Evaluations and checkpoints come after the same iterations on all ranks, however long their parts are."""

    def program(comm):
        _, trainer = trained(comm, tmp_path, every(3, "epoch"), lengths=(15, 9))
        return trainer.iteration, trainer.epoch, trainer.epoch_size

    assert set(LocalCommunicator.run(2, program)) == {(12, 3, 15)}


def test_another_number_of_ranks_is_refused(tmp_path):
    LocalCommunicator.run(2, lambda comm: trained(comm, tmp_path, 2))
    message = "there must be as many ranks as those with data of their own that were saved, 2, got 3"
    with pytest.raises((ArgumentError, CommunicationError), match=f"{message}|another rank has raised"):
        LocalCommunicator.run(3, lambda comm: trained(comm, tmp_path, 4, lengths=(8, 8, 8), resume=True))


def test_checkpoints_of_earlier_versions_load(tmp_path, caplog):
    """They hold the data of rank 0 alone: the other ranks begin their own parts anew, instead of reading those of rank 0."""
    LocalCommunicator.run(2, lambda comm: trained(comm, tmp_path, 4))
    path = checkpoints_in(tmp_path)[0]
    snapshot = read_snapshot(path)
    for name in ("ranks", "progress"):
        del snapshot.states["trainer"][name]
    write_snapshot(path, snapshot)
    seen = ([], [])
    parameters = LocalCommunicator.run(2, lambda comm: trained(comm, tmp_path, 6, resume=True, seen=seen[comm.rank])[0])
    assert same(*parameters)
    assert set(seen[1]) <= set(range(12, 24))
    assert "the data of rank 0 alone are continued, the other ranks begin theirs anew" in caplog.text


def test_running_statistics_are_means_over_the_ranks(tmp_path):
    """Those of two ranks are the mean of what each would have alone, and frozen parameters keep their bits."""

    def program(comm, world):
        frozen = nn.Variable.from_numpy_array(np.float32([0.1, 1 / 3]), need_grad=False)
        own = part(comm, (12, 12))
        x = nn.Variable((4, 5))
        with WORK, nn.parameter_scope("", {}):
            h = PF.batch_normalization(x, name="bn")
            parameters = {**nn.get_parameters(grad_only=False), "frozen": frozen}
        solver = S.Sgd(0.0)
        solver.set_parameters({name: v for name, v in parameters.items() if v.need_grad})
        with make_data(IMAGES[own], LABELS[own], 4) as data:
            inputs = type("Inputs", (), {"next": lambda self: data.next()[:1]})()
            updater = Updater(inputs, [x], F.mean(h**2), solver, comm=world, shards=0, model=parameters)
            for _ in range(5):
                updater.update()
        return {name: v.d.copy() for name, v in parameters.items()}

    together = LocalCommunicator.run(2, lambda comm: program(comm, comm))
    apart = LocalCommunicator.run(2, lambda comm: program(comm, None))
    assert same(*together)
    assert not same(*apart)
    for name in ("bn/bn/mean", "bn/bn/var"):
        np.testing.assert_allclose(together[0][name], (apart[0][name] + apart[1][name]) / 2, rtol=1e-6)
    assert together[0]["frozen"].tolist() == np.float32([0.1, 1 / 3]).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"images": IMAGES[:16], "labels": LABELS[:16]},
            r"same batches, got data of the lengths \[24, 16\] by rank\n  hint",
        ),
        ({"batch_size": 4}, r"same batches, got data of the batch sizes \[8, 4\] by rank\n  hint"),
    ],
)
def test_ranks_that_share_batches_have_the_same_lengths(change, message):
    def program(comm):
        with make_data(**(change if comm.rank else {})) as data:
            make_updater(comm, 4, data, shards=2)[0].update()

    with pytest.raises(ArgumentError, match=message):
        LocalCommunicator.run(2, program)


def test_ranks_that_share_batches_have_the_same_order():
    def program(comm, seeds, n_read=(0, 0)):
        rng = np.random.RandomState(seeds[comm.rank])
        with data_iterator_simple(lambda i: (IMAGES[i], LABELS[i]), 24, 8, shuffle=True, rng=rng) as data:
            for _ in range(n_read[comm.rank]):
                data.next()
            make_updater(comm, 4, data, shards=2)[0].update()

    LocalCommunicator.run(2, lambda comm: program(comm, (5, 5)))
    for arguments in (((5, 6),), ((5, 5), (0, 1))):
        with pytest.raises(ArgumentError, match="must read the same batches, got data in other orders or at other positions"):
            LocalCommunicator.run(2, lambda comm, arguments=arguments: program(comm, *arguments))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_no_rank_leaves_while_rank_0_writes(tmp_path, monkeypatch, asynchronous):
    """A launcher ends the whole job when one rank has ended, also after a signal."""

    def write_slowly(path, snapshot):
        time.sleep(0.3)
        write_snapshot(path, snapshot)

    monkeypatch.setattr(saving, "write_snapshot", write_slowly)

    def program(comm):
        trained(comm, tmp_path, 1, asynchronous=asynchronous, period=1)
        return [path.name for path in checkpoints_in(tmp_path)]

    assert LocalCommunicator.run(2, program) == [["checkpoint-00000001.npz"]] * 2


def test_one_rank_has_nothing_to_share(tmp_path):
    with make_data(batch_size=4) as data:
        updater, _, _ = make_updater(alone(), 4, data, shards=0)
        Trainer(updater, every(1, "epoch"), tmp_path, [Checkpoint()]).run()
    assert "ranks" not in read_snapshot(checkpoints_in(tmp_path)[0]).states["trainer"]
