"""Time limits of a process: training saves, is no finished run, and asks by its exit status to be started again."""

import signal
import time

import numpy as np
import pytest

import nn_core as nn
from nn_core.engine.runtime import limits
from nn_core.errors import ArgumentError
from nn_core.settings import settings
from nn_core.training import Checkpoint, StopSignals, Trainer, checkpoints_in, every


@pytest.fixture
def environment(monkeypatch):
    """Set variables that are read anew."""

    def change(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        settings.cache_clear()

    yield change
    monkeypatch.undo()
    settings.cache_clear()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(90, 90.0), ("90s", 90.0), ("3h50m", 13800.0), ("1d12h", 129600.0), (" 1.5H ", 5400.0)],
)
def test_durations(text, seconds):
    assert limits.seconds_of("f", text) == seconds


@pytest.mark.parametrize("text", ["", "3", "h", "3x", "-1h", 0, -5, float("nan"), float("inf"), True, None, "1h-2m"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ArgumentError, match="run: must be positive seconds or a text such as '3h50m', got "):
        limits.seconds_of("run", text)


def test_limits_of_schedulers_are_times(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 1000))
    assert limits.end_time("f", "slurm") - time.time() == pytest.approx(880, abs=2)
    assert limits.end_time("f", "slurm-10m") - time.time() == pytest.approx(400, abs=2)
    assert limits.end_time("f", "@1700000000") == pytest.approx(1.7e9)
    monkeypatch.delenv("SLURM_JOB_END_TIME")
    with pytest.raises(ArgumentError, match=r"f: slurm needs SLURM_JOB_END_TIME, which .* got none\s+hint: give the limit"):
        limits.end_time("f", "slurm")


def make_trainer(make_updater, out, epochs=50):
    trainer = Trainer(make_updater(), every(epochs, "epoch"), out)
    trainer.extend(Checkpoint(), every=every(1000))
    trainer.extend(lambda trainer: time.sleep(0.02), every=every(1), name="slow")
    return trainer


def test_a_run_that_reaches_its_limit_is_continued_by_the_next_process(make_updater, tmp_path, caplog):
    """Each process counts anew: what a resumed ``every(1, "second")`` does not, which ends a run that has lasted long."""
    whole = make_trainer(make_updater, tmp_path / "whole")
    whole.run()
    expected = nn.get_parameters()["affine/W"].d.copy()
    done = [0]
    for _ in range(20):
        trainer = make_trainer(make_updater, tmp_path / "parts")
        try:
            trainer.run(resume=True, time_limit=0.6)
            break
        except SystemExit as end:
            assert end.code == 75
            assert trainer.iteration > done[-1] and not trainer.stop_reason
            assert checkpoints_in(tmp_path / "parts")[0].name == f"checkpoint-{trainer.iteration:08d}.npz"
            done.append(trainer.iteration)
    assert trainer.stop_reason == "50 epochs have passed" and len(done) > 2
    np.testing.assert_array_equal(nn.get_parameters()["affine/W"].d, expected)
    assert f"training was interrupted after iteration {done[1]} by its time limit" in caplog.text


def test_a_run_that_ends_in_the_iteration_of_its_limit_has_ended(make_updater, tmp_path):
    trainer = make_trainer(make_updater, tmp_path, epochs=1)
    trainer.extend(lambda trainer: time.sleep(0.3), every=every(3), name="late")
    trainer.run(time_limit=0.25)
    assert trainer.iteration == 3 and trainer.stop_reason
    trainer.run()  # of a finished run


def test_the_environment_sets_limit_and_status(make_updater, tmp_path, environment):
    environment(NN_CORE_TIME_LIMIT=f"@{time.time() - 5:.0f}", NN_CORE_REQUEUE_STATUS="99")
    trainer = make_trainer(make_updater, tmp_path)
    with pytest.raises(SystemExit) as raised:
        trainer.run()
    assert raised.value.code == 99 and trainer.iteration == 1


def test_a_wrong_limit_is_refused_before_anything_is_written(make_updater, tmp_path):
    with pytest.raises(ArgumentError, match="time_limit: must be positive seconds or a text such as '3h50m', got 'soon'"):
        make_trainer(make_updater, tmp_path / "new").run(time_limit="soon")
    assert not (tmp_path / "new").exists()


def test_the_notice_of_a_scheduler_asks_for_another_start(make_updater, tmp_path, environment):
    environment(NN_CORE_STOP_SIGNALS="SIGUSR1")
    trainer = make_trainer(make_updater, tmp_path)
    trainer.extend(lambda trainer: signal.raise_signal(signal.SIGUSR1), every=lambda trainer: trainer.iteration == 5, name="s")
    with pytest.raises(SystemExit) as raised:
        trainer.run()
    assert raised.value.code == 75 and trainer.iteration == 5


def test_own_loops_see_the_limit():
    steps = 0
    with StopSignals("0.05s") as signals:
        while not signals.ends:
            steps += 1
            time.sleep(0.01)
    assert 1 <= steps <= 6
    with pytest.raises(SystemExit) as raised:
        signals.leave("the loop has ended")
    assert raised.value.code == 75


def test_all_ranks_end_when_one_has_seen_the_limit():
    flags = [False, False, True, False]
    with StopSignals() as signals:
        assert not signals.ends and signals.take_flags(flags) and signals.is_expired
    with StopSignals() as signals:
        assert signals.take_flags([True, True, False, False])
        assert signals.received == signal.SIGUSR1
