"""Checkpoints in parts: each rank writes its own, any number of ranks reads them, and what is incomplete is passed over."""

import logging
import shutil
from dataclasses import replace

import numpy as np
import pytest

from nn_core.communicators import LocalCommunicator
from nn_core.errors import DiskFullError, FileFormatError
from nn_core.training import Checkpoint, Trainer, checkpoints_in, every, parts
from nn_core.training.checkpoint import Snapshot, newest_whole, read_snapshot
from nn_core.training.parts import Row, Saving, joined, parts_of, remove_orphans, write_part, write_whole
from tests.unit.training.test_ranks import BATCH, alone, files, make_data, make_updater, same, trained

OPTIONS = {"clip_norm": 0.5, "weight_decay": 1e-3}


def run(comm, out, until, *, resume=True, checkpoint=None, **options):
    """Return the parameters after training."""
    with make_data() as data:
        updater, parameters, _ = make_updater(comm, BATCH // 4, data, shards=4, **{**OPTIONS, **options})
        trainer = Trainer(updater, every(until), out, [checkpoint or Checkpoint(in_parts=True)])
        trainer.run(resume=resume)
        return {name: v.d.copy() for name, v in parameters.items()}


def names_of(out):
    """Return names without token and digest."""
    return [name.rpartition("-")[0].rpartition("-")[0] if ".part-" in name else name for name in files(out)]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_any_number_of_ranks_resumes_from_parts(tmp_path, asynchronous):
    expected = trained(alone(), tmp_path / "whole", until=9, **OPTIONS)[0]
    out, found = tmp_path / "parts", []
    states, gradients = {"sharded_states": True}, {"sharded_gradients": True}
    for size, end, divided in ((4, 3, states), (1, 6, {}), (2, 9, gradients)):

        def program(comm, end=end, divided=divided):
            checkpoint = Checkpoint(in_parts=True, asynchronous=asynchronous, keep=1)
            return run(comm, out, end, checkpoint=checkpoint, **divided)

        found = LocalCommunicator.run(size, program)
        parts_there = [name for name in names_of(out) if ".part-" in name]
        n_parts = size if divided and size > 1 else 0
        assert parts_there == [f"checkpoint-{end:08d}.part-{rank}-of-{size}" for rank in range(n_parts)]
    assert all(same(parameters, expected) for parameters in found)


def test_the_file_of_rank_0_has_none_of_what_the_parts_have(tmp_path):
    LocalCommunicator.run(2, lambda comm: run(comm, tmp_path / "two", 3, sharded_states=True))
    trained(alone(), tmp_path / "one", until=3, **OPTIONS)
    (path,) = checkpoints_in(tmp_path / "two")
    with np.load(path) as archive:
        assert not [name for name in archive.files if "/solver/" in name or name.endswith("affine/W")]
    whole = read_snapshot(checkpoints_in(tmp_path / "one")[0]).states["trainer"]["updater"]
    found = read_snapshot(path).states["trainer"]["updater"]
    for name in ("model/main", "solver/main"):
        assert _sorted(found[name]) == _sorted(whole[name]), name
    sizes = [part.stat().st_size for part in parts_of(path)]
    assert len(sizes) == 2 and max(sizes) < 2 * min(sizes)


def _sorted(state):
    if isinstance(state, dict):
        return sorted((key, _sorted(value)) for key, value in state.items())
    return state.tolist() if isinstance(state, np.ndarray) else state


def test_best_values_runs_and_retention_take_the_parts_along(tmp_path):
    def program(comm):
        for _ in range(2):  # the files of the first run move away
            checkpoint = Checkpoint(keep=1, best="loss", mode="min", in_parts=True)
            run(comm, tmp_path, 6, resume=False, checkpoint=checkpoint, sharded_gradients=True)

    LocalCommunicator.run(2, program)
    for folder in (tmp_path, tmp_path / "run-1"):
        expected = [f"{stem}{end}" for stem in ("best", "checkpoint-00000006")
                    for end in (".npz", ".part-0-of-2", ".part-1-of-2")]  # fmt: skip
        assert sorted(name for name in names_of(folder) if name.startswith(("best", "checkpoint"))) == sorted(expected)
        assert read_snapshot(folder / "best.npz").states["trainer"]["updater"]["solver/main"]["states"]


def test_a_newest_checkpoint_with_a_damaged_part_is_passed_over(tmp_path, caplog):
    """Missing, cut, or that of another checkpoint."""
    out = tmp_path / "run"
    LocalCommunicator.run(2, lambda comm: run(comm, out, 6, sharded_states=True))
    for fault in ("missing", "cut", "another"):
        folder = tmp_path / fault
        shutil.copytree(out, folder)
        newest, before = checkpoints_in(folder)
        part, other = parts_of(newest)[1], parts_of(before)[1]
        if fault == "missing":
            part.unlink()
        else:
            content = part.read_bytes()
            part.write_bytes(content[: len(content) // 2] if fault == "cut" else other.read_bytes())
        with caplog.at_level(logging.WARNING):
            found = newest_whole("resume", folder)
        assert found is not None and found[0] == before
        assert "a checkpoint is passed over, since it does not read whole" in caplog.text
        caplog.clear()


def rows(rank, size=2, n=10):
    start, end = rank * n // size, (rank + 1) * n // size
    return [Row(("a", "b"), (2, n // 2), start, np.arange(start, end, dtype=np.float32))]


def snapshot():
    return Snapshot({"a": {}}, {}, {"format": 1})


def test_no_file_of_rank_0_without_all_parts(tmp_path):
    path = tmp_path / "checkpoint-1.npz"
    saving = Saving((path,), "t", 2, is_asynchronous=False)
    write_part(path, 0, saving, rows(0))
    with pytest.raises(TimeoutError, match=r"all ranks must write their parts within 0.05 s, got none of rank 1"):
        write_whole(path, snapshot(), saving, 0.05)
    assert not path.exists()
    remove_orphans(tmp_path, ".npz")
    assert files(tmp_path) == []
    for rank in range(2):
        write_part(path, rank, saving, rows(rank))
    write_whole(path, snapshot(), saving, 1)
    assert read_snapshot(path).states["a"]["b"].tolist() == np.arange(10).reshape(2, 5).tolist()
    found = read_snapshot(path)
    for wrong in (found.about["parts"][:1], [*found.about["parts"], found.about["parts"][0]]):
        with pytest.raises(FileFormatError, match="the parts must have all elements, got fewer or more of a/b"):
            joined(path, replace(snapshot(), about={"parts": wrong}))


@pytest.mark.parametrize("kind", [DiskFullError, ValueError])
def test_a_rank_that_cannot_write_tells_rank_0(tmp_path, kind, monkeypatch):
    path = tmp_path / "checkpoint-1.npz"
    saving = Saving((path,), "t", 2, is_asynchronous=False)
    write_part(path, 0, saving, rows(0))

    def fail(*arguments):
        raise DiskFullError("no room", "file") if kind is DiskFullError else ValueError("no")

    monkeypatch.setattr(parts, "write_snapshot", fail)
    with pytest.raises(kind):
        write_part(path, 1, saving, rows(1))
    with pytest.raises(DiskFullError if kind is DiskFullError else OSError, match="rank 1 must be able to write its part"):
        write_whole(path, snapshot(), saving, 5)
    assert not path.exists()


def test_training_goes_on_where_one_rank_has_no_room_for_a_while(tmp_path, monkeypatch):
    write, failures = parts.write_snapshot, []

    def fail_once(path, content):
        if ".part-1-" in path.name and not failures:
            failures.append(path)
            raise DiskFullError("no room", str(path))
        write(path, content)

    monkeypatch.setattr(parts, "write_snapshot", fail_once)
    LocalCommunicator.run(2, lambda comm: run(comm, tmp_path, 6, sharded_states=True))
    assert failures and [path.name for path in checkpoints_in(tmp_path)] == ["checkpoint-00000006.npz"]
