"""Keeping files of a run: checkpoints by number, age and value, logs that are written anew, and training on a full disk."""

import errno
import json
import signal
from types import SimpleNamespace

import pytest

from nn_core.errors import ArgumentError, DiskFullError
from nn_core.training import Checkpoint, Log, Trainer, every, report
from nn_core.training.extensions import retention, saving, tables


@pytest.fixture
def clock(monkeypatch):
    """Return seconds that pass when the program says so."""
    now = SimpleNamespace(time=lambda: now.seconds, seconds=1e9)
    monkeypatch.setattr(retention, "time", now)
    return now


@pytest.fixture
def full(monkeypatch):
    """Return a disk that is full while `full.on` is True; writes of checkpoints and of logs fail then."""
    switch = SimpleNamespace(on=False, n_failed=0)
    write = saving.write_snapshot

    def write_or_fail(path, snapshot):
        if switch.on:
            switch.n_failed += 1
            raise DiskFullError(f"{path}: there must be room for the whole file, about 9 bytes", str(path))
        write(path, snapshot)

    monkeypatch.setattr(saving, "write_snapshot", write_or_fail)
    return switch


def make(make_updater, out, values=(), until=8, log=True, **options):
    trainer = Trainer(make_updater(), every(until), out)
    given = iter(values)

    @trainer.on(every(1))
    def measure(trainer):
        value = next(given, None)
        if value is not None:
            report({"score": value})

    measure.phase = "measure"
    trainer.extend(Checkpoint(**options), *([Log("loss")] if log else []), every=every(1))
    return trainer


def numbers(folder):
    return sorted(int(path.stem.split("-")[1]) for path in folder.glob("checkpoint-*.npz"))


def logged(folder):
    return [json.loads(line)["iteration"] for line in (folder / "log.jsonl").read_text().splitlines()]


def test_the_best_are_kept_besides_the_newest(make_updater, tmp_path):
    scores = [5.0, 9.0, float("nan"), 7.0, 1.0, 2.0, 3.0, 4.0]
    make(make_updater, tmp_path, scores, keep=2, keep_best=3, best="score", mode="max").run()
    assert numbers(tmp_path) == [1, 2, 4, 7, 8]


def test_a_resumed_run_knows_the_values_of_its_checkpoints(make_updater, tmp_path):
    options = {"keep": 1, "keep_best": 2, "best": "score", "mode": "min"}
    make(make_updater, tmp_path, [1.0, 5.0, 2.0, 9.0], until=4, **options).run()
    assert numbers(tmp_path) == [1, 3, 4]
    make(make_updater, tmp_path, [1.5, 9.0, 9.0, 9.0], **options).run(resume=True)
    assert numbers(tmp_path) == [1, 5, 8]


@pytest.mark.parametrize(("keep", "expected"), [(None, [6, 7, 8]), (2, [7, 8])])
def test_old_ones_are_removed(make_updater, tmp_path, clock, keep, expected):
    trainer = make(make_updater, tmp_path, keep=keep, max_age="2m")

    @trainer.on(every(1))
    def pass_time(trainer):
        clock.seconds += 60

    trainer.run()
    assert numbers(tmp_path) == expected


def test_the_newest_stays_however_old(make_updater, tmp_path, clock):
    rule = retention.Retention(None, 10.0, 0)
    rule.note(3, float("nan"), [])
    clock.seconds += 100
    paths = [tmp_path / "checkpoint-3.npz"]
    assert rule.kept(paths) == paths


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_age": "old"}, "Checkpoint: max_age: must be positive seconds or a text such as '3h50m', got 'old'"),
        ({"keep_best": 2}, "Checkpoint: keep_best must be 0, or positive together with best, got 2 and None"),
        ({"keep_best": -1, "best": "x", "mode": "min"}, "Checkpoint: keep_best must be 0, or positive .* got -1 and 'x'"),
    ],
)
def test_rules_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        Checkpoint(**options)


@pytest.mark.parametrize("change", ["remove", "cut", "another"])
def test_a_log_that_is_not_what_it_was_is_written_anew(make_updater, tmp_path, change, caplog):
    make(make_updater, tmp_path, until=4).run()
    path = tmp_path / "log.jsonl"
    whole = path.read_bytes()
    if change == "remove":
        path.unlink()
    else:
        path.write_bytes(whole[:30] if change == "cut" else whole.replace(b"1", b"7"))
    make(make_updater, tmp_path).run(resume=True)
    assert logged(tmp_path) == [1, 2, 3, 4, 5, 6, 7, 8] and path.read_bytes().startswith(whole.splitlines()[0])
    assert "log.jsonl is written anew from the checkpoint, since it must begin with its 4 entries" in caplog.text


@pytest.mark.parametrize("asynchronous", [False, True])
def test_training_goes_on_where_the_disk_is_full_for_a_while(make_updater, tmp_path, full, caplog, asynchronous):
    trainer = make(make_updater, tmp_path, log=False, asynchronous=asynchronous)

    @trainer.on(every(1))
    def fill(trainer):
        trainer.get_extension("Checkpoint").wait()
        full.on = 3 <= trainer.iteration <= 5

    trainer.run()
    assert (full.n_failed, numbers(tmp_path)) == (3, [6, 7, 8])
    assert caplog.text.count("nothing was saved, and training goes on: ") == 3 and "room for the whole file" in caplog.text


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_run_whose_last_checkpoint_found_no_room_says_so(make_updater, tmp_path, full, asynchronous):
    trainer = make(make_updater, tmp_path, log=False, asynchronous=asynchronous)
    trainer.extend(lambda trainer: setattr(full, "on", True), every=every(7), name="fill")
    with pytest.raises(DiskFullError, match="there must be room"):
        trainer.run()
    assert trainer.iteration == 8
    full.on = False
    make(make_updater, tmp_path, log=False).run(resume=True)
    assert numbers(tmp_path)[-1] == 8


def test_a_signal_with_a_full_disk_does_not_read_as_saved(make_updater, tmp_path, full):
    trainer = make(make_updater, tmp_path, log=False)
    trainer.extend(lambda trainer: signal.raise_signal(signal.SIGTERM), every=every(3), name="term")
    full.on = True
    with pytest.raises(DiskFullError):
        trainer.run()
    assert trainer.iteration == 3


def test_a_log_is_completed_when_there_is_room(make_updater, tmp_path, monkeypatch, caplog):
    trainer = make(make_updater, tmp_path)
    lengths, line = [], tables._line

    def line_or_fail(entry):
        lengths.append(entry["iteration"])
        if entry["iteration"] in (3, 4):
            raise OSError(errno.ENOSPC, "No space left on device")
        return line(entry)

    monkeypatch.setattr(tables, "_line", line_or_fail)
    trainer.on(lambda trainer: trainer.iteration == 6)(lambda trainer: monkeypatch.setattr(tables, "_line", line))
    trainer.run()
    assert logged(tmp_path) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert caplog.text.count("Log: the disk is full; ") == 1
