"""Ranks that are lost: those that are left repeat what they were doing, and end with the same bits."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.communicators import Communicator, LocalCommunicator
from nn_core.communicators.reduction_tree import PartialSums, part_spans, terms_of_rank
from nn_core.communicators.threads import run_threads
from nn_core.errors import ArgumentError, CommunicationError, LostRankError
from nn_core.training import Evaluator, Trainer, Updater, every
from nn_core.utils.data_iterator import data_iterator_simple


@pytest.mark.parametrize("n_terms", [3, 4, 8, 13])
@pytest.mark.parametrize("n_ranks", [1, 2, 3])
def test_uneven_shares_cover_all_terms(n_terms, n_ranks):
    shares = [terms_of_rank(rank, n_ranks, n_terms) for rank in range(n_ranks)]
    assert [term for share in shares for term in share] == list(range(n_terms))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    for share in shares:
        sums = PartialSums()
        for term in share:
            sums.add(term, np.ones(1))
        assert [(part.start, part.length) for part in sums.parts] == part_spans(share.start, share.stop)


def test_the_others_repeat_what_they_were_doing():
    def program(engine):
        comm = Communicator(engine=engine, timeout_s=60)
        comm.init()
        comm.new_group(("pair", [0, 1]))
        if comm.rank == 1:
            engine.die()
            return None
        calls = []

        def total():
            calls.append(comm.size)
            x = nn.NdArray.from_numpy_array(np.full(2, comm.rank + 1.0))
            comm.all_reduce(x)
            return x.data.tolist()

        return comm.repeated(total), calls, comm.rank, comm.list_groups()

    first, nothing, last = run_threads(3, program)
    assert nothing is None
    assert first == ([3.0, 3.0], [3, 2], 0, {"world": [0, 1]})
    assert last == ([3.0, 3.0], [3, 2], 1, {"world": [0, 1]})


def test_a_loss_outside_of_repeated_is_an_error():
    def program(comm):
        if comm.rank == 1:
            comm.engine.die()
            return None
        with pytest.raises(LostRankError, match=r"every rank must live, got the loss of \[1\]"):
            comm.barrier()
        return "told"

    assert LocalCommunicator.run(2, program) == ["told", None]


def test_a_result_counts_when_all_have_it():
    """A rank that is lost after the collective, and before the others have agreed, lets all repeat it."""

    def program(comm):
        calls = []

        def action():
            calls.append(comm.rank)
            comm.barrier()
            if comm.rank == 2 and comm.size == 3:
                comm.engine.die()
                raise SystemExit
            return len(calls)

        try:
            return comm.repeated(action)
        except SystemExit:
            return "lost"

    assert LocalCommunicator.run(3, program) == [2, 2, "lost"]


def test_exceptions_of_an_action_are_not_repeated():
    def program(comm):
        with pytest.raises(ArgumentError, match="group must be one of world"):
            comm.repeated(lambda: comm.barrier(group="other"))

    LocalCommunicator.run(2, program)


def train(comm, victim, iteration):
    """A few epochs; rank `victim` is lost in `iteration`. Returns the parameters, statistics and validation error."""
    images = np.random.default_rng(0).standard_normal((32, 6)).astype(np.float32)
    labels = np.arange(32)[:, None] % 3
    with nn.parameter_scope(f"rank{comm.rank} of {comm.size}"):
        x, t = nn.Variable((4, 6)), nn.Variable((4, 1))
        h = PF.batch_normalization(PF.affine(x, 5, name="first", rng=np.random.RandomState(1)))
        y = PF.affine(F.relu(h), 3, name="last", rng=np.random.RandomState(2))
        loss = F.mean(F.softmax_cross_entropy(y, t))
        z = PF.batch_normalization(PF.affine(x, 5, name="first"), batch_stat=False)
        validation = F.mean(F.softmax_cross_entropy(PF.affine(F.relu(z), 3, name="last"), t))
        parameters = nn.get_parameters(grad_only=False)
        solver = S.Adam(0.01)
        solver.set_parameters(nn.get_parameters())
    rng = np.random.RandomState(2)
    seen = []
    with data_iterator_simple(lambda i: (images[i], labels[i]), 32, 16, shuffle=True, rng=rng) as data:
        updater = Updater(data, [x, t], loss, solver, comm=comm, shards=4, model=parameters)
        evaluator = Evaluator([images, labels], [x, t], {"loss": validation}, batch_size=4, comm=comm)
        trainer = Trainer(updater, every(4, "epoch"), comm.out, [evaluator])
        trainer.on(every(1, "epoch"))(lambda trainer: seen.append(trainer.observation["validation/loss"]))
        if comm.rank == victim:
            trainer.on(every(iteration))(lambda trainer: die(comm))
        try:
            trainer.run()
        except SystemExit:
            return None
    return [variable.d.copy() for variable in parameters.values()], seen


def die(comm):
    comm.engine.die()
    raise SystemExit


@pytest.mark.slow
@pytest.mark.parametrize(("size", "victim"), [(2, 1), (4, 3), (4, 1)])
def test_training_ends_with_the_bits_of_an_undisturbed_run(size, victim, tmp_path):
    def program(comm):
        comm.out = tmp_path
        return train(comm, victim, 3)

    nn.clear_parameters()
    ((expected, seen),) = LocalCommunicator.run(1, program)
    results = LocalCommunicator.run(size, program)
    nn.clear_parameters()
    assert results.pop(victim) is None
    for parameters, values in results:
        assert values == seen
        for own, other in zip(parameters, expected, strict=True):
            np.testing.assert_array_equal(own, other, strict=True)


def test_the_loss_of_rank_0_ends_training(tmp_path):
    def program(comm):
        comm.out = tmp_path
        if comm.rank:
            with pytest.raises(CommunicationError, match="rank 0, which writes the log and the checkpoints, must live"):
                train(comm, 0, 1)
        else:
            train(comm, 0, 1)

    nn.clear_parameters()
    LocalCommunicator.run(2, program)
    nn.clear_parameters()
