"""Training with states of solvers divided among ranks: the same bits, and checkpoints that any number of ranks loads."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.communicators import LocalCommunicator
from nn_core.errors import ArgumentError
from nn_core.training import Checkpoint, Log, LossScale, MovingAverage, Trainer, Updater, every
from tests.unit.training.test_ranks import BATCH, IMAGES, LABELS, alone, make_data, make_updater, same, trained

OPTIONS = {"clip_norm": 0.5, "weight_decay": 1e-3}
STATES, GRADIENTS = {"sharded_states": True}, {"sharded_gradients": True}


@pytest.mark.parametrize("divided", [STATES, GRADIENTS])
def test_divided_states_change_no_bit(tmp_path, divided):
    expected, log, _ = trained(alone(), tmp_path / "alone", **OPTIONS)
    for size in (1, 2, 4):

        def program(comm, out=tmp_path / str(size)):
            return trained(comm, out, **divided, **OPTIONS)[:2]

        found = LocalCommunicator.run(size, program)
        assert all(same(parameters, expected) for parameters, _ in found)
        assert [{**entry, "elapsed_time": 0} for entry in found[0][1]] == [{**entry, "elapsed_time": 0} for entry in log]


def test_divided_gradients_with_accumulated_batches_and_a_loss_scale(tmp_path):
    """Of shards of all ranks, and of batches of each rank; one step overflows and is skipped."""
    for shards in (4, 0):

        def program(comm, out, shards=shards, **options):
            scale = LossScale(1e39, 1e10, 2, most=1e39)
            options = {**options, "accumulate": 2, "loss_scale": scale, "clip_norm": 0.1}
            with make_data() as data:
                n_samples = BATCH // shards if shards else BATCH
                updater, parameters, _ = make_updater(comm, n_samples, data, shards=shards, **options)
                log = Log()
                Trainer(updater, every(4), out, [log]).run()
                return {name: v.d.copy() for name, v in parameters.items()}, scale.scale

        expected = LocalCommunicator.run(2, lambda comm, out=tmp_path / f"whole{shards}": program(comm, out))
        out = tmp_path / f"parts{shards}"
        found = LocalCommunicator.run(2, lambda comm, out=out: program(comm, out, sharded_gradients=True))
        assert all(same(a[0], b[0]) and a[1] == b[1] < 1e39 for a, b in zip(found, expected, strict=True))


def test_what_divided_gradients_cannot_do_is_refused():
    class Own(Updater):
        def step(self):
            pass

    def program(comm):
        with make_data() as data:
            with pytest.raises(ArgumentError, match="hooks must be none with sharded_gradients, got 1"):
                make_updater(comm, 2, data, hooks=[lambda solver, iteration: None], sharded_gradients=True)
            solver = S.Sgd()
            with pytest.raises(ArgumentError, match=r"step\(\) must be that of Updater with sharded_gradients"):
                Own(data, [], F.sum(nn.Variable((1,))), solver, comm=comm, shards=0, sharded_gradients=True)
        return True

    assert LocalCommunicator.run(2, program) == [True, True]


@pytest.mark.parametrize("sharded", [{}, STATES, GRADIENTS])
def test_accumulated_batches_that_run_over_the_end_of_epochs(tmp_path, sharded):
    """Three batches of 8 a step, of 21 samples: each step ends in another place of an epoch, on any number of ranks."""

    def program(comm, out):
        with make_data(IMAGES[:21], LABELS[:21]) as data:
            options = {"shards": 4, "accumulate": 3, **sharded}
            updater, parameters, _ = make_updater(comm, BATCH // 4, data, **options)
            trainer = Trainer(updater, every(4, "epoch"), out, [Log("loss"), Checkpoint()])
            trainer.run()
            return {name: v.d.copy() for name, v in parameters.items()}, trainer.iteration, trainer.samples

    expected = program(alone(), tmp_path / "alone")
    assert expected[1:] == (4, 96)
    for size in (2, 4):
        for found in LocalCommunicator.run(size, lambda comm, out=tmp_path / str(size): program(comm, out)):
            assert same(found[0], expected[0]) and found[1:] == expected[1:]


def test_checkpoints_are_those_of_undivided_states(tmp_path):
    """Divided and undivided, on 4, 2, 1, 2, 4 and 2 ranks by turns."""
    expected = trained(alone(), tmp_path / "whole", until=18, **OPTIONS)[0]
    out = tmp_path / "parts"
    found = []
    turns = ((4, 3, STATES), (2, 6, GRADIENTS), (1, 9, {}), (2, 12, {}), (4, 15, GRADIENTS), (2, 18, STATES))
    for size, end, divided in turns:

        def program(comm, end=end, divided=divided):
            return trained(comm, out, until=end, resume=True, **divided, **OPTIONS)[0]

        found = LocalCommunicator.run(size, program)
    assert all(same(parameters, expected) for parameters in found)


@pytest.mark.parametrize("shards", [4, 0])
def test_all_kinds_of_saving_ask_all_ranks(tmp_path, shards):
    """By trigger, at the best value, asynchronously, with data of each rank, and by a signal of one rank."""

    def program(comm, out, until, resume):
        n_samples = BATCH // shards if shards else BATCH
        with make_data() as data:
            updater, parameters, _ = make_updater(comm, n_samples, data, shards=shards, sharded_states=True)
            trainer = Trainer(updater, every(until), out)
            average = MovingAverage({name: v for name, v in parameters.items() if v.need_grad})
            trainer.extend(average, Checkpoint(best="loss", mode="min", asynchronous=True, keep=1), every=every(2))
            trainer.run(resume=resume)
            return {name: v.d.copy() for name, v in parameters.items()}

    expected = LocalCommunicator.run(2, lambda comm: program(comm, tmp_path / "whole", 8, False))
    for until in (4, 8):
        found = LocalCommunicator.run(2, lambda comm, until=until: program(comm, tmp_path / "parts", until, True))
    assert all(same(a, b) for a, b in zip(found, expected, strict=True))


def test_a_checkpoint_holds_the_states_of_all_ranks(tmp_path):
    LocalCommunicator.run(2, lambda comm: trained(comm, tmp_path / "two", sharded_states=True, **OPTIONS))
    trained(alone(), tmp_path / "one", **OPTIONS)
    states = []
    for name in ("one", "two"):
        path = tmp_path / name / "checkpoint-00000003.npz"
        with np.load(path) as archive:
            states.append({key: archive[key] for key in archive.files if "/solver/" in key})
    assert states[0].keys() == states[1].keys() and len(states[0]) == 12
    assert all((states[0][key] == states[1][key]).all() and states[0][key].any() for key in states[0])
