"""Several runs in one folder: what each of them keeps, which one is resumed, and that they do not meet."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import nn_core as nn
from nn_core.communicators import LocalCommunicator
from nn_core.errors import ArgumentError, CommunicationError, FileFormatError
from nn_core.files import lock as locks
from nn_core.training import (
    Checkpoint,
    Log,
    Plot,
    Trainer,
    Updater,
    checkpoints_in,
    every,
    fit,
    load_newest_checkpoint,
    observe,
)
from nn_core.training.checkpoint import read_snapshot
from nn_core.training.extensions import saving


class Killed(BaseException):
    """Stands for the end of a process: nothing of the trainer runs after it."""


@pytest.fixture
def make(make_updater, tmp_path):
    """Makes trainers of 12 iterations in one folder, which may be killed after one."""

    def make_trainer(until=12, kill_at=None, out=tmp_path, keep=3):
        trainer = Trainer(make_updater(), every(until), out)
        trainer.extend(Log("loss"), Checkpoint(keep=keep), every=every(2))
        if kill_at is not None:

            @trainer.on(lambda trainer: trainer.iteration == kill_at)
            def kill(trainer):
                raise Killed

        return trainer

    return make_trainer


def killed(trainer, **options):
    with pytest.raises(Killed):
        trainer.run(**options)


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name not in ("runs.json", ".runs.lock"))


def numbers(folder):
    return [int(re.search(r"\d+", path.name)[0]) for path in checkpoints_in(folder)]


def logged(folder):
    return [json.loads(line)["iteration"] for line in (folder / "log.jsonl").read_text().splitlines()]


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_script_can_be_run_twice(make, tmp_path):
    make(12).run()
    first = {name: values for name, values in content(tmp_path).items() if "runs" not in name}
    make(6).run()
    assert names(tmp_path) == [*(f"checkpoint-0000000{n}.npz" for n in (2, 4, 6)), "log.jsonl", "run-1"]
    assert logged(tmp_path) == [2, 4, 6]
    assert content(tmp_path / "run-1") == first
    make(4).run()
    assert (numbers(tmp_path), numbers(tmp_path / "run-1"), numbers(tmp_path / "run-2")) == ([4, 2], [12, 10, 8], [6, 4, 2])
    assert load_newest_checkpoint(tmp_path / "run-1", trainer=make(12)) == {}


def test_the_newest_run_is_resumed_and_not_the_one_with_the_largest_number(make, tmp_path):
    make(12).run()
    killed(make(12, kill_at=5))
    trainer = make(8)
    trainer.run(resume=True)
    assert trainer.iteration == 8
    assert (numbers(tmp_path), logged(tmp_path)) == ([8, 6, 4], [2, 4, 6, 8])
    assert numbers(tmp_path / "run-1") == [12, 10, 8]


def test_a_run_that_was_killed_before_its_first_checkpoint_is_resumed_from_the_start(make, tmp_path):
    make(12).run()
    killed(make(12, kill_at=1))
    trainer = make(2)
    trainer.run(resume=True)
    assert (trainer.iteration, numbers(tmp_path), logged(tmp_path)) == (2, [2], [2])


def test_an_unfinished_run_is_in_the_way(make, tmp_path):
    killed(make(12, kill_at=5))
    before = content(tmp_path)
    message = (
        r"run: the folder .* must not hold a run that has not come to its end, got checkpoint-00000004.npz of run \w{16}\n"
        r"  hint: run\(resume=True\) continues it, run\(overwrite=True\) removes its files, and Trainer\(out=...\) takes"
    )
    with pytest.raises(ArgumentError, match=message):
        make(12).run()
    assert content(tmp_path) == before
    make(12, out=tmp_path / "other").run()
    make(12).run(resume=True)
    assert (numbers(tmp_path), logged(tmp_path)) == (numbers(tmp_path / "other"), logged(tmp_path / "other"))
    make(2).run()
    assert numbers(tmp_path / "run-1") == [12, 10, 8]


def test_overwriting_removes_the_newest_run_alone(make, tmp_path):
    make(6).run()
    killed(make(12, kill_at=5))
    (tmp_path / "notes.txt").write_text("mine")
    make(2).run(overwrite=True)
    assert names(tmp_path) == ["checkpoint-00000002.npz", "log.jsonl", "notes.txt", "run-1"]
    assert numbers(tmp_path / "run-1") == [6, 4, 2]
    with pytest.raises(ArgumentError, match="run: resume and overwrite must not both be True, got both"):
        make(2).run(resume=True, overwrite=True)


def test_a_run_without_checkpoints_is_not_in_the_way_and_keeps_its_log(make, tmp_path):
    killed(make(12, kill_at=1))
    (tmp_path / "log.jsonl").write_text("what it had written\n")
    make(2).run()
    assert (tmp_path / "run-1" / "log.jsonl").read_text() == "what it had written\n"


def test_the_same_trainer_goes_on(make, tmp_path):
    trainer = make(12)
    trainer.extend(lambda trainer: trainer.stop("enough"), every=lambda trainer: trainer.iteration == 4, name="stop")
    trainer.run()
    trainer.run()
    assert trainer.iteration == 12
    assert logged(tmp_path) == [2, 4, 6, 8, 10, 12]
    assert names(tmp_path) == [*(f"checkpoint-000000{n:02d}.npz" for n in (8, 10, 12)), "log.jsonl"]


def test_a_finished_run_that_is_given_more_is_unfinished_until_it_ends(make, tmp_path):
    make(4).run()
    killed(make(12, kill_at=7), resume=True)
    with pytest.raises(ArgumentError, match=r"got checkpoint-00000006.npz of run"):
        make(12).run()
    make(12).run(resume=True)
    assert logged(tmp_path) == [2, 4, 6, 8, 10, 12]


def test_checkpoints_of_earlier_versions_are_a_run_that_may_not_have_ended(make, tmp_path):
    make(12).run()
    (tmp_path / "runs.json").unlink()
    with pytest.raises(ArgumentError, match=r"got checkpoint-00000012.npz of run"):
        make(12).run()
    make(14).run(resume=True)
    assert numbers(tmp_path) == [14, 12, 10]


def test_a_damaged_record_loses_no_checkpoint(make, tmp_path, caplog):
    make(12).run()
    (tmp_path / "runs.json").write_text("{")
    with pytest.raises(ArgumentError, match=r"got checkpoint-00000012.npz of run"):
        make(12).run()
    assert "runs.json is moved to runs.json.unreadable, since it does not read whole" in caplog.text
    make(14).run(resume=True)
    (tmp_path / "runs.json").write_text('{"format": 2, "runs": []}')
    with pytest.raises(ArgumentError, match=r"runs.json must have format 1, got 2 of a later nn_core"):
        make(14).run(resume=True)


@pytest.mark.parametrize("leaves_for", ["/tmp/elsewhere", "../elsewhere"])
def test_a_record_moves_nothing_out_of_the_folder(make, tmp_path, leaves_for):
    make(4).run()
    record = json.loads((tmp_path / "runs.json").read_text())
    record["runs"][0]["leaves_for"] = leaves_for
    record["runs"].append({**record["runs"][0], "id": "next", "leaves_for": None})
    (tmp_path / "runs.json").write_text(json.dumps(record))
    make(6).run(resume=True)
    assert numbers(tmp_path) == [6, 4, 2]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_start_that_is_killed_is_completed_by_the_next_one(make, tmp_path, monkeypatch, overwrite):
    """After each of the moves: whatever starts next never takes a file of the earlier run for one of its own."""
    make(12).run()
    method = "unlink" if overwrite else "replace"
    original = getattr(type(tmp_path), method)
    for n_moves in range(4):
        left = [n_moves]

        def move(path, *args, left=left, **options):
            if path.name.startswith(("checkpoint", "log")):
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
            return original(path, *args, **options)

        with monkeypatch.context() as patched:
            patched.setattr(type(tmp_path), method, move)
            killed(make(4), overwrite=overwrite)
        trainer = make(6)
        trainer.run(resume=True)
        assert (trainer.iteration, numbers(tmp_path), logged(tmp_path)) == (6, [6, 4, 2], [2, 4, 6])
        if not overwrite:
            assert numbers(tmp_path / "run-1") == [12, 10, 8]


def test_what_extensions_write_moves_with_the_run(make, tmp_path):
    pytest.importorskip("matplotlib")
    for _ in range(2):
        trainer = make(4)
        trainer.extend(Plot("loss", path="pictures/loss.png"), every=every(2))
        trainer.extend(Checkpoint(best="loss", mode="min"), name="second")
        (tmp_path / "pictures").mkdir(exist_ok=True)
        trainer.run()
    assert {"log.jsonl", "best.npz", "pictures"} <= set(names(tmp_path / "run-1"))
    assert (tmp_path / "run-1" / "pictures" / "loss.png").exists()


# -- retention -------------------------------------------------------------------------------------------------------


def test_a_checkpoint_that_was_just_written_is_kept(make, tmp_path):
    """One with a larger number that does not read whole takes no place among those kept."""
    killed(make(12, kill_at=5, keep=1))
    content_of_4 = (tmp_path / "checkpoint-00000004.npz").read_bytes()
    (tmp_path / "checkpoint-00000009.npz").write_bytes(content_of_4[:100])
    killed(make(12, kill_at=7, keep=1), resume=True)
    assert numbers(tmp_path) == [9, 6]
    trainer = make(12, keep=1)
    trainer.run(resume=True)
    assert (trainer.iteration, numbers(tmp_path)) == (12, [12])


def test_a_damaged_checkpoint_takes_no_place_when_training_has_passed_it(make, tmp_path):
    killed(make(12, kill_at=3, keep=2))
    content_of_2 = (tmp_path / "checkpoint-00000002.npz").read_bytes()
    (tmp_path / "checkpoint-00000005.npz").write_bytes(content_of_2[:100])
    killed(make(12, kill_at=5, keep=2), resume=True)
    assert numbers(tmp_path) == [5, 4, 2]
    killed(make(12, kill_at=7, keep=2), resume=True)
    assert numbers(tmp_path) == [6, 4]


def test_checkpoints_know_their_run(make, tmp_path):
    make(2).run()
    (run,) = json.loads((tmp_path / "runs.json").read_text())["runs"]
    assert run["is_finished"]
    assert read_snapshot(tmp_path / "checkpoint-00000002.npz").about["run"] == run["id"]


# -- damage ----------------------------------------------------------------------------------------------------------


def test_nothing_is_resumed_where_all_checkpoints_are_damaged(make, tmp_path):
    killed(make(12, kill_at=7))
    make(2, out=tmp_path / "whole").run()
    for path in checkpoints_in(tmp_path):
        path.write_bytes(path.read_bytes()[:-200])
    message = r"one of the checkpoints must read whole, got 3 that do not, the newest with: .*checkpoint-00000006.npz"
    with pytest.raises(FileFormatError, match=rf"run: .*: {message}"):
        make(12).run(resume=True)
    with pytest.raises(FileFormatError, match=rf"load_newest_checkpoint: .*: {message}"):
        load_newest_checkpoint(tmp_path, trainer=make(12))
    assert len(numbers(tmp_path)) == 3


def test_a_finished_run_that_cannot_be_resumed_stays_finished(make, tmp_path):
    make(4).run()
    for path in checkpoints_in(tmp_path):
        path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FileFormatError):
        make(12).run(resume=True)
    make(2).run()
    assert (numbers(tmp_path), numbers(tmp_path / "run-1")) == ([2], [4, 2])


def test_ranks_raise_what_one_of_them_has_met(make_updater, tmp_path):
    def program(comm):
        w = nn.Variable.from_numpy_array(np.zeros(1, np.float32), need_grad=True)
        solver = nn.solvers.Sgd(0.1)
        solver.set_parameters({"w": w})

        class Data:
            def next(self):
                return (np.ones(2, np.float32),)

        def loss(x):
            return nn.functions.mean((x - w) ** 2)

        updater = Updater(Data(), None, loss, solver, comm=comm, model={"w": w})
        with pytest.raises((ArgumentError, CommunicationError), match=r"must not hold|another rank has raised") as raised:
            Trainer(updater, every(4), tmp_path, [Checkpoint()]).run()
        return raised.type

    (tmp_path / "checkpoint-00000001.npz").write_bytes(b"from an earlier run")
    assert set(LocalCommunicator.run(2, program)) == {ArgumentError, CommunicationError}


# -- the best value --------------------------------------------------------------------------------------------------


def test_a_misspelt_name_of_the_best_value_is_told(make, tmp_path, caplog):
    trainer = make(4)
    trainer.extend(Checkpoint(best="validaton/loss", mode="min"), every=every(2), name="best")
    with pytest.raises(ArgumentError, match=r"best: the key must be one that is reported \(.*loss.*\), got 'validaton/loss'"):
        trainer.run()
    assert caplog.text.count("Checkpoint: nobody has reported 'validaton/loss' yet, for best.npz (reported: loss)") == 1
    assert numbers(tmp_path) == [4, 2]
    make(4).run()  # training itself had come to its end


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("period", [1, 2, 5, 7])
def test_the_best_value_is_saved_whenever_it_is_reported(make_updater, tmp_path, period, asynchronous):
    """The values come in iterations 3, 6, 9 and 12, whenever checkpoints are written."""
    values = {3: 4.0, 6: 1.0, 9: 2.0, 12: 3.0}

    def run(kill_at=None, **options):
        trainer = Trainer(make_updater(), every(12), tmp_path)
        trainer.extend(observe("score", lambda trainer: values[trainer.iteration]), every=every(3))
        saver = Checkpoint(best="score", mode="min", asynchronous=asynchronous)
        trainer.extend(saver, every=every(period))
        if kill_at is not None:

            @trainer.on(lambda trainer: trainer.iteration == kill_at)
            def kill(trainer):
                saver.wait()
                raise Killed

        trainer.run(**options)

    with pytest.raises(Killed):
        run(kill_at=5)
    assert read_snapshot(tmp_path / "best.npz").states["trainer"]["updater"]["iteration"] == 3
    run(resume=True)
    assert read_snapshot(tmp_path / "best.npz").states["trainer"]["updater"]["iteration"] == 6


def test_a_value_of_each_iteration_is_looked_at_when_checkpoints_are_written(make_updater, tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(saving, "write_snapshot", lambda path, snapshot: written.append(path.name))
    trainer = Trainer(make_updater(), every(12), tmp_path)
    trainer.extend(Checkpoint(best="loss", mode="min"), every=every(4))
    trainer.run()
    assert written.count("best.npz") <= 4


# -- locks -----------------------------------------------------------------------------------------------------------

HOLDER = """
    import sys, time
    from pathlib import Path
    from nn_core.files.lock import FileLock, take_lock
    lock = take_lock(Path(sys.argv[1]))
    assert isinstance(lock, FileLock)
    print("held", flush=True)
    time.sleep(60)
