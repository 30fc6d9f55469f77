"""Training with states of solvers divided among ranks: the same bits, and checkpoints that any number of ranks loads."""

import numpy as np
import pytest

from nn_core.communicators import LocalCommunicator
from nn_core.training import Checkpoint, Log, MovingAverage, Trainer, every
from tests.unit.training.test_ranks import BATCH, IMAGES, LABELS, alone, make_data, make_updater, same, trained

OPTIONS = {"clip_norm": 0.5, "weight_decay": 1e-3}


def test_divided_states_change_no_bit(tmp_path):
    expected = trained(alone(), tmp_path / "alone", **OPTIONS)[0]
    for size in (1, 2, 4):

        def program(comm, out=tmp_path / str(size)):
            return trained(comm, out, sharded_states=True, **OPTIONS)[0]

        assert all(same(found, expected) for found in LocalCommunicator.run(size, program))


@pytest.mark.parametrize("sharded", [False, True])
def test_accumulated_batches_that_run_over_the_end_of_epochs(tmp_path, sharded):
    """Three batches of 8 a step, of 21 samples: each step ends in another place of an epoch, on any number of ranks."""

    def program(comm, out):
        with make_data(IMAGES[:21], LABELS[:21]) as data:
            options = {"shards": 4, "accumulate": 3, "sharded_states": sharded}
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
    """Divided and undivided, on 4, 2, 1, 2 and 4 ranks by turns."""
    expected = trained(alone(), tmp_path / "whole", until=15, **OPTIONS)[0]
    out = tmp_path / "parts"
    found = []
    for size, end, sharded in ((4, 3, True), (2, 6, True), (1, 9, False), (2, 12, False), (4, 15, True)):

        def program(comm, end=end, sharded=sharded):
            return trained(comm, out, until=end, resume=True, sharded_states=sharded, **OPTIONS)[0]

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
