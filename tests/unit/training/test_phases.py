"""Time of the phases of an iteration, on one rank and on several, in one line."""

import io
import re
import time

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.communicators import LocalCommunicator
from nn_core.errors import ArgumentError
from nn_core.training import Checkpoint, Log, StepTimes, Trainer, Updater, every, fit
from nn_core.training.extensions import phases
from nn_core.training.extensions.phases import PHASES, PhaseClock
from nn_core.utils.data_iterator import data_iterator_simple
from tests.unit.training.test_ranks import BATCH, alone, make_data, make_updater


def test_time_counts_for_the_inner_phase(monkeypatch):
    now = iter([0.0, 1.0, 3.0, 6.0, 10.0, 15.0])
    monkeypatch.setattr(phases.time, "perf_counter", lambda: next(now))
    clock = PhaseClock()
    with clock.phase("sum"), clock.phase("data"):
        pass
    assert {name: seconds for name, seconds in clock.clear().items() if seconds} == {"other": 6, "sum": 6, "data": 3}
    assert not any(clock.seconds.values())


def slow(seconds, function):
    def call(*arguments):
        time.sleep(seconds)
        return function(*arguments)

    return call


def trained(comm, out, *, slow_rank=-1, seconds=0.02, **options):
    """Return the log, and what was written."""
    file, log = io.StringIO(), Log()
    with make_data() as data:
        if comm.rank == slow_rank:
            data.next = slow(seconds, data.next)
        n_samples = BATCH // options.get("shards", 1) if options.get("shards", 1) else BATCH
        updater, _, _ = make_updater(comm, n_samples, data, **options)
        extensions = [StepTimes("loss", file=file), log, Checkpoint()]
        Trainer(updater, every(2, "epoch"), out, extensions).run()
    return log.entries, file.getvalue().splitlines()


@pytest.mark.parametrize("options", [{}, {"clip_norm": 1.0, "weight_decay": 1e-3}])
def test_one_process(tmp_path, options):
    entries, lines = trained(alone(), tmp_path, slow_rank=0, **options)
    times = {name: entries[1][f"time/{name}"] for name in PHASES}
    assert times["data"] > 0.02 and times["forward"] > 0 and times["backward"] > 0 and times["update"] > 0
    assert times["save"] > 0 and times["sum"] == 0
    assert sum(times.values()) == pytest.approx(entries[1]["time/iteration"])
    assert entries[1]["memory/mib"] > 1 and "slowest" not in entries[1]
    pattern = r"iteration 6, epoch 2: loss [0-9.]+ \| [0-9.e+]+ ms an iteration: data \d+ %, forward \d+ %.* \| \d+ MiB"
    assert len(lines) == 2 and re.fullmatch(pattern, lines[1])


@pytest.mark.parametrize("options", [{"shards": 4}, {"shards": 0}, {"shards": 4, "sharded_gradients": True}])
def test_the_slow_rank_is_named(tmp_path, options):
    def program(comm):
        return trained(comm, tmp_path, slow_rank=1, seconds=0.05, **options)

    (entries, lines), (_, others) = LocalCommunicator.run(2, program)
    assert others == [] and len(lines) == 2
    assert entries[1]["slowest"] == 1 and entries[1]["slowness"] > 1.3 and entries[1]["time/sum"] > 0
    assert re.search(r"\| 2 ranks, .*sum \d+ %.* \| rank 1 on localhost is slow: [0-9.]+ times the median, by data$", lines[1])


def test_the_bits_are_those_without_it_and_measuring_ends(tmp_path):
    def weights(extensions):
        w = nn.Variable.from_numpy_array(np.ones(3), need_grad=True)
        x, solver = nn.Variable((2, 3)), S.Adam(0.1)
        solver.set_parameters({"w": w})
        with data_iterator_simple(lambda i: (np.arange(3) + i,), 4, 2) as data:
            updater = Updater(data, [x], F.mean((x - w) ** 2), solver, model={"w": w})
            Trainer(updater, every(4, "epoch"), tmp_path / str(len(extensions)), extensions).run()
        return w.d.tolist(), updater

    (expected, _), (found, updater) = weights([]), weights([StepTimes(line=False)])
    assert found == expected and updater._plain_graph is not None


def test_the_line_can_be_left_out(capsys):
    fit(
        lambda x: nn.parametric_functions.affine(x, 2),
        (np.eye(2), np.arange(2)),
        progress=False,
        extensions=[StepTimes(line=False)],
    )
    assert "an iteration" not in capsys.readouterr().out
    with pytest.raises(ArgumentError, match="slow must be above 1, got 1"):
        StepTimes(slow=1)