"""


def holding(program, path):
    """Start a program, and wait until it has taken the lock of a file."""
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


@pytest.fixture
def hold():
    """Starts processes that hold the lock of a file."""
    processes = []

    def start(path):
        processes.append(holding(textwrap.dedent(HOLDER), path))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_live_run_is_in_the_way_of_everything(make, tmp_path, hold):
    process = hold(tmp_path / ".runs.lock")
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(ArgumentError, match=rf"must not be in use, got a run there by process {process.pid} on "):
            make(2).run(**options)
    process.kill()
    process.wait()
    make(2).run()


def test_a_run_within_a_run_is_refused(make, tmp_path):
    trainer = make(4)
    trainer.extend(lambda trainer: make(2).run(), every=every(3), name="nested")
    with pytest.raises(ArgumentError, match=rf"must not be in use, got a run there by process {os.getpid()} on"):
        trainer.run()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_that_outlives_its_parent_keeps_no_lock(tmp_path):
    path = tmp_path / "lock"
    program = textwrap.dedent(HOLDER).replace("time.sleep(60)", "if pid := os.fork(): print(pid, flush=True)\ntime.sleep(60)")
    process = holding(program.replace("import sys", "import os, sys"), path)
    child = int(process.stdout.readline())
    try:
        process.kill()
        process.wait()
        end = time.monotonic() + 30
        while not isinstance(lock := locks.take_lock(path), locks.FileLock):  # the child may not have run yet
            assert time.monotonic() < end
            time.sleep(0.05)
        lock.release()
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


@pytest.fixture
def no_flock(monkeypatch):
    """A file system without locks."""

    def refuse(*args):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    monkeypatch.setattr(locks, "_SETTLING", 0.01)


@pytest.mark.parametrize(
    ("change", "is_taken"),
    [
        ({}, False),
        ({"pid": 2**22 + 1}, True),
        ({"boot": "another"}, True),
        ({"started": "1"}, True),
        ({"host": "elsewhere"}, True),
    ],
)
def test_without_locks_of_the_system_host_process_and_boot_are_compared(tmp_path, no_flock, caplog, change, is_taken):
    path = tmp_path / "lock"
    owner = {**locks.asdict(locks.this_process()), **change}
    path.write_text(json.dumps(owner))
    found = locks.take_lock(path)
    assert isinstance(found, locks.FileLock) == is_taken
    assert ("is taken for dead, since its file system has no locks" in caplog.text) == ("host" in change)
    if is_taken:
        assert locks.take_lock(path) == locks.this_process()
        found.release()
        assert not path.exists()
    else:
        assert str(found) == f"process {os.getpid()} on {locks.this_process().host}"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": "a", "pid": "b"}'])
def test_a_damaged_lock_blocks_nothing(tmp_path, no_flock, text):
    path = tmp_path / "lock"
    path.write_text(text)
    assert isinstance(locks.take_lock(path), locks.FileLock)


def test_of_two_that_find_a_lock_open_the_last_one_has_it(tmp_path, no_flock, monkeypatch):
    other = {**locks.asdict(locks.this_process()), "pid": 1, "started": locks._start_of(1)}
    monkeypatch.setattr(locks.time, "sleep", lambda seconds: (tmp_path / "lock").write_text(json.dumps(other)))
    assert locks.take_lock(tmp_path / "lock") == locks.Owner(**other)


def test_without_fcntl_an_open_file_cannot_be_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    path = tmp_path / "lock"
    lock = locks.take_lock(path)
    assert isinstance(lock, locks.FileLock)

    def refuse(*args, **options):
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(type(path), "unlink", refuse)
        assert locks.take_lock(path) == locks.this_process()
    lock.release()


# -- fit -------------------------------------------------------------------------------------------------------------


def test_fit_in_the_folder_of_an_earlier_one(tmp_path):
    x, t = np.eye(4, dtype=np.float32), np.arange(4)

    def run(**options):
        nn.clear_parameters()
        return fit(lambda x: nn.parametric_functions.affine(x, 4), (x, t), epochs=2, out=tmp_path, progress=False, **options)

    run()
    run()
    assert numbers(tmp_path / "run-1") == [2, 1]
    run(overwrite=True)
    assert names(tmp_path) == ["checkpoint-00000001.npz", "checkpoint-00000002.npz", "log.jsonl", "run-1"]
